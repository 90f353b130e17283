//! Steps that run at once: fusions, and runs of neighbours that go strip by strip.
//!
//! Invariant: a fused task does what its steps do one after the other, and stands at the first of them.

use crate::error::EngineError;
use crate::strips::fuse;
use crate::task::Task;
use cranelift_entity::SecondaryMap;
use girder_ir::graph::Graph;
use girder_ir::ids::{ComputeSetId, CopyId, StepId};
use girder_ir::program::StepKind;

/// Steps at which several run at once: how many, and the task for them.
pub(super) type Fused = SecondaryMap<StepId, Option<(usize, usize)>>;

/// The tasks of single steps.
pub(super) struct Single<'a> {
    pub graph: &'a Graph,
    pub sets: &'a SecondaryMap<ComputeSetId, usize>,
    pub copies: &'a SecondaryMap<CopyId, usize>,
}

impl Single<'_> {
    /// Adds tasks for the steps of each sequence that can run at once, some of which are one already.
    pub fn fuse(
        &self,
        mut fused: Fused,
        tasks: &mut Vec<Task>,
        threads: usize,
        bytes: u64,
    ) -> Result<Fused, EngineError> {
        for step in self.graph.steps.values() {
            let StepKind::Seq(steps) = &step.kind else { continue };
            for run in steps.chunk_by(|a, b| self.task(*a).is_some() == self.task(*b).is_some()) {
                let own = self.tasks(&fused, run);
                let list: Vec<usize> = own.iter().map(|o| o.1).collect();
                let (mut at, mut rest) = (0, &own[..]);
                for (count, together) in fuse(tasks, &list, threads.max(1), bytes)? {
                    let (taken, left) = rest.split_at(count);
                    let steps = taken.iter().map(|o| o.0).sum();
                    if let Some(task) = together {
                        fused[run[at]] = Some((steps, tasks.len()));
                        tasks.push(task);
                    }
                    (at, rest) = (at + steps, left);
                }
            }
        }
        Ok(fused)
    }

    /// The tasks of consecutive steps, each with the steps that it takes.
    fn tasks(&self, fused: &Fused, mut run: &[StepId]) -> Vec<(usize, usize)> {
        let mut own = Vec::new();
        while let [first, ..] = run {
            let Some((steps, task)) = fused[*first].or_else(|| Some((1, self.task(*first)?))) else { break };
            own.push((steps, task));
            run = &run[steps..];
        }
        own
    }

    fn task(&self, step: StepId) -> Option<usize> {
        match self.graph.steps[step].kind {
            StepKind::Execute(set) => Some(self.sets[set]),
            StepKind::Copy(copy) => Some(self.copies[copy]),
            _ => None,
        }
    }
}
