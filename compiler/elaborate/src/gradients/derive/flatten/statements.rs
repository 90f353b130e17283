//! Statements and branches of a body, as operations of a formula.
//!
//! Invariant: the operations of an arm have its number, so that they are emitted inside it.

use super::flow::Test;
use super::{Flatten, Found, Symbol, refuse};
use crate::gradients::derive::{Id, OpKind};
use girder_ir::types::ElemType;
use girder_source::Span;
use girder_syntax::ast::{self, AssignOp, BinaryOp, ExprId, ExprKind, Pattern, StmtKind};

impl<'n> Flatten<'n> {
    /// Evaluates a body; `None` if it has no value, if its value is not `wanted`, or if it returns.
    pub(super) fn body(&mut self, body: &'n ast::Body, wanted: bool) -> Found<Option<Symbol>> {
        let mark = self.frames.last().map_or(0, |f| f.names.len());
        let value = self.statements(&body.stmts, body.value, wanted);
        if let Some(f) = self.frames.last_mut() {
            f.names.truncate(mark);
        }
        value
    }

    pub(super) fn statements(
        &mut self,
        stmts: &'n [ast::StmtId],
        value: Option<ExprId>,
        wanted: bool,
    ) -> Found<Option<Symbol>> {
        let tree = self.tree();
        for (k, &id) in stmts.iter().enumerate() {
            let s = &tree.stmts[id];
            match &s.kind {
                StmtKind::Decl(ast::Decl::Let(l)) => {
                    let value = self.expr(l.value)?;
                    let value = match &l.ty {
                        Some(ty) => self.as_type(value, ty),
                        None => value,
                    };
                    let value = if l.mutable { self.opened(value) } else { value };
                    self.bind(&l.pattern, value, l.span)?;
                }
                StmtKind::Return(Some(e)) => {
                    let value = self.expr(*e)?;
                    self.leave(value);
                }
                StmtKind::Assign { op, target, value } => self.assign(*op, *target, *value, s.span)?,
                StmtKind::Expr { expr, semi: false } if k + 1 == stmts.len() && value.is_none() => {
                    return self.perform(*expr, wanted);
                }
                StmtKind::Expr { expr, .. } => {
                    self.perform(*expr, false)?;
                }
                StmtKind::For { .. } | StmtKind::While { .. } | StmtKind::Repeat { .. } => {
                    return refuse(s.span, "a loop");
                }
                _ => return refuse(s.span, "a statement of this kind"),
            }
            if self.has_left() {
                return Ok(None);
            }
        }
        match value {
            Some(e) => self.perform(e, wanted),
            None => Ok(None),
        }
    }

    /// Evaluates an expression that may be a statement; `None` if its value is not `wanted`, or if it returns.
    fn perform(&mut self, expr: ExprId, wanted: bool) -> Found<Option<Symbol>> {
        let e = &self.tree().exprs[expr];
        match &e.kind {
            ExprKind::If { cond, then, els } => self.branch(*cond, then, *els, wanted, e.span),
            ExprKind::Switch { on, arms } => self.switch(*on, arms, wanted, e.span),
            ExprKind::Block(body) => self.body(body, wanted),
            // The function itself has made the check.
            ExprKind::Call { callee, .. } if self.is_assert(*callee) => Ok(None),
            _ => Ok(Some(self.expr(expr)?).filter(|_| wanted)),
        }
    }

