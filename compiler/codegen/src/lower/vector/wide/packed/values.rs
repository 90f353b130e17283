//! Values in lanes of 8 or 16 bits.
//!
//! Invariant: what is asked for in lanes of some bits has at least the low bits of its expression's value there.

use super::ranges::lanes;
use super::{Known, Narrow};
use crate::lower::Lower;
use crate::lower::vector::wide::Wide;
use crate::wide::{
    LOAD, LONG_MASK_AND, LONG_MASK_NOT, LONG_MASK_OR, NARROW_ADD, NARROW_AVERAGE, NARROW_SMAX, NARROW_SMIN, NARROW_SUB,
    NARROW_UMAX, NARROW_UMIN, Op, Packed, Pair, Reg, repeated,
};
use cranelift_codegen::ir::InstBuilder;
use cranelift_codegen::ir::types::I32;
use girder_ir::codelet::{BinaryOp, ExprKind, Storage, UnaryOp};
use girder_ir::ids::ExprId;
use girder_ir::types::ElemType;
use smallvec::{SmallVec, smallvec};

type Masks = SmallVec<[Reg; 2]>;

impl Narrow<'_, '_> {
    /// A value in lanes of some bits; wider ones only of what is exact.
    pub(super) fn fit(&mut self, known: &Known, bits: u8) -> Option<Packed> {
        let program = &mut self.wide.program;
        match known.value.bits {
            from if from == bits => Some(known.value.clone()),
            16 => Some(program.packed_narrower(&known.value)),
            _ => known.exact.then(|| program.packed_wider(&known.value, known.range.0 < 0)),
        }
    }

    fn number(&mut self, number: i128, bits: u8) -> Packed {
        let count = self.vectors(bits);
        self.wide.program.packed_number(number, bits, count)
    }

    /// The lanes that a range takes: no narrower than an element.
    fn lanes(&self, range: (i128, i128)) -> Option<(u8, bool)> {
        lanes(range).map(|(bits, signed)| (bits.max(self.element), signed))
    }

    /// The lanes that two ranges take, both signed or both unsigned.
    fn lanes_of_both(&self, x: (i128, i128), y: (i128, i128)) -> Option<(u8, bool)> {
        self.lanes((x.0.min(y.0), x.1.max(y.1)))
    }
}

impl Lower<'_, '_> {
    /// A value in the lanes that its range takes, or the low bits if that is too large.
    pub(super) fn narrow_known(&mut self, narrow: &mut Narrow<'_, '_>, e: ExprId) -> Option<Known> {
        let range = self.narrow_range(narrow, e)?;
        let lanes = narrow.lanes(range);
        let value = self.narrow_value(narrow, e, lanes.map_or(16, |lanes| lanes.0))?;
        Some(Known { value, range, exact: lanes.is_some() })
    }

