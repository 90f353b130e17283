//! The nodes that the actions of the grammar build, one function for each shape that several rules share.

use super::Builder;
use crate::ast::*;
use crate::token::{Lexeme, Number, number, numbers, unquote};
use girder_source::{Diagnostic, Span};
use smol_str::SmolStr;

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

    /// Adds the numbers of a list.
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

    /// Returns a list of integers or of tuples of them: that of a token, which the first element precedes.
    pub fn integers(&mut self, before: Vec<ExprId>, l: Lexeme, span: Span) -> ExprId {
        if let (Some(list), 1) = (self.integers.next(), before.len()) {
            return self.expr(ExprKind::Integers(Box::new(list)), span);
        }
        // The parser then reads them one by one.
        let message = "these integers do not follow the first of their list";
        self.problems.push(Diagnostic::error("syntax::unexpected", l.span, message));
        self.expr(ExprKind::Error, span)
    }

    /// Returns the value of a string token.
    pub fn string(&self, l: Lexeme) -> SmolStr {
        unquote(self.text(l.span))
    }

    /// Builds a chain of operands and operators by precedence; equal ones group from the left.
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

    /// Returns `op value`.
    pub fn unary(&mut self, op: UnaryOp, sign: Lexeme, value: ExprId) -> ExprId {
        let span = sign.span.to(self.span(value));
        self.expr(ExprKind::Unary { op, value }, span)
    }

    /// Returns `start..end by step`.
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

    /// Returns an open range as an index.
    pub fn open(&self, start: Option<ExprId>, dots: Lexeme, end: Option<ExprId>, by: Option<ExprId>) -> Index {
        let ends = [start, end, by].into_iter().flatten();
        let span = ends.fold(dots.span, |s, e| s.to(self.span(e)));
        Index::Open { start, end, by, span }
    }

    /// Returns the dimensions `..e`.
    pub fn spread(&self, e: ExprId) -> Dim {
        let expr = &self.exprs[e.as_u32() as usize];
        match &expr.kind {
            ExprKind::Name(name) => Dim::Spread(Ident { name: name.clone(), span: expr.span }),
            _ => Dim::Shape(e),
        }
    }

    /// Appends a part to a dotted name.
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

    /// Returns `target op value;`.
    pub fn assign(&mut self, target: ExprId, op: AssignOp, value: ExprId, semi: Lexeme) -> StmtId {
        let span = self.span(target).to(semi.span);
        self.stmt(StmtKind::Assign { op, target, value }, span)
    }

    /// Adds a closure whose first word is `fn`.
    pub fn closure(&mut self, word: Lexeme, f: Fn) -> ExprId {
        let span = word.span.to(f.body.span);
        self.expr(ExprKind::Fn(Box::new(f)), span)
    }

    /// Builds `repeat index in range body`. The grammar accepts any postfix expression as the index; it must be a plain
    /// name.
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

    /// Returns an expression `a.b.c` as a name.
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

/// Unboxes values that were boxed to keep the parser's stack small.
pub fn unboxed<T>(list: Vec<Box<T>>) -> Vec<T> {
    list.into_iter().map(|item| *item).collect()
}

/// Builds `codelet` and `multi codelet`, without attributes; `first` is the first word.
pub fn codelet(first: Lexeme, multi: bool, codelet: Codelet) -> Item {
    let span = first.span.to(codelet.body.span);
    Item { attrs: vec![], kind: ItemKind::Codelet(Codelet { multi, ..codelet }), span }
}

/// Builds `fn` and `codelet fn`, without attributes; `first` is the first word.
pub fn function(first: Lexeme, codelet: bool, function: Fn) -> Item {
    let span = first.span.to(function.body.span);
    Item { attrs: vec![], kind: ItemKind::Fn(Fn { codelet, ..function }), span }
}

/// Builds a closure without parameters. A closure has no name of its own; messages and paths call it `closure`.
pub fn closure(first: Lexeme, body: Body) -> Fn {
    let name = Ident { name: "closure".into(), span: first.span };
    let name = Path { span: name.span, parts: vec![name] };
    Fn { codelet: false, name, generics: vec![], params: vec![], result: None, body }
}

/// Returns the span of a declaration.
pub fn decl_span(decl: &Decl) -> Span {
    match decl {
        Decl::Let(l) => l.span,
        Decl::Var(v) => v.span,
        Decl::Map { span, .. } => *span,
    }
}
