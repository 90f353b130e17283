//! Statements for one group of iterations.
//!
//! Invariant: the indices of a store are evaluated before its value. If a condition differs, both branches run, and
//! each lane keeps what its own branch has set.

use super::emit::Group;
use super::steps::{self, Reduction, Step};
use crate::lower::Lower;
use crate::lower::loops::Range;
use crate::lower::reduce::{Bound, LANES};
use cranelift_codegen::ir::immediates::Offset32;
use cranelift_codegen::ir::types::{I8, I64};
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, StackSlot, Value};
use cranelift_frontend::Variable;
use girder_codelet::scalar::is_ordered;
use girder_codelet::work;
use girder_ir::codelet::{BinaryOp, ReduceOp};
use girder_ir::ids::{ExprId, LocalId};
use girder_ir::types::ElemType;
use smallvec::SmallVec;

/// The greatest number of nodes of a reduction whose lanes are unrolled. A reduction of few elements has few lanes.
const SMALL: u64 = 12 * LANES as u64;
/// The number of accumulators that are in registers at a time.
const REGISTERS: usize = 8;

/// The unrolled groups, by number.
type Groups = std::ops::Range<u64>;

impl Lower<'_, '_> {
    /// Emits the plan's steps for a range of groups, counted from the group of the index.
    pub(super) fn run_steps(&mut self, group: &Group<'_>, groups: Groups) {
        let plan = group.plan;
        self.run(group, &plan.steps, groups);
        self.move_to(group, 0);
    }

    fn run(&mut self, group: &Group<'_>, steps: &[Step], groups: Groups) {
        for step in steps {
            match step {
                Step::If { cond, then, els, differs: false, .. } => {
                    self.either(group, *cond, (then, els), groups.clone())
                }
                Step::For { var, lo, hi, step, body, .. } => {
                    self.inner_loop(group, *var, (*lo, *hi, *step), body, groups.clone());
                }
                Step::Set { local, value } if !group.plan.differing.contains(*local) => {
                    let v = self.expr(*value);
                    self.write(*local, v);
                }
                Step::Reduce(r) if !group.plan.differing.contains(r.source.dst) => {
                    // Its terms may be conditional.
                    let around = self.innermost.take();
                    self.reduce(&r.source);
                    self.innermost = around;
                }
                Step::Reduce(r) => {
                    let values = self.reduce_each(group, r, groups.clone());
                    for (n, value) in groups.clone().zip(values) {
                        self.b.def_var(group.variable(r.source.dst, n), value);
                    }
                }
                _ => groups.clone().for_each(|n| self.run_one(group, step, n)),
            }
        }
    }

    /// Emits a step that differs, for one group.
    fn run_one(&mut self, group: &Group<'_>, step: &Step, n: u64) {
        self.move_to(group, n);
        match step {
            Step::Set { local, value } => {
                let v = self.vector_value(group, *value);
                self.b.def_var(group.variable(*local, n), v);
            }
            Step::Store { storage, index, value, stride, .. } => {
                let v = self.vector_value(group, *value);
                self.vector_store(group, (*storage, index), v, *stride);
            }
            Step::If { cond, then, els, joins, .. } => {
                let value = self.both(group, *cond, (then, els), *joins, n);
                if let Some((value, (storage, index, stride))) = value.zip(steps::last_store(then)) {
                    self.vector_store(group, (storage, index), value, stride);
                }
            }
            Step::For { .. } | Step::Reduce(_) => unreachable!("`run` takes loops for all groups together"),
            Step::Total(_) => unreachable!("only plans for vector kernels have totals"),
        }
    }

    /// Emits both branches of a condition that differs. If they end with a common store, returns the value that it
    /// stores.
    fn both(
        &mut self,
        group: &Group<'_>,
        cond: ExprId,
        (then, els): (&[Step], &[Step]),
        joins: bool,
        n: u64,
    ) -> Option<Value> {
        let mask = self.vector_value(group, cond);
        let set = steps::set_in([then, els]);
        let variables = set.keys().filter(|&l| set.contains(l)).map(|l| group.variable(l, n));
        let variables: Vec<Variable> = variables.collect();
        let before: Vec<Value> = variables.iter().map(|&v| self.b.use_var(v)).collect();
        let yes = self.branch_of(group, then, joins, n);
        let after: Vec<Value> = variables.iter().map(|&v| self.b.use_var(v)).collect();
        for (&variable, &value) in variables.iter().zip(&before) {
            self.b.def_var(variable, value);
        }
        let no = self.branch_of(group, els, joins, n);
        for (&variable, &yes) in variables.iter().zip(&after) {
            let no = self.b.use_var(variable);
            let value = self.blend(mask, yes, no);
            self.b.def_var(variable, value);
        }
        yes.zip(no).map(|(yes, no)| self.blend(mask, yes, no))
    }

