//! Scalar loops, fully unrolled or one iteration at a time, and the iterations that vectors leave over.
//!
//! Invariant: however a loop is translated, it is charged once, before its first iteration.

use super::{Innermost, Jump, Lower, Target};
use crate::lower::vector::Rest;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{InstBuilder, Value};
use girder_codelet::work::{self, SHORT};
use girder_ir::codelet::{Label, Stmt, StmtBlock};
use girder_ir::ids::{ExprId, LocalId, SiteId};

/// The numbers `lo`, `lo + step`, … that are less than `hi` (greater, for a negative step).
#[derive(Clone, Debug)]
pub(super) struct Range {
    pub lo: Value,
    pub hi: Value,
    pub step: i64,
    /// The trip count, if it is known. It is not 0.
    pub trips: Option<u64>,
    /// Whether to poll the stop flag in each iteration.
    pub poll: bool,
}

/// Loops of at most this many iterations are fully unrolled, if the code stays small.
const WRITTEN_OUT: u64 = 8;
/// The unroll factor of short scalar loops, and the greatest number of nodes of a short body.
const UNROLL: u64 = 4;
const SHORT_BODY: u64 = 32;
/// The greatest number of nodes of a fully unrolled loop.
const SMALL: u64 = 120;

impl Lower<'_, '_> {
    pub(super) fn for_loop(
        &mut self,
        var: LocalId,
        (lo, hi, step): (ExprId, ExprId, i64),
        (label, site): (Label, SiteId),
        body: &StmtBlock,
    ) -> bool {
        let (from, to) = (self.expr(lo), self.expr(hi));
        let trips = self.known_trips(lo, hi, step);
        if trips == Some(0) {
            return true;
        }
        let each = work::of_block(&self.folded, body);
        let poll = work::of_loop(&self.folded, lo, hi, step, each) >= SHORT;
        let mut range = Range { lo: from, hi: to, step, trips, poll };
        self.charge_loop(&range, site);
        let vectors = match step {
            1 => self.vectors((var, lo, hi), &range, (body, label)),
            _ => {
                self.refusal.set(Some("its step is not 1"));
                self.stays_scalar("the loop", var);
                None
            }
        };
        match vectors {
            Some(Rest::Nothing) => return true,
            Some(Rest::From(lo, trips)) => range = Range { lo, trips, ..range },
            None => {}
        }
        if let (Some(all), Some(left), Some(lo)) = (trips, range.trips, self.known(lo))
            && left <= WRITTEN_OUT
            && left * work::code_of_block(self.codelet, body) <= SMALL
        {
            let indices = (all - left..all).map(|n| lo.wrapping_add((n as i64).wrapping_mul(step)));
            return self.written_out(var, indices, label, body);
        }
        if let Some(trips) = range.trips.filter(|&n| n >= 4 * UNROLL && self.repeats(body)) {
            let rows = trips / UNROLL;
            let iterations = Range { step: step.wrapping_mul(UNROLL as i64), trips: Some(rows), ..range.clone() };
            self.counted(iterations, None, |l, first| {
                l.write(var, first);
                let falls = (0..UNROLL as i64).all(|n| {
                    l.ahead[var] = n.wrapping_mul(step);
                    l.block(body)
                });
                l.ahead[var] = 0;
                falls
            });
            let lo = self.b.ins().iadd_imm_s(range.lo, step.wrapping_mul((rows * UNROLL) as i64));
            match trips % UNROLL {
                0 => return true,
                left => range = Range { lo, trips: Some(left), ..range },
            }
        }
        let straight = is_straight(body);
        self.counted(range, Some(label), |l, i| {
            l.write(var, i);
            l.innermost = straight.then_some(Innermost::Index(var));
            l.block(body)
        })
    }

    /// Returns whether the body of a loop is so short that the loop is unrolled: a few plain statements.
    fn repeats(&self, body: &StmtBlock) -> bool {
        let plain = |s: &Stmt| matches!(s, Stmt::Set { .. } | Stmt::Store { .. } | Stmt::StoreLocal { .. });
        body.iter().all(plain) && work::code_of_block(self.codelet, body) <= SHORT_BODY
    }

