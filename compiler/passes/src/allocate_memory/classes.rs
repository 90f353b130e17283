//! Equivalence classes of tiles, found without a list of each tile's needs.
//!
//! Features (a block, a request) on the same ranges of tiles, in the same groups, share one *pattern*. A program has
//! few patterns, however many variables and compute sets it has. The tiles are visited once, range by range. Where a
//! range begins or ends, a row states the group of each pattern that the next tiles are in; tiles with equal rows are
//! equivalent.
//!
//! Invariant: two tiles are in one class iff they have the same features with the same numbers.

use super::spread::Spread;
use girder_ir::layout::TileSet;
use girder_source::par_map_slice;
use indexmap::IndexMap;
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::ops::Range;
use std::sync::Arc;

/// Tiles with the same features: the group of each pattern that they are in.
#[derive(Clone, Debug)]
pub(super) struct EquivalentTiles {
    pub tiles: TileSet,
    row: Box<[u32]>,
}

/// Ranges of tiles with labels: equal numbers have equal labels.
type Pattern = Vec<(Range<u32>, u32)>;

/// Features by their patterns.
#[derive(Default)]
pub(super) struct Patterns {
    /// The index of each pattern.
    patterns: IndexMap<Pattern, u32, FxBuildHasher>,
    /// The pattern of each feature, and the number of each label.
    features: Vec<(u32, Vec<u64>)>,
}

impl Patterns {
    /// Returns the patterns of features with these spreads.
    pub fn of(spreads: &[Arc<Spread>]) -> Patterns {
        let mut patterns = Patterns::default();
        for (pattern, numbers) in par_map_slice(spreads, |spread| labelled(spread)) {
            let next = patterns.patterns.len() as u32;
            let index = *patterns.patterns.entry(pattern).or_insert(next);
            patterns.features.push((index, numbers));
        }
        patterns
    }

    /// Returns the classes, ascending by their first tile. Tiles without a feature are in none.
    pub fn classes(&self) -> Vec<EquivalentTiles> {
        let mut rows: IndexMap<Box<[u32]>, TileSet, FxBuildHasher> = IndexMap::default();
        let mut row = vec![NONE; self.patterns.len()];
        let changes = self.changes();
        let mut next = changes.iter().peekable();
        while let Some(change) = next.next() {
            row[change.pattern as usize] = change.label;
            // Changes at one tile happen together; no label remains after the last one.
            let Some(after) = next.peek().filter(|after| after.tile > change.tile) else { continue };
            let tiles = change.tile..after.tile;
            if row.iter().all(|&label| label == NONE) {
                continue;
            }
            match rows.get_mut(&row[..]) {
                Some(set) => tiles.for_each(|tile| set.push(tile)),
                None => drop(rows.insert(row.clone().into(), TileSet::from_ascending(tiles))),
            }
        }
        rows.into_iter().map(|(row, tiles)| EquivalentTiles { tiles, row }).collect()
    }

    /// Returns the beginnings and ends of ranges, by tile.
    fn changes(&self) -> Vec<Change> {
        let mut changes = vec![];
        for (pattern, ranges) in (0..).zip(self.patterns.keys()) {
            for (k, (range, label)) in ranges.iter().enumerate() {
                changes.push(Change { tile: range.start, pattern, label: *label });
                if ranges.get(k + 1).is_none_or(|after| after.0.start > range.end) {
                    changes.push(Change { tile: range.end, pattern, label: NONE });
                }
            }
        }
        radsort::sort_by_key(&mut changes, |c| c.tile);
        changes
    }

    /// Returns the features of a class by index, with their numbers, in the order in which they were added.
    pub fn features(&self, equivalent: &EquivalentTiles) -> impl Iterator<Item = (u32, u64)> {
        let here =
            (0..).zip(&self.features).map(|(k, (pattern, numbers))| (k, equivalent.row[*pattern as usize], numbers));
        here.filter(|f| f.1 != NONE).map(|(k, label, numbers)| (k, numbers[label as usize]))
    }
}

/// Returns a spread as a pattern, and the number of each label.
fn labelled(spread: &Spread) -> (Pattern, Vec<u64>) {
    let mut labels: FxHashMap<u64, u32> = FxHashMap::default();
    let mut numbers = vec![];
    let mut last = (0, 0);
    let pattern = spread.runs().iter().map(|(tiles, value)| {
        if last.0 != *value {
            let next = labels.len() as u32;
            let label = *labels.entry(*value).or_insert_with(|| {
                numbers.push(*value);
                next
            });
            last = (*value, label);
        }
        (tiles.clone(), last.1)
    });
    (pattern.collect(), numbers)
}

/// The label of a tile in no range of a pattern.
const NONE: u32 = u32::MAX;

/// From this tile on, a pattern has this label, or [`NONE`].
#[derive(Clone, Copy)]
struct Change {
    tile: u32,
    pattern: u32,
    label: u32,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn classes_are_the_tiles_that_agree(
            features in prop::collection::vec(prop::collection::vec(0u64..3, 12), 0..6),
        ) {
            let spreads: Vec<Arc<Spread>> =
                features.iter().map(|f| (0u32..).zip(f.iter().copied()).collect()).map(Spread::of_tiles).map(Arc::new)
                    .collect();
            let patterns = Patterns::of(&spreads);
            let mut expected: IndexMap<Vec<(u32, u64)>, Vec<u32>> = IndexMap::new();
            for tile in 0..12 {
                let here = (0u32..).zip(&spreads).map(|(k, s)| (k, s.at(tile))).filter(|f| f.1 > 0);
                let here: Vec<_> = here.collect();
                if !here.is_empty() {
                    expected.entry(here).or_default().push(tile);
                }
            }
            let found = patterns.classes().into_iter().map(|c| {
                (patterns.features(&c).collect::<Vec<_>>(), c.tiles.iter().collect::<Vec<u32>>())
            });
            prop_assert_eq!(found.collect::<Vec<_>>(), expected.into_iter().collect::<Vec<_>>());
        }
    }
}
