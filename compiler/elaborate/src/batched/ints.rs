//! Integers of a batch: closed forms while they are sums of functions of single indices, lists otherwise.
//!
//! # Note: Tables
//! A value that depends on one of several indices is a table along that index, however many iterations the other loops
//! have: `n * p / pieces` is evaluated once for each `p`. Sums of such tables and affine functions cover most of the
//! expressions by which programs slice.
//!
//! Invariant: every value fits the 64-bit `int`; an overflow is left to evaluation one iteration at a time.

use super::{Found, Stop};
use crate::integers;
use girder_ir::affine::Affine;
use girder_syntax::ast::BinaryOp;
use smallvec::SmallVec;
use std::sync::Arc;

/// A box of iterations, which are numbered row-major.
pub type Extents = SmallVec<[u32; 4]>;

/// One integer per iteration.
#[derive(Clone, Debug)]
pub enum Ints {
    /// An affine function of the indices, plus tables along different indices, whose coefficients are 0.
    Sum(Affine, Tables),
    /// A list.
    Each(Arc<[i64]>),
}

/// A function of one index, as a table.
#[derive(Clone, Debug)]
pub struct Table {
    /// The number of the index.
    pub dim: usize,
    /// The function, by the value of the index.
    pub values: Arc<[i64]>,
}

/// Tables by ascending index.
pub type Tables = SmallVec<[Table; 1]>;

/// The indices on which values depend, according to their form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Depends {
    /// No index.
    Nothing,
    /// One index.
    One(usize),
    /// More than one index.
    Several,
}

impl Depends {
    fn and(self, other: Depends) -> Depends {
        match (self, other) {
            (Depends::Nothing, on) | (on, Depends::Nothing) => on,
            (Depends::One(a), Depends::One(b)) if a == b => self,
            _ => Depends::Several,
        }
    }
}

/// Counts the iterations of a box.
pub fn point_count(extents: &[u32]) -> usize {
    extents.iter().map(|&n| n as usize).product()
}

impl Ints {
    /// Makes a value that is the same in all iterations.
    pub fn constant(value: i64) -> Ints {
        Ints::affine(Affine::constant(value))
    }

    /// Makes an affine function of the indices.
    pub fn affine(affine: Affine) -> Ints {
        Ints::Sum(affine, Tables::new())
    }

    /// Makes the value of one index.
    pub fn index(dim: usize) -> Ints {
        let mut coef: SmallVec<[i64; 4]> = SmallVec::from_elem(0, dim);
        coef.push(1);
        Ints::affine(Affine { base: 0, coef })
    }

    /// Makes a table along one index.
    pub fn along(dim: usize, values: Vec<i64>) -> Ints {
        Ints::Sum(Affine::default(), Tables::from_elem(Table { dim, values: values.into() }, 1))
    }

    /// Returns the bytes of its tables.
    pub fn bytes(&self) -> u64 {
        let values = match self {
            Ints::Sum(_, tables) => tables.iter().map(|t| t.values.len()).sum(),
            Ints::Each(values) => values.len(),
        };
        (values * size_of::<i64>()) as u64
    }

    /// Returns the affine function, if the form is one.
    pub fn as_affine(&self) -> Option<&Affine> {
        match self {
            Ints::Sum(a, tables) => tables.is_empty().then_some(a),
            Ints::Each(_) => None,
        }
    }

    /// Returns the value, if the form shows that it is the same in all iterations.
    pub fn as_constant(&self) -> Option<i64> {
        self.as_affine().filter(|a| a.coef.is_empty()).map(|a| a.base)
    }

    /// Returns the value in the first iteration. Precondition: there is one.
    pub fn first(&self) -> i64 {
        match self {
            Ints::Sum(a, tables) => a.base + tables.iter().map(|t| t.values[0]).sum::<i64>(),
            Ints::Each(v) => v[0],
        }
    }

    /// Returns bounds of the values. Precondition: there is an iteration.
    pub fn bounds(&self, extents: &[u32]) -> (i64, i64) {
        let of_list = |v: &[i64]| v.iter().fold((i64::MAX, i64::MIN), |(lo, hi), &x| (lo.min(x), hi.max(x)));
        match self {
            Ints::Sum(a, tables) => {
                let bounds = a.bounds(extents).unwrap_or((a.base, a.base));
                tables.iter().map(|t| of_list(&t.values)).fold(bounds, |(lo, hi), (l, h)| (lo + l, hi + h))
            }
            Ints::Each(v) => of_list(v),
        }
    }

