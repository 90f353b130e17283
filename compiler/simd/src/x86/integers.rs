//! Integer operators that are not one instruction at either level.
//!
//! Invariant: each lane has 32 bits, or 64 if it is `long`.

use super::inst::Reg;
use super::pairs::*;
use super::program::Program;
use super::table::Code;

impl Program {
    /// Emits sums of the absolute differences of eight unsigned bytes, or of the bytes alone, in the lower 32 bits of
    /// 64-bit lanes.
    pub(super) fn byte_sums(&mut self, x: Reg, y: Option<Reg>) -> Reg {
        let y = y.unwrap_or_else(|| self.constant(0, 4));
        self.plain(SUM_DIFFERENCES, &[x, y])
    }

    /// Counts the leading zeros of each lane: sets all bits below the first set bit, and counts the clear bits.
    pub fn leading_zeros(&mut self, long: bool, x: Reg) -> Reg {
        let mut v = x;
        for by in [1, 2, 4, 8, 16, 32].into_iter().filter(|&by| by < 32 || long) {
            let below = self.shift(SHIFT_RIGHT[usize::from(long)], by, v);
            v = self.plain(OR[usize::from(long)], &[v, below]);
        }
        let rest = self.with_number(XOR, long, v, u64::MAX);
        self.count_ones(long, rest)
    }

    /// Counts the set bits of each lane: in pairs, fours and bytes, and then across the bytes of the lane.
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
        // The lowest byte becomes the sum of all bytes; the others are masked out.
        for by in [8, 16, 32].into_iter().filter(|&by| by < 32 || long) {
            let above = self.shift(SHIFT_RIGHT[lane], by, sum);
            sum = self.plain(IADD[lane], &[sum, above]);
        }
        self.with_number(AND, long, sum, 0x7f)
    }

    /// Divides `x` of 32 bits by plus or minus 2^n, rounded towards zero: `2^n - 1` is added to a negative `x` first.
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

    /// Emits an instruction on a vector and a number in all lanes; 32-bit lanes take the low half of the number.
    pub fn with_number(&mut self, pair: Pair, long: bool, x: Reg, number: u64) -> Reg {
        let (number, bytes) = if long { (number, 8) } else { (u64::from(number as u32), 4) };
        let number = self.constant(number, bytes);
        self.plain(pair[usize::from(long)], &[x, number])
    }
}

/// Returns `1 / by` as an `f32`, rounded up, so that products with it are never below the exact quotient.
///
/// An inexact quotient of 16-bit integers is at least `1 / by` below the next integer. All roundings together are
/// smaller: their sum is a fraction of 2⁻¹⁶ of the quotient. `by` is no power of two.
pub(super) fn reciprocal(by: i64) -> u64 {
    let sign = if by < 0 { 1u64 } else { 0 };
    u64::from((1.0 / by.unsigned_abs() as f32).next_up().to_bits()) | sign << 31
}

/// A division of a 32-bit integer by a constant, as the upper half of a product. See Warren, Hacker's Delight, chapter
/// 10.
struct Magic {
    /// The factor that the integer is multiplied by.
    factor: u32,
    shift: u8,
    /// Whether the factor has more than 32 bits, or another sign than the divisor.
    corrected: bool,
}

impl Magic {
    /// Returns the factor for a signed integer; the divisor's magnitude is 3 or more.
    fn signed(by: i64) -> Magic {
        let magnitude = by.unsigned_abs();
        // Finds the least power of two for which the rounded-up factor is exact enough.
        let most = (1u64 << 31) + u64::from(by < 0);
        let limit = most - 1 - most % magnitude;
        let power = (32u32..64).find(|&p| {
            let rest = magnitude - (1u64 << p) % magnitude;
            u128::from(limit) * u128::from(rest) < 1u128 << p
        });
        let power = power.expect("there is one below 64");
        let factor = ((1u128 << power) + u128::from(magnitude - (1u64 << power) % magnitude)) / u128::from(magnitude);
        let factor = if by < 0 { (factor as u32).wrapping_neg() } else { factor as u32 };
        Magic { factor, shift: (power - 32) as u8, corrected: (factor as i32 > 0) != (by > 0) }
    }

    /// Returns the factor for an unsigned integer; the divisor is 3 or more and no power of two.
    fn unsigned(by: u64) -> Magic {
        let bits = 64 - (by - 1).leading_zeros();
        // With fewer bits than `by` has, a 32-bit factor may suffice.
        let exact = |p: u32| {
            let factor = (1u128 << (32 + p)).div_ceil(u128::from(by));
            let error = factor * u128::from(by) - (1u128 << (32 + p));
            (factor < 1 << 32 && error <= 1 << p).then_some(factor)
        };
        match (0..=bits).find_map(|p| exact(p).map(|factor| (factor, p))) {
            Some((factor, p)) => Magic { factor: factor as u32, shift: p as u8, corrected: false },
            None => {
                let factor = (1u128 << (32 + bits)).div_ceil(u128::from(by));
                Magic { factor: factor as u32, shift: bits as u8, corrected: true }
            }
        }
    }
}