    /// Emits a branch. If it joins the other, emits all but its last store, and returns the value of that store.
    fn branch_of(&mut self, group: &Group<'_>, steps: &[Step], joins: bool, n: u64) -> Option<Value> {
        let (before, last) = match steps.split_last() {
            Some((last, before)) if joins => (before, last),
            _ => {
                self.run(group, steps, n..n + 1);
                return None;
            }
        };
        self.run(group, before, n..n + 1);
        self.move_to(group, n);
        match last {
            Step::Store { value, .. } => Some(self.vector_value(group, *value)),
            Step::If { cond, then, els, .. } => self.both(group, *cond, (then, els), true, n),
            _ => unreachable!("branches that join end with a store"),
        }
    }

    /// Emits a condition that is the same for all iterations.
    fn either(&mut self, group: &Group<'_>, cond: ExprId, (then, els): (&[Step], &[Step]), groups: Groups) {
        if let Some(bits) = self.folded[cond] {
            return self.run(group, if bits != 0 { then } else { els }, groups);
        }
        let cond = self.expr(cond);
        let [yes, no, join] = [(); 3].map(|()| self.b.create_block());
        self.b.ins().brif(cond, yes, &[], no, &[]);
        // Loads under the condition must stay there.
        let around = self.innermost.take();
        for (block, steps) in [(yes, then), (no, els)] {
            self.enter(block);
            self.run(group, steps, groups.clone());
            self.b.ins().jump(join, &[]);
        }
        self.enter(join);
        self.innermost = around;
    }

    fn inner_loop(
        &mut self,
        group: &Group<'_>,
        var: LocalId,
        (lo, hi, step): (ExprId, ExprId, i64),
        body: &[Step],
        groups: Groups,
    ) {
        let (from, to) = (self.expr(lo), self.expr(hi));
        let trips = self.known_trips(lo, hi, step);
        if trips == Some(0) {
            return;
        }
        // The work of an iteration is not known here. Polling the stop flag costs little in comparison.
        let poll = trips.is_none_or(|n| n >= 1 << 12);
        let range = Range { lo: from, hi: to, step, trips, poll };
        self.straight(range, Some(var), |l, _| l.run(group, body, groups));
    }

    /// Emits a reduction over each iteration's own elements, for each group.
    fn reduce_each(&mut self, group: &Group<'_>, r: &Reduction, groups: Groups) -> Vec<Value> {
        let (op, ty) = (r.source.op, self.ty(r.source.value));
        let start = self.start_vector(group.plan, op, ty);
        let Some(bounds) = self.bounds(&r.source) else {
            let value = if op == ReduceOp::Sum { self.nothing(group, ty) } else { start };
            return groups.map(|_| value).collect();
        };
        if !is_ordered(op, ty) {
            let sums = self.sums(start, groups.clone());
            self.each_element(&bounds, &mut |l| {
                l.run(group, &r.before, groups.clone());
                sums.iter().zip(groups.clone()).for_each(|(&sum, n)| l.take_element(group, r, sum, n));
            });
            return sums.iter().map(|&sum| self.b.use_var(sum)).collect();
        }
        let code: u64 = r.values().into_iter().map(|e| work::code_of(self.codelet, e)).sum();
        let trips = bounds.iter().try_fold(1u64, |n, b| Some(n.saturating_mul(b.range.trips?)));
        match (&bounds[..], trips) {
            ([bound], Some(trips)) if r.before.is_empty() && code.saturating_mul(trips.min(LANES as u64)) <= SMALL => {
                self.lanes_unrolled(group, r, (bound, trips), start, groups)
            }
            _ => groups.map(|n| self.lanes_in_memory(group, r, (&bounds, trips), start, n)).collect(),
        }
    }

    /// Declares an accumulator for each group.
    fn sums(&mut self, start: Value, groups: Groups) -> Vec<Variable> {
        let vector = self.b.func.dfg.value_type(start);
        let sum = |_| {
            let sum = self.b.declare_var(vector);
            self.b.def_var(sum, start);
            sum
        };
        groups.map(sum).collect()
    }

    /// Emits the sum of no elements.
    fn nothing(&mut self, group: &Group<'_>, ty: ElemType) -> Value {
        let zero = self.constant(ty, 0);
        self.spread(group.plan.width, ty, zero)
    }

    fn each_element(&mut self, bounds: &[Bound], take: &mut dyn FnMut(&mut Self)) {
        let Some((first, inner)) = bounds.split_first() else { return take(self) };
        self.straight(first.range.clone(), Some(first.var), |l, _| l.each_element(inner, take));
    }

    /// Accumulates an element of each iteration of a group.
    fn take_element(&mut self, group: &Group<'_>, r: &Reduction, sum: Variable, n: u64) {
        self.move_to(group, n);
        let new = match r.source.factors {
            Some((x, y)) => {
                let (x, y) = (self.vector_value(group, x), self.vector_value(group, y));
                let old = self.b.use_var(sum);
                self.b.ins().fma(x, y, old)
            }
            None => {
                let v = self.vector_value(group, r.source.value);
                let old = self.b.use_var(sum);
                self.combine(r.source.op.operator(), self.ty(r.source.value), old, v)
            }
        };
        self.b.def_var(sum, new);
    }

