//! Conversions between element types.
//!
//! Invariant: the result is that of `girder_codelet::scalar::convert` and `bits`, for every pair of types.

use super::{Lower, clif};
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Value};
use girder_codelet::scalar::{NAN_F32, NAN_F64, int_range};
use girder_ir::types::ElemType;

impl Lower<'_, '_> {
    /// Converts `x` to another type.
    pub(super) fn convert(&mut self, from: ElemType, to: ElemType, x: Value) -> Value {
        match (from, to) {
            _ if from == to => x,
            (_, ElemType::Bool) => self.is_not_zero(from, x),
            (ElemType::F32, ElemType::F64) => self.b.ins().fpromote(clif(to), x),
            (ElemType::F64, ElemType::F32) => self.b.ins().fdemote(clif(to), x),
            _ if from.is_float() => self.float_to_int(to, x),
            _ if to.is_float() => self.int_to_float(from, to, x),
            _ => self.resize(from, to, x),
        }
    }

    fn is_not_zero(&mut self, from: ElemType, x: Value) -> Value {
        if from.is_float() {
            let zero = self.constant(from, 0);
            self.b.ins().fcmp(FloatCC::NotEqual, x, zero)
        } else {
            self.b.ins().icmp_imm_u(IntCC::NotEqual, x, 0)
        }
    }

    /// Converts integers and `bool`: truncates, or extends according to the signedness of the source.
    fn resize(&mut self, from: ElemType, to: ElemType, x: Value) -> Value {
        match (from.bytes(), to.bytes()) {
            (a, b) if a == b => x,
            (a, b) if a > b => self.b.ins().ireduce(clif(to), x),
            _ if from.is_signed_int() => self.b.ins().sextend(clif(to), x),
            _ => self.b.ins().uextend(clif(to), x),
        }
    }

    /// Extends an integer or `bool` to `I64`, as failures report it.
    pub(super) fn extend(&mut self, from: ElemType, x: Value) -> Value {
        self.resize(from, ElemType::I64, x)
    }

    fn int_to_float(&mut self, from: ElemType, to: ElemType, x: Value) -> Value {
        // Every type except `u64` fits into a signed type, whose conversion rounds once.
        let wide = match from {
            ElemType::I32 | ElemType::I64 | ElemType::U64 => x,
            ElemType::U32 => self.b.ins().uextend(I64, x),
            _ if from.is_signed_int() => self.b.ins().sextend(I32, x),
            _ => self.b.ins().uextend(I32, x),
        };
        if from == ElemType::U64 {
            self.b.ins().fcvt_from_uint(clif(to), wide)
        } else {
            self.b.ins().fcvt_from_sint(clif(to), wide)
        }
    }

    fn float_to_int(&mut self, to: ElemType, x: Value) -> Value {
        match to {
            ElemType::I32 | ElemType::I64 => self.b.ins().fcvt_to_sint_sat(clif(to), x),
            ElemType::U32 | ElemType::U64 => self.b.ins().fcvt_to_uint_sat(clif(to), x),
            _ => {
                // Saturating twice is the same as saturating to the narrower range.
                let (least, greatest) = int_range(to).expect("`to` is an integer");
                let wide = self.b.ins().fcvt_to_sint_sat(I32, x);
                let (least, greatest) = (
                    self.b.ins().iconst(I32, i64::from(least as u32 as i32)),
                    self.b.ins().iconst(I32, greatest as i64),
                );
                let above = self.b.ins().smax(wide, least);
                let inside = self.b.ins().smin(above, greatest);
                self.b.ins().ireduce(clif(to), inside)
            }
        }
    }

    /// Returns the bits of `x` as a type of the same width, with the canonical NaN.
    pub(super) fn bits(&mut self, from: ElemType, to: ElemType, x: Value) -> Value {
        let x = if from.is_float() { self.canonical(from, x) } else { x };
        if clif(from) == clif(to) { x } else { self.b.ins().bitcast(clif(to), MemFlagsData::new(), x) }
    }

    fn canonical(&mut self, ty: ElemType, x: Value) -> Value {
        let bits = if ty == ElemType::F32 { u64::from(NAN_F32) } else { NAN_F64 };
        let nan = self.constant(ty, bits);
        let is_nan = self.b.ins().fcmp(FloatCC::Unordered, x, x);
        self.b.ins().select(is_nan, nan, x)
    }
}
