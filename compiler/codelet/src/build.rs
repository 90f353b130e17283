//! A builder of codelets for tests.

use girder_ir::codelet::*;
use girder_ir::ids::*;
use girder_ir::types::{ElemType, Scalar};
use girder_source::Span;
use smallvec::SmallVec;

/// A codelet under construction; its body is set at the end.
pub(crate) struct Builder {
    pub(crate) codelet: Codelet,
    labels: u32,
}

impl Builder {
    pub(crate) fn new() -> Builder {
        Builder { codelet: Codelet::empty("test", Span::default()), labels: 0 }
    }

    pub(crate) fn size(&mut self, name: &str) -> SizeId {
        self.codelet.sizes.push(name.into())
    }

    pub(crate) fn field(&mut self, dir: Dir, ty: ElemType, dims: &[DimDecl]) -> FieldId {
        let name = format!("f{}", self.codelet.fields.len()).into();
        self.codelet.fields.push(FieldDecl { name, dir, ty, dims: dims.into(), align: 1, span: Span::default() })
    }

    pub(crate) fn local(&mut self, ty: ElemType) -> LocalId {
        self.codelet.locals.push(Local { name: "".into(), ty, array: None })
    }

    pub(crate) fn array(&mut self, ty: ElemType, dims: &[u32]) -> LocalId {
        self.codelet.locals.push(Local { name: "".into(), ty, array: Some(dims.into()) })
    }

    pub(crate) fn site(&mut self, check: Check) -> SiteId {
        self.codelet.sites.push(Site { check, span: Span::default(), calls: SmallVec::new(), message: None })
    }

    pub(crate) fn label(&mut self) -> Label {
        self.labels += 1;
        Label(self.labels)
    }

    pub(crate) fn expr(&mut self, ty: ElemType, kind: ExprKind) -> ExprId {
        self.codelet.exprs.push(Expr { kind, ty, span: Span::default() })
    }

    pub(crate) fn constant(&mut self, c: Scalar) -> ExprId {
        self.expr(c.ty, ExprKind::Const(c))
    }

    pub(crate) fn int(&mut self, v: i64) -> ExprId {
        self.constant(Scalar::new(ElemType::I64, v as u64))
    }

    pub(crate) fn f32(&mut self, v: f32) -> ExprId {
        self.constant(Scalar::f32(v))
    }

    pub(crate) fn get(&mut self, local: LocalId) -> ExprId {
        let ty = self.codelet.locals[local].ty;
        self.expr(ty, ExprKind::Local(local))
    }

    pub(crate) fn size_of(&mut self, size: SizeId) -> ExprId {
        self.expr(ElemType::I64, ExprKind::Size(size))
    }

    pub(crate) fn unary(&mut self, op: UnaryOp, x: ExprId) -> ExprId {
        let ty = self.codelet.exprs[x].ty;
        self.expr(ty, ExprKind::Unary { op, x })
    }

    pub(crate) fn binary(&mut self, op: BinaryOp, a: ExprId, b: ExprId) -> ExprId {
        let ty = self.codelet.exprs[a].ty;
        let site = match op {
            BinaryOp::Div | BinaryOp::Rem if ty.is_int() => Some(self.site(Check::Division)),
            BinaryOp::Shl | BinaryOp::Shr => Some(self.site(Check::Shift)),
            _ => None,
        };
        let result = if op.is_comparison() { ElemType::Bool } else { ty };
        self.expr(result, ExprKind::Binary { op, a, b, site })
    }

    pub(crate) fn convert(&mut self, ty: ElemType, x: ExprId) -> ExprId {
        self.expr(ty, ExprKind::Convert { x })
    }

    pub(crate) fn load(&mut self, field: FieldId, index: &[ExprId]) -> ExprId {
        let site = self.site(Check::Index);
        let ty = self.codelet.fields[field].ty;
        self.expr(ty, ExprKind::Load { field, index: index.into(), site })
    }

    /// Returns `a op b` of two sizes.
    pub(crate) fn binary_size(&mut self, op: BinaryOp, a: SizeId, b: SizeId) -> ExprId {
        let (a, b) = (self.size_of(a), self.size_of(b));
        self.binary(op, a, b)
    }

    /// Returns a load from a field with one index, and makes the field `inout`.
    pub(crate) fn load_of(&mut self, field: FieldId, index: ExprId) -> ExprId {
        self.codelet.fields[field].dir = Dir::InOut;
        self.load(field, &[index])
    }

    pub(crate) fn store(&mut self, field: FieldId, index: &[ExprId], value: ExprId) -> Stmt {
        let site = self.site(Check::Index);
        Stmt::Store { field, index: index.into(), value, site }
    }

    pub(crate) fn for_loop(&mut self, var: LocalId, lo: ExprId, hi: ExprId, step: i64, body: StmtBlock) -> Stmt {
        let label = self.label();
        Stmt::For { var, lo, hi, step, label, body, site: self.site(Check::Iterations) }
    }

    pub(crate) fn finish(mut self, body: StmtBlock) -> Codelet {
        self.codelet.body = body;
        self.codelet
    }
}
