//! Reductions, one element at a time.
//!
//! # Note: Lanes
//! Only float sums and products depend on their order. Integer and `bool` reductions, and `min` and `max` (NaN counts
//! as one value), have the same result in any order, so they have one accumulator. The sixteen lanes of the others are
//! on the stack, where the position selects one.
//!
//! Invariant: an element that is skipped still advances the position.

use super::{Lower, Target, clif};
use crate::lower::loops::Range;
use cranelift_codegen::ir::condcodes::FloatCC;
use cranelift_codegen::ir::immediates::Offset32;
use cranelift_codegen::ir::types::{I8, I64};
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, StackSlot, Value};
use cranelift_frontend::Variable;
use girder_codelet::interpret::identity;
use girder_codelet::scalar::is_ordered;
use girder_codelet::work;
use girder_ir::codelet::{BinaryOp, Reduce, ReduceOp};
use girder_ir::ids::LocalId;
use girder_ir::types::ElemType;
use smallvec::SmallVec;

/// The number of lanes of a reduction.
pub(super) const LANES: i64 = 16;

/// The greatest number of nodes of a fully unrolled reduction.
const SMALL: u64 = 240;

/// A binder with its bounds evaluated.
pub(super) struct Bound {
    pub var: LocalId,
    pub range: Range,
}

impl Lower<'_, '_> {
    pub(super) fn reduce(&mut self, r: &Reduce) {
        let bounds = self.bounds(r);
        if let Some(bounds) = &bounds {
            self.charge_elements(bounds.iter().map(|b| &b.range), r.iterations);
        }
        let counts = self.counts_in(&r.filter_before) || self.counts_in(&r.before);
        let bounds_to_run = bounds.as_ref().filter(|_| !counts);
        self.refusal.set(counts.then_some("its executions are counted"));
        if let Some(result) = bounds_to_run.and_then(|b| self.in_vectors(r, b)) {
            return self.write(r.dst, result);
        }
        if let Some(result) = bounds.as_ref().and_then(|b| self.written_out_reduce(r, b)) {
            return self.write(r.dst, result);
        }
        if let Some(binder) = r.binders.last() {
            self.stays_scalar("the reduction", binder.var);
        }
        let result = match r.op {
            ReduceOp::ArgMin | ReduceOp::ArgMax => self.best(r, bounds),
            op if is_ordered(op, self.ty(r.value)) => self.in_lanes(r, bounds),
            _ => self.in_any_order(r, bounds),
        };
        self.write(r.dst, result);
    }

    fn in_vectors(&mut self, r: &Reduce, bounds: &[Bound]) -> Option<Value> {
        let kernel = self.kernel_reduce(r, bounds).or_else(|| self.kernel_filtered(r, bounds));
        kernel.or_else(|| self.kernel_best(r, bounds)).or_else(|| self.vector_reduce(r, bounds))
    }

    /// Evaluates the bounds of all binders. Returns `None` if the reduction is known to have no element.
    pub(super) fn bounds(&mut self, r: &Reduce) -> Option<SmallVec<[Bound; 2]>> {
        let mut empty = false;
        let mut bounds: SmallVec<[Bound; 2]> = SmallVec::new();
        for b in &r.binders {
            let (lo, hi) = (self.expr(b.lo), self.expr(b.hi));
            let trips = self.known_trips(b.lo, b.hi, b.step);
            empty |= trips == Some(0);
            bounds.push(Bound { var: b.var, range: Range { lo, hi, step: b.step, trips, poll: false } });
        }
        let element = work::of_block(&self.folded, &r.before).saturating_add(8);
        let mut each = element.saturating_add(work::of_block(&self.folded, &r.filter_before));
        for (b, bound) in r.binders.iter().zip(&mut bounds).rev() {
            let total = work::of_loop(&self.folded, b.lo, b.hi, b.step, each);
            bound.range.poll = total >= work::SHORT;
            each = total;
        }
        (!empty).then_some(bounds)
    }

    /// Emits a reduction of at most sixteen elements without a loop. Each element has a lane of its own.
    fn written_out_reduce(&mut self, r: &Reduce, bounds: &[Bound]) -> Option<Value> {
        let elements = bounds.iter().try_fold(1u64, |n, b| Some(n.saturating_mul(b.range.trips?)))?;
        let code = work::Numbers::of(self.codelet, r).code_of(r);
        let positions = matches!(r.op, ReduceOp::ArgMin | ReduceOp::ArgMax);
        if positions || r.filter.is_some() || elements > LANES as u64 || elements.saturating_mul(code) > SMALL {
            return None;
        }
        let ty = self.ty(r.value);
        let mut lanes: SmallVec<[Value; 16]> = SmallVec::new();
        for element in 0..elements {
            let mut rest = element;
            for (bound, binder) in bounds.iter().zip(&r.binders).rev() {
                let trips = bound.range.trips.unwrap_or(1);
                let index = self.known(binder.lo)?.wrapping_add(((rest % trips) as i64).wrapping_mul(binder.step));
                rest /= trips;
                let index = self.i64(index);
                self.write(bound.var, index);
            }
            if !self.block(&r.before) {
                // Control does not fall through. The code that follows is unreachable, but needs a block.
                let unreachable = self.b.create_block();
                self.enter(unreachable);
            }
            lanes.push(self.alone(r));
        }
        Some(self.fold_present(r.op.operator(), ty, lanes))
    }

