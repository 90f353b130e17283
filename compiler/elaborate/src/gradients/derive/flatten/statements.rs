//! Statements and branches of a body, as operations of a formula.
//!
//! Invariant: the operations of an arm have its number, so that they are emitted inside it.

use super::{Flatten, Found, Symbol, refuse};
use crate::gradients::derive::{Arm, Id, OpKind};
use girder_source::Span;
use girder_syntax::ast::{self, AssignOp, ExprId, ExprKind, Pattern, StmtKind};
use smol_str::SmolStr;

impl<'n> Flatten<'n> {
    /// Evaluates a body; `None` if it returns nothing.
    pub(super) fn body(&mut self, body: &'n ast::Body) -> Found<Option<Symbol>> {
        let mark = self.frames.last().map_or(0, |f| f.names.len());
        let value = self.statements(&body.stmts, body.value);
        if let Some(f) = self.frames.last_mut() {
            f.names.truncate(mark);
        }
        value
    }

    pub(super) fn statements(&mut self, stmts: &'n [ast::StmtId], value: Option<ExprId>) -> Found<Option<Symbol>> {
        let tree = self.tree();
        for (k, &id) in stmts.iter().enumerate() {
            let s = &tree.stmts[id];
            match &s.kind {
                StmtKind::Decl(ast::Decl::Let(l)) => {
                    let value = self.expr(l.value)?;
                    let value = match (&l.ty, value) {
                        (Some(ty), value @ Symbol::Value(_)) => self.as_type(value, ty, l.span)?,
                        (_, value) => value,
                    };
                    self.bind(&l.pattern, value, l.span)?;
                }
                StmtKind::Return(Some(e)) => return self.expr(*e).map(Some),
                StmtKind::Assign { op, target, value } => self.assign(*op, *target, *value, s.span)?,
                StmtKind::Expr { expr, semi } => match &tree.exprs[*expr].kind {
                    ExprKind::If { cond, then, els } => {
                        let rest = (&stmts[k + 1..], value);
                        if let Some(found) = self.branch(*cond, then, *els, Some(rest), s.span)? {
                            return Ok(Some(found));
                        }
                    }
                    ExprKind::Block(body) => {
                        if let Some(found) = self.body(body)? {
                            return Ok(Some(found));
                        }
                    }
                    _ if k + 1 == stmts.len() && value.is_none() && !semi => return self.expr(*expr).map(Some),
                    _ => return refuse(s.span, "a statement without a value"),
                },
                StmtKind::For { .. } | StmtKind::While { .. } | StmtKind::Repeat { .. } => {
                    return refuse(s.span, "a loop");
                }
                _ => return refuse(s.span, "a statement of this kind"),
            }
        }
        value.map(|e| self.expr(e)).transpose()
    }

    /// Binds the names of a pattern to the members of a value.
    pub(super) fn bind(&mut self, pattern: &Pattern, value: Symbol, span: Span) -> Found<()> {
        match (pattern, value) {
            (Pattern::Wildcard(_), _) => Ok(()),
            (Pattern::Name(n), value) => {
                if let Some(f) = self.frames.last_mut() {
                    f.names.push((n.name.clone(), value));
                }
                Ok(())
            }
            (Pattern::Tuple(parts, _), Symbol::Tuple(values)) if parts.len() == values.len() => {
                parts.iter().zip(values).try_for_each(|(p, (_, v))| self.bind(p, v, span))
            }
            _ => refuse(span, "a pattern that does not fit"),
        }
    }

    pub(super) fn assign(&mut self, op: AssignOp, target: ExprId, value: ExprId, span: Span) -> Found<()> {
        let tree = self.tree();
        let ExprKind::Name(name) = &tree.exprs[target].kind else { return refuse(span, "a write to an element") };
        let value = self.expr(value)?;
        let old = self.local(name);
        let new = match (op, old) {
            (AssignOp::Set, Some(_)) => value,
            (AssignOp::With(operator), Some(old)) => self.binary(operator, old, value, span)?,
            _ => return refuse(span, "a write to a field"),
        };
        let names = self.frames.last_mut().map(|f| &mut f.names);
        if let Some((_, v)) = names.and_then(|n| n.iter_mut().rev().find(|(n, _)| n == name)) {
            *v = new;
        }
        Ok(())
    }

