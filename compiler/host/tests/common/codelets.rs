//! Codelets built by hand.

use girder_ir::codelet::*;
use girder_ir::ids::*;
use girder_ir::types::{ElemType, Scalar};
use girder_source::Span;
use smallvec::SmallVec;

/// A codelet under construction.
pub struct Builder {
    pub codelet: Codelet,
    labels: u32,
}

impl Builder {
    pub fn new(name: &str) -> Builder {
        Builder { codelet: Codelet::empty(name, Span::default()), labels: 0 }
    }

    pub fn size(&mut self, name: &str) -> SizeId {
        self.codelet.sizes.push(name.into())
    }

    pub fn field(&mut self, name: &str, dir: Dir, ty: ElemType, dims: &[SizeId]) -> FieldId {
        let dims = dims.iter().map(|&s| DimDecl::Size(s)).collect();
        self.codelet.fields.push(FieldDecl { name: name.into(), dir, ty, dims, align: 1, span: Span::default() })
    }

    pub fn local(&mut self, ty: ElemType) -> LocalId {
        self.codelet.locals.push(Local { name: "i".into(), ty, array: None })
    }

    pub fn site(&mut self, check: Check) -> SiteId {
        let message = (check == Check::Assert).then(|| "told so".into());
        self.codelet.sites.push(Site { check, span: Span::new(30, 40), calls: SmallVec::new(), message })
    }

    pub fn expr(&mut self, ty: ElemType, kind: ExprKind) -> ExprId {
        self.codelet.exprs.push(Expr { kind, ty, span: Span::default() })
    }

    pub fn int(&mut self, v: i64) -> ExprId {
        self.expr(ElemType::I64, ExprKind::Const(Scalar::new(ElemType::I64, v as u64)))
    }

    pub fn get(&mut self, local: LocalId) -> ExprId {
        let ty = self.codelet.locals[local].ty;
        self.expr(ty, ExprKind::Local(local))
    }

    pub fn length(&mut self, size: SizeId) -> ExprId {
        self.expr(ElemType::I64, ExprKind::Size(size))
    }

    pub fn constant(&mut self, field: FieldId) -> ExprId {
        let ty = self.codelet.fields[field].ty;
        self.expr(ty, ExprKind::ConstField(field))
    }

    pub fn binary(&mut self, op: BinaryOp, a: ExprId, b: ExprId) -> ExprId {
        let ty = self.codelet.exprs[a].ty;
        let site = match op {
            BinaryOp::Div | BinaryOp::Rem if ty.is_int() => Some(self.site(Check::Division)),
            BinaryOp::Shl | BinaryOp::Shr => Some(self.site(Check::Shift)),
            _ => None,
        };
        let result = if op.is_comparison() { ElemType::Bool } else { ty };
        self.expr(result, ExprKind::Binary { op, a, b, site })
    }

    pub fn convert(&mut self, ty: ElemType, x: ExprId) -> ExprId {
        self.expr(ty, ExprKind::Convert { x })
    }

    pub fn load(&mut self, field: FieldId, index: &[ExprId]) -> ExprId {
        let site = self.site(Check::Index);
        let ty = self.codelet.fields[field].ty;
        self.expr(ty, ExprKind::Load { field, index: index.into(), site })
    }

    pub fn store(&mut self, field: FieldId, index: &[ExprId], value: ExprId) -> Stmt {
        let site = self.site(Check::Index);
        Stmt::Store { field, index: index.into(), value, site }
    }

    /// `for i in 0..size { body(i) }`
    pub fn each(&mut self, size: SizeId, body: impl FnOnce(&mut Builder, ExprId) -> StmtBlock) -> Stmt {
        self.labels += 1;
        let (var, label) = (self.local(ElemType::I64), Label(self.labels));
        let (lo, hi, i) = (self.int(0), self.length(size), self.get(var));
        let body = body(self, i);
        Stmt::For { var, lo, hi, step: 1, label, body, site: self.site(Check::Iterations) }
    }

    pub fn finish(mut self, body: StmtBlock) -> Codelet {
        self.codelet.body = body;
        self.codelet
    }
}

/// `scale(in a: T[n], out y: T[n], const c: T)`: `y[i] = a[i] * c + T(i)`
pub fn scale(ty: ElemType) -> Codelet {
    let mut b = Builder::new("scale");
    let n = b.size("n");
    let (a, y) = (b.field("a", Dir::In, ty, &[n]), b.field("y", Dir::Out, ty, &[n]));
    let c = b.field("c", Dir::Const, ty, &[]);
    let each = b.each(n, |b, i| {
        let (x, c, t) = (b.load(a, &[i]), b.constant(c), b.convert(ty, i));
        let product = b.binary(BinaryOp::Mul, x, c);
        let sum = b.binary(BinaryOp::Add, product, t);
        vec![b.store(y, &[i], sum)]
    });
    b.finish(vec![each])
}

