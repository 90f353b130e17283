//! The reference interpreter: what it computes is what a codelet means, and the compiled engines agree with it to the
//! bit (any NaN counts as any other).
//!
//! Invariants: no load or store reaches the memory unless all its indices are inside the field; the first failing
//! check in the order of evaluation ends the run; every loop polls the stop flag.
//!
//! # Note: Order
//! What `girder_ir::codelet` leaves open is decided here. All indices of an access are evaluated before they are
//! checked, and they are checked from the first dimension on; a store's value is evaluated before its check. Bounds
//! of loops and binders are evaluated `lo` then `hi`, all binders of a reduction before its first place. `argmin` and
//! `argmax` compare with `<` and `>`, so -0 and +0 are equal there. `amp` evaluates `at`, `rows`, `cols` of `c`, then
//! of `a`, then of `b`, checks shapes (rows of `a` and `c`, columns of `b` and `c`, columns of `a` and rows of `b`, no
//! negative number), then that `c`, `a`, `b` lie inside their storage, dimension by dimension; an empty matrix lies
//! anywhere. Worker w of a `multi` codelet starts with fresh locals, and `return` ends only its turn.
//!
//! # Note: Iterations
//! What a loop counts is decided for given sizes by [`crate::facts`](mod@crate::facts). The *nest* of a loop is its own turns and those of
//! the loops inside, as far as these are known to be short. A loop that is known to have at most [`FREE_ITERATIONS`] turns (a
//! reduction: places of all binders), and at most [`FREE_NEST`] in its nest, counts nothing; so short inner loops cost
//! nothing. Any other is held against the limit `iterations` when its bounds are evaluated, and adds its turns times the nest
//! of one turn to those of the vertex (of each worker), which are held against `total_iterations`; a plain one that stands in
//! no loop does so only if it has more than [`FREE_ITERATIONS`] turns. A `while` is held against `iterations` at each turn, at which
//! it adds the nest of one; it looks at the sum before its first turn, and from then on after [`FREE_ITERATIONS`] turns of the
//! nest. So loops in loops end as well.

mod frame;
mod expr;
mod stmt;
mod reduce;
mod amp;
mod workers;

pub use reduce::identity;
pub use workers::{Race, Touch};

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

/// A check that did not hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Failure {
    /// Which.
    pub site: SiteId,
    /// What explains it, by the site's check. `Index`: the index and the length of the first dimension that fails.
    /// `Shift`: the width and the bits of the type. `Iterations`: a limit and one of [`loop_limits`]. `Shape`: the two lengths that disagree,
    /// or a negative length and 0, or an index outside and the length of its dimension (saturated to `i64`).
    /// `Division`, `Assert`, `Empty`: zeros.
    pub values: [i64; 2],
    /// The worker of a `multi` codelet.
    pub worker: Option<u32>,
}

/// A loop of at most so many turns is not counted.
pub const FREE_ITERATIONS: u64 = 1 << 12;

/// A loop is counted nevertheless if the loops inside turn more often than this, all its turns together.
pub const FREE_NEST: u64 = 1 << 24;

/// Turns of a `while` between two looks at what the vertex has spent, if each adds `weight`.
pub fn look_after(weight: u64) -> u64 {
    (FREE_ITERATIONS / weight.max(1)).max(1)
}

/// The second value of a failed `Iterations` check: which limit its first value is.
pub mod loop_limits {
    /// `iterations`, of a `while` that has turned so often.
    pub const WHILE: i64 = 0;
    /// `iterations`, of a loop whose turns are counted before they begin.
    pub const COUNTED: i64 = 1;
    /// `total_iterations`, of all loops of the vertex.
    pub const TOTAL: i64 = 2;
}

/// Why a vertex did not end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    /// A check did not hold.
    Failed(Failure),
    /// Two workers touch one element that one of them writes; only if they are watched.
    Raced(Race),
    /// The session was cancelled.
    Cancelled,
}

/// Returns the runs one vertex. `consts` is indexed by [`FieldId`] and read at `const` fields only; `workers` is how many workers
/// a tile has, at least 1.
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

/// Locals of one codelet, to be used for many vertices in turn.
pub struct Interpreter<'c> {
    codelet: &'c Codelet,
    /// Scalars, then the elements of all arrays.
    locals: Vec<u64>,
    /// Where a local's elements start.
    offsets: SecondaryMap<LocalId, usize>,
    /// If the workers of a `multi` codelet are watched.
    touches: Option<Touches>,
    /// Places whose executions are counted, and how many there are.
    points: Option<(Located<'c>, usize)>,
    counters: Vec<u64>,
    /// What loops count, for the sizes that came last.
    weights: Option<(Sizes, Weights)>,
}

impl<'c> Interpreter<'c> {
    /// Makes room for the locals of a codelet.
    pub fn new(codelet: &'c Codelet) -> Interpreter<'c> {
        let mut offsets = SecondaryMap::new();
        let mut next = 0;
        for (id, local) in &codelet.locals {
            offsets[id] = next;
            next += local.array.as_ref().map_or(1, |dims| dims.iter().map(|&n| n as usize).product());
        }
        let (points, counters) = (None, Vec::new());
        Interpreter { codelet, locals: vec![0; next], offsets, touches: None, points, counters, weights: None }
    }

    /// Ends a vertex whose workers race; without this they are what they are in turn.
    pub fn watching(self) -> Interpreter<'c> {
        let touches = self.codelet.multi.then(Touches::default);
        Interpreter { touches, ..self }
    }

    /// Counts executions from now on; see [`Interpreter::counters`].
    pub fn count(&mut self, points: &Points) {
        self.points = (!points.is_empty()).then(|| (points.located(self.codelet), points.len()));
        self.counters.clear();
    }

    /// Returns how often each point was passed in the last run, for worker 0, 1, … of a `multi` codelet in turn.
    pub fn counters(&self) -> &[u64] {
        &self.counters
    }

    /// As [`run`].
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
                weights,
                spent: 0,
                stop: Stop::Cancelled,
                points: self.points.as_ref().map(|p| &p.0),
                counters: &mut self.counters[start..start + own],
            };
            if frame.block(&self.codelet.body).is_err() {
                return Err(frame.stop);
            }
        }
        Ok(())
    }
}

/// Returns how often `for _ in lo..hi by step` turns; `step` is not zero.
pub fn trips(lo: i64, hi: i64, step: i64) -> u64 {
    let span = if step > 0 { hi as i128 - lo as i128 } else { lo as i128 - hi as i128 };
    let step = step.unsigned_abs();
    if span <= 0 { 0 } else { (span as u64).div_ceil(step) }
}

#[cfg(test)]
mod tests;
