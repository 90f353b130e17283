//! `for` and `while`.
//!
//! Invariant: a loop index is an `int` that the body does not assign; `break` leaves all binders of its `for`,
//! `continue` goes on with the next iteration of the innermost one.

use super::builder::{Builder, Loop};
use super::types::{BOOL, INT};
use super::value::{Bound, Value};
use girder_ir::codelet::{BinaryOp, Check, ExprKind, Label, Stmt, StmtBlock};
use girder_ir::ids::{ExprId, LocalId};
use girder_source::{Diagnostic, Span};
use girder_syntax::ast;
use smol_str::SmolStr;

/// `lo..hi by step` with a step that is known only at run time.
#[derive(Clone, Copy)]
struct Strided {
    /// `i64`, evaluated once.
    lo: ExprId,
    /// `i64`, evaluated once.
    hi: ExprId,
    /// `i64`, at least 1.
    step: ExprId,
}

/// `lo..hi by step`
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// `i64`
    pub lo: ExprId,
    /// `i64`
    pub hi: ExprId,
    /// Not zero.
    pub step: i64,
}

/// A loop that is being built, with what encloses the statements of its body.
struct Open {
    var: LocalId,
    bounds: Bounds,
    label: Label,
    /// The condition that guards the rest of the body, and the number of statements before the guard.
    guard: Option<(ExprId, usize)>,
}

