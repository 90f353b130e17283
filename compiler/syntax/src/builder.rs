//! What the grammar's actions build: the arenas of one module, and what the actions themselves find wrong.
//!
//! Invariant: no chain of expressions and statements is deeper than the nesting limit, so recursion over the tree is
//! safe; what would be deeper is an `Error` node, reported once for each item. Left operands of operators of one
//! precedence count once, however many: whoever walks the tree descends them in a loop.

use crate::ast::*;
use crate::token::numbers;
use crate::token::repeated::Run;
use crate::token::{Lexeme, Number, number, unquote};
use girder_source::{Diagnostic, Span};
use smol_str::SmolStr;

/// What one call of the generated parser returns.
#[derive(Debug)]
pub enum Entry {
    /// `module …;`
    Header(Header),
    /// Anything else.
    Item(Item),
}

/// The arenas while a file is parsed.
pub struct Builder<'s> {
    text: &'s str,
    base: u32,
    limit: u32,
    /// All expressions so far, with the depth of each.
    pub exprs: Vec<Expr>,
    depths: Vec<u32>,
    /// All statements so far, with the depth of each.
    pub stmts: Vec<Stmt>,
    stmt_depths: Vec<u32>,
    /// What the actions found wrong in the item at hand.
    pub problems: Vec<Diagnostic>,
    /// What the `alike` tokens that come stand for.
    runs: std::vec::IntoIter<Run>,
    /// Those that were met.
    pub repeated: Vec<RepeatedStatements>,
}

/// A state of a [`Builder`] that it can go back to.
pub struct Mark {
    exprs: usize,
    stmts: usize,
}

impl<'s> Builder<'s> {
    /// Starts a file; `base` is the global offset of its first byte.
    pub fn new(text: &'s str, base: u32, limit: u32, runs: Vec<Run>) -> Builder<'s> {
        let (exprs, stmts, repeated, problems) = (vec![], vec![], vec![], vec![]);
        let (depths, stmt_depths, runs) = (vec![], vec![], runs.into_iter());
        Builder { text, base, limit, exprs, depths, stmts, stmt_depths, problems, runs, repeated }
    }

    /// Returns the present state.
    pub fn mark(&self) -> Mark {
        Mark { exprs: self.exprs.len(), stmts: self.stmts.len() }
    }

    /// Forgets all that was built and found since `mark`.
    pub fn back_to(&mut self, mark: &Mark) {
        self.exprs.truncate(mark.exprs);
        self.depths.truncate(mark.exprs);
        self.stmts.truncate(mark.stmts);
        self.stmt_depths.truncate(mark.stmts);
        self.problems.clear();
    }

    /// Adds what is like the statement before it.
    pub fn put_repeated(&mut self, at: Lexeme, out: &mut Vec<VertexItem>) {
        let run = self.runs.next().filter(|r| r.span == at.span);
        let all = match (out.last(), run) {
            (Some(VertexItem::Vertex(like)), Some(run)) => {
                RepeatedStatements::new(like, run, &self.exprs, self.repeated.last())
            }
            _ => None,
        };
        match all {
            Some(all) => {
                out.push(VertexItem::Repeated(RepeatedId::from_u32(self.repeated.len() as u32)));
                self.repeated.push(all);
            }
            // The parser then takes them one by one.
            None => self.problems.push(Diagnostic::error("syntax::unexpected", at.span, "these are not alike")),
        }
    }

    fn text(&self, span: Span) -> &'s str {
        // What the parser put in itself has an empty span.
        let (lo, hi) = (span.lo.saturating_sub(self.base), span.hi.saturating_sub(self.base));
        self.text.get(lo as usize..hi as usize).unwrap_or("")
    }

    /// Returns the span of an expression.
    pub fn span(&self, e: ExprId) -> Span {
        self.exprs[e.as_u32() as usize].span
    }

    /// Adds an expression.
    pub fn expr(&mut self, kind: ExprKind, span: Span) -> ExprId {
        let depth = 1 + self.children(&kind);
        let (kind, depth) = if depth > self.limit {
            self.too_deep(span, "expression");
            (ExprKind::Error, 1)
        } else {
            (kind, depth)
        };
        self.exprs.push(Expr { kind, span });
        self.depths.push(depth);
        ExprId::from_u32(self.exprs.len() as u32 - 1)
    }

