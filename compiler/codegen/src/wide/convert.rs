//! Values of one type in another.
//!
//! Invariant: as in `arith`, each result is that of the scalar operation in every lane.

use super::arith::{Value, is_long, order, pick};
use super::codes::*;
use super::encode::Code;
use super::inst::{Op, Reg};
use super::program::Program;
use girder_codelet::scalar::{NAN_F32, NAN_F64, convert, int_range};
use girder_ir::types::ElemType;
use smallvec::{SmallVec, smallvec};

impl Program {
    /// The bits as a type of the same width, with the canonical NaN.
    pub fn bits(&mut self, to: ElemType, x: &Value) -> Value {
        if !x.ty.is_float() {
            return Value { ty: to, ..x.clone() };
        }
        let nan = self.splat(x.ty, if is_long(x.ty) { NAN_F64 } else { NAN_F32.into() });
        let is_nan = self.compared(pick(COMPARE, x.ty), order::UNORDERED, x, x);
        Value { ty: to, ..self.select(&is_nan, &nan, x) }
    }

    /// The upper eight of sixteen 32-bit lanes.
    fn upper(&mut self, reg: Reg) -> Reg {
        self.make(Op::Reversed { code: UPPER, immediate: Some(1) }, &[reg])
    }

    /// An operation on eight 32-bit lanes that gives eight 64-bit ones.
    fn widened(&mut self, code: Code, x: &Value) -> SmallVec<[Reg; 2]> {
        let upper = self.upper(x.regs[0]);
        smallvec![self.plain(code, &[x.regs[0]]), self.plain(code, &[upper])]
    }

    /// Two vectors of eight 32-bit lanes as one.
    pub(super) fn joined(&mut self, halves: &[Reg]) -> Reg {
        self.make(Op::Plain { code: JOIN, immediate: Some(1) }, halves)
    }

    /// The value in another type.
    pub fn converted(&mut self, to: ElemType, x: &Value) -> Value {
        let from = x.ty;
        match (from, to) {
            _ if from == to => x.clone(),
            (ElemType::Bool, _) => {
                let (one, zero) = (self.splat(to, convert(ElemType::Bool, to, 1)), self.splat(to, 0));
                self.select(x, &one, &zero)
            }
            (_, ElemType::Bool) if from.is_float() => {
                let zero = self.splat(from, 0);
                self.compared(pick(COMPARE, from), order::NE, x, &zero)
            }
            (_, ElemType::Bool) => {
                let op = Op::Compare { code: pick(TEST, from), immediate: None };
                let masks: SmallVec<[Reg; 2]> = x.regs.iter().map(|&r| self.make(op, &[r, r])).collect();
                Value { ty: to, regs: smallvec![self.one_mask(&masks)] }
            }
            _ if from.is_float() && to.is_float() => self.float_to_float(to, x),
            _ if from.is_float() => self.float_to_int(to, x),
            _ if to.is_float() => self.int_to_float(to, x),
            _ => self.resized(to, x),
        }
    }

    fn float_to_float(&mut self, to: ElemType, x: &Value) -> Value {
        let regs = if is_long(to) {
            self.widened(F64_OF_F32, x)
        } else {
            let halves = self.each(F32_OF_F64, None, &[x]);
            smallvec![self.joined(&halves)]
        };
        Value { ty: to, regs }
    }

    fn int_to_float(&mut self, to: ElemType, x: &Value) -> Value {
        let unsigned = usize::from(matches!(x.ty, ElemType::U32 | ElemType::U64));
        let regs = match (is_long(x.ty), is_long(to)) {
            (false, false) => self.each(F32_OF_INT[unsigned], None, &[x]),
            (false, true) => self.widened(F64_OF_INT[unsigned], x),
            (true, true) => self.each(F64_OF_LONG[unsigned], None, &[x]),
            (true, false) => {
                let halves = self.each(F32_OF_LONG[unsigned], None, &[x]);
                smallvec![self.joined(&halves)]
            }
        };
        Value { ty: to, regs }
    }