    fn is_assert(&self, callee: ExprId) -> bool {
        let callee = &self.tree().exprs[callee].kind;
        matches!(callee, ExprKind::Name(name) if name == "assert" && self.local(name).is_none())
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

    fn assign(&mut self, op: AssignOp, target: ExprId, value: ExprId, span: Span) -> Found<()> {
        match op {
            AssignOp::With(operator) => {
                let ExprKind::Name(name) = &self.tree().exprs[target].kind else {
                    return refuse(span, "a write to an element");
                };
                let Some(old) = self.local(name) else { return refuse(span, "a write to a field") };
                let value = self.expr(value)?;
                let new = self.binary(operator, old, value, span)?;
                self.store(target, new, span)
            }
            _ => {
                // All values are evaluated before the first is assigned: `(a, b) = (b, a)` swaps.
                let value = self.expr(value)?;
                self.store(target, value, span)
            }
        }
    }

    /// Assigns a value to a name, or the members of a tuple to several.
    fn store(&mut self, target: ExprId, value: Symbol, span: Span) -> Found<()> {
        match (&self.tree().exprs[target].kind, value) {
            (ExprKind::Name(name), value) => {
                let Some(old) = self.local(name) else { return refuse(span, "a write to a field") };
                let new = self.stored(&old, value);
                let names = self.frames.last_mut().map(|f| &mut f.names);
                if let Some((_, v)) = names.and_then(|n| n.iter_mut().rev().find(|(n, _)| n == name)) {
                    *v = new;
                }
                Ok(())
            }
            (ExprKind::Tuple(targets), Symbol::Tuple(values)) if targets.len() == values.len() => {
                targets.iter().zip(values).try_for_each(|(t, (_, v))| self.store(t.value, v, span))
            }
            _ => refuse(span, "a write to an element"),
        }
    }

    /// Returns a value as one of the type and with the names of members that a variable has.
    fn stored(&mut self, old: &Symbol, new: Symbol) -> Symbol {
        match (old, new) {
            (Symbol::Tuple(old), Symbol::Tuple(new)) if old.len() == new.len() => {
                let members = old.iter().zip(new).map(|((name, old), (_, new))| (name.clone(), self.stored(old, new)));
                Symbol::Tuple(members.collect())
            }
            (Symbol::Value(old), new @ Symbol::Value(_)) => {
                let ty = self.f.code[*old].ty;
                let new = self.opened(new);
                self.literal_as(new, ty)
            }
            (_, new) => self.opened(new),
        }
    }

    /// Evaluates an `if`; `None` if it has no value, or if the function has returned.
    pub(super) fn branch(
        &mut self,
        cond: ExprId,
        then: &'n ast::Body,
        els: Option<ExprId>,
        wanted: bool,
        span: Span,
    ) -> Found<Option<Symbol>> {
        let cond = match self.expr(cond)? {
            Symbol::Known(true) => return self.body(then, wanted),
            Symbol::Known(false) => return self.otherwise(els, wanted),
            Symbol::Value(id) => id,
            _ => return refuse(span, "a condition of this kind"),
        };
        let test = Test { cond, negated: false };
        let then = self.in_arm(test, span, |this| this.body(then, wanted))?;
        let els = self.in_arm(Test { cond, negated: true }, span, |this| this.otherwise(els, wanted))?;
        let end = self.join(test, then, els, span)?;
        Ok(self.go_on(end))
    }

    /// Evaluates the `else` of an `if`, if it has one.
    fn otherwise(&mut self, els: Option<ExprId>, wanted: bool) -> Found<Option<Symbol>> {
        els.map_or(Ok(None), |e| self.perform(e, wanted))
    }

    /// Evaluates a `switch`: each arm is in the `else` of the one before it.
    pub(super) fn switch(
        &mut self,
        on: ExprId,
        arms: &'n [ast::Arm],
        wanted: bool,
        span: Span,
    ) -> Found<Option<Symbol>> {
        let on = self.expr(on)?;
        let on = self.number(on, span)?;
        let known = self.int_of(on);
        let (mut tested, mut default) = (vec![], None);
        let outer = self.arm;
        for arm in arms {
            let mut cond = Some(Symbol::Known(false));
            for key in &arm.keys {
                let is_key = match (key, known) {
                    (None, _) => Symbol::Known(true),
                    (Some(key), known) => self.matches(on, known, *key)?,
                };
                cond = match (cond, is_key) {
                    (_, Symbol::Known(true)) | (None, _) => None,
                    (cond, Symbol::Known(false)) => cond,
                    (Some(Symbol::Known(false)), is_key) => Some(is_key),
                    (Some(cond), is_key) => Some(self.binary(BinaryOp::Or, cond, is_key, arm.span)?),
                };
            }
            match cond {
                None => {
                    default = Some(arm);
                    break;
                }
                Some(Symbol::Value(cond)) => {
                    let test = Test { cond, negated: false };
                    let end = self.in_arm(test, span, |this| this.body(&arm.body, wanted))?;
                    tested.push((test, self.arm, end));
                    self.enter(Test { cond, negated: true });
                }
                _ => {}
            }
        }
        if tested.is_empty() {
            return default.map_or(Ok(None), |arm| self.body(&arm.body, wanted));
        }
        let mut end = self.ending(span, |this| default.map_or(Ok(None), |arm| this.body(&arm.body, wanted)))?;
        for (test, around, arm) in tested.into_iter().rev() {
            self.arm = around;
            end = self.join(test, arm, end, span)?;
        }
        self.arm = outer;
        Ok(self.go_on(end))
    }

    /// Returns whether a value is one of those of a key.
    fn matches(&mut self, on: Id, known: Option<i64>, key: ExprId) -> Found<Symbol> {
        let node = &self.tree().exprs[key];
        let (lo, hi, closed) = match &node.kind {
            ExprKind::Range { start, end, closed, by: None } => (*start, *end, *closed),
            _ => (key, key, true),
        };
        let (Some(lo), Some(hi)) = (self.known_int(lo)?, self.known_int(hi)?) else {
            return refuse(node.span, "a key of this kind");
        };
        let hi = if closed { hi } else { hi.saturating_sub(1) };
        if let Some(known) = known {
            return Ok(Symbol::Known((lo..=hi).contains(&known)));
        }
        if lo == hi {
            return Ok(Symbol::Value(self.compare(BinaryOp::Eq, on, lo)));
        }
        let (above, below) = (self.compare(BinaryOp::Ge, on, lo), self.compare(BinaryOp::Le, on, hi));
        let arm = self.arm;
        let kind = OpKind::Binary(BinaryOp::And);
        Ok(Symbol::Value(self.f.add(kind, &[above, below], Some(ElemType::Bool), arm)))
    }
}