    /// Adds a statement.
    pub fn stmt(&mut self, kind: StmtKind, span: Span) -> StmtId {
        let depth = 1 + self.stmt_children(&kind);
        let (kind, depth) = if depth > self.limit {
            self.too_deep(span, "statement");
            (StmtKind::Error, 1)
        } else {
            (kind, depth)
        };
        self.stmts.push(Stmt { attrs: vec![], kind, span });
        self.stmt_depths.push(depth);
        StmtId::from_u32(self.stmts.len() as u32 - 1)
    }

    fn too_deep(&mut self, span: Span, what: &str) {
        if self.problems.iter().all(|p| p.code != "syntax::nesting") {
            self.problems.push(nesting(span, what, self.limit));
        }
    }

    /// Puts attributes before a statement.
    pub fn attrs(&mut self, attrs: Vec<Attr>, s: StmtId) -> StmtId {
        let stmt = &mut self.stmts[s.as_u32() as usize];
        stmt.span = attrs.first().map_or(stmt.span, |a| a.span.to(stmt.span));
        stmt.attrs = attrs;
        s
    }

    /// Returns the depth of the deepest child.
    fn children(&self, kind: &ExprKind) -> u32 {
        use ExprKind::*;
        let d = |e: &ExprId| self.depth(*e);
        match kind {
            Name(_) | Int { .. } | Float { .. } | Str(_) | Bool(_) | Error => 0,
            Paren(e) | Field { base: e, .. } | Unary { value: e, .. } => d(e),
            Tuple(args) => self.args(args),
            List(list) => list.iter().map(d).max().unwrap_or(0),
            Fill { value: a, count: b } => d(a).max(d(b)),
            Binary { op, left, right } => self.left_depth(*op, *left).max(d(right)),
            Call { callee, args } => d(callee).max(self.args(args)),
            Index { base, index } => d(base).max(index.iter().map(|i| self.index(i)).max().unwrap_or(0)),
            Range { start, end, by, .. } => d(start).max(d(end)).max(by.as_ref().map_or(0, d)),
            Reduce(r) => self.binders(&r.binders).max(r.filter.as_ref().map_or(0, d)).max(self.body(&r.body)),
            Block(body) => self.body(body),
            If { cond, then, els } => d(cond).max(self.body(then)).max(els.as_ref().map_or(0, d)),
            On { place: e, body, .. } | With { mode: e, body } => d(e).max(self.body(body)),
            Pipeline { args, body } => self.args(args).max(self.body(body)),
            Switch { on, arms } => arms.iter().map(|a| self.body(&a.body)).max().unwrap_or(0).max(d(on)),
        }
    }

    fn stmt_children(&self, kind: &StmtKind) -> u32 {
        use StmtKind::*;
        match kind {
            Expr { expr, .. } | Return(Some(expr)) => self.depth(*expr),
            Assign { target, value, .. } => self.depth(*target).max(self.depth(*value)),
            For { binders, body } => self.binders(binders).max(self.body(body)),
            While { cond: e, body } | Repeat { range: e, body, .. } => self.depth(*e).max(self.body(body)),
            Par(body) => self.body(body),
            Call { args, .. } => self.args(args),
            // What nests without expressions nests by brackets, which are bounded before the grammar sees them.
            _ => 0,
        }
    }

    /// Returns what the left operand of an operator adds to its depth: a chain `a + b + …` is as deep as its deepest operand.
    fn left_depth(&self, op: BinaryOp, left: ExprId) -> u32 {
        let depth = self.depth(left);
        match &self.exprs[left.as_u32() as usize].kind {
            ExprKind::Binary { op: other, .. } if other.precedence() == op.precedence() => depth - 1,
            _ => depth,
        }
    }

    fn depth(&self, e: ExprId) -> u32 {
        self.depths[e.as_u32() as usize]
    }

    fn args(&self, args: &[Arg]) -> u32 {
        args.iter().map(|a| self.depth(a.value)).max().unwrap_or(0)
    }

    fn binders(&self, binders: &[Binder]) -> u32 {
        binders.iter().map(|b| self.depth(b.range)).max().unwrap_or(0)
    }

    fn index(&self, index: &Index) -> u32 {
        match index {
            Index::Expr(e) => self.depth(*e),
            Index::Rest(_) => 0,
            Index::Open { start, end, by, .. } => {
                [start, end, by].into_iter().flatten().map(|e| self.depth(*e)).max().unwrap_or(0)
            }
        }
    }

