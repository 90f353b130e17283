//! Rows that follow one another evenly, as one: a row, and how its numbers advance over a box of indices.
//!
//! Invariant: `expand ∘ fold` is the identity. Rows of a family differ in numbers alone.

#[cfg(test)]
mod tests;

use super::{Landed, Receivers, Row};
use girder_ir::plan::{Loc, LocalCopy, Object};
use girder_ir::schedule::TransferSlice;
use smallvec::SmallVec;

/// What a family's row says for index 0, and what it adds for each index.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RowFamily {
    /// The row at indices 0, 0, ….
    pub first: Row,
    /// From the slowest index to the fastest; empty for a lone row.
    pub dims: Vec<Dim>,
}

/// One index of a family.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dim {
    /// It runs from 0 to `count` − 1; at least 2.
    pub count: u32,
    /// What each of the row's [`Row::numbers`] adds from one to the next.
    pub step: Numbers,
}

/// The numbers of a row, in the order of its text.
pub type Numbers = SmallVec<[i64; 10]>;

/// The most indices of a family.
pub const MAX_RANK: usize = 3;
/// Fewer rows than this are easier to read one by one.
const FEW: usize = 3;

/// Rows as families, in their order.
pub fn fold(rows: Vec<Row>) -> Vec<RowFamily> {
    let of = |first: Row| (first.numbers(), RowFamily { first, dims: vec![] });
    let mut families: Vec<(Numbers, RowFamily)> = rows.into_iter().map(of).collect();
    for rank in 0..MAX_RANK {
        families = once(families, rank);
    }
    families.into_iter().map(|f| f.1).collect()
}

