//! Memory of the fast engine: the same packing on a machine of one tile.
//!
//! Invariant: persistent variables overlap nothing; offsets are multiples of [`ALIGN`], those of long variables of
//! [`PAGE`].

use super::pack::{Effort, Item, STEPS, pack};
use super::space::Space;
use crate::liveness::Liveness;
use cranelift_entity::EntityRef;
use girder_ir::graph::Graph;
use girder_ir::layout::HostLayout;

/// One cache line, and the widest vector of any host.
pub const ALIGN: u64 = 64;
/// A page of the host. Processors tell loads from stores that are under way by the byte in a page first: a loop that reads
/// one long variable and writes another must not find the next element it reads just behind the one it writes.
pub const PAGE: u64 = 4096;

/// Where a variable, or variables of so many bytes on average, may begin.
fn alignment(bytes: u64) -> u64 {
    if bytes >= 4 * PAGE { PAGE } else { ALIGN }
}

/// One block for all variables: persistent ones in the order of their ids, then temporaries by live range. The search
/// is longer where the result exceeds `limit` bytes.
pub fn pack_for_host(graph: &Graph, liveness: &Liveness, limit: u64) -> HostLayout {
    let mut layout = HostLayout { offsets: vec![0; graph.vars.len()], bytes: 0 };
    let (mut items, mut vars) = (vec![], vec![]);
    for (id, var) in &graph.vars {
        if var.is_persistent() {
            let offset = layout.bytes.next_multiple_of(alignment(var.bytes()));
            layout.offsets[id.index()] = offset;
            layout.bytes = offset + var.bytes().next_multiple_of(ALIGN);
        } else {
            items.push(Item::plain(var.bytes(), liveness.ranges[id.index()].clone().unwrap_or(0..0)));
            vars.push(id);
        }
    }
    let sum: u64 = items.iter().map(|i| i.bytes).fold(0, u64::saturating_add);
    let align = alignment(sum / 4 / (items.len() as u64).max(1));
    let packing = pack(&items, &Space::plain(layout.bytes, align), Effort { enough: limit, steps: STEPS });
    for (&id, address) in vars.iter().zip(&packing.address) {
        layout.offsets[id.index()] = *address;
    }
    layout.bytes = layout.bytes.max(packing.peak);
    layout
}
