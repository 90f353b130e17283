//! Operations that stay in one lane type.
//!
//! Invariant: integers of less than 32 bits are in their range before and after each operation.

use super::{Lowering, Regs};
use crate::ir::{Def, Lane, Op, Value};
use crate::x86::inst::{Op as Machine, Reg};
use crate::x86::integers::reciprocal;
use crate::x86::pairs::{order, *};
use crate::x86::table::Code;
use smallvec::{SmallVec, smallvec};

impl Lowering<'_> {
    /// Computes the vectors of a value for one half.
    pub(super) fn made(&mut self, value: Value, half: u8) -> Regs {
        let kernel = self.kernel;
        let def = kernel.def(value);
        let lane = def.lane;
        match def.op {
            Op::Load(from) => return self.load(def, from, half),
            Op::LoadPermuted { from, order } => return smallvec![self.load_permuted(def.lane, from, order, half)],
            _ if kernel.per_iteration > 1 => return self.narrow(def, half),
            Op::Select => {
                let mask = self.mask(def.args[0], half);
                let (yes, no) = (self.vectors(def.args[1], half), self.vectors(def.args[2], half));
                return self.blend(lane, mask, &yes, &no);
            }
            Op::Fma => {
                let (args, negated) = kernel.signed_product(&def.args);
                let [a, b, c] = args.map(|arg| self.vectors(arg, half));
                let op = Machine::Fma { long: lane.is_long(), negated };
                return (0..a.len()).map(|n| self.to.make(op, &[a[n], b[n], c[n]])).collect();
            }
            Op::Convert => return self.convert(lane, def.args[0], half),
            Op::Bits if self.any_nan[value.0 as usize] => return self.vectors(def.args[0], half),
            Op::Bits => return self.bits(lane, def.args[0], half),
            _ => {}
        }
        let args: Vec<Regs> = def.args.iter().map(|&a| self.vectors(a, half)).collect();
        match (def.op, args.as_slice()) {
            (Op::Constant { bits }, []) => self.splat(lane, bits),
            (Op::Uniform { offset }, []) => {
                let reg = self.to.make(Machine::Uniform { offset, bytes: lane.bytes().max(4) as u8 }, &[]);
                smallvec![reg; if lane.is_long() { 2 } else { 1 }]
            }
            (Op::Index { offset, step }, []) => self.index(lane, offset, step, half),
            (_, [x]) => self.unary(def, x, half),
            (op, [a, b]) => self.binary(lane, op, (def.args[0], a), (def.args[1], b)),
            _ => unreachable!("{:?} takes other operands", def.op),
        }
    }

    fn index(&mut self, lane: Lane, offset: u32, step: i64, half: u8) -> Regs {
        let (long, bytes) = (lane.is_long(), lane.bytes() as u8);
        let first = self.to.make(Machine::Uniform { offset, bytes }, &[]);
        let by = self.to.constant(step.wrapping_mul(16) as u64 & lane.ones(), bytes);
        (0..=i64::from(long))
            .map(|quarter| {
                let start = step.wrapping_mul(8 * i64::from(half) + 4 * quarter);
                let steps = self.to.make(Machine::Ramp { start, step, bytes }, &[]);
                let start = self.to.plain(IADD[usize::from(long)], &[first, steps]);
                self.to.index(start, long, by)
            })
            .collect()
    }

    fn unary(&mut self, def: &Def, x: &Regs, half: u8) -> Regs {
        let lane = def.lane;
        let long = lane.is_long();
        let sign = if long { 1 << 63 } else { 1u64 << 31 };
        let regs = match def.op {
            Op::Neg if lane.is_float() => {
                let sign = self.constant(sign, long);
                let signs: Regs = smallvec![sign; x.len()];
                let inner = self.kernel.def(def.args[0]);
                match inner.op {
                    // `-abs(x)`
                    Op::Abs => {
                        let of = self.vectors(inner.args[0], half);
                        self.each_pair(OR[0], &of, &signs)
                    }
                    _ => self.each_pair(XOR[0], x, &signs),
                }
            }
            Op::Abs if lane.is_float() => {
                let rest = self.constant(sign - 1, long);
                self.each_pair(AND[0], x, &smallvec![rest; x.len()])
            }
            Op::Neg => {
                let zero = self.constant(0, long);
                self.each_pair(pick(ISUB, lane), &smallvec![zero; x.len()], x)
            }
            Op::Not => x.iter().map(|&x| self.inverted_lanes(x)).collect(),
            Op::Abs if lane.is_signed() && long => x.iter().map(|&x| self.long_abs(x)).collect(),
            Op::Abs if lane.is_signed() => self.each(IABS[0], x),
            Op::Abs => x.clone(),
            Op::Sqrt => self.each(pick(SQRT, lane), x),
            Op::Round(how) => {
                let code = pick(ROUND, lane);
                x.iter().map(|&x| self.to.with(code, rounding(how), &[x])).collect()
            }
            Op::CountOnes | Op::LeadingZeros => self.counted(lane, def.op, x),
            Op::Shl { by } => x.iter().map(|&x| self.to.shift(pick(SHIFT_LEFT, lane), by, x)).collect(),
            Op::Shr { by } if lane.is_signed() && long => x.iter().map(|&x| self.long_shift(by, x)).collect(),
            Op::Shr { by } => {
                let code = if lane.is_signed() { SHIFT_RIGHT_SIGNED[0] } else { pick(SHIFT_RIGHT, lane) };
                x.iter().map(|&x| self.to.shift(code, by, x)).collect()
            }
            Op::DivideBy { divisor } | Op::RemainderBy { divisor } => {
                smallvec![self.divided(lane, matches!(def.op, Op::RemainderBy { .. }), x[0], divisor)]
            }
            op => unreachable!("{op:?} has one operand"),
        };
        self.in_range(lane, regs)
    }

    fn long_abs(&mut self, x: Reg) -> Reg {
        let zero = self.constant(0, true);
        let sign = self.to.plain(GREATER[1], &[zero, x]);
        let inverted = self.to.plain(XOR[0], &[x, sign]);
        self.to.plain(ISUB[1], &[inverted, sign])
    }

    /// Emits `x >> by` for signed 64-bit lanes.
    fn long_shift(&mut self, by: u8, x: Reg) -> Reg {
        if by == 0 {
            return x;
        }
        let zero = self.constant(0, true);
        let sign = self.to.plain(GREATER[1], &[zero, x]);
        let sign = self.to.shift(SHIFT_LEFT[1], 64 - by, sign);
        let rest = self.to.shift(SHIFT_RIGHT[1], by, x);
        self.to.plain(OR[0], &[rest, sign])
    }

    fn counted(&mut self, lane: Lane, op: Op, x: &Regs) -> Regs {
        let (long, bits) = (lane.is_long(), lane.bits());
        x.iter()
            .map(|&reg| {
                let mut v = reg;
                // The sign of a narrower integer may extend above its bits in a 32-bit lane.
                if bits < 32 && lane.is_signed() {
                    v = self.to.with_number(AND, long, v, (1 << bits) - 1);
                }
                if op == Op::CountOnes {
                    return self.to.count_ones(long, v);
                }
                let zeros = self.to.leading_zeros(long, v);
                match 32u64.saturating_sub(bits.into()) {
                    0 => zeros,
                    more => self.to.with_number(ISUB, long, zeros, more),
                }
            })
            .collect()
    }

    /// Emits the quotient or the remainder of integers of at most 32 bits.
    fn divided(&mut self, lane: Lane, remains: bool, x: Reg, by: i64) -> Reg {
        let magnitude = by.unsigned_abs();
        let power = magnitude.is_power_of_two();
        let quotient = if !power {
            self.quotient(lane, x, by)
        } else if !lane.is_signed() {
            self.to.shift(SHIFT_RIGHT[0], magnitude.trailing_zeros() as u8, x)
        } else {
            self.to.divided_by_power(x, magnitude.trailing_zeros() as u8, by < 0)
        };
        match remains {
            false => quotient,
            true if !lane.is_signed() && power => self.to.with_number(AND, false, x, magnitude - 1),
            true => {
                let whole = self.to.with_number(IMUL, false, quotient, by as u64);
                self.to.plain(ISUB[0], &[x, whole])
            }
        }
    }

    /// Emits `x / by`, rounded towards zero; `by` is no power of two.
    fn quotient(&mut self, lane: Lane, x: Reg, by: i64) -> Reg {
        if lane.bytes() < 4 {
            let float = self.to.plain(F32_OF_INT[0], &[x]);
            let product = self.to.with_number(MUL, false, float, reciprocal(by));
            return self.to.plain(INT_OF_F32[0], &[product]);
        }
        self.to.divided(lane.is_signed(), x, by)
    }

    pub(super) fn binary(&mut self, lane: Lane, op: Op, (p, a): (Value, &Regs), (q, b): (Value, &Regs)) -> Regs {
        if lane.is_float() && matches!(op, Op::Min | Op::Max) {
            let (x, y) = (self.number(p), self.number(q));
            return self.extremum(lane, op == Op::Min, (x, a), (y, b));
        }
        let regs = a.iter().zip(b).map(|(&a, &b)| self.of_two(op, lane, a, b)).collect();
        self.in_range(lane, regs)
    }

    /// Emits an operation on two vectors; integers of less than 32 bits may leave their range.
    pub(super) fn of_two(&mut self, op: Op, lane: Lane, a: Reg, b: Reg) -> Reg {
        let long = lane.is_long();
        match op {
            Op::Mul if long && !lane.is_float() => self.long_product(a, b),
            Op::Min | Op::Max if long && !lane.is_float() => {
                let unsigned = !lane.is_signed();
                let [x, y] = [a, b].map(|x| if unsigned { self.flipped(x, true) } else { x });
                let above = self.to.plain(GREATER[1], &[x, y]);
                let (above_is, else_is) = if op == Op::Max { (a, b) } else { (b, a) };
                self.to.make(Machine::BlendBy { code: BLEND_BY[1] }, &[above, else_is, above_is])
            }
            _ => self.to.plain(one_instruction(op, lane).expect("other operations are above"), &[a, b]),
        }
    }

    fn long_product(&mut self, a: Reg, b: Reg) -> Reg {
        let [high_a, high_b] = [a, b].map(|x| self.to.shift(SHIFT_RIGHT[1], 32, x));
        let ab = self.to.plain(MULTIPLY_LOW, &[high_a, b]);
        let ba = self.to.plain(MULTIPLY_LOW, &[a, high_b]);
        let high = self.to.plain(IADD[1], &[ab, ba]);
        let high = self.to.shift(SHIFT_LEFT[1], 32, high);
        let low = self.to.plain(MULTIPLY_LOW, &[a, b]);
        self.to.plain(IADD[1], &[low, high])
    }

    /// Emits `min` or `max` of floats.
    ///
    /// The instruction returns its second operand if either operand is NaN or both are zero. One instruction is enough
    /// if one operand is a number that is neither NaN nor the zero for which this is wrong. Otherwise the results for
    /// both orders of the operands are combined.
    pub(super) fn extremum(
        &mut self,
        lane: Lane,
        is_min: bool,
        (p, a): (Option<f64>, &Regs),
        (q, b): (Option<f64>, &Regs),
    ) -> Regs {
        let code = pick(if is_min { MIN } else { MAX }, lane);
        let right = |value: &f64| !(value.is_nan() || *value == 0.0 && is_min && value.is_sign_negative());
        let known = match (p.filter(right), q.filter(right)) {
            (_, Some(value)) => Some((b, a, value)),
            (Some(value), _) => Some((a, b, value)),
            _ => None,
        };
        if let Some((number, x, value)) = known {
            let regs = self.each_pair(code, number, x);
            if !is_min && value == 0.0 && !value.is_sign_negative() {
                // This turns `max(-0, +0)` into +0 and changes no other value.
                return self.each_pair(pick(ADD, lane), &regs, number);
            }
            return regs;
        }
        let (ab, ba) = (self.each_pair(code, a, b), self.each_pair(code, b, a));
        if is_min {
            return self.each_pair(OR[0], &ab, &ba);
        }
        let both = self.each_pair(AND[0], &ab, &ba);
        let compare = COMPARE[usize::from(lane.is_long())];
        let nan = a.iter().zip(b).map(|(&a, &b)| self.to.with(compare, order::UNORDERED, &[a, b]));
        let nan: SmallVec<[Reg; 2]> = nan.collect();
        self.each_pair(OR[0], &both, &nan)
    }
}

/// Returns the instruction that performs an operation on two vectors, if there is one.
pub(super) fn one_instruction(op: Op, lane: Lane) -> Option<Code> {
    let (float, long) = (lane.is_float(), lane.is_long());
    let signed = lane.is_signed() || lane.bytes() < 4;
    let pair = match op {
        Op::Add if float => ADD,
        Op::Sub if float => SUB,
        Op::Mul if float => MUL,
        Op::Div => DIV,
        Op::Min | Op::Max if float => return None,
        Op::Add => IADD,
        Op::Sub => ISUB,
        Op::And => return Some(AND[0]),
        Op::Or => return Some(OR[0]),
        Op::Xor => return Some(XOR[0]),
        Op::Mul | Op::Min | Op::Max if long => return None,
        Op::Mul => IMUL,
        Op::Min if signed => SMIN,
        Op::Max if signed => SMAX,
        Op::Min => UMIN,
        Op::Max => UMAX,
        op => unreachable!("{op:?} has two operands"),
    };
    Some(pick(pair, lane))
}
