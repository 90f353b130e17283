//! Addresses for items that are live for a time: dynamic storage allocation.
//!
//! Minimising the peak is NP-hard. Items are placed one by one, each at the lowest address where it clears all that is
//! placed and live at the same time; of several orders the best result is kept, and where that stays well above the
//! largest live set, what stands at the top is moved forward in the order and all is placed anew.
//!
//! Invariant: items that are live together do not overlap, and none overlaps what was taken; addresses are multiples of
//! the alignment. The result depends only on the arguments.

use std::cmp::Reverse;
use std::ops::Range;

/// Something that needs room for a time.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Item {
    /// How many bytes.
    pub bytes: u64,
    /// When.
    pub live: Range<u32>,
}

/// Where everything went.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Packing {
    /// Of each item.
    pub address: Vec<u64>,
    /// One past the highest byte of items.
    pub peak: u64,
}

/// How often to try again with another order, and for how many items at most.
const TRIES: usize = 200;
const TRIES_MAX_ITEMS: usize = 2_000;
/// After how many tries without success to go back to the best order.
const PATIENCE: usize = 8;

/// Packs items around what is taken for all time (`start..end`, ascending and disjoint). A peak of `enough` needs no
/// further search.
pub fn pack(items: &[Item], taken: &[Range<u64>], align: u64, enough: u64) -> Packing {
    let bound = taken.iter().map(|t| t.end - t.start).sum::<u64>() + largest_live_set(items, align);
    let length = |i: usize| items[i].live.len() as u64;
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by_key(|&i| Reverse(items[i].bytes.saturating_mul(length(i))));
    let mut best = place(items, &order, taken, align);
    let mut best_order = order.clone();
    let keys: [&dyn Fn(usize) -> (u64, u64); 3] = [
        &|i| (u64::MAX - items[i].bytes, items[i].live.start as u64),
        &|i| (items[i].live.start as u64, u64::MAX - items[i].bytes),
        &|i| (u64::MAX - length(i), u64::MAX - items[i].bytes),
    ];
    for key in keys {
        if best.peak <= bound + bound / 50 {
            return best;
        }
        order.sort_by_key(|&i| (key(i), i));
        let packing = place(items, &order, taken, align);
        if packing.peak < best.peak {
            (best, best_order) = (packing, order.clone());
        }
    }
    if best.peak > enough && items.len() <= TRIES_MAX_ITEMS {
        best = improve(items, taken, align, bound, best, best_order);
    }
    best
}

