//! Arithmetic on static values: literals, module constants, generic arguments, types; and on `int` constants such as
//! the sizes of static arrays, so that conditions on them are decided here.
//!
//! Invariant: static integers are exact and stay between the least `i64` and the greatest `u64`; static floats are
//! computed as `f64` and rounded once, where they meet a type.

use super::builder::Builder;
use super::types::{INT, Ty};
use super::value::{Literal, Value};
use girder_codelet::scalar;
use girder_ir::codelet::ExprKind;
use girder_ir::ids::ExprId;
use girder_ir::types::{ElemType, Scalar};
use girder_source::{Diagnostic, Span};
use girder_syntax::ast::BinaryOp as Op;

impl Builder<'_, '_> {
    /// Evaluates an operator on static operands; `None` if one is not static.
    pub(super) fn fold(&mut self, op: Op, a: &Value, b: &Value, span: Span) -> Option<Value> {
        if let Some(v) = self.fold_ints(op, a, b, span) {
            return Some(v);
        }
        match (a, b) {
            (Value::Int(x), Value::Int(y)) => Some(self.static_binary(op, *x, *y, span)),
            (Value::Float(x), Value::Float(y)) => self.static_floats(op, *x, *y),
            (Value::Int(x), Value::Float(y)) => self.static_floats(op, *x as f64, *y),
            (Value::Float(x), Value::Int(y)) => self.static_floats(op, *x, *y as f64),
            (Value::Bool(x), Value::Bool(y)) => match op {
                Op::Eq => Some(Value::Bool(x == y)),
                Op::Ne | Op::BitXor => Some(Value::Bool(x != y)),
                Op::BitAnd => Some(Value::Bool(x & y)),
                Op::BitOr => Some(Value::Bool(x | y)),
                _ => None,
            },
            (Value::Type(x), Value::Type(y)) => match op {
                Op::Eq => Some(Value::Bool(x == y)),
                Op::Ne => Some(Value::Bool(x != y)),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns a static integer, if it is in range.
    pub(super) fn static_int(&mut self, v: i128, span: Span) -> Value {
        if (i64::MIN.into()..=u64::MAX.into()).contains(&v) {
            return Value::Int(v);
        }
        self.error("codelet::static_arithmetic", span, format!("{v} does not fit any integer type"))
    }

    fn static_binary(&mut self, op: Op, x: i128, y: i128, span: Span) -> Value {
        let shift = |y: i128| u32::try_from(y).ok().filter(|&y| y < 64);
        let v = match op {
            Op::Add => x + y,
            Op::Sub => x - y,
            // Both operands have at most 65 bits, so the product would have up to 130; a saturated product is out of
            // range as well.
            Op::Mul => x.saturating_mul(y),
            Op::Div | Op::Rem if y == 0 => {
                return self.error("codelet::static_arithmetic", span, "the divisor is zero");
            }
            Op::Div => x / y,
            Op::Rem => x % y,
            Op::BitAnd => x & y,
            Op::BitOr => x | y,
            Op::BitXor => x ^ y,
            Op::Shl | Op::Shr => match shift(y) {
                Some(s) if op == Op::Shl => x << s,
                Some(s) => x >> s,
                None => {
                    let message = format!("a shift by {y} is not between 0 and 63");
                    return self.error("codelet::static_arithmetic", span, message);
                }
            },
            _ => return compare(op, x.partial_cmp(&y)).map_or(Value::Error, Value::Bool),
        };
        self.static_int(v, span)
    }

    fn static_floats(&mut self, op: Op, x: f64, y: f64) -> Option<Value> {
        Some(Value::Float(match op {
            Op::Add => x + y,
            Op::Sub => x - y,
            Op::Mul => x * y,
            Op::Div => x / y,
            Op::Rem => x % y,
            _ => return compare(op, x.partial_cmp(&y)).map(Value::Bool),
        }))
    }

    /// Evaluates an operator on `int` constants of the codelet, at least one of them typed; overflow is left to run
    /// time.
    fn fold_ints(&mut self, op: Op, a: &Value, b: &Value, span: Span) -> Option<Value> {
        if let (Value::Int(_), Value::Int(_)) = (a, b) {
            return None;
        }
        let (x, y) = (self.int_of(a)?, self.int_of(b)?);
        let v = match op {
            Op::Add => x.checked_add(y)?,
            Op::Sub => x.checked_sub(y)?,
            Op::Mul => x.checked_mul(y)?,
            Op::Div => x.checked_div(y)?,
            Op::Rem => x.checked_rem(y)?,
            _ => return compare(op, x.partial_cmp(&y)).map(Value::Bool),
        };
        Some(Value::Scalar(self.int(v, span)))
    }

    /// Returns the value of a static integer or `int` constant.
    pub(super) fn int_of(&self, v: &Value) -> Option<i64> {
        match v {
            Value::Int(v) => i64::try_from(*v).ok(),
            Value::Scalar(e) => self.const_int(*e),
            _ => None,
        }
    }

    /// Builds `a + b` of `int`s.
    pub(super) fn add_ints(&mut self, a: ExprId, b: ExprId, span: Span) -> ExprId {
        self.int_op(girder_ir::codelet::BinaryOp::Add, a, b, span)
    }

    /// Builds an operator on `int`s that needs no check; folds it if both operands are constants or one is neutral.
    pub(super) fn int_op(&mut self, op: girder_ir::codelet::BinaryOp, a: ExprId, b: ExprId, span: Span) -> ExprId {
        use girder_ir::codelet::BinaryOp as B;
        let folded = match (op, self.const_int(a), self.const_int(b)) {
            (B::Add, Some(0), _) => return b,
            (B::Add | B::Sub, _, Some(0)) | (B::Mul, _, Some(1)) => return a,
            (B::Mul, Some(1), _) => return b,
            (B::Add, Some(x), Some(y)) => x.checked_add(y),
            (B::Sub, Some(x), Some(y)) => x.checked_sub(y),
            (B::Mul, Some(x), Some(y)) => x.checked_mul(y),
            _ => None,
        };
        match folded {
            Some(v) => self.int(v, span),
            None => self.push(ExprKind::Binary { op, a, b, site: None }, INT, span),
        }
    }

    /// Translates `T(x)`.
    pub(super) fn convert(&mut self, ty: ElemType, value: Value, span: Span) -> Value {
        let constant = match value {
            Value::Int(v) => Some(convert_int(v, ty)),
            Value::Float(v) => Some(convert_float(v, ty)),
            Value::Bool(b) => Some(convert_int(b.into(), ty)),
            Value::Scalar(x) => match self.literals.get(&x) {
                Some(&Literal::Decimal(_, narrow)) if ty == ElemType::F32 => Some(Scalar::f32(narrow)),
                Some(&Literal::Decimal(wide, _)) => Some(convert_float(wide, ty)),
                _ => None,
            },
            _ => None,
        };
        match constant {
            // The result is a literal, so that `int(4)` can be the length of an array.
            Some(s) if ty.is_int() => {
                Value::Scalar(self.literal(Literal::Int(s.as_int().unwrap_or(0)), Ty::Known(ty), span))
            }
            Some(s) => Value::Scalar(self.push(ExprKind::Const(s), Ty::Known(ty), span)),
            None => {
                let Some(x) = self.scalar(value, span) else { return Value::Error };
                if self.types.known(self.expr_types[x]) == Some(ty) {
                    return Value::Scalar(x);
                }
                Value::Scalar(self.push(ExprKind::Convert { x }, Ty::Known(ty), span))
            }
        }
    }

    /// Returns a value as a static integer or `int` constant; reports any other value.
    pub(super) fn static_value(&mut self, value: &Value, what: &str, span: Span) -> Option<i64> {
        if matches!(value, Value::Error | Value::Never) {
            return None;
        }
        let v = self.int_of(value);
        if v.is_none() {
            let d = Diagnostic::error("codelet::not_static", span, format!("{what} must be a static integer"));
            self.report(d.help("use a number, a constant of the module or a generic argument"));
        }
        v
    }
}

fn compare(op: Op, order: Option<std::cmp::Ordering>) -> Option<bool> {
    use std::cmp::Ordering::*;
    Some(match op {
        Op::Eq => order == Some(Equal),
        Op::Ne => order != Some(Equal),
        Op::Lt => order == Some(Less),
        Op::Le => matches!(order, Some(Less | Equal)),
        Op::Gt => order == Some(Greater),
        Op::Ge => matches!(order, Some(Greater | Equal)),
        _ => return None,
    })
}

/// Converts a static integer to a type, as if it were one of 64 bits.
fn convert_int(v: i128, ty: ElemType) -> Scalar {
    let from = if v < 0 { ElemType::I64 } else { ElemType::U64 };
    Scalar::new(ty, scalar::convert(from, ty, v as u64))
}

fn convert_float(v: f64, ty: ElemType) -> Scalar {
    Scalar::new(ty, scalar::convert(ElemType::F64, ty, v.to_bits()))
}
