//! Functions, branches and tuples in columns: the body of a function that only computes is evaluated once for all turns.
//!
//! Invariant: what a function may do beside having a value (steps, variables, assertions, names that change) is left.

use super::nest::Nest;
use super::pick::{Pick, merged};
use super::{Column, Found, Ints, Named, Stop};
use crate::codelet::ModuleRef;
use crate::elaborator::Frame;
use crate::value::{Range, Tuple, Value};
use girder_source::Span;
use girder_syntax::ast::{self, ExprId, ExprKind, ItemKind, StmtKind, TypeKind};
use smol_str::SmolStr;
use std::sync::Arc;

/// Calls that may nest: each takes more of the stack than one that is evaluated turn by turn.
const MAX_CALLS: usize = 24;

/// What a body is worth, and whether it was left by `return`.
type Ended = (Column, bool);

impl<'a> Nest<'_, 'a> {
    /// Calls a function of a module.
    pub(super) fn call_fn(
        &mut self,
        module: ModuleRef,
        item: usize,
        args: Vec<(SmolStr, Column)>,
        span: Span,
    ) -> Found<Column> {
        let ItemKind::Fn(f) = &self.base.modules.get(module).tree.items[item].kind else { return Err(Stop::Leave) };
        let limit = MAX_CALLS.min(self.base.session.limits.nesting as usize);
        if f.codelet || !f.generics.is_empty() || self.base.calls.len() >= limit {
            return Err(Stop::Leave);
        }
        let params = self.params(f, args)?;
        let outer = std::mem::replace(&mut self.names, params);
        self.base.calls.push((module, item));
        self.base.call_spans.push(span);
        self.base.frames.push(Frame { module, names: vec![], loops: 0 });
        let done = self.body(&f.body);
        self.base.frames.pop();
        self.base.call_spans.pop();
        self.base.calls.pop();
        self.names = outer;
        self.stated(done?.0, f.result.as_ref())
    }

    /// The parameters with their arguments.
    fn params(&self, f: &ast::Fn, args: Vec<(SmolStr, Column)>) -> Found<Vec<(Named, Column)>> {
        let mut slots: Vec<Option<Column>> = vec![None; f.params.len()];
        let mut next = 0;
        for (name, value) in args {
            let slot = match name.is_empty() {
                true => {
                    next += 1;
                    Some(next - 1)
                }
                false => f.params.iter().position(|p| p.name.name == name),
            };
            match slot.and_then(|s| slots.get_mut(s)) {
                Some(s @ None) => *s = Some(value),
                _ => return Err(Stop::Leave),
            }
        }
        let param = |(p, value): (&ast::Param, Option<Column>)| {
            let value = self.stated(value.ok_or(Stop::Leave)?, p.ty.as_ref())?;
            Ok((Named::Name(p.name.name.clone()), value))
        };
        f.params.iter().zip(slots).map(param).collect()
    }

    /// A value as the type that is stated for it, where that is a static one.
    fn stated(&self, value: Column, ty: Option<&ast::Type>) -> Found<Column> {
        let Some(ty) = ty else { return Ok(value) };
        let TypeKind::Name { name, dims: None } = &ty.kind else { return Err(Stop::Leave) };
        Ok(match (name.dotted().as_str(), value) {
            ("int", value @ (Column::Known(Value::Int(_)) | Column::Ints(_))) => value,
            ("bool", value @ (Column::Known(Value::Bool(_)) | Column::Bools(_))) => value,
            ("place", value @ (Column::Known(Value::Place(_)) | Column::Tile(_))) => value,
            ("range", value @ (Column::Known(Value::Range(_)) | Column::Range { .. })) => value,
            ("float", Column::Known(Value::Int(i))) => Column::Known(Value::Float(i as f64)),
            ("float", Column::Ints(ints)) => {
                Column::Values(ints.values(&self.lens).map(|i| Value::Float(i as f64)).collect())
            }
            ("float", value @ Column::Known(Value::Float(_))) => value,
            ("float", Column::Values(values)) if values.iter().all(|v| matches!(v, Value::Float(_))) => {
                Column::Values(values)
            }
            _ => return Err(Stop::Leave),
        })
    }

    /// `let`s, one `if` after another, and a value.
    pub(super) fn body(&mut self, body: &'a ast::Body) -> Found<Ended> {
        let mark = self.names.len();
        let done = self.statements(body);
        self.names.truncate(mark);
        done
    }

    fn statements(&mut self, body: &'a ast::Body) -> Found<Ended> {
        let tree = self.base.tree();
        for (k, &stmt) in body.stmts.iter().enumerate() {
            let last = k + 1 == body.stmts.len() && body.value.is_none();
            self.base.charge(tree.stmts[stmt].span)?;
            match &tree.stmts[stmt].kind {
                StmtKind::Decl(ast::Decl::Let(l)) if !l.mutable => {
                    let value = self.expr(l.value)?;
                    let value = self.stated(value, l.ty.as_ref())?;
                    self.bind(&l.pattern, value)?;
                }
                StmtKind::Return(Some(value)) => return Ok((self.expr(*value)?, true)),
                StmtKind::Expr { expr, semi: false } => match self.block(*expr)? {
                    done @ (_, true) => return Ok(done),
                    done if last => return Ok(done),
                    // What it is worth is not used.
                    _ => {}
                },
                _ => return Err(Stop::Leave),
            }
        }
        match body.value {
            Some(value) => Ok((self.expr(value)?, false)),
            None => Ok((Column::Known(Value::Unit), false)),
        }
    }

    /// A block form.
    pub(super) fn block(&mut self, id: ExprId) -> Found<Ended> {
        let tree = self.base.tree();
        match &tree.exprs[id].kind {
            ExprKind::Block(body) => self.body(body),
            ExprKind::If { cond, then, els } => self.if_else(*cond, then, *els),
            _ => Err(Stop::Leave),
        }
    }

    fn if_else(&mut self, cond: ExprId, then: &'a ast::Body, els: Option<ExprId>) -> Found<Ended> {
        let bools = match self.expr(cond)? {
            Column::Known(Value::Bool(b)) => return if b { self.body(then) } else { self.otherwise(els) },
            Column::Bools(bools) => bools,
            _ => return Err(Stop::Leave),
        };
        let parts = Pick::by_key(&bools, &self.lens, 2).ok_or(Stop::Leave)?;
        let of = |wanted: bool| parts.iter().find(|p| (p.0 != 0) == wanted).map(|p| &p.1);
        let (yes, no) = match (of(true), of(false)) {
            (Some(yes), Some(no)) => (yes, no),
            (Some(_), None) => return self.body(then),
            (None, _) => return self.otherwise(els),
        };
        let (a, left_a) = self.for_turns(yes, no, &mut |this| this.body(then))?;
        let (b, left_b) = self.for_turns(no, yes, &mut |this| this.otherwise(els))?;
        let joined = (left_a == left_b).then(|| self.joined((yes, &a), (no, &b))).flatten();
        match joined {
            Some(value) => Ok((value, left_a)),
            None => Err(Stop::Part(bools)),
        }
    }

    fn otherwise(&mut self, els: Option<ExprId>) -> Found<Ended> {
        els.map_or(Ok((Column::Known(Value::Unit), false)), |e| self.block(e))
    }

    /// Evaluates for some of the turns; where these must be parted, all are, and the others stay together.
    fn for_turns(&mut self, turns: &Pick, others: &Pick, f: &mut dyn FnMut(&mut Self) -> Found<Ended>) -> Found<Ended> {
        let mut found = None;
        let done = self.within(turns, &mut |this| {
            found = Some(f(this)?);
            Ok(())
        });
        match done {
            Ok(()) => found.ok_or(Stop::Leave),
            Err(Stop::Part(keys)) => {
                let rest = Ints::constant(i64::MIN);
                Err(Stop::Part(merged(&[(turns, keys), (others, rest)], &self.lens)?))
            }
            Err(stop) => Err(stop),
        }
    }

    /// One column from two over different turns, if one can hold both.
    fn joined(&self, (yes, a): (&Pick, &Column), (no, b): (&Pick, &Column)) -> Option<Column> {
        let both = |a: &Ints, b: &Ints| merged(&[(yes, a.clone()), (no, b.clone())], &self.lens).ok();
        let ints = |c: &Column| match c {
            Column::Known(Value::Int(i)) => Some(Ints::constant(*i)),
            Column::Ints(ints) => Some(ints.clone()),
            _ => None,
        };
        let range = |c: &Column| match c {
            Column::Known(Value::Range(r)) => Some((Ints::constant(r.start), r.count, r.step)),
            Column::Range { start, count, step } => Some((start.clone(), *count, *step)),
            _ => None,
        };
        let tile = |c: &Column| match c {
            Column::Known(Value::Place(p)) if p.count == 1 => Some(Ints::constant(p.first as i64)),
            Column::Tile(tile) => Some(tile.clone()),
            _ => None,
        };
        let bools = |c: &Column| match c {
            Column::Known(Value::Bool(b)) => Some(Ints::constant(*b as i64)),
            Column::Bools(bools) => Some(bools.clone()),
            _ => None,
        };
        if let (Column::Known(Value::Unit), Column::Known(Value::Unit)) = (a, b) {
            return Some(Column::Known(Value::Unit));
        }
        if let (Some(a), Some(b)) = (ints(a), ints(b)) {
            return both(&a, &b).map(Column::Ints);
        }
        if let (Some(a), Some(b)) = (tile(a), tile(b)) {
            return both(&a, &b).map(Column::Tile);
        }
        if let (Some(a), Some(b)) = (bools(a), bools(b)) {
            return both(&a, &b).map(Column::Bools);
        }
        match (range(a)?, range(b)?) {
            ((a, count, step), (b, n, by)) if count == n && step == by => {
                Some(Column::Range { start: both(&a, &b)?, count, step })
            }
            _ => None,
        }
    }

    /// `(a, b)`, `(w: a, b: c)`
    pub(super) fn tuple(&mut self, args: &[ast::Arg]) -> Found<Column> {
        let mut names: Vec<SmolStr> = vec![];
        let mut parts = vec![];
        for a in args {
            let name = a.name.as_ref().map_or(SmolStr::default(), |n| n.name.clone());
            if !name.is_empty() && names.contains(&name) {
                return Err(Stop::Leave);
            }
            parts.push(self.expr(a.value)?);
            names.push(name);
        }
        if parts.is_empty() {
            return Ok(Column::Known(Value::Unit));
        }
        let known = |c: &Column| if let Column::Known(v) = c { Some(v.clone()) } else { None };
        Ok(match parts.iter().map(known).collect::<Option<Vec<_>>>() {
            Some(values) => Column::Known(Value::Tuple(Arc::new(Tuple { names, values }))),
            None => Column::Tuple { names: names.into(), parts: parts.into() },
        })
    }
}

/// A range with its start in a column.
pub(super) fn range_of(start: Ints, count: u64, step: i64) -> Column {
    match start.as_constant() {
        Some(start) => Column::Known(Value::Range(Range { start, count, step })),
        None => Column::Range { start, count, step },
    }
}
