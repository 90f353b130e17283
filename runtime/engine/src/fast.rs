//! Mode `fast`: one arena laid out for a machine of one tile; vertices read and write all elements where they are.
//!
//! A family is one compiled loop over its instances. Fields whose elements do not lie at one stride per axis are
//! fetched into scratch before a vertex and sent back after it. Families that are matrix products are not compiled but
//! put together (`products`), and consecutive steps that compute element by element run as one (`maps`). Copies are
//! lists of moves.
//!
//! Invariant: every variable is at its offset of the host layout; scratch lies behind all of them, and no two vertices
//! of a compute set share any.

mod build;
mod code;
mod fused;

pub use code::FastCode;

use crate::arena::Arena;
use crate::counts::Counted;
use crate::error::EngineError;
use crate::executable::Executable;
use crate::pool::Pool;
use crate::store::{Store, VertexStop};
use crate::task::{Task, Tasks};
use build::Build;
use cranelift_entity::SecondaryMap;
use fused::{Fused, Single};
use girder_ir::graph::Graph;
use girder_ir::ids::{ComputeSetId, CopyId, StepId, VarId};
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
    fused: Fused,
    counts: bool,
    counted: Counted,
}

impl<'e> Fast<'e> {
    /// All variables zero.
    pub(crate) fn new(executable: &'e Executable, threads: usize, session: &Session) -> Result<Fast<'e>, EngineError> {
        let code = executable.fast.as_ref().ok_or(EngineError::NotPrepared)?;
        let allocated = &executable.allocated;
        let bytes = code.var_bytes.saturating_add(code.scratch_bytes);
        let arena = Arena::zeroed(bytes, session.limits.host_bytes)?;
        let build = Build { allocated, code, counting: executable.counting.as_ref(), bytes: arena.bytes() };
        let (mut sets, mut copies, mut tasks) = (SecondaryMap::new(), SecondaryMap::new(), Vec::new());
        for id in allocated.sets.keys() {
            sets[id] = tasks.len();
            tasks.push(build.set(id, threads)?);
        }
        for id in allocated.copies.keys() {
            copies[id] = tasks.len();
            tasks.push(Task::moves(build.copy(id), threads, build.bytes)?);
        }
        // What is counted is asked for set by set.
        let counts = executable.counting.is_some();
        let fused = if counts {
            SecondaryMap::new()
        } else {
            let mut alone = SecondaryMap::new();
            for (step, fusion) in code.fusions.iter() {
                if let Some(fusion) = fusion {
                    alone[step] = Some((fusion.steps, tasks.len()));
                    tasks.push(build.fusion(fusion, threads)?);
                }
            }
            Single { graph: allocated, sets: &sets, copies: &copies }.fuse(alone, &mut tasks, threads, build.bytes)?
        };
        let tasks = Tasks::new(arena, tasks, executable.machine.chip.workers, session);
        let (pool, counted) = (Pool::new(tasks, threads), Counted::default());
        Ok(Fast { graph: allocated, offsets: &allocated.host.offsets, pool, sets, copies, fused, counts, counted })
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

    fn fused(&mut self, first: StepId) -> Result<usize, VertexStop> {
        let Some((steps, task)) = self.fused[first] else { return Ok(0) };
        self.pool.run(task);
        self.pool.work().outcome()?;
        Ok(steps)
    }

    fn read(&self, run: Run, into: &mut [u8]) {
        let (at, step, size) = place(self.graph, self.offsets, run);
        self.pool.work().arena().read(at as u64, step, size, into);
    }

    fn write(&mut self, run: Run, from: &[u8]) {
        let (at, step, size) = place(self.graph, self.offsets, run);
        self.pool.work().arena().write(at as u64, step, size, from);
    }
}

/// First byte, bytes from element to element, and bytes of an element of a run.
fn place(graph: &Graph, offsets: &[u64], run: Run) -> (i64, i64, usize) {
    let size = graph.vars[run.var].ty.bytes();
    let at = byte(offsets, run.var, run.start as i64, size);
    (at, run.stride * size as i64, size as usize)
}

/// The byte of an element.
fn byte(offsets: &[u64], var: VarId, element: i64, size: u32) -> i64 {
    offsets[var.as_u32() as usize] as i64 + element * size as i64
}
