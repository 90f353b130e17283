//! Vertices of a batch in vectors, where they lie on lines.
//!
//! The loop over instances takes what is left of a line: a vector kernel or groups of vertices while there are enough,
//! else one vertex in scalar code.
//!
//! Invariant: groups never reach over the end of a line or of the batch.

use super::Plan;
use super::emit::Group;
use super::steps::Exit;
use crate::lower::Lower;
use crate::lower::frame::Pointers;
use crate::lower::loops::Range;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, Value};
use girder_codelet::kernel::Lines;
use girder_ir::ids::FieldId;
use girder_simd::ir::GROUP;

/// How vertices run together.
pub(in crate::lower) struct BatchPlan {
    plan: Plan,
    /// As a vector kernel.
    as_kernel: bool,
}

impl BatchPlan {
    /// Vertices that there must be.
    fn fewest(&self) -> u64 {
        if self.as_kernel { GROUP } else { self.plan.lanes() }
    }
}

impl Lower<'_, '_> {
    /// A plan for vertices as iterations, if they lie on lines and vectors pay.
    pub(in crate::lower) fn batch_plan(&self) -> Option<BatchPlan> {
        let lines = self.spec.lines.as_ref()?;
        if self.codelet.multi {
            return None;
        }
        let body = (&self.codelet.body, Some(Exit::Return));
        let kernel = self.plan_of(None, body, &[], true).filter(|plan| self.kernel_pays(plan));
        let kernel = kernel.filter(|_| lines.length >= 2 * GROUP).map(|plan| BatchPlan { plan, as_kernel: true });
        let found = kernel.or_else(|| {
            let plan = self.plan_of(None, body, &[], false).filter(|plan| self.pays(plan))?;
            Some(BatchPlan { plan, as_kernel: false })
        });
        found.filter(|found| found.plan.stores() && lines.length >= 2 * found.fewest())
    }

    /// One iteration of the loop over instances: some groups from `instance` on, or the vertex alone. Goes to `again`
    /// with the next instance.
    pub(in crate::lower) fn batch_iteration(
        &mut self,
        batch: &BatchPlan,
        lines: &Lines,
        pointers: &Pointers,
        (instance, last): (Value, Value),
        again: Block,
    ) {
        let count = self.left_of_line(lines, instance, last);
        self.bind_fields(pointers, instance);
        let plan = &batch.plan;
        let fewest = batch.fewest() as i64;
        let many = self.b.ins().icmp_imm_u(IntCC::UnsignedGreaterThanOrEqual, count, fewest);
        let (groups, alone) = (self.b.create_block(), self.b.create_block());
        self.b.ins().brif(many, groups, &[], alone, &[]);
        self.enter(groups);
        let whole = if batch.as_kernel {
            self.run_kernel(plan, count, None, true);
            count
        } else {
            let whole = self.b.ins().band_imm_s(count, -fewest);
            self.groups(plan, lines, whole);
            whole
        };
        let next = self.b.ins().iadd(instance, whole);
        self.b.ins().jump(again, &[next.into()]);
        self.enter(alone);
        self.workers();
        let end = self.frame().end;
        self.enter(end);
        let next = self.b.ins().iadd_imm_s(instance, 1);
        self.b.ins().jump(again, &[next.into()]);
    }

    /// Instances from `instance` to the end of its line or of the batch.
    fn left_of_line(&mut self, lines: &Lines, instance: Value, last: Value) -> Value {
        let left = self.b.ins().isub(last, instance);
        if lines.length == u64::MAX {
            return left;
        }
        let length = self.i64(lines.length as i64);
        let within = self.b.ins().urem(instance, length);
        let of_line = self.b.ins().isub(length, within);
        self.b.ins().umin(left, of_line)
    }

    /// `whole` vertices from the one that the fields are bound to; a multiple of a vector's lanes.
    fn groups(&mut self, plan: &Plan, lines: &Lines, whole: Value) {
        let (lanes, unroll) = (plan.lanes(), plan.unroll());
        let group = self.begin(plan, unroll);
        let zero = self.i64(0);
        let wide = self.b.ins().band_imm_s(whole, -((lanes * unroll) as i64));
        self.group_loop(&group, lines, (zero, wide), unroll);
        if unroll > 1 {
            self.group_loop(&group, lines, (wide, whole), 1);
        }
    }

    fn group_loop(&mut self, group: &Group<'_>, lines: &Lines, (lo, hi): (Value, Value), unroll: u64) {
        let first = self.fields.clone();
        let step = (group.plan.lanes() * unroll) as i64;
        // One iteration does a bounded amount of work, or polls itself.
        let range = Range { lo, hi, step, trips: None, poll: group.plan.nested };
        self.straight(range, None, |l, ahead| {
            let edges: Vec<FieldId> = l.codelet.edges().map(|(f, _)| f).collect();
            for field in edges {
                if let (Some(address), step) = (first[field], lines.steps[field])
                    && step != 0
                {
                    let bytes = l.scaled(ahead, step);
                    l.fields[field] = Some(l.b.ins().iadd(address, bytes));
                }
            }
            l.run_steps(group, 0..unroll);
        });
        self.fields = first;
    }
}
