//! Integers in columns: closed while they are affine, listed otherwise.
//!
//! Invariant: every value fits the 64-bit `int`; what would not is left to the evaluation turn by turn.

use super::{Found, Stop};
use girder_ir::affine::Affine;
use girder_syntax::ast::BinaryOp;
use smallvec::SmallVec;
use std::sync::Arc;

/// The box of turns; they are numbered row-major.
pub type Lens = SmallVec<[u32; 4]>;

/// One integer per turn.
#[derive(Clone, Debug)]
pub enum Ints {
    /// A function of the turn.
    Affine(Affine),
    /// Listed.
    Each(Arc<[i64]>),
}

/// How many turns a box has.
pub fn point_count(lens: &[u32]) -> usize {
    lens.iter().map(|&n| n as usize).product()
}

impl Ints {
    /// The same in every turn.
    pub fn constant(value: i64) -> Ints {
        Ints::Affine(Affine::constant(value))
    }

    /// The number of the turn along one index.
    pub fn index(dim: usize) -> Ints {
        let mut coef: SmallVec<[i64; 4]> = SmallVec::from_elem(0, dim);
        coef.push(1);
        Ints::Affine(Affine { base: 0, coef })
    }

    /// The value, if it is the same by its form.
    pub fn as_constant(&self) -> Option<i64> {
        match self {
            Ints::Affine(a) if a.coef.is_empty() => Some(a.base),
            _ => None,
        }
    }

    /// The value in the first turn. Precondition: there is one.
    pub fn first(&self) -> i64 {
        match self {
            Ints::Affine(a) => a.base,
            Ints::Each(v) => v[0],
        }
    }

    /// The least and the greatest value. Precondition: there is a turn.
    pub fn bounds(&self, lens: &[u32]) -> (i64, i64) {
        match self {
            Ints::Affine(a) => a.bounds(lens).unwrap_or((a.base, a.base)),
            Ints::Each(v) => v.iter().fold((i64::MAX, i64::MIN), |(lo, hi), &x| (lo.min(x), hi.max(x))),
        }
    }

    /// The values by turn.
    pub fn values<'a>(&'a self, lens: &'a [u32]) -> Box<dyn Iterator<Item = i64> + 'a> {
        let a = match self {
            Ints::Each(v) => return Box::new(v.iter().copied()),
            Ints::Affine(a) => a,
        };
        let count = point_count(lens);
        if a.coef.is_empty() {
            return Box::new(std::iter::repeat_n(a.base, count));
        }
        let inner = *lens.last().unwrap_or(&1) as i64;
        let step = a.coef.get(lens.len() - 1).copied().unwrap_or(0);
        let outer = &lens[..lens.len() - 1];
        let starts = (0..count as u64 / inner.max(1) as u64).map(move |row| start_of(a, outer, row));
        Box::new(starts.flat_map(move |start| (0..inner).map(move |i| start + i * step)))
    }

    /// `f` of every value.
    pub fn map(&self, lens: &[u32], f: impl Fn(i64) -> Option<i64>) -> Found<Ints> {
        let values: Option<Arc<[i64]>> = self.values(lens).map(f).collect::<Option<Vec<i64>>>().map(Arc::from);
        values.map(Ints::Each).ok_or(Stop::Leave)
    }

    /// `f` of every pair of values.
    pub fn zip(&self, other: &Ints, lens: &[u32], f: impl Fn(i64, i64) -> Option<i64>) -> Found<Ints> {
        let pairs = self.values(lens).zip(other.values(lens));
        pairs.map(|(a, b)| f(a, b)).collect::<Option<Vec<i64>>>().map(|v| Ints::Each(v.into())).ok_or(Stop::Leave)
    }

    /// `self + other`
    pub fn add(&self, other: &Ints, lens: &[u32]) -> Found<Ints> {
        match (self, other) {
            (Ints::Affine(a), Ints::Affine(b)) => sum(a, b, 1, lens).map(Ints::Affine),
            _ => self.zip(other, lens, i64::checked_add),
        }
    }

    /// `self - other`
    pub fn sub(&self, other: &Ints, lens: &[u32]) -> Found<Ints> {
        match (self, other) {
            (Ints::Affine(a), Ints::Affine(b)) => sum(a, b, -1, lens).map(Ints::Affine),
            _ => self.zip(other, lens, i64::checked_sub),
        }
    }

    /// `self * factor`
    pub fn scale(&self, factor: i64, lens: &[u32]) -> Found<Ints> {
        match self {
            Ints::Affine(a) => sum(&Affine::constant(0), a, factor, lens).map(Ints::Affine),
            Ints::Each(_) => self.map(lens, |v| v.checked_mul(factor)),
        }
    }

    /// `self op other` where it gives an integer; division by zero and overflow are left.
    pub fn binary(&self, op: BinaryOp, other: &Ints, lens: &[u32]) -> Found<Ints> {
        match op {
            BinaryOp::Add => self.add(other, lens),
            BinaryOp::Sub => self.sub(other, lens),
            BinaryOp::Mul => match (self.as_constant(), other.as_constant()) {
                (_, Some(factor)) => self.scale(factor, lens),
                (Some(factor), _) => other.scale(factor, lens),
                _ => self.zip(other, lens, i64::checked_mul),
            },
            BinaryOp::Div => self.zip(other, lens, i64::checked_div),
            BinaryOp::Rem => self.zip(other, lens, i64::checked_rem),
            BinaryOp::BitAnd => self.zip(other, lens, |a, b| Some(a & b)),
            BinaryOp::BitOr => self.zip(other, lens, |a, b| Some(a | b)),
            BinaryOp::BitXor => self.zip(other, lens, |a, b| Some(a ^ b)),
            BinaryOp::Shr => self.zip(other, lens, |a, b| (0..64).contains(&b).then(|| a >> b)),
            BinaryOp::Shl => self.zip(other, lens, |a, b| match b {
                0..=62 => a.checked_mul(1 << b),
                _ => None,
            }),
            _ => Err(Stop::Leave),
        }
    }
}

/// The value at the first point of a row of the innermost index.
fn start_of(a: &Affine, outer: &[u32], mut row: u64) -> i64 {
    let mut start = a.base;
    for (k, &n) in outer.iter().enumerate().rev() {
        start += a.coef.get(k).copied().unwrap_or(0) * (row % n as u64) as i64;
        row /= n as u64;
    }
    start
}

/// `a + factor · b` if neither it nor a coefficient overflows over the box.
fn sum(a: &Affine, b: &Affine, factor: i64, lens: &[u32]) -> Found<Affine> {
    let term = |x: i64, y: i64| y.checked_mul(factor).and_then(|y| x.checked_add(y));
    let at = |a: &Affine, k: usize| a.coef.get(k).copied().unwrap_or(0);
    let coef: Option<SmallVec<[i64; 4]>> =
        (0..a.coef.len().max(b.coef.len())).map(|k| term(at(a, k), at(b, k))).collect();
    let sum = term(a.base, b.base).zip(coef).map(|(base, coef)| Affine::new(base, &coef)).ok_or(Stop::Leave)?;
    let reach = |(&c, &n): (&i64, &u32)| (c as i128 * (n as i128 - 1)).abs();
    let most = (sum.base as i128).abs() + sum.coef.iter().zip(lens).map(reach).sum::<i128>();
    if most > i64::MAX as i128 { Err(Stop::Leave) } else { Ok(sum) }
}
