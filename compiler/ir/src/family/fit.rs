//! Fitting closed forms to tables: enumerated values become affine or separable where they are.
//!
//! Invariant: a fitted form equals the table at every instance; it has been compared.

use super::{Const, Domain, Field, FieldPart, IndexFn, Offset, Term, TileMap};
use crate::affine::Affine;
use crate::ids::FieldId;
use crate::region::gcd;
use crate::types::Scalar;
use crate::view::{View, ViewPart};
use smallvec::SmallVec;

/// Returns the affine function with these values, by instance; `None` if there is none.
pub fn fit_affine<T: Copy + Into<i64>>(domain: &Domain, values: &[T]) -> Option<Affine> {
    debug_assert_eq!(domain.count(), values.len() as u64);
    let Some(&base) = values.first() else { return Some(Affine::constant(0)) };
    let base = base.into();
    let strides = domain.strides();
    let slope = |(&n, &s): (&u32, &u64)| if n > 1 { values[s as usize].into() - base } else { 0 };
    let coef: SmallVec<[i64; 4]> = domain.0.iter().zip(&strides).map(slope).collect();
    let affine = Affine::new(base, &coef);
    affine_values(&affine, domain).eq(values.iter().map(|&v| v.into())).then_some(affine)
}

/// Returns the values of an affine function by instance.
pub(super) fn affine_values<'a>(affine: &'a Affine, domain: &'a Domain) -> impl Iterator<Item = i64> + 'a {
    let rank = domain.0.len();
    let inner = domain.0.last().copied().unwrap_or(1);
    let step = affine.coef.get(rank.wrapping_sub(1)).copied().unwrap_or(0);
    let outer = Domain(SmallVec::from_slice(&domain.0[..rank.saturating_sub(1)]));
    let points = outer.points();
    points.flat_map(move |p| {
        let start = affine.at(&p);
        (0..inner as i64).map(move |i| start + i * step)
    })
}

impl Offset {
    /// Fits an offset to one value per instance: closed if they are affine, otherwise a table.
    pub fn fit<T: Copy + Into<i64>>(domain: &Domain, values: &[T]) -> Offset {
        match fit_affine(domain, values) {
            Some(affine) => Offset::Affine(affine),
            None => Offset::Table(values.iter().map(|&v| v.into() as u32).collect()),
        }
    }

    /// Returns the value of every instance, in order.
    pub fn values<'a>(&'a self, domain: &'a Domain) -> Box<dyn Iterator<Item = i64> + 'a> {
        match self {
            Offset::Affine(a) => Box::new(affine_values(a, domain)),
            Offset::Table(t) => Box::new(t.iter().map(|&v| v as i64)),
        }
    }
}

impl Const {
    /// Fits a constant to one value per instance; there is at least one.
    pub fn fit(values: &[Scalar]) -> Const {
        match values {
            [first, rest @ ..] if rest.iter().all(|v| v == first) => Const::Uniform(*first),
            _ => Const::Table(values.into()),
        }
    }
}

impl Field {
    /// Returns the field whose view is `views[k]` in instance k; `None` if their signatures differ or there are none.
    pub fn from_views(field: FieldId, domain: &Domain, views: &[View]) -> Option<Field> {
        let first = views.first()?;
        debug_assert_eq!(domain.count(), views.len() as u64);
        if !views.iter().all(|v| v.same_signature(first)) {
            return None;
        }
        let offsets: Vec<Vec<i64>> =
            (0..first.parts.len()).map(|k| views.iter().map(|v| v.parts[k].offset).collect()).collect();
        Some(Field::from_offsets(field, domain, first, &offsets))
    }

    /// Returns the field whose instances have the shape of `like` and these offsets: one list per part, with one offset
    /// per instance.
    pub fn from_offsets(field: FieldId, domain: &Domain, like: &View, offsets: &[Vec<i64>]) -> Field {
        let part = |(p, part_offsets): (&ViewPart, &Vec<i64>)| FieldPart {
            lo: p.lo.clone(),
            len: p.len.clone(),
            var: p.var,
            offset: Offset::fit(domain, part_offsets),
            stride: p.stride.clone(),
        };
        let parts = like.parts.iter().zip(offsets).map(part).collect();
        Field { field, digits: like.digits.clone(), axes: like.axes.clone(), parts }
    }

    /// Returns the field with the same view in all instances.
    pub fn uniform(field: FieldId, view: &View) -> Field {
        let part = |p: &ViewPart| FieldPart {
            lo: p.lo.clone(),
            len: p.len.clone(),
            var: p.var,
            offset: Offset::Affine(Affine::constant(p.offset)),
            stride: p.stride.clone(),
        };
        Field {
            field,
            digits: view.digits.clone(),
            axes: view.axes.clone(),
            parts: view.parts.iter().map(part).collect(),
        }
    }
}

