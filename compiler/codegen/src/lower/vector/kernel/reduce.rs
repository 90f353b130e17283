//! Reductions as vector kernels.
//!
//! The sixteen lanes of the language are in the record. For each row, a kernel loads them from there and stores them
//! back. Reductions over equal ranges may share a kernel; each has its own lanes.
//!
//! Invariant: an iteration goes to the lane of its row-major position, unless the order does not matter.

use super::lanes::{lane, reduction};
use super::{Lanes, VectorKernel, calls_once, carries};
use crate::lower::Lower;
use crate::lower::loops::Range;
use crate::lower::reduce::{Bound, LANES};
use crate::lower::vector::search::takes_reduction;
use crate::lower::vector::{Plan, steps};
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::immediates::Offset32;
use cranelift_codegen::ir::types::{I32, I32X4, I64};
use cranelift_codegen::ir::{Block, InstBuilder, MemFlagsData, StackSlot, Type, Value};
use girder_codelet::interpret::identity;
use girder_codelet::scalar::is_ordered;
use girder_ir::codelet::{Reduce, ReduceOp};
use girder_ir::types::ElemType;
use girder_simd::Level;
use girder_simd::ir::{Accumulator, AccumulatorId, Effect, Lane};
use smallvec::SmallVec;

/// One of the reductions of a kernel.
struct One<'r> {
    r: &'r Reduce,
    plan: &'r Plan,
    /// The offset of its lanes in the record.
    at: u32,
}

/// The least number of iterations of a row for which a call, and lanes in memory, are profitable.
const FEWEST: u64 = 64;

/// The greatest number of operations that the reductions of one kernel may have together.
const LONGEST: u32 = 160;

impl Lower<'_, '_> {
    /// Emits a reduction as a vector kernel and returns its result, if this is possible and profitable.
    pub(in crate::lower) fn kernel_reduce(&mut self, r: &Reduce, bounds: &[Bound]) -> Option<Value> {
        let plans = self.kernel_plans(&[r], bounds);
        (plans.len() == 1).then_some(())?;
        self.kernel_reductions(&[r], &plans, bounds).pop()
    }

    /// Returns a plan for a reduction as a vector kernel, if this is possible and profitable.
    fn kernel_reduce_plan(&self, r: &Reduce, bounds: &[Bound]) -> Option<Plan> {
        let (row, outer) = bounds.split_last()?;
        let binder = r.binders.last()?;
        let ty = self.ty(r.value);
        if r.filter.is_some() || binder.step != 1 || !takes_reduction(r.op, ty) {
            return None;
        }
        let length = row.range.trips.filter(|&n| n >= FEWEST)?;
        let plan = self.mixed_plan(Some((binder.var, binder.lo, binder.hi)), &r.before, &steps::values(r))?;
        let inside = girder_codelet::locals::reads_of_reduce(self.codelet, r);
        let straight = !plan.stores() && !plan.nested && !self.outlives(&plan, &inside) && !plan.loads.is_empty();
        // Each row begins at the first lane.
        let in_place = outer.is_empty() || !is_ordered(r.op, ty) || length % LANES as u64 == 0;
        (straight && in_place && self.kernel_pays(&plan)).then_some(plan)
    }

    /// Returns plans for the first reductions, up to the number for which one kernel has registers. Their ranges are
    /// equal.
    pub(in crate::lower) fn kernel_plans(&self, all: &[&Reduce], bounds: &[Bound]) -> Vec<Plan> {
        let level = self.level();
        let (mut lanes, mut ramps, mut size) = (0, 0, 0);
        let plan = |r: &&Reduce| {
            let plan = self.kernel_reduce_plan(r, bounds)?;
            lanes += lane_vectors(r.op, self.ty(r.value), level);
            ramps += plan.ramp_uses;
            size += plan.size;
            // The other half of the registers is for the values of the bodies.
            let most = level.spare_registers();
            (lanes <= most && size <= LONGEST && carries(level, lanes, ramps)).then_some(plan)
        };
        all.iter().map_while(plan).collect()
    }

    /// Emits reductions over equal ranges as one kernel and returns their results.
    pub(in crate::lower) fn kernel_reductions(
        &mut self,
        all: &[&Reduce],
        plans: &[Plan],
        bounds: &[Bound],
    ) -> Vec<Value> {
        let record = self.slot(0);
        let Some((row, outer)) = bounds.split_last() else { return Vec::new() };
        let mut together: SmallVec<[One<'_>; 4]> = SmallVec::new();
        let mut bytes = 0;
        for (r, plan) in all.iter().zip(plans) {
            together.push(One { r, plan, at: bytes });
            bytes += lane_bytes(self.ty(r.value));
        }
        self.b.func.sized_stack_slots[record].size = bytes;
        let all = together;
        // If there is only one call, the kernel knows the start values of the lanes. If the lanes were stored here in
        // parts and loaded there as a whole, store forwarding would fail, and the kernel would wait for all earlier
        // stores.
        let once = outer.is_empty() && calls_once(row.range.poll, row.range.trips).is_some();
        if !once {
            all.iter().for_each(|one| self.begin_lanes((record, one.at), one.r.op, self.ty(one.r.value)));
        }
        self.kernel_rows(&all, (outer, row), record, once);
        let any = self.any_row(outer);
        let result = |one: &One<'_>| {
            let ty = self.ty(one.r.value);
            let folded = self.fold_record((record, one.at), one.r.op, ty);
            // A float sum of no elements is +0, but its lanes have -0.
            let may_be_empty = is_ordered(one.r.op, ty) && one.r.op == ReduceOp::Sum;
            let Some(any) = any.filter(|_| may_be_empty) else { return folded };
            let zero = self.constant(ty, 0);
            self.b.ins().select(any, folded, zero)
        };
        all.iter().map(result).collect()
    }

