//! The numbers of a row.
//!
//! Invariant: `row.with(&row.numbers())` is `row`.

use super::row::{LocationRun, Receivers, Row};
use girder_ir::plan::{Loc, LocalCopy, Object};
use girder_ir::schedule::TransferSlice;
use smallvec::SmallVec;

/// The numbers of a row, in the order of its text.
pub type Numbers = SmallVec<[i64; 10]>;

/// Returns the tile or buffer of a location, and its byte.
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

/// An iterator over numbers with checked conversions.
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
    /// Returns its numbers, in the order of its text.
    pub fn numbers(&self) -> Numbers {
        let mut n = Numbers::new();
        match self {
            &Row::Cycles { first, count, cycles, .. } => n.extend([first, count, cycles].map(i64::from)),
            &Row::Links { cycles, .. } => n.push(cycles as i64),
            Row::Carries { .. } => {}
            &Row::Buffers { first, count, tile, next, bytes } => {
                n.extend([first as i64, count as i64, tile as i64, next as i64, bytes as i64]);
            }
            Row::Locations { first, count, at, .. } => {
                n.extend([*first as i64, *count as i64]);
                match at {
                    LocationRun::InPlace { byte, step, strides } => {
                        n.extend([*byte as i64, *step]);
                        n.extend(strides.iter().map(|&s| s as i64));
                    }
                    &LocationRun::Buffer { buffer, next, byte, step } => {
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
            Row::Slice { slice, to, .. } => {
                n.extend([slice.transfer, slice.start, slice.first, slice.words].map(i64::from));
                n.extend(to.iter().flat_map(|r| [r.0 as i64, r.1 as i64]));
            }
        }
        n
    }

    /// Returns the row with other numbers, or `None` if a number does not fit its type.
    pub fn with(&self, numbers: &[i64]) -> Option<Row> {
        let mut n = Taken(numbers.iter());
        Some(match self {
            &Row::Cycles { phase, .. } => Row::Cycles { phase, first: n.u32()?, count: n.u32()?, cycles: n.u32()? },
            &Row::Links { phase, .. } => Row::Links { phase, cycles: n.u32()? },
            &Row::Carries { copy } => Row::Carries { copy },
            Row::Buffers { .. } => {
                Row::Buffers { first: n.u32()?, count: n.u32()?, tile: n.u32()?, next: n.i32()?, bytes: n.u32()? }
            }
            &Row::Locations { family, field, ref at, .. } => {
                let (first, count) = (n.u64()?, n.u64()?);
                let at = match at {
                    LocationRun::InPlace { strides, .. } => LocationRun::InPlace {
                        byte: n.u32()?,
                        step: n.i64()?,
                        strides: strides.iter().map(|_| n.i32()).collect::<Option<_>>()?,
                    },
                    LocationRun::Buffer { .. } => {
                        LocationRun::Buffer { buffer: n.u32()?, next: n.i64()?, byte: n.u32()?, step: n.i64()? }
                    }
                };
                Row::Locations { family, field, first, count, at }
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
                    Some(Receivers { first: with_loc(group.first, &mut n)?, count, step: group.step })
                };
                Row::Transfer { phase, start, from, words, to: to.iter().map(group).collect::<Option<_>>()? }
            }
            &Row::Slice { phase, slice, ref to } => {
                let (transfer, start, first, words) = (n.u32()?, n.u32()?, n.u32()?, n.u32()?);
                let to = to.iter().map(|_| Some((n.u32()?, n.u32()?))).collect::<Option<_>>()?;
                Row::Slice { phase, slice: TransferSlice { transfer, start, first, words, ..slice }, to }
            }
        })
    }

    /// Returns whether another row differs only in numbers.
    pub fn is_like(&self, other: &Row) -> bool {
        match (self, other) {
            (Row::Cycles { phase: a, .. }, Row::Cycles { phase: b, .. })
            | (Row::Links { phase: a, .. }, Row::Links { phase: b, .. }) => a == b,
            (Row::Buffers { .. }, Row::Buffers { .. }) => true,
            (Row::Locations { family: f, field: k, at: a, .. }, Row::Locations { family: g, field: l, at: b, .. }) => {
                (f, k) == (g, l) && same_form(a, b)
            }
            (Row::Copy { phase: p, gather: g, copy: a }, Row::Copy { phase: q, gather: h, copy: b }) => {
                (p, g) == (q, h) && same_object(a.from, b.from) && same_object(a.to, b.to)
            }
            (
                Row::Transfer { phase: p, start: s, from: a, to: x, .. },
                Row::Transfer { phase: q, start: t, from: b, to: y, .. },
            ) => {
                let like = |(a, b): (&Receivers, &Receivers)| a.step == b.step && same_object(a.first, b.first);
                let groups = x.len() == y.len() && x.iter().zip(y).all(like);
                p == q && s.map(|s| s.1) == t.map(|t| t.1) && same_object(*a, *b) && groups
            }
            (Row::Slice { phase: p, slice: a, to: x }, Row::Slice { phase: q, slice: b, to: y }) => {
                (p, a.paired, x.len()) == (q, b.paired, y.len())
            }
            _ => false,
        }
    }
}

fn same_form(a: &LocationRun, b: &LocationRun) -> bool {
    match (a, b) {
        (LocationRun::InPlace { strides: a, .. }, LocationRun::InPlace { strides: b, .. }) => a.len() == b.len(),
        (LocationRun::Buffer { .. }, LocationRun::Buffer { .. }) => true,
        _ => false,
    }
}

/// Returns whether two locations are in the same variable, or both in buffers.
fn same_object(a: Loc, b: Loc) -> bool {
    match (a.object, b.object) {
        (Object::Var(a), Object::Var(b)) => a == b,
        (Object::Buffer(_), Object::Buffer(_)) => true,
        _ => false,
    }
}
