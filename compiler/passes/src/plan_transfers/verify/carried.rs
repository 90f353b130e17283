//! Checks that each carried copy directly precedes the compute set that carries it, and collects what carried copies
//! write.
//!
//! Invariant: shares no code with the planner.

use super::memory::Elements;
use girder_ir::graph::Graph;
use girder_ir::ids::{StepId, VarId};
use girder_ir::plan::Plan;
use girder_ir::program::StepKind;

/// Checks that each carried copy has a single step, and that the next step is the only one that executes its set.
///
/// # Errors
/// The first compute set whose copy stands elsewhere.
pub(super) fn check(graph: &Graph, plan: &Plan) -> Result<(), String> {
    for (id, set) in &graph.sets {
        let Some(copy) = plan.sets[id].carries else { continue };
        let Some(carried) = graph.copies.get(copy) else {
            return Err(format!("`{}` carries a copy that does not exist", set.name));
        };
        let makes = |s: &&StepId| matches!(graph.steps[**s].kind, StepKind::Copy(c) if c == copy);
        let executes = |s: &&StepId| matches!(graph.steps[**s].kind, StepKind::Execute(e) if e == id);
        let steps: Vec<StepId> = graph.steps.keys().collect();
        let (one, other) = (steps.iter().filter(makes).count(), steps.iter().filter(executes).count());
        let neighbours = |all: &[StepId]| {
            all.windows(2).any(|pair| {
                let (before, after) = (edge(graph, pair[0], true), edge(graph, pair[1], false));
                before.iter().any(|s| makes(&s)) && after.iter().any(|s| executes(&s))
            })
        };
        let follows = graph.steps.values().any(|s| matches!(&s.kind, StepKind::Seq(all) if neighbours(all)));
        if (one, other) != (1, 1) || !follows {
            return Err(format!("`{}` carries `{}`, which is not the step before it", set.name, carried.name));
        }
    }
    Ok(())
}

/// Returns the last (or the first) step in nested sequences.
fn edge(graph: &Graph, step: StepId, last: bool) -> Option<StepId> {
    match &graph.steps[step].kind {
        StepKind::Seq(all) if last => edge(graph, *all.last()?, last),
        StepKind::Seq(all) => edge(graph, *all.first()?, last),
        _ => Some(step),
    }
}

/// The elements that a carried copy writes: ranges of flat elements by variable.
#[derive(Default)]
pub(super) struct Written(Vec<(VarId, u64, u64)>);

impl Written {
    /// Adds elements.
    pub fn add(&mut self, e: &Elements) {
        match e.stride {
            1 => self.0.push((e.var, e.first, e.first + e.count)),
            _ => self.0.extend((0..e.count).map(|k| (e.var, e.element(k), e.element(k) + 1))),
        }
    }

    /// Returns the ranges in ascending order, as [`Written::first_of`] requires. They are disjoint, because a copy
    /// writes an element once.
    pub fn sorted(mut self) -> Written {
        self.0.sort_unstable();
        self
    }

    /// Returns whether nothing is written.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the first of some elements that is written.
    pub fn first_of(&self, e: &Elements) -> Option<u64> {
        let meets = |first: u64, end: u64| {
            let k = self.0.partition_point(|w| (w.0, w.2) <= (e.var, first));
            self.0.get(k).filter(|w| w.0 == e.var && w.1 < end).map(|w| w.1.max(first))
        };
        match e.stride {
            1 => meets(e.first, e.first + e.count),
            _ => (0..e.count).map(|k| e.element(k)).find_map(|at| meets(at, at + 1)),
        }
    }
}