    /// Returns the indices on which the values depend.
    pub fn depends(&self, extents: &[u32]) -> Depends {
        match self {
            Ints::Sum(a, tables) => {
                let moves = a.coef.iter().zip(extents).map(|(&c, &n)| c != 0 && n > 1).enumerate().filter(|d| d.1);
                let dims = moves.map(|d| d.0).chain(tables.iter().map(|t| t.dim));
                dims.map(Depends::One).fold(Depends::Nothing, Depends::and)
            }
            Ints::Each(_) => {
                let long = extents.iter().enumerate().filter(|d| *d.1 > 1).map(|d| Depends::One(d.0));
                long.fold(Depends::Nothing, Depends::and)
            }
        }
    }

    /// Returns the values along the only index on which they depend.
    pub fn line(&self, dim: usize, extents: &[u32]) -> Vec<i64> {
        match self {
            Ints::Sum(a, tables) => {
                let step = a.coef.get(dim).copied().unwrap_or(0);
                let (own, others): (Vec<&Table>, Vec<&Table>) = tables.iter().partition(|t| t.dim == dim);
                let base = a.base + others.iter().map(|t| t.values[0]).sum::<i64>();
                match own.first() {
                    Some(table) => table.values.iter().map(|v| base + v).collect(),
                    None => (0..extents[dim] as i64).map(|i| base + i * step).collect(),
                }
            }
            Ints::Each(values) => values.to_vec(),
        }
    }

    /// Returns the values by iteration.
    pub fn values<'a>(&'a self, extents: &'a [u32]) -> Box<dyn Iterator<Item = i64> + 'a> {
        let (a, tables) = match self {
            Ints::Each(v) => return Box::new(v.iter().copied()),
            Ints::Sum(a, tables) => (a, tables),
        };
        let count = point_count(extents);
        if let Some(value) = self.as_constant() {
            return Box::new(std::iter::repeat_n(value, count));
        }
        let Some((&inner, outer)) = extents.split_last() else { return Box::new(std::iter::once(self.first())) };
        let step = a.coef.get(outer.len()).copied().unwrap_or(0);
        let table = tables.iter().find(|t| t.dim == outer.len()).map(|t| &t.values);
        let starts = (0..count as u64 / inner.max(1) as u64).map(move |row| start_of(a, tables, outer, row));
        Box::new(starts.flat_map(move |start| {
            (0..inner as usize).map(move |i| start + i as i64 * step + table.map_or(0, |t| t[i]))
        }))
    }

    /// Lists the values by iteration.
    pub fn list(&self, extents: &[u32]) -> Vec<i64> {
        let (Ints::Sum(a, tables), Some((&inner, outer))) = (self, extents.split_last()) else {
            return self.values(extents).collect();
        };
        let step = a.coef.get(outer.len()).copied().unwrap_or(0);
        let table = tables.iter().find(|t| t.dim == outer.len()).map(|t| &t.values);
        let mut list = Vec::with_capacity(point_count(extents));
        for row in 0..point_count(outer) as u64 {
            let start = start_of(a, tables, outer, row);
            match table {
                Some(table) => list.extend(table.iter().map(|v| start + v)),
                None => list.extend((0..inner as i64).map(|i| start + i * step)),
            }
        }
        list
    }

    /// Applies `f` to every value.
    pub fn map(&self, extents: &[u32], f: impl Fn(i64) -> Option<i64>) -> Found<Ints> {
        let all = |values: Vec<i64>| values.into_iter().map(&f).collect::<Option<Vec<i64>>>().ok_or(Stop::Leave);
        Ok(match self.depends(extents) {
            Depends::Nothing => Ints::constant(f(self.first()).ok_or(Stop::Leave)?),
            Depends::One(dim) => Ints::along(dim, all(self.line(dim, extents))?),
            Depends::Several => Ints::Each(all(self.list(extents))?.into()),
        })
    }

    /// Applies `f` to every pair of values.
    pub fn zip(&self, other: &Ints, extents: &[u32], f: impl Fn(i64, i64) -> Option<i64>) -> Found<Ints> {
        let all = |a: Vec<i64>, b: Vec<i64>| {
            let pairs = a.into_iter().zip(b);
            pairs.map(|(a, b)| f(a, b)).collect::<Option<Vec<i64>>>().ok_or(Stop::Leave)
        };
        Ok(match self.depends(extents).and(other.depends(extents)) {
            Depends::Nothing => Ints::constant(f(self.first(), other.first()).ok_or(Stop::Leave)?),
            Depends::One(dim) => Ints::along(dim, all(self.spread(dim, extents), other.spread(dim, extents))?),
            Depends::Several => Ints::Each(all(self.list(extents), other.list(extents))?.into()),
        })
    }

    /// Returns the values along an index; precondition: they depend on no other.
    fn spread(&self, dim: usize, extents: &[u32]) -> Vec<i64> {
        match self.depends(extents) {
            Depends::Nothing => vec![self.first(); extents[dim] as usize],
            _ => self.line(dim, extents),
        }
    }

