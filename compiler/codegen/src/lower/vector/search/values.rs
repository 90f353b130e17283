//! Decides which expressions can be vectors.
//!
//! Invariant: an operator is accepted only for types for which the backend has a vector instruction.

use super::{Context, GREATEST, Search, UNEVEN};
use crate::lower::vector::kernel::lane;
use crate::lower::vector::nest::Steps;
use girder_ir::codelet::{BinaryOp, ExprKind, Index, ReduceOp, Storage, UnaryOp};
use girder_ir::ids::{ExprId, SiteId};
use girder_ir::types::ElemType;

impl Search<'_, '_, '_> {
    /// Accepts an expression that `emit` can translate.
    pub(super) fn value(&mut self, e: ExprId, context: Context) -> Option<()> {
        self.size += 1;
        if self.size > GREATEST {
            return self.l().refuse("its body is too long");
        }
        let ty = self.l().ty(e);
        let wide = self.fits(ty);
        if !self.differ.differs(e) {
            if !wide || !self.is_safe(e, context.conditional) {
                return None;
            }
            self.same.insert(e);
            if self.is_early(e, context) && !self.early.contains(&e) {
                self.early.push(e);
            }
            return Some(());
        }
        if let ExprKind::Convert { x } = self.l().codelet.exprs[e].kind
            && wide
            && self.is_index(x, context)
        {
            if self.converted_index(x, ty, context).is_some() {
                self.narrow.insert(e);
                return Some(());
            }
            if !self.mixed {
                return None;
            }
        }
        if !wide {
            return None;
        }
        if self.is_index(e, context) {
            return self.ramp(e, context);
        }
        self.operation(e, ty, context)
    }

    fn operation(&mut self, e: ExprId, ty: ElemType, context: Context) -> Option<()> {
        let l = self.l();
        match l.codelet.exprs[e].kind {
            ExprKind::Local(local) if !self.assigned.contains(local) => {
                l.refuse("a local carries a value from one iteration to the next")
            }
            ExprKind::Local(_) => Some(()),
            ExprKind::Load { field, ref index, site } => self.load(e, Storage::Field(field), index, site, context),
            ExprKind::LoadLocal { local, ref index, site } => self.load(e, Storage::Local(local), index, site, context),
            ExprKind::Unary { op, x } if self.takes_unary(op, ty) => self.value(x, context),
            ExprKind::Binary { op, a, b, .. } if self.takes_binary(op, l.ty(a), b) => self.all(&[a, b], context),
            ExprKind::AndThen { a, b } | ExprKind::OrElse { a, b } => {
                self.value(a, context)?;
                self.value(b, Context { conditional: true, inner: true, joined: false })
            }
            ExprKind::Select { cond, a, b } => self.all(&[cond, a, b], context),
            ExprKind::Fma { a, b, c } if l.features.fma => self.all(&[a, b, c], context),
            ExprKind::Convert { x } if self.converts(l.ty(x), ty) => self.value(x, context),
            ExprKind::Bits { x } => self.value(x, context),
            _ => l.refuse("an operation has no vector instruction"),
        }
    }

    /// Returns whether vectors have a conversion between two types.
    fn converts(&self, from: ElemType, to: ElemType) -> bool {
        match self.mixed {
            true => self.l().level().converts(lane(from), lane(to)),
            false => takes_conversion(from, to),
        }
    }

    fn all(&mut self, exprs: &[ExprId], context: Context) -> Option<()> {
        exprs.iter().try_for_each(|&e| self.value(e, context).ok_or(())).ok()
    }

    fn load(&mut self, e: ExprId, storage: Storage, index: &Index, site: SiteId, context: Context) -> Option<()> {
        let ty = self.l().element_type(storage);
        let sure =
            context.conditional && self.sure.iter().any(|(s, at)| *s == storage && self.is_same_element(at, index));
        // In vector kernels, loads are masked, so that iterations may skip them.
        let proven = self.l().is_proven(site) && (!context.conditional || self.mixed || sure);
        if !(proven || self.l().is_at_fixed_place(e)) || ty == ElemType::Bool && !self.mixed {
            return self.l().refuse("an index of a load may be outside");
        }
        let strides = self.strides(storage, index, context.conditional).or_else(|| self.l().refuse(UNEVEN))?;
        let Some(stride) = self.differ.nest.even_step(&strides) else {
            return self.load_permuted(e, storage, &strides, context);
        };
        self.take_stride(ty, stride, context, false)?;
        self.moves_evenly((storage, index), stride)?;
        if !context.conditional && !context.inner {
            self.sure.push((storage, index.clone()));
        }
        if self.differ.stored.contains(&storage) {
            self.loads_of_stored = true;
            self.accesses.push((storage, index.clone()));
        }
        if self.loads.iter().all(|l| l.0 != e) {
            self.loads.push((e, stride));
        }
        Some(())
    }

    /// Accepts a load of a nest whose elements have an order of their own.
    fn load_permuted(&mut self, e: ExprId, storage: Storage, strides: &Steps, context: Context) -> Option<()> {
        let l = self.l();
        let plain = !context.conditional && !self.differ.stored.contains(&storage);
        let permuted = self.differ.nest.permuted(l.element_type(storage), strides);
        let permuted = permuted.filter(|_| plain).or_else(|| l.refuse(UNEVEN))?;
        if self.permuted.iter().all(|p| p.0 != e) {
            self.permuted.push((e, permuted));
        }
        Some(())
    }

    /// Returns whether an expression is an `i64` that changes by a constant step from iteration to iteration.
    fn is_index(&self, e: ExprId, context: Context) -> bool {
        self.l().ty(e) == ElemType::I64 && self.slope(e, context.conditional).is_some()
    }

    /// Accepts the conversion of an index to an integer of the body's width, or to a float if the index is known to fit
    /// into 32 bits.
    fn converted_index(&mut self, x: ExprId, ty: ElemType, context: Context) -> Option<()> {
        // A 64-bit integer is not made from a 32-bit index.
        if ty == ElemType::Bool || self.mixed && ty.is_int() && ty.bytes() == 8 {
            return None;
        }
        if ty.is_float() {
            let (least, greatest) = self.interval(x)?;
            if least < i128::from(i32::MIN) || greatest > i128::from(i32::MAX) {
                return None;
            }
        }
        self.ramp(x, context)
    }

    /// Records an index whose value is used.
    fn ramp(&mut self, e: ExprId, context: Context) -> Option<()> {
        self.ramp_uses = self.ramp_uses.saturating_add(self.repeated.try_into().unwrap_or(u32::MAX));
        if self.ramps.iter().all(|r| r.0 != e) {
            let slope = self.slope(e, context.conditional)?;
            self.ramps.push((e, slope));
        }
        Some(())
    }

    /// Returns the least and the greatest value of an index that depends only on that of the loop.
    fn interval(&self, e: ExprId) -> Option<(i128, i128)> {
        if let Some(v) = self.l().known(e) {
            return Some((i128::from(v), i128::from(v)));
        }
        let scaled = |(a, b): (i128, i128), n: i64| {
            let n = i128::from(n);
            let (a, b) = (a.checked_mul(n)?, b.checked_mul(n)?);
            Some((a.min(b), a.max(b)))
        };
        match self.l().codelet.exprs[e].kind {
            ExprKind::Local(l) if Some(l) == self.differ.var => self.range,
            ExprKind::Binary { op: BinaryOp::Add, a, b, .. } => {
                let ((a, b), (c, d)) = (self.interval(a)?, self.interval(b)?);
                Some((a.checked_add(c)?, b.checked_add(d)?))
            }
            ExprKind::Binary { op: BinaryOp::Sub, a, b, .. } => {
                let ((a, b), (c, d)) = (self.interval(a)?, self.interval(b)?);
                Some((a.checked_sub(d)?, b.checked_sub(c)?))
            }
            ExprKind::Binary { op: BinaryOp::Mul, a, b, .. } => match (self.l().known(a), self.l().known(b)) {
                (Some(n), _) => scaled(self.interval(b)?, n),
                (_, Some(n)) => scaled(self.interval(a)?, n),
                _ => None,
            },
            _ => None,
        }
    }

    fn takes_binary(&self, op: BinaryOp, ty: ElemType, b: ExprId) -> bool {
        let wide_int = !self.mixed && matches!(ty, ElemType::I64 | ElemType::U64);
        let known_width = self.fits(ty) && self.l().folded[b].is_some_and(|n| n < 8 * u64::from(ty.bytes()));
        // Such a division cannot fail.
        let by_number = self.mixed && ty.is_int() && ty.bytes() <= 4 && self.l().folded[b].is_some_and(|n| n != 0);
        match op {
            BinaryOp::Rem => by_number,
            BinaryOp::Div => ty.is_float() || by_number,
            BinaryOp::Min | BinaryOp::Max => !wide_int,
            BinaryOp::Shl => known_width,
            BinaryOp::Shr => (self.mixed || ty != ElemType::I64) && known_width,
            _ if op.is_comparison() => (self.mixed || ty != ElemType::Bool) && !wide_int,
            _ => true,
        }
    }

    fn takes_unary(&self, op: UnaryOp, ty: ElemType) -> bool {
        match op {
            UnaryOp::Popcount | UnaryOp::Clz => self.mixed,
            UnaryOp::Abs => self.mixed || ty != ElemType::I64,
            _ => true,
        }
    }
}

fn takes_conversion(from: ElemType, to: ElemType) -> bool {
    use ElemType::*;
    match (from, to) {
        (F32, I32 | U32) | (I32 | U32, F32) | (I32, U32) | (U32, I32) | (I64, U64) | (U64, I64) => true,
        (F32 | F64 | I32 | U32, Bool) => true,
        (Bool, _) => true,
        _ => from == to,
    }
}

/// Returns whether vectors have the operation of a reduction.
pub(in crate::lower::vector) fn takes_reduction(op: ReduceOp, ty: ElemType) -> bool {
    match op {
        ReduceOp::ArgMin | ReduceOp::ArgMax => false,
        ReduceOp::Any | ReduceOp::All => true,
        ReduceOp::Min | ReduceOp::Max => ty.bytes() == 4 || ty == ElemType::F64,
        ReduceOp::Sum | ReduceOp::Product => ty.bytes() >= 4,
    }
}
