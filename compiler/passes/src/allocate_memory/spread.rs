//! Spreads: numbers that vary from tile to tile, as ranges of tiles.
//!
//! For regular programs, closed forms give the ranges, without visiting elements or vertices.
//!
//! Invariant: ranges ascend and are disjoint, neighbours differ, and no number is 0; tiles without a number are in no
//! range.

use girder_ir::family::{Domain, TileMap};
use girder_ir::placement::Mapping;
use std::ops::Range;

/// A number for each range of tiles.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Spread(Vec<(Range<u32>, u64)>);

impl Spread {
    /// Returns the ranges.
    pub fn runs(&self) -> &[(Range<u32>, u64)] {
        &self.0
    }

    /// Appends tiles after all others.
    pub fn push(&mut self, tiles: Range<u32>, value: u64) {
        if value == 0 || tiles.is_empty() {
            return;
        }
        match self.0.last_mut() {
            Some((last, v)) if last.end == tiles.start && *v == value => last.end = tiles.end,
            _ => self.0.push((tiles, value)),
        }
    }

    /// Returns the spread of single tiles in any order, each once.
    pub fn of_tiles(mut tiles: Vec<(u32, u64)>) -> Spread {
        if !tiles.is_sorted_by_key(|t| t.0) {
            tiles.sort_unstable();
        }
        let mut spread = Spread::default();
        tiles.into_iter().for_each(|(t, v)| spread.push(t..t + 1, v));
        spread
    }

    /// Returns the spread of a number for every tile.
    fn dense(values: &[u64]) -> Spread {
        let mut spread = Spread::default();
        (0u32..).zip(values).for_each(|(t, &v)| spread.push(t..t + 1, v));
        spread
    }

    /// Returns the size of each tile's block of a variable, as [`Homes`](girder_ir::plan::Homes) gives it, but without
    /// runs.
    pub fn of_mapping(mapping: &Mapping, len: u64, element_bytes: u64, tiles: u32) -> Spread {
        let capped = |bytes: u64| bytes.min(u32::MAX as u64);
        let mut spread = Spread::default();
        match mapping {
            _ if len == 0 => {}
            Mapping::One(tile) => spread.push(*tile..*tile + 1, capped(len * element_bytes)),
            Mapping::Linear { first, tiles, grain } => {
                let (grain, tiles) = (*grain as u64, *tiles as u64);
                let grains = len.div_ceil(grain);
                let start = |k: u64| ((k * grains).div_ceil(tiles) * grain).min(len);
                for k in 0..tiles {
                    let bytes = start(k) * element_bytes % 8 + (start(k + 1) - start(k)) * element_bytes;
                    let tile = first + k as u32;
                    spread.push(tile..tile + 1, capped(bytes));
                }
            }
            _ => {
                let mut ends = vec![0u64; tiles as usize];
                for (start, end, tile) in mapping.runs(len) {
                    let Some(used) = ends.get_mut(tile as usize) else { continue };
                    *used += (start * element_bytes).wrapping_sub(*used) % 8 + (end - start) * element_bytes;
                }
                ends.iter_mut().for_each(|e| *e = capped(*e));
                spread = Spread::dense(&ends);
            }
        }
        spread
    }

    /// Returns the number of instances of a domain on each tile.
    pub fn of_instances(map: &TileMap, domain: &Domain) -> Spread {
        match map {
            _ if domain.count() == 0 => Spread::default(),
            TileMap::Table(table) => {
                let end = table.iter().max().map_or(0, |&t| t as usize + 1);
                let mut counts = vec![0; end];
                table.iter().for_each(|&t| counts[t as usize] += 1);
                Spread::dense(&counts)
            }
            TileMap::Separable { base, terms } => match terms.as_slice() {
                [] => Spread::of_tiles(vec![(*base, domain.count())]),
                [term] if term.stride != 0 => {
                    let n = domain.0[term.dim as usize];
                    let others = domain.count() / n as u64;
                    let count = |v| others * term.function.inverse(v, n).map(|r| r.len() as u64).sum::<u64>();
                    let tile = |v: u32| (*base as i64 + term.stride as i64 * v as i64) as u32;
                    Spread::of_tiles((0..term.function.count(n)).map(|v| (tile(v), count(v))).collect())
                }
                _ => Spread::of_tiles(map.counts(domain).into_iter().collect()),
            },
        }
    }

    /// Returns the number of a tile.
    #[cfg(test)]
    pub fn at(&self, tile: u32) -> u64 {
        let k = self.0.partition_point(|(r, _)| r.end <= tile);
        self.0.get(k).filter(|(r, _)| r.contains(&tile)).map_or(0, |r| r.1)
    }
}

