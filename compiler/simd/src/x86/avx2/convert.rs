//! Conversions between lane types.
//!
//! Invariant: integers of less than 32 bits are in their range before and after each conversion.

use super::{Lowering, Regs};
use crate::ir::{Lane, Rounding, Value, without_limits};
use crate::x86::inst::{Op as Machine, Reg};
use crate::x86::pairs::{order, *};
use crate::x86::table::Code;
use smallvec::smallvec;

/// 2^52 as `f64`: its last bit has the value 1.
const TWO_52: u64 = 0x4330_0000_0000_0000;
/// 1.5 * 2^52 as `f64`.
const MAGIC: u64 = 0x4338_0000_0000_0000;
const TWO_31: u64 = 0x4f00_0000;
const TWO_32: [u64; 2] = [0x4f80_0000, 0x41f0_0000_0000_0000];

impl Lowering<'_> {
    /// Emits the bits of a value as a lane of the same width, with the one canonical NaN.
    pub(super) fn bits(&mut self, to: Lane, x: Value, half: u8) -> Regs {
        let (from, regs) = (self.kernel.lane(x), self.vectors(x, half));
        let Some(nan) = from.nan() else { return self.in_range(to, regs) };
        let nan = self.splat(from, nan);
        let is_nan = self.ordered(from, order::UNORDERED, &regs, &regs);
        self.blend(from, is_nan, &nan, &regs)
    }

    /// Emits the conversion of a value to another lane type.
    pub(super) fn convert(&mut self, to: Lane, x: Value, half: u8) -> Regs {
        let from = self.kernel.lane(x);
        if from.is_mask() {
            let mask = self.mask(x, half);
            let one = if to.is_float() { to.float_bits(1.0) } else { 1 };
            let (one, zero) = (self.splat(to, one), self.splat(to, 0));
            return self.blend(to, mask, &one, &zero);
        }
        let regs = self.vectors(x, half);
        match (from.is_float(), to.is_float()) {
            (true, true) if to.is_long() => self.both_quarters(F64_OF_F32, regs[0]),
            (true, true) => smallvec![self.joined(F32_OF_F64, &regs)],
            (true, false) if to.bytes() < 4 => self.float_to_narrow(to, x, half),
            (true, false) if to.is_long() => {
                let doubles = if from.is_long() { regs } else { self.both_quarters(F64_OF_F32, regs[0]) };
                let range = self.range(x);
                doubles.into_iter().map(|x| self.long_of_f64(to, x, range)).collect()
            }
            (true, false) => self.float_to_int((from, to), &regs, self.range(x).1),
            (false, true) => self.int_to_float((from, to), &regs),
            (false, false) => self.resized((from, to), regs),
        }
    }

    /// Widens four of eight 32-bit lanes to 64 bits.
    pub(super) fn widened(&mut self, code: Code, lanes: Reg, quarter: usize) -> Reg {
        let lanes = if quarter == 0 { lanes } else { self.upper_128(lanes) };
        if code != F64_OF_INT[1] {
            return self.to.plain(code, &[lanes]);
        }
        let long = self.to.plain(LONG_OF_INT[1], &[lanes]);
        let two_52 = self.constant(TWO_52, true);
        let number = self.to.plain(OR[0], &[long, two_52]);
        self.to.plain(SUB[1], &[number, two_52])
    }

    fn both_quarters(&mut self, code: Code, lanes: Reg) -> Regs {
        [0, 1].into_iter().map(|quarter| self.widened(code, lanes, quarter)).collect()
    }

    /// Narrows two vectors of four 64-bit lanes to one of eight 32-bit lanes.
    fn joined(&mut self, code: Code, x: &Regs) -> Reg {
        let halves = [x[0], x[1]].map(|x| self.narrowed_floats(code, x));
        self.to.with(JOIN_128, 1, &halves)
    }

    fn narrowed_floats(&mut self, code: Code, x: Reg) -> Reg {
        if code != INT_OF_F64[1] {
            return self.to.plain(code, &[x]);
        }
        // This saturates upwards; the caller masks out negative numbers and NaN.
        let most = self.constant(f64::from(u32::MAX).to_bits(), true);
        let x = self.to.plain(MIN[1], &[x, most]);
        let x = self.to.with(ROUND[1], rounding(Rounding::Trunc), &[x]);
        let two_52 = self.constant(TWO_52, true);
        let number = self.to.plain(ADD[1], &[x, two_52]);
        let low = self.to.with(SHUFFLE, 0b10_00_10_00, &[number, number]);
        self.to.with(QUARTERS, 0b11_01_10_00, &[low])
    }

    fn int_to_float(&mut self, (from, to): (Lane, Lane), x: &Regs) -> Regs {
        let unsigned = matches!(from, Lane::U32 | Lane::U64);
        match (from.is_long(), to.is_long()) {
            (false, false) if !unsigned => self.each(F32_OF_INT[0], x),
            (false, false) => smallvec![self.f32_of_u32(x[0])],
            (false, true) => self.both_quarters(F64_OF_INT[usize::from(unsigned)], x[0]),
            (true, true) => x.iter().map(|&x| self.f64_of_long(x, !unsigned)).collect(),
            (true, false) => unreachable!("there is no conversion from {from:?} to {to:?}"),
        }
    }

    /// Converts unsigned 32-bit integers: both 16-bit parts convert exactly, and their sum is rounded once.
    fn f32_of_u32(&mut self, x: Reg) -> Reg {
        let low = self.to.with_number(AND, false, x, 0xffff);
        let high = self.to.shift(SHIFT_RIGHT[0], 16, x);
        let [low, high] = [low, high].map(|half| self.to.plain(F32_OF_INT[0], &[half]));
        let high = self.to.with_number(MUL, false, high, 0x4780_0000);
        self.to.plain(ADD[0], &[high, low])
    }

    /// Converts 64-bit integers: the upper 32 bits times 2^32 and the lower 32 bits convert exactly, and their sum is
    /// rounded once.
    fn f64_of_long(&mut self, x: Reg, signed: bool) -> Reg {
        let two_52 = self.constant(TWO_52, true);
        let low = self.to.with_number(AND, true, x, 0xffff_ffff);
        let low = self.to.plain(OR[0], &[low, two_52]);
        let low = self.to.plain(SUB[1], &[low, two_52]);
        // A signed upper part is biased by 2^31.
        let high = if signed { self.flipped(x, true) } else { x };
        let high = self.to.shift(SHIFT_RIGHT[1], 32, high);
        let high = self.to.plain(OR[0], &[high, two_52]);
        let start = if signed { f64::from_bits(TWO_52) + 2147483648.0 } else { f64::from_bits(TWO_52) };
        let high = self.to.with_number(SUB, true, high, start.to_bits());
        let high = self.to.with_number(MUL, true, high, TWO_32[1]);
        self.to.plain(ADD[1], &[high, low])
    }

    /// Emits the conversion to 32 bits of numbers that are at most `greatest`.
    fn float_to_int(&mut self, (from, to): (Lane, Lane), x: &Regs, greatest: f64) -> Regs {
        let unsigned = !to.is_signed();
        let zero = self.splat(from, 0);
        // The conversion itself saturates numbers that are too large for an unsigned integer.
        let valid = match unsigned {
            true => self.ordered(from, order::GE, x, &zero),
            false => self.ordered(from, order::ORDERED, x, x),
        };
        let number = match (from.is_long(), unsigned) {
            (true, _) => self.joined(INT_OF_F64[usize::from(unsigned)], x),
            (false, true) => self.u32_of_f32(x[0]),
            (false, false) => self.to.plain(INT_OF_F32[0], &[x[0]]),
        };
        let valid = self.narrow_form(valid);
        let regs: Regs = smallvec![self.to.plain(AND[0], &[valid, number])];
        if unsigned || greatest < 2147483648.0 {
            return regs;
        }
        let limit = self.splat(from, from.float_bits(2147483648.0));
        let above = self.ordered(from, order::GE, x, &limit);
        let most = self.splat(to, i32::MAX as u64);
        self.blend(to, above, &most, &regs)
    }

    /// Emits the conversion to 64 bits of numbers in a range.
    ///
    /// For a whole number of magnitude below 2^51, the low bits of its sum with 1.5 * 2^52 are the result. Other
    /// numbers are split into a multiple of 2^32 and a remainder, both exact.
    fn long_of_f64(&mut self, to: Lane, x: Reg, (least, greatest): (f64, f64)) -> Reg {
        let whole = self.to.with(ROUND[1], rounding(Rounding::Trunc), &[x]);
        let number = self.to.with(COMPARE[1], order::ORDERED, &[x, x]);
        let small = 2251799813685248.0;
        if to.is_signed() && least > -small && greatest < small {
            let sum = self.to.with_number(ADD, true, whole, MAGIC);
            let integer = self.to.with_number(ISUB, true, sum, MAGIC);
            return self.to.plain(AND[0], &[number, integer]);
        }
        let upper = self.to.with_number(MUL, true, whole, (1.0f64 / 4294967296.0).to_bits());
        let upper = self.to.with(ROUND[1], rounding(Rounding::Floor), &[upper]);
        let multiple = self.to.with_number(MUL, true, upper, TWO_32[1]);
        let lower = self.to.plain(SUB[1], &[whole, multiple]);
        let upper = self.to.with_number(ADD, true, upper, MAGIC);
        let upper = self.to.shift(SHIFT_LEFT[1], 32, upper);
        let lower = self.to.with_number(ADD, true, lower, TWO_52);
        let lower = self.to.with_number(XOR, true, lower, TWO_52);
        let mut integer = self.to.plain(OR[0], &[upper, lower]);
        // Handles numbers out of range, and NaN.
        let (low, high) = match to.is_signed() {
            true => (-9223372036854775808.0f64, 9223372036854775808.0f64),
            false => (0.0, 18446744073709551616.0),
        };
        let (low, high) = (self.constant(low.to_bits(), true), self.constant(high.to_bits(), true));
        let (first, last) = to.integer_range();
        let (first, last) = (self.constant(first as u64, true), self.constant(last as u64, true));
        let blend = Machine::BlendBy { code: BLEND_BY[1] };
        let above = self.to.with(COMPARE[1], order::GE, &[whole, high]);
        integer = self.to.make(blend, &[above, integer, last]);
        let below = self.to.with(COMPARE[1], order::LT, &[whole, low]);
        integer = self.to.make(blend, &[below, integer, first]);
        self.to.plain(AND[0], &[number, integer])
    }

    /// Emits the conversion of non-negative numbers; saturates.
    fn u32_of_f32(&mut self, x: Reg) -> Reg {
        let limit = self.constant(TWO_31, false);
        let is_large = self.to.with(COMPARE[0], order::GE, &[x, limit]);
        let sign = self.constant(1 << 31, false);
        let (large, sign) = (self.to.plain(AND[0], &[is_large, limit]), self.to.plain(AND[0], &[is_large, sign]));
        let rest = self.to.plain(SUB[0], &[x, large]);
        let number = self.to.plain(INT_OF_F32[0], &[rest]);
        let number = self.to.plain(XOR[0], &[number, sign]);
        let limit = self.constant(TWO_32[0], false);
        let above = self.to.with(COMPARE[0], order::GE, &[x, limit]);
        self.to.plain(OR[0], &[number, above])
    }

    /// Emits the conversion to integers of less than 32 bits. Floats are clamped to the integer's range first.
    fn float_to_narrow(&mut self, to: Lane, x: Value, half: u8) -> Regs {
        let (least, greatest) = to.integer_range();
        let (least, greatest) = (least as f64, greatest as f64);
        let x = without_limits(self.kernel, x, (least, greatest));
        let (from, regs) = (self.kernel.lane(x), self.vectors(x, half));
        let mut held = regs.clone();
        if self.range(x).1 > greatest {
            let upper = self.splat(from, from.float_bits(greatest));
            // NaN remains NaN, because it is the second operand.
            held = self.each_pair(pick(MIN, from), &upper, &regs);
        }
        // NaN and numbers that are too low become the least integer, and then zero if the result is unsigned.
        let mut lanes = match from.is_long() {
            true => self.joined(INT_OF_F64[0], &held),
            false => self.to.plain(INT_OF_F32[0], &[held[0]]),
        };
        if least < 0.0 {
            let valid = self.ordered(from, order::ORDERED, &regs, &regs);
            let valid = self.narrow_form(valid);
            lanes = self.to.plain(AND[0], &[valid, lanes]);
        }
        smallvec![self.to.with_number(SMAX, false, lanes, least as i32 as u64)]
    }

    /// Emits the conversion between integers of different widths.
    fn resized(&mut self, (from, to): (Lane, Lane), x: Regs) -> Regs {
        match (from.is_long(), to.is_long()) {
            (true, true) => x,
            (false, true) => self.both_quarters(LONG_OF_INT[usize::from(from == Lane::U32)], x[0]),
            (true, false) => {
                let narrow = self.narrowed(x[0], x[1]);
                self.in_range(to, smallvec![narrow])
            }
            (false, false) => self.in_range(to, x),
        }
    }
}
