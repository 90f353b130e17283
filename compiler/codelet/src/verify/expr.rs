//! The types of expressions.

use super::{Result, Verifier, ensure};
use girder_ir::codelet::{BinaryOp, Check, Dir, ExprKind, UnaryOp};
use girder_ir::ids::{ExprId, SiteId};
use girder_ir::types::ElemType;

impl Verifier<'_> {
    /// Checks one expression; operands are checked separately.
    pub(super) fn expr(self, e: ExprId) -> Result {
        use ElemType::{Bool, I64};
        let c = self.codelet;
        let ty = c.exprs[e].ty;
        ensure(ty.is_supported(), || format!("{ty} is not supported"))?;
        let is = |expected: ElemType| ensure(ty == expected, || format!("is {ty}, not {expected}"));
        // Expressions are trees: an operand is older than the expression that uses it, so recursion ends.
        for &x in c.exprs[e].kind.operands().iter() {
            self.ty(x)?;
            ensure(x < e, || format!("its operand {x} comes after it"))?;
        }
        match c.exprs[e].kind {
            ExprKind::Const(v) => is(v.ty),
            ExprKind::Local(l) => {
                let local = c.locals.get(l).filter(|l| l.array.is_none());
                is(local.ok_or_else(|| format!("{l} is no scalar"))?.ty)
            }
            ExprKind::ConstField(f) => {
                let field = c.fields.get(f).filter(|f| f.dir == Dir::Const);
                is(field.ok_or_else(|| format!("{f} is not const"))?.ty)
            }
            ExprKind::Size(s) => {
                ensure(c.sizes.is_valid(s), || format!("{s} does not exist"))?;
                is(I64)
            }
            ExprKind::Worker | ExprKind::Workers => {
                ensure(c.multi, || "there are no workers outside a multi codelet".into())?;
                is(I64)
            }
            ExprKind::Load { field, ref index, site } => {
                let decl = c.fields.get(field).filter(|f| matches!(f.dir, Dir::In | Dir::InOut));
                let decl = decl.ok_or_else(|| format!("{field} cannot be read"))?;
                self.index(index, decl.dims.len())?;
                self.site(site, Check::Index)?;
                is(decl.ty)
            }
            ExprKind::LoadLocal { local, ref index, site } => {
                let decl = c.locals.get(local);
                let array = decl.and_then(|d| d.array.as_ref()).ok_or_else(|| format!("{local} is no array"))?;
                self.index(index, array.len())?;
                self.site(site, Check::Index)?;
                is(c.locals[local].ty)
            }
            ExprKind::Unary { op, x } => {
                self.has_type(x, ty)?;
                ensure(unary_takes(op, ty), || format!("{op:?} does not take {ty}"))
            }
            ExprKind::Binary { op, a, b, site } => self.binary(op, a, b, site, ty),
            ExprKind::AndThen { a, b } | ExprKind::OrElse { a, b } => {
                self.has_type(a, Bool)?;
                self.has_type(b, Bool)?;
                is(Bool)
            }
            ExprKind::Select { cond, a, b } => {
                self.has_type(cond, Bool)?;
                self.has_type(a, ty)?;
                self.has_type(b, ty)
            }
            ExprKind::Fma { a, b, c } => {
                ensure(ty.is_float(), || format!("fma does not take {ty}"))?;
                [a, b, c].into_iter().try_for_each(|x| self.has_type(x, ty))
            }
            ExprKind::Convert { .. } => Ok(()),
            ExprKind::Bits { x } => {
                let from = self.ty(x)?;
                // A byte has more values than `bool`.
                let fits = from.bytes() == ty.bytes() && (ty != Bool || from == Bool);
                ensure(fits, || format!("{from} has other bits than {ty}"))
            }
        }
    }

    fn binary(self, op: BinaryOp, a: ExprId, b: ExprId, site: Option<SiteId>, result: ElemType) -> Result {
        let ty = self.ty(a)?;
        self.has_type(b, ty)?;
        ensure(binary_takes(op, ty), || format!("{op:?} does not take {ty}"))?;
        let expected = if op.is_comparison() { ElemType::Bool } else { ty };
        ensure(result == expected, || format!("{op:?} gives {expected}, not {result}"))?;
        let check = match op {
            BinaryOp::Div | BinaryOp::Rem if ty.is_int() => Some(Check::Division),
            BinaryOp::Shl | BinaryOp::Shr => Some(Check::Shift),
            _ => None,
        };
        match (check, site) {
            (Some(check), Some(site)) => self.site(site, check),
            (None, None) => Ok(()),
            _ => Err(format!("{op:?} of {ty} with the site {site:?}")),
        }
    }
}

fn unary_takes(op: UnaryOp, ty: ElemType) -> bool {
    use UnaryOp::*;
    match op {
        Neg | Abs => ty.is_number(),
        Not => !ty.is_float(),
        Floor | Ceil | Round | Trunc | Sqrt => ty.is_float(),
        Popcount | Clz => ty.is_int(),
    }
}

fn binary_takes(op: BinaryOp, ty: ElemType) -> bool {
    use BinaryOp::*;
    match op {
        Add | Sub | Mul | Div | Rem | Min | Max | Lt | Le | Gt | Ge => ty.is_number(),
        And | Or | Xor => !ty.is_float(),
        Shl | Shr => ty.is_int(),
        Eq | Ne => true,
    }
}