impl TileMap {
    /// Returns the map with these tiles, by instance: separable if one term per index suffices, otherwise a table.
    pub fn fit(domain: &Domain, tiles: &[u32]) -> TileMap {
        debug_assert_eq!(domain.count(), tiles.len() as u64);
        let at = |i: u64| (tiles[i as usize], i + 1);
        match TileMap::guess(domain, at) {
            Some(map) if map.iter(domain).eq(tiles.iter().copied()) => map,
            _ => TileMap::Table(tiles.into()),
        }
    }

    /// Returns the separable map that agrees with `tile` wherever at most one index is not 0, if there is one. `tile`
    /// returns the tile of a point and a later point up to which all points have it, so that equal points are visited
    /// once.
    pub(crate) fn guess(domain: &Domain, tile: impl Fn(u64) -> (u32, u64)) -> Option<TileMap> {
        if domain.count() == 0 {
            return Some(TileMap::one(0));
        }
        let base = tile(0).0;
        let mut terms: SmallVec<[Term; 2]> = SmallVec::new();
        for (dim, (&n, stride)) in domain.0.iter().zip(domain.strides()).enumerate() {
            let mut line = Line { n, steps: vec![] };
            let mut i = 0;
            while i < n as u64 {
                let (tile, end) = tile(i * stride);
                line.push(i as u32, tile as i64 - base as i64);
                i = end.div_ceil(stride).max(i + 1);
            }
            if line.steps.len() > 1 {
                let (function, stride) = IndexFn::fit(&line)?;
                terms.push(Term { dim: dim as u8, function, stride });
            }
        }
        Some(TileMap::Separable { base, terms })
    }
}

/// A step function of one index of `0..n`: start and value of each step. The first value is 0 at index 0; neighbours
/// differ.
struct Line {
    n: u32,
    steps: Vec<(u32, i64)>,
}

impl Line {
    fn push(&mut self, start: u32, value: i64) {
        if self.steps.last().is_none_or(|s| s.1 != value) {
            self.steps.push((start, value));
        }
    }

    /// Returns start, end and value of each step.
    fn iter(&self) -> impl Iterator<Item = (u32, u32, i64)> {
        let ends = self.steps.iter().skip(1).map(|s| s.0).chain([self.n]);
        self.steps.iter().zip(ends).map(|(&(start, value), end)| (start, end, value))
    }
}

impl IndexFn {
    /// Returns the function and stride with these values, of which there are two or more.
    fn fit(line: &Line) -> Option<(IndexFn, i32)> {
        let &(block, second) = line.steps.get(1)?;
        let common = line.steps.iter().fold(0, |g, s| gcd(g, s.1)) * second.signum();
        // A cycle ends where the values first return to 0.
        let period = line.steps[1..].iter().find(|s| s.1 == 0).map(|s| s.0);
        let tries = |stride: i64| {
            let cyclic =
                period.map(|p| if block == 1 { IndexFn::Cyclic(p) } else { IndexFn::BlockCyclic(block, p / block) });
            let balanced = balanced(line, stride).map(IndexFn::Balanced);
            let block = if block == 1 { IndexFn::Identity } else { IndexFn::Block(block) };
            [Some(block), balanced, cyclic].into_iter().flatten().map(move |part| (part, stride))
        };
        let gives = |&(part, stride): &(IndexFn, i64)| {
            let here =
                |(start, end, v)| part.is_even(start, end, line.n) && part.at(start, line.n) as i64 * stride == v;
            line.iter().all(here)
        };
        let (part, stride) = tries(common).chain(tries(common.signum())).find(gives)?;
        Some((part, i32::try_from(stride).ok()?))
    }

    /// Returns whether the value is the same at all of `start..end`, which is not empty.
    fn is_even(self, start: u32, end: u32, n: u32) -> bool {
        match self {
            // These functions are monotonic.
            IndexFn::Identity | IndexFn::Block(_) | IndexFn::Balanced(_) => self.at(start, n) == self.at(end - 1, n),
            IndexFn::Cyclic(p) => p == 1 || end - start == 1,
            IndexFn::BlockCyclic(b, p) => p == 1 || start / b == (end - 1) / b,
        }
    }
}

/// Returns the least p with `i · p / n` times the stride equal to the values.
fn balanced(line: &Line, stride: i64) -> Option<u32> {
    let n = line.n as i64;
    // The first index of a step has the strictest bound.
    let least = |&(start, v): &(u32, i64)| (v / stride * n + start as i64 - 1) / start as i64;
    let p = line.steps.iter().skip(1).map(least).max()?;
    u32::try_from(p).ok().filter(|&p| p > 0)
}
