//! Statements.
//!
//! Invariant: the translation of a statement returns whether control continues after it. If not, the current block is
//! filled, and the caller starts a new one or stops.

use super::loops::Range;
use super::{Jump, LocalStorage, Lower, Target, clif};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::immediates::Offset32;
use cranelift_codegen::ir::types::{I8X16, I64};
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Value};
use girder_ir::codelet::{Label, Stmt, StmtBlock, Storage};
use girder_ir::ids::{ExprId, LocalId, SiteId};
use smallvec::SmallVec;

impl Lower<'_, '_> {
    /// Emits statements in order. Returns whether control continues after them.
    pub(super) fn block(&mut self, block: &StmtBlock) -> bool {
        if self.points.is_none() {
            let mut left = &block[..];
            while let [stmt, ..] = left {
                let taken = self.neighbours(left);
                if taken.is_none() && !self.stmt(stmt) {
                    return false;
                }
                left = &left[taken.unwrap_or(1)..];
            }
            return true;
        }
        if block.is_empty() {
            self.count(block, 0);
        }
        block.iter().enumerate().all(|(n, stmt)| {
            self.count(block, n);
            self.stmt(stmt)
        })
    }

    /// Increments the counters of the points before a statement.
    fn count(&mut self, block: &StmtBlock, stmt: usize) {
        let points = self.points.as_ref().map_or(&[][..], |p| p.of(block));
        let here: SmallVec<[u32; 2]> = points.iter().filter(|p| p.0 as usize == stmt).map(|p| p.1).collect();
        for counter in here {
            let flags = MemFlagsData::new().with_notrap();
            let row = self.frame().counters;
            let at = Offset32::new(8 * counter as i32);
            let old = self.b.ins().load(I64, flags, row, at);
            let new = self.b.ins().iadd_imm_s(old, 1);
            self.b.ins().store(flags, new, row, at);
        }
    }

    /// Returns whether a point inside a block is counted, so that the block has to run in its original form.
    pub(super) fn counts_in(&self, block: &StmtBlock) -> bool {
        self.points.as_ref().is_some_and(|p| p.any_in(block))
    }

    /// Lowers a statement; returns whether the statements after it are reached.
    pub(super) fn stmt(&mut self, stmt: &Stmt) -> bool {
        match stmt {
            Stmt::Set { local, value } => {
                let v = self.expr(*value);
                self.write(*local, v);
            }
            Stmt::Fill { local, value } => self.fill(*local, *value),
            Stmt::StoreLocal { local, index, value, site } => {
                let element = self.located(Storage::Local(*local), index, *site);
                let v = self.expr(*value);
                self.store(&element, v);
            }
            Stmt::Store { field, index, value, site } => {
                let element = self.located(Storage::Field(*field), index, *site);
                let v = self.expr(*value);
                self.store(&element, v);
            }
            Stmt::For { var, lo, hi, step, label, body, site } => {
                return self.for_loop(*var, (*lo, *hi, *step), (*label, *site), body);
            }
            Stmt::While { before, cond, label, body, site } => {
                return self.while_loop(before, *cond, *label, body, *site);
            }
            Stmt::If { cond, then, els } => return self.branch(*cond, then, els),
            Stmt::Labelled { label, body } => return self.labelled(*label, body),
            Stmt::Break(label) => self.jump_to(*label, false),
            Stmt::Continue(label) => self.jump_to(*label, true),
            Stmt::Return => {
                let end = self.frame().end;
                self.b.ins().jump(end, &[]);
            }
            Stmt::Assert { cond, site } => self.assert(*cond, *site),
            Stmt::Reduce(reduce) => {
                // Its terms may be conditional.
                let around = self.innermost.take();
                self.reduce(reduce);
                self.innermost = around;
            }
            Stmt::Amp(amp) => self.amp(amp),
        }
        !matches!(stmt, Stmt::Break(_) | Stmt::Continue(_) | Stmt::Return)
    }

    fn assert(&mut self, cond: ExprId, site: SiteId) {
        let holds = self.expr(cond);
        if !self.is_proven(site) && self.folded[cond] != Some(1) {
            let bad = self.b.ins().icmp_imm_u(IntCC::Equal, holds, 0);
            self.guard_plain(bad, site);
        }
    }

