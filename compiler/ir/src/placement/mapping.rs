//! Reading a mapping: the tile of an element, and runs of elements on one tile.
//!
//! # Note: Steps
//! Inside a separable mapping the tile changes only where a term's function does. The walk advances the innermost
//! dimension with a term in whole steps of its function, each worth all elements further in.

use super::{Mapping, TileRun, UNPLACED};
use crate::family::{Domain, Term, TileMap};
use smallvec::SmallVec;

impl Mapping {
    /// Returns the tile of a flat element of `len`.
    pub fn tile_of(&self, len: u64, element: u64) -> u32 {
        match self {
            Mapping::One(tile) => *tile,
            Mapping::Linear { first, tiles, grain } => {
                let grains = len.div_ceil(*grain as u64);
                first + (element / *grain as u64 * *tiles as u64 / grains) as u32
            }
            Mapping::Separable { domain, tiles } => tiles.at(domain, element),
            Mapping::Runs { end, tile } => tile[end.partition_point(|&e| e as u64 <= element)],
        }
    }

    /// Returns its runs of elements on one tile: ascending, covering all `len` elements, neighbours on different tiles.
    pub fn runs(&self, len: u64) -> MappingRuns<'_> {
        let steps = match self {
            Mapping::One(_) | Mapping::Linear { .. } => Steps::Even,
            Mapping::Runs { .. } => Steps::Row(0),
            Mapping::Separable { domain, tiles: TileMap::Separable { base, terms } } => {
                Steps::Terms(Box::new(TermSteps::new(domain, *base, terms)))
            }
            Mapping::Separable { .. } => Steps::Element,
        };
        MappingRuns { mapping: self, len, at: 0, steps, held: None }
    }

    /// Returns the number of runs that it lists; 0 for a closed form.
    pub fn listed(&self) -> usize {
        if let Mapping::Runs { tile, .. } = self { tile.len() } else { 0 }
    }

    /// Returns whether every element has a tile.
    pub fn is_complete(&self) -> bool {
        match self {
            Mapping::One(tile) => *tile != UNPLACED,
            Mapping::Linear { .. } => true,
            Mapping::Separable { tiles: TileMap::Table(tiles), .. } => !tiles.contains(&UNPLACED),
            Mapping::Separable { .. } => true,
            Mapping::Runs { tile, .. } => !tile.contains(&UNPLACED),
        }
    }

    /// Returns the greatest tile of any placed element; `None` if none is placed.
    pub fn max_tile(&self, len: u64) -> Option<u32> {
        if len == 0 {
            return None;
        }
        match self {
            Mapping::One(tile) => Some(*tile).filter(|&t| t != UNPLACED),
            Mapping::Linear { .. } => Some(self.tile_of(len, len - 1)),
            Mapping::Separable { tiles: TileMap::Table(tile), .. } | Mapping::Runs { tile, .. } => {
                tile.iter().copied().filter(|&t| t != UNPLACED).max()
            }
            Mapping::Separable { domain, tiles } => tiles.max_tile(domain),
        }
    }

    /// Returns the mapping of runs laid over `base` (or nothing), later runs over earlier ones. Runs may overlap in any
    /// way; empty ones are ignored.
    pub fn overlay(base: Option<&Mapping>, len: u64, runs: &[TileRun]) -> Mapping {
        let mut layers: Vec<TileRun> = match base {
            Some(mapping) => mapping.runs(len).collect(),
            None => vec![(0, len, UNPLACED)],
        };
        layers.extend(runs.iter().copied());
        Mapping::from_runs(flatten(&layers))
    }

    /// Builds a mapping from ascending runs that cover all elements; neighbours may share a tile.
    pub fn from_runs(runs: impl IntoIterator<Item = TileRun>) -> Mapping {
        let runs = runs.into_iter();
        let least = runs.size_hint().0;
        let (mut end, mut tile): (Vec<u32>, Vec<u32>) = (Vec::with_capacity(least), Vec::with_capacity(least));
        for (start, stop, t) in runs {
            debug_assert_eq!(start, end.last().map_or(0, |&e| e as u64));
            if start == stop {
                continue;
            }
            if tile.last() == Some(&t) {
                end.pop();
            } else {
                tile.push(t);
            }
            end.push(stop as u32);
        }
        match tile[..] {
            [] => Mapping::One(0),
            [one] if one != UNPLACED => Mapping::One(one),
            _ => Mapping::Runs { end: end.into(), tile: tile.into() },
        }
    }
}

/// Returns the topmost runs of a stack of layers, ascending.
fn flatten(layers: &[TileRun]) -> Vec<TileRun> {
    let mut order: Vec<usize> = (0..layers.len()).filter(|&i| layers[i].0 < layers[i].1).collect();
    order.sort_unstable_by_key(|&i| layers[i].0);
    let mut on_top = std::collections::BinaryHeap::new();
    let mut flat = Vec::with_capacity(order.len());
    let mut order = order.into_iter().peekable();
    let Some(&first) = order.peek() else { return flat };
    let mut at = layers[first].0;
    loop {
        while let Some(i) = order.next_if(|&i| layers[i].0 <= at) {
            on_top.push(i);
        }
        while on_top.peek().is_some_and(|&i: &usize| layers[i].1 <= at) {
            on_top.pop();
        }
        let Some(&top) = on_top.peek() else { return flat };
        let next = order.peek().map_or(u64::MAX, |&i| layers[i].0);
        let end = layers[top].1.min(next);
        flat.push((at, end, layers[top].2));
        at = end;
    }
}