    /// Emits `argmin` or `argmax`, if a vector kernel can find the least or the greatest value. The first element with
    /// that value is then searched for, which is cheaper than carrying the position along.
    pub(in crate::lower) fn kernel_best(&mut self, r: &Reduce, bounds: &[Bound]) -> Option<Value> {
        let (op, at_least) = match r.op {
            ReduceOp::ArgMin => (ReduceOp::Min, FloatCC::LessThanOrEqual),
            ReduceOp::ArgMax => (ReduceOp::Max, FloatCC::GreaterThanOrEqual),
            _ => return None,
        };
        let [row] = bounds else { return None };
        let best = self.kernel_reduce(&Reduce { op, ..r.clone() }, bounds)?;
        let found = self.b.create_block();
        let index = self.b.append_block_param(found, I64);
        if self.ty(r.value).is_float() {
            // If the best value is a number, no value is better. If it is NaN, the result is the first NaN.
            let [numbers, nans] = [(); 2].map(|()| self.b.create_block());
            let is_nan = self.b.ins().fcmp(FloatCC::Unordered, best, best);
            self.b.ins().brif(is_nan, nans, &[], numbers, &[]);
            self.enter(nans);
            self.first_element(r, row, found, |l, value| l.b.ins().fcmp(FloatCC::Unordered, value, value));
            self.enter(numbers);
            self.first_element(r, row, found, |l, value| l.b.ins().fcmp(at_least, value, best));
        } else {
            self.first_element(r, row, found, |l, value| l.b.ins().icmp(IntCC::Equal, value, best));
        }
        self.enter(found);
        Some(self.b.ins().isub(index, row.range.lo))
    }

    /// Emits a search that jumps to `found` with the index of the first element for which `is_wanted` is true. There is
    /// one.
    fn first_element(
        &mut self,
        r: &Reduce,
        row: &Bound,
        found: Block,
        is_wanted: impl FnOnce(&mut Self, Value) -> Value,
    ) {
        self.counted(row.range.clone(), None, |l, index| {
            l.write(row.var, index);
            l.block(&r.before);
            let value = l.expr(r.value);
            let wanted = is_wanted(l, value);
            let next = l.b.create_block();
            l.b.ins().brif(wanted, found, &[index.into()], next, &[]);
            l.enter(next);
            true
        });
        self.b.ins().jump(found, &[row.range.lo.into()]);
    }

    /// Emits whether the outer binders have any row. Returns `None` if they are known to have one.
    fn any_row(&mut self, outer: &[Bound]) -> Option<Value> {
        let mut any = None;
        for Range { lo, hi, step, .. } in outer.iter().map(|b| &b.range).filter(|range| range.trips.is_none()) {
            let order = if *step > 0 { IntCC::SignedLessThan } else { IntCC::SignedGreaterThan };
            let some = self.b.ins().icmp(order, *lo, *hi);
            any = Some(any.map_or(some, |any| self.b.ins().band(any, some)));
        }
        any
    }

    /// Returns the 128-bit vector type for lanes of a type in the record. Truth values are 0 or -1.
    fn lane_vector(ty: ElemType) -> Type {
        let ty = if ty == ElemType::Bool { I32 } else { crate::lower::clif(ty) };
        ty.by(16 / ty.bytes()).unwrap_or(I32X4)
    }

    pub(super) fn begin_lanes(&mut self, (record, at): (StackSlot, u32), op: ReduceOp, ty: ElemType) {
        let vector = Self::lane_vector(ty);
        let start = match op {
            ReduceOp::Any => self.b.ins().iconst(I32, 0),
            ReduceOp::All => self.b.ins().iconst(I32, 0xffff_ffff),
            _ => self.constant(ty, identity(op, ty)),
        };
        let start = self.b.ins().splat(vector, start);
        let base = self.b.ins().stack_addr(I64, record, Offset32::new(at as i32));
        for n in 0..LANES as i32 / vector.lane_count() as i32 {
            self.b.ins().store(MemFlagsData::new().with_notrap(), start, base, Offset32::new(16 * n));
        }
    }

