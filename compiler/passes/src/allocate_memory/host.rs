//! The memory of the fast engine, packed like that of a machine of one tile.
//!
//! Invariant: persistent variables overlap nothing. Offsets are multiples of [`ALIGN`], and those of long variables
//! multiples of [`PAGE`].

use super::pack::{Effort, Item, STEPS, pack};
use super::space::Space;
use crate::liveness::Liveness;
use cranelift_entity::{EntityRef, EntitySet};
use girder_ir::codelet::{Stmt, StmtBlock};
use girder_ir::graph::Graph;
use girder_ir::ids::VarId;
use girder_ir::layout::HostLayout;

/// The size of a cache line, which is also the widest vector of any host.
pub const ALIGN: u64 = 64;
/// The size of a page. Processors first match loads with pending stores by the byte within a page, so a loop that reads
/// one long variable and writes another must not read just after the position that it writes.
pub const PAGE: u64 = 4096;

/// Returns the alignment of a variable, or of variables of this average size.
fn alignment(bytes: u64) -> u64 {
    if bytes >= 4 * PAGE { PAGE } else { ALIGN }
}

/// Returns the variables that products read. They stay for one more step, so that the product can write the result of
/// that step, the sums of its parts, in place.
fn factors(graph: &Graph) -> EntitySet<VarId> {
    fn has_amp(block: &StmtBlock) -> bool {
        block.iter().any(|stmt| matches!(stmt, Stmt::Amp(_)) || stmt.blocks().any(has_amp))
    }
    let products = graph.families.values().filter(|f| has_amp(&graph.codelets[f.codelet].body));
    let mut vars = EntitySet::new();
    products.flat_map(|f| &f.fields).flat_map(|f| &f.parts).for_each(|p| _ = vars.insert(p.var));
    vars
}

/// Returns one block for all variables: persistent ones in the order of their ids, then temporaries by live range. The
/// search is longer if the result exceeds `limit` bytes.
pub fn pack_for_host(graph: &Graph, liveness: &Liveness, limit: u64) -> HostLayout {
    let mut layout = HostLayout { offsets: vec![0; graph.vars.len()], bytes: 0 };
    let factors = factors(graph);
    let (mut items, mut vars) = (vec![], vec![]);
    for (id, var) in &graph.vars {
        if var.is_persistent() {
            let offset = layout.bytes.next_multiple_of(alignment(var.bytes()));
            layout.offsets[id.index()] = offset;
            layout.bytes = offset + var.bytes().next_multiple_of(ALIGN);
        } else {
            let mut range = liveness.ranges[id.index()].clone().unwrap_or(0..0);
            range.end += u32::from(factors.contains(id));
            items.push(Item::plain(var.bytes(), range));
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
