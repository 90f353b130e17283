//! Operators on scalars, as `girder_codelet::scalar` defines them.
//!
//! Invariant: no instruction that can trap runs with operands on which it traps.

use super::{Lower, clif};
use crate::helpers::Import;
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{InstBuilder, Value};
use girder_ir::codelet::{BinaryOp, UnaryOp};
use girder_ir::ids::SiteId;
use girder_ir::types::ElemType;

impl Lower<'_, '_> {
    /// Emits `op x`. The value may be a vector of `ty` if vectors support the operator (see `vector`).
    pub(super) fn unary(&mut self, op: UnaryOp, ty: ElemType, x: Value) -> Value {
        match op {
            UnaryOp::Neg if ty.is_float() => self.b.ins().fneg(x),
            UnaryOp::Neg => self.b.ins().ineg(x),
            UnaryOp::Not if ty == ElemType::Bool => self.b.ins().bxor_imm_u(x, 1),
            UnaryOp::Not => self.b.ins().bnot(x),
            UnaryOp::Abs if ty.is_float() => self.b.ins().fabs(x),
            UnaryOp::Abs if ty.is_signed_int() => self.b.ins().iabs(x),
            UnaryOp::Abs => x,
            UnaryOp::Sqrt => self.b.ins().sqrt(x),
            UnaryOp::Popcount => self.b.ins().popcnt(x),
            UnaryOp::Clz => self.b.ins().clz(x),
            UnaryOp::Floor if self.features.round => self.b.ins().floor(x),
            UnaryOp::Ceil if self.features.round => self.b.ins().ceil(x),
            UnaryOp::Round if self.features.round => self.b.ins().nearest(x),
            UnaryOp::Trunc if self.features.round => self.b.ins().trunc(x),
            UnaryOp::Floor => self.call_import(Import::Floor, ty, &[x]),
            UnaryOp::Ceil => self.call_import(Import::Ceil, ty, &[x]),
            UnaryOp::Round => self.call_import(Import::Round, ty, &[x]),
            UnaryOp::Trunc => self.call_import(Import::Trunc, ty, &[x]),
        }
    }

    /// Emits `a op b` for operands of type `ty`; `known` has the bits of `b` if they are known.
    pub(super) fn binary(
        &mut self,
        op: BinaryOp,
        ty: ElemType,
        a: Value,
        b: Value,
        known: Option<u64>,
        site: Option<SiteId>,
    ) -> Value {
        match op {
            _ if op.is_comparison() => self.compare(op, ty, a, b),
            BinaryOp::Div | BinaryOp::Rem if !ty.is_float() => self.divide(op, ty, a, b, known, site),
            BinaryOp::Shl | BinaryOp::Shr => self.shift(op, ty, a, b, known, site),
            BinaryOp::Rem => self.call_import(Import::Rem, ty, &[a, b]),
            _ => self.combine(op, ty, a, b),
        }
    }

    /// Emits an operator that cannot fail and is not a comparison. The values may be vectors.
    pub(super) fn combine(&mut self, op: BinaryOp, ty: ElemType, a: Value, b: Value) -> Value {
        let float = ty.is_float();
        let signed = ty.is_signed_int();
        let ins = self.b.ins();
        match op {
            BinaryOp::Add if float => ins.fadd(a, b),
            BinaryOp::Sub if float => ins.fsub(a, b),
            BinaryOp::Mul if float => ins.fmul(a, b),
            BinaryOp::Div => ins.fdiv(a, b),
            BinaryOp::Min if float => ins.fmin(a, b),
            BinaryOp::Max if float => ins.fmax(a, b),
            BinaryOp::Add => ins.iadd(a, b),
            BinaryOp::Sub => ins.isub(a, b),
            BinaryOp::Mul => ins.imul(a, b),
            BinaryOp::Min if signed => ins.smin(a, b),
            BinaryOp::Max if signed => ins.smax(a, b),
            BinaryOp::Min => ins.umin(a, b),
            BinaryOp::Max => ins.umax(a, b),
            BinaryOp::And => ins.band(a, b),
            BinaryOp::Or => ins.bor(a, b),
            BinaryOp::Xor => ins.bxor(a, b),
            _ => unreachable!("{op:?} is translated by `binary`"),
        }
    }

