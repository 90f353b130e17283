//! Values in lanes of 8 or 16 bits.
//!
//! Invariant: a value that is requested in lanes of n bits has at least the low n bits of its expression's value.

use super::ranges::lanes;
use super::{Known, Lanes, Narrow};
use crate::lower::Lower;
use crate::lower::vector::kernel::lanes::cond as cond_of;
use cranelift_codegen::ir::InstBuilder;
use cranelift_codegen::ir::types::I32;
use girder_ir::codelet::{BinaryOp, ExprKind, Storage, UnaryOp};
use girder_ir::ids::ExprId;
use girder_ir::types::ElemType;
use girder_simd::ir::{Lane, Op};

impl Narrow<'_> {
    /// Converts a value to lanes of the given bits. Only an exact value can be widened.
    pub(super) fn fit(&mut self, known: Known, bits: u8) -> Option<Lanes> {
        match self.bits(known.value) {
            from if from == bits => Some(known.value),
            16 => Some(self.vk.ir.convert(Lane::U8, known.value)),
            _ => known.exact.then(|| {
                let signed = known.range.0 < 0;
                let value = self.typed(known.value, signed);
                let wider = self.vk.ir.convert(if signed { Lane::I16 } else { Lane::U16 }, value);
                self.typed(wider, false)
            }),
        }
    }

    /// Adds an operation on one value, in signed or unsigned lanes.
    fn unary(&mut self, op: Op, x: Lanes, signed: bool) -> Lanes {
        let x = self.typed(x, signed);
        let result = self.vk.ir.unary(op, x);
        self.typed(result, false)
    }

    /// Adds an operation on two values, in signed or unsigned lanes.
    fn binary(&mut self, op: Op, x: Lanes, y: Lanes, signed: bool) -> Lanes {
        let (x, y) = (self.typed(x, signed), self.typed(y, signed));
        let result = self.vk.ir.binary(op, x, y);
        self.typed(result, false)
    }

    /// Returns the same bits in signed or unsigned lanes.
    fn typed(&mut self, x: Lanes, signed: bool) -> Lanes {
        let lane = match (self.bits(x), signed) {
            (8, false) => Lane::U8,
            (8, true) => Lane::I8,
            (_, false) => Lane::U16,
            (_, true) => Lane::I16,
        };
        self.vk.ir.bits(lane, x)
    }

    fn number(&mut self, number: i128, bits: u8) -> Lanes {
        self.vk.ir.constant(Self::lane(bits), number as u64)
    }

    /// Returns the lanes that a range needs. They are not narrower than an element.
    fn lanes(&self, range: (i128, i128)) -> Option<(u8, bool)> {
        lanes(range).map(|(bits, signed)| (bits.max(self.element), signed))
    }

    /// Returns the lanes that two ranges need, with the same signedness.
    fn lanes_of_both(&self, x: (i128, i128), y: (i128, i128)) -> Option<(u8, bool)> {
        self.lanes((x.0.min(y.0), x.1.max(y.1)))
    }
}

impl Lower<'_, '_> {
    /// Translates an expression in the lanes that its range needs, or only its low bits if the range is too large.
    pub(super) fn narrow_known(&mut self, narrow: &mut Narrow<'_>, e: ExprId) -> Option<Known> {
        let range = self.narrow_range(narrow, e)?;
        let lanes = narrow.lanes(range);
        let value = self.narrow_value(narrow, e, lanes.map_or(16, |lanes| lanes.0))?;
        Some(Known { value, range, exact: lanes.is_some() })
    }

