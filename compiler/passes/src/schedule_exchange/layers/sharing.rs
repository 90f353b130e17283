//! Estimates from a sample whether transfers share few groups of receivers, before any group is examined.
//!
//! # Note: Samples of groups
//! The estimate is the number of receipts per member of a group. The sample consists of groups with all of their
//! transfers. It contains the groups whose number, a sum over their tiles, ends with some zero bits. The number of a
//! group together with its sender is computed from the group's, so groups that differ only by their senders are counted
//! as one.
//!
//! Invariant: only time depends on the result. Each member of each group and each transfer is visited once.

use super::open_shop::Blocks;
use girder_ir::plan::{Phase, To};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

/// The approximate number of transfers in a sample.
const SAMPLE: usize = 1 << 14;

/// Receivers on a processor that are served together: the sum of their tiles' numbers, and their count.
type GroupShare = (u64, u32);

/// Estimates how often the members of groups receive words, for the `count` tiles of a processor from `first` on;
/// separately for each destination block if `blocks` are given.
pub(super) fn sharing(phase: &Phase, (first, count): (u32, u32), transfers: &[u32], blocks: Option<&Blocks>) -> usize {
    let here = |tile: u32| tile.checked_sub(first).filter(|t| *t < count);
    let parts = |group: &Vec<girder_ir::plan::Loc>| {
        let mut parts: SmallVec<[(_, GroupShare); 2]> = SmallVec::new();
        for (tile, loc) in group.iter().filter_map(|l| Some((here(l.tile)?, l))) {
            let place = blocks.map_or((0, 0), |b| b.place(tile, loc));
            match parts.iter_mut().find(|p| p.0 == place) {
                Some((_, part)) => *part = (part.0.wrapping_add(number(tile)), part.1 + 1),
                None => parts.push((place, (number(tile), 1))),
            }
        }
        parts.into_iter().map(|p| p.1).filter(|p| p.1 > 1).collect::<SmallVec<[GroupShare; 2]>>()
    };
    let of_group: Vec<_> = phase.groups.iter().map(parts).collect();
    let zeros = (transfers.len() / SAMPLE).checked_ilog2().map_or(0, |n| n + 1);
    // Receipts and groups; for groups as they are, and for groups with their senders.
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
    let ratio = |(receipts, groups): &(usize, FxHashSet<GroupShare>)| {
        let places: usize = groups.iter().map(|g| g.1 as usize).sum();
        receipts / places.max(1)
    };
    found.iter().map(ratio).max().unwrap_or(0)
}

/// Returns a pseudo-random number for a tile; sums of them identify sets of tiles.
fn number(tile: u32) -> u64 {
    mixed(tile as u64 + 1)
}

fn mixed(key: u64) -> u64 {
    let key = (key ^ key >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    key ^ key >> 29
}
