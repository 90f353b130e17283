//! Whether transfers share few groups of receivers, told from a sample before any group is looked at closely.
//!
//! # Note: Samples of groups
//! What counts is how often the places of a group receive something. So the sample is one of groups, with all of their
//! transfers: those whose number, a sum over their tiles, ends with some zeros. The number of a group with its sender is
//! found from the group's, so that groups which are one but for their senders are counted as one.
//!
//! Invariant: only time depends on it; the time is that of a look at each place of each group and at each transfer.

use super::shop::Blocks;
use girder_ir::plan::{Phase, To};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

/// Transfers that a sample has, about.
const SAMPLE: usize = 1 << 14;

/// Receivers on a processor that are served together: the number of their tiles, and how many these are.
type Part = (u64, u32);

/// About how often the places of groups receive something, of several tiles of a processor from `first` on; by the blocks that
/// the words go to, where these are given.
pub(super) fn sharing(phase: &Phase, (first, count): (u32, u32), transfers: &[u32], blocks: Option<&Blocks>) -> usize {
    let here = |tile: u32| tile.checked_sub(first).filter(|t| *t < count);
    let parts = |group: &Vec<girder_ir::plan::Loc>| {
        let mut parts: SmallVec<[(_, Part); 2]> = SmallVec::new();
        for (tile, loc) in group.iter().filter_map(|l| Some((here(l.tile)?, l))) {
            let place = blocks.map_or((0, 0), |b| b.place(tile, loc));
            match parts.iter_mut().find(|p| p.0 == place) {
                Some((_, part)) => *part = (part.0.wrapping_add(number(tile)), part.1 + 1),
                None => parts.push((place, (number(tile), 1))),
            }
        }
        parts.into_iter().map(|p| p.1).filter(|p| p.1 > 1).collect::<SmallVec<[Part; 2]>>()
    };
    let of_group: Vec<_> = phase.groups.iter().map(parts).collect();
    let zeros = (transfers.len() / SAMPLE).checked_ilog2().map_or(0, |n| n + 1);
    // Of groups as they are, and of groups with their senders: receipts, and the groups.
    let mut found = [(0, FxHashSet::default()), (0, FxHashSet::default())];
    for &t in transfers {
        let transfer = &phase.transfers[t as usize];
        let To::Group { group, .. } = transfer.to else { continue };
        for &(sum, size) in &of_group[group as usize] {
            let with_sender = sum.wrapping_add(number(transfer.from.tile - first));
            for (key, (receipts, groups)) in [sum, with_sender].into_iter().zip(&mut found) {
                if mixed(key).trailing_zeros() >= zeros {
                    *receipts += size as usize;
                    groups.insert((key, size));
                }
            }
        }
    }
    let ratio = |(receipts, groups): &(usize, FxHashSet<Part>)| {
        let places: usize = groups.iter().map(|g| g.1 as usize).sum();
        receipts / places.max(1)
    };
    found.iter().map(ratio).max().unwrap_or(0)
}

/// A number for a tile, sums of which tell sets of tiles apart.
fn number(tile: u32) -> u64 {
    mixed(tile as u64 + 1)
}

fn mixed(key: u64) -> u64 {
    let key = (key ^ key >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    key ^ key >> 29
}
