//! Reductions and searches over static values: `sum i in r { e }`, `list i in r { e }`, `minimize p in r { cost }`.

use crate::elaborator::Elaborator;
use crate::value::{Tuple, Value};
use girder_source::{Diagnostic, Failed, Result, Span};
use girder_syntax::ast::{self, BinaryOp, ExprId};
use std::sync::Arc;

/// The names of the reductions.
pub const REDUCTIONS: [&str; 10] =
    ["sum", "product", "min", "max", "any", "all", "argmin", "argmax", "list", "minimize"];

impl<'a> Elaborator<'a> {
    /// Evaluates `op binders where filter { value }`.
    pub fn reduce(
        &mut self,
        op: &ast::Ident,
        binders: &'a [ast::Binder],
        filter: Option<ExprId>,
        body: &'a ast::Body,
        span: Span,
    ) -> Result<Value> {
        if !REDUCTIONS.contains(&op.name.as_str()) {
            let near = girder_source::closest(&op.name, REDUCTIONS.iter().copied());
            let d = Diagnostic::error("names::unknown", op.span, format!("there is no reduction `{}`", op.name));
            return Err(self.report(match near {
                Some(n) => d.help(format!("did you mean `{n}`?")),
                None => d.help(format!("reductions are {}", REDUCTIONS.join(", "))),
            }));
        }
        let located = op.name.starts_with("arg") || op.name == "minimize";
        if let Some(found) = self.reduced_batched(binders, filter, body, located)? {
            let (values, points): (Vec<Value>, Vec<Option<Value>>) = found.into_iter().unzip();
            return self.folded(&op.name, values, points.into_iter().flatten().collect(), span);
        }
        let mut points = Vec::new();
        let mut values = Vec::new();
        self.each_binding(binders, &mut |this: &mut Self| {
            if let Some(f) = filter {
                let at = this.tree().exprs[f].span;
                match this.expr(f)? {
                    Value::Bool(true) => {}
                    Value::Bool(false) => return Ok(()),
                    other => return Err(this.expected("a static bool", &other, at)),
                }
            }
            let value = this.block(body)?;
            this.charge_values(1, span)?;
            if located {
                points.push(this.binder_values(binders));
            }
            values.push(value);
            Ok(())
        })?;
        self.folded(&op.name, values, points, span)
    }

    pub fn folded(&mut self, op: &str, values: Vec<Value>, points: Vec<Value>, span: Span) -> Result<Value> {
        let start = match op {
            "list" => return Ok(Value::List(Arc::new(values))),
            "argmin" | "argmax" | "minimize" => return self.searched(op, &values, points, span),
            "any" => return self.decided(&values, true, span),
            "all" => return self.decided(&values, false, span),
            "sum" => Some(Value::Int(0)),
            "product" => Some(Value::Int(1)),
            _ => None,
        };
        let mut rest = values.into_iter();
        let Some(mut total) = rest.next().or(start) else {
            return Err(self.error("elaborate::empty_reduction", span, format!("`{op}` of no values")));
        };
        for v in rest {
            total = match op {
                "sum" => self.binary(BinaryOp::Add, total, v, span)?,
                "product" => self.binary(BinaryOp::Mul, total, v, span)?,
                "min" => self.call_number_pair("min", total, v, span)?,
                _ => self.call_number_pair("max", total, v, span)?,
            };
        }
        Ok(total)
    }

    fn call_number_pair(&mut self, name: &'static str, a: Value, b: Value, span: Span) -> Result<Value> {
        let given = [a, b].map(|value| crate::value::Given { name: "".into(), value, span });
        self.call_builtin(name, given.into(), span)
    }

    fn decided(&mut self, values: &[Value], by: bool, span: Span) -> Result<Value> {
        let mut result = !by;
        for v in values {
            match v {
                Value::Bool(b) => result = if *b == by { by } else { result },
                other => return Err(self.expected("a static bool", other, span)),
            }
        }
        Ok(Value::Bool(result))
    }

    /// Returns the values of the binders at the first minimum (or maximum). As for tensors, the first NaN is both. A
    /// cost that is NaN is chosen only if all are.
    fn searched(&mut self, op: &str, values: &[Value], points: Vec<Value>, span: Span) -> Result<Value> {
        let mut best: Option<usize> = None;
        for (k, v) in values.iter().enumerate() {
            let better = match best {
                None => true,
                Some(b) if op == "minimize" && (values[b].is_nan() || v.is_nan()) => !v.is_nan(),
                Some(b) if values[b].is_nan() => false,
                Some(_) if v.is_nan() => true,
                Some(b) if op == "argmax" => self.less(&values[b], v, span)?,
                Some(b) => self.less(v, &values[b], span)?,
            };
            if better {
                best = Some(k);
            }
        }
        match best {
            Some(k) => Ok(points.into_iter().nth(k).unwrap_or(Value::Error)),
            None => Err(self.error("elaborate::empty_reduction", span, format!("`{op}` has no point to choose from"))),
        }
    }

    /// Returns whether `a < b`; tuples are compared lexicographically.
    fn less(&mut self, a: &Value, b: &Value, span: Span) -> Result<bool> {
        if let (Value::Tuple(x), Value::Tuple(y)) = (a, b) {
            for (p, q) in x.values.iter().zip(&y.values) {
                if self.less(p, q, span)? {
                    return Ok(true);
                }
                if self.less(q, p, span)? {
                    return Ok(false);
                }
            }
            return Ok(false);
        }
        match self.binary(BinaryOp::Lt, a.clone(), b.clone(), span)? {
            Value::Bool(r) => Ok(r),
            other => {
                self.expected("a static number", &other, span);
                Err(Failed)
            }
        }
    }

    fn binder_values(&self, binders: &[ast::Binder]) -> Value {
        let mut names = Vec::new();
        for b in binders {
            crate::modules::pattern_names(&b.pattern, &mut |n| names.push(n.name.clone()));
        }
        let value = |n: &smol_str::SmolStr| self.scopes.local(n).map_or(Value::Error, |b| b.value.clone());
        match &names[..] {
            [one] => value(one),
            many => Value::Tuple(Arc::new(Tuple::plain(many.iter().map(value).collect()))),
        }
    }
}
