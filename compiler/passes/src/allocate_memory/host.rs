//! Memory of the fast engine: the same packing on a machine of one tile.
//!
//! Invariant: persistent variables overlap nothing; offsets are multiples of [`ALIGN`].

use super::pack::{Effort, Item, STEPS, pack};
use super::space::Space;
use crate::liveness::Liveness;
use cranelift_entity::EntityRef;
use girder_ir::graph::Graph;
use girder_ir::layout::HostLayout;

/// One cache line, and the widest vector of any host.
pub const ALIGN: u64 = 64;

/// One block for all variables: persistent ones in the order of their ids, then temporaries by live range. The search
/// is longer where the result exceeds `limit` bytes.
pub fn pack_for_host(graph: &Graph, liveness: &Liveness, limit: u64) -> HostLayout {
    let mut layout = HostLayout { offsets: vec![0; graph.vars.len()], bytes: 0 };
    let (mut items, mut vars) = (vec![], vec![]);
    for (id, var) in &graph.vars {
        if var.is_persistent() {
            layout.offsets[id.index()] = layout.bytes;
            layout.bytes += var.bytes().next_multiple_of(ALIGN);
        } else {
            items.push(Item::plain(var.bytes(), liveness.ranges[id.index()].clone().unwrap_or(0..0)));
            vars.push(id);
        }
    }
    let packing = pack(&items, &Space::plain(layout.bytes, ALIGN), Effort { enough: limit, steps: STEPS });
    for (&id, address) in vars.iter().zip(&packing.address) {
        layout.offsets[id.index()] = *address;
    }
    layout.bytes = layout.bytes.max(packing.peak);
    layout
}