    /// Computes `self + other`.
    pub fn add(&self, other: &Ints, extents: &[u32]) -> Found<Ints> {
        match (self, other) {
            (Ints::Sum(..), Ints::Sum(..)) => self.plus(other, 1, extents),
            _ => self.zip(other, extents, i64::checked_add),
        }
    }

    /// Computes `self - other`.
    pub fn sub(&self, other: &Ints, extents: &[u32]) -> Found<Ints> {
        match (self, other) {
            (Ints::Sum(..), Ints::Sum(..)) => self.plus(other, -1, extents),
            _ => self.zip(other, extents, i64::checked_sub),
        }
    }

    /// Computes `self * factor`.
    pub fn scale(&self, factor: i64, extents: &[u32]) -> Found<Ints> {
        match self {
            Ints::Sum(..) => Ints::constant(0).plus(self, factor, extents),
            Ints::Each(_) => self.map(extents, |v| v.checked_mul(factor)),
        }
    }

    /// Computes `self + factor · other` of two sums, if nothing overflows over the box.
    fn plus(&self, other: &Ints, factor: i64, extents: &[u32]) -> Found<Ints> {
        let (Ints::Sum(a, own), Ints::Sum(b, others)) = (self, other) else { return Err(Stop::Leave) };
        let mut affine = sum(a, b, factor).ok_or(Stop::Leave)?;
        let mut dims: SmallVec<[usize; 4]> = own.iter().chain(others).map(|t| t.dim).collect();
        dims.sort_unstable();
        dims.dedup();
        let mut tables = Tables::new();
        for dim in dims {
            let step = affine.coef.get_mut(dim).map_or(0, std::mem::take);
            let of = |tables: &Tables, i: usize| tables.iter().find(|t| t.dim == dim).map_or(0, |t| t.values[i]);
            let value = |i: usize| {
                let scaled = of(others, i).checked_mul(factor)?;
                of(own, i).checked_add(scaled)?.checked_add(step.checked_mul(i as i64)?)
            };
            let values: Option<Vec<i64>> = (0..extents[dim] as usize).map(value).collect();
            tables.push(Table { dim, values: values.ok_or(Stop::Leave)?.into() });
        }
        affine = Affine::new(affine.base, &affine.coef);
        let reach = |(&c, &n): (&i64, &u32)| (c as i128 * (n as i128 - 1)).abs();
        let most = (affine.base as i128).abs() + affine.coef.iter().zip(extents).map(reach).sum::<i128>();
        let highest = |t: &Table| t.values.iter().map(|&v| (v as i128).abs()).max().unwrap_or(0);
        let most = most + tables.iter().map(highest).sum::<i128>();
        if most > i64::MAX as i128 { Err(Stop::Leave) } else { Ok(Ints::Sum(affine, tables)) }
    }

    /// Computes `self op other` if the result is an integer; division by zero and overflow are left to evaluation one
    /// iteration at a time.
    pub fn binary(&self, op: BinaryOp, other: &Ints, extents: &[u32]) -> Found<Ints> {
        match op {
            BinaryOp::Add => self.add(other, extents),
            BinaryOp::Sub => self.sub(other, extents),
            BinaryOp::Mul => match (self.as_constant(), other.as_constant()) {
                (_, Some(factor)) => self.scale(factor, extents),
                (Some(factor), _) => other.scale(factor, extents),
                _ => self.zip(other, extents, i64::checked_mul),
            },
            // The most frequent operators are named here, so that their loops are specialised.
            BinaryOp::Div => self.zip(other, extents, |a, b| integers::div(a, b).ok()),
            BinaryOp::Rem => self.zip(other, extents, |a, b| integers::rem(a, b).ok()),
            _ => self.zip(other, extents, |a, b| integers::arithmetic(op, a, b)?.ok()),
        }
    }
}

/// Returns the value at the first point of a row of the innermost index, without that index's contribution.
fn start_of(a: &Affine, tables: &Tables, outer: &[u32], mut row: u64) -> i64 {
    let mut start = a.base;
    for (k, &n) in outer.iter().enumerate().rev() {
        let at = row % n as u64;
        start += a.coef.get(k).copied().unwrap_or(0) * at as i64;
        start += tables.iter().find(|t| t.dim == k).map_or(0, |t| t.values[at as usize]);
        row /= n as u64;
    }
    start
}

/// Computes `a + factor · b`, if no coefficient overflows.
fn sum(a: &Affine, b: &Affine, factor: i64) -> Option<Affine> {
    let term = |x: i64, y: i64| y.checked_mul(factor).and_then(|y| x.checked_add(y));
    let at = |a: &Affine, k: usize| a.coef.get(k).copied().unwrap_or(0);
    let coef: Option<SmallVec<[i64; 4]>> =
        (0..a.coef.len().max(b.coef.len())).map(|k| term(at(a, k), at(b, k))).collect();
    term(a.base, b.base).zip(coef).map(|(base, coef)| Affine::new(base, &coef))
}