/// Joins families of one rank that advance evenly.
fn once(list: Vec<(Numbers, RowFamily)>, rank: usize) -> Vec<(Numbers, RowFamily)> {
    let mut result = Vec::with_capacity(list.len());
    let least = if rank == 0 { FEW } else { 2 };
    let mut rest = list.as_slice();
    while let [first, others @ ..] = rest {
        let alike = |f: &(Numbers, RowFamily)| f.1.dims == first.1.dims && f.1.first.is_like(&first.1.first);
        let mut count = 1;
        let mut step = Numbers::new();
        if let Some(second) = others.first().filter(|s| first.1.dims.len() == rank && alike(s)) {
            step = second.0.iter().zip(&first.0).map(|(b, a)| b.wrapping_sub(*a)).collect();
            let even = |pair: &&[(Numbers, RowFamily)]| {
                let (a, b) = (&pair[0].0, &pair[1].0);
                alike(&pair[1]) && a.iter().zip(b).zip(&step).all(|((a, b), s)| a.wrapping_add(*s) == *b)
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
    /// How many rows it stands for; `None` if they cannot be counted.
    pub fn count(&self) -> Option<u64> {
        self.dims.iter().try_fold(1u64, |n, d| n.checked_mul(d.count as u64))
    }

    /// Calls `f` for each row in order.
    ///
    /// # Errors
    /// The first error of `f`, or a number that does not fit where it stands.
    pub fn each(&self, mut f: impl FnMut(Row) -> Result<(), String>) -> Result<(), String> {
        let mut at = vec![0; self.dims.len()];
        let base = self.first.numbers();
        let mut numbers = base.clone();
        loop {
            f(self.first.with(&numbers).ok_or("a number of this family does not fit where it stands")?)?;
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

/// The part of a place that differs between tiles, and its byte.
fn of_loc(loc: Loc) -> [i64; 2] {
    let which = match loc.object {
        Object::Var(_) => loc.tile,
        Object::Buffer(b) => b,
    };
    [which as i64, loc.offset as i64]
}

fn with_loc(loc: Loc, numbers: &mut Taken) -> Option<Loc> {
    let (which, offset) = (numbers.u32()?, numbers.u32()?);
    Some(match loc.object {
        Object::Var(_) => Loc { tile: which, offset, ..loc },
        Object::Buffer(_) => Loc { object: Object::Buffer(which), offset, ..loc },
    })
}

/// Numbers that are taken one by one.
struct Taken<'a>(std::slice::Iter<'a, i64>);

impl Taken<'_> {
    fn i64(&mut self) -> Option<i64> {
        self.0.next().copied()
    }

    fn i32(&mut self) -> Option<i32> {
        self.i64()?.try_into().ok()
    }

    fn u32(&mut self) -> Option<u32> {
        self.i64()?.try_into().ok()
    }

    fn u64(&mut self) -> Option<u64> {
        self.i64()?.try_into().ok()
    }
}

impl Row {
    /// Its numbers, in the order of its text.
    pub fn numbers(&self) -> Numbers {
        let mut n = Numbers::new();
        match self {
            &Row::Cycles { first, count, cycles, .. } => n.extend([first, count, cycles].map(i64::from)),
            &Row::Links { cycles, .. } => n.push(cycles as i64),
            Row::Carries { .. } => {}
            &Row::Buffers { first, count, tile, next, bytes } => {
                n.extend([first as i64, count as i64, tile as i64, next as i64, bytes as i64]);
            }
            Row::Landings { first, count, at, .. } => {
                n.extend([*first as i64, *count as i64]);
                match at {
                    Landed::InPlace { byte, step, strides } => {
                        n.extend([*byte as i64, *step]);
                        n.extend(strides.iter().map(|&s| s as i64));
                    }
                    &Landed::Buffer { buffer, next, byte, step } => {
                        n.extend([buffer as i64, next, byte as i64, step]);
                    }
                }
            }
            Row::Copy { copy, .. } => {
                n.extend(of_loc(copy.from));
                n.extend([copy.bytes as i64, copy.count as i64, copy.from_step as i64, copy.to_step as i64]);
                n.extend(of_loc(copy.to));
            }
            Row::Transfer { start, from, words, to, .. } => {
                n.extend(start.map(|s| s.0 as i64));
                n.extend(of_loc(*from));
                n.push(*words as i64);
                for group in to {
                    n.push(group.count as i64);
                    n.extend(of_loc(group.first));
                }
            }
            Row::Slice { piece, to, .. } => {
                n.extend([piece.transfer, piece.start, piece.first, piece.words].map(i64::from));
                n.extend(to.iter().flat_map(|r| [r.0 as i64, r.1 as i64]));
            }
        }
        n
    }

    /// The same row with other numbers; `None` if one does not fit.
    pub fn with(&self, numbers: &[i64]) -> Option<Row> {
        let mut n = Taken(numbers.iter());
        Some(match self {
            &Row::Cycles { phase, .. } => Row::Cycles { phase, first: n.u32()?, count: n.u32()?, cycles: n.u32()? },
            &Row::Links { phase, .. } => Row::Links { phase, cycles: n.u32()? },
            &Row::Carries { copy } => Row::Carries { copy },
            Row::Buffers { .. } => {
                Row::Buffers { first: n.u32()?, count: n.u32()?, tile: n.u32()?, next: n.i32()?, bytes: n.u32()? }
            }
            &Row::Landings { family, field, ref at, .. } => {
                let (first, count) = (n.u64()?, n.u64()?);
                let at = match at {
                    Landed::InPlace { strides, .. } => Landed::InPlace {
                        byte: n.u32()?,
                        step: n.i64()?,
                        strides: strides.iter().map(|_| n.i32()).collect::<Option<_>>()?,
                    },
                    Landed::Buffer { .. } => {
                        Landed::Buffer { buffer: n.u32()?, next: n.i64()?, byte: n.u32()?, step: n.i64()? }
                    }
                };
                Row::Landings { family, field, first, count, at }
            }
            &Row::Copy { phase, gather, copy } => {
                let from = with_loc(copy.from, &mut n)?;
                let (bytes, count, from_step, to_step) = (n.u32()?, n.u32()?, n.i32()?, n.i32()?);
                let to = with_loc(copy.to, &mut n)?;
                Row::Copy { phase, gather, copy: LocalCopy { from, to, count, bytes, from_step, to_step } }
            }
            &Row::Transfer { phase, start, from, ref to, .. } => {
                let start = match start {
                    Some((_, paired)) => Some((n.u32()?, paired)),
                    None => None,
                };
                let (from, words) = (with_loc(from, &mut n)?, n.u32()?);
                let group = |group: &Receivers| {
                    let count = n.u32()?;
                    Some(Receivers { first: with_loc(group.first, &mut n)?, count })
                };
                Row::Transfer { phase, start, from, words, to: to.iter().map(group).collect::<Option<_>>()? }
            }
            &Row::Slice { phase, piece, ref to } => {
                let (transfer, start, first, words) = (n.u32()?, n.u32()?, n.u32()?, n.u32()?);
                let to = to.iter().map(|_| Some((n.u32()?, n.u32()?))).collect::<Option<_>>()?;
                Row::Slice { phase, piece: TransferSlice { transfer, start, first, words, ..piece }, to }
            }
        })
    }

    /// Whether another row differs in numbers alone.
    pub fn is_like(&self, other: &Row) -> bool {
        match (self, other) {
            (Row::Cycles { phase: a, .. }, Row::Cycles { phase: b, .. })
            | (Row::Links { phase: a, .. }, Row::Links { phase: b, .. }) => a == b,
            (Row::Buffers { .. }, Row::Buffers { .. }) => true,
            (Row::Landings { family: f, field: k, at: a, .. }, Row::Landings { family: g, field: l, at: b, .. }) => {
                (f, k) == (g, l) && alike_landed(a, b)
            }
            (Row::Copy { phase: p, gather: g, copy: a }, Row::Copy { phase: q, gather: h, copy: b }) => {
                (p, g) == (q, h) && alike(a.from, b.from) && alike(a.to, b.to)
            }
            (
                Row::Transfer { phase: p, start: s, from: a, to: x, .. },
                Row::Transfer { phase: q, start: t, from: b, to: y, .. },
            ) => {
                let groups = x.len() == y.len() && x.iter().zip(y).all(|(a, b)| alike(a.first, b.first));
                p == q && s.map(|s| s.1) == t.map(|t| t.1) && alike(*a, *b) && groups
            }
            (Row::Slice { phase: p, piece: a, to: x }, Row::Slice { phase: q, piece: b, to: y }) => {
                (p, a.paired, x.len()) == (q, b.paired, y.len())
            }
            _ => false,
        }
    }
}

fn alike_landed(a: &Landed, b: &Landed) -> bool {
    match (a, b) {
        (Landed::InPlace { strides: a, .. }, Landed::InPlace { strides: b, .. }) => a.len() == b.len(),
        (Landed::Buffer { .. }, Landed::Buffer { .. }) => true,
        _ => false,
    }
}

/// Whether two places are in the same variable, or both in buffers.
fn alike(a: Loc, b: Loc) -> bool {
    match (a.object, b.object) {
        (Object::Var(a), Object::Var(b)) => a == b,
        (Object::Buffer(_), Object::Buffer(_)) => true,
        _ => false,
    }
}