    /// Translates an expression in lanes of the given bits.
    pub(super) fn narrow_value(&mut self, narrow: &mut Narrow<'_>, e: ExprId, bits: u8) -> Option<Lanes> {
        let ty = self.ty(e);
        let range = self.narrow_range(narrow, e)?;
        if range.0 == range.1 {
            return Some(narrow.number(range.0, bits));
        }
        if narrow.vk.plan.same.contains(e) {
            return Some(self.narrow_uniform(narrow, e, bits));
        }
        // The lanes are wider than the type. The value must wrap around in lanes of its own width.
        if 8 * ty.bytes() < bits.into() {
            (8 * ty.bytes() >= narrow.element.into()).then_some(())?;
            let value = self.narrow_value(narrow, e, narrow.element)?;
            return narrow.fit(Known { value, range: girder_codelet::scalar::int_range(ty)?, exact: true }, bits);
        }
        match self.codelet.exprs[e].kind {
            ExprKind::Local(local) => {
                let known = narrow.locals[local]?;
                narrow.fit(known, bits)
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
                let chosen = self.narrow_chosen(narrow, x, yes, no)?;
                narrow.fit(chosen, bits)
            }
            ExprKind::Convert { x } => {
                let from = self.narrow_range(narrow, x)?;
                let whole = u32::from(bits) <= 8 * self.ty(x).bytes() || from == range;
                whole.then_some(())?;
                self.narrow_value(narrow, x, bits)
            }
            ExprKind::Select { cond, a, b } => {
                let (yes, no) = (self.narrow_known(narrow, a)?, self.narrow_known(narrow, b)?);
                let chosen = self.narrow_chosen(narrow, cond, yes, no)?;
                narrow.fit(chosen, bits)
            }
            ExprKind::Unary { op, x } => self.narrow_unary(narrow, (op, x), range, bits),
            ExprKind::Binary { op, a, b, .. } => self.narrow_binary(narrow, (op, a, b), range, bits),
            _ => None,
        }
    }

    /// Returns a value that is the same for all elements. It is passed in the record.
    fn narrow_uniform(&mut self, narrow: &mut Narrow<'_>, e: ExprId, bits: u8) -> Lanes {
        let value = self.expr(e);
        let value = match self.ty(e).bytes() {
            8 => self.b.ins().ireduce(I32, value),
            4 => value,
            _ => self.b.ins().uextend(I32, value),
        };
        let offset = narrow.vk.put(value, 4);
        narrow.vk.ir.uniform(Narrow::lane(bits), offset)
    }

    fn narrow_load(
        &mut self,
        narrow: &mut Narrow<'_>,
        e: ExprId,
        (storage, index): (Storage, &girder_ir::codelet::Index),
        bits: u8,
    ) -> Option<Lanes> {
        let stride = narrow.vk.plan.loads.iter().find(|l| l.0 == e)?.1;
        let from = self.narrow_memory(narrow, (storage, index), stride)?;
        let lane = Narrow::lane(narrow.element);
        let ir = &mut narrow.vk.ir;
        let value = if narrow.conditional { ir.known_load(lane, from)? } else { ir.load(lane, from, None) };
        let range = girder_codelet::scalar::int_range(self.ty(e))?;
        narrow.fit(Known { value, range, exact: true }, bits)
    }

    fn narrow_unary(
        &mut self,
        narrow: &mut Narrow<'_>,
        (op, x): (UnaryOp, ExprId),
        range: (i128, i128),
        bits: u8,
    ) -> Option<Lanes> {
        match op {
            UnaryOp::Neg | UnaryOp::Not => {
                let value = self.narrow_value(narrow, x, bits)?;
                Some(narrow.unary(if op == UnaryOp::Neg { Op::Neg } else { Op::Not }, value, false))
            }
            UnaryOp::Abs => {
                let known = match self.narrow_distance(narrow, x)? {
                    Some(value) => Known { value, range, exact: true },
                    None => {
                        let (lanes, signed) = narrow.lanes(self.narrow_range(narrow, x)?)?;
                        let value = self.narrow_value(narrow, x, lanes)?;
                        let value = if signed { narrow.unary(Op::Abs, value, true) } else { value };
                        Known { value, range, exact: true }
                    }
                };
                narrow.fit(known, bits)
            }
            _ => None,
        }
    }

    /// Returns the absolute difference of unsigned lanes, which needs one bit less than the difference.
    fn narrow_distance(&mut self, narrow: &mut Narrow<'_>, x: ExprId) -> Option<Option<Lanes>> {
        let ExprKind::Binary { op: BinaryOp::Sub, a, b, .. } = self.codelet.exprs[x].kind else { return Some(None) };
        let (p, q) = (self.narrow_range(narrow, a)?, self.narrow_range(narrow, b)?);
        let whole = self.unwrapped_range(narrow, x) == self.narrow_range(narrow, x);
        let Some((bits, false)) = narrow.lanes_of_both(p, q).filter(|_| whole) else { return Some(None) };
        let (a, b) = (self.narrow_value(narrow, a, bits)?, self.narrow_value(narrow, b, bits)?);
        let (more, less) = (narrow.binary(Op::Max, a, b, false), narrow.binary(Op::Min, a, b, false));
        Some(Some(narrow.binary(Op::Sub, more, less, false)))
    }

