//! Instructions of 512 bits in those of AVX2.
//!
//! Invariant: the result has the same bits; any NaN is as good as any other.

use super::Halves;
use super::shape::{narrows, widens};
use crate::wide::codes::*;
use crate::wide::encode::Code;
use crate::wide::inst::{Inst, Op, Reg};

/// Two to the 52nd: a number whose last bit counts ones.
const TWO_52: u64 = 0x4330_0000_0000_0000;
/// Two to the 31st and the 32nd.
const TWO_31: [u64; 2] = [0x4f00_0000, 0x41e0_0000_0000_0000];
const TWO_32: [u64; 2] = [0x4f80_0000, 0x41f0_0000_0000_0000];
const ROUND_AS: u8 = 8;

/// Whether AVX2 has an instruction on two vectors as it is.
pub(super) fn is_one(code: Code) -> bool {
    let missing = [RANGE[0], RANGE[1], IMUL[1], SMIN[1], SMAX[1], UMIN[1], UMAX[1]];
    !missing.contains(&code)
}

impl Halves<'_> {
    /// A half of what an instruction makes.
    pub(super) fn translated(&mut self, inst: &Inst, part: u8) -> Reg {
        let args = &inst.args;
        match inst.op {
            op @ (Op::Constant { .. } | Op::Same { .. }) => self.to.make(op, &[]),
            Op::Steps { start, step, bytes } => {
                let lanes = i64::from(32 / bytes) * i64::from(part);
                let start = start.wrapping_add(step.wrapping_mul(lanes));
                self.to.make(Op::Steps { start, step, bytes }, &[])
            }
            Op::Load { code, from } => self.loaded((code, from), args.first().copied(), part),
            Op::Gather { code, from } => self.gathered((code, from), inst, part),
            Op::Plain { code: JOIN, .. } => self.vector(args[usize::from(part)], 0),
            Op::Reversed { code: UPPER, .. } => self.vector(args[0], 1),
            Op::Plain { code, .. } | Op::Reversed { code, .. } if narrows(code) => self.narrowed_by(code, args[0]),
            Op::Plain { code, .. } if widens(code) => {
                let lanes = self.vector(args[0], 0);
                self.widened(code, lanes, part)
            }
            Op::Plain { code, immediate } => match *args.as_slice() {
                [x] => {
                    let x = self.vector(x, part);
                    self.of_one(code, immediate, x)
                }
                [a, b] => {
                    let (a, b) = (self.vector(a, part), self.vector(b, part));
                    if code == RANGE[usize::from(code.w)] {
                        return self.extremum(code, immediate == Some(4), a, b);
                    }
                    self.of_two(code, a, b)
                }
                _ => unreachable!("{} has one operand or two", code.name),
            },
            Op::Shift { code, digit, by } => {
                let x = self.vector(args[0], part);
                self.shifted((code, digit), x, by)
            }
            op @ Op::Fma { .. } => {
                let args = [args[0], args[1], args[2]].map(|a| self.vector(a, part));
                self.to.make(op, &args)
            }
            Op::Blend { code } => {
                let (no, yes) = (self.vector(args[1], part), self.vector(args[2], part));
                self.blended(args[0], part, code.w == 1, no, yes)
            }
            Op::Merge { code } => {
                let old = self.vector(args[1], part);
                let is_extremum = self.from.made[args[1].0 as usize].as_ref().is_some_and(|old| {
                    matches!(old.op, Op::Plain { code, .. } if code == RANGE[usize::from(code.w)])
                        && old.args.as_slice() == &args[2..]
                });
                if is_extremum {
                    // NaN is where it has to be already.
                    return old;
                }
                let (a, b) = (self.vector(args[2], part), self.vector(args[3], part));
                let new = self.of_two(code, a, b);
                self.blended(args[0], part, code.w == 1, old, new)
            }
            Op::Zeroed { code } if narrows(code) => {
                let value = self.narrowed_by(code, args[1]);
                let mask = self.mask(args[0], 0);
                let mask = self.narrow(mask);
                self.plain(AND[0], &[mask, value])
            }
            Op::Zeroed { code } => {
                let x = self.vector(args[1], part);
                let value = self.of_one(code, None, x);
                let mask = self.mask(args[0], part);
                let mask = self.narrow(mask);
                self.plain(AND[0], &[mask, value])
            }
            op => unreachable!("no program for halves has {op:?}"),
        }
    }

    fn blended(&mut self, mask: Reg, part: u8, long: bool, no: Reg, yes: Reg) -> Reg {
        let mask = self.mask(mask, if long { 0 } else { part });
        let mask = if long { self.long(mask, part) } else { self.narrow(mask) };
        self.to.make(Op::BlendBy { code: BLEND_BY[usize::from(long)] }, &[mask, no, yes])
    }

    fn of_one(&mut self, code: Code, immediate: Option<u8>, x: Reg) -> Reg {
        if code == IABS[1] {
            let zero = self.constant(0, true);
            let sign = self.plain(GREATER[1], &[zero, x]);
            let inverted = self.plain(XOR[0], &[x, sign]);
            return self.plain(ISUB[1], &[inverted, sign]);
        }
        for long in [false, true] {
            match code {
                _ if code == ONES[usize::from(long)] => return self.to.ones(long, x),
                _ if code == ZEROS[usize::from(long)] => return self.to.zeros(long, x),
                _ => {}
            }
        }
        if code == F32_OF_INT[1] {
            // Both parts are exact, and their sum is rounded once.
            let low = self.constant(0xffff, false);
            let low = self.plain(AND[0], &[x, low]);
            let high = self.shifted((SHIFT_RIGHT[0], 2), x, 16);
            let [low, high] = [low, high].map(|half| self.plain(F32_OF_INT[0], &[half]));
            let two_16 = self.constant(0x4780_0000, false);
            let high = self.plain(MUL[0], &[high, two_16]);
            return self.plain(ADD[0], &[high, low]);
        }
        if code == INT_OF_F32[1] {
            let (large, sign) = self.large(x, 0);
            let rest = self.plain(SUB[0], &[x, large]);
            let number = self.plain(INT_OF_F32[0], &[rest]);
            let number = self.plain(XOR[0], &[number, sign]);
            let limit = self.constant(TWO_32[0], false);
            let above = self.with(COMPARE[0], 0x1d, &[x, limit]);
            return self.plain(OR[0], &[number, above]);
        }
        if code == F64_OF_LONG[0] || code == F64_OF_LONG[1] {
            return self.f64_of_long(x, code == F64_OF_LONG[0]);
        }
        self.to.make(Op::Plain { code, immediate }, &[x])
    }

    /// Of a float that is not negative: two to the 31st where it is at least that, else zero; and there the sign of an
    /// integer of 32 bits, in lanes of the float's width.
    fn large(&mut self, x: Reg, long: usize) -> (Reg, Reg) {
        let limit = self.constant(TWO_31[long], long == 1);
        let is_large = self.with(COMPARE[long], 0x1d, &[x, limit]);
        let sign = self.constant(1 << 31, long == 1);
        (self.plain(AND[0], &[is_large, limit]), self.plain(AND[0], &[is_large, sign]))
    }

    /// The upper half times two to the 32nd and the lower half are exact, and their sum is rounded once.
    fn f64_of_long(&mut self, x: Reg, signed: bool) -> Reg {
        let (low_of, two_52) = (self.constant(0xffff_ffff, true), self.constant(TWO_52, true));
        let low = self.plain(AND[0], &[x, low_of]);
        let low = self.plain(OR[0], &[low, two_52]);
        let low = self.plain(SUB[1], &[low, two_52]);
        // A signed upper half is counted from -2^31.
        let high = if signed { self.flipped(x, 1) } else { x };
        let high = self.shifted((SHIFT_RIGHT[1], 2), high, 32);
        let high = self.plain(OR[0], &[high, two_52]);
        let start = if signed { f64::from_bits(TWO_52) + 2147483648.0 } else { f64::from_bits(TWO_52) };
        let start = self.constant(start.to_bits(), true);
        let high = self.plain(SUB[1], &[high, start]);
        let two_32 = self.constant(TWO_32[1], true);
        let high = self.plain(MUL[1], &[high, two_32]);
        self.plain(ADD[1], &[high, low])
    }

    pub(super) fn of_two(&mut self, code: Code, a: Reg, b: Reg) -> Reg {
        if code == IMUL[1] {
            let [high_a, high_b] = [a, b].map(|x| self.shifted((SHIFT_RIGHT[1], 2), x, 32));
            let (ab, ba) = (self.plain(MULTIPLY_LOW, &[high_a, b]), self.plain(MULTIPLY_LOW, &[a, high_b]));
            let high = self.plain(IADD[1], &[ab, ba]);
            let high = self.shifted((SHIFT_LEFT[1], 6), high, 32);
            let low = self.plain(MULTIPLY_LOW, &[a, b]);
            return self.plain(IADD[1], &[low, high]);
        }
        let unsigned = code == UMIN[1] || code == UMAX[1];
        if unsigned || code == SMIN[1] || code == SMAX[1] {
            let [x, y] = [a, b].map(|x| if unsigned { self.flipped(x, 1) } else { x });
            let above = self.plain(GREATER[1], &[x, y]);
            let (above_is, else_is) = if code == SMAX[1] || code == UMAX[1] { (a, b) } else { (b, a) };
            return self.to.make(Op::BlendBy { code: BLEND_BY[1] }, &[above, else_is, above_is]);
        }
        self.plain(code, &[a, b])
    }

    /// `min` or `max` of floats: NaN if either is, and -0 below +0. The instruction gives its second operand where either
    /// is NaN or both are zero, so that both orders together have all that is wanted.
    fn extremum(&mut self, code: Code, is_min: bool, a: Reg, b: Reg) -> Reg {
        let long = usize::from(code.w);
        let code = if is_min { MIN[long] } else { MAX[long] };
        let (ab, ba) = (self.plain(code, &[a, b]), self.plain(code, &[b, a]));
        if is_min {
            return self.plain(OR[0], &[ab, ba]);
        }
        let both = self.plain(AND[0], &[ab, ba]);
        let nan = self.with(COMPARE[long], 3, &[a, b]);
        self.plain(OR[0], &[both, nan])
    }

    fn shifted(&mut self, (code, digit): (Code, u8), x: Reg, by: u8) -> Reg {
        if code != SHIFT_RIGHT_SIGNED[1] || by == 0 {
            return self.to.make(Op::Shift { code, digit, by }, &[x]);
        }
        let zero = self.constant(0, true);
        let sign = self.plain(GREATER[1], &[zero, x]);
        let sign = self.to.make(Op::Shift { code: SHIFT_LEFT[1], digit: 6, by: 64 - by }, &[sign]);
        let rest = self.to.make(Op::Shift { code: SHIFT_RIGHT[1], digit: 2, by }, &[x]);
        self.plain(OR[0], &[rest, sign])
    }

    /// Four of eight lanes of 32 bits as lanes of 64.
    pub(super) fn widened(&mut self, code: Code, lanes: Reg, part: u8) -> Reg {
        let lanes = if part == 0 { lanes } else { self.upper_128(lanes) };
        if code != F64_OF_INT[1] {
            return self.plain(code, &[lanes]);
        }
        let long = self.plain(LONG_OF_INT[1], &[lanes]);
        let two_52 = self.constant(TWO_52, true);
        let number = self.plain(OR[0], &[long, two_52]);
        self.plain(SUB[1], &[number, two_52])
    }

    /// Eight lanes of 64 bits as lanes of 32.
    fn narrowed_by(&mut self, code: Code, x: Reg) -> Reg {
        let [lower, upper] = [0, 1].map(|q| self.vector(x, q));
        if code == INT_OF_LONG {
            return self.narrowed(lower, upper);
        }
        let [lower, upper] = [lower, upper].map(|x| self.narrowed_floats(code, x));
        self.with(JOIN_128, 1, &[lower, upper])
    }

    fn narrowed_floats(&mut self, code: Code, x: Reg) -> Reg {
        if code != INT_OF_F64[1] {
            return self.plain(code, &[x]);
        }
        // Saturates upwards; what is below zero or NaN is left out by the caller.
        let most = self.constant(f64::from(u32::MAX).to_bits(), true);
        let x = self.plain(MIN[1], &[x, most]);
        let x = self.to.make(Op::Plain { code: ROUND[1], immediate: Some(ROUND_AS | 3) }, &[x]);
        let two_52 = self.constant(TWO_52, true);
        let number = self.plain(ADD[1], &[x, two_52]);
        let low = self.with(SHUFFLE, 0b10_00_10_00, &[number, number]);
        self.with(QUARTERS, 0b11_01_10_00, &[low])
    }
}
