//! Operators on integers that neither level has an instruction for.
//!
//! Invariant: each lane has 32 bits, or 64 if it is `long`.

use super::inst::Reg;
use super::pairs::*;
use super::program::Program;

impl Program {
    /// The zeros at the top of each lane: with all bits below the first one set, those that are not.
    pub fn leading_zeros(&mut self, long: bool, x: Reg) -> Reg {
        let mut v = x;
        for by in [1, 2, 4, 8, 16, 32].into_iter().filter(|&by| by < 32 || long) {
            let below = self.shift(SHIFT_RIGHT[usize::from(long)], by, v);
            v = self.plain(OR[usize::from(long)], &[v, below]);
        }
        let rest = self.with_number(XOR, long, v, u64::MAX);
        self.count_ones(long, rest)
    }

    /// How many bits of each lane are set: in pairs, fours and bytes, then all bytes of the lane.
    pub fn count_ones(&mut self, long: bool, x: Reg) -> Reg {
        let bytes = |b: u64| b * 0x0101_0101_0101_0101;
        let lane = usize::from(long);
        let half = self.shift(SHIFT_RIGHT[lane], 1, x);
        let half = self.with_number(AND, long, half, bytes(0x55));
        let pairs = self.plain(ISUB[lane], &[x, half]);
        let upper = self.shift(SHIFT_RIGHT[lane], 2, pairs);
        let upper = self.with_number(AND, long, upper, bytes(0x33));
        let lower = self.with_number(AND, long, pairs, bytes(0x33));
        let fours = self.plain(IADD[lane], &[lower, upper]);
        let upper = self.shift(SHIFT_RIGHT[lane], 4, fours);
        let sum = self.plain(IADD[lane], &[fours, upper]);
        let mut sum = self.with_number(AND, long, sum, bytes(0x0f));
        // The lowest byte comes to hold what all have; the others are cut off.
        for by in [8, 16, 32].into_iter().filter(|&by| by < 32 || long) {
            let above = self.shift(SHIFT_RIGHT[lane], by, sum);
            sum = self.plain(IADD[lane], &[sum, above]);
        }
        self.with_number(AND, long, sum, 0x7f)
    }

    /// `x` of 32 bits by plus or minus two to the n, cut towards zero: what is negative is made greater by what is cut
    /// off at most.
    pub fn divided_by_power(&mut self, x: Reg, n: u8, negative: bool) -> Reg {
        let mut quotient = x;
        if n > 0 {
            let sign = self.shift(SHIFT_RIGHT_SIGNED[0], 31, x);
            let most = self.shift(SHIFT_RIGHT[0], 32 - n, sign);
            let sum = self.plain(IADD[0], &[x, most]);
            quotient = self.shift(SHIFT_RIGHT_SIGNED[0], n, sum);
        }
        if negative {
            let zero = self.constant(0, 4);
            quotient = self.plain(ISUB[0], &[zero, quotient]);
        }
        quotient
    }

    /// An instruction on a vector and a number in all lanes, of which those of 32 bits take the lower half.
    pub fn with_number(&mut self, pair: Pair, long: bool, x: Reg, number: u64) -> Reg {
        let (number, bytes) = if long { (number, 8) } else { (u64::from(number as u32), 4) };
        let number = self.constant(number, bytes);
        self.plain(pair[usize::from(long)], &[x, number])
    }
}

/// `1 / by`, rounded up: products with it are never below an exact quotient.
///
/// A quotient that is not exact is at least `1 / by` below the next integer, which is more than all roundings together:
/// of the quotient, that is a part of 2⁻³² or more with `f64`, and 2⁻¹⁶ for integers of 16 bits with `f32`. `by` is no
/// power of two.
pub(super) fn reciprocal(by: i64, long: bool) -> u64 {
    let sign = if by < 0 { 1u64 } else { 0 };
    match long {
        true => (1.0 / by.unsigned_abs() as f64).next_up().to_bits() | sign << 63,
        false => u64::from((1.0 / by.unsigned_abs() as f32).next_up().to_bits()) | sign << 31,
    }
}

/// Any number in all lanes of 32 bits, for lanes of 8 or 16.
pub(super) fn repeated(number: u64, bits: u32) -> u64 {
    match bits {
        8 => u64::from(number as u8) * 0x0101_0101,
        _ => u64::from(number as u16) * 0x0001_0001,
    }
}
