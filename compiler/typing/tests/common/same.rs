//! The comparison of two codelets up to ids, spans, the names of locals, and the order of arenas.
//!
//! Invariant: codelets that are the same compute the same and fail in the same checks, in the same order.

use girder_ir::codelet::{Codelet, DimDecl, ExprKind, Label, Matrix, Stmt, StmtBlock, Storage};
use girder_ir::ids::{ExprId, LocalId, SiteId};
use std::collections::BTreeMap;

type Result = std::result::Result<(), String>;

/// Compares two codelets but for their names and generic arguments; the error says where they differ.
pub fn same_codelet(a: &Codelet, b: &Codelet) -> Result {
    let mut pair = Pair { a, b, locals: BTreeMap::new(), back: BTreeMap::new(), labels: BTreeMap::new() };
    pair.header()?;
    pair.block(&a.body, &b.body)?;
    pair.elementary()
}

fn equal<T: PartialEq + std::fmt::Debug>(what: &str, a: T, b: T) -> Result {
    if a == b { Ok(()) } else { Err(format!("{what}: {a:?} and {b:?}")) }
}

struct Pair<'c> {
    a: &'c Codelet,
    b: &'c Codelet,
    locals: BTreeMap<LocalId, LocalId>,
    back: BTreeMap<LocalId, LocalId>,
    labels: BTreeMap<Label, Label>,
}

