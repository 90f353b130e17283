//! Numbers of the text that a static value does not hold exactly enough for every element type.
//!
//! Invariant: whatever a literal's type, its element is the nearest one to the text.

use girder_ir::types::{ElemType, Scalar};
use girder_syntax::ast::ExprKind;
use girder_syntax::narrow_float;

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
    pub fn negated(self) -> Option<Literal> {
        match self {
            Literal::Unsigned(_) => None,
            Literal::Decimal { wide, narrow } => Some(Literal::Decimal { wide: -wide, narrow: -narrow }),
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
