//! How often compute sets, copies and packets are executed, as far as the text says.
//!
//! Invariant: the number of steps looked at does not grow with trip counts or with the ways through calls.

use crate::calls::callers_first;
use cranelift_entity::SecondaryMap;
use girder_ir::graph::Graph;
use girder_ir::ids::{ComputeSetId, CopyId, ProgramId, StepId};
use girder_ir::program::{Effect, StepKind};

/// Turns that a `while` is taken to have. Only its weight against what runs once depends on it.
const TURNS: u64 = 16;
/// No weight is greater, so that sums of weighted times stay in range.
const MOST: u64 = 1 << 40;

/// Executions in one run of every program.
#[derive(Default)]
pub(super) struct Often {
    pub sets: SecondaryMap<ComputeSetId, u64>,
    pub copies: SecondaryMap<CopyId, u64>,
    pub packets: SecondaryMap<StepId, u64>,
}

impl Often {
    pub(super) fn of(graph: &Graph) -> Often {
        let mut often = Often::default();
        let mut runs: SecondaryMap<ProgramId, u64> = SecondaryMap::new();
        for (id, program) in &graph.programs {
            runs[id] = u64::from(program.entry);
        }
        // Callers before what they call, so that each body is walked once with all its runs.
        for id in callers_first(graph) {
            let times = runs[id];
            if times > 0 {
                often.walk(graph, graph.programs[id].body, times, &mut runs);
            }
        }
        often
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
            StepKind::While { .. } => times.saturating_mul(TURNS).min(MOST),
            _ => times,
        };
        if inside > 0 {
            step.children().into_iter().for_each(|s| self.walk(graph, s, inside, runs));
        }
    }
}
