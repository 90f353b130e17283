//! Conversions between lane types.
//!
//! Invariant: integers of less than 32 bits are in their range before and after each conversion.

use super::{Lowering, Regs};
use crate::ir::{Lane, Value, without_limits};
use crate::x86::inst::Op as Machine;
use crate::x86::pairs::{order, *};
use crate::x86::table::Code;
use smallvec::smallvec;

impl Lowering<'_> {
    /// Emits the bits of a value as a lane of the same width, with the one canonical NaN.
    pub(super) fn bits(&mut self, to: Lane, x: Value) -> Regs {
        let (from, regs) = (self.kernel.lane(x), self.of(x));
        let Some(nan) = from.nan() else { return self.in_range(to, regs) };
        let nan = self.splat(from, nan);
        let is_nan = self.compared(pick(COMPARE, from), order::UNORDERED, &regs, &regs);
        self.select(from, &is_nan, &nan, &regs)
    }

    /// Emits an operation from eight 32-bit lanes to eight 64-bit lanes, for both halves of a vector.
    pub(super) fn widened(&mut self, code: Code, x: &Regs) -> Regs {
        let upper = self.upper(x[0]);
        smallvec![self.to.plain(code, &[x[0]]), self.to.plain(code, &[upper])]
    }

    /// Emits the conversion of a value to another lane type.
    pub(super) fn convert(&mut self, to: Lane, x: Value) -> Regs {
        let (from, regs) = (self.kernel.lane(x), self.of(x));
        if from.is_mask() {
            let one = if to.is_float() { to.float_bits(1.0) } else { 1 };
            let (one, zero) = (self.splat(to, one), self.splat(to, 0));
            return self.select(to, &regs, &one, &zero);
        }
        if to.is_mask() {
            if from.is_float() {
                let zero = self.splat(from, 0);
                return self.compared(pick(COMPARE, from), order::NE, &regs, &zero);
            }
            let op = Machine::Compare { code: pick(TEST, from), immediate: None };
            let masks: Regs = regs.iter().map(|&r| self.to.make(op, &[r, r])).collect();
            return smallvec![self.one_mask(&masks)];
        }
        match (from.is_float(), to.is_float()) {
            (true, true) => self.float_to_float(to, &regs),
            (true, false) if to.bytes() < 4 => self.float_to_narrow(to, x),
            (true, false) => self.float_to_int((from, to), regs, self.range(x).1),
            (false, true) => self.int_to_float((from, to), &regs),
            (false, false) => self.resized((from, to), regs),
        }
    }

    fn float_to_float(&mut self, to: Lane, x: &Regs) -> Regs {
        if to.is_long() {
            return self.widened(F64_OF_F32, x);
        }
        let halves = self.each(F32_OF_F64, None, &[x]);
        smallvec![self.joined(&halves)]
    }

    fn int_to_float(&mut self, (from, to): (Lane, Lane), x: &Regs) -> Regs {
        let unsigned = usize::from(matches!(from, Lane::U32 | Lane::U64));
        match (from.is_long(), to.is_long()) {
            (false, false) => self.each(F32_OF_INT[unsigned], None, &[x]),
            (false, true) => self.widened(F64_OF_INT[unsigned], x),
            (true, true) => self.each(F64_OF_LONG[unsigned], None, &[x]),
            (true, false) => {
                let halves = self.each(F32_OF_LONG[unsigned], None, &[x]);
                smallvec![self.joined(&halves)]
            }
        }
    }

    /// Emits the conversion to 32 or 64 bits of numbers that are at most `greatest`.
    fn float_to_int(&mut self, (from, to): (Lane, Lane), x: Regs, greatest: f64) -> Regs {
        if to.is_long() && !from.is_long() {
            let x = self.float_to_float(Lane::F64, &x);
            return self.float_to_int((Lane::F64, to), x, f64::INFINITY);
        }
        let unsigned = !to.is_signed();
        let codes = match (from.is_long(), to.is_long()) {
            (false, _) => INT_OF_F32,
            (true, false) => INT_OF_F64,
            (true, true) => LONG_OF_F64,
        };
        let zero = self.splat(from, 0);
        // The conversion itself saturates numbers that are too large for an unsigned integer.
        let how = if unsigned { order::GE } else { order::ORDERED };
        let compare = Machine::Compare { code: pick(COMPARE, from), immediate: Some(how) };
        let mut regs = Regs::new();
        for (&r, &z) in x.iter().zip(&zero) {
            let valid = self.to.make(compare, &[r, if unsigned { z } else { r }]);
            regs.push(self.to.make(Machine::Zeroed { code: codes[usize::from(unsigned)] }, &[valid, r]));
        }
        if from.is_long() && !to.is_long() {
            regs = smallvec![self.joined(&regs)];
        }
        let limit = if to.is_long() { 9223372036854775808.0 } else { 2147483648.0f64 };
        if unsigned || greatest < limit {
            return regs;
        }
        let limit = self.splat(from, from.float_bits(limit));
        let above = self.compared(pick(COMPARE, from), order::GE, &x, &limit);
        let most = self.splat(to, to.integer_range().1 as u64);
        self.select(to, &above, &most, &regs)
    }

    /// Emits the conversion to integers of less than 32 bits. Floats are clamped to the integer's range first.
    fn float_to_narrow(&mut self, to: Lane, x: Value) -> Regs {
        let (least, greatest) = to.integer_range();
        let (least, greatest) = (least as f64, greatest as f64);
        let x = without_limits(self.kernel, x, (least, greatest));
        let (from, regs) = (self.kernel.lane(x), self.of(x));
        let mut held = regs.clone();
        if self.range(x).1 > greatest {
            let upper = self.splat(from, from.float_bits(greatest));
            // NaN remains NaN, because it is the second operand.
            held = self.each(pick(MIN, from), None, &[&upper, &regs]);
        }
        let code = if from.is_long() { INT_OF_F64[0] } else { INT_OF_F32[0] };
        // NaN and numbers that are too low become the least integer, and then zero if the result is unsigned.
        let mut lanes: Regs = if least == 0.0 {
            self.each(code, None, &[&held])
        } else {
            let compare = Machine::Compare { code: pick(COMPARE, from), immediate: Some(order::ORDERED) };
            let number = |(&x, &held)| {
                let valid = self.to.make(compare, &[x, x]);
                self.to.make(Machine::Zeroed { code }, &[valid, held])
            };
            regs.iter().zip(&held).map(number).collect()
        };
        if from.is_long() {
            lanes = smallvec![self.joined(&lanes)];
        }
        let least = self.splat(Lane::I32, least as i32 as u32 as u64);
        smallvec![self.to.plain(SMAX[0], &[lanes[0], least[0]])]
    }

    /// Emits the conversion between integers of different widths.
    fn resized(&mut self, (from, to): (Lane, Lane), x: Regs) -> Regs {
        match (from.is_long(), to.is_long()) {
            (true, true) => x,
            (false, true) => self.widened(LONG_OF_INT[usize::from(from == Lane::U32)], &x),
            (true, false) => {
                let op = Machine::Reversed { code: INT_OF_LONG, immediate: None };
                let halves: Regs = x.iter().map(|&r| self.to.make(op, &[r])).collect();
                let regs = smallvec![self.joined(&halves)];
                self.in_range(to, regs)
            }
            (false, false) => self.in_range(to, x),
        }
    }
}
