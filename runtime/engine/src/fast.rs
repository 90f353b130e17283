//! Mode `fast`: one arena laid out for a machine of one tile; vertices read and write all elements where they are.
//!
//! It executes a [`HostPlan`](girder_host::HostPlan). A family is one compiled loop over its instances. Fields whose
//! elements do not have one stride per axis are fetched into scratch memory before a vertex and sent back after it.
//! Matrix products are native, fused steps are one launch, copies are lists of moves.
//!
//! - `code` is a plan with its compiled kernels; `build` makes the tasks of its units; `step_groups` lists the tasks of
//!   neighbouring steps.
//! - [`cache_blocks`](crate::cache_blocks) runs neighbouring steps block by block.
//!
//! Nothing here depends on tiles, so a graph can run before it is placed ([`FastGraph`]).
//!
//! Invariant: every variable is at its offset of the host layout; scratch memory follows all variables, and the parts
//! of the vertices of a compute set are disjoint.

mod build;
mod code;
mod step_groups;

pub(crate) use code::FastCode;
pub use code::FastGraph;

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
use girder_host::{GroupRun, HostedGraph, PartId, Unit};
use girder_ir::graph::Graph;
use girder_ir::ids::{ComputeSetId, CopyId, StepId, VarId};
use girder_ir::trace::Counts;
use girder_ir::view::Run;
use girder_source::Session;
use step_groups::{StepGroup, TimedTask, step_groups};

/// The memory of mode `fast`.
pub(crate) struct Fast<'e> {
    graph: &'e Graph,
    offsets: &'e [u64],
    pool: Pool<Tasks>,
    sets: SecondaryMap<ComputeSetId, Vec<usize>>,
    copies: SecondaryMap<CopyId, usize>,
    /// The groups of steps whose tasks are not those of one step after another, by their first step.
    grouped: SecondaryMap<StepId, Option<StepGroup>>,
    counts: bool,
    counted: Counted,
}

impl<'e> Fast<'e> {
    /// Returns the memory with all variables zero.
    pub(crate) fn new(
        hosted: HostedGraph<'e>,
        code: &FastCode,
        counting: Option<&CountedBlocks>,
        threads: usize,
        session: &Session,
    ) -> Result<Fast<'e>, EngineError> {
        let limited = code.within(hosted, counting, session.limits.total_iterations)?;
        let code = limited.as_ref().unwrap_or(code);
        let bytes = code.plan.var_bytes.saturating_add(code.plan.scratch_bytes);
        let arena = Arena::zeroed(bytes, hosted.replicas.max(1), session.limits.host_bytes)?;
        let build = Build { hosted, code, counting, bytes: arena.bytes() };
        let (mut copies, mut tasks) = (SecondaryMap::new(), Vec::new());
        let mut parts: SecondaryMap<PartId, usize> = SecondaryMap::new();
        let mut sets: SecondaryMap<ComputeSetId, Vec<usize>> = SecondaryMap::new();
        for (id, part) in &code.plan.parts.parts {
            parts[id] = tasks.len();
            sets[part.set].push(tasks.len());
            tasks.push(build.part(id, threads)?);
        }
        for id in hosted.copies.keys() {
            copies[id] = tasks.len();
            tasks.push(match hosted.copies[id].crosses() {
                true => build.exchange(id, threads)?,
                false => Task::moves(build.copy(id), threads, build.bytes)?,
            });
        }
        let mut grouped: SecondaryMap<StepId, Option<StepGroup>> = SecondaryMap::new();
        for sequence in &code.plan.sequences {
            let mut run = Vec::with_capacity(sequence.groups.len());
            for group in &sequence.groups {
                run.push(match (&group.run, group.units.first().map(|u| u.unit)) {
                    (GroupRun::Summed(summed), _) => {
                        tasks.push(build.summed(summed, threads)?);
                        tasks.len() - 1
                    }
                    (GroupRun::Fused(fused), _) => {
                        tasks.push(build.fused(fused, threads)?);
                        tasks.len() - 1
                    }
                    (GroupRun::Alone, Some(Unit::Vertices(part))) => parts[part],
                    (GroupRun::Alone, Some(Unit::Copy(copy))) => copies[copy],
                    (GroupRun::Alone, None) => return Err(EngineError::Internal("a group has no unit".into())),
                });
            }
            let mut timed: Vec<TimedTask> = Vec::with_capacity(run.len());
            let (mut groups, mut own) = (&sequence.groups[..], &run[..]);
            for (count, blocked) in block_tasks(&tasks, &run, threads.max(1), build.bytes)? {
                let (taken, rest) = groups.split_at(count);
                let steps = taken.iter().flat_map(|g| &g.units).map(|u| u.step).collect();
                let task = match blocked {
                    Some(task) => {
                        tasks.push(task);
                        tasks.len() - 1
                    }
                    None => own[0],
                };
                timed.push(TimedTask { steps, task });
                (groups, own) = (rest, &own[count..]);
            }
            for group in step_groups(&sequence.steps, timed) {
                if let Some(first) = group.first() {
                    grouped[first] = Some(group);
                }
            }
        }
        let tasks = Tasks::new(arena, tasks, hosted.workers, session);
        let (pool, counted, counts) = (Pool::new(tasks, threads), Counted::default(), counting.is_some());
        let (graph, offsets) = (hosted.graph, &hosted.layout.offsets[..]);
        Ok(Fast { graph, offsets, pool, sets, copies, grouped, counts, counted })
    }
}

impl Store for Fast<'_> {
    fn fills_unread(&self) -> bool {
        false
    }

    fn execute(&mut self, set: ComputeSetId) -> Result<(), VertexStop> {
        for &task in &self.sets[set] {
            self.pool.run(task);
            if self.counts {
                self.pool.work().gather(task, &mut self.counted);
            }
            self.pool.work().outcome()?;
        }
        Ok(())
    }

    fn counts(&self) -> &dyn Counts {
        &self.counted
    }

    fn copy(&mut self, copy: CopyId) {
        self.pool.run(self.copies[copy]);
    }

    fn select(&self, replica: u32) {
        self.pool.work().arena().select(replica);
    }

    fn replicate(&mut self) {
        self.pool.work().arena().replicate();
    }

    fn exchange(&mut self, copy: CopyId) -> bool {
        self.pool.run(self.copies[copy]);
        true
    }

    fn grouped(&mut self, first: StepId) -> Result<usize, (VertexStop, StepId)> {
        let Some(group) = &self.grouped[first] else { return Ok(0) };
        for TimedTask { steps, task } in &group.tasks {
            self.pool.run(*task);
            self.pool.work().outcome().map_err(|stop| (stop, steps.first().copied().unwrap_or(first)))?;
        }
        Ok(group.steps.len())
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
