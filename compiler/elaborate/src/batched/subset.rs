//! Subsets of iterations, and batches restricted to them, merged from them, and repeated for one more loop.
//!
//! Invariant: iterations keep their order. Restricting single indices preserves sums of functions of single indices.

use super::ints::{Depends, Table, Tables};
use super::{Batch, Extents, Found, Ints, Stop, point_count};
use girder_ir::affine::Affine;
use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;
use std::sync::Arc;

/// A subset of the iterations of a box.
#[derive(Clone, Debug)]
pub enum Subset {
    /// The iterations whose every index is in a set of values for that index.
    Grid(SmallVec<[AxisSubset; 4]>),
    /// The iterations with these numbers, ascending.
    List(Arc<[u32]>),
}

/// A set of values of one index.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AxisSubset {
    /// The first value and the number of consecutive values.
    Span(u32, u32),
    /// These values, ascending.
    List(Arc<[u32]>),
}

impl AxisSubset {
    fn of(values: Vec<u32>) -> AxisSubset {
        let (first, last) = (values[0], values[values.len() - 1]);
        match (last - first) as usize + 1 == values.len() {
            true => AxisSubset::Span(first, values.len() as u32),
            false => AxisSubset::List(values.into()),
        }
    }

    fn len(&self) -> u32 {
        match self {
            AxisSubset::Span(_, count) => *count,
            AxisSubset::List(values) => values.len() as u32,
        }
    }

    fn values(&self) -> Box<dyn Iterator<Item = u32> + '_> {
        match self {
            AxisSubset::Span(first, count) => Box::new(*first..first + count),
            AxisSubset::List(values) => Box::new(values.iter().copied()),
        }
    }
}

impl Subset {
    /// Returns the subset of all iterations.
    fn all(extents: &[u32]) -> Subset {
        Subset::Grid(extents.iter().map(|&n| AxisSubset::Span(0, n)).collect())
    }

    /// Returns the iterations with these values of one index, ascending and at least one.
    fn along(dim: usize, values: Vec<u32>, extents: &[u32]) -> Subset {
        let mut axes: SmallVec<[AxisSubset; 4]> = extents.iter().map(|&n| AxisSubset::Span(0, n)).collect();
        axes[dim] = AxisSubset::of(values);
        Subset::Grid(axes)
    }

    /// Returns the iterations with these numbers, ascending and at least one.
    fn listed(iterations: Vec<u32>, extents: &[u32]) -> Subset {
        let point = |mut iteration: u32| {
            let mut point: Extents = Extents::from_elem(0, extents.len());
            for (p, &n) in point.iter_mut().zip(extents).rev() {
                *p = iteration % n;
                iteration /= n;
            }
            point
        };
        let (mut lo, mut hi) = (point(iterations[0]), point(iterations[0]));
        for &iteration in &iterations {
            let p = point(iteration);
            lo.iter_mut().zip(&p).for_each(|(a, b)| *a = (*a).min(*b));
            hi.iter_mut().zip(&p).for_each(|(a, b)| *a = (*a).max(*b));
        }
        let size: Extents = lo.iter().zip(&hi).map(|(l, h)| h - l + 1).collect();
        match point_count(&size) == iterations.len() {
            true => Subset::Grid(lo.iter().zip(&size).map(|(&first, &count)| AxisSubset::Span(first, count)).collect()),
            false => Subset::List(iterations.into()),
        }
    }

    /// Groups iterations by key, in the order of their first iterations; `None` if there are more than `most` keys.
    pub fn by_key(keys: &Ints, extents: &[u32], most: usize) -> Option<Vec<(i64, Subset)>> {
        let mut parts: IndexMap<i64, Vec<u32>, FxBuildHasher> = IndexMap::default();
        let mut group = |keys: Vec<i64>| {
            for (k, key) in (0u32..).zip(keys) {
                parts.entry(key).or_default().push(k);
                if parts.len() > most {
                    return None;
                }
            }
            Some(std::mem::take(&mut parts).into_iter())
        };
        Some(match keys.depends(extents) {
            Depends::Nothing => vec![(keys.first(), Subset::all(extents))],
            Depends::One(dim) => group(keys.line(dim, extents))?
                .map(|(key, values)| (key, Subset::along(dim, values, extents)))
                .collect(),
            Depends::Several => {
                group(keys.list(extents))?.map(|(key, iterations)| (key, Subset::listed(iterations, extents))).collect()
            }
        })
    }

