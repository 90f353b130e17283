//! The blocks that are placed so far, by address and by time.
//!
//! Neighbouring blocks with equal live ranges are merged: most of a tile's blocks are always live and form one row from
//! the bottom.
//!
//! Invariant: a block does not overlap anything that is live with it.

use super::pack::Item;
use std::ops::Range;

#[derive(Clone)]
struct PlacedBlock {
    start: u64,
    end: u64,
    live: Range<u32>,
}

/// The blocks that are placed so far; see the module.
pub(super) struct Shelf {
    all: Vec<PlacedBlock>,
    /// By span, the blocks that are live in few spans.
    spans: Vec<Vec<PlacedBlock>>,
    /// The other blocks.
    lasting: Vec<PlacedBlock>,
    /// The number of points in a span.
    width: u32,
}

/// The number of spans of time; spans are used from `MANY` items on. An item of more than `FEW_SPANS` spans belongs to
/// none, and searches all blocks.
const SPANS: u32 = 512;
const MANY: usize = 1_000;
const FEW_SPANS: usize = 3;

impl Shelf {
    /// Creates an empty shelf for `items`, which will be placed.
    pub fn new(items: &[Item]) -> Shelf {
        let points = items.iter().map(|i| i.live.end).filter(|&e| e != u32::MAX).max().unwrap_or(0);
        let spans = if items.len() >= MANY { vec![vec![]; SPANS as usize] } else { vec![] };
        Shelf { all: vec![], spans, lasting: vec![], width: (points / SPANS).max(16) }
    }

    /// Returns the spans that overlap a live range; none if there are too few items for spans.
    fn spans(&self, live: &Range<u32>) -> Range<usize> {
        if self.spans.is_empty() {
            return 0..0;
        }
        let last = SPANS - 1;
        let (first, end) = ((live.start / self.width).min(last), (live.end.saturating_sub(1) / self.width).min(last));
        first as usize..end as usize + 1
    }

    /// Places a block.
    pub fn put(&mut self, bytes: Range<u64>, live: Range<u32>) {
        let placed = PlacedBlock { start: bytes.start, end: bytes.end, live };
        let spans = self.spans(&placed.live);
        if spans.len() > FEW_SPANS {
            insert(&mut self.lasting, placed.clone());
        } else {
            spans.for_each(|span| insert(&mut self.spans[span], placed.clone()));
        }
        insert(&mut self.all, placed);
    }

    /// Returns the lowest address from `floor` on at which `bytes` overlap no block that is live with `live`.
    pub fn lowest(&self, live: &Range<u32>, bytes: u64, floor: u64) -> u64 {
        let spans = self.spans(live);
        if spans.is_empty() || spans.len() > FEW_SPANS {
            return lowest(self.all.iter(), live, bytes, floor);
        }
        let near = self.spans[spans].iter().flatten().chain(&self.lasting);
        let mut near: Vec<&PlacedBlock> = near.filter(|p| meets(&p.live, live)).collect();
        near.sort_unstable_by_key(|p| p.start);
        lowest(near.into_iter(), live, bytes, floor)
    }
}

fn insert(list: &mut Vec<PlacedBlock>, placed: PlacedBlock) {
    let at = list.partition_point(|p| p.start <= placed.start);
    match list[..at].last_mut() {
        Some(before) if before.end == placed.start && before.live == placed.live => before.end = placed.end,
        _ => list.insert(at, placed),
    }
}

fn meets(a: &Range<u32>, b: &Range<u32>) -> bool {
    a.start.max(b.start) < a.end.min(b.end)
}

/// Returns the lowest free address as [`Shelf::lowest`] does, among blocks that ascend by address.
fn lowest<'a>(placed: impl Iterator<Item = &'a PlacedBlock>, live: &Range<u32>, bytes: u64, floor: u64) -> u64 {
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
