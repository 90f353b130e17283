//! Nodes that move to a later place of the arenas: what they name moves with them.
//!
//! Invariant: every id inside a node is met once.

use super::*;

/// How many nodes come to stand before those that move.
pub struct Shift {
    /// Expressions.
    pub exprs: u32,
    /// Statements.
    pub stmts: u32,
}

impl Shift {
    /// An expression.
    pub fn expr(&self, expr: &mut Expr) {
        use ExprKind::*;
        match &mut expr.kind {
            Name(_) | Int { .. } | Float { .. } | Str(_) | Bool(_) | Error => {}
            Paren(e) | Field { base: e, .. } | Unary { value: e, .. } => self.id(e),
            Tuple(args) => self.args(args),
            List(list) => list.iter_mut().for_each(|e| self.id(e)),
            Fill { value: a, count: b } | Binary { left: a, right: b, .. } => self.ids([a, b]),
            Call { callee, args } => {
                self.id(callee);
                self.args(args);
            }
            Index { base, index } => {
                self.id(base);
                index.iter_mut().for_each(|i| self.index(i));
            }
            Range { start, end, by, closed: _ } => self.ids([start, end].into_iter().chain(by)),
            Reduce(r) => {
                self.binders(&mut r.binders);
                self.ids(&mut r.filter);
                self.body(&mut r.body);
            }
            Block(body) => self.body(body),
            If { cond, then, els } => {
                self.ids([cond].into_iter().chain(els));
                self.body(then);
            }
            On { place: e, body, stage: _ } | With { mode: e, body } => {
                self.id(e);
                self.body(body);
            }
            Pipeline { args, body } => {
                self.args(args);
                self.body(body);
            }
            Switch { on, arms } => {
                self.id(on);
                for arm in arms {
                    self.ids(arm.keys.iter_mut().flatten());
                    self.body(&mut arm.body);
                }
            }
        }
    }

    /// A statement.
    pub fn stmt(&self, stmt: &mut Stmt) {
        use StmtKind::*;
        self.attrs(&mut stmt.attrs);
        match &mut stmt.kind {
            Decl(decl) => self.decl(decl),
            Expr { expr, semi: _ } => self.id(expr),
            Assign { op: _, target, value } => self.ids([target, value]),
            For { binders, body } => {
                self.binders(binders);
                self.body(body);
            }
            While { cond: e, body } | Repeat { range: e, body, index: _ } => {
                self.id(e);
                self.body(body);
            }
            Return(value) => self.ids(value),
            Compute { name: _, vertices } => vertices.iter_mut().for_each(|v| self.vertex_item(v)),
            Copy { name: _, copies } => copies.iter_mut().for_each(|c| self.copy_item(c)),
            Par(body) => self.body(body),
            Call { name: _, args } => self.args(args),
            Break | Continue | Execute(_) | Exchange(_) | Error => {}
        }
    }

    /// A statement's id.
    pub fn stmt_id(&self, s: &mut StmtId) {
        *s = StmtId::from_u32(s.as_u32() + self.stmts);
    }

    /// What stands in a compute set.
    pub fn vertex_item(&self, item: &mut VertexItem) {
        match item {
            VertexItem::Vertex(v) => {
                self.attrs(&mut v.attrs);
                self.ids(&mut v.generics);
                self.args(&mut v.args);
                v.place.iter_mut().for_each(|p| self.place(p));
                self.binders(&mut v.family);
            }
            VertexItem::Let(l) => self.binding(l),
            VertexItem::For { binders, body, span: _ } => {
                self.binders(binders);
                body.iter_mut().for_each(|v| self.vertex_item(v));
            }
            VertexItem::If { cond, then, els, span: _ } => {
                self.id(cond);
                then.iter_mut().chain(els.iter_mut().flatten()).for_each(|v| self.vertex_item(v));
            }
        }
    }

    fn id(&self, e: &mut ExprId) {
        *e = ExprId::from_u32(e.as_u32() + self.exprs);
    }

    fn ids<'e>(&self, ids: impl IntoIterator<Item = &'e mut ExprId>) {
        ids.into_iter().for_each(|e| self.id(e));
    }

    fn args(&self, args: &mut [Arg]) {
        args.iter_mut().for_each(|a| self.id(&mut a.value));
    }

    fn attrs(&self, attrs: &mut [Attr]) {
        attrs.iter_mut().flat_map(|a| &mut a.args).for_each(|args| self.args(args));
    }

    fn index(&self, index: &mut Index) {
        match index {
            Index::Expr(e) => self.id(e),
            Index::Rest(_) => {}
            Index::Open { start, end, by, span: _ } => self.ids([start, end, by].into_iter().flatten()),
        }
    }

    fn binders(&self, binders: &mut [Binder]) {
        binders.iter_mut().for_each(|b| self.id(&mut b.range));
    }

    fn body(&self, body: &mut Body) {
        body.stmts.iter_mut().for_each(|s| self.stmt_id(s));
        self.ids(&mut body.value);
    }

    fn decl(&self, decl: &mut Decl) {
        match decl {
            Decl::Let(l) => self.binding(l),
            Decl::Var(v) => {
                self.ty(&mut v.ty);
                self.ids(&mut v.init);
                v.place.iter_mut().for_each(|p| self.place(p));
            }
            Decl::Map { view, place, family, span: _ } => {
                self.id(view);
                self.place(place);
                self.binders(family);
            }
        }
    }

    fn binding(&self, l: &mut Let) {
        l.ty.iter_mut().for_each(|t| self.ty(t));
        self.id(&mut l.value);
    }

    fn ty(&self, ty: &mut Type) {
        match &mut ty.kind {
            TypeKind::Name { name: _, dims } => {
                for d in dims.iter_mut().flatten() {
                    match d {
                        Dim::Expr(e) => self.id(e),
                        Dim::Spread(_) => {}
                    }
                }
            }
            TypeKind::List(inner) => self.ty(inner),
            TypeKind::Tuple(parts) => parts.iter_mut().for_each(|p| self.ty(&mut p.1)),
        }
    }

    fn place(&self, place: &mut Place) {
        match place {
            Place::Expr(e) => self.id(e),
            Place::Table(table) => self.table(table),
        }
    }

    fn table(&self, table: &mut Table) {
        for row in &mut table.rows {
            match row {
                TableRow::Row { key, values, to, family, span: _ } => {
                    self.ids([key].into_iter().chain(to));
                    self.args(values);
                    self.binders(family);
                }
                TableRow::On { place, table } => {
                    self.id(place);
                    self.table(table);
                }
            }
        }
    }

    fn copy_item(&self, item: &mut CopyItem) {
        match item {
            CopyItem::Copy { dst, src, family, span: _ } => {
                self.ids([dst, src]);
                self.binders(family);
            }
            CopyItem::For { binders, body, span: _ } => {
                self.binders(binders);
                body.iter_mut().for_each(|c| self.copy_item(c));
            }
        }
    }
}
