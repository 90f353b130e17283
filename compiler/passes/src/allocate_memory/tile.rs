//! The memory of one tile: the zone of each block, and the packing of a class.
//!
//! Blocks that need executable memory come first (code, then local arrays), then blocks that are always live, then the
//! rest by live range. Blocks with requests precede others of their kind. If all blocks fit in executable memory
//! together, local arrays are ordered like the rest.
//!
//! Invariant: equal shapes get equal addresses.

use super::inventory::{Class, Need};
use super::pack::{Effort, Item, Packing, STEPS, largest_live_set, least_peak, pack};
use super::report::code_room;
use super::requests::BlockRequest;
use super::space::{ALIGN, Space, Zone};
use girder_ir::layout::Content;
use girder_machine::Machine;
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};
use std::ops::Range;

/// A size above that of any tile. Sums of it do not overflow.
const MOST: u64 = 1 << 40;

/// The maximal number of requests that are tried one by one if not all can be granted.
const TRIED: usize = 16;

/// The properties of a class that determine its packing: sizes, live ranges and zones of blocks, and requests.
#[derive(Debug)]
pub(super) struct ClassShape<'a> {
    needs: &'a [Need],
    requests: Vec<IndexedRequest>,
    /// The hash of blocks and requests.
    hash: u64,
}

impl ClassShape<'_> {
    fn blocks(&self) -> impl Iterator<Item = (Zone, u64, &Option<Range<u32>>)> {
        self.needs.iter().map(|n| (zone(n.content), n.bytes.min(MOST), &n.live))
    }
}

impl Hash for ClassShape<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.hash.hash(state);
    }
}

impl PartialEq for ClassShape<'_> {
    fn eq(&self, other: &ClassShape) -> bool {
        self.needs.len() == other.needs.len() && self.blocks().eq(other.blocks()) && self.requests == other.requests
    }
}

impl Eq for ClassShape<'_> {}

/// A request about blocks by their index.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum IndexedRequest {
    Apart(u32, u32),
    Interleaved(u32),
    /// Address modulo a power of two.
    Aligned(u32, u32, u32),
}

impl<'a> ClassShape<'a> {
    /// Returns the shape of a class.
    pub fn of(class: &'a Class) -> ClassShape<'a> {
        let index = |content| class.needs.binary_search_by_key(&content, |n| n.content).ok().map(|k| k as u32);
        let place = |request: &BlockRequest| match *request {
            BlockRequest::Apart(a, b) => Some(IndexedRequest::Apart(index(a)?, index(b)?)),
            BlockRequest::Interleaved(a) => Some(IndexedRequest::Interleaved(index(a)?)),
            BlockRequest::Aligned(a, at, align) => Some(IndexedRequest::Aligned(index(a)?, at, align)),
        };
        let requests = class.requests.iter().filter_map(place).collect();
        let mut shape = ClassShape { needs: &class.needs, requests, hash: 0 };
        let mut hasher = FxHasher::default();
        shape.blocks().for_each(|block| block.hash(&mut hasher));
        shape.requests.hash(&mut hasher);
        shape.hash = hasher.finish();
        shape
    }

    /// Returns a peak that no packing is below. It exceeds the memory of a tile if the blocks that need memory that can
    /// run code exceed that memory.
    pub fn least_peak(&self, machine: &Machine) -> u64 {
        let space = Space::of_tile(machine, ALIGN);
        let mut items = self.items(&[], &space);
        let peak = least_peak(&items, &space);
        items.retain(|item| item.zone == Zone::Executable);
        let beyond = largest_live_set(&items, ALIGN).saturating_sub(code_room(machine));
        if beyond == 0 { peak } else { peak.max(u64::from(machine.usable_bytes()) + beyond) }
    }

    /// Returns addresses of its blocks; `shapes` is the number of shapes. If a block would not fit otherwise, requests
    /// are denied, the last ones first.
    pub fn pack(&self, machine: &Machine, shapes: usize) -> Packing {
        let (space, usable) = (Space::of_tile(machine, ALIGN), machine.usable_bytes() as u64);
        let effort = Effort { enough: usable, steps: STEPS * 10 / (shapes as u64).max(10) };
        let pack = |requests: &[IndexedRequest]| pack(&self.items(requests, &space), &space, effort);
        let all = pack(&self.requests);
        let can_fit = || least_peak(&self.items(&[], &space), &space) <= usable;
        if all.peak <= usable || self.requests.is_empty() || !can_fit() {
            return all;
        }
        let mut best = pack(&[]);
        let mut granted = vec![];
        let tried = if best.peak <= usable { TRIED } else { 0 };
        for &request in self.requests.iter().take(tried) {
            granted.push(request);
            let packing = pack(&granted);
            match packing.peak <= usable {
                true => best = packing,
                false => drop(granted.pop()),
            }
        }
        best
    }

    fn items(&self, requests: &[IndexedRequest], space: &Space) -> Vec<Item> {
        // If all blocks fit side by side, no order drives code from executable memory.
        let runs = space.zone(Zone::Executable).first().map_or(0, |z| if z.start == 0 { z.end } else { 0 });
        let few = self.blocks().map(|b| b.1.next_multiple_of(ALIGN)).fold(0, u64::saturating_add) <= runs;
        let item = |(zone, bytes, live): (Zone, u64, &Option<Range<u32>>)| Item {
            zone,
            ..Item::plain(bytes, live.clone().unwrap_or(0..u32::MAX))
        };
        let mut items: Vec<Item> = self.blocks().map(item).collect();
        for &request in requests {
            match request {
                IndexedRequest::Apart(a, b) => {
                    items[a as usize].apart.push(b);
                    items[b as usize].apart.push(a);
                }
                IndexedRequest::Interleaved(a) => items[a as usize].zone = Zone::Interleaved,
                IndexedRequest::Aligned(a, at, align) => {
                    let (old, new) = (&mut items[a as usize].align, (u64::from(at), u64::from(align)));
                    // The first of two conflicting alignments is kept.
                    if new.1 > old.1 && new.0 % old.1 == old.0 {
                        *old = new;
                    }
                }
            }
        }
        for (item, (_, _, live)) in items.iter_mut().zip(self.blocks()) {
            let is_free = item.zone == Zone::Any && item.apart.is_empty() && item.align.1 == 1;
            let zone = if few { Zone::Any } else { item.zone };
            item.rank = match (zone, live, is_free) {
                (Zone::Executable, None, _) => 0,
                (Zone::Executable, Some(_), _) => 1,
                (_, None, false) => 2,
                (_, None, true) => 3,
                (_, Some(_), false) => 4,
                (_, Some(_), true) => 5,
            };
        }
        items
    }
}

/// Returns the zone of a content.
fn zone(content: Content) -> Zone {
    match content {
        // Local arrays are on a worker's stack, which the machine puts beside the code.
        Content::Code(_) | Content::SetExchange(_) | Content::CopyExchange(_) | Content::Stack(_) => Zone::Executable,
        Content::VertexState(_) | Content::Var(_) => Zone::Any,
        Content::SetBuffer(..) | Content::CopyBuffer(..) | Content::Packets(_) => Zone::Any,
    }
}

/// Returns whether a content needs executable memory.
pub(super) fn is_executable(content: Content) -> bool {
    zone(content) == Zone::Executable
}
