//! Numbers of the text that go to an element type where they are written: `var x: u64 = 18446744073709551615;`.
//!
//! A static integer has 64 bits with a sign, and a static float is an `f64`. A number that is an initial value, an
//! operand of a tensor or the like is an element at once, so it may exceed an `int`, and is rounded once.
//!
//! Invariant: no name holds a [`Value::Literal`], and no static operation sees one.

use crate::elaborator::Elaborator;
use crate::value::{Given, Value};
use girder_ir::types::{ElemType, Scalar};
use girder_source::{Result, Span};
use girder_syntax::ast::{self, ExprId, ExprKind, UnaryOp};
use girder_syntax::narrow_float;
use smol_str::SmolStr;
use std::sync::Arc;

/// A number of the text that a static value does not hold exactly enough for every type.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Literal {
    /// An integer above `i64.max`.
    Unsigned(u64),
    /// A float whose nearest `f32` is not that of its nearest `f64`.
    Decimal {
        /// The nearest `f64`.
        wide: f64,
        /// The nearest `f32`.
        narrow: f32,
    },
}

impl Literal {
    /// Returns the literal that an expression is; `None` if a static value holds it.
    pub fn of(kind: &ExprKind) -> Option<Literal> {
        match kind {
            ExprKind::Int { value, .. } => i64::try_from(*value).is_err().then_some(Literal::Unsigned(*value)),
            ExprKind::Float { value, text } => {
                narrow_float(text, *value).map(|narrow| Literal::Decimal { wide: *value, narrow })
            }
            _ => None,
        }
    }

    /// Returns the nearest element of a type; `None` if there is none.
    pub fn element(self, ty: ElemType) -> Option<Scalar> {
        match (self, ty) {
            (Literal::Unsigned(v), ElemType::F32) => Some(Scalar::f32(v as f32)),
            (Literal::Unsigned(v), ElemType::F64) => Some(Scalar::f64(v as f64)),
            (Literal::Unsigned(v), ty) if ty.is_int() => Scalar::int(ty, v.into()),
            (Literal::Decimal { narrow, .. }, ElemType::F32) => narrow.is_finite().then_some(Scalar::f32(narrow)),
            (Literal::Decimal { wide, .. }, ElemType::F64) => Some(Scalar::f64(wide)),
            _ => None,
        }
    }

    /// Returns the literal with a minus sign; `None` if it is no number of a type.
    fn negated(self) -> Option<Value> {
        match self {
            Literal::Unsigned(v) => (v == i64::MIN.unsigned_abs()).then_some(Value::Int(i64::MIN)),
            Literal::Decimal { wide, narrow } => {
                Some(Value::Literal(Literal::Decimal { wide: -wide, narrow: -narrow }))
            }
        }
    }
}

impl std::fmt::Display for Literal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Literal::Unsigned(v) => write!(f, "{v}"),
            Literal::Decimal { wide, .. } => write!(f, "{wide:?}"),
        }
    }
}

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
                Some(literal) if let Some(value) = literal.negated() => self.charge(e.span).map(|()| value),
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
