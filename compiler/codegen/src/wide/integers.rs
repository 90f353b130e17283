//! Operators on integers that have no instruction: bits that are counted, and division by a number.
//!
//! Invariant: as in `arith`, each result is that of the scalar operation in every lane.

use super::arith::{Value, is_long, pick};
use super::codes::*;
use super::inst::{Op, Reg};
use super::program::Program;
use girder_codelet::scalar::extend;
use girder_ir::codelet::{BinaryOp, UnaryOp};
use girder_ir::types::ElemType;
use smallvec::{SmallVec, smallvec};

/// The way a shift goes.
#[derive(Clone, Copy)]
enum Way {
    Right,
    RightSigned,
}

impl Program {
    /// Bits that are set, or zeros at the top.
    pub(super) fn counted(&mut self, op: UnaryOp, x: &Value) -> SmallVec<[Reg; 2]> {
        let long = is_long(x.ty);
        let bits = 8 * x.ty.bytes();
        x.regs
            .iter()
            .map(|&reg| {
                // A lane of 32 bits may hold the sign of a shorter integer above it.
                let mut v = reg;
                if bits < 32 && x.ty.is_signed_int() {
                    v = self.with_number(AND, long, v, (1 << bits) - 1);
                }
                match op {
                    UnaryOp::Popcount if crate::isa::counts_ones() => self.plain(pick(ONES, x.ty), &[v]),
                    UnaryOp::Popcount => self.ones(long, v),
                    _ => {
                        let zeros = self.plain(pick(ZEROS, x.ty), &[v]);
                        let more = 32u64.saturating_sub(bits.into());
                        if more == 0 { zeros } else { self.with_number(ISUB, long, zeros, more) }
                    }
                }
            })
            .collect()
    }

    /// The zeros at the top of each lane: with all bits below the first one set, those that are not.
    pub(super) fn zeros(&mut self, long: bool, x: Reg) -> Reg {
        let mut v = x;
        for by in [1, 2, 4, 8, 16, 32].into_iter().filter(|&by| by < 32 || long) {
            let below = self.shifted(long, v, Way::Right, by);
            v = self.plain(OR[usize::from(long)], &[v, below]);
        }
        let rest = self.with_number(XOR, long, v, u64::MAX);
        self.ones(long, rest)
    }

    /// How many bits of each lane are set: in pairs, fours and bytes, then all bytes of the lane.
    pub(super) fn ones(&mut self, long: bool, x: Reg) -> Reg {
        let bytes = |b: u64| b * 0x0101_0101_0101_0101;
        let code = |pair: crate::wide::Pair| pair[usize::from(long)];
        let half = self.shifted(long, x, Way::Right, 1);
        let half = self.with_number(AND, long, half, bytes(0x55));
        let pairs = self.plain(code(ISUB), &[x, half]);
        let upper = self.shifted(long, pairs, Way::Right, 2);
        let upper = self.with_number(AND, long, upper, bytes(0x33));
        let lower = self.with_number(AND, long, pairs, bytes(0x33));
        let fours = self.plain(code(IADD), &[lower, upper]);
        let upper = self.shifted(long, fours, Way::Right, 4);
        let sum = self.plain(code(IADD), &[fours, upper]);
        let mut sum = self.with_number(AND, long, sum, bytes(0x0f));
        // The lowest byte comes to hold what all have; the others are cut off.
        for by in [8, 16, 32].into_iter().filter(|&by| by < 32 || long) {
            let above = self.shifted(long, sum, Way::Right, by);
            sum = self.plain(code(IADD), &[sum, above]);
        }
        self.with_number(AND, long, sum, 0x7f)
    }

    /// `x / by` or `x % by` of integers of at most 32 bits, by a number that is not zero.
    pub fn divided(&mut self, op: BinaryOp, x: &Value, by: u64) -> Value {
        let ty = x.ty;
        let by = extend(ty, by) as i64;
        let lanes = x.regs[0];
        let magnitude = by.unsigned_abs();
        let quotient = if !magnitude.is_power_of_two() {
            self.quotient(x, by)
        } else if !ty.is_signed_int() {
            self.shifted(false, lanes, Way::Right, magnitude.trailing_zeros() as u8)
        } else {
            self.halved(lanes, magnitude.trailing_zeros() as u8, by < 0)
        };
        let reg = match op {
            BinaryOp::Div => quotient,
            _ if !ty.is_signed_int() && magnitude.is_power_of_two() => {
                self.with_number(AND, false, lanes, magnitude - 1)
            }
            _ => {
                let whole = self.with_number(IMUL, false, quotient, by as u64);
                self.plain(ISUB[0], &[lanes, whole])
            }
        };
        self.in_range(ty, Value { ty, regs: smallvec![reg] })
    }

    /// `x` by plus or minus two to the n, cut towards zero: what is negative is made greater by what is cut off at most.
    fn halved(&mut self, x: Reg, n: u8, negative: bool) -> Reg {
        let mut quotient = x;
        if n > 0 {
            let sign = self.shifted(false, x, Way::RightSigned, 31);
            let most = self.shifted(false, sign, Way::Right, 32 - n);
            let sum = self.plain(IADD[0], &[x, most]);
            quotient = self.shifted(false, sum, Way::RightSigned, n);
        }
        if negative {
            let zero = self.constant(0, 4);
            quotient = self.plain(ISUB[0], &[zero, quotient]);
        }
        quotient
    }

    /// `x / by` as a product of floats, cut towards zero; `by` is no power of two.
    ///
    /// The reciprocal is the least number above the exact one, so that a product is never below an exact quotient. A
    /// quotient that is not exact is at least `1 / by` below the next integer, which is more than all roundings together:
    /// of the quotient, that is a part of 2⁻³² or more, and 2⁻¹⁶ for integers of 16 bits.
    fn quotient(&mut self, x: &Value, by: i64) -> Reg {
        if x.ty.bytes() < 4 {
            let reciprocal = (1.0 / by.unsigned_abs() as f32).next_up();
            let reciprocal = if by < 0 { -reciprocal } else { reciprocal };
            let float = self.plain(F32_OF_INT[0], &[x.regs[0]]);
            let product = self.with_number(MUL, false, float, reciprocal.to_bits().into());
            return self.plain(INT_OF_F32[0], &[product]);
        }
        let reciprocal = (1.0 / by.unsigned_abs() as f64).next_up();
        let reciprocal = if by < 0 { -reciprocal } else { reciprocal };
        let floats = self.converted(ElemType::F64, x);
        let halves: SmallVec<[Reg; 2]> = floats
            .regs
            .iter()
            .map(|&half| {
                let product = self.with_number(MUL, true, half, reciprocal.to_bits());
                // Below 2³¹ in every case, as `by` is 3 or more.
                self.plain(INT_OF_F64[0], &[product])
            })
            .collect();
        self.joined(&halves)
    }

    /// An instruction on a vector and a number in all lanes, of which those of 32 bits take the lower half.
    fn with_number(&mut self, pair: crate::wide::Pair, long: bool, x: Reg, number: u64) -> Reg {
        let (number, bytes) = if long { (number, 8) } else { (u64::from(number as u32), 4) };
        let number = self.constant(number, bytes);
        self.plain(pair[usize::from(long)], &[x, number])
    }

    fn shifted(&mut self, long: bool, x: Reg, way: Way, by: u8) -> Reg {
        let (pair, digit) = match way {
            Way::Right => (SHIFT_RIGHT, 2),
            Way::RightSigned => (SHIFT_RIGHT_SIGNED, 4),
        };
        self.make(Op::Shift { code: pair[usize::from(long)], digit, by }, &[x])
    }
}
