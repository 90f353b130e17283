//! Reductions and searches over binders: `sum i in 0..n where c { e }`.
//!
//! Invariant: a reduction is a statement before the expression that uses it. Its body writes nothing declared outside
//! it, so its points may be evaluated in any grouping that the language's order allows.

use super::builder::Builder;
use super::loops::Bounds;
use super::types::{BOOL, Class, INT, Ty};
use super::value::{Bound, Value};
use girder_ir::codelet::{BinaryOp, Binder, Check, ExprKind, Reduce, ReduceOp, Stmt, StmtBlock};
use girder_ir::ids::ExprId;
use girder_source::{Diagnostic, Span};
use girder_syntax::ast;

/// The translated parts of a reduction: evaluated at each point of the binders.
struct Points {
    binders: Vec<Binder>,
    filter: Option<(StmtBlock, ExprId)>,
    before: StmtBlock,
    value: Option<ExprId>,
}

impl<'a> Builder<'a, '_> {
    /// Translates a reduction.
    pub(super) fn reduce(
        &mut self,
        op: &'a ast::Ident,
        binders: &'a [ast::Binder],
        filter: Option<ast::ExprId>,
        body: &'a ast::Body,
        span: Span,
    ) -> Value {
        let Some(kind) = reduce_op(&op.name) else {
            let help = "in a codelet, fill a local array in a `for`";
            return self.not_here(op.span, &format!("`{}` is not known inside codelets", op.name), help);
        };
        let search = matches!(kind, ReduceOp::ArgMin | ReduceOp::ArgMax);
        let Some(ranges) = self.ranges(binders, search) else {
            self.scoped(|s| {
                binders.iter().for_each(|b| s.bind_wrong(&b.pattern));
                s.reduced(|s| s.block(|s| s.body(body, true)));
            });
            return Value::Error;
        };
        let class = match kind {
            ReduceOp::Any | ReduceOp::All => None,
            _ => Some(Class::Number),
        };
        let points = self.scoped(|s| s.points_of(binders, &ranges, filter, body, class));
        let Points { binders, filter, before, value: Some(value) } = points else { return Value::Error };
        let (filter_before, filter) = filter.map_or((vec![], None), |(b, f)| (b, Some(f)));
        let ty = match kind {
            ReduceOp::Any | ReduceOp::All => BOOL,
            ReduceOp::ArgMin | ReduceOp::ArgMax => INT,
            _ => self.expr_types[value],
        };
        let factors = if kind == ReduceOp::Sum { self.factors(body, value) } else { None };
        let dst = self.local("", ty, false, span);
        let site = self.site(Check::Empty, span, None);
        let iterations = self.site(Check::Iterations, span, None);
        let reduce = Reduce { dst, op: kind, binders, filter_before, filter, before, value, factors, site, iterations };
        self.emit(Stmt::Reduce(Box::new(reduce)));
        let result = self.read_local(dst, span);
        if search { self.indices_at(result, &ranges, span) } else { Value::Scalar(result) }
    }

    /// Translates the ranges of all binders, in order; a range does not see the names of other binders.
    fn ranges(&mut self, binders: &'a [ast::Binder], search: bool) -> Option<Vec<Bounds>> {
        let mut done: Vec<Value> = vec![];
        let mut steps = vec![];
        let mut wrong = false;
        for (i, b) in binders.iter().enumerate() {
            if self.is_ragged(&binders[..i], b) {
                wrong = true;
                continue;
            }
            let mark = self.mark();
            let bounds = self.bounds(b.range);
            self.keep_before(mark, &mut done);
            match bounds {
                Some(b) => {
                    done.extend([Value::Scalar(b.lo), Value::Scalar(b.hi)]);
                    steps.push(b.step);
                }
                None => wrong = true,
            }
        }
        if wrong {
            return None;
        }
        // The result of a search is computed from its ranges.
        if search {
            done.iter_mut().for_each(|v| self.keep(v, ""));
        }
        let mut ends = done.into_iter().filter_map(|v| if let Value::Scalar(e) = v { Some(e) } else { None });
        steps.into_iter().map(|step| Some(Bounds { lo: ends.next()?, hi: ends.next()?, step })).collect()
    }

    /// Reports a range that names an earlier binder; returns whether it does.
    fn is_ragged(&mut self, earlier: &'a [ast::Binder], binder: &'a ast::Binder) -> bool {
        let ends = match &self.tree().exprs[binder.range].kind {
            ast::ExprKind::Range { start, end, .. } => [*start, *end],
            _ => return false,
        };
        for b in earlier {
            let ast::Pattern::Name(name) = &b.pattern else { continue };
            if ends.iter().any(|&e| self.mentions(e, &name.name, self.session.limits.nesting)) {
                let message = format!("the range of a reduction cannot depend on its own index `{}`", name.name);
                let d = Diagnostic::error("codelet::ragged_reduction", binder.span, message);
                let help = format!(
                    "range over all points and choose them with `where`, or write a `for` over `{}`",
                    name.name
                );
                self.report(d.label(name.span, "this index").help(help));
                return true;
            }
        }
        false
    }

    /// Returns whether an arithmetic expression mentions a name.
    fn mentions(&self, e: ast::ExprId, name: &str, depth: u32) -> bool {
        let Some(depth) = depth.checked_sub(1) else { return false };
        match &self.tree().exprs[e].kind {
            ast::ExprKind::Name(n) => n == name,
            ast::ExprKind::Paren(x) | ast::ExprKind::Unary { value: x, .. } => self.mentions(*x, name, depth),
            ast::ExprKind::Binary { .. } => {
                // A chain `a + b + …` is as deep as its operands.
                let mut first = e;
                while let ast::ExprKind::Binary { left, right, .. } = &self.tree().exprs[first].kind {
                    if self.mentions(*right, name, depth) {
                        return true;
                    }
                    first = *left;
                }
                self.mentions(first, name, depth)
            }
            ast::ExprKind::Call { args, .. } => args.iter().any(|a| self.mentions(a.value, name, depth)),
            _ => false,
        }
    }

    /// Runs `f` inside one more reduction.
    fn reduced<T>(&mut self, f: impl FnOnce(&mut Self) -> T) -> T {
        self.region += 1;
        let r = f(self);
        self.region -= 1;
        r
    }

    fn points_of(
        &mut self,
        binders: &'a [ast::Binder],
        ranges: &[Bounds],
        filter: Option<ast::ExprId>,
        body: &'a ast::Body,
        class: Option<Class>,
    ) -> Points {
        self.reduced(|s| {
            let mut made = vec![];
            for (b, &r) in binders.iter().zip(ranges) {
                let (lo, hi) = (s.again(r.lo), s.again(r.hi));
                let var = s.index_of(&b.pattern, r, b.span);
                made.push(Binder { var, lo, hi, step: r.step });
            }
            let mut wrong = false;
            let filter = filter.and_then(|f| {
                let at = s.tree().exprs[f].span;
                let (cond, block) = s.block(|s| match s.expr(f) {
                    Value::Bool(true) => None,
                    v => Some(s.coerce(v, BOOL, at)),
                });
                wrong |= matches!(cond, Some(None));
                cond.flatten().map(|c| (block, c))
            });
            let (value, before) = s.block(|s| {
                let at = body.value.map_or(body.span, |e| s.tree().exprs[e].span);
                match (s.body(body, true), class) {
                    (Value::Unit, _) => {
                        let d = Diagnostic::error("codelet::missing_value", body.span, "this reduction has no value");
                        s.report(d.help("end its block with an expression without a semicolon"));
                        None
                    }
                    (v, Some(class)) => s.narrowed(v, class, at),
                    (v, None) => s.coerce(v, BOOL, at),
                }
            });
            Points { binders: made, filter, before, value: value.filter(|_| !wrong) }
        })
    }

    /// Returns the factors of a body that is a product. Integer factors are dropped when types are decided.
    fn factors(&self, body: &'a ast::Body, value: ExprId) -> Option<(ExprId, ExprId)> {
        let mut e = body.value?;
        while let ast::ExprKind::Paren(inner) = self.tree().exprs[e].kind {
            e = inner;
        }
        match (&self.tree().exprs[e].kind, &self.out.exprs[value].kind) {
            (
                ast::ExprKind::Binary { op: ast::BinaryOp::Mul, .. },
                &ExprKind::Binary { op: BinaryOp::Mul, a, b, .. },
            ) => Some((a, b)),
            _ => None,
        }
    }

    /// Returns the binders' values at a row-major position.
    fn indices_at(&mut self, position: ExprId, ranges: &[Bounds], span: Span) -> Value {
        let lengths: Vec<ExprId> = ranges
            .iter()
            .map(|b| {
                let (lo, hi) = (self.again(b.lo), self.again(b.hi));
                let len = self.range_len(Bounds { lo, hi, step: b.step }, span);
                self.kept(len, "")
            })
            .collect();
        let mut found = vec![];
        let mut rest = position;
        for (i, b) in ranges.iter().enumerate().rev() {
            // The outermost position needs no remainder.
            let (at, outer) = if i == 0 {
                (rest, rest)
            } else {
                let (whole, part) = self.twice(rest);
                let at = self.divide(BinaryOp::Rem, part, lengths[i], span);
                let outer = self.divide(BinaryOp::Div, whole, lengths[i], span);
                (at, outer)
            };
            rest = outer;
            let step = self.int(b.step, span);
            let scaled = self.int_op(BinaryOp::Mul, at, step, span);
            let lo = self.again(b.lo);
            let e = self.add_ints(lo, scaled, span);
            found.push((None, Value::Scalar(e)));
        }
        found.reverse();
        match &found[..] {
            [(_, Value::Scalar(e))] => Value::Scalar(*e),
            _ => {
                let mut value = Value::Tuple(found);
                self.keep(&mut value, "");
                value
            }
        }
    }

    fn divide(&mut self, op: BinaryOp, a: ExprId, len: ExprId, span: Span) -> ExprId {
        let b = self.again(len);
        let site = Some(self.site(Check::Division, span, None));
        self.push(ExprKind::Binary { op, a, b, site }, INT, span)
    }

    /// Translates `min(a, b, …)` and `max(a, b, …)`, folded from the left.
    pub(super) fn least_or_greatest(&mut self, op: BinaryOp, args: Vec<(Value, Span)>, span: Span) -> Value {
        let mut args = args.into_iter();
        let (Some((first, at)), true) = (args.next(), args.len() > 0) else {
            let name = if op == BinaryOp::Min { "min" } else { "max" };
            let d = Diagnostic::error("codelet::argument", span, format!("`{name}` has at least two arguments"));
            self.report(d.help(format!("over a range write `{name} i in 0..n {{ … }}`")));
            return Value::Error;
        };
        let limit = self.session.limits.nesting as usize;
        if args.len() > limit {
            return self.error("codelet::too_large", span, format!("a call of more than {limit} arguments"));
        }
        args.fold(first, |a, (b, to)| self.pair(op, [a, b], [at, to], span))
    }

    fn pair(&mut self, op: BinaryOp, [a, b]: [Value; 2], spans: [Span; 2], span: Span) -> Value {
        if let (Value::Int(x), Value::Int(y)) = (&a, &b) {
            return Value::Int(if op == BinaryOp::Min { *x.min(y) } else { *x.max(y) });
        }
        if let (Some(x), Some(y)) = (self.int_of(&a), self.int_of(&b)) {
            let v = if op == BinaryOp::Min { x.min(y) } else { x.max(y) };
            return Value::Scalar(self.int(v, span));
        }
        let (a, b) = (self.narrowed(a, Class::Number, spans[0]), self.narrowed(b, Class::Number, spans[1]));
        let (Some(a), Some(b)) = (a, b) else { return Value::Error };
        if !self.same_type([a, b], spans, span) {
            return Value::Error;
        }
        let ty: Ty = self.expr_types[a];
        Value::Scalar(self.push(ExprKind::Binary { op, a, b, site: None }, ty, span))
    }

    /// Binds a name, such as a parameter, to a value that later statements cannot change.
    pub(super) fn bind_kept(&mut self, name: &ast::Ident, mut value: Value, bound: Bound) {
        self.keep(&mut value, &name.name);
        self.bind(name, value, bound);
    }
}

fn reduce_op(name: &str) -> Option<ReduceOp> {
    Some(match name {
        "sum" => ReduceOp::Sum,
        "product" => ReduceOp::Product,
        "min" => ReduceOp::Min,
        "max" => ReduceOp::Max,
        "any" => ReduceOp::Any,
        "all" => ReduceOp::All,
        "argmin" => ReduceOp::ArgMin,
        "argmax" => ReduceOp::ArgMax,
        _ => return None,
    })
}
