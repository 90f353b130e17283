//! The actions of the grammar: they build the arenas of one module and report errors that the grammar cannot express.
//!
//! Invariant: no chain of expressions and statements is deeper than the nesting limit, so recursion over the tree is
//! safe; a deeper one becomes an `Error` node, reported once for each item. Left operands of operators of one
//! precedence count once, however many there are: code that walks the tree descends them in a loop.

mod shapes;

pub use shapes::{closure, codelet, decl_span, function, unboxed};

use crate::ast::*;
use crate::token::repeated::Repetitions;
use crate::token::{Lexeme, Token};
use girder_source::{Diagnostic, Span};

/// The result of one call of the generated parser.
#[derive(Debug)]
pub enum Entry {
    /// `module …;`
    Header(Header),
    /// An item.
    Item(Item),
}

/// The arenas of a file while it is parsed.
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
    /// Errors of the current item.
    pub problems: Vec<Diagnostic>,
    /// The runs for the `repeated` tokens still to come.
    runs: std::vec::IntoIter<Repetitions>,
    /// The lists of the `integers` tokens still to come.
    integers: std::vec::IntoIter<IntegerList>,
    /// The runs so far.
    pub repeated: Vec<RepeatedStatements>,
}

/// A state of a [`Builder`] to which it can return.
pub struct Mark {
    exprs: usize,
    stmts: usize,
}

impl<'s> Builder<'s> {
    /// Starts a file of some tokens; `base` is the global offset of its first byte.
    pub fn new(
        text: &'s str,
        base: u32,
        limit: u32,
        (runs, integers): (Vec<Repetitions>, Vec<IntegerList>),
        lexemes: &[Lexeme],
    ) -> Builder<'s> {
        // Room for all expressions, each of which has a token of its own: a long list does not move while it grows.
        let separates = |t: Token| t.closes() || matches!(t, Token::Comma | Token::Colon | Token::Semi);
        let most = lexemes.iter().filter(|l| !separates(l.token)).count();
        let (exprs, stmts, repeated, problems) = (Vec::with_capacity(most), vec![], vec![], vec![]);
        let (depths, stmt_depths) = (Vec::with_capacity(most), vec![]);
        let (runs, integers) = (runs.into_iter(), integers.into_iter());
        Builder { text, base, limit, exprs, depths, stmts, stmt_depths, problems, runs, integers, repeated }
    }

    /// Returns the current state.
    pub fn mark(&self) -> Mark {
        Mark { exprs: self.exprs.len(), stmts: self.stmts.len() }
    }

    /// Discards everything that was built and reported since `mark`.
    pub fn back_to(&mut self, mark: &Mark) {
        self.exprs.truncate(mark.exprs);
        self.depths.truncate(mark.exprs);
        self.stmts.truncate(mark.stmts);
        self.stmt_depths.truncate(mark.stmts);
        self.problems.clear();
    }

    /// Adds the statements that repeat the one before them.
    pub fn put_repeated(&mut self, at: Lexeme, out: &mut Vec<VertexItem>) {
        let like = match out.last() {
            Some(VertexItem::Vertex(like)) => Some(Like::Vertex(like.clone())),
            _ => None,
        };
        out.extend(self.repeated(at, like).map(VertexItem::Repeated));
    }

    /// Adds the rows that repeat the one before them.
    pub fn put_repeated_rows(&mut self, at: Lexeme, out: &mut Vec<TableRow>) {
        let like = match out.last() {
            Some(row @ TableRow::Row { family, .. }) if family.is_empty() => Some(Like::Row(Box::new(row.clone()))),
            _ => None,
        };
        out.extend(self.repeated(at, like).map(TableRow::Repeated));
    }

    fn repeated(&mut self, at: Lexeme, like: Option<Like>) -> Option<RepeatedId> {
        let run = self.runs.next().filter(|r| r.span == at.span);
        let all =
            like.zip(run).and_then(|(like, run)| RepeatedStatements::new(like, run, &self.exprs, self.repeated.last()));
        if let Some(all) = all {
            self.repeated.push(all);
            return Some(RepeatedId::from_u32(self.repeated.len() as u32 - 1));
        }
        // The parser then reads them one by one.
        let message = "these statements do not repeat the one before them";
        self.problems.push(Diagnostic::error("syntax::unexpected", at.span, message));
        None
    }

    fn text(&self, span: Span) -> &'s str {
        // Tokens inserted by the parser have an empty span.
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

    /// Adds attributes to a statement.
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
            // As deep as the entries would be one by one: a tuple, a sign and a number.
            Integers(_) => 3,
            Paren(e) | Field { base: e, .. } | Unary { value: e, .. } => d(e),
            Tuple(args) => self.args(args),
            List(list) => list.iter().map(d).max().unwrap_or(0),
            Fill { value: a, count: b } => d(a).max(d(b)),
            Binary { op, left, right } => self.left_depth(*op, *left).max(d(right)),
            Call { callee, args } => d(callee).max(self.args(args)),
            Index { base, index } => d(base).max(index.iter().map(|i| self.index(i)).max().unwrap_or(0)),
            Range { start, end, by, .. } => d(start).max(d(end)).max(by.as_ref().map_or(0, d)),
            Reduce(r) => self.binders(&r.binders).max(r.filter.as_ref().map_or(0, d)).max(self.body(&r.body)),
            Fn(f) => {
                let defaults = f.params.iter().filter_map(|p| p.default).map(|e| self.depth(e));
                self.body(&f.body).max(defaults.max().unwrap_or(0))
            }
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
            // Forms that nest without expressions nest by brackets, which are bounded before the grammar sees them.
            _ => 0,
        }
    }

    /// Returns the depth that the left operand of an operator contributes: a chain `a + b + …` is as deep as its
    /// deepest operand.
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

/// Returns the diagnostic for too deep nesting.
pub fn nesting(span: Span, what: &str, limit: u32) -> Diagnostic {
    Diagnostic::error("syntax::nesting", span, format!("this {what} nests deeper than {limit} levels"))
        .help("split it: name parts of it with `let`, or allow more with `--limit nesting=…`")
}
