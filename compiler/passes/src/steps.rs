//! Traversals of the program tree: steps inside a step, steps that follow one another, and programs that call one
//! another.
//!
//! Invariant: steps come in the order of the text. Calls do not recurse; elaboration rejects programs that call
//! themselves.

use cranelift_entity::EntitySet;
use girder_ir::graph::Graph;
use girder_ir::ids::{ProgramId, StepId};
use girder_ir::program::StepKind;
use petgraph::algo::toposort;
use petgraph::graphmap::DiGraphMap;

/// Returns a step and all steps inside it, in the order of the text. Called programs are not entered.
pub(crate) fn steps_of(graph: &Graph, root: StepId) -> impl Iterator<Item = StepId> {
    let mut stack = vec![root];
    std::iter::from_fn(move || {
        let step = stack.pop()?;
        let at = stack.len();
        children(&graph.steps[step].kind, |c| stack.push(c));
        stack[at..].reverse();
        Some(step)
    })
}

/// Calls `f` for each step directly inside a step, in the order of the text.
pub(crate) fn children(kind: &StepKind, mut f: impl FnMut(StepId)) {
    match kind {
        StepKind::Seq(steps) | StepKind::Par(steps) => steps.iter().for_each(|&s| f(s)),
        StepKind::Repeat { body, .. } => f(*body),
        StepKind::While { before, body, .. } => {
            f(*before);
            f(*body);
        }
        StepKind::If { then, els, .. } => {
            f(*then);
            f(*els);
        }
        StepKind::Switch { cases, default, .. } => {
            cases.iter().for_each(|(_, s)| f(*s));
            f(*default);
        }
        StepKind::Execute(_) | StepKind::Copy(_) | StepKind::Call(_) | StepKind::Effect(_) => {}
    }
}

/// Returns the steps, in order, of each sequence that is not inside another one. Nested sequences are flattened.
pub(crate) fn sequences(graph: &Graph) -> impl Iterator<Item = Vec<StepId>> {
    let mut inner: EntitySet<StepId> = EntitySet::new();
    graph.steps.iter().filter_map(move |(id, step)| {
        let StepKind::Seq(all) = &step.kind else { return None };
        inner.extend(all.iter().copied());
        (!inner.contains(id)).then(|| flat(graph, id))
    })
}

fn flat(graph: &Graph, seq: StepId) -> Vec<StepId> {
    let mut out = vec![];
    let mut left = vec![seq];
    while let Some(step) = left.pop() {
        match &graph.steps[step].kind {
            StepKind::Seq(all) => left.extend(all.iter().rev()),
            _ => out.push(step),
        }
    }
    out
}

/// Returns all programs, each after those that call it.
pub(crate) fn callers_first(graph: &Graph) -> Vec<ProgramId> {
    let mut calls: DiGraphMap<ProgramId, ()> = DiGraphMap::new();
    for (id, program) in &graph.programs {
        calls.add_node(id);
        for step in steps_of(graph, program.body) {
            if let StepKind::Call(callee) = graph.steps[step].kind {
                calls.add_edge(id, callee, ());
            }
        }
    }
    toposort(&calls, None).expect("elaboration refuses recursive programs")
}
