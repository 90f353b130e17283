//! Control flow: the arms of branches, and `return`s before the end of a function.
//!
//! After a branch of which some arm has returned, what follows runs in an arm of its own, whose condition is that the
//! function has not returned; that arm ends where the arm or the function around the branch ends.
//!
//! Invariant: where an expression or a statement begins, the function has not returned.

use super::{Flatten, Found, Symbol, refuse};
use crate::gradients::derive::{Arm, Id, OpKind};
use girder_ir::types::ElemType;
use girder_source::Span;
use girder_syntax::ast::UnaryOp;
use smol_str::SmolStr;

/// A condition, or its opposite.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Test {
    /// The condition.
    pub cond: Id,
    /// Whether it must not hold.
    pub negated: bool,
}

/// Whether the function has returned.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
enum Left {
    #[default]
    No,
    If(Test),
    Always,
}

/// Whether the function has returned, and the value that it then has.
#[derive(Clone, Default, Debug)]
pub(super) struct Flow {
    left: Left,
    result: Option<Symbol>,
}

/// An arm that runs if the function has not returned before.
#[derive(Clone, Debug)]
pub(super) struct Guard {
    /// The arm around it.
    outer: usize,
    /// The condition that the function has returned.
    left: Test,
    /// Its value then.
    result: Option<Symbol>,
}

/// What an arm gives at its end.
#[derive(Clone, Debug)]
pub(super) struct End {
    value: Option<Symbol>,
    names: Vec<(SmolStr, Symbol)>,
    flow: Flow,
}

impl<'n> Flatten<'n> {
    /// Returns whether the function has returned, so that nothing after this place runs.
    pub(super) fn has_left(&self) -> bool {
        self.flow.left == Left::Always
    }

    /// Returns from the function with a value.
    pub(super) fn leave(&mut self, value: Symbol) {
        let value = match self.frames.last().and_then(|f| f.result) {
            Some(ty) => self.as_type(value, ty),
            None => value,
        };
        self.flow = Flow { left: Left::Always, result: Some(value) };
    }

    /// Ends a function that began with `mark` guards and whose body has a value, unless it has returned. Returns its
    /// value, if it has one.
    pub(super) fn finish(&mut self, mark: usize, value: Option<Symbol>, span: Span) -> Found<Option<Symbol>> {
        match value {
            Some(value) => self.leave(value),
            None if !self.has_left() => return Ok(None),
            None => {}
        }
        self.close(mark, span)?;
        Ok(std::mem::take(&mut self.flow).result)
    }

    /// Leaves the arms of guards, but for the first `mark`.
    fn close(&mut self, mark: usize, span: Span) -> Found<()> {
        while self.guards.len() > mark
            && let Some(Guard { outer, left, result }) = self.guards.pop()
        {
            self.arm = outer;
            let inner = std::mem::take(&mut self.flow);
            self.flow = self.merge(left, Flow { left: Left::Always, result }, inner, span)?;
        }
        Ok(())
    }

    /// Evaluates an arm inside the current one.
    pub(super) fn in_arm(
        &mut self,
        test: Test,
        span: Span,
        run: impl FnOnce(&mut Self) -> Found<Option<Symbol>>,
    ) -> Found<End> {
        let outer = self.arm;
        self.enter(test);
        let end = self.ending(span, run);
        self.arm = outer;
        end
    }

    /// Evaluates what an arm contains; names have their old values afterwards.
    pub(super) fn ending(&mut self, span: Span, run: impl FnOnce(&mut Self) -> Found<Option<Symbol>>) -> Found<End> {
        let before = self.frames.last().map(|f| f.names.clone()).unwrap_or_default();
        let mark = self.guards.len();
        let value = run(self)?;
        self.close(mark, span)?;
        let names = self.swap(before);
        Ok(End { value, names, flow: std::mem::take(&mut self.flow) })
    }

    /// Joins the ends of two arms, of which the first is taken if a condition holds.
    pub(super) fn join(&mut self, test: Test, a: End, b: End, span: Span) -> Found<End> {
        let (value, names) = match (a.flow.left, b.flow.left) {
            (Left::Always, _) => (b.value, b.names),
            (_, Left::Always) => (a.value, a.names),
            _ => {
                let value = match (a.value, b.value) {
                    (Some(a), Some(b)) => Some(self.choose(test, a, b, span)?),
                    (None, None) => None,
                    _ => return refuse(span, "a branch of which one arm has no value"),
                };
                let mut names = a.names;
                for ((_, a), (_, b)) in names.iter_mut().zip(b.names) {
                    *a = self.choose(test, a.clone(), b, span)?;
                }
                (value, names)
            }
        };
        let flow = self.merge(test, a.flow, b.flow, span)?;
        Ok(End { value, names, flow })
    }