    /// A value in lanes of some bits.
    pub(super) fn narrow_value(&mut self, narrow: &mut Narrow<'_, '_>, e: ExprId, bits: u8) -> Option<Packed> {
        let ty = self.ty(e);
        let range = self.narrow_range(narrow, e)?;
        if range.0 == range.1 {
            return Some(narrow.number(range.0, bits));
        }
        if narrow.wide.plan.same.contains(e) {
            return Some(self.narrow_same(narrow, e, bits));
        }
        // Wider lanes than its type's: it wraps around in its own.
        if 8 * ty.bytes() < bits.into() {
            (8 * ty.bytes() >= narrow.element.into()).then_some(())?;
            let value = self.narrow_value(narrow, e, narrow.element)?;
            return narrow.fit(&Known { value, range: girder_codelet::scalar::int_range(ty)?, exact: true }, bits);
        }
        match self.codelet.exprs[e].kind {
            ExprKind::Local(local) => {
                let known = narrow.locals[local].clone()?;
                narrow.fit(&known, bits)
            }
            ExprKind::Load { field, ref index, .. } => {
                self.narrow_load(narrow, e, (Storage::Field(field), index), bits)
            }
            ExprKind::LoadLocal { local, ref index, .. } => {
                self.narrow_load(narrow, e, (Storage::Local(local), index), bits)
            }
            ExprKind::Convert { x } if self.ty(x) == ElemType::Bool => {
                let [yes, no] = [1, 0].map(|n| Known {
                    value: narrow.number(n, 8.max(narrow.element)),
                    range: (n, n),
                    exact: true,
                });
                let chosen = self.narrow_chosen(narrow, x, &yes, &no)?;
                narrow.fit(&chosen, bits)
            }
            ExprKind::Convert { x } => {
                let from = self.narrow_range(narrow, x)?;
                let whole = u32::from(bits) <= 8 * self.ty(x).bytes() || from == range;
                whole.then_some(())?;
                self.narrow_value(narrow, x, bits)
            }
            ExprKind::Select { cond, a, b } => {
                let (yes, no) = (self.narrow_known(narrow, a)?, self.narrow_known(narrow, b)?);
                let chosen = self.narrow_chosen(narrow, cond, &yes, &no)?;
                narrow.fit(&chosen, bits)
            }
            ExprKind::Unary { op, x } => self.narrow_unary(narrow, (op, x), range, bits),
            ExprKind::Binary { op, a, b, .. } => self.narrow_binary(narrow, (op, a, b), range, bits),
            _ => None,
        }
    }

    /// A value that is the same at all places, by way of the record.
    fn narrow_same(&mut self, narrow: &mut Narrow<'_, '_>, e: ExprId, bits: u8) -> Packed {
        let value = self.expr(e);
        let value = match self.ty(e).bytes() {
            8 => self.b.ins().ireduce(I32, value),
            4 => value,
            _ => self.b.ins().uextend(I32, value),
        };
        let low = self.b.ins().band_imm_u(value, (1 << bits) - 1);
        let all = self.b.ins().imul_imm_u(low, repeated(1, bits) as i64);
        let wide: &mut Wide<'_> = narrow.wide;
        let offset = wide.put(all, 4);
        let reg = wide.program.make(Op::Same { offset, bytes: 4 }, &[]);
        Packed { bits, regs: smallvec![reg; narrow.vectors(bits)] }
    }

    fn narrow_load(
        &mut self,
        narrow: &mut Narrow<'_, '_>,
        e: ExprId,
        (storage, index): (Storage, &girder_ir::codelet::Index),
        bits: u8,
    ) -> Option<Packed> {
        let stride = narrow.wide.plan.loads.iter().find(|l| l.0 == e)?.1;
        let from = self.narrow_place(narrow, (storage, index), stride)?;
        let op = Op::Load { code: LOAD[0], from };
        let program = &mut narrow.wide.program;
        let reg = if narrow.conditional { program.known_load(op)? } else { program.make(op, &[]) };
        let value = Packed { bits: narrow.element, regs: smallvec![reg] };
        let range = girder_codelet::scalar::int_range(self.ty(e))?;
        narrow.fit(&Known { value, range, exact: true }, bits)
    }

    fn narrow_unary(
        &mut self,
        narrow: &mut Narrow<'_, '_>,
        (op, x): (UnaryOp, ExprId),
        range: (i128, i128),
        bits: u8,
    ) -> Option<Packed> {
        match op {
            UnaryOp::Neg | UnaryOp::Not => {
                let value = self.narrow_value(narrow, x, bits)?;
                let number = narrow.number(if op == UnaryOp::Neg { 0 } else { -1 }, bits);
                Some(narrow.wide.program.packed(NARROW_SUB, &number, &value))
            }
            UnaryOp::Abs => {
                let known = match self.narrow_distance(narrow, x)? {
                    Some(value) => Known { value, range, exact: true },
                    None => {
                        let (lanes, signed) = narrow.lanes(self.narrow_range(narrow, x)?)?;
                        let value = self.narrow_value(narrow, x, lanes)?;
                        let value = if signed { narrow.wide.program.packed_abs(&value) } else { value };
                        Known { value, range, exact: true }
                    }
                };
                narrow.fit(&known, bits)
            }
            _ => None,
        }
    }