/// Moves what reaches the peak forward in the order, again and again, while the peak is more than a twentieth above
/// the bound: to the front, or (when that has gone in a circle) to a place that a fixed sequence picks.
fn improve(
    items: &[Item],
    taken: &[Range<u64>],
    align: u64,
    bound: u64,
    mut best: Packing,
    mut order: Vec<usize>,
) -> Packing {
    let (mut best_order, mut last) = (order.clone(), best.clone());
    let mut sequence = 1u64;
    for turn in 0..TRIES {
        if best.peak <= bound + bound / 20 {
            break;
        }
        let top = |&i: &usize| last.address[i] + items[i].bytes.next_multiple_of(align) >= last.peak;
        let Some(at) = order.iter().position(top) else { break };
        sequence = sequence.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let to = if turn % 4 == 0 { 0 } else { (sequence >> 33) as usize % (at + 1) };
        order[to..=at].rotate_right(1);
        last = place(items, &order, taken, align);
        if last.peak <= best.peak {
            (best, best_order) = (last.clone(), order.clone());
        } else if turn % PATIENCE == PATIENCE - 1 {
            (last, order) = (best.clone(), best_order.clone());
        }
    }
    best
}
/// The greatest sum of rounded sizes that are live at one time: no packing has a lower peak.
pub fn largest_live_set(items: &[Item], align: u64) -> u64 {
    let mut changes: Vec<(u32, bool, u64)> = vec![];
    for item in items.iter().filter(|i| !i.live.is_empty()) {
        let bytes = item.bytes.next_multiple_of(align);
        changes.push((item.live.start, true, bytes));
        changes.push((item.live.end, false, bytes));
    }
    // What ends at a point leaves before what begins there.
    changes.sort_unstable();
    let (mut now, mut most) = (0, 0);
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

/// Places the items in the given order, each at the lowest address that is free for its time.
fn place(items: &[Item], order: &[usize], taken: &[Range<u64>], align: u64) -> Packing {
    let mut shelf = Shelf::new(items);
    for t in taken {
        shelf.put(Placed { start: t.start, end: t.end.next_multiple_of(align), live: 0..u32::MAX });
    }
    let mut packing = Packing { address: vec![0; items.len()], peak: 0 };
    for &i in order {
        let (live, bytes) = (&items[i].live, items[i].bytes.next_multiple_of(align));
        let at = shelf.lowest(live, bytes);
        packing.address[i] = at;
        packing.peak = packing.peak.max(at + bytes);
        if bytes > 0 && !live.is_empty() {
            shelf.put(Placed { start: at, end: at + bytes, live: live.clone() });
        }
    }
    packing
}

#[derive(Clone)]
struct Placed {
    start: u64,
    end: u64,
    live: Range<u32>,
}

/// What is placed so far, ascending by address: all of it, and again by spans of time, so that a short item looks only
/// at what is near it.
struct Shelf {
    all: Vec<Placed>,
    spans: Vec<Vec<Placed>>,
    /// Points of a span.
    width: u32,
}

/// Spans of time, for this many items or more; an item of more spans than `FEW_SPANS` looks at everything.
const SPANS: u32 = 512;
const MANY: usize = 1_000;
const FEW_SPANS: usize = 3;

impl Shelf {
    fn new(items: &[Item]) -> Shelf {
        let points = items.iter().map(|i| i.live.end).filter(|&e| e != u32::MAX).max().unwrap_or(0);
        let spans = if items.len() >= MANY { vec![vec![]; SPANS as usize] } else { vec![] };
        Shelf { all: vec![], spans, width: (points / SPANS).max(16) }
    }

    /// The spans that a live range meets; none if there are too few items for spans.
    fn spans(&self, live: &Range<u32>) -> Range<usize> {
        if self.spans.is_empty() {
            return 0..0;
        }
        let last = SPANS - 1;
        let (first, end) = ((live.start / self.width).min(last), (live.end.saturating_sub(1) / self.width).min(last));
        first as usize..end as usize + 1
    }

    fn put(&mut self, placed: Placed) {
        for span in self.spans(&placed.live) {
            insert(&mut self.spans[span], placed.clone());
        }
        insert(&mut self.all, placed);
    }

    /// The lowest address at which `bytes` clear everything that is live with `live`.
    fn lowest(&self, live: &Range<u32>, bytes: u64) -> u64 {
        let spans = self.spans(live);
        match &self.spans[spans.clone()] {
            [one] => lowest(one.iter(), live, bytes),
            few if (2..=FEW_SPANS).contains(&few.len()) => {
                let mut near: Vec<&Placed> = few.iter().flatten().filter(|p| meets(&p.live, live)).collect();
                near.sort_unstable_by_key(|p| p.start);
                lowest(near.into_iter(), live, bytes)
            }
            _ => lowest(self.all.iter(), live, bytes),
        }
    }
}

fn insert(list: &mut Vec<Placed>, placed: Placed) {
    let at = list.partition_point(|p| p.start <= placed.start);
    list.insert(at, placed);
}

fn meets(a: &Range<u32>, b: &Range<u32>) -> bool {
    a.start.max(b.start) < a.end.min(b.end)
}

/// As [`Shelf::lowest`], among what ascends by address.
fn lowest<'a>(placed: impl Iterator<Item = &'a Placed>, live: &Range<u32>, bytes: u64) -> u64 {
    let mut at = 0;
    for p in placed {
        if p.start >= at + bytes {
            break;
        }
        if meets(&p.live, live) {
            at = at.max(p.end);
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(items: &[Item], taken: &[Range<u64>], align: u64) -> Packing {
        check_with(items, taken, align, 0)
    }

    fn check_with(items: &[Item], taken: &[Range<u64>], align: u64, enough: u64) -> Packing {
        let packing = pack(items, taken, align, enough);
        let end = |i: usize| packing.address[i] + items[i].bytes;
        for i in 0..items.len() {
            assert_eq!(packing.address[i] % align, 0);
            assert!(end(i) <= packing.peak);
            for j in 0..i {
                let (a, b) = (&items[i].live, &items[j].live);
                let together = a.start < b.end && b.start < a.end && !a.is_empty() && !b.is_empty();
                let apart = end(i) <= packing.address[j] || end(j) <= packing.address[i];
                assert!(apart || !together || items[i].bytes == 0 || items[j].bytes == 0, "{i} and {j} overlap");
            }
            for t in taken {
                assert!(end(i) <= t.start || t.end <= packing.address[i] || items[i].live.is_empty());
            }
        }
        packing
    }

    /// What straight programs look like: most values die soon, some live long; sizes repeat.
    fn typical() -> impl Strategy<Value = Vec<Item>> {
        let bytes = prop_oneof![3 => Just(4096u64), 3 => Just(1024), 2 => Just(16384), 2 => 1u64..2000];
        let length = prop_oneof![8 => 2u32..6, 2 => 6u32..40, 1 => 40u32..120];
        prop::collection::vec((bytes, 0u32..120, length), 1..150)
            .prop_map(|v| v.into_iter().map(|(bytes, at, n)| Item { bytes, live: at..at + n }).collect())
    }

    proptest! {
        #[test]
        fn nothing_live_together_overlaps(
            items in prop::collection::vec((0u64..50, 0u32..12, 0u32..12), 0..24),
            hole in 0u64..40,
        ) {
            let items: Vec<Item> = items.into_iter().map(|(bytes, a, n)| Item { bytes, live: a..a + n }).collect();
            check(&items, &[0..8, 8 + hole..30 + hole], 8);
        }

        #[test]
        fn the_peak_is_near_the_largest_live_set(items in typical()) {
            let packing = check(&items, &[], 8);
            let bound = largest_live_set(&items, 8);
            prop_assert!(packing.peak <= bound + bound / 10, "{} of {}", packing.peak, bound);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(8))]
        #[test]
        fn long_programs_pack_as_short_ones(
            items in prop::collection::vec((1u64..400, 0u32..20_000, prop_oneof![9 => 1u32..30, 1 => 1u32..9000]), 900..1400),
        ) {
            let items: Vec<Item> = items.into_iter().map(|(bytes, a, n)| Item { bytes, live: a..a + n }).collect();
            check_with(&items, &[0..24, 32..40], 8, u64::MAX);
        }
    }

    #[test]
    fn two_that_never_meet_share_an_address() {
        let items = [Item { bytes: 100, live: 0..2 }, Item { bytes: 60, live: 2..4 }, Item { bytes: 8, live: 1..3 }];
        let packing = check(&items, &[], 8);
        assert_eq!(packing.address, [0, 0, 104]);
        assert_eq!(packing.peak, 112);
    }
}
