//! Evaluation of expressions.
//!
//! Invariant: operands are evaluated in order, each once, before their operator; the second operand of `&&` and `||` is
//! evaluated only if the first does not decide.

use super::frame::{ElementIndex, Frame, Halt};
use crate::scalar;
use girder_ir::codelet::{BinaryOp, Check, ExprKind, Index, Storage};
use girder_ir::ids::{ExprId, SiteId};
use girder_ir::types::ElemType;

impl Frame<'_> {
    pub(super) fn int(&mut self, e: ExprId) -> Result<i64, Halt> {
        self.eval(e).map(|v| v as i64)
    }

    pub(super) fn eval(&mut self, e: ExprId) -> Result<u64, Halt> {
        let expr = self.expr(e);
        Ok(match expr.kind {
            ExprKind::Const(c) => c.bits,
            ExprKind::Local(local) => self.locals[self.offsets[local]],
            ExprKind::ConstField(field) => self.consts[field.as_u32() as usize],
            ExprKind::Size(size) => self.sizes.sizes[size] as u64,
            ExprKind::Worker => self.worker as u64,
            ExprKind::Workers => self.workers as u64,
            ExprKind::Load { field, ref index, site } => {
                let element_index = self.element_index(index)?;
                let flat = self.flat(Storage::Field(field), &element_index, site)?;
                self.load(field, flat, site)?
            }
            ExprKind::LoadLocal { local, ref index, site } => {
                let element_index = self.element_index(index)?;
                let flat = self.flat(Storage::Local(local), &element_index, site)?;
                self.locals[self.offsets[local] + flat as usize]
            }
            ExprKind::Unary { op, x } => scalar::unary(op, expr.ty, self.eval(x)?),
            ExprKind::Binary { op, a, b, site } => {
                let (x, y) = (self.eval(a)?, self.eval(b)?);
                self.binary(op, self.expr(a).ty, x, y, site)?
            }
            ExprKind::AndThen { a, b } => {
                if self.eval(a)? == 0 {
                    0
                } else {
                    self.eval(b)?
                }
            }
            ExprKind::OrElse { a, b } => {
                if self.eval(a)? != 0 {
                    1
                } else {
                    self.eval(b)?
                }
            }
            ExprKind::Select { cond, a, b } => {
                let (cond, a, b) = (self.eval(cond)?, self.eval(a)?, self.eval(b)?);
                if cond != 0 { a } else { b }
            }
            ExprKind::Fma { a, b, c } => scalar::fma(expr.ty, self.eval(a)?, self.eval(b)?, self.eval(c)?),
            ExprKind::Convert { x } => scalar::convert(self.expr(x).ty, expr.ty, self.eval(x)?),
            ExprKind::Bits { x } => scalar::bits(self.expr(x).ty, expr.ty, self.eval(x)?),
        })
    }

    fn binary(&mut self, op: BinaryOp, ty: ElemType, x: u64, y: u64, site: Option<SiteId>) -> Result<u64, Halt> {
        match (scalar::binary(op, ty, x, y), site) {
            (Ok(v), _) => Ok(v),
            (Err(Check::Shift), Some(site)) => Err(self.fail(site, [scalar::extend(ty, y), 8 * ty.bytes() as i64])),
            (Err(_), Some(site)) => Err(self.fail(site, [0, 0])),
            (Err(check), None) => unreachable!("an operator that can fail its {check:?} check has a site"),
        }
    }

    pub(super) fn element_index(&mut self, index: &Index) -> Result<ElementIndex, Halt> {
        index.iter().map(|&e| self.int(e)).collect()
    }
}
