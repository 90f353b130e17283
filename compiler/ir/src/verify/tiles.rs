//! Checks of mappings and tile maps.

use super::check::{Result, ensure};
use crate::family::{Domain, IndexFn, TileMap};
use crate::placement::{Mapping, TileRange, UNPLACED};

/// Checks a mapping of `len` elements.
pub fn mapping(mapping: &Mapping, len: u64) -> Result {
    match mapping {
        Mapping::One(tile) => ensure(*tile != UNPLACED, || "mapped on one tile that is none".into()),
        Mapping::Linear { first, tiles, grain } => {
            ensure(*grain > 0 && *tiles > 0, || "a linear mapping without tiles or grain".into())?;
            let fits = *tiles as u64 <= len.div_ceil(*grain as u64) && first.checked_add(*tiles).is_some();
            ensure(fits, || format!("a linear mapping on {tiles} tiles has too few grains"))
        }
        Mapping::Separable { domain, tiles } => {
            let count = count(domain)?;
            ensure(count == len, || format!("a mapping over {count} elements of {len}"))?;
            tile_map(tiles, domain)
        }
        Mapping::Runs { end, tile } => {
            ensure(end.len() == tile.len(), || "runs without tiles".into())?;
            ensure(end.last().map_or(0, |&e| e as u64) == len, || "runs that do not cover the elements".into())?;
            ensure(end.first() != Some(&0) && end.is_sorted_by(|a, b| a < b), || "runs that do not ascend".into())?;
            ensure(tile.windows(2).all(|w| w[0] != w[1]), || "neighbouring runs on one tile".into())
        }
    }
}

/// Checks a range of tiles.
pub fn range(range: Option<TileRange>) -> Result {
    let fits = range.is_none_or(|r| r.count > 0 && r.first.checked_add(r.count).is_some());
    ensure(fits, || "within no tiles".into())
}

/// Checks a tile map over a domain.
pub fn tile_map(map: &TileMap, domain: &Domain) -> Result {
    match map {
        TileMap::Table(tiles) => {
            let count = count(domain)?;
            ensure(tiles.len() as u64 == count, || format!("{} tiles for {count} instances", tiles.len()))?;
            ensure(!tiles.contains(&UNPLACED), || "an instance on no tile".into())
        }
        TileMap::Separable { base, terms } => {
            let (mut lo, mut hi) = (*base as i64, *base as i64);
            for (k, term) in terms.iter().enumerate() {
                let Some(&n) = domain.0.get(term.dim as usize) else {
                    return Err(format!("a tile reads index {} of {}", term.dim, domain.0.len()));
                };
                ensure(terms[..k].iter().all(|t| t.dim != term.dim), || "two terms read one index".into())?;
                ensure(positive(term.function), || "a term of a tile divides by 0".into())?;
                let span = term.stride as i64 * (term.function.count(n) as i64 - 1).max(0);
                (lo, hi) = (lo + span.min(0), hi + span.max(0));
            }
            ensure(lo >= 0 && hi < UNPLACED as i64, || format!("tiles {lo} to {hi}"))
        }
    }
}

/// Returns the number of instances of a domain, or an error if it overflows.
pub fn count(domain: &Domain) -> std::result::Result<u64, String> {
    let count = domain.0.iter().try_fold(1u64, |n, &d| n.checked_mul(d as u64));
    count.filter(|&n| n <= u32::MAX as u64).ok_or_else(|| "too many instances".into())
}

fn positive(part: IndexFn) -> bool {
    match part {
        IndexFn::Identity => true,
        IndexFn::Block(n) | IndexFn::Balanced(n) | IndexFn::Cyclic(n) => n > 0,
        IndexFn::BlockCyclic(b, p) => b > 0 && p > 0,
    }
}
