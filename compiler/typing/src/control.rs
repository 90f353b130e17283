//! Blocks, `if` and `switch`, as statements and as values.
//!
//! Invariant: of a branch with a static condition, only the arm that is taken is elaborated; the value of a run-time
//! branch is set on every path that reaches its end.

use super::builder::Builder;
use super::types::{BOOL, Class};
use super::value::{Literal, Value};
use girder_ir::codelet::{BinaryOp, DimDecl, ExprKind, Stmt, StmtBlock};
use girder_ir::ids::ExprId;
use girder_ir::types::ElemType;
use girder_source::{Diagnostic, Span};
use girder_syntax::ast;

/// Maximal number of nodes of an `if`'s branches for a `Select`, which evaluates both.
const SELECT_NODES: u32 = 8;

impl<'a> Builder<'a, '_> {
    /// Translates a block; returns its value if it is wanted.
    pub(super) fn body(&mut self, body: &'a ast::Body, wanted: bool) -> Value {
        self.deeper(body.span, |s| s.scoped(|s| s.statements(body, wanted))).unwrap_or(Value::Error)
    }

    /// Translates the statements and the value of a block, in the enclosing scope of names.
    pub(super) fn statements(&mut self, body: &'a ast::Body, wanted: bool) -> Value {
        let tree = self.tree();
        for (i, &id) in body.stmts.iter().enumerate() {
            let stmt = &tree.stmts[id];
            let last = i + 1 == body.stmts.len() && body.value.is_none();
            let value = match &stmt.kind {
                ast::StmtKind::Expr { expr, semi: false } if last => {
                    self.attributes(&stmt.attrs);
                    self.expr_if(*expr, wanted)
                }
                _ => self.statement(stmt),
            };
            // The following statements are unreachable, and may be ill-typed for these generic arguments.
            if last || matches!(value, Value::Never) {
                return value;
            }
        }
        match body.value {
            Some(e) if wanted => self.expr(e),
            Some(e) => self.statement_expr(e),
            None => Value::Unit,
        }
    }

    /// Translates a condition: a static one to a `bool`, any other to an expression.
    fn condition(&mut self, cond: ast::ExprId) -> Option<Result<bool, ExprId>> {
        let span = self.tree().exprs[cond].span;
        match self.expr(cond) {
            Value::Bool(b) => Some(Ok(b)),
            v => self.coerce(v, BOOL, span).map(Err),
        }
    }

    /// Translates `if c { … } else { … }`.
    pub(super) fn if_value(
        &mut self,
        cond: ast::ExprId,
        then: &'a ast::Body,
        els: Option<ast::ExprId>,
        wanted: bool,
        span: Span,
    ) -> Value {
        let cond = match self.condition(cond) {
            Some(Ok(true)) => return self.body(then, wanted),
            Some(Ok(false)) => return els.map_or(Value::Unit, |e| self.expr_if(e, wanted)),
            Some(Err(e)) => Some(e),
            None => None,
        };
        // If the condition is wrong, both branches are still read to report their errors.
        let (a, then) = self.block(|s| s.body(then, wanted));
        let (b, els) = self.block(|s| els.map_or(Value::Unit, |e| s.expr_if(e, wanted)));
        let Some(cond) = cond else { return Value::Error };
        if wanted && then.is_empty() && els.is_empty() && self.is_small(&a) && self.is_small(&b) {
            return self.select(cond, a, b, span);
        }
        let mut arms = vec![(a, then), (b, els)];
        let value = self.join(&mut arms, wanted, span);
        let mut blocks = arms.into_iter().map(|(_, block)| block);
        let (then, els) = (blocks.next().unwrap_or_default(), blocks.next().unwrap_or_default());
        self.emit(Stmt::If { cond, then, els });
        value
    }

    /// Builds a `Select`, which evaluates both values.
    pub(super) fn select(&mut self, cond: ExprId, a: Value, b: Value, span: Span) -> Value {
        let (Some(a), Some(b)) = (self.scalar(a, span), self.scalar(b, span)) else { return Value::Error };
        let spans = [self.out.exprs[a].span, self.out.exprs[b].span];
        if !self.same_type([a, b], spans, span) {
            return Value::Error;
        }
        let ty = self.expr_types[a];
        Value::Scalar(self.push(ExprKind::Select { cond, a, b }, ty, span))
    }

    /// Returns whether a value is cheap and cannot fail.
    fn is_small(&self, v: &Value) -> bool {
        match v {
            Value::Int(_) | Value::Float(_) | Value::Bool(_) => true,
            Value::Scalar(e) => {
                let mut budget = SELECT_NODES;
                self.is_small_expr(*e, &mut budget)
            }
            _ => false,
        }
    }

    fn is_small_expr(&self, e: ExprId, budget: &mut u32) -> bool {
        let Some(left) = budget.checked_sub(1) else { return false };
        *budget = left;
        match &self.out.exprs[e].kind {
            ExprKind::Load { field, index, .. } => {
                let dims = &self.out.fields[*field].dims;
                index.iter().zip(dims).all(|(&i, &dim)| match dim {
                    DimDecl::Size(size) => self.is_below_size(i, size),
                    DimDecl::Fixed(n) => self.is_below_number(i, n),
                    DimDecl::Expr(_) => false,
                })
            }
            ExprKind::LoadLocal { local, index, .. } => {
                let dims = self.out.locals[*local].array.iter().flatten();
                index.iter().zip(dims).all(|(&i, &n)| self.is_below_number(i, n.into()))
            }
            kind => kind.site().is_none() && kind.operands().iter().all(|&x| self.is_small_expr(x, budget)),
        }
    }

    /// Returns the common value of branches; each branch sets it at its end.
    pub(super) fn join(&mut self, arms: &mut [(Value, StmtBlock)], wanted: bool, span: Span) -> Value {
        if !wanted {
            let never = arms.iter().all(|(v, _)| matches!(v, Value::Never));
            return if never { Value::Never } else { Value::Unit };
        }
        if arms.iter().any(|(v, _)| matches!(v, Value::Error)) {
            return Value::Error;
        }
        let mut reaching = arms.iter_mut().filter(|(v, _)| !matches!(v, Value::Never));
        let Some((first, _)) = reaching.next() else { return Value::Never };
        let rest: Vec<&Value> = reaching.map(|(v, _)| &*v).collect();
        match first {
            Value::Unit if rest.iter().all(|v| matches!(v, Value::Unit)) => Value::Unit,
            Value::Type(_) | Value::View(_) if rest.is_empty() => first.clone(),
            Value::Tuple(list) => {
                let names: Vec<_> = list.iter().map(|(n, _)| n.clone()).collect();
                self.join_tuples(arms, names, span)
            }
            _ => self.join_scalars(arms, span),
        }
    }

    fn join_tuples(
        &mut self,
        arms: &mut [(Value, StmtBlock)],
        names: Vec<Option<smol_str::SmolStr>>,
        span: Span,
    ) -> Value {
        for (v, _) in arms.iter() {
            if let Value::Tuple(list) = v
                && !self.are_named(names.iter().map(Option::as_ref), list.iter().map(|m| m.0.as_ref()), span)
            {
                return Value::Error;
            }
        }
        let mut members = vec![];
        for (i, name) in names.iter().enumerate() {
            let mut of_arms: Vec<(Value, StmtBlock)> = vec![];
            for (v, block) in arms.iter_mut() {
                let member = match v {
                    Value::Never => Value::Never,
                    Value::Tuple(list) if list.len() == names.len() => list[i].1.clone(),
                    _ => {
                        return self.error(
                            "codelet::type_mismatch",
                            span,
                            "the branches give tuples of different shapes",
                        );
                    }
                };
                of_arms.push((member, std::mem::take(block)));
            }
            let joined = self.join(&mut of_arms, true, span);
            for ((_, block), (_, kept)) in arms.iter_mut().zip(of_arms) {
                *block = kept;
            }
            members.push((name.clone(), joined));
        }
        Value::Tuple(members)
    }

    fn join_scalars(&mut self, arms: &mut [(Value, StmtBlock)], span: Span) -> Value {
        let mut common = None;
        let mut wrong = false;
        for (v, block) in arms.iter_mut().filter(|(v, _)| !matches!(v, Value::Never)) {
            if matches!(v, Value::Unit) {
                let d = Diagnostic::error("codelet::missing_value", span, "not every branch gives a value");
                self.report(d.help("add an `else` with a value, or leave out the semicolon after the last expression"));
                return Value::Error;
            }
            let Some(e) = self.scalar(v.clone(), span) else {
                wrong = true;
                continue;
            };
            let at = self.out.exprs[e].span;
            let local = *common.get_or_insert_with(|| self.local("", self.expr_types[e], false, span));
            if self.coerce(Value::Scalar(e), self.local_types[local], at).is_some() {
                block.push(Stmt::Set { local, value: e });
            } else {
                wrong = true;
            }
        }
        match common {
            Some(local) if !wrong => Value::Scalar(self.read_local(local, span)),
            _ => Value::Error,
        }
    }

    /// Translates `switch x { keys => { … } _ => { … } }`.
    pub(super) fn switch(&mut self, on: ast::ExprId, arms: &'a [ast::Arm], wanted: bool, span: Span) -> Value {
        let at = self.tree().exprs[on].span;
        let on = self.expr(on);
        if matches!(on, Value::Error | Value::Never) {
            return Value::Error;
        }
        let Some(keys) = self.keys(arms) else { return Value::Error };
        if let Some(v) = self.int_of(&on) {
            let is_reached = self.keys_are_reached(&keys, None);
            return if is_reached { self.static_switch(v, arms, wanted, span) } else { Value::Error };
        }
        let Some(e) = self.narrowed(on, Class::Int, at) else { return Value::Error };
        let ty = self.types.known(self.expr_types[e]);
        if !self.keys_are_reached(&keys, ty) {
            return Value::Error;
        }
        let on = self.kept(e, "");
        let covered = ty.is_some_and(|ty| crate::arms::cover(&keys, ty));
        self.switch_arms(on, arms, covered, wanted, span)
    }

    /// Returns the keys of all arms.
    fn keys(&mut self, arms: &'a [ast::Arm]) -> Option<Vec<crate::arms::Key>> {
        let mut keys = vec![];
        for (arm, a) in arms.iter().enumerate() {
            for &key in &a.keys {
                let (range, span) = match key {
                    Some(k) => match self.key_range(k) {
                        Some(range) => (Some(range), self.tree().exprs[k].span),
                        None => return None,
                    },
                    None => (None, a.span),
                };
                keys.push(crate::arms::Key { arm, range, span });
            }
        }
        Some(keys)
    }

    /// Checks that some value reaches each key; otherwise reports the first key that none reaches. `ty` is the type of
    /// an operand that is not static.
    fn keys_are_reached(&mut self, keys: &[crate::arms::Key], ty: Option<ElemType>) -> bool {
        match crate::arms::never_taken(keys, ty) {
            Some(d) => {
                self.report(d);
                false
            }
            None => true,
        }
    }

    fn static_switch(&mut self, v: i64, arms: &'a [ast::Arm], wanted: bool, span: Span) -> Value {
        for arm in arms {
            for key in &arm.keys {
                let taken = match key {
                    None => true,
                    Some(k) => match self.key_range(*k) {
                        Some((lo, hi)) => (lo..=hi).contains(&v.into()),
                        None => return Value::Error,
                    },
                };
                if taken {
                    return self.body(&arm.body, wanted);
                }
            }
        }
        self.no_default(wanted, span)
    }

    /// Returns the value of a `switch` that takes none of its arms.
    fn no_default(&mut self, wanted: bool, span: Span) -> Value {
        if !wanted {
            return Value::Unit;
        }
        let d = Diagnostic::error("codelet::missing_value", span, "this `switch` has no value where no key matches");
        self.report(d.help("add an arm `_ => { … }`"));
        Value::Error
    }

    /// Builds a chain of tests: each arm is in the `else` of the one before it. If the keys take all values, the last
    /// arm needs no test.
    fn switch_arms(&mut self, on: ExprId, arms: &'a [ast::Arm], covered: bool, wanted: bool, span: Span) -> Value {
        let Some((arm, rest)) = arms.split_first() else {
            return if wanted { self.no_default(true, span) } else { Value::Unit };
        };
        if arm.keys.iter().any(Option::is_none) || covered && rest.is_empty() {
            return self.body(&arm.body, wanted);
        }
        let cond = self.arm_condition(on, arm);
        let (a, then) = self.block(|s| s.body(&arm.body, wanted));
        let (b, els) = self
            .block(|s| s.deeper(arm.span, |s| s.switch_arms(on, rest, covered, wanted, span)).unwrap_or(Value::Error));
        let Some(cond) = cond else { return Value::Error };
        let mut arms = vec![(a, then), (b, els)];
        let value = self.join(&mut arms, wanted, span);
        let mut blocks = arms.into_iter().map(|(_, block)| block);
        let (then, els) = (blocks.next().unwrap_or_default(), blocks.next().unwrap_or_default());
        self.emit(Stmt::If { cond, then, els });
        value
    }

    fn arm_condition(&mut self, on: ExprId, arm: &'a ast::Arm) -> Option<ExprId> {
        let mut tests = vec![];
        for &key in arm.keys.iter().flatten() {
            let (lo, hi) = self.key_range(key)?;
            let span = self.tree().exprs[key].span;
            tests.push(if lo == hi {
                self.compare_key(BinaryOp::Eq, on, lo, span)
            } else {
                let a = self.compare_key(BinaryOp::Ge, on, lo, span);
                let b = self.compare_key(BinaryOp::Le, on, hi, span);
                self.push(ExprKind::AndThen { a, b }, BOOL, span)
            });
        }
        self.any_of(&tests, arm.span)
    }

    /// Builds `a || b || …` as a balanced tree.
    fn any_of(&mut self, tests: &[ExprId], span: Span) -> Option<ExprId> {
        match tests {
            [] => None,
            &[one] => Some(one),
            many => {
                let (left, right) = many.split_at(many.len() / 2);
                let (a, b) = (self.any_of(left, span)?, self.any_of(right, span)?);
                Some(self.push(ExprKind::OrElse { a, b }, BOOL, span))
            }
        }
    }

    fn compare_key(&mut self, op: BinaryOp, on: ExprId, key: i128, span: Span) -> ExprId {
        let (a, ty) = (self.again(on), self.expr_types[on]);
        let b = self.literal(Literal::Int(key), ty, span);
        self.push(ExprKind::Binary { op, a, b, site: None }, BOOL, span)
    }

    /// Returns the first and last integer that a key matches.
    fn key_range(&mut self, key: ast::ExprId) -> Option<(i128, i128)> {
        let node = &self.tree().exprs[key];
        let (lo, hi, closed) = match &node.kind {
            ast::ExprKind::Range { start, end, closed, by: None } => (*start, *end, *closed),
            _ => (key, key, true),
        };
        let mut bound = |e: ast::ExprId| {
            let span = self.tree().exprs[e].span;
            match self.expr(e) {
                Value::Int(v) => Some(v),
                v => self.static_value(&v, "a key of a `switch`", span).map(i128::from),
            }
        };
        let (lo, hi) = (bound(lo)?, bound(hi)?);
        let hi = if closed { hi } else { hi - 1 };
        if hi < lo {
            self.error("codelet::static_arithmetic", node.span, "this range is empty, so the arm is never taken");
            return None;
        }
        Some((lo, hi))
    }

    /// Translates an expression whose value is not used: calls and blocks.
    pub(super) fn statement_expr(&mut self, e: ast::ExprId) -> Value {
        match self.expr_if(e, false) {
            Value::Never => Value::Never,
            mut value => {
                // The value is not used, but its checks are.
                self.keep(&mut value, "");
                Value::Unit
            }
        }
    }
}
