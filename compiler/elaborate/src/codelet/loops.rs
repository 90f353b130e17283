//! `for` and `while`.
//!
//! Invariant: a loop index is an `int` that the body does not assign; `break` leaves all binders of its `for`,
//! `continue` goes on with the next turn of the innermost one.

use super::builder::{Builder, Loop};
use super::types::{BOOL, INT};
use super::value::{Bound, Value};
use girder_ir::codelet::{Block, Check, Label, Stmt};
use girder_ir::ids::{ExprId, LocalId};
use girder_source::{Diagnostic, Span};
use girder_syntax::ast;
use smol_str::SmolStr;

/// `lo..hi by step`
#[derive(Clone, Copy)]
pub(super) struct Bounds {
    /// `i64`
    pub lo: ExprId,
    /// `i64`
    pub hi: ExprId,
    /// Not zero.
    pub step: i64,
}

/// A loop that is being built: what encloses the statements of its body.
struct Open {
    var: LocalId,
    bounds: Bounds,
    label: Label,
}

impl<'a> Builder<'a, '_> {
    /// The bounds of a range, evaluated here; `None` if it is none, which is reported.
    pub(super) fn bounds(&mut self, range: ast::ExprId) -> Option<Bounds> {
        let node = &self.tree().exprs[range];
        let (start, end, closed, by) = match &node.kind {
            ast::ExprKind::Range { start, end, closed, by } => (*start, *end, *closed, *by),
            ast::ExprKind::Paren(inner) => return self.deeper(node.span, |s| s.bounds(*inner)).flatten(),
            _ => {
                if !matches!(self.expr(range), Value::Error) {
                    let d = Diagnostic::error("codelet::type_mismatch", node.span, "a codelet loops over ranges only");
                    self.report(d.help("write `i in 0..n`"));
                }
                return None;
            }
        };
        let spans = [self.tree().exprs[start].span, self.tree().exprs[end].span];
        let mut values = self.values(&[start, end]).into_iter();
        let step = by.map_or(Some(1), |by| self.step(by));
        let (lo, hi) = (values.next()?, values.next()?);
        let (lo, hi) = (self.index_value(lo, spans[0]), self.index_value(hi, spans[1]));
        let (lo, mut hi, step) = (lo?, hi?, step?);
        if closed {
            let past = self.int(if step > 0 { 1 } else { -1 }, spans[1]);
            hi = self.add_ints(hi, past, spans[1]);
        }
        Some(Bounds { lo, hi, step })
    }

    /// The step of a range.
    pub(super) fn step(&mut self, by: ast::ExprId) -> Option<i64> {
        let span = self.tree().exprs[by].span;
        let v = self.expr(by);
        let step = self.static_value(&v, "the step of a range", span)?;
        if step == 0 {
            self.error("codelet::static_arithmetic", span, "the step of a range cannot be zero");
            return None;
        }
        Some(step)
    }

    /// A new loop index, in scope under its name.
    pub(super) fn index_of(&mut self, pattern: &'a ast::Pattern, bounds: Bounds, span: Span) -> LocalId {
        let (name, at) = match pattern {
            ast::Pattern::Name(n) => (n.name.clone(), n.span),
            ast::Pattern::Wildcard(at) => (SmolStr::default(), *at),
            ast::Pattern::Tuple(_, at) => {
                self.error("codelet::type_mismatch", *at, "a loop index is one integer, not a tuple");
                (SmolStr::default(), *at)
            }
        };
        let var = self.local(name, INT, false, at);
        if bounds.step > 0 && self.const_int(bounds.lo).is_some_and(|lo| lo >= 0) && self.is_stable(bounds.hi) {
            self.local_info[var].below = Some(bounds.hi);
        }
        if let ast::Pattern::Name(n) = pattern {
            let value = Value::Scalar(self.read_local(var, span));
            self.bind(n, value, Bound::Index);
        }
        var
    }

    /// `for i in a..b, j in c..d { … }`
    pub(super) fn for_statement(&mut self, binders: &'a [ast::Binder], body: &'a ast::Body, span: Span) {
        self.scoped(|s| {
            let mut open: Vec<Open> = vec![];
            let mut wrong = false;
            for b in binders {
                match s.bounds(b.range) {
                    Some(bounds) => {
                        let var = s.index_of(&b.pattern, bounds, b.span);
                        let label = s.label();
                        open.push(Open { var, bounds, label });
                        s.blocks.push(vec![]);
                    }
                    None => {
                        wrong = true;
                        s.bind_wrong(&b.pattern);
                    }
                }
            }
            s.for_body(&open, body, wrong);
            let mut inner: Option<Block> = None;
            for o in open.into_iter().rev() {
                if let Some(stmts) = inner.take() {
                    debug_assert!(!stmts.is_empty());
                    s.blocks.last_mut().expect("opened above").extend(stmts);
                }
                let turn = s.blocks.pop().unwrap_or_default();
                let Bounds { lo, hi, step } = o.bounds;
                s.charge(span);
                inner = Some(vec![Stmt::For { var: o.var, lo, hi, step, label: o.label, body: turn }]);
            }
            inner.into_iter().flatten().for_each(|stmt| s.emit(stmt));
        });
    }

    /// A name whose meaning is wrong, so that its uses say nothing more.
    pub(super) fn bind_wrong(&mut self, pattern: &'a ast::Pattern) {
        match pattern {
            ast::Pattern::Name(n) => self.bind(n, Value::Error, Bound::Index),
            ast::Pattern::Wildcard(_) => {}
            ast::Pattern::Tuple(parts, _) => parts.iter().for_each(|p| self.bind_wrong(p)),
        }
    }

    fn for_body(&mut self, open: &[Open], body: &'a ast::Body, wrong: bool) {
        let region = self.region;
        // Where the bounds are wrong, jumps of the body still belong to this loop.
        let (exit, next) = match (open.first(), open.last()) {
            (Some(first), Some(last)) if !wrong => (first.label, last.label),
            _ => {
                let label = self.label();
                (label, label)
            }
        };
        self.frame().loops.push(Loop { exit, next, region });
        self.body(body, false);
        self.frame().loops.pop();
    }

    /// `while c { … }`
    pub(super) fn while_statement(&mut self, cond: ast::ExprId, body: &'a ast::Body, span: Span) {
        let at = self.tree().exprs[cond].span;
        let (cond, before) = self.block(|s| {
            let v = s.expr(cond);
            if let Value::Bool(false) = v {
                return Some(None);
            }
            s.coerce(v, BOOL, at).map(Some)
        });
        // A loop that never turns is not elaborated.
        if let Some(None) = cond {
            return;
        }
        let label = self.label();
        let region = self.region;
        self.frame().loops.push(Loop { exit: label, next: label, region });
        let (_, body) = self.block(|s| s.body(body, false));
        self.frame().loops.pop();
        if let Some(Some(cond)) = cond {
            let site = self.site(Check::Turns, span, None);
            self.emit(Stmt::While { before, cond, label, body, site });
        }
    }
}
