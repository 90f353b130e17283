//! Batched evaluation of functions, branches and tuples: a body without effects is evaluated once for all iterations.
//!
//! Invariant: a function that does anything else (steps, variables, assertions, assignments) is left to evaluation one
//! iteration at a time.

use super::evaluator::Evaluator;
use super::expr::uniform;
use super::subset::{Subset, merged};
use super::{Batch, Found, Ints, Named, Stop};
use crate::binding::bind;
use crate::value::{Range, Tuple, Value};
use girder_source::Span;
use girder_syntax::ast::{self, ExprId, ExprKind, ItemKind, StmtKind, TypeKind};
use girder_typing::ModuleRef;
use smol_str::SmolStr;
use std::sync::Arc;

/// Maximal nesting of calls: a batched call takes more stack than a call in one iteration.
const MAX_CALLS: usize = 24;

/// The value of a body, and whether a `return` ended it.
type Ended = (Batch, bool);

impl<'a> Evaluator<'_, 'a> {
    /// Calls a function of a module.
    pub(super) fn call_fn(
        &mut self,
        module: ModuleRef,
        item: usize,
        args: Vec<(SmolStr, Batch)>,
        span: Span,
    ) -> Found<Batch> {
        let ItemKind::Fn(f) = &self.base.modules.get(module).tree.items[item].kind else { return Err(Stop::Leave) };
        self.enter_fn((module, Some(item)), f, &[], args, span)
    }

    /// Calls a function of a module. One that is no item is a closure, which sees the names that it captured.
    pub(super) fn enter_fn(
        &mut self,
        (module, item): (ModuleRef, Option<usize>),
        f: &'a ast::Fn,
        captured: &[(SmolStr, Value)],
        args: Vec<(SmolStr, Batch)>,
        span: Span,
    ) -> Found<Batch> {
        let limit = MAX_CALLS.min(self.base.session.limits.nesting as usize);
        if f.codelet || !f.generics.is_empty() || self.base.functions.len() >= limit {
            return Err(Stop::Leave);
        }
        let params = self.params(f, args)?;
        let outer = std::mem::replace(&mut self.names, params);
        self.base.functions.push(item.map(|item| (module, item)));
        self.base.reporter.enter_call(span);
        self.base.scopes.enter(module);
        self.base.scopes.define_captured(captured, self.base.emission.run_time_depth());
        let done = self.body(&f.body);
        self.base.scopes.leave();
        self.base.reporter.leave_call();
        self.base.functions.pop();
        self.names = outer;
        self.stated(done?.0, f.result.as_ref())
    }

    /// Binds the parameters to their arguments.
    fn params(&self, f: &ast::Fn, args: Vec<(SmolStr, Batch)>) -> Found<Vec<(Named, Batch)>> {
        let parameter = |name: &str| f.params.iter().position(|p| p.name.name == name);
        let slots = bind(args, f.params.len(), parameter).map_err(|_| Stop::Leave)?;
        let param = |(p, value): (&ast::Param, Option<(SmolStr, Batch)>)| {
            let value = self.stated(value.ok_or(Stop::Leave)?.1, p.ty.as_ref())?;
            Ok((Named::Name(p.name.name.clone()), value))
        };
        f.params.iter().zip(slots).map(param).collect()
    }

    /// Converts a value to its stated type, if that is a static one.
    fn stated(&self, value: Batch, ty: Option<&ast::Type>) -> Found<Batch> {
        let Some(ty) = ty else { return Ok(value) };
        match (&ty.kind, value) {
            (TypeKind::Name { name, dims: None }, value) => self.stated_name(value, &name.dotted()),
            (TypeKind::Tuple(types), value) => self.stated_tuple(value, types),
            (TypeKind::List(of), Batch::Uniform(Value::List(values))) => {
                let fitted = values.iter().map(|v| self.stated(Batch::Uniform(v.clone()), Some(of)).and_then(uniform));
                Ok(Batch::Uniform(Value::List(Arc::new(fitted.collect::<Found<_>>()?))))
            }
            _ => Err(Stop::Leave),
        }
    }

    fn stated_tuple(&self, value: Batch, types: &[(Option<ast::Ident>, ast::Type)]) -> Found<Batch> {
        let (own, parts): (Vec<SmolStr>, Vec<Batch>) = match value {
            Batch::Tuple { names, parts } => (names.to_vec(), parts.to_vec()),
            Batch::Uniform(Value::Tuple(t)) => {
                (t.names.clone(), t.values.iter().cloned().map(Batch::Uniform).collect())
            }
            _ => return Err(Stop::Leave),
        };
        if parts.len() != types.len() {
            return Err(Stop::Leave);
        }
        let fitted = parts.into_iter().zip(types).map(|(part, (_, ty))| self.stated(part, Some(ty)));
        let parts = fitted.collect::<Found<Vec<_>>>()?;
        let named = own.into_iter().zip(types).map(|(own, (name, _))| name.as_ref().map_or(own, |n| n.name.clone()));
        Ok(tuple_of(named.collect(), parts))
    }

    fn stated_name(&self, value: Batch, name: &str) -> Found<Batch> {
        Ok(match (name, value) {
            ("int", value @ (Batch::Uniform(Value::Int(_)) | Batch::Ints(_))) => value,
            ("bool", value @ (Batch::Uniform(Value::Bool(_)) | Batch::Bools(_))) => value,
            ("place", value @ (Batch::Uniform(Value::Place(_)) | Batch::Tile(_))) => value,
            ("range", value @ (Batch::Uniform(Value::Range(_)) | Batch::Range { .. })) => value,
            ("string", value @ Batch::Uniform(Value::Str(_))) => value,
            ("type", value @ Batch::Uniform(Value::Type(_))) => value,
            ("fn", value @ Batch::Uniform(Value::Fn(..) | Value::Closure(_) | Value::Builtin(_))) => value,
            ("float", Batch::Uniform(Value::Int(i))) => Batch::Uniform(Value::Float(i as f64)),
            ("float", Batch::Ints(ints)) => {
                Batch::Values(ints.values(&self.extents).map(|i| Value::Float(i as f64)).collect())
            }
            ("float", value @ Batch::Uniform(Value::Float(_))) => value,
            ("float", Batch::Values(values)) if values.iter().all(|v| matches!(v, Value::Float(_))) => {
                Batch::Values(values)
            }
            _ => return Err(Stop::Leave),
        })
    }

    /// Evaluates a body of `let`s and `if`s and its value.
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
            if !tree.stmts[stmt].attrs.is_empty() {
                return Err(Stop::Leave);
            }
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
                    // The value is not used.
                    _ => {}
                },
                _ => return Err(Stop::Leave),
            }
        }
        match body.value {
            Some(value) => Ok((self.expr(value)?, false)),
            None => Ok((Batch::Uniform(Value::Unit), false)),
        }
    }

    /// Evaluates a block form.
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
            Batch::Uniform(Value::Bool(b)) => return if b { self.body(then) } else { self.otherwise(els) },
            Batch::Bools(bools) => bools,
            _ => return Err(Stop::Leave),
        };
        let parts = Subset::by_key(&bools, &self.extents, 2).ok_or(Stop::Leave)?;
        let of = |wanted: bool| parts.iter().find(|p| (p.0 != 0) == wanted).map(|p| &p.1);
        let (yes, no) = match (of(true), of(false)) {
            (Some(yes), Some(no)) => (yes, no),
            (Some(_), None) => return self.body(then),
            (None, _) => return self.otherwise(els),
        };
        let (a, left_a) = self.for_iterations(yes, no, &mut |this| this.body(then))?;
        let (b, left_b) = self.for_iterations(no, yes, &mut |this| this.otherwise(els))?;
        let joined = (left_a == left_b).then(|| self.joined((yes, &a), (no, &b))).flatten();
        match joined {
            Some(value) => Ok((value, left_a)),
            None => Err(Stop::Split(bools)),
        }
    }

    fn otherwise(&mut self, els: Option<ExprId>) -> Found<Ended> {
        els.map_or(Ok((Batch::Uniform(Value::Unit), false)), |e| self.block(e))
    }

    /// Evaluates for some of the iterations. If these must be split, all iterations are split, and the others stay
    /// together.
    fn for_iterations(
        &mut self,
        own: &Subset,
        others: &Subset,
        f: &mut dyn FnMut(&mut Self) -> Found<Ended>,
    ) -> Found<Ended> {
        let mut found = None;
        let done = self.within(own, &mut |this| {
            found = Some(f(this)?);
            Ok(())
        });
        match done {
            Ok(()) => found.ok_or(Stop::Leave),
            Err(Stop::Split(keys)) => {
                let rest = Ints::constant(i64::MIN);
                Err(Stop::Split(merged(&[(own, keys), (others, rest)], &self.extents)?))
            }
            Err(stop) => Err(stop),
        }
    }

    /// Merges batches over disjoint sets of iterations, if one batch can hold both.
    fn joined(&self, (yes, a): (&Subset, &Batch), (no, b): (&Subset, &Batch)) -> Option<Batch> {
        let both = |a: &Ints, b: &Ints| merged(&[(yes, a.clone()), (no, b.clone())], &self.extents).ok();
        let ints = |c: &Batch| match c {
            Batch::Uniform(Value::Int(i)) => Some(Ints::constant(*i)),
            Batch::Ints(ints) => Some(ints.clone()),
            _ => None,
        };
        let range = |c: &Batch| match c {
            Batch::Uniform(Value::Range(r)) => Some((Ints::constant(r.start), r.count, r.step)),
            Batch::Range { start, count, step } => Some((start.clone(), *count, *step)),
            _ => None,
        };
        let tile = |c: &Batch| match c {
            Batch::Uniform(Value::Place(p)) if p.count == 1 => Some(Ints::constant(p.first as i64)),
            Batch::Tile(tile) => Some(tile.clone()),
            _ => None,
        };
        let bools = |c: &Batch| match c {
            Batch::Uniform(Value::Bool(b)) => Some(Ints::constant(*b as i64)),
            Batch::Bools(bools) => Some(bools.clone()),
            _ => None,
        };
        if let (Batch::Uniform(Value::Unit), Batch::Uniform(Value::Unit)) = (a, b) {
            return Some(Batch::Uniform(Value::Unit));
        }
        if let (Some(a), Some(b)) = (ints(a), ints(b)) {
            return both(&a, &b).map(Batch::Ints);
        }
        if let (Some(a), Some(b)) = (tile(a), tile(b)) {
            return both(&a, &b).map(Batch::Tile);
        }
        if let (Some(a), Some(b)) = (bools(a), bools(b)) {
            return both(&a, &b).map(Batch::Bools);
        }
        match (range(a)?, range(b)?) {
            ((a, count, step), (b, n, by)) if count == n && step == by => {
                Some(Batch::Range { start: both(&a, &b)?, count, step })
            }
            _ => None,
        }
    }

    /// Evaluates `(a, b)`, `(w: a, b: c)`.
    pub(super) fn tuple(&mut self, args: &[ast::Arg]) -> Found<Batch> {
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
            return Ok(Batch::Uniform(Value::Unit));
        }
        Ok(tuple_of(names, parts))
    }
}

/// Makes a tuple of batches, which is one value if its parts are.
fn tuple_of(names: Vec<SmolStr>, parts: Vec<Batch>) -> Batch {
    match parts.iter().cloned().map(uniform).collect::<Found<Vec<Value>>>() {
        Ok(values) => Batch::Uniform(Value::Tuple(Arc::new(Tuple { names, values }))),
        Err(_) => Batch::Tuple { names: names.into(), parts: parts.into() },
    }
}

/// Makes a range whose start is a batch.
pub(super) fn range_of(start: Ints, count: u64, step: i64) -> Batch {
    match start.as_constant() {
        Some(start) => Batch::Uniform(Value::Range(Range { start, count, step })),
        None => Batch::Range { start, count, step },
    }
}
