//! Vertices of a batch in vectors, if the vertices are on lines.
//!
//! Each iteration of the loop over instances takes vertices from the rest of a line: by a vector kernel or in groups if
//! there are enough, otherwise one vertex in scalar code.
//!
//! Invariant: groups never extend past the end of a line or of the batch.

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

/// The way in which vertices run together.
pub(in crate::lower) struct BatchPlan {
    plan: Plan,
    /// Whether they run as a vector kernel.
    as_kernel: bool,
}

impl BatchPlan {
    /// Returns the least number of vertices that can run together.
    fn fewest(&self) -> u64 {
        if self.as_kernel { GROUP } else { self.plan.lanes() }
    }
}

impl Lower<'_, '_> {
    /// Returns a plan with vertices as iterations, if they are on lines and vectors are profitable.
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

    /// Emits one iteration of the loop over instances: several groups from `instance` on, or the vertex alone. Jumps to
    /// `again` with the next instance.
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

    /// Returns the number of instances from `instance` to the end of its line or of the batch.
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

    /// Emits `whole` vertices from the one to which the fields are bound. The number is a multiple of the lanes of a
    /// vector.
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
        // One iteration does a bounded amount of work, or polls by itself.
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
