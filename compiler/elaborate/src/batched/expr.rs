//! Batched evaluation of expressions.
//!
//! Invariant: the batch of an expression holds the values that evaluation one iteration at a time gives, in order.

use super::evaluator::Evaluator;
use super::functions::range_of;
use super::subset::{Subset, merged};
use super::{Batch, Found, Ints, Named, Stop};
use crate::integers::{self, Checked};
use crate::literals::Literal;
use crate::value::Given;
use crate::value::{Range, Value};
use girder_source::Span;
use girder_syntax::ast::{self, BinaryOp, ExprId, ExprKind, UnaryOp};
use girder_typing::ModuleRef;
use smol_str::SmolStr;
use std::sync::Arc;

/// Built-in functions that emit no step and make no entity.
const PURE: [&str; 17] = [
    "ipu",
    "linear",
    "concat",
    "len",
    "zip",
    "enumerate",
    "int",
    "float",
    "div_ceil",
    "min",
    "max",
    "abs",
    "log2",
    "pow",
    "list",
    "reversed",
    "tile",
];

impl<'a> Evaluator<'_, 'a> {
    /// Evaluates an expression.
    pub fn expr(&mut self, id: ExprId) -> Found<Batch> {
        let tree = self.base.tree();
        let e = &tree.exprs[id];
        self.base.charge(e.span)?;
        let found = self.expr_kind(id)?;
        // A name shares the table of its value. Other values take as much again while they are made.
        if !matches!(e.kind, ExprKind::Name(_)) {
            self.base.charge_bytes(2 * found.bytes(), e.span)?;
        }
        Ok(found)
    }

    fn expr_kind(&mut self, id: ExprId) -> Found<Batch> {
        let tree = self.base.tree();
        let e = &tree.exprs[id];
        match &e.kind {
            ExprKind::Name(name) => match self.local(name) {
                Some(batch) => Ok(batch.clone()),
                None => self.outer(name, id),
            },
            ExprKind::Int { .. } if let Some(batch) = self.find(&Named::Int(id)) => Ok(batch.clone()),
            kind if Literal::of(kind).is_some() => Err(Stop::Leave),
            ExprKind::Int { .. } | ExprKind::Float { .. } | ExprKind::Str(_) | ExprKind::Bool(_) => {
                Ok(Batch::Uniform(self.base.expr(id)?))
            }
            ExprKind::Integers(_) => Ok(Batch::Uniform(self.base.expr(id)?)),
            ExprKind::Paren(inner) => self.expr(*inner),
            ExprKind::List(items) => {
                let values = items.iter().map(|&i| self.expr(i).and_then(uniform)).collect::<Found<Vec<_>>>()?;
                Ok(Batch::Uniform(Value::List(Arc::new(values))))
            }
            ExprKind::Field { base, name } => self.field(id, *base, name),
            ExprKind::Call { callee, args } => self.call(*callee, args, id),
            ExprKind::Index { base, index } => {
                let base = self.expr(*base)?;
                self.index(base, index)
            }
            ExprKind::Unary { op, value } => self.unary(*op, *value),
            ExprKind::Binary { .. } => self.chain(id),
            ExprKind::Range { start, end, closed, by } => self.range(*start, *end, *closed, *by),
            ExprKind::Tuple(args) => self.tuple(args),
            ExprKind::Reduce(r) => self.inner_reduction(r, e.span),
            ExprKind::Block(_) | ExprKind::If { .. } => match self.block(id)? {
                (value, false) => Ok(value),
                // This is an error, which evaluation one iteration at a time reports.
                (_, true) => Err(Stop::Leave),
            },
            _ => Err(Stop::Leave),
        }
    }

    /// Evaluates `a op b`, and a chain `a + b + …`, whose left operands are descended in a loop.
    fn chain(&mut self, id: ExprId) -> Found<Batch> {
        let tree = self.base.tree();
        let mut pending = vec![];
        let mut first = id;
        while let ExprKind::Binary { op, left, right } = &tree.exprs[first].kind {
            if first != id {
                self.base.charge(tree.exprs[first].span)?;
            }
            pending.push((*op, *right, tree.exprs[first].span));
            first = *left;
        }
        let mut value = self.expr(first)?;
        while let Some((op, right, span)) = pending.pop() {
            value = match (op, value) {
                (BinaryOp::And, left @ Batch::Uniform(Value::Bool(false)))
                | (BinaryOp::Or, left @ Batch::Uniform(Value::Bool(true))) => left,
                (BinaryOp::And | BinaryOp::Or, Batch::Bools(decided)) => self.undecided(op, &decided, right)?,
                (_, left) => {
                    let right = self.expr(right)?;
                    self.binary(op, left, right, span)?
                }
            };
        }
        Ok(value)
    }

    fn local(&self, name: &str) -> Option<&Batch> {
        self.find(&Named::Name(name.into()))
    }

    fn find(&self, named: &Named) -> Option<&Batch> {
        self.names.iter().rev().find(|(n, _)| n == named).map(|(_, c)| c)
    }

    /// Evaluates a name from outside the loops. An unknown name is left to evaluation one iteration at a time, which
    /// reports it.
    fn outer(&mut self, name: &SmolStr, id: ExprId) -> Found<Batch> {
        if !self.base.is_name(name) {
            return Err(Stop::Leave);
        }
        Ok(Batch::Uniform(self.base.expr(id)?))
    }

    fn field(&mut self, id: ExprId, base: ExprId, name: &ast::Ident) -> Found<Batch> {
        if let Some(path) = crate::trees::dotted(self.base.tree(), id) {
            let first = path.split('.').next().unwrap_or_default();
            if self.local(first).is_none() {
                return Ok(Batch::Uniform(self.base.expr(id)?));
            }
        }
        let value = match self.expr(base)? {
            Batch::Uniform(value) => value,
            Batch::View { like, .. } if crate::members::MEMBERS.contains(&name.name.as_str()) => like.into(),
            Batch::Range { count, .. } if name.name == "len" => Value::Range(Range { start: 0, count, step: 1 }),
            Batch::Values(all) => {
                let member = |v: &Value| match v {
                    Value::Tuple(t) => t.get(&name.name).cloned(),
                    _ => None,
                };
                let all: Option<Vec<Value>> = all.iter().map(member).collect();
                return all.map(Batch::of).ok_or(Stop::Leave);
            }
            Batch::Tuple { names, parts } => {
                let at = names.iter().position(|n| *n == name.name);
                return at.map(|k| parts[k].clone()).ok_or(Stop::Leave);
            }
            _ => return Err(Stop::Leave),
        };
        let span = self.base.tree().exprs[id].span;
        Ok(Batch::Uniform(self.base.member(value, name, span)?))
    }

    fn call(&mut self, callee: ExprId, args: &[ast::Arg], id: ExprId) -> Found<Batch> {
        let tree = self.base.tree();
        let span = tree.exprs[id].span;
        if let ExprKind::Field { base, name } = &tree.exprs[callee].kind {
            let path = crate::trees::dotted(tree, callee);
            if let Some(path) = path.filter(|p| self.base.names_value(p)) {
                let first = path.split('.').next().unwrap_or_default();
                return match self.local(first) {
                    None => match self.base.expr(callee)? {
                        Value::Fn(module, item) => self.call_named(module, item, args, span),
                        _ => Err(Stop::Leave),
                    },
                    Some(_) => Err(Stop::Leave),
                };
            }
            if self.base.is_target(*base) {
                let given = self.uniform_args(args)?;
                return Ok(Batch::Uniform(self.base.target_rate(name, given, span)?));
            }
            let base = self.expr(*base)?;
            if name.name == "strided" {
                return self.strided(base, name, args, span);
            }
            let given = self.uniform_args(args)?;
            return self.view_method(base, name, given, span);
        }
        let ExprKind::Name(name) = &tree.exprs[callee].kind else { return Err(Stop::Leave) };
        let builtin = match self.local(name) {
            None if self.base.is_data(name) => self.base.builtin_name(name),
            None if self.base.is_name(name) => Some(self.base.name(name, span)?),
            _ => None,
        };
        let builtin = match builtin {
            Some(Value::Builtin(builtin)) if PURE.contains(&builtin) => builtin,
            Some(Value::Builtin("cycles")) => return self.cycles(args, span),
            Some(Value::Fn(module, item)) => return self.call_named(module, item, args, span),
            Some(Value::Closure(closure)) => {
                let values = self.named_args(args)?;
                let f = self.base.function_of(&closure)?;
                return self.enter_fn((closure.module, None), f, &closure.captured, values, span);
            }
            _ => return Err(Stop::Leave),
        };
        let mut values = args.iter().map(|a| self.expr(a.value)).collect::<Found<Vec<_>>>()?;
        if builtin == "len" {
            values = values.into_iter().map(of_same_length).collect();
        }
        let plain = args.iter().all(|a| a.name.is_none());
        if values.iter().all(|v| matches!(v, Batch::Uniform(_))) {
            let given = values.into_iter().zip(args).map(|(v, a)| given(v, a, tree)).collect::<Found<Vec<_>>>()?;
            // On tensors, these functions emit steps.
            let steps = builtin != "concat" && builtin != "len";
            if steps && given.iter().any(|g| matches!(g.value, Value::Tensor(_) | Value::Array(_))) {
                return Err(Stop::Leave);
            }
            return Ok(Batch::Uniform(self.base.call_builtin(builtin, given, span)?));
        }
        if !plain {
            return Err(Stop::Leave);
        }
        match <[Batch; 1]>::try_from(values) {
            Ok([k]) if builtin == "tile" => self.tile_of(k.ints()?),
            Ok([x]) => {
                let function = integers::of_one(builtin).ok_or(Stop::Leave)?;
                Ok(Batch::Ints(x.ints()?.map(&self.extents, |v| function(v).ok())?))
            }
            Err(values) => {
                let function = integers::of_two(builtin).ok_or(Stop::Leave)?;
                if values.len() > 2 && !matches!(builtin, "min" | "max") {
                    return Err(Stop::Leave);
                }
                self.folded(values, function)
            }
        }
    }

    fn call_named(&mut self, module: ModuleRef, item: usize, args: &[ast::Arg], span: Span) -> Found<Batch> {
        let values = self.named_args(args)?;
        self.call_fn(module, item, values, span)
    }

    fn named_args(&mut self, args: &[ast::Arg]) -> Found<Vec<(SmolStr, Batch)>> {
        let name = |a: &ast::Arg| a.name.as_ref().map_or(SmolStr::default(), |n| n.name.clone());
        args.iter().map(|a| Ok((name(a), self.expr(a.value)?))).collect()
    }

    /// Folds integers by a function of two integers, from the left.
    pub(super) fn folded(&mut self, values: Vec<Batch>, function: fn(i64, i64) -> Checked) -> Found<Batch> {
        let mut values = values.into_iter().map(Batch::ints);
        let mut result = values.next().ok_or(Stop::Leave)??;
        for v in values {
            result = result.zip(&v?, &self.extents, |a, b| function(a, b).ok())?;
        }
        Ok(Batch::Ints(result))
    }

    /// Evaluates `tile(k)`, counted from the current place.
    fn tile_of(&mut self, k: Ints) -> Found<Batch> {
        let here = self.base.current_place();
        let (lo, hi) = k.bounds(&self.extents);
        if lo < 0 || hi >= here.count as i64 {
            return Err(Stop::Leave);
        }
        Ok(Batch::Tile(k.add(&Ints::constant(here.first as i64), &self.extents)?))
    }

    pub(super) fn uniform_args(&mut self, args: &[ast::Arg]) -> Found<Vec<Given>> {
        let tree = self.base.tree();
        args.iter().map(|a| self.expr(a.value).and_then(|v| given(v, a, tree))).collect()
    }

    fn unary(&mut self, op: UnaryOp, value: ExprId) -> Found<Batch> {
        let span = self.base.tree().exprs[value].span;
        match (op, self.expr(value)?) {
            (_, Batch::Uniform(v @ (Value::Int(_) | Value::Float(_) | Value::Bool(_)))) => {
                Ok(Batch::Uniform(self.base.unary(op, v, span)?))
            }
            (UnaryOp::Neg, Batch::Ints(ints)) => Ok(Batch::Ints(ints.scale(-1, &self.extents)?)),
            (UnaryOp::Not, Batch::Ints(ints)) => Ok(Batch::Ints(ints.map(&self.extents, |v| Some(!v))?)),
            (UnaryOp::Not, Batch::Bools(bools)) => Ok(Batch::Bools(bools.map(&self.extents, |b| Some(1 - b))?)),
            _ => Err(Stop::Leave),
        }
    }

    /// Evaluates `left && right`, `left || right`: the right side only in the iterations in which the left side does
    /// not decide.
    fn undecided(&mut self, op: BinaryOp, left: &Ints, right: ExprId) -> Found<Batch> {
        let open = op == BinaryOp::And;
        let parts = Subset::by_key(left, &self.extents, 2).ok_or(Stop::Leave)?;
        let mut values = vec![];
        for (key, subset) in &parts {
            if (*key != 0) != open {
                values.push((subset, Ints::constant(*key)));
                continue;
            }
            let mut found = None;
            let evaluated = self.within(subset, &mut |this| {
                found = Some(this.expr(right)?);
                Ok(())
            });
            match evaluated {
                // The keys cover only the undecided iterations.
                Err(Stop::Split(_)) => return Err(Stop::Leave),
                other => other?,
            }
            values.push((subset, bools(found.ok_or(Stop::Leave)?)?));
        }
        Ok(Batch::Bools(match <[_; 1]>::try_from(values) {
            Ok([(_, all)]) => all,
            Err(values) => merged(&values, &self.extents)?,
        }))
    }

    pub(super) fn binary(&mut self, op: BinaryOp, left: Batch, right: Batch, span: Span) -> Found<Batch> {
        use BinaryOp::{And, Or};
        let static_value = |v: &Value| !matches!(v, Value::Tensor(_) | Value::Array(_));
        match (left, right) {
            (Batch::Uniform(a), Batch::Uniform(b)) if static_value(&a) && static_value(&b) => {
                // In these iterations the left side does not decide, or is not a boolean.
                if let (And | Or, Value::Bool(_), Value::Bool(_)) = (op, &a, &b) {
                    return Ok(Batch::Uniform(b));
                }
                if matches!(op, And | Or) {
                    return Err(Stop::Leave);
                }
                Ok(Batch::Uniform(self.base.binary(op, a, b, span)?))
            }
            (a, b) => {
                let (a, b) = (a.ints()?, b.ints()?);
                match integers::comparison(op) {
                    None => Ok(Batch::Ints(a.binary(op, &b, &self.extents)?)),
                    Some(holds) => Ok(Batch::Bools(a.zip(&b, &self.extents, |a, b| Some(holds(&a, &b) as i64))?)),
                }
            }
        }
    }

    fn range(&mut self, start: ExprId, end: ExprId, closed: bool, by: Option<ExprId>) -> Found<Batch> {
        let (start, end) = (self.expr(start)?.ints()?, self.expr(end)?.ints()?);
        let step = match by {
            None => 1,
            Some(by) => self.expr(by)?.ints()?.as_constant().ok_or(Stop::Leave)?,
        };
        self.make_range(start, end, closed, step)
    }

    /// Evaluates `start..end by step`; splits the iterations if lengths differ.
    pub(super) fn make_range(&mut self, start: Ints, end: Ints, closed: bool, step: i64) -> Found<Batch> {
        if step == 0 || step == i64::MIN {
            return Err(Stop::Leave);
        }
        let distance = end.sub(&start, &self.extents)?;
        let count = |distance: i64| {
            let distance = distance.checked_add(if closed { step.signum() } else { 0 })?;
            let along = if step > 0 { distance } else { distance.checked_neg()? };
            i64::try_from((along.max(0) as u64).div_ceil(step.unsigned_abs())).ok()
        };
        let counts = match distance.as_constant() {
            Some(d) => Ints::constant(count(d).ok_or(Stop::Leave)?),
            None => distance.map(&self.extents, count)?,
        };
        let (lo, hi) = counts.bounds(&self.extents);
        if lo != hi {
            return Err(Stop::Split(counts));
        }
        Ok(range_of(start, lo as u64, step))
    }
}

/// Returns a value that is the same in all iterations.
pub(super) fn uniform(batch: Batch) -> Found<Value> {
    match batch {
        Batch::Uniform(value) => Ok(value),
        _ => Err(Stop::Leave),
    }
}

/// Returns an argument that is the same in all iterations.
pub(super) fn given(batch: Batch, arg: &ast::Arg, tree: &ast::Module) -> Found<Given> {
    let name = arg.name.as_ref().map_or(SmolStr::default(), |n| n.name.clone());
    Ok(Given { name, value: uniform(batch)?, span: tree.exprs[arg.value].span })
}

/// Returns one boolean per iteration.
pub(super) fn bools(batch: Batch) -> Found<Ints> {
    match batch {
        Batch::Bools(bools) => Ok(bools),
        Batch::Uniform(Value::Bool(b)) => Ok(Ints::constant(b as i64)),
        _ => Err(Stop::Leave),
    }
}

/// Replaces ranges and views that move by one value of their length.
fn of_same_length(batch: Batch) -> Batch {
    match batch {
        Batch::Range { count, .. } => Batch::Uniform(Value::Range(Range { start: 0, count, step: 1 })),
        Batch::View { like, .. } => Batch::Uniform(like.into()),
        other => other,
    }
}
