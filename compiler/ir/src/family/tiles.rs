//! Tile maps in both directions: from instances to tiles and back.
//!
//! # Note: Inverse
//! Each function of a separable map takes each of its values on few intervals of its index. So the instances on one
//! tile are found by running through the outer terms and inverting the last.

use super::{Domain, IndexFn, Term, TileMap};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::ops::Range;

/// Instances grouped by tile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ByTile {
    /// Tiles with instances, ascending.
    pub tiles: Vec<u32>,
    /// The position in `instances` of each tile's first instance; one more at the end.
    pub start: Vec<usize>,
    /// Ascending per tile.
    pub instances: Vec<u32>,
}

impl ByTile {
    /// Returns the instances of each tile.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &[u32])> {
        self.tiles.iter().zip(self.start.windows(2)).map(|(&t, w)| (t, &self.instances[w[0]..w[1]]))
    }

    /// Returns the instances on a tile.
    pub fn on(&self, tile: u32) -> &[u32] {
        match self.tiles.binary_search(&tile) {
            Ok(k) => &self.instances[self.start[k]..self.start[k + 1]],
            Err(_) => &[],
        }
    }
}

impl Domain {
    /// Returns the instances from one value of each index to the next.
    pub fn strides(&self) -> SmallVec<[u64; 4]> {
        let mut strides: SmallVec<[u64; 4]> = SmallVec::from_elem(1, self.0.len());
        for k in (1..self.0.len()).rev() {
            strides[k - 1] = strides[k] * self.0[k] as u64;
        }
        strides
    }

    /// Returns its points in the order of instances.
    pub fn points(&self) -> impl Iterator<Item = SmallVec<[u32; 4]>> + use<> {
        let extents = self.0.clone();
        let first = (!extents.contains(&0)).then(|| SmallVec::from_elem(0, extents.len()));
        std::iter::successors(first, move |point: &SmallVec<[u32; 4]>| {
            let k = (0..extents.len()).rev().find(|&k| point[k] + 1 < extents[k])?;
            let mut next = point.clone();
            next[k] += 1;
            next[k + 1..].fill(0);
            Some(next)
        })
    }

    /// Returns the instance at a point.
    pub fn instance(&self, point: &[u32]) -> u64 {
        point.iter().zip(&self.0).fold(0, |sum, (&i, &n)| sum * n as u64 + i as u64)
    }
}

impl IndexFn {
    /// Returns the number of its values over `0..n`: they are among `0..count`.
    pub fn count(self, n: u32) -> u32 {
        match self {
            IndexFn::Identity => n,
            IndexFn::Block(b) => n.div_ceil(b),
            IndexFn::Balanced(_) if n == 0 => 0,
            IndexFn::Balanced(_) => self.at(n - 1, n) + 1,
            IndexFn::Cyclic(p) => p.min(n),
            IndexFn::BlockCyclic(b, p) => p.min(n.div_ceil(b)),
        }
    }

    /// Returns the end of the indices from `i` on that have the value of `i`.
    pub fn run_end(self, i: u32, n: u32) -> u32 {
        let end = match self {
            IndexFn::Identity | IndexFn::Cyclic(2..) => i as u64 + 1,
            IndexFn::Cyclic(_) | IndexFn::BlockCyclic(_, 1) => n as u64,
            IndexFn::Block(b) | IndexFn::BlockCyclic(b, _) => (i as u64 / b as u64 + 1) * b as u64,
            IndexFn::Balanced(p) => ((self.at(i, n) as u64 + 1) * n as u64).div_ceil(p as u64),
        };
        end.min(n as u64) as u32
    }

    /// Returns the intervals of indices that have a value, ascending.
    pub fn inverse(self, value: u32, n: u32) -> impl Iterator<Item = Range<u32>> {
        let v = value as u64;
        let (first, len, period) = match self {
            IndexFn::Identity => (v, 1, 0),
            IndexFn::Block(b) => (v * b as u64, b as u64, 0),
            IndexFn::Balanced(p) => {
                let start = (v * n as u64).div_ceil(p as u64);
                (start, ((v + 1) * n as u64).div_ceil(p as u64) - start, 0)
            }
            IndexFn::Cyclic(p) => (if v < p as u64 { v } else { n as u64 }, 1, p as u64),
            IndexFn::BlockCyclic(b, p) => {
                (if v < p as u64 { v * b as u64 } else { n as u64 }, b as u64, b as u64 * p as u64)
            }
        };
        let n = n as u64;
        let next = move |&start: &u64| (period > 0).then_some(start + period);
        std::iter::successors(Some(first), next)
            .take_while(move |&start| start < n)
            .map(move |start| start as u32..(start + len).min(n) as u32)
            .filter(|r| !r.is_empty())
    }
}

