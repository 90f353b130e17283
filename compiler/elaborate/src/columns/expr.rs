//! Expressions in columns.

use super::functions::range_of;
use super::nest::Nest;
use super::pick::{Pick, merged};
use super::{Column, Found, Ints, Named, Stop};
use crate::calls::Given;
use crate::codelet::ModuleRef;
use crate::integers::{self, Checked};
use crate::value::{Range, Value};
use girder_source::Span;
use girder_syntax::ast::{self, BinaryOp, ExprId, ExprKind, UnaryOp};
use smol_str::SmolStr;
use std::sync::Arc;

/// Built-in functions that emit no step and make nothing.
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

impl<'a> Nest<'_, 'a> {
    /// What an expression is worth in every turn.
    pub fn expr(&mut self, id: ExprId) -> Found<Column> {
        let tree = self.base.tree();
        let e = &tree.exprs[id];
        self.base.charge(e.span)?;
        match &e.kind {
            ExprKind::Name(name) => match self.local(name) {
                Some(column) => Ok(column.clone()),
                None => self.outer(name, id),
            },
            ExprKind::Int { .. } if let Some(column) = self.find(&Named::Int(id)) => Ok(column.clone()),
            ExprKind::Int { .. } | ExprKind::Float { .. } | ExprKind::Str(_) | ExprKind::Bool(_) => {
                Ok(Column::Known(self.base.expr(id)?))
            }
            ExprKind::Paren(inner) => self.expr(*inner),
            ExprKind::List(items) => {
                let values = items.iter().map(|&i| self.expr(i).and_then(known)).collect::<Found<Vec<_>>>()?;
                Ok(Column::Known(Value::List(Arc::new(values))))
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
            ExprKind::Block(_) | ExprKind::If { .. } => match self.block(id)? {
                (value, false) => Ok(value),
                // An error, to be said where it is met.
                (_, true) => Err(Stop::Leave),
            },
            _ => Err(Stop::Leave),
        }
    }

    /// `a op b`, and a chain `a + b + …`, whose left operands are descended in a loop.
    fn chain(&mut self, id: ExprId) -> Found<Column> {
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
                (BinaryOp::And, left @ Column::Known(Value::Bool(false)))
                | (BinaryOp::Or, left @ Column::Known(Value::Bool(true))) => left,
                (BinaryOp::And | BinaryOp::Or, Column::Bools(decided)) => self.undecided(op, &decided, right)?,
                (_, left) => {
                    let right = self.expr(right)?;
                    self.binary(op, left, right, span)?
                }
            };
        }
        Ok(value)
    }

    fn local(&self, name: &str) -> Option<&Column> {
        self.find(&Named::Name(name.into()))
    }

    fn find(&self, named: &Named) -> Option<&Column> {
        self.names.iter().rev().find(|(n, _)| n == named).map(|(_, c)| c)
    }

    /// A name from outside the loops. An unknown one is left, so that it is said where it is met.
    fn outer(&mut self, name: &SmolStr, id: ExprId) -> Found<Column> {
        if !self.base.is_name(name) {
            return Err(Stop::Leave);
        }
        Ok(Column::Known(self.base.expr(id)?))
    }

    fn field(&mut self, id: ExprId, base: ExprId, name: &ast::Ident) -> Found<Column> {
        if let Some(path) = crate::scope::dotted(self.base.tree(), id) {
            let first = path.split('.').next().unwrap_or_default();
            if self.local(first).is_none() {
                return Ok(Column::Known(self.base.expr(id)?));
            }
        }
        let value = match self.expr(base)? {
            Column::Known(value) => value,
            Column::View { like, .. } if ["shape", "rank", "len", "type"].contains(&name.name.as_str()) => like.into(),
            Column::Range { count, .. } if name.name == "len" => Value::Range(Range { start: 0, count, step: 1 }),
            Column::Values(all) => {
                let member = |v: &Value| match v {
                    Value::Tuple(t) => t.get(&name.name).cloned(),
                    _ => None,
                };
                let all: Option<Vec<Value>> = all.iter().map(member).collect();
                return all.map(Column::of).ok_or(Stop::Leave);
            }
            Column::Tuple { names, parts } => {
                let at = names.iter().position(|n| *n == name.name);
                return at.map(|k| parts[k].clone()).ok_or(Stop::Leave);
            }
            _ => return Err(Stop::Leave),
        };
        let span = self.base.tree().exprs[id].span;
        Ok(Column::Known(self.base.member(value, name, span)?))
    }

    fn call(&mut self, callee: ExprId, args: &[ast::Arg], id: ExprId) -> Found<Column> {
        let tree = self.base.tree();
        let span = tree.exprs[id].span;
        if let ExprKind::Field { base, name } = &tree.exprs[callee].kind {
            let path = crate::scope::dotted(tree, callee);
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
            let base = self.expr(*base)?;
            let given = self.known_args(args)?;
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
            Some(Value::Fn(module, item)) => return self.call_named(module, item, args, span),
            _ => return Err(Stop::Leave),
        };
        let values = args.iter().map(|a| self.expr(a.value)).collect::<Found<Vec<_>>>()?;
        let plain = args.iter().all(|a| a.name.is_none());
        if values.iter().all(|v| matches!(v, Column::Known(_))) {
            let given = values.into_iter().zip(args).map(|(v, a)| given(v, a, tree)).collect::<Found<Vec<_>>>()?;
            // Of tensors these take steps.
            let steps = builtin != "concat" && builtin != "len";
            if steps && given.iter().any(|g| matches!(g.value, Value::Tensor(_) | Value::Array(_))) {
                return Err(Stop::Leave);
            }
            return Ok(Column::Known(self.base.call_builtin(builtin, given, span)?));
        }
        if !plain {
            return Err(Stop::Leave);
        }
        match <[Column; 1]>::try_from(values) {
            Ok([k]) if builtin == "tile" => self.tile_of(k.ints()?),
            Ok([x]) => {
                let function = integers::of_one(builtin).ok_or(Stop::Leave)?;
                Ok(Column::Ints(x.ints()?.map(&self.lens, |v| function(v).ok())?))
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

    fn call_named(&mut self, module: ModuleRef, item: usize, args: &[ast::Arg], span: Span) -> Found<Column> {
        let mut values = vec![];
        for a in args {
            let name = a.name.as_ref().map_or(SmolStr::default(), |n| n.name.clone());
            values.push((name, self.expr(a.value)?));
        }
        self.call_fn(module, item, values, span)
    }

    /// Folds integers by a function of two, from the left.
    fn folded(&mut self, values: Vec<Column>, function: fn(i64, i64) -> Checked) -> Found<Column> {
        let mut values = values.into_iter().map(Column::ints);
        let mut result = values.next().ok_or(Stop::Leave)??;
        for v in values {
            result = result.zip(&v?, &self.lens, |a, b| function(a, b).ok())?;
        }
        Ok(Column::Ints(result))
    }

    /// `tile(k)`, counted from the current place.
    fn tile_of(&mut self, k: Ints) -> Found<Column> {
        let here = self.base.current_place();
        let (lo, hi) = k.bounds(&self.lens);
        if lo < 0 || hi >= here.count as i64 {
            return Err(Stop::Leave);
        }
        Ok(Column::Tile(k.add(&Ints::constant(here.first as i64), &self.lens)?))
    }

    fn known_args(&mut self, args: &[ast::Arg]) -> Found<Vec<Given>> {
        let tree = self.base.tree();
        args.iter().map(|a| self.expr(a.value).and_then(|v| given(v, a, tree))).collect()
    }

    fn unary(&mut self, op: UnaryOp, value: ExprId) -> Found<Column> {
        let span = self.base.tree().exprs[value].span;
        match (op, self.expr(value)?) {
            (_, Column::Known(v @ (Value::Int(_) | Value::Float(_) | Value::Bool(_)))) => {
                Ok(Column::Known(self.base.unary(op, v, span)?))
            }
            (UnaryOp::Neg, Column::Ints(ints)) => Ok(Column::Ints(ints.scale(-1, &self.lens)?)),
            (UnaryOp::Not, Column::Ints(ints)) => Ok(Column::Ints(ints.map(&self.lens, |v| Some(!v))?)),
            (UnaryOp::Not, Column::Bools(bools)) => Ok(Column::Bools(bools.map(&self.lens, |b| Some(1 - b))?)),
            _ => Err(Stop::Leave),
        }
    }

    /// `left && right`, `left || right`: the right side is evaluated in the turns that the left side does not decide.
    fn undecided(&mut self, op: BinaryOp, left: &Ints, right: ExprId) -> Found<Column> {
        let open = op == BinaryOp::And;
        let parts = Pick::by_key(left, &self.lens, 2).ok_or(Stop::Leave)?;
        let mut values = vec![];
        for (key, pick) in &parts {
            if (*key != 0) != open {
                values.push((pick, Ints::constant(*key)));
                continue;
            }
            let mut found = None;
            let evaluated = self.within(pick, &mut |this| {
                found = Some(this.expr(right)?);
                Ok(())
            });
            match evaluated {
                // The keys are those of the open turns only.
                Err(Stop::Part(_)) => return Err(Stop::Leave),
                other => other?,
            }
            values.push((pick, bools(found.ok_or(Stop::Leave)?)?));
        }
        Ok(Column::Bools(match <[_; 1]>::try_from(values) {
            Ok([(_, all)]) => all,
            Err(values) => merged(&values, &self.lens)?,
        }))
    }

    fn binary(&mut self, op: BinaryOp, left: Column, right: Column, span: Span) -> Found<Column> {
        use BinaryOp::{And, Or};
        let static_value = |v: &Value| !matches!(v, Value::Tensor(_) | Value::Array(_));
        match (left, right) {
            (Column::Known(a), Column::Known(b)) if static_value(&a) && static_value(&b) => {
                // The left side of these does not decide here, or is no boolean.
                if let (And | Or, Value::Bool(_), Value::Bool(_)) = (op, &a, &b) {
                    return Ok(Column::Known(b));
                }
                if matches!(op, And | Or) {
                    return Err(Stop::Leave);
                }
                Ok(Column::Known(self.base.binary(op, a, b, span)?))
            }
            (a, b) => {
                let (a, b) = (a.ints()?, b.ints()?);
                match integers::comparison(op) {
                    None => Ok(Column::Ints(a.binary(op, &b, &self.lens)?)),
                    Some(holds) => Ok(Column::Bools(a.zip(&b, &self.lens, |a, b| Some(holds(&a, &b) as i64))?)),
                }
            }
        }
    }

    fn range(&mut self, start: ExprId, end: ExprId, closed: bool, by: Option<ExprId>) -> Found<Column> {
        let (start, end) = (self.expr(start)?.ints()?, self.expr(end)?.ints()?);
        let step = match by {
            None => 1,
            Some(by) => self.expr(by)?.ints()?.as_constant().ok_or(Stop::Leave)?,
        };
        self.make_range(start, end, closed, step)
    }

    /// `start..end by step`: turns where it has another length go on apart.
    pub(super) fn make_range(&mut self, start: Ints, end: Ints, closed: bool, step: i64) -> Found<Column> {
        if step == 0 || step == i64::MIN {
            return Err(Stop::Leave);
        }
        let distance = end.sub(&start, &self.lens)?;
        let count = |distance: i64| {
            let distance = distance.checked_add(if closed { step.signum() } else { 0 })?;
            let along = if step > 0 { distance } else { distance.checked_neg()? };
            i64::try_from((along.max(0) as u64).div_ceil(step.unsigned_abs())).ok()
        };
        let counts = match distance.as_constant() {
            Some(d) => Ints::constant(count(d).ok_or(Stop::Leave)?),
            None => distance.map(&self.lens, count)?,
        };
        let (lo, hi) = counts.bounds(&self.lens);
        if lo != hi {
            return Err(Stop::Part(counts));
        }
        Ok(range_of(start, lo as u64, step))
    }
}

/// The value that is the same in all turns.
fn known(column: Column) -> Found<Value> {
    match column {
        Column::Known(value) => Ok(value),
        _ => Err(Stop::Leave),
    }
}

fn given(column: Column, arg: &ast::Arg, tree: &ast::Module) -> Found<Given> {
    let name = arg.name.as_ref().map_or(SmolStr::default(), |n| n.name.clone());
    Ok(Given { name, value: known(column)?, span: tree.exprs[arg.value].span })
}

/// One boolean per turn.
fn bools(column: Column) -> Found<Ints> {
    match column {
        Column::Bools(bools) => Ok(bools),
        Column::Known(Value::Bool(b)) => Ok(Ints::constant(b as i64)),
        _ => Err(Stop::Leave),
    }
}
