//! Turns that go on apart from the others: columns restricted to them, and columns under one more loop.
//!
//! Invariant: turns stay in their order; where those that are picked fill a box, what is affine stays so.

use super::{Column, Ints, Lens, point_count};
use girder_ir::affine::Affine;
use std::sync::Arc;

/// Some turns of a box.
#[derive(Clone, Debug)]
pub enum Pick {
    /// Those of a smaller box, from `lo`.
    Box { lo: Lens, lens: Lens },
    /// Those of these numbers, ascending.
    List(Arc<[u32]>),
}

impl Pick {
    /// Turns by number, ascending and at least one.
    pub fn new(turns: Vec<u32>, lens: &[u32]) -> Pick {
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
        if point_count(&size) == turns.len() { Pick::Box { lo, lens: size } } else { Pick::List(turns.into()) }
    }

    /// The box of the turns that are picked.
    pub fn lens(&self) -> Lens {
        match self {
            Pick::Box { lens, .. } => lens.clone(),
            Pick::List(turns) => Lens::from_elem(turns.len() as u32, 1),
        }
    }

    /// The picked of one thing per turn.
    fn gather<T: Clone>(&self, all: &[T], from: &[u32]) -> Arc<[T]> {
        match self {
            Pick::List(turns) => turns.iter().map(|&t| all[t as usize].clone()).collect(),
            Pick::Box { lo, lens } => {
                // The number of a turn is affine in its point.
                let mut coef: smallvec::SmallVec<[i64; 4]> = smallvec::SmallVec::from_elem(1, from.len());
                for k in (1..from.len()).rev() {
                    coef[k - 1] = coef[k] * from[k] as i64;
                }
                let base = lo.iter().zip(&coef).map(|(&l, c)| l as i64 * c).sum();
                let turns = Ints::Affine(Affine { base, coef });
                turns.values(lens).map(|t| all[t as usize].clone()).collect()
            }
        }
    }

    /// The picked of integers over the box `from`.
    pub fn ints(&self, ints: &Ints, from: &[u32]) -> Ints {
        match (self, ints) {
            (_, Ints::Affine(a)) if a.coef.is_empty() => ints.clone(),
            (Pick::Box { lo, .. }, Ints::Affine(a)) => Ints::Affine(Affine { base: a.at(lo), coef: a.coef.clone() }),
            (Pick::List(turns), Ints::Affine(_)) => {
                let all: Vec<i64> = ints.values(from).collect();
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
            Column::Bools(values) => Column::Bools(self.gather(values, from)),
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

/// One thing per turn, under a loop of `n` turns in each.
fn repeat<T: Clone>(all: &[T], n: u32) -> Arc<[T]> {
    all.iter().flat_map(|v| std::iter::repeat_n(v.clone(), n as usize)).collect()
}

/// One thing per turn from those of some turns and those of the others.
pub fn scatter<T: Clone>(parts: &[(&[u32], Vec<T>); 2]) -> Arc<[T]> {
    let mut all: Vec<(u32, &T)> = parts.iter().flat_map(|(turns, values)| turns.iter().copied().zip(values)).collect();
    all.sort_unstable_by_key(|p| p.0);
    all.into_iter().map(|p| p.1.clone()).collect()
}

/// Integers under a loop of `n` turns in each turn.
pub fn inside_ints(ints: &Ints, n: u32) -> Ints {
    match ints {
        Ints::Affine(_) => ints.clone(),
        Ints::Each(values) => Ints::Each(repeat(values, n)),
    }
}

/// A column under a loop of `n` turns in each turn.
pub fn inside(column: &Column, n: u32) -> Column {
    match column {
        Column::Known(v) => Column::Known(v.clone()),
        Column::Ints(ints) => Column::Ints(inside_ints(ints, n)),
        Column::Tile(ints) => Column::Tile(inside_ints(ints, n)),
        Column::Bools(values) => Column::Bools(repeat(values, n)),
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
