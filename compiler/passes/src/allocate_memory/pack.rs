//! Addresses for items with live ranges: dynamic storage allocation.
//!
//! Minimising the peak is NP-hard. Items are placed one by one, each at the lowest address of its zone that is free
//! during its live range. The best result of several orders is kept. If its peak is too high, items at the top are
//! moved forward in the order and everything is placed again.
//!
//! Invariant: items that are live together do not overlap, none leaves its zone, and none shares a memory element with
//! an item in its `apart` list. Addresses are multiples of the alignment and fit each item's own. The result depends
//! only on the arguments.

use super::shelf::Shelf;
use super::space::{Space, Zone};
use smallvec::SmallVec;
use std::ops::Range;

/// A block to be placed.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Item {
    /// The size in bytes.
    pub bytes: u64,
    /// The live range.
    pub live: Range<u32>,
    /// The zone.
    pub zone: Zone,
    /// The rank: items of lower rank are placed first, in every order.
    pub rank: u8,
    /// The items, by index, with which it must not share a memory element.
    pub apart: SmallVec<[u32; 2]>,
    /// The residue and modulus, a power of two, of its address.
    pub align: (u64, u64),
}

impl Item {
    /// Creates an item without requests.
    pub fn plain(bytes: u64, live: Range<u32>) -> Item {
        Item { bytes, live, zone: Zone::Any, rank: 0, apart: SmallVec::new(), align: (0, 1) }
    }

    /// Returns the first address from `at` on that is aligned.
    fn aligned(&self, at: u64) -> u64 {
        let (rest, align) = self.align;
        at + rest.wrapping_sub(at) % align
    }
}

/// The addresses of items.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Packing {
    /// The address of each item.
    pub address: Vec<u64>,
    /// One past the highest byte of items.
    pub peak: u64,
}

/// The effort of a search.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// The peak at which the search ends.
    pub enough: u64,
    /// The number of items to place in a search, over all tries.
    pub steps: u64,
}

/// The default number of steps of a search.
pub const STEPS: u64 = 100_000;

/// The number of tries without success after which the search returns to the best order.
const PATIENCE: u64 = 8;

/// More items than this that cannot fit are packed only once: packing takes quadratic time.
const MANY: usize = 1_000;
/// More items than this that cannot fit are placed side by side.
const CROWD: usize = 10_000;

/// Returns a peak that no packing is below.
pub(super) fn least_peak(items: &[Item], space: &Space) -> u64 {
    // An item that is never live may overlap anything, but has an address too.
    let unused = items.iter().filter(|i| i.live.is_empty()).map(|i| i.bytes.next_multiple_of(space.align)).max();
    space.floor() + largest_live_set(items, space.align).max(unused.unwrap_or(0))
}

/// Packs items. The search continues while the peak is above `enough`, or a tenth above the largest live set. Many
/// items that cannot fit are packed once.
pub fn pack(items: &[Item], space: &Space, effort: Effort) -> Packing {
    let bound = least_peak(items, space);
    let can_fit = bound <= effort.enough || items.len() <= MANY;
    if !can_fit && items.len() > CROWD {
        return side_by_side(items, space);
    }
    let length = |i: usize| items[i].live.len() as u64;
    let keys: [&dyn Fn(usize) -> (u64, u64); 4] = [
        &|i| (u64::MAX - items[i].bytes.saturating_mul(length(i)), 0),
        &|i| (u64::MAX - items[i].bytes, items[i].live.start as u64),
        &|i| (items[i].live.start as u64, u64::MAX - items[i].bytes),
        &|i| (u64::MAX - length(i), u64::MAX - items[i].bytes),
    ];
    let mut order: Vec<usize> = (0..items.len()).collect();
    let mut best: Option<(Packing, Vec<usize>)> = None;
    for key in keys {
        order.sort_by_cached_key(|&i| (items[i].rank, key(i), i));
        let packing = place_items(items, &order, space);
        if best.as_ref().is_none_or(|(b, _)| packing.peak < b.peak) {
            best = Some((packing, order.clone()));
        }
        if !can_fit || best.as_ref().is_some_and(|(b, _)| b.peak <= bound + bound / 50) {
            break;
        }
    }
    let (best, order) = best.unwrap_or_default();
    if !can_fit {
        return best;
    }
    improve(items, space, bound, effort, best, order)
}

/// Returns a packing without overlaps: each item after all before it, in its zone.
fn side_by_side(items: &[Item], space: &Space) -> Packing {
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by_key(|&i| (items[i].rank, i));
    let mut packing = Packing { address: vec![0; items.len()], peak: space.floor().next_multiple_of(space.align) };
    for i in order {
        let bytes = items[i].bytes.next_multiple_of(space.align);
        let after = |range: &Range<u64>| packing.peak.max(range.start.next_multiple_of(space.align));
        let fits = |range: &&Range<u64>| after(range) + bytes <= range.end;
        // The last range of a zone has no end.
        let at = space.zone(items[i].zone).iter().find(fits).map_or(packing.peak, after);
        packing.address[i] = at;
        packing.peak = at + bytes;
    }
    packing
}

