//! Fitting closed forms to runs of tiles.
//!
//! Invariant: a fitted form has exactly these runs; it has been compared.

use super::{Mapping, TileRun, UNPLACED};
use crate::family::{Domain, TileMap};
use crate::region::gcd;
use std::cell::Cell;

impl Mapping {
    /// Returns the simplest mapping of a variable with these runs, which ascend and cover all elements: on one tile,
    /// linear, separable over the shape or over the flat element, else the runs.
    pub fn fit(shape: &[u64], runs: impl IntoIterator<Item = TileRun>) -> Mapping {
        let plain = Mapping::from_runs(runs);
        let Mapping::Runs { end, tile } = &plain else { return plain };
        if tile.contains(&UNPLACED) {
            return plain;
        }
        let len = shape.iter().product::<u64>();
        let shaped = || separable(shape, &plain);
        // Looking for a form that cannot exist would cost a search for each run.
        let flat = || even(end).then(|| separable(&[len], &plain))?;
        let closed =
            linear(end, tile).or_else(|| same_runs(shaped()?, &plain, len)).or_else(|| same_runs(flat()?, &plain, len));
        closed.unwrap_or(plain)
    }
}

/// Returns whether all runs but the last have one length, or two lengths that differ by one: a closed function of one
/// index has no others.
fn even(end: &[u32]) -> bool {
    let mut extents = std::iter::once(0).chain(end.iter().copied()).zip(end).map(|(start, end)| end - start);
    let last = end.len().saturating_sub(1);
    let (lo, hi) = extents.by_ref().take(last).fold((u32::MAX, 0), |(lo, hi), n| (lo.min(n), hi.max(n)));
    hi <= lo.saturating_add(1)
}

/// Returns the mapping if its runs are `runs`.
fn same_runs(mapping: Mapping, runs: &Mapping, len: u64) -> Option<Mapping> {
    mapping.runs(len).eq(runs.runs(len)).then_some(mapping)
}

/// Fits equal grains over neighbouring tiles.
fn linear(end: &[u32], tile: &[u32]) -> Option<Mapping> {
    let len = *end.last()? as u64;
    let tiles = tile.len() as u32;
    if tile.windows(2).any(|w| w[1] != w[0].wrapping_add(1)) {
        return None;
    }
    // If all ends but the last have a common divisor above 1, all runs but the last have that length.
    let grain = end[..end.len() - 1].iter().fold(0, |g, &e| gcd(g, e as i64)) as u32;
    let linear = Mapping::Linear { first: tile[0], tiles, grain };
    let fits = tiles as u64 <= len.div_ceil(grain as u64);
    let ends = || linear.runs(len).map(|r| (r.1, r.2)).eq(end.iter().map(|&e| e as u64).zip(tile.iter().copied()));
    (fits && ends()).then_some(linear)
}

/// Returns the run that holds an element, searching from `run` on.
fn behind(end: &[u32], mut run: usize, element: u64) -> usize {
    let mut step = 1;
    while end.get(run + step).is_some_and(|&end| end as u64 <= element) {
        run += step;
        step *= 2;
    }
    let last = (run + step).min(end.len());
    run + end[run..last].partition_point(|&end| end as u64 <= element)
}

/// Returns the separable mapping that agrees with the runs along each axis from the first element.
fn separable(shape: &[u64], runs: &Mapping) -> Option<Mapping> {
    let domain = Domain(shape.iter().map(|&n| u32::try_from(n).ok()).collect::<Option<_>>()?);
    let Mapping::Runs { end, tile } = runs else { return None };
    // Elements are looked up along each axis in ascending order, so the next run is close to the last.
    let last = Cell::new(0);
    let tiles = TileMap::guess(&domain, |e| {
        let run = behind(end, if e == 0 { 0 } else { last.get() }, e);
        last.set(run);
        (tile[run], end[run] as u64)
    })?;
    Some(Mapping::Separable { domain, tiles })
}
