//! Expressions.
//!
//! Invariant: parentheses that the tree lacks but the grammar needs are added, so the text of every tree parses to that
//! tree.

use super::Printer;
use super::block::{Braces, Brackets};
use crate::ast::*;
use crate::token::quote;
use std::fmt::Write as _;

/// The binding strength of a construct; a position of the grammar accepts constructs of at least some strength.
pub type Level = u8;
/// `if`, `{ … }` and other block forms.
pub const BLOCK: Level = 0;
/// `a..b`
pub const RANGE: Level = 1;
/// `a || b`
pub const OR: Level = 2;
/// `a | b`, an operand of a comparison.
const BIT_OR: Level = 5;
/// `a + b`
pub const ADD: Level = 9;
const UNARY: Level = 11;
/// `f(x)`, `a[i]`, `a.b`
pub const POSTFIX: Level = 12;
const PRIMARY: Level = 13;

fn binary_level(op: BinaryOp) -> Level {
    OR - 1 + op.precedence()
}

fn level(kind: &ExprKind) -> Level {
    use ExprKind::*;
    match kind {
        Block(_) | If { .. } | On { .. } | With { .. } | Pipeline { .. } | Switch { .. } => BLOCK,
        Range { .. } => RANGE,
        Binary { op, .. } => binary_level(*op),
        Unary { .. } => UNARY,
        Field { .. } | Call { .. } | Index { .. } => POSTFIX,
        _ => PRIMARY,
    }
}

/// Returns whether an expression is a block form, which is an operand only in parentheses.
pub fn is_block(kind: &ExprKind) -> bool {
    level(kind) == BLOCK
}

