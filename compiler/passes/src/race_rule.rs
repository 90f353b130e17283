//! The race rule of a step, for the pass that proves it and for those that join steps or move them.
//!
//! `touch` lists what a step accesses, `decide` finds the conflicts among these accesses, and `independence` tells
//! whether two steps may happen at the same time.
//!
//! # Note: Strides first
//! Touches (accesses of one field) are compared per variable, and only for variables that the step writes. Families in
//! closed form are decided by their strides (see [`footprint`](crate::footprint)), and boxes of several runs at any
//! offsets by their corners (`boxes`). If neither decides, every run is marked in a bitmap, which costs a bit per
//! element and a step per run.
//!
//! Invariant: where no conflict is found, there is none. Whatever strides leave open is enumerated.

mod touch;
mod decide;
mod boxes;
mod independence;

pub(crate) use decide::{Conflict, Verdict, decide, decide_branches};
pub(crate) use independence::{JoinedCopies, Touches, are_independent};
pub(crate) use touch::{Touch, Who, of_branches, of_copy, of_copy_by_replica, of_set};

use girder_ir::graph::{Graph, VarClass};
use girder_ir::ids::VarId;

/// Returns the touches of each variable that is written, by ascending variable.
pub(crate) fn by_written_var<'t>(touches: impl Iterator<Item = &'t Touch>) -> Vec<(VarId, Vec<&'t Touch>)> {
    let mut all: Vec<&Touch> = touches.collect();
    all.sort_by_key(|t| t.print.var);
    let groups = all.chunk_by(|a, b| a.print.var == b.print.var);
    groups.filter(|g| g.iter().any(|t| t.written)).map(|g| (g[0].print.var, g.to_vec())).collect()
}

/// Returns whether a variable may not be written.
pub(crate) fn is_constant(graph: &Graph, var: VarId) -> bool {
    graph.vars[var].class == VarClass::Const
}
