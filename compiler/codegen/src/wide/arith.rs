//! The language's operators in instructions, as `girder_codelet::scalar` defines them.
//!
//! Integers narrower than 32 bits live in lanes of 32 and are brought back into their range after each operation that
//! may leave it. A `bool` is a mask. Elements of 64 bits take two vectors, the first eight places first.
//!
//! Invariant: each result is that of the scalar operation in every lane; any NaN is as good as any other.

use super::codes::*;
use super::encode::Code;
use super::inst::{Op, Reg};
use super::program::Program;
use girder_ir::codelet::{BinaryOp, UnaryOp};
use girder_ir::types::ElemType;
use smallvec::{SmallVec, smallvec};

/// Sixteen elements.
#[derive(Clone, Debug)]
pub(crate) struct Value {
    pub ty: ElemType,
    pub regs: SmallVec<[Reg; 2]>,
}

/// What a comparison of floats takes as its immediate.
pub(super) mod order {
    use girder_ir::codelet::BinaryOp;

    pub const EQ: u8 = 0x00;
    pub const LT: u8 = 0x11;
    pub const LE: u8 = 0x12;
    pub const UNORDERED: u8 = 0x03;
    pub const NE: u8 = 0x04;
    pub const ORDERED: u8 = 0x07;
    pub const GE: u8 = 0x1d;
    pub const GT: u8 = 0x1e;

    /// Of two integers, which have an order of their own.
    pub fn of_integers(op: BinaryOp) -> u8 {
        match op {
            BinaryOp::Eq => 0,
            BinaryOp::Lt => 1,
            BinaryOp::Le => 2,
            BinaryOp::Ne => 4,
            BinaryOp::Ge => 5,
            _ => 6,
        }
    }
}

/// Whether elements take two vectors.
pub(crate) fn is_long(ty: ElemType) -> bool {
    ty.bytes() == 8
}

pub(super) fn pick(pair: [Code; 2], ty: ElemType) -> Code {
    pair[usize::from(is_long(ty))]
}

impl Program {
    pub(super) fn each(&mut self, code: Code, immediate: Option<u8>, values: &[&Value]) -> SmallVec<[Reg; 2]> {
        let parts = values[0].regs.len();
        (0..parts)
            .map(|n| {
                let args: SmallVec<[Reg; 2]> = values.iter().map(|v| v.regs[n]).collect();
                self.make(Op::Plain { code, immediate }, &args)
            })
            .collect()
    }

    fn mask(&mut self, code: Code, args: &[Reg]) -> Reg {
        self.make(Op::Mask { code, immediate: None }, args)
    }

    /// The mask of the last eight places, as the first eight bits.
    fn upper_mask(&mut self, mask: Reg) -> Reg {
        self.make(Op::Mask { code: MASK_SHIFT_RIGHT, immediate: Some(8) }, &[mask])
    }

    /// The mask for each vector of a type.
    pub fn masks(&mut self, ty: ElemType, mask: Reg) -> SmallVec<[Reg; 2]> {
        if is_long(ty) { smallvec![mask, self.upper_mask(mask)] } else { smallvec![mask] }
    }

    /// One mask of those of each vector.
    pub(super) fn one_mask(&mut self, masks: &[Reg]) -> Reg {
        match *masks {
            [lower, upper] => self.mask(MASK_JOIN, &[upper, lower]),
            _ => masks[0],
        }
    }

    /// The same bits in each lane.
    pub fn splat(&mut self, ty: ElemType, bits: u64) -> Value {
        if ty == ElemType::Bool {
            let zero = self.constant(0, 4);
            let code = if bits == 0 { MASK_XOR } else { MASK_EQUAL };
            let some = self.make(Op::Compare { code: TEST[0], immediate: None }, &[zero, zero]);
            return Value { ty, regs: smallvec![self.mask(code, &[some, some])] };
        }
        let bits = match ty {
            _ if is_long(ty) => bits,
            _ => girder_codelet::scalar::extend(ty, bits) as u32 as u64,
        };
        let reg = self.constant(bits, if is_long(ty) { 8 } else { 4 });
        if ty.is_float() {
            let value = if is_long(ty) { f64::from_bits(bits) } else { f32::from_bits(bits as u32).into() };
            self.set_range(reg, (value, value));
        }
        Value { ty, regs: smallvec![reg; if is_long(ty) { 2 } else { 1 }] }
    }

