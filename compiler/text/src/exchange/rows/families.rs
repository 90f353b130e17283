//! Families of rows: a row whose numbers advance evenly over a box of indices.
//!
//! Invariant: `expand ∘ fold` is the identity. Rows of a family differ only in numbers.

#[cfg(test)]
mod tests;

use super::numbers::Numbers;
use super::row::Row;

/// A row at index 0, and the steps of its numbers for each index.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RowFamily {
    /// The row at indices 0, 0, ….
    pub first: Row,
    /// The indices, from the slowest to the fastest; empty for a single row.
    pub dims: Vec<Dim>,
}

/// One index of a family.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dim {
    /// The number of values of the index, from 0 to `count` − 1; at least 2.
    pub count: u32,
    /// The step of each of the [`Row::numbers`].
    pub step: Numbers,
}

/// The maximal number of indices of a family.
pub const MAX_RANK: usize = 3;
/// Fewer rows are printed one by one, which is easier to read.
const FEW: usize = 3;

/// Folds rows into families, in order.
pub fn fold(rows: Vec<Row>) -> Vec<RowFamily> {
    let of = |first: Row| (first.numbers(), RowFamily { first, dims: vec![] });
    let mut families: Vec<(Numbers, RowFamily)> = rows.into_iter().map(of).collect();
    for rank in 0..MAX_RANK {
        families = once(families, rank);
    }
    families.into_iter().map(|f| f.1).collect()
}

/// Joins families of one rank whose numbers advance evenly.
fn once(list: Vec<(Numbers, RowFamily)>, rank: usize) -> Vec<(Numbers, RowFamily)> {
    let mut result = Vec::with_capacity(list.len());
    let least = if rank == 0 { FEW } else { 2 };
    let mut rest = list.as_slice();
    while let [first, others @ ..] = rest {
        let has_same_form = |f: &(Numbers, RowFamily)| f.1.dims == first.1.dims && f.1.first.is_like(&first.1.first);
        let mut count = 1;
        let mut step = Numbers::new();
        if let Some(second) = others.first().filter(|s| first.1.dims.len() == rank && has_same_form(s)) {
            step = second.0.iter().zip(&first.0).map(|(b, a)| b.wrapping_sub(*a)).collect();
            let even = |pair: &&[(Numbers, RowFamily)]| {
                let (a, b) = (&pair[0].0, &pair[1].0);
                has_same_form(&pair[1]) && a.iter().zip(b).zip(&step).all(|((a, b), s)| a.wrapping_add(*s) == *b)
            };
            count += rest.windows(2).take_while(even).count();
        }
        if count < least {
            count = 1;
        }
        let mut family = first.clone();
        if count > 1 {
            family.1.dims.insert(0, Dim { count: count as u32, step });
        }
        result.push(family);
        rest = &rest[count..];
    }
    result
}

impl RowFamily {
    /// Returns the number of rows, or `None` if it overflows.
    pub fn count(&self) -> Option<u64> {
        self.dims.iter().try_fold(1u64, |n, d| n.checked_mul(d.count as u64))
    }

    /// Calls `f` for each row in order.
    ///
    /// # Errors
    /// The first error of `f`, or a number that does not fit its type.
    pub fn each(&self, mut f: impl FnMut(Row) -> Result<(), String>) -> Result<(), String> {
        let mut at = vec![0; self.dims.len()];
        let base = self.first.numbers();
        let mut numbers = base.clone();
        loop {
            f(self.first.with(&numbers).ok_or("a number of this family is out of range in its row")?)?;
            let Some(d) = (0..at.len()).rev().find(|&d| at[d] + 1 < self.dims[d].count) else { return Ok(()) };
            at[d] += 1;
            at[d + 1..].fill(0);
            numbers = self.numbers(&base, &at).ok_or("a number of this family is too large")?;
        }
    }

    fn numbers(&self, base: &Numbers, at: &[u32]) -> Option<Numbers> {
        let mut numbers = base.clone();
        for (dim, &k) in self.dims.iter().zip(at) {
            for (n, &s) in numbers.iter_mut().zip(&dim.step) {
                *n = n.checked_add(s.checked_mul(k as i64)?)?;
            }
        }
        Some(numbers)
    }
}
