//! The requests of codelets about memory blocks, and which of them hold at given addresses.
//!
//! The address of a field is that of the block that contains it: the block of its variable, or its landing buffer. Two
//! fields in one block cannot be in different memory elements.
//!
//! Invariant: [`HeldRequests`] follow from the addresses alone.

use super::space::{ALIGN, Space, Zone};
use super::spread::Spread;
use crate::sizes::Costs;
use girder_codelet::cost::{FieldRequest, MemFacts};
use girder_ir::codelet::Codelet;
use girder_ir::graph::Graph;
use girder_ir::ids::{ComputeSetId, FamilyId, FieldId, SpecId};
use girder_ir::layout::{Content, MemoryBlock};
use girder_ir::plan::{FieldLocation, FieldLocations};
use girder_ir::stage::{Allocated, Planned};
use girder_machine::Machine;
use indexmap::IndexMap;
use rustc_hash::{FxBuildHasher, FxHashMap};

/// A property of blocks that would make vertices faster.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub(super) enum BlockRequest {
    /// Two blocks of a tile share no memory element.
    Apart(Content, Content),
    /// A block is in interleaved memory.
    Interleaved(Content),
    /// The address of a block has a residue modulo a power of two above [`ALIGN`].
    Aligned(Content, u32, u32),
}

/// Returns the requests of the codelets of a graph about their fields.
pub(super) fn field_requests(graph: &Graph, costs: &Costs) -> Vec<(SpecId, Vec<FieldRequest>)> {
    let of = |id| Some((id, costs[id].as_ref()?.requests().to_vec()));
    graph.codelets.keys().filter_map(of).filter(|(_, requests)| !requests.is_empty()).collect()
}

/// Returns the fields of a codelet that ask for an alignment in bytes.
pub(super) fn aligned(codelet: &Codelet) -> impl Iterator<Item = (FieldId, u32)> {
    codelet.edges().filter(|(_, decl)| decl.align > 1).map(|(id, decl)| (id, decl.align))
}

/// Returns all requests of a program about blocks, and their tiles.
pub(super) fn of(input: &Planned, field_requests: &[(SpecId, Vec<FieldRequest>)]) -> Vec<(BlockRequest, Spread)> {
    let mut ranks = Ranks::default();
    let mut requests: IndexMap<BlockRequest, Vec<u32>, FxBuildHasher> = IndexMap::default();
    let mut last = None;
    let mut add = |tile: u32, request: BlockRequest| {
        if last.replace((tile, request)) != Some((tile, request)) {
            requests.entry(request).or_default().push(tile);
        }
    };
    for (id, family) in &input.families {
        let of_codelet = field_requests.iter().find(|r| r.0 == family.codelet);
        for &request in of_codelet.iter().flat_map(|r| &r.1) {
            each(input, &mut ranks, id, fields(request), |tile, a, b| {
                match b {
                    Some(b) if a.0 == b => {}
                    Some(b) => add(tile, BlockRequest::Apart(a.0.min(b), a.0.max(b))),
                    None => add(tile, BlockRequest::Interleaved(a.0)),
                }
                true
            });
        }
        for (field, align) in aligned(&input.codelets[family.codelet]) {
            each(input, &mut ranks, id, (field, None), |tile, (content, offset), _| {
                let at = offset.wrapping_neg().rem_euclid(i64::from(align)) as u32;
                // Blocks always begin at multiples of `ALIGN`, so only a larger alignment is a request.
                if u64::from(align) > ALIGN && u64::from(at).is_multiple_of(ALIGN) {
                    add(tile, BlockRequest::Aligned(content, at, align));
                }
                true
            });
        }
    }
    let spread = |(request, mut tiles): (BlockRequest, Vec<u32>)| {
        tiles.sort_unstable();
        tiles.dedup();
        (request, Spread::of_tiles(tiles.into_iter().map(|t| (t, 1)).collect()))
    };
    requests.into_iter().map(spread).collect()
}

/// The numbers of buffers in the layout, by compute set.
#[derive(Default)]
struct Ranks(FxHashMap<ComputeSetId, Vec<u32>>);

/// Returns the fields of a request.
fn fields(request: FieldRequest) -> (FieldId, Option<FieldId>) {
    match request {
        FieldRequest::DifferentElements(a, b) => (a, Some(b)),
        FieldRequest::Interleaved(a) => (a, None),
    }
}