/// `rows(in a: T[m, n], inout y: T[m])`: `y[i] = y[i] * 3 + a[i, 0] + a[i, 1] + …` in order
pub fn rows(ty: ElemType) -> Codelet {
    let mut b = Builder::new("rows");
    let (m, n) = (b.size("m"), b.size("n"));
    let (a, y) = (b.field("a", Dir::In, ty, &[m, n]), b.field("y", Dir::InOut, ty, &[m]));
    let outer = b.each(m, |b, i| {
        let (old, three) = (b.load(y, &[i]), b.int(3));
        let three = b.convert(ty, three);
        let product = b.binary(BinaryOp::Mul, old, three);
        let first = b.store(y, &[i], product);
        let inner = b.each(n, |b, j| {
            let (sum, x) = (b.load(y, &[i]), b.load(a, &[i, j]));
            let sum = b.binary(BinaryOp::Add, sum, x);
            vec![b.store(y, &[i], sum)]
        });
        vec![first, inner]
    });
    b.finish(vec![outer])
}

/// `blend(in a: T[m, n], in s: T[n], inout y: T[m, n])`: `y[i, j] = y[i, j] * 3 + a[i, j] - s[j]`, row by row.
pub fn blend(ty: ElemType) -> Codelet {
    let mut b = Builder::new("blend");
    let (m, n) = (b.size("m"), b.size("n"));
    let (a, s) = (b.field("a", Dir::In, ty, &[m, n]), b.field("s", Dir::In, ty, &[n]));
    let y = b.field("y", Dir::InOut, ty, &[m, n]);
    let outer = b.each(m, |b, i| {
        let inner = b.each(n, |b, j| {
            let (old, x, shift, three) = (b.load(y, &[i, j]), b.load(a, &[i, j]), b.load(s, &[j]), b.int(3));
            let three = b.convert(ty, three);
            let product = b.binary(BinaryOp::Mul, old, three);
            let sum = b.binary(BinaryOp::Add, product, x);
            let sum = b.binary(BinaryOp::Sub, sum, shift);
            vec![b.store(y, &[i, j], sum)]
        });
        vec![inner]
    });
    b.finish(vec![outer])
}

/// `pick(in a: T[n], in k: i32, out y: T[m])`: `y[0] = a[k]`; the rest of `y` stays as it was, and `k` is checked.
pub fn pick(ty: ElemType) -> Codelet {
    let mut b = Builder::new("pick");
    let (n, m) = (b.size("n"), b.size("m"));
    let (a, k) = (b.field("a", Dir::In, ty, &[n]), b.field("k", Dir::In, ElemType::I32, &[]));
    let y = b.field("y", Dir::Out, ty, &[m]);
    let k = b.load(k, &[]);
    let k = b.convert(ElemType::I64, k);
    let (x, zero) = (b.load(a, &[k]), b.int(0));
    let store = b.store(y, &[zero], x);
    b.finish(vec![store])
}

/// `below(in x: i32, in limit: i32, out c: bool)`: `c = x < limit`
pub fn below() -> Codelet {
    let mut b = Builder::new("below");
    let (x, limit) = (b.field("x", Dir::In, ElemType::I32, &[]), b.field("limit", Dir::In, ElemType::I32, &[]));
    let c = b.field("c", Dir::Out, ElemType::Bool, &[]);
    let (x, limit) = (b.load(x, &[]), b.load(limit, &[]));
    let less = b.binary(BinaryOp::Lt, x, limit);
    let store = b.store(c, &[], less);
    b.finish(vec![store])
}

/// `add(inout x: i32, in y: i32)`: `x = x + y`
pub fn add() -> Codelet {
    let mut b = Builder::new("add");
    let (x, y) = (b.field("x", Dir::InOut, ElemType::I32, &[]), b.field("y", Dir::In, ElemType::I32, &[]));
    let (a, c) = (b.load(x, &[]), b.load(y, &[]));
    let sum = b.binary(BinaryOp::Add, a, c);
    let store = b.store(x, &[], sum);
    b.finish(vec![store])
}

/// `multi workers(out y: i32[n])`: `y[i] = i % workers`; each worker writes its elements.
pub fn workers() -> Codelet {
    let mut b = Builder::new("workers");
    b.codelet.multi = true;
    let n = b.size("n");
    let y = b.field("y", Dir::Out, ElemType::I32, &[n]);
    let each = b.each(n, |b, i| {
        let (worker, count) = (b.expr(ElemType::I64, ExprKind::Worker), b.expr(ElemType::I64, ExprKind::Workers));
        let remainder = b.binary(BinaryOp::Rem, i, count);
        let mine = b.binary(BinaryOp::Eq, remainder, worker);
        let value = b.convert(ElemType::I32, worker);
        vec![Stmt::If { cond: mine, then: vec![b.store(y, &[i], value)], els: vec![] }]
    });
    b.finish(vec![each])
}
