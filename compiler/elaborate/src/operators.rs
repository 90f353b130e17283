//! Operators: on static values they are computed here, on tensors they call codelet functions of the prelude.
//!
//! Invariant: static integers have 64 bits and overflow is an error; a static number combined with a tensor takes the
//! tensor's element type.

use crate::elaborator::Elaborator;
use crate::integers::{self, Wrong};
use crate::value::Given;
use crate::value::Value;
use girder_source::{Result, Span};
use girder_syntax::ast::{BinaryOp, ItemKind, UnaryOp};
use girder_typing::ModuleRef;
use smol_str::SmolStr;

impl Elaborator<'_> {
    /// Evaluates `left op right`.
    pub fn binary(&mut self, op: BinaryOp, left: Value, right: Value, span: Span) -> Result<Value> {
        if left.is_error() || right.is_error() {
            return Err(girder_source::Failed);
        }
        // Joining lists allocates memory; doubling a list in a loop would exhaust it, so its elements are charged.
        match (&left, &right) {
            (Value::Str(a), Value::Str(b)) => self.charge_many((a.len() + b.len()) as u64, span)?,
            (Value::List(a), Value::List(b)) => self.charge_values((a.len() + b.len()) as u64, span)?,
            _ => {}
        }
        // An optional argument `= ()` can be tested, whatever value was given.
        if let (BinaryOp::Eq | BinaryOp::Ne, Value::Unit, _) | (BinaryOp::Eq | BinaryOp::Ne, _, Value::Unit) =
            (op, &left, &right)
        {
            let equal = matches!((&left, &right), (Value::Unit, Value::Unit));
            return Ok(Value::Bool(equal == (op == BinaryOp::Eq)));
        }
        if matches!(left, Value::Tensor(_)) || matches!(right, Value::Tensor(_)) {
            let is_float = |v: &Value| matches!(v, Value::Tensor(t) if t.ty.is_float());
            if op == BinaryOp::BitXor && (is_float(&left) || is_float(&right)) {
                let help = "a power is a function: `pow(x, 2.0)`; a square is `x * x`";
                return Err(self.error_help("elaborate::type_mismatch", span, "`^` combines bits of integers", help));
            }
            return self.prelude_call(prelude_name(op), vec![left, right], span);
        }
        let done = match (&left, &right) {
            (Value::Int(a), Value::Int(b)) => return self.int_binary(op, *a, *b, span),
            (Value::Float(a), Value::Float(b)) => float_binary(op, *a, *b),
            (Value::Int(a), Value::Float(b)) => float_binary(op, *a as f64, *b),
            (Value::Float(a), Value::Int(b)) => float_binary(op, *a, *b as f64),
            (Value::Bool(a), Value::Bool(b)) => bool_binary(op, *a, *b),
            (Value::Array(a), Value::Array(b)) if op == BinaryOp::Eq => Some(Value::Bool(a == b)),
            (Value::Str(a), Value::Str(b)) if op == BinaryOp::Add => Some(Value::Str(format!("{a}{b}").into())),
            (Value::List(a), Value::List(b)) if op == BinaryOp::Add => {
                Some(Value::List(std::sync::Arc::new(a.iter().chain(b.iter()).cloned().collect())))
            }
            _ => match op {
                BinaryOp::Eq | BinaryOp::Ne if matches!(left, Value::List(_) | Value::Tuple(_)) => {
                    self.charge_walk(&left, span)?;
                    self.same(&left, &right).map(|b| Value::Bool(b == (op == BinaryOp::Eq)))
                }
                BinaryOp::Eq => self.same(&left, &right).map(Value::Bool),
                BinaryOp::Ne => self.same(&left, &right).map(|b| Value::Bool(!b)),
                _ => None,
            },
        };
        done.map_or_else(|| Err(self.no_operator(op, &left, &right, span)), Ok)
    }

    fn no_operator(&mut self, op: BinaryOp, left: &Value, right: &Value, span: Span) -> girder_source::Failed {
        let message = format!("`{}` does not take {} and {}", op.token(), left.describe(), right.describe());
        let d = girder_source::Diagnostic::error("elaborate::type_mismatch", span, message);
        let either = |is: fn(&Value) -> bool| is(left) || is(right);
        self.report(if either(|v| matches!(v, Value::Unit)) {
            d.help("the value of a body is its last expression, without a `;`")
        } else if either(|v| matches!(v, Value::Drawn(_))) {
            d.help("the numbers are scaled where they are drawn: `random.normal(seed: 1, scale: 0.1)`")
        } else if either(|v| matches!(v, Value::Array(_))) {
            d.help("a type makes a tensor of an array: `f32(a)`; its elements are `a[i]`")
        } else if either(|v| matches!(v, Value::Str(_))) && op == BinaryOp::Add {
            d.help("`string(x)` makes a text of a static value")
        } else {
            d
        })
    }

    /// Returns whether two static values are equal; `None` if they cannot be compared.
    fn same(&self, a: &Value, b: &Value) -> Option<bool> {
        Some(match (a, b) {
            (Value::Int(a), Value::Int(b)) => a == b,
            (Value::Float(a), Value::Float(b)) => a == b,
            (Value::Int(a), Value::Float(b)) | (Value::Float(b), Value::Int(a)) => *a as f64 == *b,
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::Str(a), Value::Str(b)) => a == b,
            (Value::Type(a), Value::Type(b)) => a == b,
            (Value::Range(a), Value::Range(b)) => a == b,
            (Value::Unit, Value::Unit) => true,
            (Value::Unit, _) | (_, Value::Unit) => false,
            (Value::List(a), Value::List(b)) => {
                a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| self.same(a, b) == Some(true))
            }
            (Value::Tuple(a), Value::Tuple(b)) => {
                a.values.len() == b.values.len()
                    && a.values.iter().zip(&b.values).all(|(a, b)| self.same(a, b) == Some(true))
            }
            _ => return None,
        })
    }

    fn int_binary(&mut self, op: BinaryOp, a: i64, b: i64, span: Span) -> Result<Value> {
        if let Some(compare) = integers::comparison(op) {
            return Ok(Value::Bool(compare(&a, &b)));
        }
        let Some(number) = integers::arithmetic(op, a, b) else {
            return Err(self.no_operator(op, &Value::Int(a), &Value::Int(b), span));
        };
        number.map(Value::Int).map_err(|wrong| {
            let (code, message) = match wrong {
                Wrong::DivisionByZero => ("elaborate::division_by_zero", format!("{a} {} 0", op.token())),
                Wrong::Shift => ("elaborate::shift", format!("a shift by {b} is not within 0..64")),
                Wrong::Overflow | Wrong::NotAnInteger => {
                    ("elaborate::overflow", format!("{a} {} {b} does not fit the 64-bit `int`", op.token()))
                }
            };
            self.error(code, span, message)
        })
    }

    /// Evaluates `-x`, `!x`.
    pub fn unary(&mut self, op: UnaryOp, value: Value, span: Span) -> Result<Value> {
        match (op, value) {
            (UnaryOp::Neg, Value::Int(v)) => match v.checked_neg() {
                Some(v) => Ok(Value::Int(v)),
                None => Err(self.error("elaborate::overflow", span, format!("-({v}) does not fit the 64-bit `int`"))),
            },
            (UnaryOp::Neg, Value::Float(v)) => Ok(Value::Float(-v)),
            (UnaryOp::Not, Value::Bool(v)) => Ok(Value::Bool(!v)),
            (UnaryOp::Not, Value::Int(v)) => Ok(Value::Int(!v)),
            (UnaryOp::Neg, v @ Value::Tensor(_)) => self.prelude_call("neg", vec![v], span),
            (UnaryOp::Not, v @ Value::Tensor(_)) => self.prelude_call("not", vec![v], span),
            (_, other) => {
                if other.is_error() {
                    return Err(girder_source::Failed);
                }
                let token = if op == UnaryOp::Neg { "-" } else { "!" };
                let message = format!("`{token}` does not take {}", other.describe());
                Err(self.error("elaborate::type_mismatch", span, message))
            }
        }
    }

    /// Calls a function of the prelude with unnamed arguments.
    pub fn prelude_call(&mut self, name: &str, values: Vec<Value>, span: Span) -> Result<Value> {
        let given = values.into_iter().map(|value| Given { name: SmolStr::default(), value, span }).collect();
        self.prelude_given(name, given, span)
    }

    /// Calls a function of the prelude.
    pub fn prelude_given(&mut self, name: &str, given: Vec<Given>, span: Span) -> Result<Value> {
        match self.prelude_fn(name) {
            Some((module, item)) => self.call_fn(module, item, given, span),
            None => Err(self.error("elaborate::no_library", span, format!("the library has no function `{name}`"))),
        }
    }

    /// Returns a function of the prelude.
    pub fn prelude_fn(&self, name: &str) -> Option<(ModuleRef, usize)> {
        let prelude = self.modules.prelude;
        let entry = *self.modules.get(prelude).values.get(name)?;
        let (module, index, item) = self.modules.item(prelude, entry)?;
        matches!(item.kind, ItemKind::Fn(_)).then_some((module, index))
    }
}

