//! Tiles that need the same, found without listing what each tile needs.
//!
//! Features (a block, a wish) that stand on the same ranges of tiles in the same grouping share one *pattern*. Each
//! pattern splits the classes that there are once; so the work is tiles times patterns, and a program has few patterns
//! however many variables and compute sets it has.
//!
//! Invariant: two tiles are in one class iff they have the same features with the same numbers.

use super::spread::Spread;
use girder_ir::layout::TileSet;
use girder_source::par_map_slice;
use indexmap::IndexMap;
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::ops::Range;

/// Tiles with the same features, each with its number there; features in the order in which they were added.
#[derive(Clone, Debug)]
pub(super) struct Alike {
    pub tiles: TileSet,
    /// Index of the feature, number.
    pub features: Vec<(u32, u64)>,
}

/// Ranges of tiles with a label each: equal numbers have equal labels.
type Pattern = Vec<(Range<u32>, u32)>;

/// A feature by its index, with the number of each label.
type Labelled = (u32, Vec<u64>);

/// Features by where they are.
#[derive(Default)]
pub(super) struct Patterns {
    patterns: IndexMap<Pattern, Vec<Labelled>, FxBuildHasher>,
    features: u32,
}

impl Patterns {
    /// Adds the next feature.
    pub fn add(&mut self, spread: &Spread) {
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
        let pattern: Vec<_> = pattern.collect();
        self.patterns.entry(pattern).or_default().push((self.features, numbers));
        self.features += 1;
    }

    /// The classes of `tiles` tiles, ascending by their first tile. Tiles without a feature are in none.
    pub fn classes(&self, tiles: u32) -> Vec<Alike> {
        let mut tree = Tree { nodes: vec![None], child: FxHashMap::default() };
        let mut node_of = vec![0u32; tiles as usize];
        for (k, pattern) in (0..).zip(self.patterns.keys()) {
            tree.child.clear();
            for (range, label) in pattern {
                let mut last = None;
                for node in &mut node_of[range.start as usize..range.end as usize] {
                    let (from, to) = match last {
                        Some((from, to)) if from == *node => (from, to),
                        _ => (*node, tree.enter(*node, k, *label)),
                    };
                    last = Some((from, to));
                    *node = to;
                }
            }
        }
        let mut classes: Vec<(TileSet, u32)> = vec![];
        let mut class_of = vec![u32::MAX; tree.nodes.len()];
        for (tile, node) in (0u32..).zip(node_of).filter(|(_, node)| *node > 0) {
            let class = &mut class_of[node as usize];
            if *class == u32::MAX {
                *class = classes.len() as u32;
                classes.push((TileSet::default(), node));
            }
            classes[*class as usize].0.push(tile);
        }
        let features = par_map_slice(&classes, |(_, node)| self.features(&tree, *node));
        classes.into_iter().zip(features).map(|((tiles, _), features)| Alike { tiles, features }).collect()
    }

    /// The features of a node and all above it.
    fn features(&self, tree: &Tree, mut node: u32) -> Vec<(u32, u64)> {
        let mut found = vec![];
        while let Some(Node { parent, pattern, label }) = tree.nodes[node as usize] {
            let features = &self.patterns[pattern as usize];
            found.extend(features.iter().map(|(feature, numbers)| (*feature, numbers[label as usize])));
            node = parent;
        }
        found.sort_unstable();
        found
    }
}

/// Classes as paths: each pattern leads from a class to those that it splits it into.
struct Tree {
    /// The first is the class of tiles without features.
    nodes: Vec<Option<Node>>,
    /// Of the pattern at hand.
    child: FxHashMap<(u32, u32), u32>,
}

#[derive(Clone, Copy)]
struct Node {
    parent: u32,
    pattern: u32,
    label: u32,
}

impl Tree {
    fn enter(&mut self, parent: u32, pattern: u32, label: u32) -> u32 {
        *self.child.entry((parent, label)).or_insert_with(|| {
            self.nodes.push(Some(Node { parent, pattern, label }));
            self.nodes.len() as u32 - 1
        })
    }
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
            let spreads: Vec<Spread> =
                features.iter().map(|f| Spread::of_tiles((0u32..).zip(f.iter().copied()).collect())).collect();
            let mut patterns = Patterns::default();
            spreads.iter().for_each(|s| patterns.add(s));
            let mut expected: IndexMap<Vec<(u32, u64)>, Vec<u32>> = IndexMap::new();
            for tile in 0..12 {
                let here = (0u32..).zip(&spreads).map(|(k, s)| (k, s.at(tile))).filter(|f| f.1 > 0);
                let here: Vec<_> = here.collect();
                if !here.is_empty() {
                    expected.entry(here).or_default().push(tile);
                }
            }
            let found = patterns.classes(12).into_iter().map(|c| (c.features, c.tiles.iter().collect::<Vec<u32>>()));
            prop_assert_eq!(found.collect::<Vec<_>>(), expected.into_iter().collect::<Vec<_>>());
        }
    }
}