    /// Emits the loops of the outer binders around a row.
    fn kernel_rows(&mut self, all: &[One<'_>], (outer, row): (&[Bound], &Bound), record: StackSlot, once: bool) {
        let Some(last) = all.last() else { return };
        let binder = last.r.binders.len() - 1 - outer.len();
        if let Some((first, inner)) = outer.split_first() {
            self.counted(first.range.clone(), None, |l, index| {
                all.iter().for_each(|one| l.write(one.r.binders[binder].var, index));
                l.kernel_rows(all, (inner, row), record, once);
                true
            });
            return;
        }
        let length = row.range.trips.unwrap_or(0);
        let bytes = last.at + lane_bytes(self.ty(last.r.value));
        if let [one] = all {
            self.write(one.r.binders[binder].var, row.range.lo);
            let record = (record, bytes);
            if let Some((mut vk, term, per)) = self.narrow_sum(one.plan, record, one.r, length) {
                self.kernel_take_value(&mut vk, one.r, (one.at, once), term);
                let count = self.i64((length / per) as i64);
                return self.call_kernel(&mut vk, count, Some(length / per), row.range.poll);
            }
        }
        let mut vk = VectorKernel::new(last.plan, 1, record);
        vk.bytes = bytes;
        for one in all {
            self.write(one.r.binders[binder].var, row.range.lo);
            vk.plan = one.plan;
            self.kernel_steps(&mut vk, &one.plan.steps);
            self.kernel_take(&mut vk, one.r, one.at, once);
        }
        let count = self.i64(length as i64);
        self.call_kernel(&mut vk, count, Some(length), row.range.poll);
    }

    /// Accumulates each group of iterations in the lanes. `once` means that one call runs all iterations.
    fn kernel_take(&mut self, vk: &mut VectorKernel<'_>, r: &Reduce, lanes: u32, once: bool) {
        if let Some((x, y)) = r.factors {
            let factors = [self.kernel_value(vk, x), self.kernel_value(vk, y)];
            let accumulator = self.kernel_accumulator(vk, r, (lanes, once));
            return vk.ir.effect(Effect::AccumulateProduct { accumulator, factors, mask: None });
        }
        let mut value = self.kernel_value(vk, r.value);
        if vk.ir.lane(value) == Lane::Mask {
            let (yes, no) = (vk.ir.constant(Lane::I32, u64::MAX), vk.ir.constant(Lane::I32, 0));
            value = vk.ir.select(value, yes, no);
        }
        self.kernel_take_value(vk, r, (lanes, once), value);
    }

    /// Accumulates a value in the lanes.
    fn kernel_take_value(&mut self, vk: &mut VectorKernel<'_>, r: &Reduce, (lanes, once): (u32, bool), value: Lanes) {
        let accumulator = self.kernel_accumulator(vk, r, (lanes, once));
        let lane = vk.ir.accumulators[accumulator.0 as usize].lane;
        let value = vk.ir.bits(lane, value);
        vk.ir.accumulate(accumulator, reduction(r.op), value, None);
    }

    /// Declares the accumulator for the lanes of a reduction.
    fn kernel_accumulator(
        &mut self,
        vk: &mut VectorKernel<'_>,
        r: &Reduce,
        (offset, once): (u32, bool),
    ) -> AccumulatorId {
        let ty = self.ty(r.value);
        let lane = if ty == ElemType::Bool { Lane::I32 } else { lane(ty) };
        let start = once.then(|| reduction(r.op).identity(lane));
        vk.ir.accumulator(Accumulator { lane, offset, start, any_order: !is_ordered(r.op, ty) })
    }

    /// Emits the fold of the lanes in the record by 8, 4, 2, 1.
    pub(super) fn fold_record(&mut self, (record, at): (StackSlot, u32), op: ReduceOp, ty: ElemType) -> Value {
        let vector = Self::lane_vector(ty);
        let base = self.b.ins().stack_addr(I64, record, Offset32::new(at as i32));
        let count = LANES as usize / vector.lane_count() as usize;
        let flags = MemFlagsData::new().with_notrap();
        let mut values: SmallVec<[Value; 8]> =
            (0..count).map(|n| self.b.ins().load(vector, flags, base, Offset32::new(16 * n as i32))).collect();
        let operator = op.operator();
        while values.len() > 1 {
            let half = values.len() / 2;
            values = (0..half).map(|k| self.combine(operator, ty, values[k], values[k + half])).collect();
        }
        match op {
            ReduceOp::Any => self.b.ins().vany_true(values[0]),
            ReduceOp::All => self.b.ins().vall_true(values[0]),
            _ => self.fold_lanes_of(operator, ty, vector, values[0]),
        }
    }
}

/// Returns the number of registers that the lanes of a reduction may take. If their order does not matter, consecutive
/// groups have their own lanes as far as there are enough registers.
pub(super) fn lane_vectors(op: ReduceOp, ty: ElemType, level: Level) -> usize {
    let lane = if ty == ElemType::Bool { Lane::I32 } else { lane(ty) };
    level.vectors(lane) * if is_ordered(op, ty) { 1 } else { level.parallel_accumulators() }
}

/// Returns the number of bytes of sixteen lanes in the record.
fn lane_bytes(ty: ElemType) -> u32 {
    if ty.bytes() == 8 { 128 } else { 64 }
}
