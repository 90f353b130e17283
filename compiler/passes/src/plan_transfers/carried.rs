//! Copies that move in the exchange before the compute set that follows them.
//!
//! # Note: One sync for two
//! A compute set syncs and exchanges before its vertices run. A copy right before it does the same once more. If the
//! two are independent, they need only one sync and one latency: they must obey the race rule as one step, so neither
//! accesses what the other writes. The set's plan then moves for both, and the copy's plan is empty, so the program
//! keeps both steps.
//!
//! Invariant: a copy is carried by at most one set, and a set carries at most one copy; each occurs in one step only.

use crate::check_races::are_independent;
use crate::steps::sequences;
use cranelift_entity::SecondaryMap;
use girder_ir::graph::Graph;
use girder_ir::ids::{ComputeSetId, CopyId};
use girder_ir::program::StepKind;
use girder_source::Cancel;

/// Returns the copy that each compute set carries.
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
                && are_independent(graph, copy, set, cancel)
            {
                carried[set] = Some(copy);
            }
        }
    }
    carried
}
