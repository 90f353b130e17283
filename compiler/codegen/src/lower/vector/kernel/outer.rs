//! Loops around a vector kernel that the kernel runs itself.
//!
//! ```text
//! for i in 0..m { let a = x[i]; for j in 0..90 { y[i, j] += a * w[j]; } }
//! ```
//!
//! A call for each row of 90 elements would take as long as some vectors of them. Instead, one call runs all rows, one
//! after the other: each pointer moves by a constant from row to row, and what is the same in a row is loaded once for
//! it.
//!
//! Invariant: the body of the outer loop sets locals and then runs the inner loop, which has a known number of
//! iterations. The byte offset of each access grows by a constant from trip to trip of the outer loop.

use super::{CHUNK, VectorKernel};
use crate::lower::Lower;
use crate::lower::loops::Range;
use crate::lower::vector::nest::{Loops, Nest};
use crate::lower::vector::steps::{self, Exit};
use crate::lower::vector::{Plan, Rest};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::immediates::Offset32;
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Value};
use cranelift_entity::EntitySet;
use girder_codelet::locals::reads;
use girder_ir::codelet::{BinaryOp, ExprKind, Index, Label, Stmt, StmtBlock, Storage, UnaryOp};
use girder_ir::ids::{ExprId, LocalId};

/// The iterations of an inner loop for which one call is worth it: fewer leave most of a vector empty, and with more a
/// call hardly counts.
const ITERATIONS: std::ops::RangeInclusive<u64> = 8..=512;

/// The inner loop of a nest that one kernel runs.
pub(in crate::lower) struct OuterPlan {
    plan: Plan,
    /// The indices of both loops.
    outer: LocalId,
    inner: LocalId,
    /// The first index of the inner loop.
    first: ExprId,
    iterations: u64,
}

impl Lower<'_, '_> {
    /// Returns a plan for a loop around a loop, as one vector kernel for both, if that is profitable.
    pub(in crate::lower) fn outer_plan(
        &self,
        outer: LocalId,
        trips: Option<u64>,
        (body, _): (&StmtBlock, Label),
    ) -> Option<OuterPlan> {
        let (last, before) = body.split_last()?;
        let Stmt::For { var, lo, hi, step: 1, label, body: inner, site } = last else { return None };
        let iterations = self.known_trips(*lo, *hi, 1).filter(|n| ITERATIONS.contains(n))?;
        let plain = before.iter().all(|stmt| matches!(stmt, Stmt::Set { .. }));
        if !plain || trips == Some(1) || self.counts_in(body) || !self.is_free(*site, Some(iterations)) {
            return None;
        }
        let mut steps = steps::steps(before, None)?;
        steps.extend(steps::steps(inner, Some(Exit::Continue(*label)))?);
        let loops = Loops { nest: Nest::default(), outer: Some(outer) };
        let plan = self.plan_of_steps(Some((*var, *lo, *hi)), loops, steps, &[], true)?;
        let pays = plan.stores() && plan.ramp_uses == 0 && self.kernel_pays(&plan);
        let ends = !self.outlives(&plan, &reads(self.codelet, body));
        (pays && ends).then_some(OuterPlan { plan, outer, inner: *var, first: *lo, iterations })
    }