    fn branch(&mut self, cond: ExprId, then: &StmtBlock, els: &StmtBlock) -> bool {
        if let Some(bits) = self.folded[cond] {
            return self.block(if bits != 0 { then } else { els });
        }
        if self.convert_if(cond, (then, els)) {
            return true;
        }
        let cond = self.expr(cond);
        let [yes, no, join] = [(); 3].map(|()| self.b.create_block());
        let after_no = if els.is_empty() { join } else { no };
        self.b.ins().brif(cond, yes, &[], after_no, &[]);
        self.enter(yes);
        let mut goes_on = els.is_empty();
        if self.block(then) {
            self.b.ins().jump(join, &[]);
            goes_on = true;
        }
        if !els.is_empty() {
            self.enter(no);
            if self.block(els) {
                self.b.ins().jump(join, &[]);
                goes_on = true;
            }
        }
        if goes_on {
            self.enter(join);
        }
        goes_on
    }

    fn labelled(&mut self, label: Label, body: &StmtBlock) -> bool {
        let leave = self.b.create_block();
        self.jumps.push(Jump { label, leave: Target { block: leave, used: false }, again: None });
        let falls = self.block(body);
        if falls {
            self.b.ins().jump(leave, &[]);
        }
        let left = self.jumps.pop().is_some_and(|j| j.leave.used);
        if falls || left {
            self.enter(leave);
        }
        falls || left
    }

    fn jump_to(&mut self, label: Label, again: bool) {
        let jump = self.jumps.iter_mut().rev().find(|j| j.label == label).expect("`verify` checks labels");
        let target = match &mut jump.again {
            Some(target) if again => target,
            _ => &mut jump.leave,
        };
        target.used = true;
        let block = target.block;
        self.b.ins().jump(block, &[]);
    }

    /// Sets every element of an array to a value, sixteen bytes at a time.
    fn fill(&mut self, local: LocalId, value: ExprId) {
        let decl = &self.codelet.locals[local];
        let value = self.expr(value);
        let bytes = decl.array.iter().flatten().fold(i64::from(decl.ty.bytes()), |n, &d| n * i64::from(d));
        let Some(LocalStorage::Array(slot)) = self.locals[local] else {
            unreachable!("`verify` lets only arrays be filled")
        };
        let address = self.b.ins().stack_addr(I64, slot, Offset32::new(0));
        let flags = self.local_flags(local);
        let wide = if self.features.vectors { bytes / 16 } else { 0 };
        if wide > 0 {
            let vector = self.splat(clif(decl.ty), value);
            if wide <= 8 {
                for n in 0..wide {
                    self.b.ins().store(flags, vector, address, Offset32::new(16 * n as i32));
                }
            } else {
                self.each_offset(0, 16 * wide, 16, |l, offset| {
                    let at = l.b.ins().iadd(address, offset);
                    l.b.ins().store(flags, vector, at, Offset32::new(0));
                });
            }
        }
        let step = i64::from(decl.ty.bytes());
        self.each_offset(16 * wide, bytes, step, |l, offset| {
            let at = l.b.ins().iadd(address, offset);
            l.b.ins().store(flags, value, at, Offset32::new(0));
        });
    }

    /// Emits a vector of sixteen bytes with the value in each lane.
    pub(super) fn splat(&mut self, ty: cranelift_codegen::ir::Type, value: Value) -> Value {
        let vector = ty.by(I8X16.bytes() / ty.bytes()).expect("all element types divide sixteen bytes");
        self.b.ins().splat(vector, value)
    }

    /// Emits a loop that runs `body` with `from`, `from + step`, … while less than `to`.
    fn each_offset(&mut self, from: i64, to: i64, step: i64, body: impl FnOnce(&mut Self, Value)) {
        if from >= to {
            return;
        }
        let (lo, hi) = (self.i64(from), self.i64(to));
        let range = Range { lo, hi, step, trips: Some(((to - from) / step) as u64), poll: false };
        self.counted(range, None, |l, offset| {
            body(l, offset);
            true
        });
    }
}
