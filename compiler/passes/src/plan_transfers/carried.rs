//! Copies that move in the exchange before the compute set that follows them.
//!
//! # Note: One sync for two
//! A compute set syncs and exchanges before its vertices run; a copy that stands right before it, and has nothing to do with
//! it, does the same once more. Together they need one sync and one latency. That is so if they obey the rule of races
//! as one step: neither touches what the other writes. The set's plan then moves for both, and the copy's is empty, so
//! that the order of steps stays what the program says.
//!
//! Invariant: a copy is carried by at most one set, and a set carries at most one copy; each stands in one step only.

use crate::check_races::apart;
use crate::merge_copies::sequences;
use cranelift_entity::SecondaryMap;
use girder_ir::graph::Graph;
use girder_ir::ids::{ComputeSetId, CopyId};
use girder_ir::program::StepKind;
use girder_source::Cancel;

/// The copy that each compute set carries.
pub(super) fn carried(graph: &Graph, cancel: &Cancel) -> SecondaryMap<ComputeSetId, Option<CopyId>> {
    let (mut sets, mut copies) = (SecondaryMap::<_, u32>::new(), SecondaryMap::<_, u32>::new());
    for step in graph.steps.values() {
        match step.kind {
            StepKind::Execute(set) => sets[set] += 1,
            StepKind::Copy(copy) => copies[copy] += 1,
            _ => {}
        }
    }
    let mut carried = SecondaryMap::new();
    for seq in sequences(graph) {
        for pair in seq.windows(2) {
            if let (&StepKind::Copy(copy), &StepKind::Execute(set)) =
                (&graph.steps[pair[0]].kind, &graph.steps[pair[1]].kind)
                && (copies[copy], sets[set]) == (1, 1)
                && apart(graph, copy, set, cancel)
            {
                carried[set] = Some(copy);
            }
        }
    }
    carried
}
