//! Families of rows: a row whose numbers advance evenly over a box of indices, or with the columns of a table.
//!
//! Invariant: rows of a family differ only in numbers, which are sums of a constant and multiples of the indices.

use super::numbers::Numbers;
use super::row::Row;
use girder_syntax::ast::IntegerList;

/// A row, and the indices over which it is repeated.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RowFamily {
    /// The row at indices 0, 0, …, or at the first entry of a table.
    pub first: Row,
    /// The indices.
    pub indices: Indices,
}

/// The indices of a family.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Indices {
    /// All combinations of indices, from the slowest to the fastest; none for a single row.
    Box(Vec<Dim>),
    /// The entries of a table.
    Table(Table),
}

/// One index over a box.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dim {
    /// The number of values of the index, from 0 to `count` − 1; at least 2.
    pub count: u32,
    /// The step of each of the [`Row::numbers`].
    pub step: Numbers,
}

/// The indices of one row for each entry: its columns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Table {
    /// For each column: the step of each of the [`Row::numbers`]. At least one.
    pub steps: Vec<Numbers>,
    /// The values of the columns; at least one entry.
    pub list: IntegerList,
}

/// The maximal number of indices over a box.
pub const MAX_RANK: usize = 3;

impl RowFamily {
    /// Returns a family of one row.
    pub fn one(first: Row) -> RowFamily {
        RowFamily { first, indices: Indices::Box(vec![]) }
    }

    /// Returns the number of rows, or `None` if it overflows.
    pub fn count(&self) -> Option<u64> {
        match &self.indices {
            Indices::Box(dims) => dims.iter().try_fold(1u64, |n, d| n.checked_mul(d.count as u64)),
            Indices::Table(table) => Some(table.list.len() as u64),
        }
    }

    /// Calls `f` for each row in order.
    ///
    /// # Errors
    /// The first error of `f`, or a number that does not fit its type.
    pub fn each(&self, mut f: impl FnMut(Row) -> Result<(), String>) -> Result<(), String> {
        let base = self.first.numbers();
        let mut numbers = base.clone();
        let mut row = |numbers: &Numbers| f(self.first.with(numbers).ok_or(NO_ROW)?);
        match &self.indices {
            Indices::Box(dims) => {
                let mut at = vec![0; dims.len()];
                loop {
                    row(&numbers)?;
                    let Some(d) = (0..at.len()).rev().find(|&d| at[d] + 1 < dims[d].count) else { return Ok(()) };
                    at[d] += 1;
                    at[d + 1..].fill(0);
                    let steps = dims.iter().map(|d| &d.step).zip(at.iter().map(|&k| i64::from(k)));
                    advance(&base, steps, &mut numbers)?;
                }
            }
            Indices::Table(table) => {
                let Some(first) = table.list.entries().next() else { return Ok(()) };
                for entry in table.list.entries() {
                    let from_first = entry.iter().zip(&first).map(|(v, first)| v.wrapping_sub(*first));
                    advance(&base, table.steps.iter().zip(from_first), &mut numbers)?;
                    row(&numbers)?;
                }
                Ok(())
            }
        }
    }
}

const NO_ROW: &str = "a number of this family is out of range in its row";

/// Sets `numbers` to the sum of `base` and multiples of steps.
fn advance<'s>(
    base: &Numbers,
    steps: impl Iterator<Item = (&'s Numbers, i64)>,
    numbers: &mut Numbers,
) -> Result<(), String> {
    numbers.copy_from_slice(base);
    for (step, k) in steps {
        for (n, s) in numbers.iter_mut().zip(step).filter(|(_, s)| **s != 0) {
            let sum = s.checked_mul(k).and_then(|more| n.checked_add(more));
            *n = sum.ok_or("a number of this family is too large")?;
        }
    }
    Ok(())
}
