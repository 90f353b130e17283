//! Numbers of the text that go to an element type where they are written: `var x: u64 = 18446744073709551615;`.
//!
//! A static integer has 64 bits with a sign, and a static float is an `f64`. A number that is an initial value, an
//! operand of a tensor or the like is an element at once, so it may exceed an `int`, and is rounded once.
//!
//! Invariant: no name holds a [`Value::Literal`], and no static operation sees one.

use crate::elaborator::Elaborator;
use crate::literals::Literal;
use crate::value::{Given, Value};
use girder_source::{Result, Span};
use girder_syntax::ast::{self, ExprId, ExprKind, UnaryOp};
use smol_str::SmolStr;
use std::sync::Arc;

impl Elaborator<'_> {
    /// Evaluates an expression whose numbers become elements: it may be a literal, or a list of literals.
    pub fn elements(&mut self, id: ExprId) -> Result<Value> {
        let e = &self.tree().exprs[id];
        match &e.kind {
            ExprKind::Paren(inner) => self.elements(*inner),
            ExprKind::List(items) => {
                self.charge(e.span)?;
                let values = items.iter().map(|&i| self.elements(i)).collect::<Result<Vec<_>>>()?;
                Ok(Value::List(Arc::new(values)))
            }
            ExprKind::Unary { op: UnaryOp::Neg, value } => match Literal::of(&self.tree().exprs[*value].kind) {
                Some(literal) if let Some(literal) = literal.negated() => {
                    self.charge(e.span).map(|()| Value::Literal(literal))
                }
                _ => self.expr(id),
            },
            kind => match Literal::of(kind) {
                Some(literal) => self.charge(e.span).map(|()| Value::Literal(literal)),
                None => self.expr(id),
            },
        }
    }

    /// Evaluates arguments whose numbers become elements.
    pub fn given_elements(&mut self, args: &[ast::Arg]) -> Result<Vec<Given>> {
        let given = |this: &mut Self, a: &ast::Arg| {
            let name = a.name.as_ref().map_or(SmolStr::default(), |n| n.name.clone());
            Ok(Given { name, value: this.elements(a.value)?, span: this.tree().exprs[a.value].span })
        };
        args.iter().map(|a| given(self, a)).collect()
    }

    /// Returns a number that does not become an element as a static value.
    pub fn static_number(&mut self, value: Value, span: Span) -> Result<Value> {
        match value {
            Value::Literal(Literal::Decimal { wide, .. }) => Ok(Value::Float(wide)),
            Value::Literal(literal) => {
                let message = format!("`{literal}` does not fit the 64-bit `int`");
                let help = "an `int` is from `i64.min` to `i64.max`; `u64(…)` makes a tensor of a larger number";
                Err(self.error_help("elaborate::overflow", span, message, help))
            }
            value => Ok(value),
        }
    }
}