impl<'a> Builder<'a, '_> {
    /// Translates a range to bounds; otherwise reports an error and returns `None`.
    pub(super) fn bounds(&mut self, range: ast::ExprId) -> Option<Bounds> {
        let node = &self.tree().exprs[range];
        match &node.kind {
            ast::ExprKind::Range { start, end, closed, by } => self.bounds_between(*start, *end, *closed, *by),
            ast::ExprKind::Paren(inner) => self.deeper(node.span, |s| s.bounds(*inner)).flatten(),
            _ => match self.expr(range) {
                Value::Range(b) => Some(b),
                Value::Error => None,
                _ => {
                    let d = Diagnostic::error("codelet::type_mismatch", node.span, "a codelet loops over ranges only");
                    self.report(d.help("write `i in 0..n`"));
                    None
                }
            },
        }
    }

    /// Translates `start..end by step`.
    pub(super) fn bounds_between(
        &mut self,
        start: ast::ExprId,
        end: ast::ExprId,
        closed: bool,
        by: Option<ast::ExprId>,
    ) -> Option<Bounds> {
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

    /// Returns the step of a range.
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

    /// Creates a loop index, in scope under its name.
    pub(super) fn index_of(&mut self, pattern: &'a ast::Pattern, bounds: Bounds, span: Span) -> LocalId {
        let (name, at) = match pattern {
            ast::Pattern::Name(n) => (n.name.clone(), n.span),
            ast::Pattern::Wildcard(at) => (SmolStr::default(), *at),
            ast::Pattern::Tuple(_, at) => {
                self.error("codelet::type_mismatch", *at, "a loop index is one integer, not a tuple");
                self.bind_wrong(pattern);
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

    /// Translates `for i in a..b, j in c..d { … }`.
    pub(super) fn for_statement(&mut self, binders: &'a [ast::Binder], body: &'a ast::Body, span: Span) {
        self.scoped(|s| {
            let mut open: Vec<Open> = vec![];
            let mut wrong = false;
            for b in binders {
                let opened = match s.run_time_step(b.range) {
                    Some(by) => s.strided(b, by),
                    None => s.bounds(b.range).map(|bounds| {
                        let var = s.index_of(&b.pattern, bounds, b.span);
                        let label = s.label();
                        s.blocks.push(vec![]);
                        Open { var, bounds, label, guard: None }
                    }),
                };
                match opened {
                    Some(o) => open.push(o),
                    None => {
                        wrong = true;
                        s.bind_wrong(&b.pattern);
                    }
                }
            }
            s.for_body(&open, body, wrong);
            let mut inner: Option<StmtBlock> = None;
            for o in open.into_iter().rev() {
                if let Some(stmts) = inner.take() {
                    debug_assert!(!stmts.is_empty());
                    s.blocks.last_mut().expect("each loop opened a block of its own").extend(stmts);
                }
                let mut iteration = s.blocks.pop().unwrap_or_default();
                if let Some((cond, before)) = o.guard {
                    let then = iteration.split_off(before);
                    iteration.push(Stmt::If { cond, then, els: vec![] });
                }
                let Bounds { lo, hi, step } = o.bounds;
                s.charge(span);
                let site = s.site(Check::Iterations, span, None);
                inner = Some(vec![Stmt::For { var: o.var, lo, hi, step, label: o.label, body: iteration, site }]);
            }
            inner.into_iter().flatten().for_each(|stmt| s.emit(stmt));
        });
    }

    /// Returns the range and the step, if the step is known only at run time.
    fn run_time_step(&mut self, range: ast::ExprId) -> Option<(ast::ExprId, Value)> {
        let mut at = range;
        while let ast::ExprKind::Paren(inner) = &self.tree().exprs[at].kind {
            at = *inner;
        }
        let ast::ExprKind::Range { by: Some(by), .. } = &self.tree().exprs[at].kind else { return None };
        let node = &self.tree().exprs[*by];
        if matches!(node.kind, ast::ExprKind::Int { .. } | ast::ExprKind::Unary { .. }) {
            return None;
        }
        let step = self.expr(*by);
        self.int_of(&step).is_none().then_some((at, step))
    }

    /// Opens `for i in lo..hi by step` with a step that is known only at run time, as a loop over its iterations: `for
    /// k in 0..trips { i = lo + k · step; … }`.
    fn strided(&mut self, b: &'a ast::Binder, (range, step): (ast::ExprId, Value)) -> Option<Open> {
        let ast::ExprKind::Range { start, end, closed, by: Some(by) } = self.tree().exprs[range].kind else {
            return None;
        };
        let [start_at, end_at, by_at] = [start, end, by].map(|e| self.tree().exprs[e].span);
        let mut values = self.values(&[start, end]).into_iter();
        let (lo, hi) = (values.next()?, values.next()?);
        let (lo, hi) = (self.index_value(lo, start_at), self.index_value(hi, end_at));
        let (lo, mut hi, step) = (lo?, hi?, self.index_value(step, by_at)?);
        if closed {
            let one = self.int(1, end_at);
            hi = self.add_ints(hi, one, end_at);
        }
        let r = Strided { lo: self.kept(lo, ""), hi: self.kept(hi, ""), step: self.kept(step, "") };
        self.assert_positive(r.step, by_at);
        let trips = self.trip_count(r, b.span);
        let trips = self.kept(trips, "");
        let zero = self.int(0, b.span);
        let iteration = self.local("", INT, false, b.span);
        let label = self.label();
        self.blocks.push(vec![]);
        // The index of this iteration; the guard tells the proofs that it is inside the range, as it always is.
        let k = self.read_local(iteration, b.span);
        let (lo, hi, step) = (self.again(r.lo), self.again(r.hi), self.again(r.step));
        let far = self.int_op(BinaryOp::Mul, k, step, b.span);
        let value = self.int_op(BinaryOp::Add, lo, far, b.span);
        let name = match &b.pattern {
            ast::Pattern::Name(n) => n.name.clone(),
            _ => SmolStr::default(),
        };
        let index = self.local(name, INT, false, b.span);
        self.emit(Stmt::Set { local: index, value });
        match &b.pattern {
            ast::Pattern::Name(n) => {
                let value = Value::Scalar(self.read_local(index, b.span));
                self.bind(n, value, Bound::Index);
            }
            ast::Pattern::Wildcard(_) => {}
            ast::Pattern::Tuple(_, at) => {
                self.error("codelet::type_mismatch", *at, "a loop index is one integer, not a tuple");
            }
        }
        let (first, last) = (self.read_local(index, b.span), self.read_local(index, b.span));
        let lo = self.again(lo);
        let a = self.compare(BinaryOp::Ge, first, lo, b.span);
        let z = self.compare(BinaryOp::Lt, last, hi, b.span);
        let inside = self.push(ExprKind::AndThen { a, b: z }, BOOL, b.span);
        let guard = Some((inside, self.mark()));
        Some(Open { var: iteration, bounds: Bounds { lo: zero, hi: trips, step: 1 }, label, guard })
    }

    fn compare(&mut self, op: BinaryOp, a: ExprId, b: ExprId, span: Span) -> ExprId {
        self.push(ExprKind::Binary { op, a, b, site: None }, BOOL, span)
    }

    /// Checks a step at run time; the number of workers is positive without a check.
    fn assert_positive(&mut self, step: ExprId, span: Span) {
        if matches!(self.out.exprs[step].kind, ExprKind::Workers) {
            return;
        }
        let (step, zero) = (self.again(step), self.int(0, span));
        let cond = self.compare(BinaryOp::Gt, step, zero, span);
        let message = "a step that is known only at run time must be positive";
        let site = self.site(Check::Assert, span, Some(message.into()));
        self.emit(Stmt::Assert { cond, site });
    }

    /// Builds the trip count `lo < hi ? (hi - lo - 1) / step + 1 : 0`.
    fn trip_count(&mut self, r: Strided, span: Span) -> ExprId {
        let (lo, hi, step) = (self.again(r.lo), self.again(r.hi), self.again(r.step));
        let cond = self.compare(BinaryOp::Lt, lo, hi, span);
        let (lo, hi, one) = (self.again(r.lo), self.again(r.hi), self.int(1, span));
        let length = self.int_op(BinaryOp::Sub, hi, lo, span);
        let reach = self.int_op(BinaryOp::Sub, length, one, span);
        let site = Some(self.site(Check::Division, span, None));
        let whole = self.push(ExprKind::Binary { op: BinaryOp::Div, a: reach, b: step, site }, INT, span);
        let one = self.int(1, span);
        let a = self.int_op(BinaryOp::Add, whole, one, span);
        let b = self.int(0, span);
        self.push(ExprKind::Select { cond, a, b }, INT, span)
    }

    /// Binds the names of a pattern to [`Value::Error`], so that their uses report nothing more.
    pub(super) fn bind_wrong(&mut self, pattern: &'a ast::Pattern) {
        match pattern {
            ast::Pattern::Name(n) => self.bind(n, Value::Error, Bound::Index),
            ast::Pattern::Wildcard(_) => {}
            ast::Pattern::Tuple(parts, _) => parts.iter().for_each(|p| self.bind_wrong(p)),
        }
    }

    fn for_body(&mut self, open: &[Open], body: &'a ast::Body, wrong: bool) {
        let region = self.region;
        // If the bounds are wrong, jumps of the body still belong to this loop.
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

    /// Translates `while c { … }`.
    pub(super) fn while_statement(&mut self, cond: ast::ExprId, body: &'a ast::Body, span: Span) {
        let at = self.tree().exprs[cond].span;
        let (cond, before) = self.block(|s| {
            let v = s.expr(cond);
            if let Value::Bool(false) = v {
                return Some(None);
            }
            s.coerce(v, BOOL, at).map(Some)
        });
        // A loop whose condition is statically false is not elaborated.
        if let Some(None) = cond {
            return;
        }
        let label = self.label();
        let region = self.region;
        self.frame().loops.push(Loop { exit: label, next: label, region });
        let (_, body) = self.block(|s| s.body(body, false));
        self.frame().loops.pop();
        if let Some(Some(cond)) = cond {
            let site = self.site(Check::Iterations, span, None);
            self.emit(Stmt::While { before, cond, label, body, site });
        }
    }
}
