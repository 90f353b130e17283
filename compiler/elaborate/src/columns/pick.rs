//! Turns that go on apart from the others: columns restricted to them, and columns under one more loop.
//!
//! Invariant: turns stay in their order; where those that are picked are told apart by single indices, what is a sum of
//! functions of single indices stays one.

use super::ints::{Table, Tables};
use super::{Column, Found, Ints, Lens, On, Stop, point_count};
use girder_ir::affine::Affine;
use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;
use std::sync::Arc;

/// Some turns of a box.
#[derive(Clone, Debug)]
pub enum Pick {
    /// Those whose indices are picked, one by one.
    Grid(SmallVec<[Axis; 4]>),
    /// Those of these numbers, ascending.
    List(Arc<[u32]>),
}

/// Values of one index.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Axis {
    /// From a first on, so many.
    Span(u32, u32),
    /// These, ascending.
    List(Arc<[u32]>),
}

impl Axis {
    fn of(values: Vec<u32>) -> Axis {
        let (first, last) = (values[0], values[values.len() - 1]);
        match (last - first) as usize + 1 == values.len() {
            true => Axis::Span(first, values.len() as u32),
            false => Axis::List(values.into()),
        }
    }

    fn len(&self) -> u32 {
        match self {
            Axis::Span(_, count) => *count,
            Axis::List(values) => values.len() as u32,
        }
    }

    fn values(&self) -> Box<dyn Iterator<Item = u32> + '_> {
        match self {
            Axis::Span(first, count) => Box::new(*first..first + count),
            Axis::List(values) => Box::new(values.iter().copied()),
        }
    }
}

impl Pick {
    /// All turns.
    fn all(lens: &[u32]) -> Pick {
        Pick::Grid(lens.iter().map(|&n| Axis::Span(0, n)).collect())
    }

    /// Those with these values of one index, ascending and at least one.
    fn along(dim: usize, values: Vec<u32>, lens: &[u32]) -> Pick {
        let mut axes: SmallVec<[Axis; 4]> = lens.iter().map(|&n| Axis::Span(0, n)).collect();
        axes[dim] = Axis::of(values);
        Pick::Grid(axes)
    }

    /// Turns by number, ascending and at least one.
    fn listed(turns: Vec<u32>, lens: &[u32]) -> Pick {
        let point = |mut turn: u32| {
            let mut point: Lens = Lens::from_elem(0, lens.len());
            for (p, &n) in point.iter_mut().zip(lens).rev() {
                *p = turn % n;
                turn /= n;
            }
            point
        };
        let (mut lo, mut hi) = (point(turns[0]), point(turns[0]));
        for &turn in &turns {
            let p = point(turn);
            lo.iter_mut().zip(&p).for_each(|(a, b)| *a = (*a).min(*b));
            hi.iter_mut().zip(&p).for_each(|(a, b)| *a = (*a).max(*b));
        }
        let size: Lens = lo.iter().zip(&hi).map(|(l, h)| h - l + 1).collect();
        match point_count(&size) == turns.len() {
            true => Pick::Grid(lo.iter().zip(&size).map(|(&first, &count)| Axis::Span(first, count)).collect()),
            false => Pick::List(turns.into()),
        }
    }

    /// The turns of each key, in the order of their first; nothing if there are more than so many keys.
    pub fn by_key(keys: &Ints, lens: &[u32], most: usize) -> Option<Vec<(i64, Pick)>> {
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
        Some(match keys.on(lens) {
            On::Nothing => vec![(keys.first(), Pick::all(lens))],
            On::One(dim) => {
                group(keys.line(dim, lens))?.map(|(key, values)| (key, Pick::along(dim, values, lens))).collect()
            }
            On::Several => group(keys.list(lens))?.map(|(key, turns)| (key, Pick::listed(turns, lens))).collect(),
        })
    }

    /// The box of the turns that are picked.
    pub fn lens(&self) -> Lens {
        match self {
            Pick::Grid(axes) => axes.iter().map(Axis::len).collect(),
            Pick::List(turns) => Lens::from_elem(turns.len() as u32, 1),
        }
    }

    /// The numbers of the turns that are picked of the box `from`.
    pub fn turns(&self, from: &[u32]) -> Vec<u32> {
        match self {
            Pick::List(turns) => turns.to_vec(),
            Pick::Grid(_) => {
                // The number of a turn is affine in its point.
                let mut coef: SmallVec<[i64; 4]> = SmallVec::from_elem(1, from.len());
                for k in (1..from.len()).rev() {
                    coef[k - 1] = coef[k] * from[k] as i64;
                }
                let number = Ints::affine(Affine::new(0, &coef));
                self.ints(&number, from).values(&self.lens()).map(|t| t as u32).collect()
            }
        }
    }

    /// The picked of one thing per turn.
    fn gather<T: Clone>(&self, all: &[T], from: &[u32]) -> Arc<[T]> {
        self.turns(from).into_iter().map(|t| all[t as usize].clone()).collect()
    }

    /// The picked of integers over the box `from`.
    pub fn ints(&self, ints: &Ints, from: &[u32]) -> Ints {
        match (self, ints) {
            (_, Ints::Sum(..)) if ints.as_constant().is_some() => ints.clone(),
            (Pick::Grid(axes), Ints::Sum(a, tables)) => picked(axes, a, tables),
            (Pick::List(turns), Ints::Sum(..)) => {
                let all = ints.list(from);
                Ints::Each(turns.iter().map(|&t| all[t as usize]).collect())
            }
            (_, Ints::Each(values)) => Ints::Each(self.gather(values, from)),
        }
    }