impl Printer<'_> {
    /// Returns the start of an expression; 0 in memory.
    pub fn lo(&self, e: ExprId) -> u32 {
        self.module.exprs[e].span.lo
    }

    /// Writes an expression where constructs that bind at least as tightly as `least` are accepted.
    pub fn expr(&mut self, e: ExprId, least: Level) {
        if self.line.has_failed() {
            return;
        }
        let module = self.module;
        let expr = &module.exprs[e];
        if level(&expr.kind) < least {
            self.word("(");
            self.reserving_more(1, |p| p.group(|p| p.expr_now(e, expr)));
            return self.word(")");
        }
        self.group(|p| p.expr_now(e, expr));
    }

    fn expr_now(&mut self, e: ExprId, expr: &Expr) {
        let hi = expr.span.hi;
        match &expr.kind {
            ExprKind::Name(name) => self.word(name),
            ExprKind::Int { text, .. } | ExprKind::Float { text, .. } => self.word(text),
            ExprKind::Str(value) => self.word(&quote(value)),
            ExprKind::Bool(value) => self.word(if *value { "true" } else { "false" }),
            ExprKind::Paren(inner) => {
                self.word("(");
                self.reserving_more(1, |p| p.expr(*inner, BLOCK));
                self.word(")");
            }
            ExprKind::Tuple(args) => self.tuple(args, hi),
            ExprKind::List(list) => self.list_expr(list, hi),
            ExprKind::Integers(list) => self.integers(list),
            ExprKind::Fill { value, count } => self.fill(*value, *count),
            ExprKind::Field { base, name } => {
                self.reserving_more(1 + name.name.len(), |p| p.expr(*base, POSTFIX));
                self.word(".");
                self.word(&name.name);
            }
            ExprKind::Call { callee, args } => {
                self.reserving(1, |p| p.expr(*callee, POSTFIX));
                self.group(|p| p.args(args, hi));
            }
            ExprKind::Index { base, index } => {
                self.reserving(1, |p| p.expr(*base, POSTFIX));
                self.group(|p| p.index(index, hi));
            }
            ExprKind::Unary { op, value } => self.unary(*op, *value),
            ExprKind::Binary { .. } => self.chain(e),
            ExprKind::Range { start, end, closed, by } => self.range(*start, *end, *closed, *by),
            ExprKind::Reduce(r) => self.reduce(&r.op, &r.binders, r.filter, &r.body),
            ExprKind::Fn(f) => self.closure(f),
            ExprKind::Error => self.verbatim(expr.span),
            _ => self.block_form(e, &expr.kind),
        }
    }

    /// Writes `{ … }`, `if`, `on`, `with`, `pipeline` or `switch`.
    fn block_form(&mut self, e: ExprId, kind: &ExprKind) {
        match kind {
            ExprKind::Block(body) => self.body(body),
            ExprKind::If { .. } => self.if_expr(e),
            ExprKind::On { stage, place, body } => {
                self.word(if *stage { "stage on " } else { "on " });
                self.reserving(2, |p| p.expr(*place, OR));
                self.word(" ");
                self.body(body);
            }
            ExprKind::With { mode, body } => {
                self.word("with ");
                self.reserving(2, |p| p.expr(*mode, OR));
                self.word(" ");
                self.body(body);
            }
            ExprKind::Pipeline { args, body } => {
                self.word("pipeline");
                self.reserving(2, |p| p.group(|p| p.args(args, body.span.lo)));
                self.word(" ");
                self.body(body);
            }
            ExprKind::Switch { on, arms } => self.switch(*on, arms, self.module.exprs[e].span.hi),
            _ => {}
        }
    }

    /// Writes `(a, name: b)`; `hi` is at or after the closing parenthesis.
    pub fn args(&mut self, args: &[Arg], hi: u32) {
        // A single value with brackets of its own needs no line of its own.
        if let [Arg { name: None, value }] = args
            && !self.has_comment(self.lo(*value))
            && self.module.exprs[*value].kind.has_own_brackets()
        {
            self.word("(");
            self.reserving_more(1, |p| p.expr(*value, BLOCK));
            return self.word(")");
        }
        self.list(Brackets { open: "(", close: ")", hi }, args, Self::arg_lo, Self::arg);
    }

    /// Returns the start of an argument.
    pub fn arg_lo(&self, arg: &Arg) -> u32 {
        arg.name.as_ref().map_or_else(|| self.lo(arg.value), |n| n.span.lo)
    }

    /// Writes `name: value`.
    pub fn arg(&mut self, arg: &Arg) {
        if let Some(name) = &arg.name {
            self.word(&name.name);
            self.word(": ");
        }
        self.expr(arg.value, BLOCK);
    }

    fn tuple(&mut self, args: &[Arg], hi: u32) {
        if let [arg @ Arg { name: None, .. }] = args {
            self.word("(");
            self.reserving_more(2, |p| p.arg(arg));
            return self.word(",)");
        }
        self.list(Brackets { open: "(", close: ")", hi }, args, Self::arg_lo, Self::arg);
    }

    fn list_expr(&mut self, list: &[ExprId], hi: u32) {
        if !self.line.is_flat() && !list.is_empty() && self.is_literals(list, hi) {
            return self.filled(list.iter(), |p, e| p.literal_width(**e), |p, e| p.expr(**e, BLOCK));
        }
        self.list(Brackets { open: "[", close: "]", hi }, list, |p, e| p.lo(*e), |p, e| p.expr(*e, BLOCK));
    }

    /// Writes integers, or tuples of them, as [`Printer::list_expr`] writes a list of literals.
    fn integers(&mut self, list: &IntegerList) {
        let texts = list.entries().map(|entry| {
            let mut text = String::new();
            for (k, value) in entry.iter().enumerate() {
                _ = write!(text, "{}{value}", if k == 0 { "" } else { ", " });
            }
            if list.width() == 1 { text } else { format!("({text})") }
        });
        if !self.line.is_flat() {
            return self.filled(texts, |_, text| text.len(), |p, text| p.word(text));
        }
        self.word("[");
        for (k, text) in texts.enumerate() {
            self.word(if k == 0 { "" } else { ", " });
            self.word(&text);
            if self.line.has_failed() {
                return;
            }
        }
        self.word("]");
    }

    fn fill(&mut self, value: ExprId, count: ExprId) {
        self.word("[");
        self.reserving(1, |p| p.expr(value, BLOCK));
        self.word("; ");
        self.reserving_more(1, |p| p.expr(count, BLOCK));
        self.word("]");
    }

    fn index(&mut self, index: &[Index], hi: u32) {
        let lo = |p: &Self, i: &Index| match i {
            Index::Expr(e) => p.lo(*e),
            Index::Rest(span) | Index::Open { span, .. } => span.lo,
        };
        self.list(Brackets { open: "[", close: "]", hi }, index, lo, |p, i| match i {
            Index::Expr(e) => p.expr(*e, RANGE),
            Index::Rest(_) => p.word("..."),
            Index::Open { start, end, by, .. } => {
                if let Some(e) = start {
                    p.expr(*e, OR);
                }
                p.word("..");
                if let Some(e) = end {
                    p.expr(*e, OR);
                }
                p.by(*by);
            }
        });
    }

    fn by(&mut self, by: Option<ExprId>) {
        if let Some(e) = by {
            self.word(" by ");
            self.expr(e, OR);
        }
    }

    fn unary(&mut self, op: UnaryOp, value: ExprId) {
        let inner = matches!(self.module.exprs[value].kind, ExprKind::Unary { op: UnaryOp::Neg, .. });
        self.word(match op {
            UnaryOp::Neg if inner => "- ",
            UnaryOp::Neg => "-",
            UnaryOp::Not => "!",
        });
        self.expr(value, UNARY);
    }

    fn range(&mut self, start: ExprId, end: ExprId, closed: bool, by: Option<ExprId>) {
        self.reserving(2, |p| p.expr(start, OR));
        self.word(if closed { "..=" } else { ".." });
        self.expr(end, OR);
        self.by(by);
    }

    /// Writes operators of one level, `a + b - c`; over several lines each starts one.
    fn chain(&mut self, e: ExprId) {
        let (first, rest) = self.operands(e);
        let Some(&(op, last)) = rest.first() else { return };
        let level = binary_level(op);
        // Comparisons do not chain: their operands bind tighter.
        let least = if op.compares() { BIT_OR } else { level };
        self.reserving(0, |p| p.expr(first, least));
        self.line.indent += 1;
        for (op, right) in rest.into_iter().rev() {
            let lo = self.lo(right);
            if self.line.is_flat() {
                self.gap(lo);
                self.word(" ");
            } else {
                self.separate(lo, true, false);
            }
            self.word(op.token());
            self.word(" ");
            match right == last {
                true => self.expr(right, level + 1),
                false => self.reserving(0, |p| p.expr(right, level + 1)),
            }
            if self.line.has_failed() {
                break;
            }
        }
        self.line.indent -= 1;
    }

    /// Returns the first operand of a chain of operators of one level, and the others with their operators, last first.
    fn operands(&self, e: ExprId) -> (ExprId, Vec<(BinaryOp, ExprId)>) {
        let mut rest: Vec<(BinaryOp, ExprId)> = vec![];
        let mut first = e;
        while let ExprKind::Binary { op, left, right } = self.module.exprs[first].kind
            && rest.first().is_none_or(|r| r.0.precedence() == op.precedence() && !op.compares())
        {
            rest.push((op, right));
            first = left;
        }
        (first, rest)
    }

    fn reduce(&mut self, op: &Ident, binders: &[Binder], filter: Option<ExprId>, body: &Body) {
        self.word(&op.name);
        self.word(" ");
        self.reserving(2, |p| p.binders(binders));
        if let Some(e) = filter {
            self.word(" where ");
            self.reserving(2, |p| p.expr(e, OR));
        }
        self.word(" ");
        self.body(body);
    }

    /// Writes `if … { } else if … { } else { }`, on one line only as a whole.
    fn if_expr(&mut self, mut e: ExprId) {
        let module = self.module;
        while let ExprKind::If { cond, then, els } = &module.exprs[e].kind {
            self.word("if ");
            self.reserving(2, |p| p.expr(*cond, BLOCK));
            self.word(" ");
            self.body(then);
            let Some(els) = els else { return };
            self.word(" else ");
            e = *els;
            if self.line.has_failed() {
                return;
            }
        }
        match &module.exprs[e].kind {
            ExprKind::Block(body) => self.body(body),
            // In memory, any value may be here; in text, it is a body.
            _ => {
                self.word("{ ");
                self.expr(e, BLOCK);
                self.word(" }");
            }
        }
    }

    fn switch(&mut self, on: ExprId, arms: &[Arm], hi: u32) {
        self.word("switch ");
        self.reserving(2, |p| p.expr(on, BLOCK));
        self.word(" ");
        self.block(
            Braces { hi, most: 1 },
            arms,
            |_, arm| arm.span.lo,
            |p, arm| {
                p.group(|p| {
                    for (i, key) in arm.keys.iter().enumerate() {
                        p.word(if i > 0 { ", " } else { "" });
                        match key {
                            Some(e) => p.expr(*e, RANGE),
                            None => p.word("_"),
                        }
                    }
                    p.word(" => ");
                    p.body(&arm.body);
                });
            },
        );
    }

    /// Writes `i in 0..n, j in 0..m`.
    pub fn binders(&mut self, binders: &[Binder]) {
        for (i, binder) in binders.iter().enumerate() {
            if i > 0 {
                self.word(", ");
            }
            self.pattern(&binder.pattern);
            self.word(" in ");
            self.expr(binder.range, RANGE);
        }
    }
}
