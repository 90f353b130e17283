//! Reductions in vectors.
//!
//! The sixteen lanes of the language are four vectors of four lanes, or eight of two. A row of elements (the innermost
//! binder) is reduced sixteen elements at a time. A large body is translated once and reduces one vector per iteration,
//! and the accumulators rotate. The remaining elements of a row go to their lanes one by one.
//!
//! Invariant: an element goes to the lane of its row-major position, unless the order does not matter.

use super::Plan;
use super::emit::Group;
use super::search::takes_reduction;
use super::steps;
use crate::lower::Lower;
use crate::lower::loops::Range;
use crate::lower::reduce::{Bound, LANES};
use cranelift_codegen::ir::{InstBuilder, Type, Value};
use cranelift_frontend::Variable;
use girder_codelet::interpret::identity;
use girder_codelet::locals::reads_of_reduce;
use girder_codelet::scalar::is_ordered;
use girder_ir::codelet::{BinaryOp, Reduce, ReduceOp};
use girder_ir::types::ElemType;

/// The greatest number of operations of a body that is translated once per accumulator.
const SMALL: u32 = 24;

/// The accumulators of a reduction.
struct Accumulators {
    /// Vectors of sixteen lanes in total.
    vectors: Vec<Variable>,
    /// The accumulator of elements that do not fill a vector, if the order does not matter.
    rest: Option<Variable>,
    ty: ElemType,
    vector: Type,
    /// The number of rotations by the end.
    rotated: u64,
}

impl Lower<'_, '_> {
    /// Emits a reduction in vectors and returns its result, if it qualifies. There is at least one element.
    pub(in crate::lower) fn vector_reduce(&mut self, r: &Reduce, bounds: &[Bound]) -> Option<Value> {
        let (row, outer) = bounds.split_last()?;
        let binder = r.binders.last()?;
        let ty = self.ty(r.value);
        let values = steps::values(r);
        let plain = r.filter.is_none() && binder.step == 1 && (r.factors.is_none() || self.features.fma);
        if !plain || !takes_reduction(r.op, ty) {
            return None;
        }
        let length = row.range.trips?;
        let rows = outer.iter().try_fold(1u64, |n, b| Some(n.saturating_mul(b.range.trips?)))?;
        let plan = self.plan(Some((binder.var, binder.lo, binder.hi)), &r.before, &values)?;
        let inside = reads_of_reduce(self.codelet, r);
        if plan.stores() || plan.nested || self.outlives(&plan, &inside) || !self.pays(&plan) || plan.loads.is_empty() {
            return None;
        }
        let ordered = is_ordered(r.op, ty);
        if length < plan.lanes() || (ordered && rows > 1 && length % plan.lanes() != 0) {
            return None;
        }
        let rotates = plan.size > SMALL || (rows > 1 && length % LANES as u64 != 0);
        let mut accumulators = self.accumulators(r.op, ty, &plan, ordered);
        if rotates {
            accumulators.rotated = rows.wrapping_mul(length / plan.lanes());
        }
        self.rows(r, &plan, outer, row, rotates, &accumulators);
        let touched = if rows == 1 && !rotates { length.div_ceil(plan.lanes()) } else { u64::MAX };
        Some(self.fold_vectors(r.op, &accumulators, touched))
    }

    fn accumulators(&mut self, op: ReduceOp, ty: ElemType, plan: &Plan, ordered: bool) -> Accumulators {
        let start = self.constant(ty, identity(op, ty));
        let first = self.start_vector(plan, op, ty);
        let vector = self.b.func.dfg.value_type(first);
        let vectors = (0..LANES as u64 / plan.lanes()).map(|_| {
            let v = self.b.declare_var(vector);
            self.b.def_var(v, first);
            v
        });
        let vectors = vectors.collect();
        let rest = (!ordered).then(|| {
            let v = self.b.declare_var(crate::lower::clif(ty));
            self.b.def_var(v, start);
            v
        });
        Accumulators { vectors, rest, ty, vector, rotated: 0 }
    }

    /// Emits the loops of the outer binders around a row.
    fn rows(
        &mut self,
        r: &Reduce,
        plan: &Plan,
        outer: &[Bound],
        row: &Bound,
        rotates: bool,
        accumulators: &Accumulators,
    ) {
        let Some((first, inner)) = outer.split_first() else {
            return self.row(r, plan, row, rotates, accumulators);
        };
        self.counted(first.range.clone(), None, |l, index| {
            l.write(first.var, index);
            l.rows(r, plan, inner, row, rotates, accumulators);
            true
        });
    }

    fn row(&mut self, r: &Reduce, plan: &Plan, row: &Bound, rotates: bool, accumulators: &Accumulators) {
        let lanes = plan.lanes();
        let length = row.range.trips.unwrap_or(0);
        self.write(row.var, row.range.lo);
        let group = self.begin(plan, 1);
        let vectors = length / lanes;
        if rotates {
            self.row_iterations(row, vectors, lanes, |l| {
                l.take(r, &group, accumulators, 0, 0);
                l.rotate(accumulators);
            });
        } else {
            let per_iteration = LANES as u64 / lanes;
            self.row_iterations(row, vectors / per_iteration, LANES as u64, |l| {
                l.take_unrolled(r, &group, accumulators, per_iteration);
            });
            let done = vectors - vectors % per_iteration;
            let next = self.b.ins().iadd_imm_s(row.range.lo, (done * lanes) as i64);
            self.write(row.var, next);
            self.take_unrolled(r, &group, accumulators, vectors % per_iteration);
        }
        let last = if rotates { 0 } else { (vectors % (LANES as u64 / lanes)) as usize };
        for lane in 0..length % lanes {
            self.take_one(r, row, (vectors * lanes + lane) as i64, accumulators, last, lane as u8);
        }
    }