    /// Returns by how much an index grows from trip to trip of the outer loop, if that is a known constant. `changing`
    /// are the locals that differ from trip to trip.
    fn growth(&self, e: ExprId, outer: LocalId, changing: &EntitySet<LocalId>) -> Option<i64> {
        if self.known(e).is_some() {
            return Some(0);
        }
        let of = |e: ExprId| self.growth(e, outer, changing);
        match self.codelet.exprs[e].kind {
            ExprKind::Local(local) if local == outer => Some(1),
            ExprKind::Local(local) => (!changing.contains(local)).then_some(0),
            ExprKind::Binary { op: BinaryOp::Add, a, b, .. } => of(a)?.checked_add(of(b)?),
            ExprKind::Binary { op: BinaryOp::Sub, a, b, .. } => of(a)?.checked_sub(of(b)?),
            ExprKind::Binary { op: BinaryOp::Mul, a, b, .. } if self.known(a).is_some() => {
                of(b)?.checked_mul(self.known(a)?)
            }
            ExprKind::Binary { op: BinaryOp::Mul, a, b, .. } if self.known(b).is_some() => {
                of(a)?.checked_mul(self.known(b)?)
            }
            ExprKind::Unary { op: UnaryOp::Neg, x } => of(x)?.checked_neg(),
            ExprKind::Load { .. } | ExprKind::LoadLocal { .. } => None,
            ref kind => kind.operands().iter().all(|&x| of(x) == Some(0)).then_some(0),
        }
    }

    /// Returns the bytes by which an access moves from trip to trip of the outer loop, if they are a known constant.
    pub(in crate::lower::vector) fn outer_stride(
        &self,
        (outer, changing): (LocalId, &EntitySet<LocalId>),
        (storage, index): (Storage, &Index),
    ) -> Option<i64> {
        index.iter().zip(self.dims(storage)).try_fold(0i64, |sum, (&e, (_, stride))| {
            sum.checked_add(self.growth(e, outer, changing)?.checked_mul(stride)?)
        })
    }

    /// Emits a loop and the loop in it as one vector kernel.
    pub(in crate::lower) fn outer_loop(&mut self, found: &OuterPlan, range: &Range) -> Rest {
        let join = range.trips.is_none().then(|| {
            let (some, join) = (self.b.create_block(), self.b.create_block());
            let any = self.b.ins().icmp(IntCC::SignedLessThan, range.lo, range.hi);
            self.b.ins().brif(any, some, &[], join, &[]);
            self.enter(some);
            join
        });
        let OuterPlan { plan, outer, inner, first, iterations } = found;
        self.write(*outer, range.lo);
        let first = self.expr(*first);
        self.write(*inner, first);
        let trips = match range.trips {
            Some(trips) => self.i64(trips as i64),
            None => self.b.ins().isub(range.hi, range.lo),
        };
        let record = self.slot(0);
        let mut vk = VectorKernel::new(plan, 1, record);
        let offset = vk.room(8);
        vk.ir.outer = Some(offset);
        self.kernel_steps(&mut vk, &plan.steps);
        vk.store_pending(None);
        self.call_for_trips(&mut vk, *iterations, (offset, trips, range));
        if let Some(join) = join {
            self.b.ins().jump(join, &[]);
            self.enter(join);
        }
        Rest::Nothing
    }

    /// Calls a kernel for all trips, whose number is at an offset in the record, in chunks if they may be many.
    fn call_for_trips(
        &mut self,
        vk: &mut VectorKernel<'_>,
        iterations: u64,
        (offset, trips, range): (u32, Value, &Range),
    ) {
        let (callee, base) = self.assembled(vk, Some(iterations));
        let count = self.i64(iterations as i64);
        let at = Offset32::new(offset as i32);
        let flags = MemFlagsData::new().with_notrap();
        let chunk = (CHUNK / iterations).max(1);
        if !range.poll || range.trips.is_some_and(|trips| trips <= chunk) {
            self.b.ins().store(flags, trips, base, at);
            self.store_pointers(vk, base, None);
            self.b.ins().call(callee, &[base, count]);
            return;
        }
        let zero = self.i64(0);
        let chunks = Range { lo: zero, hi: trips, step: chunk as i64, trips: None, poll: true };
        self.counted(chunks, None, |l, done| {
            let left = l.b.ins().isub(trips, done);
            let most = l.i64(chunk as i64);
            let now = l.b.ins().umin(left, most);
            l.b.ins().store(flags, now, base, at);
            l.store_pointers(vk, base, Some((done, |moving| moving.outer)));
            l.b.ins().call(callee, &[base, count]);
            true
        });
    }
}
