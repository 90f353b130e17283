//! Functions of static numbers, and the constants of types.
//!
//! Invariant: no operation on integers wraps; overflow is an error.

use crate::elaborator::Elaborator;
use crate::integers::{self, Checked, Wrong};
use crate::value::Given;
use crate::value::Value;
use girder_ir::types::ElemType;
use girder_source::{Result, Span};

impl Elaborator<'_> {
    /// Calls a function on static numbers; on tensors, through the prelude.
    pub(super) fn call_number(&mut self, name: &'static str, given: Vec<Given>, span: Span) -> Result<Value> {
        if given.iter().any(|g| matches!(g.value, Value::Tensor(_))) {
            let known = match name {
                "int" | "float" => Some("convert them with `i32(x)`, `f32(x)`, …"),
                "string" => Some("print them: `print(\"label\", x)`"),
                "div_ceil" => Some("write `(a + b - 1) / b`"),
                _ => None,
            };
            if let Some(instead) = known {
                let help = format!("its elements are known only at run time; {instead}");
                return Err(self.error_help(
                    "elaborate::type_mismatch",
                    span,
                    format!("`{name}` makes a static value, not of a tensor"),
                    help,
                ));
            }
            // With one tensor, this is its minimum (maximum), perhaps along an axis; with two, it applies element by
            // element.
            let one = given.iter().filter(|g| g.name.is_empty()).count() == 1;
            let function = match (name, one) {
                ("min", true) => "min_of",
                ("max", true) => "max_of",
                ("min", false) => "minimum",
                ("max", false) => "maximum",
                (other, _) => other,
            };
            return self.prelude_given(function, given, span);
        }
        self.each_static(name, given.into_iter().map(|g| g.value).collect(), span)
    }

    /// Applies a function of the prelude to static numbers.
    pub fn each_static(&mut self, name: &str, values: Vec<Value>, span: Span) -> Result<Value> {
        let wrong = |this: &mut Self| {
            let found: Vec<String> = values.iter().map(Value::describe).collect();
            let message = format!(
                "`{name}` does not take {}",
                if found.is_empty() { "nothing".into() } else { found.join(" and ") }
            );
            Err(match values.iter().find_map(|v| v.tensor_of_list()) {
                Some(help) => this.error_help("elaborate::arguments", span, message, help),
                None => this.error("elaborate::arguments", span, message),
            })
        };
        if values.iter().any(Value::is_error) {
            return Err(girder_source::Failed);
        }
        match integer(name, &values) {
            Some(Ok(value)) => return Ok(Value::Int(value)),
            None | Some(Err(Wrong::NotAnInteger)) => {}
            Some(Err(wrong)) => {
                let int = |v: &Value| if let Value::Int(i) = v { i.to_string() } else { String::new() };
                let call = format!("{name}({})", values.iter().map(int).collect::<Vec<_>>().join(", "));
                return Err(match wrong {
                    Wrong::DivisionByZero => self.error("elaborate::division_by_zero", span, call),
                    _ => self.error("elaborate::overflow", span, format!("{call} does not fit the 64-bit `int`")),
                });
            }
        }
        let value = match (name, &values[..]) {
            ("int", [Value::Bool(b)]) => Value::Int(*b as i64),
            ("int", [Value::Float(x)]) => Value::Int(*x as i64),
            ("float", [Value::Int(i)]) => Value::Float(*i as f64),
            ("float", [Value::Float(x)]) => Value::Float(*x),
            ("string", [Value::Int(i)]) => Value::Str(i.to_string().into()),
            ("string", [Value::Float(x)]) => Value::Str(format!("{x:?}").into()),
            ("string", [Value::Str(s)]) => Value::Str(s.clone()),
            ("string", [Value::Bool(b)]) => Value::Str(b.to_string().into()),
            ("string", [Value::Type(ty)]) => Value::Str(ty.name().into()),
            ("min", [first, rest @ ..]) => return self.fold_extreme(first, rest, true, span),
            ("max", [first, rest @ ..]) => return self.fold_extreme(first, rest, false, span),
            ("log2", [Value::Int(a)]) => {
                let message = format!("`log2` of the integer {a} is no integer");
                let help = format!("make it a float: `log2({a}.0)`; of a power of 2, `log2` is an integer");
                return Err(self.error_help("elaborate::arguments", span, message, help));
            }
            (_, [x]) => {
                let x = match x {
                    Value::Float(x) => *x,
                    Value::Int(i) => *i as f64,
                    _ => return wrong(self),
                };
                Value::Float(match name {
                    "abs" => x.abs(),
                    "floor" => x.floor(),
                    "ceil" => x.ceil(),
                    "trunc" => x.trunc(),
                    "round" => x.round_ties_even(),
                    "sqrt" => x.sqrt(),
                    "exp" => x.exp(),
                    "log" => x.ln(),
                    "log2" => x.log2(),
                    "tanh" => x.tanh(),
                    "sin" => x.sin(),
                    "cos" => x.cos(),
                    "relu" => x.max(0.0),
                    "square" => x * x,
                    _ => return wrong(self),
                })
            }
            ("pow", [Value::Float(a), Value::Float(b)]) => Value::Float(a.powf(*b)),
            ("pow", [Value::Float(a), Value::Int(b)]) => Value::Float(a.powf(*b as f64)),
            ("pow", [Value::Int(a), Value::Float(b)]) => Value::Float((*a as f64).powf(*b)),
            ("pow", [Value::Int(a), Value::Int(b)]) => {
                let message = format!("`pow` of integers has no integer result for the power {b}");
                let help = format!("make it a float: `pow({a}.0, {b})`");
                return Err(self.error_help("elaborate::arguments", span, message, help));
            }
            _ => return wrong(self),
        };
        Ok(value)
    }

    fn fold_extreme(&mut self, first: &Value, rest: &[Value], least: bool, span: Span) -> Result<Value> {
        let mut best = match (first, rest) {
            (Value::List(l), []) if !l.is_empty() => return self.fold_extreme(&l[0], &l[1..], least, span),
            (first, _) => first.clone(),
        };
        for v in rest {
            let op = girder_syntax::ast::BinaryOp::Lt;
            let less = self.binary(op, v.clone(), best.clone(), span)?;
            let more = self.binary(op, best.clone(), v.clone(), span)?;
            let better = matches!((least, less, more), (true, Value::Bool(true), _) | (false, _, Value::Bool(true)));
            // As for tensors, a NaN among them is the result.
            if !best.is_nan() && (better || v.is_nan()) {
                best = v.clone();
            }
        }
        // As for `+`, an integer combined with a float becomes a float.
        let any_float = [first].into_iter().chain(rest).any(|v| matches!(v, Value::Float(_)));
        Ok(match best {
            Value::Int(i) if any_float => Value::Float(i as f64),
            best => best,
        })
    }

    /// Evaluates `f32.max` and similar constants.
    pub fn type_constant(&mut self, ty: ElemType, name: &str, span: Span) -> Result<Value> {
        let float = |single: f32, double: f64| match ty {
            ElemType::F32 => Some(Value::Float(single as f64)),
            ElemType::F64 => Some(Value::Float(double)),
            _ => None,
        };
        let bits = ty.bytes() * 8;
        let value = match (name, ty.is_int(), ty.is_signed_int()) {
            ("bytes", ..) => Some(Value::Int(ty.bytes() as i64)),
            ("max", true, true) => Some(Value::Int(i64::MAX >> (64 - bits))),
            ("min", true, true) => Some(Value::Int(i64::MIN >> (64 - bits))),
            ("max", true, false) if bits < 64 => Some(Value::Int((1i64 << bits) - 1)),
            ("min", true, false) => Some(Value::Int(0)),
            ("max", ..) => float(f32::MAX, f64::MAX),
            ("min", ..) => float(f32::MIN, f64::MIN),
            ("epsilon", ..) => float(f32::EPSILON, f64::EPSILON),
            ("inf", ..) => float(f32::INFINITY, f64::INFINITY),
            ("nan", ..) => float(f32::NAN, f64::NAN),
            _ => None,
        };
        value.map_or_else(
            || Err(self.error("names::unknown", span, format!("the type `{ty}` has no `{name}` here"))),
            Ok,
        )
    }

    /// Evaluates `f32.bits(0x7fc00000)`: the element with these bits.
    pub fn type_bits(&mut self, ty: ElemType, given: Vec<Given>, span: Span) -> Result<Value> {
        let [bits] = self.required("bits", ["bits"], given, span)?;
        match (bits.value, ty) {
            (Value::Int(b), ElemType::F32) if u32::try_from(b).is_ok() => {
                Ok(Value::Float(f32::from_bits(b as u32) as f64))
            }
            (Value::Int(b), ElemType::F64) => Ok(Value::Float(f64::from_bits(b as u64))),
            (other, _) => Err(self.expected("the bits of a float (an integer)", &other, bits.span)),
        }
    }
}

/// Computes an integer-valued function of integers; `None` for any other function.
fn integer(name: &str, values: &[Value]) -> Option<Checked> {
    match *values {
        [Value::Int(a)] => integers::of_one(name).map(|f| f(a)),
        [Value::Int(a), Value::Int(b)] => integers::of_two(name).map(|f| f(a, b)),
        _ => None,
    }
}