    fn narrow_binary(
        &mut self,
        narrow: &mut Narrow<'_>,
        (op, a, b): (BinaryOp, ExprId, ExprId),
        range: (i128, i128),
        bits: u8,
    ) -> Option<Lanes> {
        let op = match op {
            BinaryOp::Add => Op::Add,
            BinaryOp::Sub => Op::Sub,
            BinaryOp::And => Op::And,
            BinaryOp::Or => Op::Or,
            BinaryOp::Xor => Op::Xor,
            BinaryOp::Mul => {
                let (x, y) = (self.narrow_value(narrow, a, 16)?, self.narrow_value(narrow, b, 16)?);
                let value = narrow.binary(Op::Mul, x, y, false);
                return narrow.fit(Known { value, range, exact: false }, bits);
            }
            BinaryOp::Shl => {
                let by = self.folded[b]?;
                if by >= bits.into() {
                    return Some(narrow.number(0, bits));
                }
                let value = self.narrow_value(narrow, a, bits)?;
                return Some(narrow.unary(Op::Shl { by: by as u8 }, value, false));
            }
            BinaryOp::Shr => return self.narrow_right(narrow, (a, b), range, bits),
            BinaryOp::Min | BinaryOp::Max => {
                let (p, q) = (self.narrow_range(narrow, a)?, self.narrow_range(narrow, b)?);
                let (lanes, signed) = narrow.lanes_of_both(p, q)?;
                let (x, y) = (self.narrow_value(narrow, a, lanes)?, self.narrow_value(narrow, b, lanes)?);
                let op = if op == BinaryOp::Min { Op::Min } else { Op::Max };
                let value = narrow.binary(op, x, y, signed);
                return self.narrow_signed(narrow, value, (range, signed), bits);
            }
            _ => return None,
        };
        let (x, y) = (self.narrow_value(narrow, a, bits)?, self.narrow_value(narrow, b, bits)?);
        Some(narrow.binary(op, x, y, false))
    }

    /// Converts a result in signed or unsigned lanes to lanes of the given bits.
    fn narrow_signed(
        &mut self,
        narrow: &mut Narrow<'_>,
        value: Lanes,
        (range, signed): ((i128, i128), bool),
        bits: u8,
    ) -> Option<Lanes> {
        let range = if signed { (range.0.min(-1), range.1) } else { range };
        narrow.fit(Known { value, range, exact: true }, bits)
    }

    /// Translates `a >> b`, where `b` is a known number.
    fn narrow_right(
        &mut self,
        narrow: &mut Narrow<'_>,
        (a, b): (ExprId, ExprId),
        range: (i128, i128),
        bits: u8,
    ) -> Option<Lanes> {
        let by = self.folded[b]?;
        if by == 1
            && let Some(value) = self.narrow_average(narrow, a)
        {
            return narrow.fit(Known { value, range, exact: true }, bits);
        }
        let (mut lanes, signed) = narrow.lanes(self.narrow_range(narrow, a)?)?;
        if signed {
            lanes = 16;
        }
        let value = self.narrow_value(narrow, a, lanes)?;
        let value = match by {
            by if by < lanes.into() => narrow.unary(Op::Shr { by: by as u8 }, value, signed),
            _ if signed => narrow.unary(Op::Shr { by: lanes - 1 }, value, true),
            _ => narrow.number(0, lanes),
        };
        self.narrow_signed(narrow, value, (range, signed), bits)
    }

    /// Returns half of `x + y + 1`, in unsigned lanes that need not hold the sum.
    fn narrow_average(&mut self, narrow: &mut Narrow<'_>, sum: ExprId) -> Option<Lanes> {
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
        Some(narrow.binary(Op::Average, x, y, false))
    }

