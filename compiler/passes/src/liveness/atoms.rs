//! Atoms: equivalence classes of elements in the flow. An atom is a whole temporary, or a part of one that is written
//! in pieces.
//!
//! Invariant: the atoms of a variable partition its elements. No leaf overwrites only a part of an atom with certainty,
//! unless the atom is a whole variable.

use super::leaves::{AtomEffect, Leaf, Leaves};
use crate::footprint::Footprint;
use cranelift_entity::SecondaryMap;
use fixedbitset::FixedBitSet;
use girder_ir::graph::Graph;
use girder_ir::ids::VarId;
use rustc_hash::{FxHashMap, FxHashSet};

/// The number of runs beyond which a variable is not split. The flow then counts elements and may promote the variable
/// without need.
const MAX_RUNS: usize = 1 << 20;

/// The atoms of a graph.
pub(super) struct Atoms {
    /// The first atom of each temporary.
    first: SecondaryMap<VarId, u32>,
    /// The variable of each atom.
    owners: Vec<VarId>,
    /// The number of elements of each variable.
    lengths: SecondaryMap<VarId, u64>,
    /// The segments of split variables: end and atom, ascending.
    segments: FxHashMap<VarId, Vec<(u64, u32)>>,
}

impl Atoms {
    /// Creates one atom for each temporary.
    pub fn whole(graph: &Graph) -> Atoms {
        Atoms::split_with(graph, FxHashMap::default())
    }

    /// Creates several atoms for each of `suspects` that can be split, and one for each other temporary.
    pub fn split(graph: &Graph, leaves: &Leaves, suspects: &FxHashSet<VarId>) -> Atoms {
        let classes = suspects.iter().filter_map(|&v| Some((v, classes(graph.vars[v].len(), v, leaves)?)));
        Atoms::split_with(graph, classes.collect())
    }

    fn split_with(graph: &Graph, mut segments: FxHashMap<VarId, Vec<(u64, u32)>>) -> Atoms {
        let mut atoms = Atoms {
            first: SecondaryMap::new(),
            owners: vec![],
            lengths: SecondaryMap::new(),
            segments: FxHashMap::default(),
        };
        for (id, var) in graph.vars.iter().filter(|(_, v)| !v.is_persistent()) {
            let first = atoms.owners.len() as u32;
            let mut count = 1;
            if let Some(list) = segments.get_mut(&id) {
                for (_, class) in list.iter_mut() {
                    count = count.max(*class as usize + 1);
                    *class += first;
                }
            }
            atoms.first[id] = first;
            atoms.lengths[id] = var.len();
            atoms.owners.extend(std::iter::repeat_n(id, count));
        }
        atoms.segments = segments;
        atoms
    }

    /// Returns the number of atoms.
    pub fn len(&self) -> usize {
        self.owners.len()
    }

    /// Returns the variable of an atom.
    pub fn owner(&self, atom: u32) -> VarId {
        self.owners[atom as usize]
    }

    /// Returns whether an atom of a temporary is in a set.
    pub fn any_in(&self, var: VarId, set: &FixedBitSet) -> bool {
        let first = self.first[var] as usize;
        let count = self.owners[first..].iter().take_while(|&&owner| owner == var).count();
        set.contains_any_in_range(first..first + count)
    }

    /// Returns the effect of a leaf on atoms.
    pub fn effect(&self, leaf: &Leaf) -> AtomEffect {
        let mut effect = AtomEffect::default();
        leaf.reads.iter().for_each(|f| self.add(f, &mut effect.uses));
        let mut written: FxHashMap<VarId, u64> = FxHashMap::default();
        for f in &leaf.writes {
            *written.entry(f.var).or_default() += f.count();
        }
        for f in &leaf.writes {
            if self.segments.contains_key(&f.var) || written[&f.var] == self.lengths[f.var] {
                self.add(f, &mut effect.kills);
            } else {
                effect.touched.push(self.first[f.var]);
            }
        }
        effect.touched.extend(effect.uses.iter().chain(&effect.kills).copied().collect::<Vec<_>>());
        for list in [&mut effect.uses, &mut effect.kills, &mut effect.touched] {
            list.sort_unstable();
            list.dedup();
        }
        effect
    }

    /// Adds the atoms that a footprint meets. Those of a split variable lie entirely in the footprint.
    fn add(&self, print: &Footprint, list: &mut Vec<u32>) {
        let Some(segments) = self.segments.get(&print.var) else {
            list.push(self.first[print.var]);
            return;
        };
        let mut seen = FxHashSet::default();
        print.runs(|start, len| {
            let from = segments.partition_point(|&(end, _)| end <= start);
            let mut begin = from.checked_sub(1).map_or(0, |i| segments[i].0);
            for &(end, atom) in &segments[from..] {
                if begin >= start + len {
                    break;
                }
                if seen.insert(atom) {
                    list.push(atom);
                }
                begin = end;
            }
            true
        });
    }
}

/// Returns the segments of a variable with their classes, or `None` if there are too many runs. Elements are in one
/// class if the same leaves access them equally often.
fn classes(len: u64, var: VarId, leaves: &Leaves) -> Option<Vec<(u64, u32)>> {
    // Each kind of access adds its own number to a running sum, so equal sums mean equal sets of accesses.
    let mut changes: Vec<(u64, u128)> = vec![];
    let mut key = 0u128;
    for leaf in &leaves.list {
        for prints in [&leaf.reads, &leaf.writes] {
            key += 1;
            let number = mix(key);
            for print in prints.iter().filter(|f| f.var == var) {
                print.runs(|start, run| {
                    changes.push((start, number));
                    changes.push((start + run, number.wrapping_neg()));
                    changes.len() <= 2 * MAX_RUNS
                });
            }
        }
        if changes.len() > 2 * MAX_RUNS {
            return None;
        }
    }
    changes.sort_unstable_by_key(|c| c.0);
    let mut numbers: FxHashMap<u128, u32> = FxHashMap::default();
    let mut segments: Vec<(u64, u32)> = vec![];
    let (mut sum, mut next) = (0u128, changes.iter().peekable());
    while let Some(&&(at, _)) = next.peek().filter(|c| c.0 < len) {
        while let Some(&(_, number)) = next.next_if(|c| c.0 == at) {
            sum = sum.wrapping_add(number);
        }
        let fresh = numbers.len() as u32;
        let class = *numbers.entry(sum).or_insert(fresh);
        segments.push((next.peek().map_or(len, |c| c.0.min(len)), class));
    }
    // No leaf accesses the elements before the first segment, so they belong to any class.
    Some(segments)
}

/// Returns a 128-bit hash (SplitMix64, twice). Sums of different hashes do not collide by chance.
fn mix(key: u128) -> u128 {
    let half = |seed: u64| {
        let mut z = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    let low = half(key as u64);
    (half(low ^ 0x5851_f42d_4c95_7f2d) as u128) << 64 | low as u128
}