/// An iterator over the runs of a mapping.
#[derive(Clone, Debug)]
pub struct MappingRuns<'a> {
    mapping: &'a Mapping,
    len: u64,
    at: u64,
    steps: Steps<'a>,
    held: Option<TileRun>,
}

#[derive(Clone, Debug)]
enum Steps<'a> {
    Even,
    Row(usize),
    Element,
    Terms(Box<TermSteps<'a>>),
}

/// A walk over the changes of tile in a separable mapping; see the note.
#[derive(Clone, Debug)]
struct TermSteps<'a> {
    domain: &'a Domain,
    base: u32,
    terms: &'a [Term],
    /// The innermost term.
    inner: Option<Term>,
    /// Elements from one index of its dimension to the next.
    block: u64,
    point: SmallVec<[u32; 4]>,
    /// The sum of the base and all other terms at the point.
    outer: i64,
}

impl<'a> TermSteps<'a> {
    fn new(domain: &'a Domain, base: u32, terms: &'a [Term]) -> TermSteps<'a> {
        let inner = terms.iter().max_by_key(|t| t.dim).copied();
        let dim = inner.map_or(0, |t| t.dim as usize);
        let block = domain.0.iter().skip(dim + 1).map(|&n| n as u64).product();
        let point = SmallVec::from_elem(0, dim + 1);
        let mut steps = TermSteps { domain, base, terms, inner, block, point, outer: 0 };
        steps.outer = steps.others();
        steps
    }

    /// Returns the sum of the base and all terms but the innermost.
    fn others(&self) -> i64 {
        let inner = self.inner.map(|t| t.dim);
        let others = self.terms.iter().filter(|t| Some(t.dim) != inner);
        self.base as i64 + others.map(|t| self.value(t)).sum::<i64>()
    }

    fn value(&self, term: &Term) -> i64 {
        let dim = term.dim as usize;
        term.stride as i64 * term.function.at(self.point[dim], self.domain.0[dim]) as i64
    }

    /// Returns the number of elements at the point, and their tile; moves to the next point.
    fn step(&mut self) -> (u64, u32) {
        let Some(term) = self.inner else { return (self.domain.count(), self.base) };
        let dim = term.dim as usize;
        let n = self.domain.0[dim];
        let tile = (self.outer + self.value(&term)) as u32;
        let next = term.function.run_end(self.point[dim], n);
        let elements = (next - self.point[dim]) as u64 * self.block;
        self.point[dim] = next;
        if next == n {
            for k in (0..=dim).rev() {
                if self.point[k] < self.domain.0[k] {
                    break;
                }
                self.point[k] = 0;
                if k > 0 {
                    self.point[k - 1] += 1;
                }
            }
            self.outer = self.others();
        }
        (elements, tile)
    }
}

impl MappingRuns<'_> {
    fn step(&mut self) -> Option<TileRun> {
        if self.at >= self.len {
            return None;
        }
        let start = self.at;
        let tile = match (&mut self.steps, self.mapping) {
            (Steps::Terms(steps), _) => {
                let (elements, tile) = steps.step();
                self.at = start + elements;
                return Some((start, self.at, tile));
            }
            _ => self.mapping.tile_of(self.len, start),
        };
        self.at = match (&mut self.steps, self.mapping) {
            (Steps::Even, Mapping::Linear { first, tiles, grain }) => {
                let grains = self.len.div_ceil(*grain as u64);
                let end = (tile - first + 1) as u64 * grains;
                (end.div_ceil(*tiles as u64) * *grain as u64).min(self.len)
            }
            (Steps::Element, _) => start + 1,
            _ => self.len,
        };
        Some((start, self.at, tile))
    }

    /// Returns the next of listed runs; neighbours may be on one tile and are joined.
    fn listed(&mut self, (end, tile): (&[u32], &[u32])) -> Option<TileRun> {
        let Steps::Row(k) = &mut self.steps else { return None };
        let here = *tile.get(*k)?;
        *k += 1;
        while tile.get(*k) == Some(&here) {
            *k += 1;
        }
        let start = std::mem::replace(&mut self.at, end[*k - 1] as u64);
        Some((start, self.at, here))
    }
}

impl Iterator for MappingRuns<'_> {
    type Item = TileRun;

    #[inline]
    fn next(&mut self) -> Option<TileRun> {
        if let Mapping::Runs { end, tile } = self.mapping {
            return self.listed((end, tile));
        }
        let mut run = self.held.take().or_else(|| self.step())?;
        while let Some(next) = self.step() {
            if next.2 != run.2 {
                self.held = Some(next);
                break;
            }
            run.1 = next.1;
        }
        Some(run)
    }
}
