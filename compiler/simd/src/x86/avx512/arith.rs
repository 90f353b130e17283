//! Operations that stay in one lane type.
//!
//! Invariant: integers of less than 32 bits are in their range before and after each operation.

use super::{Lowering, Regs};
use crate::ir::{Cond, Def, Lane, Op, Value};
use crate::x86::inst::{Op as Machine, Reg};
use crate::x86::integers::reciprocal;
use crate::x86::pairs::{order, *};
use crate::x86::table::Code;
use smallvec::smallvec;

impl Lowering<'_> {
    /// Computes the vectors of a value.
    pub(super) fn made(&mut self, value: Value) -> Regs {
        let kernel = self.kernel;
        let def = kernel.def(value);
        let narrow = kernel.per_iteration > 1;
        match def.op {
            Op::Load(from) => return self.load(def, from),
            Op::LoadPermuted { from, order } => return smallvec![self.load_permuted(def.lane, from, order)],
            _ if narrow => return self.narrow(def),
            _ => {}
        }
        let args: Vec<Regs> = def.args.iter().map(|&a| self.of(a)).collect();
        let lane = def.lane;
        match (def.op, args.as_slice()) {
            (Op::Constant { bits }, []) => self.splat(lane, bits),
            (Op::Uniform { offset }, []) => {
                let reg = self.to.make(Machine::Uniform { offset, bytes: lane.bytes().max(4) as u8 }, &[]);
                smallvec![reg; if lane.is_long() { 2 } else { 1 }]
            }
            (Op::Index { offset, step }, []) => self.index(lane, offset, step),
            (Op::Select, [..]) => self.selected(def),
            (Op::Compare(cond), [a, b]) if kernel.lane(def.args[0]).is_mask() => {
                smallvec![self.compare_masks(cond, a[0], b[0])]
            }
            (Op::Compare(_), [..]) => smallvec![self.compare(def, false)],
            (Op::Convert, [_]) => self.convert(lane, def.args[0]),
            (Op::Bits, [x]) if self.any_nan[value.0 as usize] => x.clone(),
            (Op::Bits, [_]) => self.bits(lane, def.args[0]),
            (Op::Fma, [..]) => {
                let (args, negated) = kernel.signed_product(&def.args);
                let [a, b, c] = args.map(|arg| self.of(arg));
                let op = Machine::Fma { long: lane.is_long(), negated };
                (0..a.len()).map(|n| self.to.make(op, &[a[n], b[n], c[n]])).collect()
            }
            (_, [_]) if lane.is_mask() => smallvec![self.inverse(def.args[0])],
            (op, [a, b]) if lane.is_mask() => {
                let code = match op {
                    Op::And => MASK_AND,
                    Op::Or => MASK_OR,
                    _ => MASK_XOR,
                };
                smallvec![self.mask(code, &[a[0], b[0]])]
            }
            (_, [x]) => self.unary(def, x),
            (op, [a, b]) => self.binary(lane, op, (def.args[0], a), (def.args[1], b)),
            _ => unreachable!("{:?} takes other operands", def.op),
        }
    }

    fn index(&mut self, lane: Lane, offset: u32, step: i64) -> Regs {
        let (long, bytes) = (lane.is_long(), lane.bytes() as u8);
        let first = self.to.make(Machine::Uniform { offset, bytes }, &[]);
        let by = self.to.constant(step.wrapping_mul(16) as u64 & lane.ones(), bytes);
        let parts = 0..=i64::from(long);
        parts
            .map(|part| {
                let start = step.wrapping_mul(8 * part);
                let steps = self.to.make(Machine::Ramp { start, step, bytes }, &[]);
                let start = self.to.plain(IADD[usize::from(long)], &[first, steps]);
                self.to.index(start, long, by)
            })
            .collect()
    }

    fn unary(&mut self, def: &Def, x: &Regs) -> Regs {
        let lane = def.lane;
        let bytes = lane.bytes().max(4) as u8;
        let sign = if lane.is_long() { 1 << 63 } else { 1u64 << 31 };
        let regs = match def.op {
            Op::Neg if lane.is_float() => {
                let (sign_bits, rest) = (self.to.constant(sign, bytes), self.to.constant(sign - 1, bytes));
                let _ = rest;
                let signs: Regs = smallvec![sign_bits; x.len()];
                let inner = self.kernel.def(def.args[0]);
                match inner.op {
                    // `-abs(x)`
                    Op::Abs => {
                        let of = self.of(inner.args[0]);
                        self.each(pick(OR, lane), None, &[&of, &signs])
                    }
                    _ => self.each(pick(XOR, lane), None, &[x, &signs]),
                }
            }
            Op::Abs if lane.is_float() => {
                let rest: Regs = smallvec![self.to.constant(sign - 1, bytes); x.len()];
                self.each(pick(AND, lane), None, &[x, &rest])
            }
            Op::Neg => {
                let zero: Regs = smallvec![self.to.constant(0, bytes); x.len()];
                self.each(pick(ISUB, lane), None, &[&zero, x])
            }
            Op::Not => {
                let all = if lane.is_long() { u64::MAX } else { u64::from(u32::MAX) };
                let ones: Regs = smallvec![self.to.constant(all, bytes); x.len()];
                self.each(pick(XOR, lane), None, &[x, &ones])
            }
            Op::Abs if lane.is_signed() => self.each(pick(IABS, lane), None, &[x]),
            Op::Abs => x.clone(),
            Op::Sqrt => self.each(pick(SQRT, lane), None, &[x]),
            Op::Round(how) => self.each(pick(ROUND, lane), Some(rounding(how)), &[x]),
            Op::CountOnes | Op::LeadingZeros => self.counted(lane, def.op, x),
            Op::Shl { by } => self.shifted(pick(SHIFT_LEFT, lane), by, x),
            Op::Shr { by } if lane.is_signed() => self.shifted(pick(SHIFT_RIGHT_SIGNED, lane), by, x),
            Op::Shr { by } => self.shifted(pick(SHIFT_RIGHT, lane), by, x),
            Op::DivideBy { divisor } | Op::RemainderBy { divisor } => {
                self.divided(lane, matches!(def.op, Op::RemainderBy { .. }), x, divisor)
            }
            op => unreachable!("{op:?} has one operand"),
        };
        self.in_range(lane, regs)
    }

    fn shifted(&mut self, code: Code, by: u8, x: &Regs) -> Regs {
        x.iter().map(|&reg| self.to.shift(code, by, reg)).collect()
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
                    return match self.options.counts_ones {
                        true => self.to.plain(pick(ONES, lane), &[v]),
                        false => self.to.count_ones(long, v),
                    };
                }
                let zeros = self.to.plain(pick(ZEROS, lane), &[v]);
                match 32u64.saturating_sub(bits.into()) {
                    0 => zeros,
                    more => self.to.with_number(ISUB, long, zeros, more),
                }
            })
            .collect()
    }

    /// Emits the quotient or the remainder of integers of at most 32 bits.
    fn divided(&mut self, lane: Lane, remains: bool, x: &Regs, by: i64) -> Regs {
        let reg = x[0];
        let magnitude = by.unsigned_abs();
        let power = magnitude.is_power_of_two();
        let quotient = if !power {
            self.quotient(lane, x, by)
        } else if !lane.is_signed() {
            self.to.shift(SHIFT_RIGHT[0], magnitude.trailing_zeros() as u8, reg)
        } else {
            self.to.divided_by_power(reg, magnitude.trailing_zeros() as u8, by < 0)
        };
        let result = match remains {
            false => quotient,
            true if !lane.is_signed() && power => self.to.with_number(AND, false, reg, magnitude - 1),
            true => {
                let whole = self.to.with_number(IMUL, false, quotient, by as u64);
                self.to.plain(ISUB[0], &[reg, whole])
            }
        };
        smallvec![result]
    }

    /// Emits `x / by`, rounded towards zero; `by` is no power of two.
    fn quotient(&mut self, lane: Lane, x: &Regs, by: i64) -> Reg {
        if lane.bytes() < 4 {
            let float = self.to.plain(F32_OF_INT[0], &[x[0]]);
            let product = self.to.with_number(MUL, false, float, reciprocal(by));
            return self.to.plain(INT_OF_F32[0], &[product]);
        }
        self.to.divided(lane.is_signed(), x[0], by)
    }

    pub(super) fn binary(&mut self, lane: Lane, op: Op, (p, a): (Value, &Regs), (q, b): (Value, &Regs)) -> Regs {
        let (float, signed) = (lane.is_float(), lane.is_signed() || lane.bytes() < 4);
        if float && matches!(op, Op::Min | Op::Max) {
            let (x, y) = (self.number(p), self.number(q));
            return self.extremum(lane, op == Op::Min, (x, a), (y, b));
        }
        let pair = match op {
            Op::Add if float => ADD,
            Op::Sub if float => SUB,
            Op::Mul if float => MUL,
            Op::Div => DIV,
            Op::Add => IADD,
            Op::Sub => ISUB,
            Op::Mul => IMUL,
            Op::Min if signed => SMIN,
            Op::Max if signed => SMAX,
            Op::Min => UMIN,
            Op::Max => UMAX,
            Op::And => AND,
            Op::Or => OR,
            Op::Xor => XOR,
            op => unreachable!("{op:?} has two operands"),
        };
        let regs = self.each(pick(pair, lane), None, &[a, b]);
        self.in_range(lane, regs)
    }

    /// Emits `min` or `max` of floats.
    ///
    /// The instruction returns its second operand if either operand is NaN or both are zero. One instruction is enough
    /// if one operand is a number that is neither NaN nor the zero for which this is wrong.
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
            let mut regs = self.each(code, None, &[number, x]);
            if !is_min && value == 0.0 && !value.is_sign_negative() {
                // This turns `max(-0, +0)` into +0 and changes no other value.
                regs = self.each(pick(ADD, lane), None, &[&regs, number]);
            }
            return regs;
        }
        let best = self.each(pick(RANGE, lane), Some(if is_min { 4 } else { 5 }), &[a, b]);
        let compare = Machine::Compare { code: pick(COMPARE, lane), immediate: Some(order::UNORDERED) };
        (0..best.len())
            .map(|n| {
                let nan = self.to.make(compare, &[a[n], b[n]]);
                self.to.make(Machine::Merge { code: pick(ADD, lane) }, &[nan, best[n], a[n], b[n]])
            })
            .collect()
    }

    fn compare_masks(&mut self, cond: Cond, a: Reg, b: Reg) -> Reg {
        match cond {
            Cond::Eq => self.mask(MASK_EQUAL, &[a, b]),
            Cond::Ne => self.mask(MASK_XOR, &[a, b]),
            Cond::Lt => self.mask(MASK_AND_NOT, &[a, b]),
            Cond::Gt => self.mask(MASK_AND_NOT, &[b, a]),
            Cond::Le => {
                let above = self.mask(MASK_AND_NOT, &[b, a]);
                self.mask(MASK_NOT, &[above])
            }
            Cond::Ge => {
                let below = self.mask(MASK_AND_NOT, &[a, b]);
                self.mask(MASK_NOT, &[below])
            }
        }
    }
}