    fn body(&self, body: &Body) -> u32 {
        let stmts = body.stmts.iter().map(|s| self.stmt_depths[s.as_u32() as usize]).max().unwrap_or(0);
        stmts.max(body.value.map_or(0, |e| self.depth(e)))
    }
}

/// Returns the report for what nests too deep.
pub fn nesting(span: Span, what: &str, limit: u32) -> Diagnostic {
    Diagnostic::error("syntax::nesting", span, format!("this {what} nests deeper than {limit} levels"))
        .help("split it: name parts of it with `let`, or allow more with `--limit nesting=…`")
}

/// The shapes that several rules of the grammar share.
impl Builder<'_> {
    /// Returns an identifier token.
    pub fn ident(&self, l: Lexeme) -> Ident {
        Ident { name: self.text(l.span).into(), span: l.span }
    }

    /// Returns a word of the grammar that is the name of a type.
    pub fn word(&self, l: Lexeme) -> Path {
        Path { span: l.span, parts: vec![self.ident(l)] }
    }

    /// Returns an integer token.
    pub fn int(&mut self, l: Lexeme) -> ExprId {
        let text = self.text(l.span);
        let value = if let Ok(Number::Int(v)) = number(text) { v } else { 0 };
        self.expr(ExprKind::Int { value, text: text.into() }, l.span)
    }

    /// Returns a float token.
    pub fn float(&mut self, l: Lexeme) -> ExprId {
        let text = self.text(l.span);
        let value = if let Ok(Number::Float(v)) = number(text) { v } else { 0.0 };
        self.expr(ExprKind::Float { value, text: text.into() }, l.span)
    }

    /// Numbers of a list.
    pub fn numbers(&mut self, l: Lexeme, out: &mut Vec<ExprId>) {
        let text = self.text(l.span);
        for (lo, hi) in numbers::each(text) {
            let sign = text[lo..].starts_with('-') as usize;
            let at = |lo: usize| Span::new(l.span.lo + lo as u32, l.span.lo + hi as u32);
            let digits = &text[lo + sign..hi];
            let kind = match number(digits) {
                Ok(Number::Float(value)) => ExprKind::Float { value, text: digits.into() },
                Ok(Number::Int(value)) => ExprKind::Int { value, text: digits.into() },
                Err(_) => ExprKind::Error,
            };
            let value = self.expr(kind, at(lo + sign));
            out.push(match sign {
                0 => value,
                _ => self.expr(ExprKind::Unary { op: UnaryOp::Neg, value }, at(lo)),
            });
        }
    }

    /// Returns the value of a string token.
    pub fn string(&self, l: Lexeme) -> SmolStr {
        unquote(self.text(l.span))
    }

    /// Operands and the operators between them, by precedence; equal ones from the left.
    pub fn chain(&mut self, (first, rest): (ExprId, Vec<(BinaryOp, Span, ExprId)>)) -> ExprId {
        // Left operands whose operator waits for its right one, loosest first.
        let mut open: Vec<(ExprId, BinaryOp)> = vec![];
        let mut last = first;
        for (op, at, operand) in rest {
            while let Some(&(left, before)) = open.last()
                && before.precedence() >= op.precedence()
            {
                if before.compares() && op.compares() {
                    self.chained_comparison(op, at);
                }
                open.pop();
                last = self.binary(before, left, last);
            }
            open.push((last, op));
            last = operand;
        }
        while let Some((left, op)) = open.pop() {
            last = self.binary(op, left, last);
        }
        last
    }

    fn chained_comparison(&mut self, op: BinaryOp, at: Span) {
        let what = format!("comparisons do not chain: `{}` follows another comparison", op.token());
        let d = Diagnostic::error("syntax::unexpected", at, what);
        self.problems.push(d.help("write `a < b && b < c`, or put one of them in parentheses"));
    }

    fn binary(&mut self, op: BinaryOp, left: ExprId, right: ExprId) -> ExprId {
        let span = self.span(left).to(self.span(right));
        self.expr(ExprKind::Binary { op, left, right }, span)
    }

    /// Returns `op value`
    pub fn unary(&mut self, op: UnaryOp, sign: Lexeme, value: ExprId) -> ExprId {
        let span = sign.span.to(self.span(value));
        self.expr(ExprKind::Unary { op, value }, span)
    }

    /// Returns `start..end by step`
    pub fn range(&mut self, start: ExprId, closed: bool, end: ExprId, by: Option<ExprId>) -> ExprId {
        let span = self.span(start).to(self.span(by.unwrap_or(end)));
        self.expr(ExprKind::Range { start, end, closed, by }, span)
    }

    /// Returns `( … )`: one unnamed value without a comma is a parenthesis.
    pub fn paren(&mut self, open: Lexeme, args: Vec<Arg>, comma: bool, close: Lexeme) -> ExprId {
        let kind = match &args[..] {
            [Arg { name: None, value }] if !comma => ExprKind::Paren(*value),
            _ => ExprKind::Tuple(args),
        };
        self.expr(kind, open.span.to(close.span))
    }

    /// Returns an open place of an index.
    pub fn open(&self, start: Option<ExprId>, dots: Lexeme, end: Option<ExprId>, by: Option<ExprId>) -> Index {
        let ends = [start, end, by].into_iter().flatten();
        let span = ends.fold(dots.span, |s, e| s.to(self.span(e)));
        Index::Open { start, end, by, span }
    }

    /// Returns a name grows by one part.
    pub fn dot(&self, mut path: Path, part: Ident) -> Path {
        path.span = path.span.to(part.span);
        path.parts.push(part);
        path
    }

    /// Returns a binder.
    pub fn binder(&self, pattern: Pattern, range: ExprId) -> Binder {
        let at = match &pattern {
            Pattern::Name(n) => n.span,
            Pattern::Wildcard(s) | Pattern::Tuple(_, s) => *s,
        };
        Binder { span: at.to(self.span(range)), pattern, range }
    }

    /// Returns a block form as a statement.
    pub fn block_stmt(&mut self, expr: ExprId) -> StmtId {
        let span = self.span(expr);
        self.stmt(StmtKind::Expr { expr, semi: false }, span)
    }

    /// Returns `target op value;`
    pub fn assign(&mut self, target: ExprId, op: AssignOp, value: ExprId, semi: Lexeme) -> StmtId {
        let span = self.span(target).to(semi.span);
        self.stmt(StmtKind::Assign { op, target, value }, span)
    }

    /// Returns `repeat index in range body`: the grammar takes any postfix expression as the index; it must be a plain name.
    pub fn repeat(&mut self, word: Lexeme, index: Option<ExprId>, range: ExprId, body: Body) -> StmtId {
        let span = word.span.to(body.span);
        let index = index.and_then(|e| {
            let path = self.dotted(e);
            if path.is_none() {
                let what = "the index of a `repeat` is not a name";
                let d = Diagnostic::error("syntax::unexpected", self.span(e), what);
                self.problems.push(d.help("write `repeat i in 0..n { … }`"));
            }
            path
        });
        self.stmt(StmtKind::Repeat { index, range, body }, span)
    }

    /// Returns `a.b.c` as a name.
    fn dotted(&self, mut e: ExprId) -> Option<Path> {
        let span = self.span(e);
        let mut parts = vec![];
        loop {
            let expr = &self.exprs[e.as_u32() as usize];
            match &expr.kind {
                ExprKind::Field { base, name } => {
                    parts.push(name.clone());
                    e = *base;
                }
                ExprKind::Name(name) => {
                    parts.push(Ident { name: name.clone(), span: expr.span });
                    parts.reverse();
                    return Some(Path { parts, span });
                }
                _ => return None,
            }
        }
    }
}

/// Returns what was boxed for the parser's stack.
pub fn unboxed<T>(list: Vec<Box<T>>) -> Vec<T> {
    list.into_iter().map(|item| *item).collect()
}

/// Returns `codelet` and `multi codelet`, without attributes; `first` is the first word.
pub fn codelet(first: Lexeme, multi: bool, codelet: Codelet) -> Item {
    let span = first.span.to(codelet.body.span);
    Item { attrs: vec![], kind: ItemKind::Codelet(Codelet { multi, ..codelet }), span }
}

/// Returns `fn` and `codelet fn`, without attributes; `first` is the first word.
pub fn function(first: Lexeme, codelet: bool, function: Fn) -> Item {
    let span = first.span.to(function.body.span);
    Item { attrs: vec![], kind: ItemKind::Fn(Fn { codelet, ..function }), span }
}

/// Returns the span of a declaration.
pub fn decl_span(decl: &Decl) -> Span {
    match decl {
        Decl::Let(l) => l.span,
        Decl::Var(v) => v.span,
        Decl::Map { span, .. } => *span,
    }
}