    /// The absolute value of a difference of unsigned lanes, which takes a bit less than the difference.
    fn narrow_distance(&mut self, narrow: &mut Narrow<'_, '_>, x: ExprId) -> Option<Option<Packed>> {
        let ExprKind::Binary { op: BinaryOp::Sub, a, b, .. } = self.codelet.exprs[x].kind else { return Some(None) };
        let (p, q) = (self.narrow_range(narrow, a)?, self.narrow_range(narrow, b)?);
        let whole = self.unwrapped_range(narrow, x) == self.narrow_range(narrow, x);
        let Some((bits, false)) = narrow.lanes_of_both(p, q).filter(|_| whole) else { return Some(None) };
        let (a, b) = (self.narrow_value(narrow, a, bits)?, self.narrow_value(narrow, b, bits)?);
        let program = &mut narrow.wide.program;
        let (more, less) = (program.packed(NARROW_UMAX, &a, &b), program.packed(NARROW_UMIN, &a, &b));
        Some(Some(program.packed(NARROW_SUB, &more, &less)))
    }

    fn narrow_binary(
        &mut self,
        narrow: &mut Narrow<'_, '_>,
        (op, a, b): (BinaryOp, ExprId, ExprId),
        range: (i128, i128),
        bits: u8,
    ) -> Option<Packed> {
        let pair = match op {
            BinaryOp::Add => NARROW_ADD,
            BinaryOp::Sub => NARROW_SUB,
            BinaryOp::And => [crate::wide::AND[0]; 2],
            BinaryOp::Or => [crate::wide::OR[0]; 2],
            BinaryOp::Xor => [crate::wide::XOR[0]; 2],
            BinaryOp::Mul => {
                let (x, y) = (self.narrow_value(narrow, a, 16)?, self.narrow_value(narrow, b, 16)?);
                let value = narrow.wide.program.packed_product(&x, &y);
                return narrow.fit(&Known { value, range, exact: false }, bits);
            }
            BinaryOp::Shl => {
                let by = self.folded[b]?;
                if by >= bits.into() {
                    return Some(narrow.number(0, bits));
                }
                let value = self.narrow_value(narrow, a, bits)?;
                return Some(narrow.wide.program.packed_left(&value, by as u8));
            }
            BinaryOp::Shr => return self.narrow_right(narrow, (a, b), range, bits),
            BinaryOp::Min | BinaryOp::Max => {
                let (p, q) = (self.narrow_range(narrow, a)?, self.narrow_range(narrow, b)?);
                let (lanes, signed) = narrow.lanes_of_both(p, q)?;
                let (x, y) = (self.narrow_value(narrow, a, lanes)?, self.narrow_value(narrow, b, lanes)?);
                let pair: Pair = match (op, signed) {
                    (BinaryOp::Min, true) => NARROW_SMIN,
                    (BinaryOp::Min, false) => NARROW_UMIN,
                    (_, true) => NARROW_SMAX,
                    (_, false) => NARROW_UMAX,
                };
                let value = narrow.wide.program.packed(pair, &x, &y);
                return self.narrow_signed(narrow, value, (range, signed), bits);
            }
            _ => return None,
        };
        let (x, y) = (self.narrow_value(narrow, a, bits)?, self.narrow_value(narrow, b, bits)?);
        Some(narrow.wide.program.packed(pair, &x, &y))
    }

