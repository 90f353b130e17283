//! The number of executions of compute sets, copies and packets, as far as the text determines it.
//!
//! Invariant: the number of steps visited does not grow with trip counts or with the number of paths through calls.

use crate::steps::callers_first;
use cranelift_entity::SecondaryMap;
use girder_ir::graph::Graph;
use girder_ir::ids::{ComputeSetId, CopyId, ProgramId, StepId};
use girder_ir::program::{Effect, StepKind};

/// The assumed trip count of a `while`. Only its weight against steps outside it depends on this.
const WHILE_ITERATIONS: u64 = 16;
/// The largest weight, so that sums of weighted times do not overflow.
const MOST: u64 = 1 << 40;

/// The executions in one run of every program.
#[derive(Default)]
pub(super) struct Executions {
    pub sets: SecondaryMap<ComputeSetId, u64>,
    pub copies: SecondaryMap<CopyId, u64>,
    pub packets: SecondaryMap<StepId, u64>,
}

impl Executions {
    pub(super) fn of(graph: &Graph) -> Executions {
        let mut executions = Executions::default();
        let mut runs: SecondaryMap<ProgramId, u64> = SecondaryMap::new();
        for (id, program) in &graph.programs {
            runs[id] = u64::from(program.entry);
        }
        // Callers come before the programs that they call, so each body is visited once with all its runs.
        for id in callers_first(graph) {
            let times = runs[id];
            if times > 0 {
                executions.walk(graph, graph.programs[id].body, times, &mut runs);
            }
        }
        executions
    }

    fn walk(&mut self, graph: &Graph, id: StepId, times: u64, runs: &mut SecondaryMap<ProgramId, u64>) {
        let add = |sum: &mut u64| *sum = sum.saturating_add(times).min(MOST);
        let step = &graph.steps[id];
        let inside = match &step.kind {
            StepKind::Execute(set) => return add(&mut self.sets[*set]),
            StepKind::Copy(copy) => return add(&mut self.copies[*copy]),
            StepKind::Call(program) => return add(&mut runs[*program]),
            StepKind::Effect(Effect::Read { .. } | Effect::Write { .. }) => return add(&mut self.packets[id]),
            StepKind::Repeat { count, .. } => times.saturating_mul(*count).min(MOST),
            StepKind::While { .. } => times.saturating_mul(WHILE_ITERATIONS).min(MOST),
            _ => times,
        };
        if inside > 0 {
            step.children().into_iter().for_each(|s| self.walk(graph, s, inside, runs));
        }
    }
}