    /// Brings an integer of less than 32 bits back into its range.
    pub(super) fn in_range(&mut self, ty: ElemType, v: Value) -> Value {
        let bits = 8 * ty.bytes() as u8;
        if !ty.is_int() || bits >= 32 {
            return Value { ty, ..v };
        }
        let x = v.regs[0];
        let reg = if ty.is_signed_int() {
            let up = self.make(Op::Shift { code: SHIFT_LEFT[0], digit: 6, by: 32 - bits }, &[x]);
            self.make(Op::Shift { code: SHIFT_RIGHT_SIGNED[0], digit: 4, by: 32 - bits }, &[up])
        } else {
            let low = self.constant((1 << bits) - 1, 4);
            self.plain(AND[0], &[x, low])
        };
        Value { ty, regs: smallvec![reg] }
    }

    /// A register whose low bits are those of an integer of less than 32 bits, before it was brought back into its range.
    pub fn uncut(&self, ty: ElemType, reg: Reg) -> Reg {
        let made = |reg: Reg| self.made[reg.0 as usize].as_ref();
        let bits = 8 * ty.bytes() as u8;
        let before = made(reg).and_then(|inst| match (inst.op, inst.args.as_slice()) {
            (Op::Plain { code, .. }, &[of, low]) if code == AND[0] && bits < 32 => {
                (self.constant_of(low) == Some((1 << bits) - 1)).then_some(of)
            }
            (Op::Shift { code, by, .. }, &[up]) if code == SHIFT_RIGHT_SIGNED[0] && bits < 32 && by == 32 - bits => {
                let shifted = made(up)?;
                (shifted.op == Op::Shift { code: SHIFT_LEFT[0], digit: 6, by }).then(|| shifted.args[0])
            }
            _ => None,
        });
        before.unwrap_or(reg)
    }

    /// `op x`
    pub fn unary(&mut self, op: UnaryOp, x: &Value) -> Value {
        let ty = x.ty;
        if ty == ElemType::Bool {
            return Value { ty, regs: smallvec![self.mask(MASK_NOT, &[x.regs[0]])] };
        }
        let sign = if is_long(ty) { 1 << 63 } else { 1u64 << 31 };
        let number = |p: &mut Self, bits: u64| Value {
            ty,
            regs: smallvec![p.constant(bits, if is_long(ty) { 8 } else { 4 }); x.regs.len()],
        };
        let all = if is_long(ty) { u64::MAX } else { u64::from(u32::MAX) };
        let regs = match op {
            UnaryOp::Neg if ty.is_float() => {
                let (sign, rest) = (number(self, sign), number(self, sign - 1));
                let regs = match self.operands(x, AND[0]) {
                    // `-abs(x)`
                    Some((of, mask)) if mask.regs == rest.regs => self.each(OR[0], None, &[&of, &sign]),
                    _ => self.each(XOR[0], None, &[x, &sign]),
                };
                self.set_ranges(x, &regs, |(lo, hi)| (-hi, -lo))
            }
            UnaryOp::Abs if ty.is_float() => {
                let rest = number(self, sign - 1);
                let regs = self.each(AND[0], None, &[x, &rest]);
                self.set_ranges(x, &regs, |(lo, hi)| (0.0, hi.max(-lo)))
            }
            UnaryOp::Neg => {
                let zero = number(self, 0);
                self.each(pick(ISUB, ty), None, &[&zero, x])
            }
            UnaryOp::Not => {
                let ones = number(self, all);
                self.each(XOR[0], None, &[x, &ones])
            }
            UnaryOp::Abs if ty.is_signed_int() => self.each(pick(IABS, ty), None, &[x]),
            UnaryOp::Abs => x.regs.clone(),
            UnaryOp::Sqrt => self.each(pick(SQRT, ty), None, &[x]),
            UnaryOp::Round => self.rounded(x, 8),
            UnaryOp::Floor => self.rounded(x, 9),
            UnaryOp::Ceil => self.rounded(x, 10),
            UnaryOp::Trunc => self.rounded(x, 11),
            UnaryOp::Popcount | UnaryOp::Clz => self.counted(op, x),
        };
        self.in_range(ty, Value { ty, regs })
    }

    fn rounded(&mut self, x: &Value, how: u8) -> SmallVec<[Reg; 2]> {
        let regs = self.each(pick(ROUND, x.ty), Some(how), &[x]);
        self.set_ranges(x, &regs, |(lo, hi)| (lo.floor(), hi.ceil()))
    }

    /// Notes the ranges of results, by those of an operand.
    fn set_ranges(&mut self, x: &Value, regs: &[Reg], range: impl Fn((f64, f64)) -> (f64, f64)) -> SmallVec<[Reg; 2]> {
        for (&from, &to) in x.regs.iter().zip(regs) {
            let from = self.range(from);
            self.set_range(to, range(from));
        }
        regs.into()
    }

