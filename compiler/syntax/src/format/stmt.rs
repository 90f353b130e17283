//! Bodies and their statements, compute sets and copies.
//!
//! Invariant: a statement starts on a line of its own or follows another on the one line of its body.

use super::Printer;
use super::block::{Braces, Brackets};
use super::expr::{ADD, BLOCK, OR, POSTFIX, RANGE, is_block};
use crate::ast::*;
use girder_source::Span;

/// An element of a body.
#[derive(Clone, Copy)]
enum Element {
    Stmt(StmtId),
    Value(ExprId),
}

impl Printer<'_> {
    /// Writes `{ statements value }`.
    pub fn body(&mut self, body: &Body) {
        let stmts = body.stmts.iter().map(|s| Element::Stmt(*s));
        let elements: Vec<Element> = stmts.chain(body.value.map(Element::Value)).collect();
        let lo = |p: &Self, e: &Element| match *e {
            Element::Stmt(s) => p.module.stmts[s].span.lo,
            Element::Value(e) => p.lo(e),
        };
        self.block(Braces { hi: body.span.hi, most: 1 }, &elements, lo, |p, e| match *e {
            Element::Stmt(s) => p.stmt(s),
            Element::Value(e) => p.expr(e, BLOCK),
        });
    }

    fn stmt(&mut self, s: StmtId) {
        if self.line.has_failed() {
            return;
        }
        let module = self.module;
        let stmt = &module.stmts[s];
        self.attrs(&stmt.attrs, false);
        self.group(|p| p.stmt_now(stmt));
    }

    fn stmt_now(&mut self, stmt: &Stmt) {
        let hi = stmt.span.hi;
        match &stmt.kind {
            StmtKind::Decl(decl) => self.decl(decl),
            StmtKind::Expr { expr, .. } => self.expr_stmt(*expr),
            StmtKind::Assign { op, target, value } => self.assign(*op, *target, *value),
            StmtKind::For { binders, body } => {
                self.word("for ");
                self.reserving(2, |p| p.binders(binders));
                self.word(" ");
                self.body(body);
            }
            StmtKind::While { cond, body } => {
                self.word("while ");
                self.reserving(2, |p| p.expr(*cond, BLOCK));
                self.word(" ");
                self.body(body);
            }
            StmtKind::Repeat { index, range, body } => self.repeat(index.as_ref(), *range, body),
            StmtKind::Return(None) => self.word("return;"),
            StmtKind::Return(Some(value)) => {
                self.word("return ");
                self.reserving(1, |p| p.expr(*value, BLOCK));
                self.word(";");
            }
            StmtKind::Break => self.word("break;"),
            StmtKind::Continue => self.word("continue;"),
            StmtKind::Compute { name, vertices } => {
                self.word("compute ");
                self.name_before_brace(name.as_ref());
                self.vertices(vertices, hi);
            }
            StmtKind::Copy { name, copies } => {
                self.word("copy ");
                self.name_before_brace(name.as_ref());
                self.copies(copies, hi);
            }
            StmtKind::Par(body) => {
                self.word("par ");
                self.body(body);
            }
            StmtKind::Call { name, args } => {
                self.word("call ");
                self.path(name);
                if !args.is_empty() {
                    self.reserving(1, |p| p.args(args, hi));
                }
                self.word(";");
            }
            StmtKind::Execute(name) => self.named("execute ", name),
            StmtKind::Exchange(name) => self.named("exchange ", name),
            StmtKind::Error => self.verbatim(stmt.span),
        }
    }

    /// Writes an expression statement, with a semicolon unless it is a block form, even if the tree was built in memory
    /// otherwise.
    fn expr_stmt(&mut self, e: ExprId) {
        if is_block(&self.module.exprs[e].kind) {
            return self.expr(e, BLOCK);
        }
        self.reserving(1, |p| p.expr(e, RANGE));
        self.word(";");
    }

    fn assign(&mut self, op: AssignOp, target: ExprId, value: ExprId) {
        self.reserving(3, |p| p.expr(target, POSTFIX));
        let (operator, sign) = match op {
            AssignOp::Write => ("", "<-"),
            AssignOp::Set => ("", "="),
            AssignOp::With(op) => (op.token(), "="),
        };
        [" ", operator, sign, " "].into_iter().for_each(|part| self.word(part));
        self.reserving(1, |p| p.expr(value, BLOCK));
        self.word(";");
    }

    fn repeat(&mut self, index: Option<&Path>, range: ExprId, body: &Body) {
        self.word("repeat ");
        if let Some(index) = index {
            self.path(index);
            self.word(" in ");
        }
        self.reserving(2, |p| p.expr(range, RANGE));
        self.word(" ");
        self.body(body);
    }

    fn named(&mut self, word: &str, name: &Path) {
        self.word(word);
        self.path(name);
        self.word(";");
    }

    fn name_before_brace(&mut self, name: Option<&Path>) {
        if let Some(name) = name {
            self.path(name);
            self.word(" ");
        }
    }

    /// Writes the contents of a compute set; `hi` is one past its brace.
    pub fn vertices(&mut self, vertices: &[VertexItem], hi: u32) {
        let module = self.module;
        let mut each: Vec<&VertexItem> = vec![];
        for item in vertices {
            match item {
                VertexItem::Repeated(id) => each.extend(module.exprs.others(*id)),
                item => each.push(item),
            }
        }
        let lo = |p: &Self, v: &&VertexItem| p.item_span(v).lo;
        self.block(Braces { hi, most: 1 }, &each, lo, |p, v| match v {
            VertexItem::Vertex(v) => {
                p.attrs(&v.attrs, false);
                p.group(|p| p.vertex(v));
            }
            VertexItem::Let(l) => p.group(|p| p.let_decl(l)),
            VertexItem::For { binders, body, span } => p.group(|p| {
                p.word("for ");
                p.reserving(2, |p| p.binders(binders));
                p.word(" ");
                p.vertices(body, span.hi);
            }),
            VertexItem::If { .. } => p.group(|p| p.vertex_if(v)),
            // Expanded above.
            VertexItem::Repeated(_) => {}
        });
    }

    fn item_span(&self, item: &VertexItem) -> Span {
        match item {
            VertexItem::Vertex(v) => v.span,
            VertexItem::Repeated(id) => self.module.exprs.repeated(*id).whole(),
            VertexItem::Let(l) => l.span,
            VertexItem::For { span, .. } | VertexItem::If { span, .. } => *span,
        }
    }

    /// Writes a vertex; over several lines, each field has its own, and the place follows the parenthesis.
    fn vertex(&mut self, vertex: &Vertex) {
        self.word("vertex ");
        self.path(&vertex.codelet);
        if let Some(&first) = vertex.generics.first() {
            let negative = matches!(self.module.exprs[first].kind, ExprKind::Unary { op: UnaryOp::Neg, .. });
            // `<-` would be one token.
            self.word(if negative { "< " } else { "<" });
            for (i, e) in vertex.generics.iter().enumerate() {
                self.word(if i > 0 { ", " } else { "" });
                self.expr(*e, ADD);
            }
            self.word(">");
        }
        // There is no gap for comments after the arguments, so their comments end at the place.
        let args_end = match &vertex.place {
            Some(Place::Expr(e)) => self.lo(*e),
            Some(Place::Table(t)) => t.span.lo,
            None => match (vertex.within, vertex.family.first()) {
                (Some(e), _) => self.lo(e),
                (None, family) => family.map_or(vertex.span.hi, |b| b.span.lo),
            },
        };
        self.list(Brackets { open: "(", close: ")", hi: args_end }, &vertex.args, Self::arg_lo, Self::arg);
        self.place(vertex.place.as_ref());
        self.within(vertex.within);
        self.family(&vertex.family);
        self.word(";");
    }

    fn vertex_if(&mut self, mut item: &VertexItem) {
        while let VertexItem::If { cond, then, els, span } = item {
            self.word("if ");
            self.reserving(2, |p| p.expr(*cond, BLOCK));
            self.word(" ");
            let Some(els) = els else { return self.vertices(then, span.hi) };
            let hi = self.then_end(*cond, then);
            self.vertices(then, hi);
            self.word(" else ");
            match &els[..] {
                // `else { if … }` and `else if …` have the same tree and meaning.
                [next @ VertexItem::If { .. }] => item = next,
                _ => return self.vertices(els, span.hi),
            }
        }
    }

    /// Returns the offset after the brace that closes the first body of an `if`.
    fn then_end(&self, cond: ExprId, then: &[VertexItem]) -> u32 {
        let last = match then.last() {
            None => return self.find_after(self.find_after(self.module.exprs[cond].span.hi, '{'), '}'),
            Some(item) => self.item_span(item).hi,
        };
        self.find_after(last, '}')
    }

    /// Writes the contents of a copy; `hi` is one past its brace.
    pub fn copies(&mut self, copies: &[CopyItem], hi: u32) {
        let lo = |_: &Self, c: &CopyItem| match c {
            CopyItem::Copy { span, .. } | CopyItem::For { span, .. } => span.lo,
        };
        self.block(Braces { hi, most: 1 }, copies, lo, |p, c| match c {
            CopyItem::Copy { dst, src, family, .. } => p.group(|p| {
                p.reserving(3, |p| p.expr(*dst, POSTFIX));
                p.word(" <- ");
                p.reserving(1, |p| p.expr(*src, RANGE));
                p.family(family);
                p.word(";");
            }),
            CopyItem::For { binders, body, span } => p.group(|p| {
                p.word("for ");
                p.reserving(2, |p| p.binders(binders));
                p.word(" ");
                p.copies(body, span.hi);
            }),
        });
    }

    /// Writes `for i in 0..n` after a statement.
    pub fn family(&mut self, family: &[Binder]) {
        if !family.is_empty() {
            self.word(" for ");
            self.binders(family);
        }
    }

    /// Writes ` within place`.
    pub fn within(&mut self, place: Option<ExprId>) {
        if let Some(e) = place {
            self.word(" within ");
            self.reserving(1, |p| p.expr(e, OR));
        }
    }

    /// Writes ` on place`.
    pub fn place(&mut self, place: Option<&Place>) {
        match place {
            None => {}
            Some(Place::Expr(e)) => {
                self.word(" on ");
                self.reserving(1, |p| p.expr(*e, OR));
            }
            Some(Place::Table(table)) => {
                self.word(" on ");
                self.group(|p| p.table(table));
            }
        }
    }
}
