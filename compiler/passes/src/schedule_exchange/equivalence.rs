//! Equivalence classes of phases. Phases that move the same numbers of words between the same tiles have one schedule,
//! such as those of steps that alternate between two variables.
//!
//! Invariant: the phases of a class differ only in the addresses of words on their tiles, on which no schedule depends.

use girder_ir::plan::{Phase, To, Transfer};
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};

/// The classes of some phases.
pub(super) struct Classes {
    /// The first phase of each class.
    pub first: Vec<usize>,
    /// The class of each phase.
    pub of: Vec<usize>,
}

/// Returns the classes of some phases.
pub(super) fn classes(phases: &[&Phase]) -> Classes {
    let mut known: FxHashMap<u64, Vec<usize>> = FxHashMap::default();
    let mut classes = Classes { first: vec![], of: vec![] };
    for (k, phase) in phases.iter().enumerate() {
        let candidates = known.entry(hash(phase)).or_default();
        let class = candidates.iter().copied().find(|&c| are_equivalent(phases[classes.first[c]], phase));
        classes.of.push(class.unwrap_or(classes.first.len()));
        if class.is_none() {
            candidates.push(classes.first.len());
            classes.first.push(k);
        }
    }
    classes
}

/// Returns the part of a transfer that matters for scheduling: its sender, its receiver or group, and its words.
fn form(transfer: &Transfer) -> (u32, bool, u32, u32) {
    let (one, to) = match transfer.to {
        To::One(loc) => (true, loc.tile),
        To::Group { group, .. } => (false, group),
    };
    (transfer.from.tile, one, to, transfer.words)
}

fn hash(phase: &Phase) -> u64 {
    let mut hasher = FxHasher::default();
    phase.transfers.iter().for_each(|t| form(t).hash(&mut hasher));
    phase.groups.iter().flatten().for_each(|place| place.tile.hash(&mut hasher));
    hasher.finish()
}

fn are_equivalent(a: &Phase, b: &Phase) -> bool {
    a.transfers.iter().map(form).eq(b.transfers.iter().map(form))
        && a.groups.len() == b.groups.len()
        && a.groups.iter().zip(&b.groups).all(|(a, b)| a.iter().map(|l| l.tile).eq(b.iter().map(|l| l.tile)))
}