    /// The operands of a plain instruction, if that made a value.
    pub(super) fn operands(&self, x: &Value, code: Code) -> Option<(Value, Value)> {
        let (mut a, mut b) = (x.clone(), x.clone());
        for (n, &reg) in x.regs.iter().enumerate() {
            let inst = self.made[reg.0 as usize].as_ref()?;
            if inst.op != (Op::Plain { code, immediate: None }) {
                return None;
            }
            (a.regs[n], b.regs[n]) = (inst.args[0], inst.args[1]);
        }
        Some((a, b))
    }

    /// `a op b`, but for shifts and the division of integers.
    pub fn binary(&mut self, op: BinaryOp, a: &Value, b: &Value) -> Value {
        if op.is_comparison() {
            return self.compare(op, a, b);
        }
        let ty = a.ty;
        if ty == ElemType::Bool {
            let code = match op {
                BinaryOp::And => MASK_AND,
                BinaryOp::Or => MASK_OR,
                _ => MASK_XOR,
            };
            return Value { ty, regs: smallvec![self.mask(code, &[a.regs[0], b.regs[0]])] };
        }
        let (float, signed) = (ty.is_float(), ty.is_signed_int() || !is_long(ty) && ty.bytes() < 4);
        if float && matches!(op, BinaryOp::Min | BinaryOp::Max) {
            return self.extremum(op, a, b);
        }
        let code = match op {
            BinaryOp::Add if float => ADD,
            BinaryOp::Sub if float => SUB,
            BinaryOp::Mul if float => MUL,
            BinaryOp::Div => DIV,
            BinaryOp::Add => IADD,
            BinaryOp::Sub => ISUB,
            BinaryOp::Mul => IMUL,
            BinaryOp::Min if signed => SMIN,
            BinaryOp::Max if signed => SMAX,
            BinaryOp::Min => UMIN,
            BinaryOp::Max => UMAX,
            BinaryOp::And => AND,
            BinaryOp::Or => OR,
            _ => XOR,
        };
        let regs = self.each(pick(code, ty), None, &[a, b]);
        if float && op == BinaryOp::Mul {
            self.product_range(a, b, &regs);
        }
        self.in_range(ty, Value { ty, regs })
    }

    fn product_range(&mut self, a: &Value, b: &Value, regs: &[Reg]) {
        for ((&x, &y), &to) in a.regs.iter().zip(&b.regs).zip(regs) {
            let ((p, q), (r, s)) = (self.range(x), self.range(y));
            let corners = [p * r, p * s, q * r, q * s];
            if corners.iter().all(|c| c.abs() < 1e30) {
                // Rounding moves a product by less than this.
                let slack = 1.0 + corners.iter().fold(0.0f64, |m, c| m.max(c.abs())) * 1e-6;
                let (lo, hi) = corners.iter().fold((f64::MAX, f64::MIN), |(l, h), &c| (l.min(c), h.max(c)));
                self.set_range(to, (lo - slack, hi + slack));
            }
        }
    }

    /// `min` or `max` of floats: NaN if either is, and -0 below +0.
    ///
    /// The instruction gives its second operand if either is NaN or both are zero. Against a number that is neither NaN
    /// nor the zero that would be wrong, one instruction does.
    fn extremum(&mut self, op: BinaryOp, a: &Value, b: &Value) -> Value {
        let ty = a.ty;
        let is_min = op == BinaryOp::Min;
        let code = pick(if is_min { MIN } else { MAX }, ty);
        let number = |p: &Self, v: &Value| {
            let bits = p.constant_of(v.regs[0])?;
            let value = if is_long(ty) { f64::from_bits(bits) } else { f32::from_bits(bits as u32).into() };
            let wrong = value.is_nan() || value == 0.0 && is_min && value.is_sign_negative();
            (!wrong).then_some(value)
        };
        let known = match (number(self, a), number(self, b)) {
            (_, Some(value)) => Some((b, a, value)),
            (Some(value), _) => Some((a, b, value)),
            _ => None,
        };
        if let Some((number, x, value)) = known {
            let mut regs = self.each(code, None, &[number, x]);
            regs = self.set_ranges(x, &regs, |(lo, hi)| match is_min {
                true => (lo.min(value), hi.min(value)),
                false => (lo.max(value), hi.max(value)),
            });
            if !is_min && value == 0.0 && !value.is_sign_negative() {
                // `max(-0, +0)` is made +0, which changes no other value.
                regs = self.each(pick(ADD, ty), None, &[&Value { ty, regs }, number]);
            }
            return Value { ty, regs };
        }
        let best = self.each(pick(RANGE, ty), Some(if is_min { 4 } else { 5 }), &[a, b]);
        let regs = (0..best.len()).map(|n| {
            let (x, y) = (a.regs[n], b.regs[n]);
            let compare = Op::Compare { code: pick(COMPARE, ty), immediate: Some(order::UNORDERED) };
            let nan = self.make(compare, &[x, y]);
            self.make(Op::Merge { code: pick(ADD, ty) }, &[nan, best[n], x, y])
        });
        let regs = regs.collect();
        Value { ty, regs }
    }

