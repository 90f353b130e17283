//! The frame of one worker: its locals, its memory, and the iterations that it has spent.
//!
//! Invariant: fields are accessed only through [`Frame::load`] and [`Frame::store`], so that every access of a worker
//! is watched.

use super::{FREE_ITERATIONS, Failure, Stop, VertexMemory, WorkerAccess, loop_limits};
use crate::cost::Located;
use crate::facts::Weights;
use crate::interpret::workers::Touches;
use crate::sizes::Sizes;
use cranelift_entity::SecondaryMap;
use girder_ir::codelet::{Codelet, Expr, Storage};
use girder_ir::ids::{ExprId, FieldId, LocalId, SiteId};
use girder_source::Session;
use smallvec::SmallVec;

/// The end of a run; the reason is in [`Frame::stop`], so that the common result stays small.
pub(super) struct Halt;

/// The execution of one worker.
pub(super) struct Frame<'a> {
    pub codelet: &'a Codelet,
    pub locals: &'a mut [u64],
    pub offsets: &'a SecondaryMap<LocalId, usize>,
    pub sizes: &'a Sizes,
    pub memory: &'a mut dyn VertexMemory,
    pub touches: Option<&'a mut Touches>,
    pub consts: &'a [u64],
    pub worker: u32,
    pub workers: u32,
    pub session: &'a Session,
    pub ticks: u32,
    /// The statements, and elements of reductions, that may still be executed.
    pub left: u64,
    pub weights: &'a Weights,
    /// Iterations counted so far.
    pub spent: u64,
    pub stop: Stop,
    pub points: Option<&'a Located<'a>>,
    pub counters: &'a mut [u64],
}

/// The indices of an access; codelets of ordinary rank do not spill it.
pub(super) type ElementIndex = SmallVec<[i64; 4]>;

impl<'a> Frame<'a> {
    pub fn expr(&self, e: ExprId) -> &'a Expr {
        &self.codelet.exprs[e]
    }

    #[cold]
    pub fn fail(&mut self, site: SiteId, values: [i64; 2]) -> Halt {
        let worker = self.codelet.multi.then_some(self.worker);
        self.stop = Stop::Failed(Failure { site, values, worker });
        Halt
    }

    /// Polls the stop flag and the work that is left now and then; called once per iteration of every loop.
    #[inline]
    pub fn tick(&mut self) -> Result<(), Halt> {
        self.ticks = self.ticks.wrapping_add(1);
        self.left = self.left.saturating_sub(1);
        if self.left == 0 {
            self.stop = Stop::Exhausted;
            return Err(Halt);
        }
        if self.ticks.is_multiple_of(1024) && self.session.cancel.is_cancelled() {
            self.stop = Stop::Cancelled;
            return Err(Halt);
        }
        Ok(())
    }

    /// Counts the iterations of a loop before the first of them.
    pub fn charge(&mut self, trips: u64, site: SiteId) -> Result<(), Halt> {
        let limit = self.session.limits.iterations;
        match (trips, self.weights[site]) {
            (0..=FREE_ITERATIONS, 0) => Ok(()),
            _ if trips > limit.max(FREE_ITERATIONS) => Err(self.fail(site, [shown(limit), loop_limits::COUNTED])),
            (_, weight) => self.spend(trips.saturating_mul(weight.max(1)), site),
        }
    }

    /// Adds iterations to the sum of the vertex. Fails the check at `site` if the sum exceeds `total_iterations`.
    pub fn spend(&mut self, iterations: u64, site: SiteId) -> Result<(), Halt> {
        let limit = self.session.limits.total_iterations;
        self.spent = self.spent.saturating_add(iterations);
        if self.spent > limit { Err(self.fail(site, [shown(limit), loop_limits::TOTAL])) } else { Ok(()) }
    }

    /// Returns the length of a dimension.
    pub fn length(&self, storage: Storage, dim: usize) -> i64 {
        match storage {
            Storage::Field(field) => self.sizes.shapes[field][dim] as i64,
            Storage::Local(local) => self.codelet.locals[local].array.as_ref().map_or(0, |dims| i64::from(dims[dim])),
        }
    }

    /// Returns the row-major position of an element, if it is inside.
    pub fn flat(&mut self, storage: Storage, element_index: &[i64], site: SiteId) -> Result<u64, Halt> {
        let mut flat = 0;
        for (dim, &index) in element_index.iter().enumerate() {
            let length = self.length(storage, dim);
            if index < 0 || index >= length {
                return Err(self.fail(site, [index, length]));
            }
            flat = flat * length as u64 + index as u64;
        }
        Ok(flat)
    }

    pub fn load(&mut self, field: FieldId, flat: u64, site: SiteId) -> Result<u64, Halt> {
        self.note(field, flat, site, false)?;
        Ok(self.memory.load(field, flat))
    }

    pub fn store(&mut self, field: FieldId, flat: u64, bits: u64, site: SiteId) -> Result<(), Halt> {
        self.note(field, flat, site, true)?;
        self.memory.store(field, flat, bits);
        Ok(())
    }

    fn note(&mut self, field: FieldId, flat: u64, site: SiteId, written: bool) -> Result<(), Halt> {
        let Some(touches) = &mut self.touches else { return Ok(()) };
        touches.note(self.codelet, field, flat, WorkerAccess { worker: self.worker, site, written }).map_err(|race| {
            self.stop = Stop::Raced(race);
            Halt
        })
    }
}

/// Returns a limit as a value of a [`Failure`].
pub(super) fn shown(limit: u64) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