    /// Returns the lane after the current element, if it had the identity before.
    fn alone(&mut self, r: &Reduce) -> Value {
        match r.factors {
            // `fma(x, y, -0.0)` is the rounded product.
            Some((x, y)) => {
                let (x, y) = (self.expr(x), self.expr(y));
                self.b.ins().fmul(x, y)
            }
            None => self.expr(r.value),
        }
    }

    /// Folds the first lanes by 8, 4, 2, 1. The missing lanes would have the identity.
    pub(super) fn fold_present(&mut self, op: BinaryOp, ty: ElemType, mut lanes: SmallVec<[Value; 16]>) -> Value {
        for s in [8, 4, 2, 1] {
            for l in s..lanes.len() {
                lanes[l - s] = self.combine(op, ty, lanes[l - s], lanes[l]);
            }
            lanes.truncate(s);
        }
        lanes[0]
    }

    /// Runs `take` for every element that passes the filter, and counts the position if there is a variable for it.
    fn for_each_element(
        &mut self,
        r: &Reduce,
        bounds: Option<SmallVec<[Bound; 2]>>,
        position: Option<Variable>,
        take: &mut dyn FnMut(&mut Self),
    ) {
        let Some(bounds) = bounds else { return };
        if let Some(position) = position {
            let zero = self.i64(0);
            self.b.def_var(position, zero);
        }
        let mut bounds = bounds.into_iter();
        self.nest(r, &mut bounds, position, take);
    }

    fn nest(
        &mut self,
        r: &Reduce,
        bounds: &mut dyn Iterator<Item = Bound>,
        position: Option<Variable>,
        take: &mut dyn FnMut(&mut Self),
    ) -> bool {
        let Some(Bound { var, range }) = bounds.next() else { return self.one_place(r, position, take) };
        self.counted(range, None, |l, i| {
            l.write(var, i);
            l.nest(r, bounds, position, take)
        })
    }

    fn one_place(&mut self, r: &Reduce, position: Option<Variable>, take: &mut dyn FnMut(&mut Self)) -> bool {
        let mut skip = Target { block: self.b.create_block(), used: false };
        if let Some(filter) = r.filter {
            if !self.block(&r.filter_before) {
                return false;
            }
            let cond = self.expr(filter);
            let taken = self.b.create_block();
            self.b.ins().brif(cond, taken, &[], skip.block, &[]);
            skip.used = true;
            self.enter(taken);
        }
        let falls = self.block(&r.before);
        if falls {
            take(self);
            self.b.ins().jump(skip.block, &[]);
        }
        if !falls && !skip.used {
            return false;
        }
        self.enter(skip.block);
        if let Some(position) = position {
            let now = self.b.use_var(position);
            let next = self.b.ins().iadd_imm_s(now, 1);
            self.b.def_var(position, next);
        }
        true
    }

    /// Emits a reduction whose result does not depend on the order.
    fn in_any_order(&mut self, r: &Reduce, bounds: Option<SmallVec<[Bound; 2]>>) -> Value {
        let ty = self.ty(r.value);
        let start = self.constant(ty, identity(r.op, ty));
        let acc = self.b.declare_var(clif(ty));
        self.b.def_var(acc, start);
        self.for_each_element(r, bounds, None, &mut |l| {
            let value = l.expr(r.value);
            let old = l.b.use_var(acc);
            let new = l.combine(r.op.operator(), ty, old, value);
            l.b.def_var(acc, new);
        });
        self.b.use_var(acc)
    }

    /// Emits a float sum or product.
    fn in_lanes(&mut self, r: &Reduce, bounds: Option<SmallVec<[Bound; 2]>>) -> Value {
        let ty = self.ty(r.value);
        let lanes = self.take_slot();
        self.fill_lanes(lanes, ty, identity(r.op, ty));
        let (position, any) = (self.b.declare_var(I64), self.b.declare_var(I8));
        let no = self.bool(false);
        self.b.def_var(any, no);
        self.for_each_element(r, bounds, Some(position), &mut |l| {
            let now = l.b.use_var(position);
            let lane = l.lane_address(lanes, ty, now);
            l.take_into(r, ty, lane);
            let yes = l.bool(true);
            l.b.def_var(any, yes);
        });
        let folded = self.fold_lanes(lanes, r.op, ty);
        self.free_slots.push(lanes);
        if r.op != ReduceOp::Sum {
            return folded;
        }
        let (any, zero) = (self.b.use_var(any), self.constant(ty, 0));
        self.b.ins().select(any, folded, zero)
    }