    /// A result in lanes that are signed or not, in lanes of some bits.
    fn narrow_signed(
        &mut self,
        narrow: &mut Narrow<'_, '_>,
        value: Packed,
        (range, signed): ((i128, i128), bool),
        bits: u8,
    ) -> Option<Packed> {
        let range = if signed { (range.0.min(-1), range.1) } else { range };
        narrow.fit(&Known { value, range, exact: true }, bits)
    }

    /// `a >> b`, by a number.
    fn narrow_right(
        &mut self,
        narrow: &mut Narrow<'_, '_>,
        (a, b): (ExprId, ExprId),
        range: (i128, i128),
        bits: u8,
    ) -> Option<Packed> {
        let by = self.folded[b]?;
        if by == 1
            && let Some(value) = self.narrow_average(narrow, a)
        {
            return narrow.fit(&Known { value, range, exact: true }, bits);
        }
        let (mut lanes, signed) = narrow.lanes(self.narrow_range(narrow, a)?)?;
        if signed {
            lanes = 16;
        }
        let value = self.narrow_value(narrow, a, lanes)?;
        let value = match by {
            by if by < lanes.into() => narrow.wide.program.packed_right(&value, by as u8, signed),
            _ if signed => narrow.wide.program.packed_right(&value, lanes - 1, true),
            _ => narrow.number(0, lanes),
        };
        self.narrow_signed(narrow, value, (range, signed), bits)
    }

    /// Half of `x + y + 1`, of unsigned lanes that need not hold the sum.
    fn narrow_average(&mut self, narrow: &mut Narrow<'_, '_>, sum: ExprId) -> Option<Packed> {
        let add = |e: ExprId| match self.codelet.exprs[e].kind {
            ExprKind::Binary { op: BinaryOp::Add, a, b, .. } => Some((a, b)),
            _ => None,
        };
        let (xy, one) = add(sum)?;
        let (x, y) = add(xy)?;
        let whole = [sum, xy].into_iter().all(|e| self.unwrapped_range(narrow, e) == self.narrow_range(narrow, e));
        let lanes = narrow.lanes_of_both(self.narrow_range(narrow, x)?, self.narrow_range(narrow, y)?)?;
        (self.folded[one] == Some(1) && whole && !lanes.1).then_some(())?;
        let (x, y) = (self.narrow_value(narrow, x, lanes.0)?, self.narrow_value(narrow, y, lanes.0)?);
        Some(narrow.wide.program.packed(NARROW_AVERAGE, &x, &y))
    }

    /// `cond ? yes : no`
    pub(super) fn narrow_chosen(
        &mut self,
        narrow: &mut Narrow<'_, '_>,
        cond: ExprId,
        yes: &Known,
        no: &Known,
    ) -> Option<Known> {
        let range = (yes.range.0.min(no.range.0), yes.range.1.max(no.range.1));
        let own = yes.value.bits.max(no.value.bits);
        let bits = own.max(self.narrow_cond_bits(narrow, cond)?);
        let mut exact = yes.exact && no.exact;
        let bits = match narrow.lanes(range).filter(|_| exact) {
            Some((lanes, _)) => bits.max(lanes),
            None => {
                exact = false;
                bits
            }
        };
        // What is not exact has no more bits than it has.
        let (yes, no) = (narrow.fit(yes, bits)?, narrow.fit(no, bits)?);
        let masks = self.narrow_masks(narrow, cond, bits)?;
        let value = narrow.wide.program.packed_select(&masks, &yes, &no);
        Some(Known { value, range, exact })
    }

