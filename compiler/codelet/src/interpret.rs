//! The reference interpreter. It defines what a codelet computes, and the compiled engines agree with it to the bit
//! (all NaNs count as equal).
//!
//! Invariants: a load or store reaches the memory only if all its indices are inside the field; the first failing check
//! in the order of evaluation ends the run; every loop polls the stop flag.
//!
//! # Note: Order
//! This note decides what `girder_ir::codelet` leaves open. All indices of an access are evaluated before they are
//! checked, and they are checked from the first dimension on. A store's value is evaluated before its check. Bounds of
//! loops and binders are evaluated `lo` then `hi`, all binders of a reduction before its first element. `argmin` and
//! `argmax` compare with `<` and `>`, so -0 and +0 are equal there.
//!
//! `amp` evaluates `at`, the lengths around the rows, `rows`, `cols` of `c`, then of `a`, then of `b`. It then checks
//! shapes (lengths around the rows and rows of `a` and `c`, columns of `b` and `c`, columns of `a` and rows of `b`, no
//! negative number), and that `c`, `a`, `b` lie inside their
//! storage, dimension by dimension; an empty matrix lies anywhere. Worker w of a `multi` codelet starts with fresh
//! locals, and `return` ends only that worker.
//!
//! # Note: Iterations
//! For given sizes, [`crate::facts`](mod@crate::facts) decides how a loop counts. The *weight* of a loop is the number
//! of iterations in its nest: its trip count times the weights of the loops inside, as far as these are known to be
//! short. A loop that certainly has at most [`FREE_ITERATIONS`] iterations (for a reduction: elements of all binders),
//! and a weight of at most [`FREE_NEST`], does not count; so short inner loops cost nothing.
//!
//! Any other loop is compared with the limit `iterations` when its bounds are evaluated. It adds its trip count times
//! the weight of one iteration to the sum of the vertex (of each worker), which is compared with `total_iterations`. A
//! loop that is in no other loop and contains none adds to the sum only if it has more than [`FREE_ITERATIONS`]
//! iterations.
//!
//! A `while` is compared with `iterations` at each iteration, and adds the weight of one iteration each time. It
//! compares the sum with `total_iterations` before its first iteration, and then after every [`FREE_ITERATIONS`]
//! iterations of its nest. So nested loops end as well.

mod frame;
mod expr;
mod stmt;
mod reduce;
mod amp;
mod workers;

pub use reduce::identity;
pub use workers::{Race, WorkerAccess};

use crate::cost::{Located, Points};
use crate::facts::{Weights, facts};
use crate::sizes::Sizes;
use cranelift_entity::SecondaryMap;
use frame::Frame;
use girder_ir::codelet::Codelet;
use girder_ir::ids::{FieldId, LocalId, SiteId};
use girder_source::Session;
use workers::Touches;

/// The elements of one vertex's fields. `flat_index` is the row-major position in the field's shape and always inside
/// it; bits above the type's width are zero.
pub trait VertexMemory {
    /// Returns an element of a field that is not `const`.
    fn load(&mut self, field: FieldId, flat_index: u64) -> u64;
    /// Sets an element of an `out` or `inout` field.
    fn store(&mut self, field: FieldId, flat_index: u64, bits: u64);
}

/// A check that failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Failure {
    /// The site of the check.
    pub site: SiteId,
    /// Two numbers that explain the failure, by the kind of check. `Index`: the index and the length of the first
    /// dimension that fails. `Shift`: the width and the bits of the type. `Iterations`: a limit and one of
    /// [`loop_limits`]. `Shape`: the two lengths that disagree, or a negative length and 0, or an index outside and the
    /// length of its dimension (saturated to `i64`). `Division`, `Assert`, `Empty`: zeros.
    pub values: [i64; 2],
    /// The worker of a `multi` codelet.
    pub worker: Option<u32>,
}

/// A loop of at most this many iterations is not counted.
pub const FREE_ITERATIONS: u64 = 1 << 12;

/// The number of iterations of inner loops, over all iterations of a loop, above which the loop is counted
/// nevertheless.
pub const FREE_NEST: u64 = 1 << 24;

/// Returns the iterations of a `while` between two comparisons with `total_iterations`, if each adds `weight`.
pub fn look_after(weight: u64) -> u64 {
    (FREE_ITERATIONS / weight.max(1)).max(1)
}

/// The second value of a failed `Iterations` check: the kind of limit that its first value is.
pub mod loop_limits {
    /// `iterations`, exceeded by a `while` while it runs.
    pub const WHILE: i64 = 0;
    /// `iterations`, exceeded by a loop whose trip count is known before it begins.
    pub const COUNTED: i64 = 1;
    /// `total_iterations`, exceeded by all loops of the vertex together.
    pub const TOTAL: i64 = 2;
}