    /// The picked of a column over the box `from`.
    pub fn column(&self, column: &Column, from: &[u32]) -> Column {
        match column {
            Column::Known(v) => Column::Known(v.clone()),
            Column::Ints(ints) => Column::Ints(self.ints(ints, from)),
            Column::Tile(ints) => Column::Tile(self.ints(ints, from)),
            Column::Bools(bools) => Column::Bools(self.ints(bools, from)),
            Column::Values(values) => Column::Values(self.gather(values, from)),
            Column::Range { start, count, step } => {
                Column::Range { start: self.ints(start, from), count: *count, step: *step }
            }
            Column::View { like, shift } => Column::View { like: like.clone(), shift: self.ints(shift, from) },
            Column::Tuple { names, parts } => {
                let parts = parts.iter().map(|c| self.column(c, from)).collect();
                Column::Tuple { names: names.clone(), parts }
            }
        }
    }
}

/// The values of a sum where its indices take some of their values only.
fn picked(axes: &[Axis], a: &Affine, tables: &Tables) -> Ints {
    let mut affine = Affine { base: a.base, coef: SmallVec::from_elem(0, axes.len()) };
    let mut kept = Tables::new();
    for (dim, axis) in axes.iter().enumerate() {
        let coef = a.coef.get(dim).copied().unwrap_or(0);
        let table = tables.iter().find(|t| t.dim == dim).map(|t| &t.values);
        let value = |i: u32| coef * i as i64 + table.map_or(0, |t| t[i as usize]);
        match (axis, table) {
            (&Axis::Span(first, 1), _) => affine.base += value(first),
            (&Axis::Span(first, _), None) => {
                affine.base += coef * first as i64;
                affine.coef[dim] = coef;
            }
            (_, None) if coef == 0 => {}
            _ => kept.push(Table { dim, values: axis.values().map(value).collect() }),
        }
    }
    Ints::Sum(Affine::new(affine.base, &affine.coef), kept)
}

/// One column of integers from those of picks, which make up the box.
pub fn merged(parts: &[(&Pick, Ints)], lens: &[u32]) -> Found<Ints> {
    if let Some(merged) = merged_along(parts, lens) {
        return Ok(merged);
    }
    let mut all: Vec<i64> = vec![0; point_count(lens)];
    for (pick, ints) in parts {
        let turns = pick.turns(lens);
        turns.iter().zip(ints.values(&pick.lens())).for_each(|(&t, v)| all[t as usize] = v);
    }
    match all.is_empty() {
        true => Err(Stop::Leave),
        false => Ok(Ints::Each(all.into())),
    }
}

/// The same where the picks differ in one index, and the columns in what depends on it alone.
fn merged_along(parts: &[(&Pick, Ints)], lens: &[u32]) -> Option<Ints> {
    let axes = |pick: &Pick| if let Pick::Grid(axes) = pick { Some(axes.clone()) } else { None };
    let axes: Vec<SmallVec<[Axis; 4]>> = parts.iter().map(|p| axes(p.0)).collect::<Option<_>>()?;
    let parted = |k: &usize| axes.iter().any(|a| a[*k] != Axis::Span(0, lens[*k]));
    let mut dims = (0..lens.len()).filter(parted);
    let (Some(dim), None) = (dims.next(), dims.next()) else { return None };
    let mut values = vec![0; lens[dim] as usize];
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
            let alike = |(a, b): (&Table, &Table)| a.dim == b.dim && a.values == b.values;
            *affine == rest.0 && tables.len() == rest.1.len() && tables.iter().zip(&rest.1).all(alike)
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

/// One thing per turn, under a loop of `n` turns in each.
fn repeat<T: Clone>(all: &[T], n: u32) -> Arc<[T]> {
    all.iter().flat_map(|v| std::iter::repeat_n(v.clone(), n as usize)).collect()
}

/// Integers under a loop of `n` turns in each turn.
pub fn inside_ints(ints: &Ints, n: u32) -> Ints {
    match ints {
        Ints::Sum(..) => ints.clone(),
        Ints::Each(values) => Ints::Each(repeat(values, n)),
    }
}

/// A column under a loop of `n` turns in each turn.
pub fn inside(column: &Column, n: u32) -> Column {
    match column {
        Column::Known(v) => Column::Known(v.clone()),
        Column::Ints(ints) => Column::Ints(inside_ints(ints, n)),
        Column::Tile(ints) => Column::Tile(inside_ints(ints, n)),
        Column::Bools(bools) => Column::Bools(inside_ints(bools, n)),
        Column::Values(values) => Column::Values(repeat(values, n)),
        Column::Range { start, count, step } => {
            Column::Range { start: inside_ints(start, n), count: *count, step: *step }
        }
        Column::View { like, shift } => Column::View { like: like.clone(), shift: inside_ints(shift, n) },
        Column::Tuple { names, parts } => {
            let parts = parts.iter().map(|c| inside(c, n)).collect();
            Column::Tuple { names: names.clone(), parts }
        }
    }
}