    /// Emits the iterations of a loop that can run in vectors. Returns `None` if the loop has to stay scalar.
    fn vectors(&mut self, index: (LocalId, ExprId, ExprId), range: &Range, body: (&StmtBlock, Label)) -> Option<Rest> {
        self.refusal.set(None);
        if let Some((plan, keeps)) = self.kernel_plan(index, range.trips, body) {
            return Some(self.kernel_loop(&plan, range, keeps));
        }
        if let Some((plan, count)) = self.nest_plan(index, range.trips, body) {
            return Some(self.nest_loop(&plan, count, range));
        }
        let refusal = self.refusal.get();
        if let Some(found) = self.outer_plan(index.0, range.trips, body) {
            return Some(self.outer_loop(&found, range));
        }
        self.refusal.set(refusal);
        let Some((plan, keeps)) = self.loop_plan(index, body) else {
            self.stays_scalar("the loop", index.0);
            return None;
        };
        Some(self.vector_loop(&plan, range, keeps))
    }

    /// Emits a fully unrolled loop: the body once per index.
    fn written_out(
        &mut self,
        var: LocalId,
        indices: impl Iterator<Item = i64>,
        label: Label,
        body: &StmtBlock,
    ) -> bool {
        let exit = self.b.create_block();
        let target = |block| Target { block, used: false };
        let (mut goes_on, mut left) = (true, false);
        for index in indices {
            let next = self.b.create_block();
            self.jumps.push(Jump { label, leave: target(exit), again: Some(target(next)) });
            let value = self.i64(index);
            self.write(var, value);
            let falls = self.block(body);
            if falls {
                self.b.ins().jump(next, &[]);
            }
            let jump = self.jumps.pop().expect("a body pops the jumps that it pushes");
            left |= jump.leave.used;
            goes_on = falls || jump.again.is_some_and(|t| t.used);
            if !goes_on {
                break;
            }
            self.enter(next);
        }
        if goes_on {
            self.b.ins().jump(exit, &[]);
        }
        if goes_on || left {
            self.enter(exit);
        }
        goes_on || left
    }

    /// Emits a loop over a range. `body` takes the index and returns whether control falls through. With a label,
    /// `break` and `continue` may leave the body. Returns whether control continues after the loop.
    pub(super) fn counted(
        &mut self,
        range: Range,
        label: Option<Label>,
        body: impl FnOnce(&mut Self, Value) -> bool,
    ) -> bool {
        let [head, latch, exit] = [(); 3].map(|()| self.b.create_block());
        let index = self.b.append_block_param(head, I64);
        if range.trips.is_some() {
            self.b.ins().jump(head, &[range.lo.into()]);
        } else {
            let order = if range.step > 0 { IntCC::SignedLessThan } else { IntCC::SignedGreaterThan };
            let any = self.b.ins().icmp(order, range.lo, range.hi);
            self.b.ins().brif(any, head, &[range.lo.into()], exit, &[]);
        }
        self.b.switch_to_block(head);
        self.depth += 1;
        let around = self.innermost.take();
        if range.poll {
            self.poll();
        }
        let target = |block| Target { block, used: false };
        // A loop without a label in the source has one that no `break` uses.
        let label = label.unwrap_or(Label(u32::MAX));
        self.jumps.push(Jump { label, leave: target(exit), again: Some(target(latch)) });
        let falls = body(self, index);
        if falls {
            self.b.ins().jump(latch, &[]);
        }
        let jump = self.jumps.pop().expect("a body pops the jumps that it pushes");
        let iterations = falls || jump.again.is_some_and(|t| t.used);
        if iterations {
            self.enter(latch);
            self.next_iteration(&range, head, index, exit);
        }
        self.b.seal_block(head);
        self.depth -= 1;
        self.innermost = around;
        // With a known trip count and no next iteration, only `break` reaches the exit.
        let leaves = range.trips.is_none() || iterations || jump.leave.used;
        if leaves {
            self.enter(exit);
        }
        leaves
    }