/// The reason why a vertex did not end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    /// A check failed.
    Failed(Failure),
    /// Two workers access one element and one of them writes it; only reported if workers are watched.
    Raced(Race),
    /// The session was cancelled.
    Cancelled,
    /// More statements were executed than [`Interpreter::allow`] allowed.
    Exhausted,
}

/// Runs one vertex. `consts` is indexed by [`FieldId`] and read at `const` fields only; `workers` is the number of
/// workers of a tile, at least 1.
pub fn run(
    codelet: &Codelet,
    sizes: &Sizes,
    memory: &mut dyn VertexMemory,
    consts: &[u64],
    workers: u32,
    session: &Session,
) -> Result<(), Stop> {
    Interpreter::new(codelet).run(sizes, memory, consts, workers, session)
}

/// An interpreter of one codelet, whose locals are reused for many vertices.
pub struct Interpreter<'c> {
    codelet: &'c Codelet,
    /// Scalars, then the elements of all arrays.
    locals: Vec<u64>,
    /// The position of each local's first element.
    offsets: SecondaryMap<LocalId, usize>,
    /// The accesses of workers of a `multi` codelet, if they are watched.
    touches: Option<Touches>,
    /// Counted points and their number.
    points: Option<(Located<'c>, usize)>,
    counters: Vec<u64>,
    /// The weights of loops for the most recent sizes.
    weights: Option<(Sizes, Weights)>,
    /// The statements, and elements of reductions, that may still be executed.
    left: u64,
}

impl<'c> Interpreter<'c> {
    /// Allocates the locals of a codelet.
    pub fn new(codelet: &'c Codelet) -> Interpreter<'c> {
        let mut offsets = SecondaryMap::new();
        let mut next = 0;
        for (id, local) in &codelet.locals {
            offsets[id] = next;
            next += local.array.as_ref().map_or(1, |dims| dims.iter().map(|&n| n as usize).product());
        }
        let (points, counters) = (None, Vec::new());
        Interpreter {
            codelet,
            locals: vec![0; next],
            offsets,
            touches: None,
            points,
            counters,
            weights: None,
            left: u64::MAX,
        }
    }

    /// Makes races between workers end a vertex; otherwise workers run one after another.
    pub fn watching(self) -> Interpreter<'c> {
        let touches = self.codelet.multi.then(Touches::default);
        Interpreter { touches, ..self }
    }

    /// Counts executions from now on; see [`Interpreter::counters`].
    pub fn count(&mut self, points: &Points) {
        self.points = (!points.is_empty()).then(|| (points.located(self.codelet), points.len()));
        self.counters.clear();
    }

    /// Returns how often each point was passed in the last run, for worker 0, 1, … of a `multi` codelet one after
    /// another.
    pub fn counters(&self) -> &[u64] {
        &self.counters
    }

    /// Allows `statements` statements and elements of reductions to be executed, in all vertices from now on.
    pub fn allow(&mut self, statements: u64) {
        self.left = statements;
    }

    /// Returns how many may still be executed.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Works like the function [`run`].
    pub fn run(
        &mut self,
        sizes: &Sizes,
        memory: &mut dyn VertexMemory,
        consts: &[u64],
        workers: u32,
        session: &Session,
    ) -> Result<(), Stop> {
        let workers_run = if self.codelet.multi { workers } else { 1 };
        self.touches.iter_mut().for_each(Touches::clear);
        let own = self.points.as_ref().map_or(0, |p| p.1);
        self.counters.clear();
        self.counters.resize(own * workers_run as usize, 0);
        if self.weights.as_ref().is_none_or(|w| w.0 != *sizes) {
            self.weights = Some((sizes.clone(), facts(self.codelet, sizes).weights));
        }
        let Some((_, weights)) = &self.weights else { return Ok(()) };
        for worker in 0..workers_run {
            let start = own * worker as usize;
            let mut frame = Frame {
                codelet: self.codelet,
                locals: &mut self.locals,
                offsets: &self.offsets,
                sizes,
                memory: &mut *memory,
                touches: self.touches.as_mut(),
                consts,
                worker,
                workers,
                session,
                ticks: 0,
                left: self.left,
                weights,
                spent: 0,
                stop: Stop::Cancelled,
                points: self.points.as_ref().map(|p| &p.0),
                counters: &mut self.counters[start..start + own],
            };
            let done = frame.block(&self.codelet.body);
            self.left = frame.left;
            if done.is_err() {
                return Err(frame.stop);
            }
            if self.left == 0 {
                return Err(Stop::Exhausted);
            }
        }
        Ok(())
    }
}

/// Returns the trip count of `for _ in lo..hi by step`; `step` is not zero.
pub fn trips(lo: i64, hi: i64, step: i64) -> u64 {
    let span = if step > 0 { hi as i128 - lo as i128 } else { lo as i128 - hi as i128 };
    let step = step.unsigned_abs();
    if span <= 0 { 0 } else { (span as u64).div_ceil(step) }
}

#[cfg(test)]
mod tests;