impl Pair<'_> {
    fn header(&mut self) -> Result {
        let (a, b) = (self.a, self.b);
        equal("multi", a.multi, b.multi)?;
        equal("pipelined", (a.pipelined, a.separate_elements), (b.pipelined, b.separate_elements))?;
        equal("sizes", a.sizes.values().collect::<Vec<_>>(), b.sizes.values().collect())?;
        equal("fields", a.fields.len(), b.fields.len())?;
        for (x, y) in a.fields.values().zip(b.fields.values()) {
            equal("a field", (&x.name, x.dir, x.ty, x.align), (&y.name, y.dir, y.ty, y.align))?;
            equal("dimensions", x.dims.len(), y.dims.len())?;
            for (x, y) in x.dims.iter().zip(&y.dims) {
                match (*x, *y) {
                    (DimDecl::Expr(x), DimDecl::Expr(y)) => self.expr(x, y)?,
                    (x, y) => equal("a dimension", x, y)?,
                }
            }
        }
        match (a.cycles, b.cycles) {
            (Some(x), Some(y)) => self.expr(x, y),
            (x, y) => equal("cycles", x.is_some(), y.is_some()),
        }
    }

    fn elementary(&mut self) -> Result {
        for (a, b) in self.locals.clone() {
            match (self.a.elementary[a], self.b.elementary[b]) {
                (Some((f, x)), Some((g, y))) => {
                    equal("a function", f, g)?;
                    self.expr(x, y)?;
                }
                (f, g) => equal("elementary", f.is_some(), g.is_some())?,
            }
        }
        Ok(())
    }

    fn local(&mut self, a: LocalId, b: LocalId) -> Result {
        equal("a local", *self.locals.entry(a).or_insert(b), b)?;
        equal("a local", *self.back.entry(b).or_insert(a), a)?;
        let (x, y) = (&self.a.locals[a], &self.b.locals[b]);
        equal("the type of a local", (x.ty, &x.array), (y.ty, &y.array))
    }

    fn site(&self, a: SiteId, b: SiteId) -> Result {
        let (x, y) = (&self.a.sites[a], &self.b.sites[b]);
        equal("a check", (x.check, &x.message), (y.check, &y.message))
    }

    fn exprs(&mut self, a: &[ExprId], b: &[ExprId]) -> Result {
        equal("operands", a.len(), b.len())?;
        a.iter().zip(b).try_for_each(|(&x, &y)| self.expr(x, y))
    }

    fn expr(&mut self, a: ExprId, b: ExprId) -> Result {
        use ExprKind::*;
        let (x, y) = (&self.a.exprs[a], &self.b.exprs[b]);
        equal("the type of a value", x.ty, y.ty)?;
        self.exprs(&x.kind.operands(), &y.kind.operands())?;
        match (&x.kind, &y.kind) {
            (Const(x), Const(y)) => equal("a constant", x, y),
            (Local(x), Local(y)) => self.local(*x, *y),
            (ConstField(x), ConstField(y)) => equal("a field", x, y),
            (Size(x), Size(y)) => equal("a size", x, y),
            (Load { field: x, site: s, .. }, Load { field: y, site: t, .. }) => {
                equal("a field", x, y)?;
                self.site(*s, *t)
            }
            (LoadLocal { local: x, site: s, .. }, LoadLocal { local: y, site: t, .. }) => {
                self.local(*x, *y)?;
                self.site(*s, *t)
            }
            (Unary { op: x, .. }, Unary { op: y, .. }) => equal("an operator", x, y),
            (Binary { op: x, site: s, .. }, Binary { op: y, site: t, .. }) => {
                equal("an operator", x, y)?;
                match (s, t) {
                    (Some(s), Some(t)) => self.site(*s, *t),
                    (s, t) => equal("a check", s.is_some(), t.is_some()),
                }
            }
            (x, y) => equal("a form", std::mem::discriminant(x), std::mem::discriminant(y))
                .map_err(|_| format!("{x:?} and {y:?}")),
        }
    }

    fn block(&mut self, a: &StmtBlock, b: &StmtBlock) -> Result {
        for (n, (x, y)) in a.iter().zip(b).enumerate() {
            self.stmt(x, y).map_err(|e| format!("{n}: {e}"))?;
        }
        if a.len() == b.len() { Ok(()) } else { Err(format!("{} and {} statements: {a:?}\n{b:?}", a.len(), b.len())) }
    }

    fn label(&mut self, a: Label, b: Label) -> Result {
        equal("a label", *self.labels.entry(a).or_insert(b), b)
    }

    fn stmt(&mut self, a: &Stmt, b: &Stmt) -> Result {
        use Stmt::*;
        match (a, b) {
            (Set { local: l, value: x }, Set { local: m, value: y })
            | (Fill { local: l, value: x }, Fill { local: m, value: y }) => {
                self.expr(*x, *y)?;
                self.local(*l, *m)
            }
            (
                StoreLocal { local: l, index: i, value: x, site: s },
                StoreLocal { local: m, index: j, value: y, site: t },
            ) => {
                self.exprs(i, j)?;
                self.expr(*x, *y)?;
                self.local(*l, *m)?;
                self.site(*s, *t)
            }
            (Store { field: l, index: i, value: x, site: s }, Store { field: m, index: j, value: y, site: t }) => {
                equal("a field", l, m)?;
                self.exprs(i, j)?;
                self.expr(*x, *y)?;
                self.site(*s, *t)
            }
            (
                For { var: l, lo, hi, step, label, body, site },
                For { var: m, lo: lo2, hi: hi2, step: step2, label: label2, body: body2, site: site2 },
            ) => {
                self.exprs(&[*lo, *hi], &[*lo2, *hi2])?;
                equal("a step", step, step2)?;
                self.local(*l, *m)?;
                self.label(*label, *label2)?;
                self.site(*site, *site2)?;
                self.block(body, body2)
            }
            (
                While { before, cond, label, body, site },
                While { before: before2, cond: cond2, label: label2, body: body2, site: site2 },
            ) => {
                self.block(before, before2)?;
                self.expr(*cond, *cond2)?;
                self.label(*label, *label2)?;
                self.site(*site, *site2)?;
                self.block(body, body2)
            }
            (If { cond, then, els }, If { cond: cond2, then: then2, els: els2 }) => {
                self.expr(*cond, *cond2)?;
                self.block(then, then2)?;
                self.block(els, els2)
            }
            (Labelled { label, body }, Labelled { label: label2, body: body2 }) => {
                self.label(*label, *label2)?;
                self.block(body, body2)
            }
            (Break(x), Break(y)) | (Continue(x), Continue(y)) => self.label(*x, *y),
            (Assert { cond, site }, Assert { cond: cond2, site: site2 }) => {
                self.expr(*cond, *cond2)?;
                self.site(*site, *site2)
            }
            (Return, Return) => Ok(()),
            (Reduce(r), Reduce(q)) => {
                equal("a reduction", (r.op, r.binders.len()), (q.op, q.binders.len()))?;
                for (x, y) in r.binders.iter().zip(&q.binders) {
                    self.exprs(&[x.lo, x.hi], &[y.lo, y.hi])?;
                    equal("a step", x.step, y.step)?;
                    self.local(x.var, y.var)?;
                }
                self.block(&r.filter_before, &q.filter_before)?;
                let list = |e: Option<ExprId>| e.into_iter().collect::<Vec<_>>();
                self.exprs(&list(r.filter), &list(q.filter))?;
                self.block(&r.before, &q.before)?;
                self.expr(r.value, q.value)?;
                let factors = |f: Option<(ExprId, ExprId)>| f.into_iter().flat_map(|(x, y)| [x, y]).collect::<Vec<_>>();
                self.exprs(&factors(r.factors), &factors(q.factors))?;
                self.site(r.site, q.site)?;
                self.site(r.iterations, q.iterations)?;
                self.local(r.dst, q.dst)
            }
            (Amp(x), Amp(y)) => {
                equal("first", x.first, y.first)?;
                self.site(x.site, y.site)?;
                [(&x.c, &y.c), (&x.a, &y.a), (&x.b, &y.b)].into_iter().try_for_each(|(m, n)| self.matrix(m, n))
            }
            (a, b) => Err(format!("{a:?} and {b:?}")),
        }
    }

    fn matrix(&mut self, m: &Matrix, n: &Matrix) -> Result {
        match (m.base, n.base) {
            (Storage::Local(x), Storage::Local(y)) => self.local(x, y)?,
            (x, y) => equal("a base", x, y)?,
        }
        self.exprs(&m.at, &n.at)?;
        equal("rows", (m.row_dim, m.row_step), (n.row_dim, n.row_step))?;
        equal("columns", (m.col_dim, m.col_step), (n.col_dim, n.col_step))?;
        self.exprs(&[m.rows, m.cols], &[n.rows, n.cols])?;
        equal("axes", m.outer.len(), n.outer.len())?;
        for (x, y) in m.outer.iter().zip(&n.outer) {
            equal("an axis", (x.dim, x.step), (y.dim, y.step))?;
            self.expr(x.len, y.len)?;
        }
        Ok(())
    }
}