    /// Returns `cond ? yes : no`.
    pub(super) fn narrow_chosen(
        &mut self,
        narrow: &mut Narrow<'_>,
        cond: ExprId,
        yes: Known,
        no: Known,
    ) -> Option<Known> {
        let range = (yes.range.0.min(no.range.0), yes.range.1.max(no.range.1));
        let own = narrow.bits(yes.value).max(narrow.bits(no.value));
        let bits = own.max(self.narrow_cond_bits(narrow, cond)?);
        let mut exact = yes.exact && no.exact;
        let bits = match narrow.lanes(range).filter(|_| exact) {
            Some((lanes, _)) => bits.max(lanes),
            None => {
                exact = false;
                bits
            }
        };
        // A value that is not exact cannot be widened.
        let (yes, no) = (narrow.fit(yes, bits)?, narrow.fit(no, bits)?);
        let mask = self.narrow_mask(narrow, cond, bits)?;
        let value = narrow.vk.ir.select(mask, yes, no);
        Some(Known { value, range, exact })
    }

    /// Returns the bits of the narrowest lanes in which a condition can be evaluated.
    pub(super) fn narrow_cond_bits(&self, narrow: &Narrow<'_>, cond: ExprId) -> Option<u8> {
        match self.codelet.exprs[cond].kind {
            _ if self.folded[cond].is_some() || narrow.vk.plan.same.contains(cond) => None,
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

    /// Returns the mask of the lanes in which a condition is true.
    pub(super) fn narrow_mask(&mut self, narrow: &mut Narrow<'_>, cond: ExprId, bits: u8) -> Option<Lanes> {
        let codelet = self.codelet;
        match codelet.exprs[cond].kind {
            ExprKind::Unary { op: UnaryOp::Not, x } => {
                let mask = self.narrow_mask(narrow, x, bits)?;
                Some(narrow.vk.ir.unary(Op::Not, mask))
            }
            ExprKind::AndThen { a, b }
            | ExprKind::OrElse { a, b }
            | ExprKind::Binary { op: BinaryOp::And | BinaryOp::Or, a, b, .. } => {
                let both = matches!(
                    codelet.exprs[cond].kind,
                    ExprKind::AndThen { .. } | ExprKind::Binary { op: BinaryOp::And, .. }
                );
                let x = self.narrow_mask(narrow, a, bits)?;
                let lazily = !matches!(codelet.exprs[cond].kind, ExprKind::Binary { .. });
                let around = narrow.conditional;
                narrow.conditional |= lazily;
                let y = self.narrow_mask(narrow, b, bits);
                narrow.conditional = around;
                Some(narrow.vk.ir.binary(if both { Op::And } else { Op::Or }, x, y?))
            }
            ExprKind::Binary { op, a, b, .. } if op.is_comparison() => {
                let (p, q) = (self.narrow_range(narrow, a)?, self.narrow_range(narrow, b)?);
                let (_, signed) = narrow.lanes_of_both(p, q)?;
                let (x, y) = (self.narrow_value(narrow, a, bits)?, self.narrow_value(narrow, b, bits)?);
                let (x, y) = (narrow.typed(x, signed), narrow.typed(y, signed));
                Some(narrow.vk.ir.compare(cond_of(op)?, x, y))
            }
            _ => None,
        }
    }

    /// Returns the sum of the values of an iteration's elements.
    pub(super) fn narrow_terms(&mut self, narrow: &mut Narrow<'_>, e: ExprId) -> Option<Lanes> {
        let word = |range: (i128, i128)| range.0 >= -(1 << 15) && range.1 < 1 << 15;
        if let ExprKind::Binary { op: BinaryOp::Mul, a, b, .. } = self.codelet.exprs[e].kind
            && word(self.narrow_range(narrow, a)?)
            && word(self.narrow_range(narrow, b)?)
        {
            let (x, y) = (self.narrow_value(narrow, a, 16)?, self.narrow_value(narrow, b, 16)?);
            let (x, y) = (narrow.typed(x, true), narrow.typed(y, true));
            return Some(narrow.vk.ir.make(Lane::I32, Op::DotNeighbours, &[x, y]));
        }
        let range = self.narrow_range(narrow, e)?;
        let value = match narrow.lanes(range)? {
            (8, false) => self.narrow_value(narrow, e, 8)?,
            _ if word(range) => {
                let value = self.narrow_value(narrow, e, 16)?;
                narrow.typed(value, true)
            }
            _ => return None,
        };
        Some(narrow.vk.ir.make(Lane::I32, Op::SumNeighbours, &[value]))
    }
}