    /// Emits a comparison. For vectors, the result is a mask.
    pub(super) fn compare(&mut self, op: BinaryOp, ty: ElemType, a: Value, b: Value) -> Value {
        if ty.is_float() {
            let code = match op {
                BinaryOp::Eq => FloatCC::Equal,
                BinaryOp::Ne => FloatCC::NotEqual,
                BinaryOp::Lt => FloatCC::LessThan,
                BinaryOp::Le => FloatCC::LessThanOrEqual,
                BinaryOp::Gt => FloatCC::GreaterThan,
                _ => FloatCC::GreaterThanOrEqual,
            };
            return self.b.ins().fcmp(code, a, b);
        }
        let code = match (op, ty.is_signed_int()) {
            (BinaryOp::Eq, _) => IntCC::Equal,
            (BinaryOp::Ne, _) => IntCC::NotEqual,
            (BinaryOp::Lt, true) => IntCC::SignedLessThan,
            (BinaryOp::Le, true) => IntCC::SignedLessThanOrEqual,
            (BinaryOp::Gt, true) => IntCC::SignedGreaterThan,
            (_, true) => IntCC::SignedGreaterThanOrEqual,
            (BinaryOp::Lt, false) => IntCC::UnsignedLessThan,
            (BinaryOp::Le, false) => IntCC::UnsignedLessThanOrEqual,
            (BinaryOp::Gt, false) => IntCC::UnsignedGreaterThan,
            (_, false) => IntCC::UnsignedGreaterThanOrEqual,
        };
        self.b.ins().icmp(code, a, b)
    }

    /// Emits an integer division. A zero divisor fails, and the one quotient that overflows wraps.
    fn divide(
        &mut self,
        op: BinaryOp,
        ty: ElemType,
        a: Value,
        b: Value,
        known: Option<u64>,
        site: Option<SiteId>,
    ) -> Value {
        let checked = known.is_none_or(|d| d == 0);
        if let Some(site) = site.filter(|&s| checked && !self.is_proven(s)) {
            let zero = self.b.ins().icmp_imm_u(IntCC::Equal, b, 0);
            self.guard_plain(zero, site);
        }
        if !ty.is_signed_int() {
            return if op == BinaryOp::Div { self.b.ins().udiv(a, b) } else { self.b.ins().urem(a, b) };
        }
        let minus_one = girder_codelet::scalar::mask(ty, u64::MAX);
        if known.is_some_and(|d| d != minus_one && d != 0) {
            return if op == BinaryOp::Div { self.b.ins().sdiv(a, b) } else { self.b.ins().srem(a, b) };
        }
        // `x / -1` is `-x` and `x % -1` is 0 for every x: divide by 1 instead.
        let is_minus_one = self.b.ins().icmp_imm_s(IntCC::Equal, b, -1);
        let one = self.b.ins().iconst(clif(ty), 1);
        let divisor = self.b.ins().select(is_minus_one, one, b);
        if op == BinaryOp::Rem {
            return self.b.ins().srem(a, divisor);
        }
        let quotient = self.b.ins().sdiv(a, divisor);
        let negated = self.b.ins().ineg(a);
        self.b.ins().select(is_minus_one, negated, quotient)
    }

    fn shift(
        &mut self,
        op: BinaryOp,
        ty: ElemType,
        a: Value,
        b: Value,
        known: Option<u64>,
        site: Option<SiteId>,
    ) -> Value {
        let width = i64::from(8 * ty.bytes());
        let checked = known.is_none_or(|n| n >= width as u64);
        if let Some(site) = site.filter(|&s| checked && !self.is_proven(s)) {
            let bad = self.b.ins().icmp_imm_u(IntCC::UnsignedGreaterThanOrEqual, b, width);
            self.guard(bad, site, |l| [l.extend(ty, b), l.i64(width)]);
        }
        match op {
            BinaryOp::Shl => self.b.ins().ishl(a, b),
            _ if ty.is_signed_int() => self.b.ins().sshr(a, b),
            _ => self.b.ins().ushr(a, b),
        }
    }
}