    /// Emits the end of an iteration: a branch to the next one or to the exit.
    fn next_iteration(
        &mut self,
        range: &Range,
        head: cranelift_codegen::ir::Block,
        index: Value,
        exit: cranelift_codegen::ir::Block,
    ) {
        let (lo, step) = (range.lo, range.step);
        if range.trips == Some(1) {
            self.b.ins().jump(exit, &[]);
            return;
        }
        let next = self.b.ins().iadd_imm_s(index, step);
        let more = match range.trips {
            Some(trips) => {
                // It wraps as the index does, and no index of an earlier iteration equals it.
                let end = self.b.ins().iadd_imm_s(lo, step.wrapping_mul(trips as i64));
                self.b.ins().icmp(IntCC::NotEqual, next, end)
            }
            None if step == 1 => self.b.ins().icmp(IntCC::SignedLessThan, next, range.hi),
            None if step == -1 => self.b.ins().icmp(IntCC::SignedGreaterThan, next, range.hi),
            None => {
                // The remaining distance is positive as an unsigned number, even if `next` would overflow.
                let remains =
                    if step > 0 { self.b.ins().isub(range.hi, index) } else { self.b.ins().isub(index, range.hi) };
                let stride = self.i64(step.unsigned_abs() as i64);
                self.b.ins().icmp(IntCC::UnsignedGreaterThan, remains, stride)
            }
        };
        self.b.ins().brif(more, head, &[next.into()], exit, &[]);
    }

    pub(super) fn while_loop(
        &mut self,
        before: &StmtBlock,
        cond: ExprId,
        label: Label,
        body: &StmtBlock,
        site: SiteId,
    ) -> bool {
        let [head, go, exit] = [(); 3].map(|()| self.b.create_block());
        let alone = [before, body].into_iter().all(|block| counts_nothing(block, label));
        let iterations = self.begin_iterations(site, alone);
        self.b.ins().jump(head, &[]);
        self.b.switch_to_block(head);
        self.depth += 1;
        self.poll();
        let target = |block| Target { block, used: false };
        self.jumps.push(Jump { label, leave: target(exit), again: Some(target(head)) });
        let mut ends = false;
        if self.block(before) {
            ends = true;
            let more = self.expr(cond);
            // The second target is the block that follows in the code.
            let done = self.b.ins().icmp_imm_s(IntCC::Equal, more, 0);
            self.b.ins().brif(done, exit, &[], go, &[]);
            self.enter(go);
            self.count_iteration(&iterations, site);
            if self.block(body) {
                self.b.ins().jump(head, &[]);
            }
        }
        let left = self.jumps.pop().is_some_and(|j| j.leave.used);
        self.b.seal_block(head);
        self.depth -= 1;
        if ends || left {
            self.enter(exit);
            self.add_iterations(&iterations);
        }
        ends || left
    }
}

/// Returns whether every iteration of a loop runs all statements of its body, except those of inner loops and
/// reductions.
fn is_straight(block: &StmtBlock) -> bool {
    block.iter().all(|stmt| match stmt {
        Stmt::Set { .. } | Stmt::Fill { .. } | Stmt::Store { .. } | Stmt::StoreLocal { .. } | Stmt::Reduce(_) => true,
        Stmt::For { body, .. } => is_straight(body),
        _ => false,
    })
}

/// Returns whether the statements of a loop's body count no iterations and leave no outer loop.
fn counts_nothing(block: &StmtBlock, label: Label) -> bool {
    block.iter().all(|stmt| match stmt {
        Stmt::For { .. } | Stmt::While { .. } | Stmt::Reduce(_) | Stmt::Amp(_) | Stmt::Return => false,
        Stmt::Break(to) | Stmt::Continue(to) => *to == label,
        other => other.blocks().all(|block| counts_nothing(block, label)),
    })
}