    /// Emits `count` iterations at a stride of `elements`. A single one needs no loop.
    fn row_iterations(&mut self, row: &Bound, count: u64, elements: u64, body: impl FnOnce(&mut Self)) {
        if count > 1 {
            let range = Range { step: elements as i64, trips: Some(count), ..row.range.clone() };
            self.straight(range, Some(row.var), |l, _| body(l));
        } else if count == 1 {
            body(self);
        }
    }

    /// Emits `count` consecutive groups, each into its accumulator.
    fn take_unrolled(&mut self, r: &Reduce, group: &Group<'_>, accumulators: &Accumulators, count: u64) {
        for n in 0..count {
            self.take(r, group, accumulators, n as usize, n);
        }
        self.move_to(group, 0);
    }

    /// Accumulates the elements of the n-th group in the k-th accumulator.
    fn take(&mut self, r: &Reduce, group: &Group<'_>, accumulators: &Accumulators, k: usize, n: u64) {
        self.run_steps(group, n..n + 1);
        self.move_to(group, n);
        let variable = accumulators.vectors[k];
        let new = match r.factors {
            Some((x, y)) => {
                let (x, y) = (self.vector_value(group, x), self.vector_value(group, y));
                let old = self.b.use_var(variable);
                self.b.ins().fma(x, y, old)
            }
            None => {
                let v = self.vector_value(group, r.value);
                let old = self.b.use_var(variable);
                self.combine(r.op.operator(), accumulators.ty, old, v)
            }
        };
        self.b.def_var(variable, new);
    }

    fn rotate(&mut self, accumulators: &Accumulators) {
        let values: Vec<Value> = accumulators.vectors.iter().map(|&v| self.b.use_var(v)).collect();
        let n = values.len();
        for (k, &variable) in accumulators.vectors.iter().enumerate() {
            self.b.def_var(variable, values[(k + 1) % n]);
        }
    }

    /// Accumulates one element in a lane, or in the accumulator of the rest.
    fn take_one(&mut self, r: &Reduce, row: &Bound, element: i64, accumulators: &Accumulators, n: usize, lane: u8) {
        let at = self.b.ins().iadd_imm_s(row.range.lo, element);
        self.write(row.var, at);
        self.block(&r.before);
        let variable = accumulators.rest.unwrap_or(accumulators.vectors[n]);
        let new = match r.factors {
            Some((x, y)) => {
                let (x, y) = (self.expr(x), self.expr(y));
                let old = self.lane(variable, accumulators, lane);
                self.fma(accumulators.ty, x, y, old)
            }
            None => {
                let v = self.expr(r.value);
                let old = self.lane(variable, accumulators, lane);
                self.combine(r.op.operator(), accumulators.ty, old, v)
            }
        };
        let new = match accumulators.rest {
            Some(_) => new,
            None => {
                let vector = self.b.use_var(variable);
                self.b.ins().insertlane(vector, new, lane)
            }
        };
        self.b.def_var(variable, new);
    }

    fn lane(&mut self, variable: Variable, accumulators: &Accumulators, lane: u8) -> Value {
        let v = self.b.use_var(variable);
        if accumulators.rest.is_some() { v } else { self.b.ins().extractlane(v, lane) }
    }

    /// Folds the lanes by 8, 4, 2, 1, and combines the result with the rest. Vectors from `touched` on have the
    /// identity and are omitted.
    fn fold_vectors(&mut self, op: ReduceOp, accumulators: &Accumulators, touched: u64) -> Value {
        let Accumulators { vectors, rest, ty, vector, rotated } = accumulators;
        let count = vectors.len();
        let shift = (rotated % count as u64) as usize;
        let mut values: Vec<Option<Value>> = (0..count)
            .map(|g| ((g as u64) < touched).then(|| self.b.use_var(vectors[(g + count - shift) % count])))
            .collect();
        let mut half = count / 2;
        while half > 0 {
            for k in 0..half {
                values[k] = match (values[k], values[k + half]) {
                    (Some(a), Some(b)) => Some(self.combine(op.operator(), *ty, a, b)),
                    (a, b) => a.or(b),
                };
            }
            half /= 2;
        }
        let whole = values[0].expect("the first vector is always touched");
        let folded = match op {
            ReduceOp::Any => self.b.ins().vany_true(whole),
            ReduceOp::All => self.b.ins().vall_true(whole),
            _ => self.fold_lanes_of(op.operator(), *ty, *vector, whole),
        };
        match rest {
            Some(rest) => {
                let rest = self.b.use_var(*rest);
                self.combine(op.operator(), *ty, folded, rest)
            }
            None => folded,
        }
    }

    pub(super) fn fold_lanes_of(&mut self, op: BinaryOp, ty: ElemType, vector: Type, whole: Value) -> Value {
        let mut lanes: Vec<Value> =
            (0..vector.lane_count()).map(|n| self.b.ins().extractlane(whole, n as u8)).collect();
        while lanes.len() > 1 {
            let half = lanes.len() / 2;
            lanes = (0..half).map(|k| self.combine(op, ty, lanes[k], lanes[k + half])).collect();
        }
        lanes[0]
    }
}
