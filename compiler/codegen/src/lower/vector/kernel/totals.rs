//! Totals in a vector kernel. Each has sixteen lanes in the record, which start with the identity.
//!
//! A reduction with a filter is a loop with one total.
//!
//! Invariant: an iteration that the mask excludes changes no lane.

use super::lanes::{lane, reduction};
use super::reduce::lane_vectors;
use super::{Lanes, VectorKernel};
use crate::lower::Lower;
use crate::lower::reduce::{Bound, LANES};
use crate::lower::vector::Plan;
use crate::lower::vector::nest::Loops;
use crate::lower::vector::search::takes_reduction;
use crate::lower::vector::steps::{self, Step, Total};
use cranelift_codegen::ir::{InstBuilder, StackSlot, Value};
use girder_codelet::scalar::is_ordered;
use girder_ir::codelet::{Reduce, ReduceOp};
use girder_ir::ids::LocalId;
use girder_ir::types::ElemType;
use girder_simd::Level;
use girder_simd::ir::{Accumulator, AccumulatorId, Effect, Lane, Op, Reduction};

/// The least number of iterations of a reduction for which a call, and lanes in memory, are profitable.
const FEWEST: u64 = 64;

/// The lanes of a total in the record.
#[derive(Clone, Copy)]
pub(super) struct KeptTotal {
    local: LocalId,
    op: ReduceOp,
    ty: ElemType,
    at: u32,
    /// The offset of flags that record for each lane whether it has any element: an empty float sum is +0, but its
    /// lanes have -0.
    any: Option<u32>,
}

/// A total during the construction of the kernel.
#[derive(Clone, Copy)]
pub(super) struct KernelTotal {
    kept: KeptTotal,
    lanes: AccumulatorId,
    any: Option<AccumulatorId>,
}

impl KeptTotal {
    fn size(self) -> u32 {
        16 * self.ty.bytes().max(4)
    }

    /// Returns the number of registers that it may take.
    pub(super) fn vectors(self, level: Level) -> usize {
        lane_vectors(self.op, self.ty, level) + self.any.map_or(0, |_| level.vectors(Lane::I32))
    }
}

impl Lower<'_, '_> {
    /// Returns the layout of a plan's totals at the start of the record.
    pub(super) fn layout(&self, plan: &Plan) -> Vec<KeptTotal> {
        let mut at = 0;
        let kept = plan.totals.iter().map(|&(local, op)| {
            let ty = self.codelet.locals[local].ty;
            let mut kept = KeptTotal { local, op, ty, at, any: None };
            at += kept.size();
            if is_ordered(op, ty) && op == ReduceOp::Sum {
                kept.any = Some(at);
                at += 64;
            }
            kept
        });
        kept.collect()
    }

    /// Returns whether a kernel has enough registers for the totals of a plan.
    pub(super) fn has_room_for_totals(&self, plan: &Plan) -> bool {
        let level = self.level();
        // At levels with few registers, the flags also count.
        let (most, any) = match level {
            Level::Avx2 => (6, level.vectors(Lane::I32)),
            Level::Avx512 => (4, 0),
        };
        let vectors = |k: &KeptTotal| level.vectors(lane(k.ty)) + k.any.map_or(0, |_| any);
        self.layout(plan).iter().map(vectors).sum::<usize>() <= most
    }

    /// Stores the identity in all lanes.
    pub(super) fn begin_totals(&mut self, record: StackSlot, totals: &[KeptTotal]) {
        for kept in totals {
            self.begin_lanes((record, kept.at), kept.op, kept.ty);
            kept.any.into_iter().for_each(|at| self.begin_lanes((record, at), ReduceOp::Any, ElemType::Bool));
        }
    }

    /// Emits the result of a total from its lanes.
    fn total(&mut self, record: StackSlot, kept: &KeptTotal) -> Value {
        let folded = self.fold_record((record, kept.at), kept.op, kept.ty);
        let Some(at) = kept.any else { return folded };
        let any = self.fold_record((record, at), ReduceOp::Any, ElemType::Bool);
        let zero = self.constant(kept.ty, 0);
        self.b.ins().select(any, folded, zero)
    }

    /// Combines the results of the totals with the locals.
    pub(super) fn end_totals(&mut self, record: StackSlot, totals: &[KeptTotal]) {
        for kept in totals {
            let new = self.total(record, kept);
            let old = self.read(kept.local);
            let new = self.combine(kept.op.operator(), kept.ty, old, new);
            self.write(kept.local, new);
        }
    }

