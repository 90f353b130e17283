//! Which programs call which.
//!
//! Invariant: calls do not recurse; elaboration refuses programs that call themselves.

use girder_ir::graph::Graph;
use girder_ir::ids::ProgramId;
use girder_ir::program::StepKind;
use petgraph::algo::toposort;
use petgraph::graphmap::DiGraphMap;

/// Returns all programs, each after those that call it.
pub(crate) fn callers_first(graph: &Graph) -> Vec<ProgramId> {
    let mut calls: DiGraphMap<ProgramId, ()> = DiGraphMap::new();
    for (id, program) in &graph.programs {
        calls.add_node(id);
        for step in crate::liveness::steps_of(graph, program.body) {
            if let StepKind::Call(callee) = graph.steps[step].kind {
                calls.add_edge(id, callee, ());
            }
        }
    }
    toposort(&calls, None).expect("elaboration refuses recursive programs")
}