/// Returns a number for each tile as a function of the entities on it. `runs` gives the tiles of each entity, `change`
/// adds an entity or removes it, and `bytes` evaluates the current state.
pub(super) fn sweep<T, S>(
    runs: &[(Range<u32>, T)],
    mut state: S,
    change: impl Fn(&mut S, &T, bool),
    bytes: impl Fn(&S) -> u64,
) -> Spread {
    let mut spread = Spread::default();
    if runs.windows(2).all(|w| w[0].0.end <= w[1].0.start) {
        for (tiles, thing) in runs {
            change(&mut state, thing, true);
            spread.push(tiles.clone(), bytes(&state));
            change(&mut state, thing, false);
        }
        return spread;
    }
    let ends = runs.iter().flat_map(|(tiles, thing)| [(tiles.start, true, thing), (tiles.end, false, thing)]);
    let mut ends: Vec<(u32, bool, &T)> = ends.collect();
    ends.sort_by_key(|e| e.0);
    let mut at = 0;
    for (tile, enters, thing) in ends {
        if tile > at {
            spread.push(at..tile, bytes(&state));
            at = tile;
        }
        change(&mut state, thing, enters);
    }
    spread
}

#[cfg(test)]
mod tests {
    use super::*;
    use girder_ir::family::{IndexFn, Term};
    use girder_ir::graph::{Var, VarClass};
    use girder_ir::plan::Homes;
    use girder_ir::types::ElemType;
    use girder_source::{Origins, Span};
    use proptest::prelude::*;

    fn part() -> impl Strategy<Value = IndexFn> {
        prop_oneof![
            Just(IndexFn::Identity),
            (1u32..5).prop_map(IndexFn::Block),
            (1u32..9).prop_map(IndexFn::Balanced),
            (1u32..5).prop_map(IndexFn::Cyclic),
            (1u32..4, 1u32..4).prop_map(|(b, p)| IndexFn::BlockCyclic(b, p)),
        ]
    }

    /// Returns a box and a map over it, of one or two terms or a table, on tiles below 100.
    fn map() -> impl Strategy<Value = (Domain, TileMap)> {
        let sides = prop::collection::vec(1u32..7, 2);
        let terms = prop::collection::vec(prop::option::of((part(), prop_oneof![-3i32..0, 1i32..4])), 2);
        let table = prop::option::of(prop::collection::vec(0u32..9, 36));
        (sides, terms, table).prop_map(|(sides, terms, table)| {
            let domain = Domain(sides.into());
            let map = match table {
                Some(table) => TileMap::Table(table[..domain.count() as usize].into()),
                None => {
                    let term = |(dim, t): (u8, Option<(IndexFn, i32)>)| {
                        t.map(|(function, stride)| Term { dim, function, stride })
                    };
                    TileMap::Separable { base: 50, terms: (0u8..).zip(terms).filter_map(term).collect() }
                }
            };
            (domain, map)
        })
    }

    proptest! {
        #[test]
        fn instances_are_counted_as_the_map_counts_them((domain, map) in map()) {
            let spread = Spread::of_instances(&map, &domain);
            for tile in 0..100 {
                prop_assert_eq!(spread.at(tile), map.counts(&domain).get(&tile).copied().unwrap_or(0));
            }
        }

        #[test]
        fn blocks_are_as_long_as_their_homes((domain, map) in map(), kind in 0..3, n in 1u32..200, grain in 1u32..9) {
            let (len, mapping) = match kind {
                0 => (domain.count(), Mapping::Separable { domain, tiles: map }),
                1 => (n as u64, Mapping::One(3)),
                _ => (n as u64, Mapping::Linear { first: 3, tiles: n.div_ceil(grain).min(17), grain }),
            };
            for ty in [ElemType::U8, ElemType::F16, ElemType::F32, ElemType::F64] {
                let origin = Origins::default().add(Span::NONE, None, "");
                let (class, init) = (VarClass::Var, None);
                let shape = [len].as_slice().into();
                let var = Var { name: "v".into(), class, ty, shape, init, mapping: None, within: None, origin };
                let spread = Spread::of_mapping(&mapping, len, ty.bytes() as u64, 100);
                let homes = Homes::of(&var, &mapping);
                for tile in 0..100 {
                    prop_assert_eq!(spread.at(tile), homes.block(tile).unwrap_or(0) as u64);
                }
            }
        }

        #[test]
        fn a_sweep_adds_what_is_on_a_tile(runs in prop::collection::vec((0u32..20, 0u32..6, 1u64..4), 0..8)) {
            let runs: Vec<_> = runs.into_iter().map(|(at, n, v)| (at..at + n, v)).collect();
            let add = |sum: &mut u64, v: &u64, enters: bool| if enters { *sum += v } else { *sum -= v };
            let spread = sweep(&runs, 0, add, |sum| *sum);
            for tile in 0..30 {
                let sum: u64 = runs.iter().filter(|(r, _)| r.contains(&tile)).map(|r| r.1).sum();
                prop_assert_eq!(spread.at(tile), sum);
            }
            prop_assert!(spread.runs().windows(2).all(|w| w[0].0.end < w[1].0.start || w[0].1 != w[1].1));
        }
    }
}