    /// Saturates; NaN gives 0.
    fn float_to_int(&mut self, to: ElemType, x: &Value) -> Value {
        if to.bytes() < 4 {
            return self.float_to_narrow(to, x);
        }
        if is_long(to) && !is_long(x.ty) {
            let x = self.float_to_float(ElemType::F64, x);
            return self.float_to_int(to, &x);
        }
        let unsigned = !to.is_signed_int();
        let codes = match (is_long(x.ty), is_long(to)) {
            (false, _) => INT_OF_F32,
            (true, false) => INT_OF_F64,
            (true, true) => LONG_OF_F64,
        };
        let zero = self.splat(x.ty, 0);
        // What is too large for an unsigned integer becomes the greatest one by itself.
        let how = if unsigned { order::GE } else { order::ORDERED };
        let compare = Op::Compare { code: pick(COMPARE, x.ty), immediate: Some(how) };
        let mut regs: SmallVec<[Reg; 2]> = SmallVec::new();
        for (&r, &z) in x.regs.iter().zip(&zero.regs) {
            let valid = self.make(compare, &[r, if unsigned { z } else { r }]);
            regs.push(self.make(Op::Zeroed { code: codes[usize::from(unsigned)] }, &[valid, r]));
        }
        if is_long(x.ty) && !is_long(to) {
            regs = smallvec![self.joined(&regs)];
        }
        let result = Value { ty: to, regs };
        let limit = if is_long(to) { 9223372036854775808.0 } else { 2147483648.0f64 };
        if unsigned || x.regs.iter().all(|&r| self.range(r).1 < limit) {
            return result;
        }
        let limit = self.splat(x.ty, convert(ElemType::F64, x.ty, limit.to_bits()));
        let above = self.compared(pick(COMPARE, x.ty), order::GE, x, &limit);
        let greatest = self.splat(to, int_range(to).map_or(0, |r| r.1 as u64));
        self.select(&above, &greatest, &result)
    }

    /// Integers of less than 32 bits: limits that floats can be held to before they are converted.
    fn float_to_narrow(&mut self, to: ElemType, x: &Value) -> Value {
        let (least, greatest) = int_range(to).expect("it is an integer");
        let (least, greatest) = (least as f64, greatest as f64);
        let x = self.unlimited(x, (least, greatest));
        let mut held = x.clone();
        if x.regs.iter().any(|&r| self.range(r).1 > greatest) {
            let upper = self.splat(x.ty, convert(ElemType::F64, x.ty, greatest.to_bits()));
            // NaN stays what it is, as the second operand does.
            held.regs = self.each(pick(MIN, x.ty), None, &[&upper, &x]);
        }
        let code = if is_long(x.ty) { INT_OF_F64[0] } else { INT_OF_F32[0] };
        // NaN and what is too low become the least integer, and that becomes zero if there is no sign.
        let mut regs = if least == 0.0 {
            self.each(code, None, &[&held])
        } else {
            let compare = Op::Compare { code: pick(COMPARE, x.ty), immediate: Some(order::ORDERED) };
            let number = |p: &mut Self, (&x, &held): (&Reg, &Reg)| {
                let valid = p.make(compare, &[x, x]);
                p.make(Op::Zeroed { code }, &[valid, held])
            };
            x.regs.iter().zip(&held.regs).map(|pair| number(self, pair)).collect()
        };
        if is_long(x.ty) {
            regs = smallvec![self.joined(&regs)];
        }
        let least = self.splat(ElemType::I32, least as i32 as u32 as u64);
        Value { ty: to, regs: smallvec![self.plain(SMAX[0], &[regs[0], least.regs[0]])] }
    }

    /// What a float was before it was held to limits that are no closer than these; NaN stays NaN, a zero a zero.
    fn unlimited(&self, x: &Value, (least, greatest): (f64, f64)) -> Value {
        let number = |v: &Value| {
            let bits = self.constant_of(v.regs[0])?;
            Some(if is_long(v.ty) { f64::from_bits(bits) } else { f32::from_bits(bits as u32).into() })
        };
        let mut x = x.clone();
        loop {
            let within = |code: crate::wide::Pair, holds: &dyn Fn(f64) -> bool, number_first: bool| {
                let (a, b) = self.operands(&x, pick(code, x.ty))?;
                let (limit, of) = if number_first { (a, b) } else { (b, a) };
                number(&limit).filter(|&n| holds(n)).map(|_| of)
            };
            let before = within(MAX, &|n| n <= least, true).or_else(|| within(MIN, &|n| n >= greatest, true));
            // What makes a zero positive.
            match before.or_else(|| within(ADD, &|n| n == 0.0, false)) {
                Some(before) => x = before,
                None => return x,
            }
        }
    }

    /// Between integers: wraps, or extends by the source's sign.
    fn resized(&mut self, to: ElemType, x: &Value) -> Value {
        let from = x.ty;
        match (is_long(from), is_long(to)) {
            (true, true) => Value { ty: to, ..x.clone() },
            (false, true) => {
                let regs = self.widened(LONG_OF_INT[usize::from(from == ElemType::U32)], x);
                Value { ty: to, regs }
            }
            (true, false) => {
                let halves: SmallVec<[Reg; 2]> = x
                    .regs
                    .iter()
                    .map(|&r| self.make(Op::Reversed { code: INT_OF_LONG, immediate: None }, &[r]))
                    .collect();
                let regs = smallvec![self.joined(&halves)];
                self.in_range(to, Value { ty: to, regs })
            }
            (false, false) => self.in_range(to, x.clone()),
        }
    }
}
