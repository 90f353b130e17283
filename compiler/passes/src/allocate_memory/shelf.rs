//! What is placed so far, by address and by time.
//!
//! What stands side by side and is live at the same time is one: most of what a tile holds is always live, and stands
//! in one row from the bottom.
//!
//! Invariant: what is put does not overlap anything that is live with it.

use super::pack::Item;
use std::ops::Range;

#[derive(Clone)]
struct Placed {
    start: u64,
    end: u64,
    live: Range<u32>,
}

/// What is placed so far, ascending by address: all of it, and again by spans of time, so that a short item looks only
/// at what is near it.
pub(super) struct Shelf {
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
    /// Empty; `items` are those that will come.
    pub fn new(items: &[Item]) -> Shelf {
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

    /// Takes bytes for a time.
    pub fn put(&mut self, bytes: Range<u64>, live: Range<u32>) {
        let placed = Placed { start: bytes.start, end: bytes.end, live };
        for span in self.spans(&placed.live) {
            insert(&mut self.spans[span], placed.clone());
        }
        insert(&mut self.all, placed);
    }

    /// The lowest address from `floor` on at which `bytes` clear everything that is live with `live`.
    pub fn lowest(&self, live: &Range<u32>, bytes: u64, floor: u64) -> u64 {
        let spans = self.spans(live);
        match &self.spans[spans.clone()] {
            [one] => lowest(one.iter(), live, bytes, floor),
            few if (2..=FEW_SPANS).contains(&few.len()) => {
                let mut near: Vec<&Placed> = few.iter().flatten().filter(|p| meets(&p.live, live)).collect();
                near.sort_unstable_by_key(|p| p.start);
                lowest(near.into_iter(), live, bytes, floor)
            }
            _ => lowest(self.all.iter(), live, bytes, floor),
        }
    }
}

fn insert(list: &mut Vec<Placed>, placed: Placed) {
    let at = list.partition_point(|p| p.start <= placed.start);
    match list[..at].last_mut() {
        Some(before) if before.end == placed.start && before.live == placed.live => before.end = placed.end,
        _ => list.insert(at, placed),
    }
}

fn meets(a: &Range<u32>, b: &Range<u32>) -> bool {
    a.start.max(b.start) < a.end.min(b.end)
}

/// As [`Shelf::lowest`], among what ascends by address.
fn lowest<'a>(placed: impl Iterator<Item = &'a Placed>, live: &Range<u32>, bytes: u64, floor: u64) -> u64 {
    let mut at = floor;
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