/// Calls `f(tile, (block, offset of the first element), block of the other field)` for one or two fields, vertex by
/// vertex, until it returns `false`. Vertices whose fields are empty are skipped.
fn each(
    input: &Planned,
    ranks: &mut Ranks,
    id: FamilyId,
    (a, b): (FieldId, Option<FieldId>),
    mut f: impl FnMut(u32, (Content, i64), Option<Content>) -> bool,
) {
    let family = &input.families[id];
    // The buffers of a compute set are on the replica's own tiles.
    let ranks = ranks.0.entry(family.set).or_insert_with(|| input.plan.sets[family.set].buffer_ranks(u32::MAX));
    let place = |field: FieldId| {
        let k = family.fields.iter().position(|f| f.field == field)?;
        let part = family.fields[k].parts.first().filter(|_| !family.fields[k].is_empty())?;
        let locations: &FieldLocations = input.plan.locations[id].get(k)?;
        Some(|instance: usize| match *locations.at.get(instance)? {
            FieldLocation::InPlace(base) => Some((Content::Var(part.var), i64::from(base))),
            FieldLocation::Buffer { buffer, offset } => {
                Some((Content::SetBuffer(family.set, *ranks.get(buffer as usize)?), i64::from(offset)))
            }
        })
    };
    let (a, b) = (place(a), b.map(place));
    let (Some(a), Some(map)) = (a, &input.placement.families[id]) else { return };
    for (instance, tile) in map.iter(&family.domain).enumerate() {
        let Some(first) = a(instance) else { return };
        let second = match &b {
            Some(b) => match b.as_ref().and_then(|b| b(instance)) {
                None => return,
                Some(second) => Some(second.0),
            },
            None => None,
        };
        if !f(tile, first, second) {
            return;
        }
    }
}

/// The requests that hold for vertices, by the addresses of their blocks.
pub struct HeldRequests<'a> {
    allocated: &'a Allocated,
    space: Space,
    usable: u64,
    ranks: Ranks,
}

impl<'a> HeldRequests<'a> {
    /// Finds the requests that hold in a layout.
    pub fn new(allocated: &'a Allocated, machine: &Machine) -> HeldRequests<'a> {
        let (space, usable) = (Space::of_tile(machine, ALIGN), machine.usable_bytes() as u64);
        HeldRequests { allocated, space, usable, ranks: Ranks::default() }
    }

    /// Returns the requests that hold for every vertex of a family.
    pub fn of(&mut self, family: FamilyId, requests: &[FieldRequest]) -> MemFacts {
        let granted: Vec<FieldRequest> = requests.iter().copied().filter(|&r| self.holds(family, r)).collect();
        MemFacts::granting(&granted)
    }

    /// Returns whether a request holds for every vertex of a family.
    pub(super) fn holds(&mut self, family: FamilyId, request: FieldRequest) -> bool {
        let HeldRequests { allocated, space, usable, ranks } = self;
        let layout = &allocated.layout;
        let (mut all, mut last) = (true, None);
        each(allocated, ranks, family, fields(request), |tile, (a, _), b| {
            let here = Some((layout.class_of(tile), a, b));
            if last != here {
                last = here;
                let block = |content| layout.class(tile)?.block(content);
                all = match (block(a), b.map(block)) {
                    (Some(a), None) => is_interleaved(space, a, *usable),
                    (Some(x), Some(Some(y))) => b != Some(a) && are_apart(space, x, y),
                    _ => false,
                };
            }
            all
        });
        all
    }

    /// Returns whether a field of every vertex of a family begins at a multiple of some bytes.
    pub(super) fn is_aligned(&mut self, family: FamilyId, field: FieldId, align: u32) -> bool {
        let layout = &self.allocated.layout;
        let mut all = true;
        each(self.allocated, &mut self.ranks, family, (field, None), |tile, (content, offset), _| {
            let block = layout.class(tile).and_then(|class| class.block(content));
            all = block.is_some_and(|b| (i64::from(b.address) + offset).rem_euclid(i64::from(align)) == 0);
            all
        });
        all
    }

    /// Returns whether a request fails because two fields of some vertex are in one block.
    pub(super) fn is_one_block(&mut self, family: FamilyId, request: FieldRequest) -> bool {
        let mut one = false;
        each(self.allocated, &mut self.ranks, family, fields(request), |_, (a, _), b| {
            one = b == Some(a);
            !one
        });
        one
    }
}

fn range(block: &MemoryBlock) -> std::ops::Range<u64> {
    block.address as u64..block.address as u64 + block.bytes as u64
}

fn are_apart(space: &Space, a: &MemoryBlock, b: &MemoryBlock) -> bool {
    let (a, b) = (space.elements(&range(a)), space.elements(&range(b)));
    a.end <= b.start || b.end <= a.start
}

fn is_interleaved(space: &Space, block: &MemoryBlock, usable: u64) -> bool {
    let range = range(block);
    let inside = |z: &std::ops::Range<u64>| z.start <= range.start && range.end <= z.end;
    range.end <= usable && space.zone(Zone::Interleaved).iter().any(inside)
}
