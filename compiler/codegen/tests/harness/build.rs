//! Codelets built by hand.

use girder_ir::codelet::*;
use girder_ir::ids::*;
use girder_ir::types::{ElemType, Scalar};
use girder_source::Span;
use smallvec::SmallVec;

/// A codelet under construction; its body is set at the end.
pub struct Build {
    pub codelet: Codelet,
    labels: u32,
}

impl Build {
    pub fn new() -> Build {
        Build { codelet: Codelet::empty("test", Span::default()), labels: 0 }
    }

    pub fn size(&mut self, name: &str) -> SizeId {
        self.codelet.sizes.push(name.into())
    }

    pub fn field(&mut self, dir: Dir, ty: ElemType, dims: &[DimDecl]) -> FieldId {
        let name = format!("f{}", self.codelet.fields.len()).into();
        self.codelet.fields.push(FieldDecl { name, dir, ty, dims: dims.into(), align: 1, span: Span::default() })
    }

    pub fn local(&mut self, ty: ElemType) -> LocalId {
        self.codelet.locals.push(Local { name: "".into(), ty, array: None })
    }

    pub fn array(&mut self, ty: ElemType, dims: &[u32]) -> LocalId {
        self.codelet.locals.push(Local { name: "".into(), ty, array: Some(dims.into()) })
    }

    pub fn site(&mut self, check: Check) -> SiteId {
        self.codelet.sites.push(Site { check, span: Span::default(), calls: SmallVec::new(), message: None })
    }

    pub fn label(&mut self) -> Label {
        self.labels += 1;
        Label(self.labels)
    }

    pub fn expr(&mut self, ty: ElemType, kind: ExprKind) -> ExprId {
        self.codelet.exprs.push(Expr { kind, ty, span: Span::default() })
    }

    pub fn ty(&self, e: ExprId) -> ElemType {
        self.codelet.exprs[e].ty
    }

    pub fn bits(&mut self, ty: ElemType, bits: u64) -> ExprId {
        self.expr(ty, ExprKind::Const(Scalar::new(ty, bits)))
    }

    pub fn int(&mut self, v: i64) -> ExprId {
        self.bits(ElemType::I64, v as u64)
    }

    pub fn f32(&mut self, v: f32) -> ExprId {
        self.bits(ElemType::F32, v.to_bits() as u64)
    }

    pub fn read(&mut self, local: LocalId) -> ExprId {
        let ty = self.codelet.locals[local].ty;
        self.expr(ty, ExprKind::Local(local))
    }

    pub fn sized(&mut self, size: SizeId) -> ExprId {
        self.expr(ElemType::I64, ExprKind::Size(size))
    }

    pub fn load(&mut self, field: FieldId, index: &[ExprId]) -> ExprId {
        let (ty, site) = (self.codelet.fields[field].ty, self.site(Check::Index));
        self.expr(ty, ExprKind::Load { field, index: index.into(), site })
    }

    pub fn unary(&mut self, op: UnaryOp, x: ExprId) -> ExprId {
        let ty = self.ty(x);
        self.expr(ty, ExprKind::Unary { op, x })
    }

    pub fn binary(&mut self, op: BinaryOp, a: ExprId, b: ExprId) -> ExprId {
        let operands = self.ty(a);
        let ty = if op.is_comparison() { ElemType::Bool } else { operands };
        let site = match op {
            BinaryOp::Div | BinaryOp::Rem if operands.is_int() => Some(self.site(Check::Division)),
            BinaryOp::Shl | BinaryOp::Shr => Some(self.site(Check::Shift)),
            _ => None,
        };
        self.expr(ty, ExprKind::Binary { op, a, b, site })
    }

    pub fn convert(&mut self, ty: ElemType, x: ExprId) -> ExprId {
        self.expr(ty, ExprKind::Convert { x })
    }

    pub fn store(&mut self, field: FieldId, index: &[ExprId], value: ExprId) -> Stmt {
        let site = self.site(Check::Index);
        Stmt::Store { field, index: index.into(), value, site }
    }

    pub fn done(mut self, body: StmtBlock) -> Codelet {
        self.codelet.body = body;
        self.codelet
    }
}