impl Term {
    /// Returns its summand at index `i` of its dimension.
    pub fn at(&self, domain: &Domain, i: u32) -> i64 {
        self.stride as i64 * self.function.at(i, domain.0[self.dim as usize]) as i64
    }

    /// Returns the least and the greatest of its summands.
    fn bounds(&self, domain: &Domain) -> (i64, i64) {
        let n = domain.0[self.dim as usize];
        let last = self.stride as i64 * (self.function.count(n) as i64 - 1);
        (last.min(0), last.max(0))
    }
}

/// The tiles of a domain's instances, in order.
#[derive(Clone, Debug)]
pub enum TileIter<'a> {
    /// Tiles of a table.
    Table(std::iter::Copied<std::slice::Iter<'a, u32>>),
    /// Tiles of a separable map.
    Separable {
        /// The domain.
        domain: &'a Domain,
        /// The terms.
        terms: &'a [Term],
        /// The term of the last index, if it has one.
        inner: Option<Term>,
        /// The next point; `next` counts the last index.
        point: SmallVec<[u32; 4]>,
        /// The sum of the base and all terms but `inner` at `point`.
        sum: i64,
        /// The next value of the last index.
        next: u32,
        /// Instances still to come.
        left: u64,
    },
}

impl Iterator for TileIter<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        match self {
            TileIter::Table(tiles) => tiles.next(),
            TileIter::Separable { domain, terms, inner, point, sum, next, left } => {
                *left = left.checked_sub(1)?;
                let last = domain.0.len().wrapping_sub(1);
                let n = domain.0.get(last).copied().unwrap_or(1);
                if *next == n {
                    *next = 0;
                    for k in (0..last).rev() {
                        let term = terms.iter().find(|t| t.dim as usize == k);
                        *sum -= term.map_or(0, |t| t.at(domain, point[k]));
                        point[k] = if point[k] + 1 == domain.0[k] { 0 } else { point[k] + 1 };
                        *sum += term.map_or(0, |t| t.at(domain, point[k]));
                        if point[k] != 0 {
                            break;
                        }
                    }
                }
                let tile = *sum + inner.map_or(0, |t| t.stride as i64 * t.function.at(*next, n) as i64);
                *next += 1;
                Some(tile as u32)
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match self {
            TileIter::Table(tiles) => tiles.size_hint(),
            TileIter::Separable { left, .. } => (*left as usize, Some(*left as usize)),
        }
    }
}

impl ExactSizeIterator for TileIter<'_> {}

impl TileMap {
    /// Returns the tiles of all instances, in order.
    pub fn iter<'a>(&'a self, domain: &'a Domain) -> TileIter<'a> {
        match self {
            TileMap::Table(tiles) => TileIter::Table(tiles.iter().copied()),
            TileMap::Separable { base, terms } => {
                let last = domain.0.len().wrapping_sub(1);
                let inner = terms.iter().find(|t| t.dim as usize == last).copied();
                let point = SmallVec::from_elem(0, domain.0.len());
                let (sum, left) = (*base as i64, domain.count());
                TileIter::Separable { domain, terms, inner, point, sum, next: 0, left }
            }
        }
    }

    /// Returns the instances on a tile, ascending. [`TileMap::by_tile`] is faster for all tiles together.
    pub fn instances_on(&self, domain: &Domain, tile: u32) -> Vec<u64> {
        match self {
            TileMap::Table(tiles) => (0u64..).zip(tiles.iter()).filter(|p| *p.1 == tile).map(|p| p.0).collect(),
            TileMap::Separable { base, terms } => {
                let mut found = Vec::new();
                if domain.count() > 0 {
                    collect(domain, terms, 0, 0, tile as i64 - *base as i64, &mut found);
                }
                found
            }
        }
    }