    /// Accumulates each group of iterations in a total.
    pub(super) fn take_total(&mut self, vk: &mut VectorKernel<'_>, total: &Total) {
        let n = vk.totals.iter().position(|t| t.kept.local == total.local);
        let n = n.expect("a plan names the totals of its steps");
        let KernelTotal { kept, lanes: accumulator, any } = vk.totals[n];
        let mask = vk.active;
        if let Some(any) = any {
            let yes = vk.ir.constant(Lane::I32, u64::MAX);
            vk.ir.accumulate(any, Reduction::Or, yes, mask);
        }
        if let Some((x, y)) = total.factors {
            let factors = [self.kernel_value(vk, x), self.kernel_value(vk, y)];
            return vk.ir.effect(Effect::AccumulateProduct { accumulator, factors, mask });
        }
        let mut value: Lanes = self.kernel_value(vk, total.value);
        if total.negated {
            let zero = vk.ir.constant(lane(kept.ty), 0);
            value = vk.ir.binary(Op::Sub, zero, value);
        }
        vk.ir.accumulate(accumulator, reduction(kept.op), value, mask);
    }

    /// Emits a reduction with a filter as a vector kernel, if this is possible and profitable.
    pub(in crate::lower) fn kernel_filtered(&mut self, r: &Reduce, bounds: &[Bound]) -> Option<Value> {
        let (row, outer) = bounds.split_last()?;
        let binder = r.binders.last()?;
        let (cond, ty) = (r.filter?, self.ty(r.value));
        if binder.step != 1 || !takes_reduction(r.op, ty) || ty == ElemType::Bool {
            return None;
        }
        let length = row.range.trips.filter(|&n| n >= FEWEST)?;
        let mut then = steps::steps(&r.before, None)?;
        let total = Total { local: r.dst, op: r.op, value: r.value, factors: r.factors, negated: false };
        then.push(Step::Total(total));
        let mut body = steps::steps(&r.filter_before, None)?;
        body.push(Step::If { cond, then, els: Vec::new(), differs: true, joins: false });
        let plan = self.plan_of_steps(Some((binder.var, binder.lo, binder.hi)), Loops::default(), body, &[], true)?;
        let inside = girder_codelet::locals::reads_of_reduce(self.codelet, r);
        // Each row begins at the first lane.
        let in_place = outer.is_empty() || !is_ordered(r.op, ty) || length % LANES as u64 == 0;
        if plan.stores() || self.outlives(&plan, &inside) || !in_place || !self.kernel_pays(&plan) {
            return None;
        }
        let record = self.slot(0);
        let totals = self.layout(&plan);
        self.begin_totals(record, &totals);
        self.filtered_rows(&plan, (outer, row), record, &totals);
        Some(self.total(record, &totals[0]))
    }

    /// Emits the loops of the outer binders around a row.
    fn filtered_rows(
        &mut self,
        plan: &Plan,
        (outer, row): (&[Bound], &Bound),
        record: StackSlot,
        totals: &[KeptTotal],
    ) {
        if let Some((first, inner)) = outer.split_first() {
            self.counted(first.range.clone(), None, |l, index| {
                l.write(first.var, index);
                l.filtered_rows(plan, (inner, row), record, totals);
                true
            });
            return;
        }
        self.write(row.var, row.range.lo);
        let mut vk = VectorKernel::new(plan, 1, record);
        vk.add_totals(totals);
        self.kernel_steps(&mut vk, &plan.steps);
        let length = row.range.trips.unwrap_or(0);
        let count = self.i64(length as i64);
        self.call_kernel(&mut vk, count, Some(length), row.range.poll);
    }
}

impl VectorKernel<'_> {
    /// Adds the accumulators of totals.
    pub(super) fn add_totals(&mut self, totals: &[KeptTotal]) {
        for &kept in totals {
            let lane = lane(kept.ty);
            let any_order = !is_ordered(kept.op, kept.ty);
            let lanes = self.ir.accumulator(Accumulator { lane, offset: kept.at, start: None, any_order });
            let any = kept.any.map(|offset| {
                self.ir.accumulator(Accumulator { lane: Lane::I32, offset, start: None, any_order: false })
            });
            self.bytes = kept.any.map_or(kept.at + kept.size(), |at| at + 64);
            self.totals.push(KernelTotal { kept, lanes, any });
        }
    }
}