/// Moves an item that reaches the peak forward in the order, repeatedly: to the front of its rank or, if that leads in
/// a circle, to a position from a fixed sequence.
fn improve(
    items: &[Item],
    space: &Space,
    bound: u64,
    effort: Effort,
    mut best: Packing,
    mut order: Vec<usize>,
) -> Packing {
    // Gaps between elements are no reason to search, and `enough` is out of reach if the live set is larger.
    let has_gaps = items.iter().any(|i| i.zone == Zone::Interleaved || !i.apart.is_empty() || i.align.1 > 1);
    let near = if has_gaps { u64::MAX } else { bound + bound / 10 };
    let target = near.min(if bound <= effort.enough { effort.enough } else { u64::MAX });
    let (mut best_order, mut last) = (order.clone(), best.clone());
    let mut sequence = 1u64;
    for iteration in 0..effort.steps / items.len().max(1) as u64 {
        if best.peak <= target {
            break;
        }
        let top = |&i: &usize| last.address[i] + items[i].bytes.next_multiple_of(space.align) >= last.peak;
        let Some(at) = order.iter().position(top) else { break };
        let first = order.partition_point(|&i| items[i].rank < items[order[at]].rank);
        sequence = sequence.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let to = if iteration % 4 == 0 { first } else { first + (sequence >> 33) as usize % (at - first + 1) };
        order[to..=at].rotate_right(1);
        last = place_items(items, &order, space);
        if last.peak <= best.peak {
            (best, best_order) = (last.clone(), order.clone());
        } else if iteration % PATIENCE == PATIENCE - 1 {
            (last, order) = (best.clone(), best_order.clone());
        }
    }
    best
}

/// Returns the greatest sum of rounded sizes that are live at one time: no packing has a lower peak.
pub fn largest_live_set(items: &[Item], align: u64) -> u64 {
    let mut changes: Vec<(u32, bool, u64)> = vec![];
    let mut always = 0;
    for item in items.iter().filter(|i| !i.live.is_empty()) {
        let bytes = item.bytes.next_multiple_of(align);
        if item.live == (0..u32::MAX) {
            always += bytes;
            continue;
        }
        changes.push((item.live.start, true, bytes));
        changes.push((item.live.end, false, bytes));
    }
    // At one point, ends come before beginnings.
    changes.sort_unstable();
    let (mut now, mut most) = (always, always);
    for (_, begins, bytes) in changes {
        if begins {
            now += bytes;
            most = most.max(now);
        } else {
            now -= bytes;
        }
    }
    most
}

/// Places the items in order, each at the lowest address that is free during its live range.
fn place_items(items: &[Item], order: &[usize], space: &Space) -> Packing {
    let mut shelf = Shelf::new(items);
    let mut packing = Packing { address: vec![0; items.len()], peak: 0 };
    let mut placed = vec![false; items.len()];
    for &i in order {
        let bytes = items[i].bytes.next_multiple_of(space.align);
        let others = items[i].apart.iter().map(|&j| j as usize).filter(|&j| placed[j] && items[j].bytes > 0);
        let barred = others.map(|j| space.elements(&(packing.address[j]..packing.address[j] + items[j].bytes)));
        let at = lowest(&items[i], bytes, &shelf, space, &barred.collect::<SmallVec<[_; 2]>>());
        packing.address[i] = at;
        placed[i] = true;
        packing.peak = packing.peak.max(at + bytes);
        if bytes > 0 && !items[i].live.is_empty() {
            shelf.put(at..at + bytes, items[i].live.clone());
        }
    }
    packing
}

/// Returns the lowest address in its zone where an item overlaps no other and no barred element.
fn lowest(item: &Item, bytes: u64, shelf: &Shelf, space: &Space, barred: &[Range<u64>]) -> u64 {
    let mut at = 0;
    for range in space.zone(item.zone) {
        at = range.start.max(space.floor()).next_multiple_of(space.align);
        loop {
            at = shelf.lowest(&item.live, bytes, at);
            if item.aligned(at) > at {
                at = item.aligned(at);
                continue;
            }
            match barred.iter().find(|b| at < b.end && b.start < at + bytes) {
                Some(b) => at = b.end.next_multiple_of(space.align),
                None => break,
            }
        }
        if at + bytes <= range.end {
            break;
        }
    }
    at
}

#[cfg(test)]
mod tests;