    /// Goes on after a branch; returns its value.
    pub(super) fn go_on(&mut self, end: End) -> Option<Symbol> {
        self.swap(end.names);
        match end.flow.left {
            Left::If(left) => {
                self.guards.push(Guard { outer: self.arm, left, result: end.flow.result });
                self.enter(Test { negated: !left.negated, ..left });
            }
            _ => self.flow = end.flow,
        }
        end.value
    }

    /// Joins what two arms have returned.
    fn merge(&mut self, test: Test, a: Flow, b: Flow, span: Span) -> Found<Flow> {
        let left = match (a.left, b.left) {
            (a, b) if a == b => a,
            (Left::Always, Left::No) => Left::If(test),
            (Left::No, Left::Always) => Left::If(Test { negated: !test.negated, ..test }),
            (a, b) => {
                let (a, b) = (self.condition_of(a), self.condition_of(b));
                match self.choose(test, a, b, span)? {
                    Symbol::Value(cond) => Left::If(Test { cond, negated: false }),
                    _ => return refuse(span, "a condition of this kind"),
                }
            }
        };
        let result = match (a.result, b.result) {
            (Some(a), Some(b)) => Some(self.choose(test, a, b, span)?),
            (a, b) => a.or(b),
        };
        Ok(Flow { left, result })
    }

    fn condition_of(&mut self, left: Left) -> Symbol {
        match left {
            Left::No => Symbol::Known(false),
            Left::Always => Symbol::Known(true),
            Left::If(Test { cond, negated: false }) => Symbol::Value(cond),
            Left::If(Test { cond, .. }) => {
                let (kind, arm) = (OpKind::Unary(UnaryOp::Not), self.arm);
                Symbol::Value(self.f.add(kind, &[cond], Some(ElemType::Bool), arm))
            }
        }
    }

    /// Replaces the names in scope; returns the old ones.
    fn swap(&mut self, names: Vec<(SmolStr, Symbol)>) -> Vec<(SmolStr, Symbol)> {
        self.frames.last_mut().map(|f| std::mem::replace(&mut f.names, names)).unwrap_or_default()
    }

    /// Enters an arm inside the current one.
    pub(super) fn enter(&mut self, Test { cond, negated }: Test) {
        let new = Arm { outer: self.arm, cond, negated };
        let known = self.f.arms.iter().skip(1).position(|a| *a == new);
        self.arm = known.map_or(self.f.arms.len(), |k| k + 1);
        if known.is_none() {
            self.f.arms.push(new);
        }
    }

    /// Returns one of two values by a condition.
    pub(super) fn choose(&mut self, test: Test, a: Symbol, b: Symbol, span: Span) -> Found<Symbol> {
        match (a, b) {
            (a, b) if a == b => Ok(a),
            (Symbol::Tuple(a), Symbol::Tuple(mut b)) if a.len() == b.len() => {
                let mut all = vec![];
                for (name, a) in a {
                    // The arms of a rule may name the members in another order.
                    let named = b.iter().position(|(other, _)| *other == name);
                    let Some(k) = named.or((name.is_empty() || b[0].0.is_empty()).then_some(0)) else {
                        return refuse(span, "arms whose tuples have other members");
                    };
                    let (_, b) = b.remove(k);
                    all.push((name, self.choose(test, a, b, span)?));
                }
                Ok(Symbol::Tuple(all))
            }
            (Symbol::Array(a), Symbol::Array(b)) if a.len() == b.len() => {
                let all: Found<Vec<Symbol>> =
                    a.into_iter().zip(b).map(|(a, b)| self.choose(test, a, b, span)).collect();
                Ok(Symbol::Array(all?))
            }
            (a @ (Symbol::Value(_) | Symbol::Known(_)), b @ (Symbol::Value(_) | Symbol::Known(_))) => {
                let (a, b) = (self.number(a, span)?, self.number(b, span)?);
                let ty = self.f.code[a].ty.or(self.f.code[b].ty);
                let args = if test.negated { [test.cond, b, a] } else { [test.cond, a, b] };
                let arm = self.arm;
                Ok(Symbol::Value(self.f.add(OpKind::Builtin("select".into()), &args, ty, arm)))
            }
            _ => refuse(span, "arms of different kinds"),
        }
    }
}