/// Returns the prelude's function for an operator on tensors.
fn prelude_name(op: BinaryOp) -> &'static str {
    use BinaryOp::*;
    match op {
        Add => "add",
        Sub => "sub",
        Mul => "mul",
        Div => "div",
        Rem => "rem",
        MatMul => "matmul",
        And | BitAnd => "bit_and",
        Or | BitOr => "bit_or",
        BitXor => "bit_xor",
        Shl => "shl",
        Shr => "shr",
        Eq => "eq",
        Ne => "ne",
        Lt => "lt",
        Le => "le",
        Gt => "gt",
        Ge => "ge",
    }
}

fn float_binary(op: BinaryOp, a: f64, b: f64) -> Option<Value> {
    use BinaryOp::*;
    Some(match op {
        Add => Value::Float(a + b),
        Sub => Value::Float(a - b),
        Mul => Value::Float(a * b),
        Div => Value::Float(a / b),
        Rem => Value::Float(a % b),
        Eq => Value::Bool(a == b),
        Ne => Value::Bool(a != b),
        Lt => Value::Bool(a < b),
        Le => Value::Bool(a <= b),
        Gt => Value::Bool(a > b),
        Ge => Value::Bool(a >= b),
        _ => return None,
    })
}

fn bool_binary(op: BinaryOp, a: bool, b: bool) -> Option<Value> {
    use BinaryOp::*;
    Some(Value::Bool(match op {
        BitAnd => a & b,
        BitOr => a | b,
        BitXor | Ne => a != b,
        Eq => a == b,
        _ => return None,
    }))
}
