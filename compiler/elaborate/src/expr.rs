//! Expressions in the evaluation of a module.
//!
//! Invariant: operands are evaluated left to right; an expression of static values emits no steps.

use crate::elaborator::Elaborator;
use crate::literals::Literal;
use crate::value::{Range, Tensor, Tuple, Value};
use girder_source::{Failed, Result, Span};
use girder_syntax::ast::{self, ExprId, ExprKind};
use smol_str::SmolStr;
use std::sync::Arc;

/// The loops whose range must be static.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LoopKind {
    /// A `for`, or the indices of a reduction or of a table: evaluated once per value.
    Unrolled,
    /// A `repeat`: a step of the program.
    Repeat,
}

/// The bounds of a range.
pub enum Bounds {
    /// As written, and the step.
    Static { start: i64, end: i64, step: i64 },
    /// A range that starts at a number known only at run time.
    RunTime(Value),
}

impl Elaborator<'_> {
    /// Evaluates an expression.
    pub fn expr(&mut self, id: ExprId) -> Result<Value> {
        let tree = self.tree();
        let e = &tree.exprs[id];
        self.charge(e.span)?;
        match &e.kind {
            ExprKind::Name(name) => self.name(name, e.span),
            ExprKind::Int { value, .. } => match i64::try_from(*value) {
                Ok(v) => Ok(Value::Int(v)),
                Err(_) => self.static_number(Value::Literal(Literal::Unsigned(*value)), e.span),
            },
            ExprKind::Float { value, .. } => Ok(Value::Float(*value)),
            ExprKind::Str(s) => Ok(Value::Str(s.clone())),
            ExprKind::Bool(b) => Ok(Value::Bool(*b)),
            ExprKind::Paren(inner) => self.expr(*inner),
            ExprKind::Tuple(args) => self.tuple(args),
            ExprKind::List(items) => {
                let values = items.iter().map(|&i| self.expr(i)).collect::<Result<Vec<_>>>()?;
                Ok(Value::List(Arc::new(values)))
            }
            ExprKind::Integers(list) => {
                self.charge_many((list.len() * (1 + list.width())) as u64, e.span)?;
                let value = |k: usize| match &list.entry(k)[..] {
                    &[v] => Value::Int(v),
                    entry => Value::Tuple(Arc::new(Tuple::plain(entry.iter().map(|&v| Value::Int(v)).collect()))),
                };
                Ok(Value::List(Arc::new((0..list.len()).map(value).collect())))
            }
            ExprKind::Fill { value, count } => {
                let value = self.expr(*value)?;
                let count = self.int(*count)?;
                self.charge_values(count.max(0) as u64, e.span)?;
                if count < 0 {
                    return Err(self.error("elaborate::negative_count", e.span, format!("a list of {count} values")));
                }
                Ok(Value::List(Arc::new(vec![value; count as usize])))
            }
            ExprKind::Field { base, name } => self.field(id, *base, name),
            ExprKind::Call { callee, args } => self.call(*callee, args, e.span),
            ExprKind::Index { base, index } => {
                let base = self.expr(*base)?;
                self.index(base, index, e.span)
            }
            // The least `int` has no literal without its sign.
            ExprKind::Unary { op: ast::UnaryOp::Neg, value } if is_least_int(&tree.exprs[*value].kind) => {
                Ok(Value::Int(i64::MIN))
            }
            ExprKind::Unary { op, value } => {
                let value = self.expr(*value)?;
                self.unary(*op, value, e.span)
            }
            ExprKind::Binary { op, left, right } => self.binary_expr(*op, *left, *right, e.span),
            ExprKind::Range { start, end, closed, by } => {
                let bounds = self.bounds(*start, *end, *closed, *by, e.span, None)?;
                self.range(bounds, *closed, e.span)
            }
            ExprKind::Reduce(r) => self.reduce(&r.op, &r.binders, r.filter, &r.body, e.span),
            ExprKind::Fn(f) => self.closure(id, f, e.span),
            ExprKind::Block(body) => self.block(body),
            ExprKind::If { cond, then, els } => self.if_expr(*cond, then, *els, e.span),
            ExprKind::Switch { on, arms } => self.switch_expr(*on, arms, e.span),
            ExprKind::On { stage: false, place, body } => {
                let place = self.place(*place)?;
                self.at_place(place, |this| this.block(body))
            }
            ExprKind::On { stage: true, place, body } => self.stage(*place, body, e.span),
            ExprKind::With { mode, body } => {
                let (value, flow) = self.with_block(*mode, body, e.span)?;
                self.stays(value, flow, "a block that is used as a value")
            }
            ExprKind::Pipeline { args, body } => self.pipeline(args, body, e.span),
            ExprKind::Error => Err(Failed),
        }
    }

    /// Evaluates an expression that must be a static integer.
    pub fn int(&mut self, id: ExprId) -> Result<i64> {
        match self.expr(id)? {
            Value::Int(v) => Ok(v),
            other => {
                let span = self.tree().exprs[id].span;
                Err(self.expected("an integer", &other, span))
            }
        }
    }

    /// Evaluates an expression that must be a tensor.
    pub fn tensor(&mut self, id: ExprId) -> Result<Tensor> {
        match self.expr(id)? {
            Value::Tensor(t) => Ok(Arc::unwrap_or_clone(t)),
            other => {
                let span = self.tree().exprs[id].span;
                Err(self.expected("a tensor", &other, span))
            }
        }
    }

    fn tuple(&mut self, args: &[ast::Arg]) -> Result<Value> {
        if args.is_empty() {
            return Ok(Value::Unit);
        }
        let mut tuple = Tuple { names: vec![], values: vec![] };
        for a in args {
            let name = a.name.as_ref().map_or(SmolStr::default(), |n| n.name.clone());
            if !name.is_empty() && tuple.names.contains(&name) {
                let span = a.name.as_ref().map_or(Span::NONE, |n| n.span);
                return Err(self.error("names::duplicate", span, format!("`{name}` is named twice")));
            }
            let value = self.expr(a.value)?;
            tuple.names.push(name);
            tuple.values.push(value);
        }
        Ok(Value::Tuple(Arc::new(tuple)))
    }

    /// Evaluates what a loop goes over; reports a range that is known only at run time.
    pub fn loop_range(&mut self, id: ExprId, of: LoopKind) -> Result<Value> {
        let e = &self.tree().exprs[id];
        let value = match &e.kind {
            ExprKind::Range { start, end, closed, by } => {
                self.charge(e.span)?;
                let bounds = self.bounds(*start, *end, *closed, *by, e.span, Some(of))?;
                self.range(bounds, *closed, e.span)?
            }
            _ => self.expr(id)?,
        };
        match value {
            Value::RunTimeRange(_) => Err(self.run_time_loop(of, e.span)),
            value => Ok(value),
        }
    }

    /// Reports a loop whose range is known only at run time.
    fn run_time_loop(&mut self, of: LoopKind, span: Span) -> Failed {
        match of {
            LoopKind::Repeat => self.run_time_count("elaborate::run_time_length", span),
            LoopKind::Unrolled => {
                let message = "the compiler unrolls this loop, but its range is known only at run time";
                let help = "make the range static; a loop that counts at run time is a `while` with a counter in a \
                            variable";
                self.error_help("elaborate::run_time_length", span, message, help)
            }
        }
    }

    /// Returns the range between bounds.
    fn range(&mut self, bounds: Bounds, closed: bool, span: Span) -> Result<Value> {
        match bounds {
            Bounds::Static { start, end, step } => self.make_range(start, end, closed, step, span).map(Value::Range),
            Bounds::RunTime(range) => Ok(range),
        }
    }

    /// Evaluates the bounds and the step of a range, which is that of a loop if `of` is given.
    pub fn bounds(
        &mut self,
        start: ExprId,
        end: ExprId,
        closed: bool,
        by: Option<ExprId>,
        span: Span,
        of: Option<LoopKind>,
    ) -> Result<Bounds> {
        let bounds = (start, end);
        let start = match self.expr(start)? {
            Value::Tensor(start) => {
                if let Some(of) = of {
                    return Err(self.run_time_loop(of, span));
                }
                let value = self.run_time_range(Arc::unwrap_or_clone(start), bounds, closed, span)?;
                if let Some(by) = by
                    && self.int(by)? != 1
                {
                    let at = self.tree().exprs[by].span;
                    let help = "index the result with the step: `x[t..t + 8][.. by 2]`";
                    let message = "a range that starts at run time goes up by 1";
                    return Err(self.error_help("elaborate::run_time_length", at, message, help));
                }
                return Ok(Bounds::RunTime(value));
            }
            Value::Int(start) => start,
            other => return Err(self.expected("an integer", &other, self.tree().exprs[start].span)),
        };
        let end = match self.expr(end)? {
            Value::Tensor(_) => {
                return Err(match of {
                    Some(of) => self.run_time_loop(of, span),
                    None => self.no_length(span),
                });
            }
            Value::Int(end) => end,
            other => return Err(self.expected("an integer", &other, self.tree().exprs[end].span)),
        };
        let step = by.map_or(Ok(1), |b| self.int(b))?;
        Ok(Bounds::Static { start, end, step })
    }

    /// Evaluates `start..end by step`.
    pub fn make_range(&mut self, start: i64, end: i64, closed: bool, step: i64, span: Span) -> Result<Range> {
        if step == 0 {
            return Err(self.error("elaborate::zero_step", span, "a range by 0 never ends"));
        }
        let (start128, end128) = (start as i128, end as i128);
        let end128 = end128 + if closed { step.signum() as i128 } else { 0 };
        let distance = if step > 0 { end128 - start128 } else { start128 - end128 };
        let count = (distance.max(0) as u128).div_ceil(step.unsigned_abs() as u128);
        match u64::try_from(count) {
            Ok(count) if count <= i64::MAX as u64 => Ok(Range { start, count, step }),
            _ => Err(self.error("elaborate::overflow", span, "the range has too many values")),
        }
    }

    /// Evaluates `a op b`; `&&` and `||` evaluate `b` only if `a` does not decide. A chain `a + b + …` is evaluated
    /// without deep recursion: its left operands are descended in a loop.
    fn binary_expr(&mut self, op: ast::BinaryOp, left: ExprId, right: ExprId, span: Span) -> Result<Value> {
        use ast::BinaryOp::{And, Or};
        let tree = self.tree();
        let mut pending = vec![(op, right, span)];
        let mut first = left;
        while let ExprKind::Binary { op, left, right } = &tree.exprs[first].kind {
            pending.push((*op, *right, tree.exprs[first].span));
            first = *left;
        }
        let mut value = self.elements(first)?;
        while let Some((op, right, span)) = pending.pop() {
            value = match (op, &value) {
                (And, Value::Bool(false)) | (Or, Value::Bool(true)) => value,
                (And | Or, Value::Bool(_)) => match self.expr(right)? {
                    Value::Bool(b) => Value::Bool(b),
                    other => return Err(self.expected("a static bool", &other, tree.exprs[right].span)),
                },
                (And | Or, other) => {
                    let other = other.clone();
                    if let Value::Tensor(_) = other {
                        let (message, help) = (
                            format!("`{}` is for static values", op.token()),
                            format!("between tensors write `{}`", &op.token()[..1]),
                        );
                        return Err(self.error_help("elaborate::type_mismatch", span, message, help));
                    }
                    return Err(self.expected("a static bool", &other, span));
                }
                _ => {
                    let mut other = self.elements(right)?;
                    // Beside a tensor, numbers are elements.
                    if !matches!(value, Value::Tensor(_)) && !matches!(other, Value::Tensor(_)) {
                        value = self.static_number(value, tree.exprs[first].span)?;
                        other = self.static_number(other, tree.exprs[right].span)?;
                    }
                    self.binary(op, value, other, span)?
                }
            };
        }
        Ok(value)
    }

    /// Runs `f` for every combination of values of nested binders, row-major, with their names bound; once if there are
    /// no binders.
    pub fn each_binding(&mut self, binders: &[ast::Binder], f: &mut dyn FnMut(&mut Self) -> Result<()>) -> Result<()> {
        let Some((first, rest)) = binders.split_first() else { return f(self) };
        let span = self.tree().exprs[first.range].span;
        let value = self.loop_range(first.range, LoopKind::Unrolled)?;
        let count = self.count(&value, span)?;
        for k in 0..count {
            self.charge(span)?;
            let item = self.nth(&value, k);
            let mark = self.scopes.mark();
            let bound = self.bind(&first.pattern, item, false, first.span);
            let done = bound.and_then(|()| self.each_binding(rest, f));
            self.scopes.release(mark);
            done?;
        }
        Ok(())
    }

    /// Counts the iterations of a `for` over a value.
    pub fn count(&mut self, value: &Value, span: Span) -> Result<u64> {
        match value {
            Value::Range(r) => Ok(r.count),
            Value::List(l) => Ok(l.len() as u64),
            Value::Tuple(t) => Ok(t.values.len() as u64),
            Value::Array(a) if !a.shape.is_empty() => {
                // Its parts are copies.
                self.charge_many(a.bytes.len() as u64 / u64::from(a.ty.bytes()), span)?;
                Ok(a.shape[0])
            }
            Value::Int(_) => Err(self.error_help(
                "elaborate::type_mismatch",
                span,
                "`for` goes over a range or a list, not an integer",
                "write `0..n`",
            )),
            other => Err(self.expected("a range or a list", other, span)),
        }
    }

    /// Returns the k-th of the values that [`Elaborator::count`] counted.
    pub fn nth(&self, value: &Value, k: u64) -> Value {
        match value {
            Value::Range(r) => Value::Int(r.at(k)),
            Value::List(l) => l[k as usize].clone(),
            Value::Tuple(t) => t.values[k as usize].clone(),
            Value::Array(a) => a.part(k),
            _ => Value::Error,
        }
    }
}

fn is_least_int(kind: &ExprKind) -> bool {
    matches!(kind, ExprKind::Int { value, .. } if *value == i64::MIN.unsigned_abs())
}