    /// Combines the value of the current element with the lane at an address.
    pub(super) fn take_into(&mut self, r: &Reduce, ty: ElemType, lane: Value) {
        let flags = MemFlagsData::new().with_notrap();
        let load = |l: &mut Self| l.b.ins().load(clif(ty), flags, lane, Offset32::new(0));
        let new = match r.factors {
            Some((x, y)) => {
                let (x, y) = (self.expr(x), self.expr(y));
                let old = load(self);
                self.fma(ty, x, y, old)
            }
            None => {
                let value = self.expr(r.value);
                let old = load(self);
                self.combine(r.op.operator(), ty, old, value)
            }
        };
        self.b.ins().store(flags, new, lane, Offset32::new(0));
    }

    /// Returns a stack slot for sixteen lanes, and reuses that of an earlier reduction if there is one.
    pub(super) fn take_slot(&mut self) -> StackSlot {
        self.free_slots.pop().unwrap_or_else(|| self.slot(LANES as u32 * 8))
    }

    fn lane_address(&mut self, lanes: StackSlot, ty: ElemType, position: Value) -> Value {
        let lane = self.b.ins().band_imm_u(position, LANES - 1);
        let bytes = self.scaled(lane, i64::from(ty.bytes()));
        let base = self.b.ins().stack_addr(I64, lanes, Offset32::new(0));
        self.b.ins().iadd(base, bytes)
    }

    fn fill_lanes(&mut self, lanes: StackSlot, ty: ElemType, bits: u64) {
        let value = self.constant(ty, bits);
        let base = self.b.ins().stack_addr(I64, lanes, Offset32::new(0));
        let (value, width) = match self.features.vectors {
            true => (self.splat(clif(ty), value), 16),
            false => (value, ty.bytes()),
        };
        for n in 0..LANES as u32 * ty.bytes() / width {
            self.b.ins().store(MemFlagsData::new().with_notrap(), value, base, Offset32::new((n * width) as i32));
        }
    }

    /// Folds the lanes: `lane[l] = lane[l] op lane[l + s]` for s = 8, 4, 2, 1 and l < s. Returns lane 0.
    pub(super) fn fold_lanes(&mut self, lanes: StackSlot, op: ReduceOp, ty: ElemType) -> Value {
        let base = self.b.ins().stack_addr(I64, lanes, Offset32::new(0));
        let flags = MemFlagsData::new().with_notrap();
        let load = |l: &mut Self, n: i64| {
            let offset = Offset32::new((n * i64::from(ty.bytes())) as i32);
            l.b.ins().load(clif(ty), flags, base, offset)
        };
        let mut values: SmallVec<[Value; 16]> = (0..LANES).map(|n| load(self, n)).collect();
        for s in [8, 4, 2, 1] {
            for l in 0..s {
                values[l] = self.combine(op.operator(), ty, values[l], values[l + s]);
            }
        }
        values[0]
    }

    /// Emits `argmin` or `argmax`: the first NaN, or else the first of the best values.
    fn best(&mut self, r: &Reduce, bounds: Option<SmallVec<[Bound; 2]>>) -> Value {
        let ty = self.ty(r.value);
        let position = self.b.declare_var(I64);
        let (found, best, element) = (self.b.declare_var(I8), self.b.declare_var(clif(ty)), self.b.declare_var(I64));
        // The first element is the best one so far, whether or not it beats the worst value.
        let order = if r.op == ReduceOp::ArgMin { ReduceOp::Min } else { ReduceOp::Max };
        let (no, worst, first) = (self.bool(false), self.constant(ty, identity(order, ty)), self.i64(0));
        self.b.def_var(found, no);
        self.b.def_var(best, worst);
        self.b.def_var(element, first);
        self.for_each_element(r, bounds, Some(position), &mut |l| {
            let value = l.expr(r.value);
            let (old, was_found) = (l.b.use_var(best), l.b.use_var(found));
            let within = if r.op == ReduceOp::ArgMin { BinaryOp::Ge } else { BinaryOp::Le };
            let mut stays = l.compare(within, ty, value, old);
            if r.filter.is_some() {
                stays = l.b.ins().band(stays, was_found);
            }
            let yes = l.bool(true);
            l.b.def_var(found, yes);
            let (beats, next) = (l.b.create_block(), l.b.create_block());
            l.b.ins().brif(stays, next, &[], beats, &[]);
            // Few elements are better than all before them.
            l.b.set_cold_block(beats);
            l.enter(beats);
            if ty.is_float() {
                let (is_nan, takes) = (l.b.ins().fcmp(FloatCC::Unordered, old, old), l.b.create_block());
                l.b.ins().brif(is_nan, next, &[], takes, &[]);
                l.b.set_cold_block(takes);
                l.enter(takes);
            }
            let now = l.b.use_var(position);
            l.b.def_var(best, value);
            l.b.def_var(element, now);
            l.b.ins().jump(next, &[]);
            l.enter(next);
        });
        if !self.is_proven(r.site) {
            let found = self.b.use_var(found);
            let empty = self.b.ins().bxor_imm_u(found, 1);
            self.guard_plain(empty, r.site);
        }
        self.b.use_var(element)
    }
}