    /// Emits the sixteen lanes of a reduction in several passes over its elements, each for a few lanes. Of sixteen
    /// consecutive elements, a pass takes those of its lanes.
    fn lanes_unrolled(
        &mut self,
        group: &Group<'_>,
        r: &Reduction,
        (bound, trips): (&Bound, u64),
        start: Value,
        groups: Groups,
    ) -> Vec<Value> {
        let count = groups.clone().count();
        let unroll = (REGISTERS / count).max(1);
        let mut lanes: Vec<SmallVec<[Value; 16]>> = vec![SmallVec::new(); count];
        for first in (0..LANES).step_by(unroll) {
            let sums: Vec<Vec<Variable>> = (0..unroll).map(|_| self.sums(start, groups.clone())).collect();
            self.pass(group, r, (bound, trips), (first, &sums), groups.clone());
            // Lanes without elements have the identity, which changes nothing.
            let touched = (trips as i64 - first).clamp(0, unroll as i64) as usize;
            for sums in &sums[..touched] {
                for (lanes, &sum) in lanes.iter_mut().zip(sums) {
                    lanes.push(self.b.use_var(sum));
                }
            }
        }
        let (op, ty) = (r.source.op.operator(), self.ty(r.source.value));
        lanes.into_iter().map(|lanes| self.fold_present(op, ty, lanes)).collect()
    }

    /// Emits a pass over all elements of the lanes from `first` on.
    fn pass(
        &mut self,
        group: &Group<'_>,
        r: &Reduction,
        (bound, trips): (&Bound, u64),
        (first, sums): (i64, &[Vec<Variable>]),
        groups: Groups,
    ) {
        let step = bound.range.step;
        let (iterations, rest) = (trips / LANES as u64, (trips % LANES as u64) as i64);
        let take = |l: &mut Self, n: usize| {
            l.ahead[bound.var] = (n as i64).wrapping_mul(step);
            sums[n].iter().zip(groups.clone()).for_each(|(&sum, g)| l.take_element(group, r, sum, g));
            l.ahead[bound.var] = 0;
        };
        if iterations > 0 {
            let lo = self.b.ins().iadd_imm_s(bound.range.lo, first.wrapping_mul(step));
            let range = Range { lo, step: step.wrapping_mul(LANES), trips: Some(iterations), ..bound.range.clone() };
            self.straight(range, Some(bound.var), |l, _| (0..sums.len()).for_each(|n| take(l, n)));
        }
        let left = (rest - first).clamp(0, sums.len() as i64) as usize;
        if left > 0 {
            let element = (iterations as i64 * LANES + first).wrapping_mul(step);
            let index = self.b.ins().iadd_imm_s(bound.range.lo, element);
            self.write(bound.var, index);
            (0..left).for_each(|n| take(self, n));
        }
    }

    /// Emits a reduction with the sixteen lanes in memory, where the position selects one.
    fn lanes_in_memory(
        &mut self,
        group: &Group<'_>,
        r: &Reduction,
        (bounds, trips): (&[Bound], Option<u64>),
        start: Value,
        n: u64,
    ) -> Value {
        let slot = self.slot(16 * LANES as u32);
        let base = self.b.ins().stack_addr(I64, slot, Offset32::new(0));
        let flags = MemFlagsData::new().with_notrap();
        for lane in 0..LANES as i32 {
            self.b.ins().store(flags, start, base, Offset32::new(16 * lane));
        }
        let (position, any) = (self.b.declare_var(I64), self.b.declare_var(I8));
        let vector = self.b.func.dfg.value_type(start);
        let sum = self.b.declare_var(vector);
        let (zero, no) = (self.i64(0), self.bool(false));
        self.b.def_var(position, zero);
        self.b.def_var(any, no);
        self.each_element(bounds, &mut |l| {
            l.run(group, &r.before, n..n + 1);
            let at = l.lane_place(slot, position);
            let old = l.b.ins().load(vector, flags, at, Offset32::new(0));
            l.b.def_var(sum, old);
            l.take_element(group, r, sum, n);
            let new = l.b.use_var(sum);
            l.b.ins().store(flags, new, at, Offset32::new(0));
            let now = l.b.use_var(position);
            let next = l.b.ins().iadd_imm_s(now, 1);
            l.b.def_var(position, next);
            let yes = l.bool(true);
            l.b.def_var(any, yes);
        });
        let lanes = (0..LANES as i32).map(|lane| self.b.ins().load(vector, flags, base, Offset32::new(16 * lane)));
        let lanes = lanes.collect();
        let (op, ty) = (r.source.op.operator(), self.ty(r.source.value));
        let folded = self.fold_present(op, ty, lanes);
        if op != BinaryOp::Add || trips.is_some() {
            return folded;
        }
        let (any, nothing) = (self.b.use_var(any), self.nothing(group, ty));
        let mask = self.spread(group.plan.width, ElemType::Bool, any);
        self.blend(mask, folded, nothing)
    }

    fn lane_place(&mut self, slot: StackSlot, position: Variable) -> Value {
        let now = self.b.use_var(position);
        let lane = self.b.ins().band_imm_u(now, LANES - 1);
        let bytes = self.b.ins().ishl_imm_u(lane, 4);
        let base = self.b.ins().stack_addr(I64, slot, Offset32::new(0));
        self.b.ins().iadd(base, bytes)
    }
}