    fn compare(&mut self, op: BinaryOp, a: &Value, b: &Value) -> Value {
        let ty = a.ty;
        let (code, immediate) = match ty {
            ElemType::Bool => return self.compare_masks(op, a.regs[0], b.regs[0]),
            _ if ty.is_float() => {
                let order = match op {
                    BinaryOp::Eq => order::EQ,
                    BinaryOp::Ne => order::NE,
                    BinaryOp::Lt => order::LT,
                    BinaryOp::Le => order::LE,
                    BinaryOp::Gt => order::GT,
                    _ => order::GE,
                };
                (pick(COMPARE, ty), order)
            }
            _ => {
                let signed = ty.is_signed_int() || ty.bytes() < 4;
                (pick(if signed { ICOMPARE } else { UCOMPARE }, ty), order::of_integers(op))
            }
        };
        self.compared(code, immediate, a, b)
    }

    pub(super) fn compared(&mut self, code: Code, immediate: u8, a: &Value, b: &Value) -> Value {
        let op = Op::Compare { code, immediate: Some(immediate) };
        let masks: SmallVec<[Reg; 2]> = a.regs.iter().zip(&b.regs).map(|(&x, &y)| self.make(op, &[x, y])).collect();
        Value { ty: ElemType::Bool, regs: smallvec![self.one_mask(&masks)] }
    }

    fn compare_masks(&mut self, op: BinaryOp, a: Reg, b: Reg) -> Value {
        let reg = match op {
            BinaryOp::Eq => self.mask(MASK_EQUAL, &[a, b]),
            BinaryOp::Ne => self.mask(MASK_XOR, &[a, b]),
            BinaryOp::Lt => self.mask(MASK_AND_NOT, &[a, b]),
            BinaryOp::Gt => self.mask(MASK_AND_NOT, &[b, a]),
            BinaryOp::Le => {
                let above = self.mask(MASK_AND_NOT, &[b, a]);
                self.mask(MASK_NOT, &[above])
            }
            _ => {
                let below = self.mask(MASK_AND_NOT, &[a, b]);
                self.mask(MASK_NOT, &[below])
            }
        };
        Value { ty: ElemType::Bool, regs: smallvec![reg] }
    }

    /// `x` shifted by a number below its width.
    pub fn shift(&mut self, op: BinaryOp, x: &Value, by: u8) -> Value {
        let ty = x.ty;
        let (code, digit) = match op {
            BinaryOp::Shl => (SHIFT_LEFT, 6),
            _ if ty.is_signed_int() => (SHIFT_RIGHT_SIGNED, 4),
            _ => (SHIFT_RIGHT, 2),
        };
        let shift = Op::Shift { code: pick(code, ty), digit, by };
        let regs = x.regs.iter().map(|&r| self.make(shift, &[r])).collect();
        self.in_range(ty, Value { ty, regs })
    }

    /// `a * b + c`, rounded once.
    pub fn fma(&mut self, a: &Value, b: &Value, c: &Value) -> Value {
        let op = Op::Fma { wide: is_long(a.ty) };
        let regs = (0..a.regs.len()).map(|n| self.make(op, &[a.regs[n], b.regs[n], c.regs[n]]));
        let regs = regs.collect();
        Value { ty: a.ty, regs }
    }

    /// `cond ? a : b`
    pub fn select(&mut self, cond: &Value, a: &Value, b: &Value) -> Value {
        let ty = a.ty;
        if ty == ElemType::Bool {
            let yes = self.mask(MASK_AND, &[cond.regs[0], a.regs[0]]);
            let no = self.mask(MASK_AND_NOT, &[cond.regs[0], b.regs[0]]);
            return Value { ty, regs: smallvec![self.mask(MASK_OR, &[yes, no])] };
        }
        let masks = self.masks(ty, cond.regs[0]);
        let op = Op::Blend { code: pick(BLEND, ty) };
        let regs: SmallVec<[Reg; 2]> =
            (0..a.regs.len()).map(|n| self.make(op, &[masks[n], b.regs[n], a.regs[n]])).collect();
        Value { ty, regs }
    }
}