impl Program {
    /// Emits the upper halves of the products of 32-bit lanes with a number.
    fn upper_product(&mut self, code: Code, x: Reg, factor: u32) -> Reg {
        let factor = self.constant(factor.into(), 4);
        let odd = self.shift(SHIFT_RIGHT[1], 32, x);
        let (even, odd) = (self.plain(code, &[x, factor]), self.plain(code, &[odd, factor]));
        let even = self.shift(SHIFT_RIGHT[1], 32, even);
        let odd = self.with_number(AND, true, odd, 0xffff_ffff_0000_0000);
        self.plain(OR[0], &[even, odd])
    }

    /// Emits `x / by` for 32-bit lanes, rounded towards zero; the magnitude of `by` is no power of two.
    pub fn divided(&mut self, signed: bool, x: Reg, by: i64) -> Reg {
        if !signed {
            let magic = Magic::unsigned(by as u64);
            let product = self.upper_product(MULTIPLY_LOW, x, magic.factor);
            if !magic.corrected {
                return if magic.shift > 0 { self.shift(SHIFT_RIGHT[0], magic.shift, product) } else { product };
            }
            // The factor has a 33rd bit: `x` is added in two halves, which avoids overflow.
            let rest = self.plain(ISUB[0], &[x, product]);
            let half = self.shift(SHIFT_RIGHT[0], 1, rest);
            let sum = self.plain(IADD[0], &[half, product]);
            return self.shift(SHIFT_RIGHT[0], magic.shift - 1, sum);
        }
        let magic = Magic::signed(by);
        let mut product = self.upper_product(MULTIPLY_LOW_SIGNED, x, magic.factor);
        if magic.corrected {
            product = self.plain(if by > 0 { IADD[0] } else { ISUB[0] }, &[product, x]);
        }
        if magic.shift > 0 {
            product = self.shift(SHIFT_RIGHT_SIGNED[0], magic.shift, product);
        }
        // Adds one to a negative quotient, which is one too low.
        let sign = self.shift(SHIFT_RIGHT[0], 31, product);
        self.plain(IADD[0], &[product, sign])
    }
}

/// Returns a number of 8 or 16 bits, repeated in a 32-bit lane.
pub(super) fn repeated(number: u64, bits: u32) -> u64 {
    match bits {
        8 => u64::from(number as u8) * 0x0101_0101,
        _ => u64::from(number as u16) * 0x0001_0001,
    }
}

#[cfg(test)]
mod tests {
    use super::Magic;

    fn edges() -> impl Iterator<Item = u32> {
        let near = (0..32).flat_map(|n| [1u32 << n, (1u32 << n).wrapping_sub(1), (1u32 << n) + 1, !(1u32 << n)]);
        near.chain((0..2000u32).map(|n| n.wrapping_mul(2_654_435_761))).chain([u32::MAX, i32::MAX as u32])
    }

    #[test]
    fn unsigned_quotients_are_exact() {
        for by in edges().filter(|by| !by.is_power_of_two() && *by > 2) {
            let magic = Magic::unsigned(by.into());
            let check = |x: u32| {
                let product = ((u64::from(x) * u64::from(magic.factor)) >> 32) as u32;
                let quotient = match magic.corrected {
                    true => (((x - product) >> 1) + product) >> (magic.shift - 1),
                    false => product >> magic.shift,
                };
                assert_eq!(quotient, x / by, "{x} / {by}");
            };
            edges().step_by(7).for_each(check);
            (0..4).for_each(|n| check((u32::MAX / by * by).wrapping_sub(n)));
        }
    }

    #[test]
    fn signed_quotients_are_exact() {
        for by in edges().map(|by| by as i32).filter(|by| !by.unsigned_abs().is_power_of_two() && *by != 0) {
            let magic = Magic::signed(by.into());
            let check = |x: i32| {
                let mut product = ((i64::from(x) * i64::from(magic.factor as i32)) >> 32) as i32;
                if magic.corrected {
                    product = if by > 0 { product.wrapping_add(x) } else { product.wrapping_sub(x) };
                }
                product >>= magic.shift;
                assert_eq!(product.wrapping_add((product as u32 >> 31) as i32), x.wrapping_div(by), "{x} / {by}");
            };
            edges().step_by(5).for_each(|x| check(x as i32));
            [i32::MIN, i32::MIN + 1, i32::MAX, i32::MAX - 1].into_iter().for_each(check);
        }
    }
}