    /// Returns the box of the subset.
    pub fn extents(&self) -> Extents {
        match self {
            Subset::Grid(axes) => axes.iter().map(AxisSubset::len).collect(),
            Subset::List(iterations) => Extents::from_elem(iterations.len() as u32, 1),
        }
    }

    /// Returns the numbers of the iterations in the box `from`.
    pub fn iterations(&self, from: &[u32]) -> Vec<u32> {
        match self {
            Subset::List(iterations) => iterations.to_vec(),
            Subset::Grid(_) => {
                // The number of an iteration is affine in its indices.
                let mut coef: SmallVec<[i64; 4]> = SmallVec::from_elem(1, from.len());
                for k in (1..from.len()).rev() {
                    coef[k - 1] = coef[k] * from[k] as i64;
                }
                let number = Ints::affine(Affine::new(0, &coef));
                self.ints(&number, from).values(&self.extents()).map(|t| t as u32).collect()
            }
        }
    }

    /// Restricts a list with one entry per iteration of the box `from`.
    fn gather<T: Clone>(&self, all: &[T], from: &[u32]) -> Arc<[T]> {
        self.iterations(from).into_iter().map(|t| all[t as usize].clone()).collect()
    }

    /// Restricts integers over the box `from`.
    pub fn ints(&self, ints: &Ints, from: &[u32]) -> Ints {
        match (self, ints) {
            (_, Ints::Sum(..)) if ints.as_constant().is_some() => ints.clone(),
            (Subset::Grid(axes), Ints::Sum(a, tables)) => restricted(axes, a, tables),
            (Subset::List(iterations), Ints::Sum(..)) => {
                let all = ints.list(from);
                Ints::Each(iterations.iter().map(|&t| all[t as usize]).collect())
            }
            (_, Ints::Each(values)) => Ints::Each(self.gather(values, from)),
        }
    }

    /// Restricts a batch over the box `from`.
    pub fn batch(&self, batch: &Batch, from: &[u32]) -> Batch {
        match batch {
            Batch::Uniform(v) => Batch::Uniform(v.clone()),
            Batch::Ints(ints) => Batch::Ints(self.ints(ints, from)),
            Batch::Tile(ints) => Batch::Tile(self.ints(ints, from)),
            Batch::Bools(bools) => Batch::Bools(self.ints(bools, from)),
            Batch::Values(values) => Batch::Values(self.gather(values, from)),
            Batch::Range { start, count, step } => {
                Batch::Range { start: self.ints(start, from), count: *count, step: *step }
            }
            Batch::View { like, shift } => Batch::View { like: like.clone(), shift: self.ints(shift, from) },
            Batch::Tuple { names, parts } => {
                let parts = parts.iter().map(|c| self.batch(c, from)).collect();
                Batch::Tuple { names: names.clone(), parts }
            }
        }
    }
}

/// Restricts a sum to sets of values of its indices.
fn restricted(axes: &[AxisSubset], a: &Affine, tables: &Tables) -> Ints {
    let mut affine = Affine { base: a.base, coef: SmallVec::from_elem(0, axes.len()) };
    let mut kept = Tables::new();
    for (dim, axis) in axes.iter().enumerate() {
        let coef = a.coef.get(dim).copied().unwrap_or(0);
        let table = tables.iter().find(|t| t.dim == dim).map(|t| &t.values);
        let value = |i: u32| coef * i as i64 + table.map_or(0, |t| t[i as usize]);
        match (axis, table) {
            (&AxisSubset::Span(first, 1), _) => affine.base += value(first),
            (&AxisSubset::Span(first, _), None) => {
                affine.base += coef * first as i64;
                affine.coef[dim] = coef;
            }
            (_, None) if coef == 0 => {}
            _ => kept.push(Table { dim, values: axis.values().map(value).collect() }),
        }
    }
    Ints::Sum(Affine::new(affine.base, &affine.coef), kept)
}

