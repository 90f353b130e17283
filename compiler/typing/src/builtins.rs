//! Functions that are operations of the codelet IR. All others (`exp`, `log`, …) are codelet functions of the library.
//!
//! Invariant: every name in [`NAMES`] has a meaning in [`Builder::builtin`].

use super::builder::Builder;
use super::types::{BOOL, Class, Ty};
use super::value::{Literal, Value};
use girder_ir::codelet::{BinaryOp, Check, ExprKind, Stmt, UnaryOp};
use girder_ir::ids::ExprId;
use girder_ir::types::{ElemType, Scalar};
use girder_source::{Diagnostic, Span};
use girder_syntax::ast;

/// The functions of this file.
pub(super) const NAMES: [&str; 14] = [
    "abs", "amp", "assert", "ceil", "clz", "floor", "fma", "max", "min", "popcount", "round", "select", "sqrt", "trunc",
];

/// Returns whether a name is a function of this file.
pub fn is_builtin(name: &str) -> bool {
    NAMES.contains(&name)
}

impl<'a> Builder<'a, '_> {
    /// Translates a call of a function of this file.
    pub(super) fn builtin(&mut self, name: &str, args: &'a [ast::Arg], span: Span) -> Value {
        if name == "amp" {
            return self.amp(args, span);
        }
        if let Some(n) = args.iter().find_map(|a| a.name.as_ref()) {
            return self.error("codelet::argument", n.span, format!("arguments of `{name}` have no names"));
        }
        if name == "assert" {
            return self.assert(args, span);
        }
        let exprs: Vec<_> = args.iter().map(|a| a.value).collect();
        let values = self.values(&exprs);
        if values.iter().any(|v| matches!(v, Value::Error)) {
            return Value::Error;
        }
        let spans: Vec<Span> = exprs.iter().map(|&e| self.tree().exprs[e].span).collect();
        match name {
            "min" => self.least_or_greatest(BinaryOp::Min, values.into_iter().zip(spans).collect(), span),
            "max" => self.least_or_greatest(BinaryOp::Max, values.into_iter().zip(spans).collect(), span),
            "fma" => self.fma(values, &spans, span),
            "select" => self.select_call(values, &spans, span),
            _ => self.unary_call(name, values, &spans, span),
        }
    }

    fn arguments<const N: usize>(&mut self, name: &str, values: Vec<Value>, span: Span) -> Option<[Value; N]> {
        let given = values.len();
        let r = <[Value; N]>::try_from(values).ok();
        if r.is_none() {
            let plural = if N == 1 { "" } else { "s" };
            let message = format!("`{name}` has {N} argument{plural}, not {given}");
            self.error("codelet::argument", span, message);
        }
        r
    }

    fn unary_call(&mut self, name: &str, values: Vec<Value>, spans: &[Span], span: Span) -> Value {
        let (op, class) = match name {
            "abs" => (UnaryOp::Abs, Class::Number),
            "floor" => (UnaryOp::Floor, Class::Float),
            "ceil" => (UnaryOp::Ceil, Class::Float),
            "round" => (UnaryOp::Round, Class::Float),
            "trunc" => (UnaryOp::Trunc, Class::Float),
            "sqrt" => (UnaryOp::Sqrt, Class::Float),
            "popcount" => (UnaryOp::Popcount, Class::Int),
            _ => (UnaryOp::Clz, Class::Int),
        };
        let Some([x]) = self.arguments(name, values, span) else { return Value::Error };
        match (op, x) {
            (UnaryOp::Abs, Value::Int(v)) => Value::Int(v.abs()),
            (op, x) => self.unary_of(op, x, class, [spans[0], span]),
        }
    }

    fn fma(&mut self, values: Vec<Value>, spans: &[Span], span: Span) -> Value {
        let Some(values) = self.arguments::<3>("fma", values, span) else { return Value::Error };
        let mut scalars = vec![];
        for (v, &at) in values.into_iter().zip(spans) {
            match self.narrowed(v, Class::Float, at) {
                Some(e) => scalars.push(e),
                None => return Value::Error,
            }
        }
        let [a, b, c] = scalars[..] else { return Value::Error };
        if !self.same_type([a, b], [spans[0], spans[1]], span) || !self.same_type([a, c], [spans[0], spans[2]], span) {
            return Value::Error;
        }
        let ty = self.expr_types[a];
        Value::Scalar(self.push(ExprKind::Fma { a, b, c }, ty, span))
    }

    fn select_call(&mut self, values: Vec<Value>, spans: &[Span], span: Span) -> Value {
        let Some([c, a, b]) = self.arguments("select", values, span) else { return Value::Error };
        match self.coerce(c, BOOL, spans[0]) {
            Some(c) => self.select(c, a, b, span),
            None => Value::Error,
        }
    }

    fn assert(&mut self, args: &'a [ast::Arg], span: Span) -> Value {
        let (cond, message) = match args {
            [cond] => (cond, None),
            [cond, message] => (cond, Some(message)),
            _ => return self.error("codelet::argument", span, "`assert` has a condition and perhaps a message"),
        };
        let message = match message {
            None => None,
            Some(m) => match self.expr(m.value) {
                Value::Str(s) => Some(s),
                _ => {
                    let at = self.tree().exprs[m.value].span;
                    return self.error("codelet::argument", at, "the message of an `assert` is a string");
                }
            },
        };
        let at = self.tree().exprs[cond.value].span;
        let v = self.expr(cond.value);
        if let Value::Bool(true) = v {
            return Value::Unit;
        }
        let Some(cond) = self.coerce(v, BOOL, at) else { return Value::Error };
        let site = self.site(Check::Assert, span, message);
        self.emit(Stmt::Assert { cond, site });
        Value::Unit
    }

    /// Translates `f32(x)`, `int(x)`, `T(x)`.
    pub(super) fn conversion(&mut self, ty: ElemType, args: &'a [ast::Arg], span: Span) -> Value {
        let [ast::Arg { name: None, value }] = args else {
            return self.error("codelet::argument", span, format!("`{ty}` converts one value"));
        };
        let v = self.expr(*value);
        self.convert(ty, v, span)
    }

    /// Translates `f32.bits(x)`, `u32.bits(x)`.
    pub(super) fn bits(&mut self, ty: ElemType, args: &'a [ast::Arg], span: Span) -> Value {
        let [ast::Arg { name: None, value }] = args else {
            return self.error("codelet::argument", span, format!("`{ty}.bits` has one argument"));
        };
        let at = self.tree().exprs[*value].span;
        if ty == ElemType::Bool {
            return self.error("codelet::type_mismatch", span, "`bool` has no bits");
        }
        match self.expr(*value) {
            Value::Error | Value::Never => Value::Error,
            Value::Int(v) => self.literal_bits(ty, v, at),
            v => match self.scalar(v, at) {
                Some(x) => self.bits_of(ty, x, at, span),
                None => Value::Error,
            },
        }
    }

    fn literal_bits(&mut self, ty: ElemType, v: i128, span: Span) -> Value {
        let unsigned = unsigned(ty);
        match Literal::Int(v).to_scalar(unsigned) {
            Some(s) => Value::Scalar(self.push(ExprKind::Const(Scalar::new(ty, s.bits)), Ty::Known(ty), span)),
            None => {
                let width = ty.bytes() * 8;
                self.error("codelet::literal_range", span, format!("{v} has more than the {width} bits of `{ty}`"))
            }
        }
    }

    fn bits_of(&mut self, ty: ElemType, x: ExprId, at: Span, span: Span) -> Value {
        let same_width = |t: ElemType| t.bytes() == ty.bytes() && t != ElemType::Bool;
        let from = match self.types.known(self.expr_types[x]) {
            Some(t) => t,
            // An undecided type becomes the integer or float of this width.
            None => {
                let float = if ty.bytes() == 8 { ElemType::F64 } else { ElemType::F32 };
                let guess = if ty.is_float() { unsigned(ty) } else { float };
                if !self.types.unify(self.expr_types[x], Ty::Known(guess)) {
                    self.types.unify(self.expr_types[x], Ty::Known(unsigned(ty)));
                }
                self.types.default_of(self.expr_types[x])
            }
        };
        if !same_width(from) {
            let message = format!("`{ty}.bits` takes {} bits, and this is `{from}`", ty.bytes() * 8);
            self.report(Diagnostic::error("codelet::type_mismatch", at, message));
            return Value::Error;
        }
        if from == ty {
            return Value::Scalar(x);
        }
        Value::Scalar(self.push(ExprKind::Bits { x }, Ty::Known(ty), span))
    }
}

fn unsigned(ty: ElemType) -> ElemType {
    match ty.bytes() {
        1 => ElemType::U8,
        2 => ElemType::U16,
        4 => ElemType::U32,
        _ => ElemType::U64,
    }
}
