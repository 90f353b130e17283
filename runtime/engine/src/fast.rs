//! Mode `fast`: one arena laid out for a machine of one tile; vertices read and write all elements where they are.
//!
//! It executes a [`HostPlan`](girder_host::HostPlan). A family is one compiled loop over its instances. Fields whose
//! elements do not have one stride per axis are fetched into scratch memory before a vertex and sent back after it.
//! Matrix products are native, fused steps are one launch, copies are lists of moves.
//!
//! - `code` is a plan with its compiled kernels; `build` makes the tasks of its steps.
//! - [`cache_blocks`](crate::cache_blocks) runs neighbouring steps block by block.
//!
//! Invariant: every variable is at its offset of the host layout; scratch memory follows all variables, and the parts
//! of the vertices of a compute set are disjoint.

mod build;
mod code;

pub use code::FastCode;

use crate::arena::Arena;
use crate::cache_blocks::block_tasks;
use crate::counts::Counted;
use crate::error::EngineError;
use crate::pool::Pool;
use crate::store::{Store, VertexStop};
use crate::task::{Task, Tasks};
use build::Build;
use cranelift_entity::SecondaryMap;
use girder_codelet::cost::CountedBlocks;
use girder_host::{StepGroup, SummedProducts};
use girder_ir::graph::Graph;
use girder_ir::ids::{ComputeSetId, CopyId, StepId, VarId};
use girder_ir::program::StepKind;
use girder_ir::stage::Allocated;
use girder_ir::trace::Counts;
use girder_ir::view::Run;
use girder_source::Session;

/// The memory of mode `fast`.
pub(crate) struct Fast<'e> {
    graph: &'e Graph,
    offsets: &'e [u64],
    pool: Pool<Tasks>,
    sets: SecondaryMap<ComputeSetId, usize>,
    copies: SecondaryMap<CopyId, usize>,
    /// Steps that start a group which runs at once: the number of steps, and the task.
    grouped: SecondaryMap<StepId, Option<(usize, usize)>>,
    counts: bool,
    counted: Counted,
}

impl<'e> Fast<'e> {
    /// Returns the memory with all variables zero.
    pub(crate) fn new(
        allocated: &'e Allocated,
        code: &FastCode,
        counting: Option<&CountedBlocks>,
        workers: u32,
        threads: usize,
        session: &Session,
    ) -> Result<Fast<'e>, EngineError> {
        let limited = code.within(allocated, counting, workers, session.limits.total_iterations)?;
        let code = limited.as_ref().unwrap_or(code);
        let bytes = code.plan.var_bytes.saturating_add(code.plan.scratch_bytes);
        let arena = Arena::zeroed(bytes, session.limits.host_bytes)?;
        let build = Build { allocated, code, counting, bytes: arena.bytes() };
        let (mut sets, mut copies, mut tasks) = (SecondaryMap::new(), SecondaryMap::new(), Vec::new());
        for id in allocated.sets.keys() {
            sets[id] = tasks.len();
            tasks.push(build.set(id, threads)?);
        }
        for id in allocated.copies.keys() {
            copies[id] = tasks.len();
            tasks.push(Task::moves(build.copy(id), threads, build.bytes)?);
        }
        let mut grouped: SecondaryMap<StepId, Option<(usize, usize)>> = SecondaryMap::new();
        for (step, summed) in code.plan.summed.iter() {
            if let Some(summed) = summed {
                grouped[step] = Some((SummedProducts::STEPS, tasks.len()));
                tasks.push(build.summed(summed, threads)?);
            }
        }
        for (step, fused) in code.plan.fused.iter() {
            if let Some(fused) = fused {
                grouped[step] = Some((fused.steps, tasks.len()));
                tasks.push(build.fused(fused, threads)?);
            }
        }
        for sequence in &code.plan.sequences {
            let task = |step: StepId| match allocated.steps[step].kind {
                StepKind::Execute(set) => Some(sets[set]),
                StepKind::Copy(copy) => Some(copies[copy]),
                _ => None,
            };
            let of_group = |g: &StepGroup| grouped[g.first].map(|(_, task)| task).or_else(|| task(g.first));
            let run: Option<Vec<usize>> = sequence.iter().map(of_group).collect();
            let run = run.ok_or_else(|| EngineError::Internal("a sequence has a step without a task".into()))?;
            let mut groups = &sequence[..];
            for (count, blocked) in block_tasks(&tasks, &run, threads.max(1), build.bytes)? {
                let (taken, rest) = groups.split_at(count);
                if let Some(task) = blocked {
                    grouped[taken[0].first] = Some((taken.iter().map(|g| g.steps).sum(), tasks.len()));
                    tasks.push(task);
                }
                groups = rest;
            }
        }
        let tasks = Tasks::new(arena, tasks, workers, session);
        let (pool, counted, counts) = (Pool::new(tasks, threads), Counted::default(), counting.is_some());
        Ok(Fast { graph: allocated, offsets: &allocated.host.offsets, pool, sets, copies, grouped, counts, counted })
    }
}

impl Store for Fast<'_> {
    fn execute(&mut self, set: ComputeSetId) -> Result<(), VertexStop> {
        self.pool.run(self.sets[set]);
        if self.counts {
            self.pool.work().gather(self.sets[set], &mut self.counted);
        }
        self.pool.work().outcome()
    }

    fn counts(&self) -> &dyn Counts {
        &self.counted
    }

    fn copy(&mut self, copy: CopyId) {
        self.pool.run(self.copies[copy]);
    }

    fn grouped(&mut self, first: StepId) -> Result<usize, VertexStop> {
        let Some((steps, task)) = self.grouped[first] else { return Ok(0) };
        self.pool.run(task);
        self.pool.work().outcome()?;
        Ok(steps)
    }

    fn read(&self, run: Run, into: &mut [u8]) {
        let (at, step, size) = run_bytes(self.graph, self.offsets, run);
        self.pool.work().arena().read(at as u64, step, size, into);
    }

    fn write(&mut self, run: Run, from: &[u8]) {
        let (at, step, size) = run_bytes(self.graph, self.offsets, run);
        self.pool.work().arena().write(at as u64, step, size, from);
    }
}

/// Returns the first byte of a run, the bytes from element to element, and the bytes of an element.
fn run_bytes(graph: &Graph, offsets: &[u64], run: Run) -> (i64, i64, usize) {
    let size = graph.vars[run.var].ty.bytes();
    let at = byte(offsets, run.var, run.start as i64, size);
    (at, run.stride * size as i64, size as usize)
}

/// Returns the byte of an element.
fn byte(offsets: &[u64], var: VarId, element: i64, size: u32) -> i64 {
    offsets[var.as_u32() as usize] as i64 + element * size as i64
}
