//! Expressions.
//!
//! Invariant: operands are emitted from left to right, before their operator. What `fold` has evaluated is emitted as a
//! constant.

use super::{LocalStorage, Lower, clif};
use crate::helpers::Import;
use cranelift_codegen::ir::types::I8;
use cranelift_codegen::ir::{InstBuilder, Value};
use girder_ir::codelet::{BinaryOp, ExprKind, Storage};
use girder_ir::ids::{ExprId, LocalId};
use girder_ir::types::ElemType;

impl Lower<'_, '_> {
    /// Emits an expression at the current position.
    pub(super) fn expr(&mut self, e: ExprId) -> Value {
        let codelet = self.codelet;
        let expr = &codelet.exprs[e];
        if let Some(bits) = self.folded[e] {
            return self.constant(expr.ty, bits);
        }
        match expr.kind {
            ExprKind::Const(c) => self.constant(expr.ty, c.bits),
            ExprKind::Local(local) => self.read(local),
            ExprKind::ConstField(field) => self.fields[field].expect("fields are bound before the body"),
            ExprKind::Size(size) => self.i64(self.spec.sizes.sizes[size]),
            ExprKind::Worker => self.frame().worker,
            ExprKind::Workers => self.worker_count(),
            ExprKind::Load { field, ref index, site } => self.load(Storage::Field(field), index, site),
            ExprKind::LoadLocal { local, ref index, site } => self.load(Storage::Local(local), index, site),
            ExprKind::Unary { op, x } => {
                let v = self.expr(x);
                self.unary(op, expr.ty, v)
            }
            ExprKind::Binary { op, a, b, site } => {
                let divisor = self.folded[b];
                let (x, y) = (self.expr(a), self.expr(b));
                self.binary(op, self.ty(a), x, y, divisor, site)
            }
            ExprKind::AndThen { a, b } => self.short_circuit(a, b, false),
            ExprKind::OrElse { a, b } => self.short_circuit(a, b, true),
            ExprKind::Select { cond, a, b } => {
                let (cond, a, b) = (self.expr(cond), self.expr(a), self.expr(b));
                self.b.ins().select(cond, a, b)
            }
            ExprKind::Fma { a, b, c } => {
                let (a, b, c) = (self.expr(a), self.expr(b), self.expr(c));
                self.fma(expr.ty, a, b, c)
            }
            ExprKind::Convert { x } => {
                let v = self.expr(x);
                // A number that is not negative may be zero-extended, which takes no instruction.
                let from = match self.ty(x) {
                    ElemType::I32 if !expr.ty.is_float() && self.is_masked(x) => ElemType::U32,
                    ty => ty,
                };
                self.convert(from, expr.ty, v)
            }
            ExprKind::Bits { x } => {
                let v = self.expr(x);
                self.bits(self.ty(x), expr.ty, v)
            }
        }
    }

    /// Returns whether an expression is an `and` with a number that is not negative.
    fn is_masked(&self, e: ExprId) -> bool {
        let positive = |x: ExprId| self.folded[x].is_some_and(|bits| bits <= i32::MAX as u64);
        match self.codelet.exprs[e].kind {
            ExprKind::Binary { op: BinaryOp::And, a, b, .. } => positive(a) || positive(b),
            _ => false,
        }
    }

    /// Emits a constant of a type from its bits.
    pub(super) fn constant(&mut self, ty: ElemType, bits: u64) -> Value {
        match ty {
            ElemType::F32 => self.b.ins().f32const(f32::from_bits(bits as u32)),
            ElemType::F64 => self.b.ins().f64const(f64::from_bits(bits)),
            _ => {
                // Cranelift requires the bits above the type's width to be zero.
                self.b.ins().iconst(clif(ty), bits as i64)
            }
        }
    }

    /// Reads a scalar local.
    pub(super) fn read(&mut self, local: LocalId) -> Value {
        let value = self.stored(local);
        match self.ahead[local] {
            0 => value,
            ahead => self.b.ins().iadd_imm_s(value, ahead),
        }
    }

    /// Reads the variable of a scalar local, without the offset in `ahead`.
    pub(super) fn stored(&mut self, local: LocalId) -> Value {
        match self.locals[local] {
            Some(LocalStorage::Variable(v)) => self.b.use_var(v),
            _ => unreachable!("`verify` lets only scalar locals be read as values"),
        }
    }

    /// Sets a scalar local.
    pub(super) fn write(&mut self, local: LocalId, value: Value) {
        match self.locals[local] {
            Some(LocalStorage::Variable(v)) => self.b.def_var(v, value),
            _ => unreachable!("`verify` lets only scalar locals be set"),
        }
        self.local_depths[local] = self.depth;
    }

    /// Emits `a * b + c`, rounded once.
    pub(super) fn fma(&mut self, ty: ElemType, a: Value, b: Value, c: Value) -> Value {
        if self.features.fma { self.b.ins().fma(a, b, c) } else { self.call_import(Import::Fma, ty, &[a, b, c]) }
    }

    /// Emits `a && b`, or `a || b` if `known` is true. The evaluation ends after `a` if `a` equals `known`.
    fn short_circuit(&mut self, a: ExprId, b: ExprId, known: bool) -> Value {
        let x = self.expr(a);
        if !self.can_fail(b) {
            let y = self.expr(b);
            return if known { self.b.ins().bor(x, y) } else { self.b.ins().band(x, y) };
        }
        let (more, join) = (self.b.create_block(), self.b.create_block());
        let result = self.b.append_block_param(join, I8);
        if known {
            self.b.ins().brif(x, join, &[x.into()], more, &[]);
        } else {
            self.b.ins().brif(x, more, &[], join, &[x.into()]);
        }
        self.enter(more);
        let around = self.innermost.take();
        let y = self.expr(b);
        self.innermost = around;
        self.b.ins().jump(join, &[y.into()]);
        self.enter(join);
        result
    }

    /// Returns whether the evaluation of an expression may fail a check, or is so long that a branch is better.
    pub(super) fn can_fail(&self, e: ExprId) -> bool {
        let mut budget = 16;
        self.fails_within(e, &mut budget)
    }

    fn fails_within(&self, e: ExprId, budget: &mut u32) -> bool {
        if self.folded[e].is_some() {
            return false;
        }
        if *budget == 0 {
            return true;
        }
        *budget -= 1;
        let kind = &self.codelet.exprs[e].kind;
        // A load has a site. Even if it is proven, memory is not read where the program does not read it.
        kind.site().is_some() || kind.operands().iter().any(|&x| self.fails_within(x, budget))
    }

    /// Returns the value of an `i64` expression, if it is known.
    pub(super) fn known(&self, e: ExprId) -> Option<i64> {
        self.folded[e].map(|bits| bits as i64)
    }
}
