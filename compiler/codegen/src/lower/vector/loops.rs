//! `for` loops in vectors.
//!
//! Invariant: every iteration runs, and twice only if the plan is idempotent. If a local that the body sets is read
//! elsewhere, the last iteration runs in the scalar loop, which sets the local.

use super::Plan;
use super::emit::Group;
use super::steps::Exit;
use crate::lower::loops::Range;
use crate::lower::{Innermost, Lower};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{InstBuilder, Value};
use cranelift_entity::SecondaryMap;
use girder_ir::codelet::{Label, StmtBlock};
use girder_ir::ids::{ExprId, LocalId};

/// The rest of a loop, for scalar code.
pub(in crate::lower) enum Rest {
    Nothing,
    /// The first iteration that has not run, and the number of those that have not, if it is known. It is not 0.
    From(Value, Option<u64>),
}

/// At most this many groups are fully unrolled, if they are small.
const WRITTEN_OUT: u64 = 4;
/// The greatest number of operations of fully unrolled groups.
const SMALL: u64 = 96;

impl Lower<'_, '_> {
    /// Returns a plan for a loop if vectors are profitable, and whether the last iteration has to stay scalar.
    pub(in crate::lower) fn loop_plan(
        &self,
        index: (LocalId, ExprId, ExprId),
        (body, label): (&StmtBlock, Label),
    ) -> Option<(Plan, bool)> {
        let plan = self.plan_of(Some(index), (body, Some(Exit::Continue(label))), &[], false)?;
        let inside = girder_codelet::locals::reads(self.codelet, body);
        let keeps = self.outlives(&plan, &inside);
        (plan.stores() && self.pays(&plan)).then_some((plan, keeps))
    }

    /// Returns whether a local that the body sets is read outside the body.
    pub(super) fn outlives(&self, plan: &Plan, inside: &SecondaryMap<LocalId, u32>) -> bool {
        self.codelet.locals.keys().any(|l| plan.sets.contains(l) && inside[l] != self.reads[l])
    }

    /// Returns whether vectors are profitable. Elements that are not contiguous are moved one by one, so there must be
    /// enough other work. If the body contains loops, those could become vectors instead.
    pub(super) fn pays(&self, plan: &Plan) -> bool {
        if plan.nested { plan.strided == 0 } else { plan.size >= 6 * plan.strided }
    }

    /// Emits the iterations that vectors can run. With `keeps`, the last one is left over.
    pub(in crate::lower) fn vector_loop(&mut self, plan: &Plan, range: &Range, keeps: bool) -> Rest {
        match range.trips {
            Some(trips) => self.known_loop(plan, range, trips, keeps),
            None => self.open_loop(plan, range, keeps),
        }
    }

    fn known_loop(&mut self, plan: &Plan, range: &Range, trips: u64, keeps: bool) -> Rest {
        let lanes = plan.lanes();
        let groups = (trips - u64::from(keeps)) / lanes;
        if groups == 0 {
            return Rest::From(range.lo, Some(trips));
        }
        let var = plan.var.expect("a loop has an index");
        self.write(var, range.lo);
        let unroll = plan.unroll();
        let group = self.begin(plan, unroll);
        if groups <= WRITTEN_OUT && groups * u64::from(plan.size) <= SMALL && !plan.nested {
            (0..groups).for_each(|n| self.run_steps(&group, n..n + 1));
        } else {
            self.group_iterations(&group, (range, 0), groups / unroll, unroll);
            self.group_iterations(&group, (range, groups - groups % unroll), groups % unroll, 1);
        }
        let rest = trips - groups * lanes;
        if rest == 0 {
            return Rest::Nothing;
        }
        if plan.idempotent && !keeps {
            // The last group ends with the last iteration. Some of its iterations have already run.
            let last = self.b.ins().iadd_imm_s(range.lo, (trips - lanes) as i64);
            self.write(var, last);
            self.run_steps(&group, 0..1);
            return Rest::Nothing;
        }
        Rest::From(self.b.ins().iadd_imm_s(range.lo, (groups * lanes) as i64), Some(rest))
    }

    /// Emits a loop whose body all iterations run unconditionally, so that a load may be moved to its use.
    pub(super) fn straight(&mut self, range: Range, index: Option<LocalId>, body: impl FnOnce(&mut Self, Value)) {
        self.counted(range, None, |l, i| {
            index.into_iter().for_each(|index| l.write(index, i));
            l.innermost = Some(index.map_or(Innermost::Vertices, Innermost::Index));
            body(l, i);
            true
        });
    }

    /// Emits `count` iterations of `unroll` groups, from group `first` on. The index is at the first iteration of the
    /// loop.
    fn group_iterations(&mut self, group: &Group<'_>, (range, first): (&Range, u64), count: u64, unroll: u64) {
        if count == 0 {
            return;
        }
        let lanes = group.plan.lanes();
        let lo = self.b.ins().iadd_imm_s(range.lo, (first * lanes) as i64);
        if let (1, Some(var)) = (count, group.plan.var) {
            self.write(var, lo);
            return self.run_steps(group, 0..unroll);
        }
        let iterations = Range { lo, step: (lanes * unroll) as i64, trips: Some(count), ..range.clone() };
        self.straight(iterations, group.plan.var, |l, _| l.run_steps(group, 0..unroll));
    }

    fn open_loop(&mut self, plan: &Plan, range: &Range, keeps: bool) -> Rest {
        let lanes = plan.lanes() as i64;
        let (vectors, join) = (self.b.create_block(), self.b.create_block());
        let start = self.b.append_block_param(join, I64);
        let any = self.b.ins().icmp(IntCC::SignedLessThan, range.lo, range.hi);
        // If the span overflows, it is negative, and the loop stays scalar.
        let span = self.b.ins().isub(range.hi, range.lo);
        let elements = self.b.ins().iadd_imm_s(span, -i64::from(keeps));
        let whole = self.b.ins().band_imm_s(elements, -lanes);
        let some = self.b.ins().icmp_imm_s(IntCC::SignedGreaterThan, whole, 0);
        let enter = self.b.ins().band(any, some);
        self.b.ins().brif(enter, vectors, &[], join, &[range.lo.into()]);
        self.enter(vectors);
        let var = plan.var.expect("a loop has an index");
        self.write(var, range.lo);
        let group = self.begin(plan, 1);
        let next = self.b.ins().iadd(range.lo, whole);
        let iterations = Range { hi: next, step: lanes, ..range.clone() };
        self.straight(iterations, Some(var), |l, _| l.run_steps(&group, 0..1));
        self.b.ins().jump(join, &[next.into()]);
        self.enter(join);
        Rest::From(start, None)
    }
}