    /// Returns all instances, grouped by tile.
    pub fn by_tile(&self, domain: &Domain) -> ByTile {
        let mut pairs: Vec<(u32, u32)> = self.iter(domain).zip(0..).collect();
        pairs.sort_unstable();
        let mut by = ByTile { tiles: Vec::new(), start: Vec::new(), instances: Vec::with_capacity(pairs.len()) };
        for (k, (tile, instance)) in pairs.into_iter().enumerate() {
            if by.tiles.last() != Some(&tile) {
                by.tiles.push(tile);
                by.start.push(k);
            }
            by.instances.push(instance);
        }
        by.start.push(by.instances.len());
        by
    }

    /// Returns the number of instances on each tile that has any.
    pub fn counts(&self, domain: &Domain) -> BTreeMap<u32, u64> {
        let mut counts = BTreeMap::new();
        match self {
            _ if domain.count() == 0 => {}
            TileMap::Table(tiles) => tiles.iter().for_each(|&t| *counts.entry(t).or_insert(0) += 1),
            TileMap::Separable { base, terms } => {
                let free = (0..domain.0.len()).filter(|&k| terms.iter().all(|t| t.dim as usize != k));
                let mut sums = BTreeMap::from([(*base as i64, free.map(|k| domain.0[k] as u64).product())]);
                for term in terms {
                    sums = spread(&sums, term, domain.0[term.dim as usize]);
                }
                counts.extend(sums.into_iter().map(|(tile, count)| (tile as u32, count)));
            }
        }
        counts
    }

    /// Returns the greatest tile; `None` without instances.
    pub fn max_tile(&self, domain: &Domain) -> Option<u32> {
        match self {
            _ if domain.count() == 0 => None,
            TileMap::Table(tiles) => tiles.iter().copied().max(),
            TileMap::Separable { base, terms } => {
                Some((*base as i64 + terms.iter().map(|t| t.bounds(domain).1).sum::<i64>()) as u32)
            }
        }
    }
}

/// Adds a term to a histogram of sums.
fn spread(sums: &BTreeMap<i64, u64>, term: &Term, n: u32) -> BTreeMap<i64, u64> {
    let mut spread = BTreeMap::new();
    for value in 0..term.function.count(n) {
        let times: u64 = term.function.inverse(value, n).map(|r| r.len() as u64).sum();
        if times > 0 {
            for (sum, count) in sums {
                *spread.entry(sum + value as i64 * term.stride as i64).or_insert(0) += count * times;
            }
        }
    }
    spread
}

/// Collects the instances from index `k` on whose terms add up to `need`; see the note.
fn collect(domain: &Domain, terms: &[Term], k: usize, instance: u64, need: i64, found: &mut Vec<u64>) {
    let mut rest = terms.iter().filter(|t| t.dim as usize >= k);
    let Some(first) = rest.next() else {
        let inner: u64 = domain.0[k..].iter().map(|&n| n as u64).product();
        if need == 0 {
            found.extend(instance * inner..(instance + 1) * inner);
        }
        return;
    };
    let (lo, hi) = terms
        .iter()
        .filter(|t| t.dim as usize >= k)
        .map(|t| t.bounds(domain))
        .fold((0, 0), |sum, b| (sum.0 + b.0, sum.1 + b.1));
    if need < lo || need > hi {
        return;
    }
    let n = domain.0[k];
    let here = terms.iter().find(|t| t.dim as usize == k);
    let last = here.is_some() && rest.next().is_none() && first.dim as usize == k;
    match here {
        Some(term) if last && term.stride != 0 => {
            let value = need / term.stride as i64;
            let fits = need % term.stride as i64 == 0 && (0..term.function.count(n) as i64).contains(&value);
            for i in term.function.inverse(value as u32, n).take_while(|_| fits).flatten() {
                collect(domain, terms, k + 1, instance * n as u64 + i as u64, 0, found);
            }
        }
        _ => {
            for i in 0..n {
                let shift = here.map_or(0, |t| t.at(domain, i));
                collect(domain, terms, k + 1, instance * n as u64 + i as u64, need - shift, found);
            }
        }
    }
}