    /// The least bits of lanes in which a condition can be evaluated.
    pub(super) fn narrow_cond_bits(&self, narrow: &Narrow<'_, '_>, cond: ExprId) -> Option<u8> {
        match self.codelet.exprs[cond].kind {
            _ if self.folded[cond].is_some() || narrow.wide.plan.same.contains(cond) => None,
            ExprKind::Unary { op: UnaryOp::Not, x } => self.narrow_cond_bits(narrow, x),
            ExprKind::AndThen { a, b } | ExprKind::OrElse { a, b } => {
                Some(self.narrow_cond_bits(narrow, a)?.max(self.narrow_cond_bits(narrow, b)?))
            }
            ExprKind::Binary { op: BinaryOp::And | BinaryOp::Or, a, b, .. } => {
                Some(self.narrow_cond_bits(narrow, a)?.max(self.narrow_cond_bits(narrow, b)?))
            }
            ExprKind::Binary { op, a, b, .. } if op.is_comparison() && self.ty(a).is_int() => {
                let lanes = narrow.lanes_of_both(self.narrow_range(narrow, a)?, self.narrow_range(narrow, b)?)?;
                Some(lanes.0)
            }
            _ => None,
        }
    }

    /// The lanes where a condition holds.
    pub(super) fn narrow_masks(&mut self, narrow: &mut Narrow<'_, '_>, cond: ExprId, bits: u8) -> Option<Masks> {
        let codelet = self.codelet;
        match codelet.exprs[cond].kind {
            ExprKind::Unary { op: UnaryOp::Not, x } => {
                let masks = self.narrow_masks(narrow, x, bits)?;
                let not = Op::Mask { code: LONG_MASK_NOT, immediate: None };
                Some(masks.into_iter().map(|mask| narrow.wide.program.make(not, &[mask])).collect())
            }
            ExprKind::AndThen { a, b }
            | ExprKind::OrElse { a, b }
            | ExprKind::Binary { op: BinaryOp::And | BinaryOp::Or, a, b, .. } => {
                let both = matches!(
                    codelet.exprs[cond].kind,
                    ExprKind::AndThen { .. } | ExprKind::Binary { op: BinaryOp::And, .. }
                );
                let x = self.narrow_masks(narrow, a, bits)?;
                let lazily = !matches!(codelet.exprs[cond].kind, ExprKind::Binary { .. });
                let around = narrow.conditional;
                narrow.conditional |= lazily;
                let y = self.narrow_masks(narrow, b, bits);
                narrow.conditional = around;
                let op = Op::Mask { code: if both { LONG_MASK_AND } else { LONG_MASK_OR }, immediate: None };
                Some(x.iter().zip(&y?).map(|(&x, &y)| narrow.wide.program.make(op, &[x, y])).collect())
            }
            ExprKind::Binary { op, a, b, .. } if op.is_comparison() => {
                let (p, q) = (self.narrow_range(narrow, a)?, self.narrow_range(narrow, b)?);
                let (_, signed) = narrow.lanes_of_both(p, q)?;
                let (x, y) = (self.narrow_value(narrow, a, bits)?, self.narrow_value(narrow, b, bits)?);
                Some(narrow.wide.program.packed_compare(op, &x, &y, signed))
            }
            _ => None,
        }
    }

    /// In each lane of 32 bits the sum of what a value is in it.
    pub(super) fn narrow_terms(&mut self, narrow: &mut Narrow<'_, '_>, e: ExprId) -> Option<Reg> {
        let word = |range: (i128, i128)| range.0 >= -(1 << 15) && range.1 < 1 << 15;
        if let ExprKind::Binary { op: BinaryOp::Mul, a, b, .. } = self.codelet.exprs[e].kind
            && word(self.narrow_range(narrow, a)?)
            && word(self.narrow_range(narrow, b)?)
        {
            let (x, y) = (self.narrow_value(narrow, a, 16)?, self.narrow_value(narrow, b, 16)?);
            return Some(narrow.wide.program.packed_sum_of_products(&x, &y));
        }
        let range = self.narrow_range(narrow, e)?;
        let value = match narrow.lanes(range)? {
            (8, false) => self.narrow_value(narrow, e, 8)?,
            _ if word(range) => self.narrow_value(narrow, e, 16)?,
            _ => return None,
        };
        Some(narrow.wide.program.packed_sum(&value))
    }
}