    /// Evaluates an `if`. If an arm returns, the statements after it belong to the other arm; the value is then that
    /// of the whole. `None` if neither returns.
    pub(super) fn branch(
        &mut self,
        cond: ExprId,
        then: &'n ast::Body,
        els: Option<ExprId>,
        rest: Option<(&'n [ast::StmtId], Option<ExprId>)>,
        span: Span,
    ) -> Found<Option<Symbol>> {
        let cond = match self.expr(cond)? {
            Symbol::Known(true) => return self.body(then),
            Symbol::Known(false) => return self.otherwise(els),
            Symbol::Value(id) => id,
            _ => return refuse(span, "a condition of this kind"),
        };
        let outer = self.arm;
        let names = self.frames.last().map(|f| f.names.clone()).unwrap_or_default();
        self.enter(cond, false, outer);
        let mut first = self.body(then)?;
        let then_names = self.swap(names.clone());
        self.enter(cond, true, outer);
        let mut second = self.otherwise(els)?;
        let returns = first.is_some() || second.is_some();
        if let (true, Some((stmts, value))) = (returns, rest) {
            if second.is_none() {
                second = self.statements(stmts, value)?;
            } else if first.is_none() {
                let els_names = self.swap(then_names.clone());
                self.enter(cond, false, outer);
                first = self.statements(stmts, value)?;
                self.swap(els_names);
            }
        }
        self.arm = outer;
        match (first, second) {
            (Some(a), Some(b)) => self.choose(cond, a, b, span).map(Some),
            (None, None) => {
                let els_names = self.swap(names);
                for (k, ((_, a), (_, b))) in then_names.into_iter().zip(els_names).enumerate() {
                    let chosen = match (&a, &b) {
                        (Symbol::Value(x), Symbol::Value(y)) if x != y => self.choose(cond, a, b, span)?,
                        _ => a,
                    };
                    if let Some(f) = self.frames.last_mut() {
                        f.names[k].1 = chosen;
                    }
                }
                Ok(None)
            }
            _ => refuse(span, "an `if` of which one arm has no value"),
        }
    }

    /// Replaces the names in scope; returns the old ones.
    pub(super) fn swap(&mut self, names: Vec<(SmolStr, Symbol)>) -> Vec<(SmolStr, Symbol)> {
        self.frames.last_mut().map(|f| std::mem::replace(&mut f.names, names)).unwrap_or_default()
    }

    /// Enters an arm inside the arm `outer`, which is taken if `cond` holds, or if it does not and `negated` is set.
    pub(super) fn enter(&mut self, cond: Id, negated: bool, outer: usize) {
        self.f.arms.push(Arm { outer, cond, negated });
        self.arm = self.f.arms.len() - 1;
    }

    /// Flattens the `else` of an `if`, if it has one.
    pub(super) fn otherwise(&mut self, els: Option<ExprId>) -> Found<Option<Symbol>> {
        let Some(els) = els else { return Ok(None) };
        let tree = self.tree();
        match &tree.exprs[els].kind {
            ExprKind::Block(body) => self.body(body),
            ExprKind::If { cond, then, els: more } => self.branch(*cond, then, *more, None, tree.exprs[els].span),
            _ => self.expr(els).map(Some),
        }
    }

    /// Returns one of two values by a condition.
    pub(super) fn choose(&mut self, cond: Id, a: Symbol, b: Symbol, span: Span) -> Found<Symbol> {
        match (a, b) {
            (Symbol::Value(a), Symbol::Value(b)) if a == b => Ok(Symbol::Value(a)),
            (Symbol::Value(a), Symbol::Value(b)) => {
                let ty = self.f.code[a].ty.or(self.f.code[b].ty);
                let arm = self.arm;
                Ok(Symbol::Value(self.f.add(OpKind::Builtin("select".into()), &[cond, a, b], ty, arm)))
            }
            (Symbol::Tuple(a), Symbol::Tuple(b)) if a.len() == b.len() => {
                let mut all = vec![];
                for ((name, a), (_, b)) in a.into_iter().zip(b) {
                    all.push((name, self.choose(cond, a, b, span)?));
                }
                Ok(Symbol::Tuple(all))
            }
            _ => refuse(span, "arms of different kinds"),
        }
    }
}