/// Merges integers over subsets that make up the box.
pub fn merged(parts: &[(&Subset, Ints)], extents: &[u32]) -> Found<Ints> {
    if let Some(merged) = merged_along(parts, extents) {
        return Ok(merged);
    }
    let mut all: Vec<i64> = vec![0; point_count(extents)];
    for (subset, ints) in parts {
        let iterations = subset.iterations(extents);
        iterations.iter().zip(ints.values(&subset.extents())).for_each(|(&t, v)| all[t as usize] = v);
    }
    match all.is_empty() {
        true => Err(Stop::Leave),
        false => Ok(Ints::Each(all.into())),
    }
}

/// Merges integers if the subsets differ in one index and the integers depend on it alone.
fn merged_along(parts: &[(&Subset, Ints)], extents: &[u32]) -> Option<Ints> {
    let axes = |subset: &Subset| if let Subset::Grid(axes) = subset { Some(axes.clone()) } else { None };
    let axes: Vec<SmallVec<[AxisSubset; 4]>> = parts.iter().map(|p| axes(p.0)).collect::<Option<_>>()?;
    let split = |k: &usize| axes.iter().any(|a| a[*k] != AxisSubset::Span(0, extents[*k]));
    let mut dims = (0..extents.len()).filter(split);
    let (Some(dim), None) = (dims.next(), dims.next()) else { return None };
    let mut values = vec![0; extents[dim] as usize];
    let mut others: Option<(Affine, Tables)> = None;
    for ((_, ints), axes) in parts.iter().zip(&axes) {
        let Ints::Sum(a, tables) = ints else { return None };
        let coef = a.coef.get(dim).copied().unwrap_or(0);
        let table = tables.iter().find(|t| t.dim == dim).map(|t| &t.values);
        for (k, at) in axes[dim].values().enumerate() {
            values[at as usize] = a.base + coef * k as i64 + table.map_or(0, |t| t[k]);
        }
        let mut rest = a.coef.clone();
        if let Some(own) = rest.get_mut(dim) {
            *own = 0;
        }
        let rest = (Affine::new(0, &rest), tables.iter().filter(|t| t.dim != dim).cloned().collect::<Tables>());
        let same = |(affine, tables): &(Affine, Tables)| {
            let equal = |(a, b): (&Table, &Table)| a.dim == b.dim && a.values == b.values;
            *affine == rest.0 && tables.len() == rest.1.len() && tables.iter().zip(&rest.1).all(equal)
        };
        match &others {
            None => others = Some(rest),
            Some(others) if same(others) => {}
            Some(_) => return None,
        }
    }
    let (affine, mut tables) = others?;
    tables.push(Table { dim, values: values.into() });
    tables.sort_by_key(|t| t.dim);
    Some(Ints::Sum(affine, tables))
}

/// Repeats each entry of a list `n` times, for an inner loop of `n` iterations.
fn repeat<T: Clone>(all: &[T], n: u32) -> Arc<[T]> {
    all.iter().flat_map(|v| std::iter::repeat_n(v.clone(), n as usize)).collect()
}

/// Repeats integers for an inner loop of `n` iterations.
pub fn inside_ints(ints: &Ints, n: u32) -> Ints {
    match ints {
        Ints::Sum(..) => ints.clone(),
        Ints::Each(values) => Ints::Each(repeat(values, n)),
    }
}

/// Repeats a batch for an inner loop of `n` iterations.
pub fn inside(batch: &Batch, n: u32) -> Batch {
    match batch {
        Batch::Uniform(v) => Batch::Uniform(v.clone()),
        Batch::Ints(ints) => Batch::Ints(inside_ints(ints, n)),
        Batch::Tile(ints) => Batch::Tile(inside_ints(ints, n)),
        Batch::Bools(bools) => Batch::Bools(inside_ints(bools, n)),
        Batch::Values(values) => Batch::Values(repeat(values, n)),
        Batch::Range { start, count, step } => {
            Batch::Range { start: inside_ints(start, n), count: *count, step: *step }
        }
        Batch::View { like, shift } => Batch::View { like: like.clone(), shift: inside_ints(shift, n) },
        Batch::Tuple { names, parts } => {
            let parts = parts.iter().map(|c| inside(c, n)).collect();
            Batch::Tuple { names: names.clone(), parts }
        }
    }
}
