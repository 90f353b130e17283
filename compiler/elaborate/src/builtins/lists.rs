//! Functions of lists, tuples and ranges.
//!
//! Invariant: the values of a list are charged before they are made.

use crate::elaborator::Elaborator;
use crate::value::Given;
use crate::value::{Tuple, Value};
use girder_source::{Result, Span};
use std::sync::Arc;

impl Elaborator<'_> {
    pub(super) fn call_list(&mut self, name: &'static str, given: Vec<Given>, span: Span) -> Result<Value> {
        let items = |values: Vec<Value>| Ok(Value::List(Arc::new(values)));
        match name {
            "zip" => {
                let mut lists = Vec::new();
                for g in given {
                    lists.push(self.items(g)?);
                }
                let len = lists.first().map_or(0, Vec::len);
                if lists.iter().any(|c| c.len() != len) {
                    let lengths: Vec<usize> = lists.iter().map(Vec::len).collect();
                    return Err(self.error(
                        "elaborate::arguments",
                        span,
                        format!("`zip` of lists of {lengths:?} values"),
                    ));
                }
                let row = |k: usize| lists.iter().map(|c| c[k].clone()).collect();
                items((0..len).map(|k| Value::Tuple(Arc::new(Tuple::plain(row(k))))).collect())
            }
            "leaves" => {
                let [x] = self.required(name, ["x"], given, span)?;
                let mut out = Vec::new();
                self.leaves(&x.value, x.span, &mut out)?;
                items(out)
            }
            _ => {
                let [x] = self.required(name, ["x"], given, span)?;
                if let ("len", Value::Tensor(t)) = (name, &x.value) {
                    return Ok(Value::Int(t.view.shape().first().map_or(1, |&n| n as i64)));
                }
                if let ("len", Value::Array(a)) = (name, &x.value) {
                    return Ok(Value::Int(a.shape.first().map_or(1, |&n| n as i64)));
                }
                if name == "len" {
                    return self.count(&x.value, x.span).map(|n| Value::Int(n as i64));
                }
                if let ("list", Value::Int(_) | Value::Float(_) | Value::Bool(_) | Value::Str(_)) = (name, &x.value) {
                    self.charge_values(1, x.span)?;
                    return items(vec![x.value]);
                }
                let mut values = self.items(x)?;
                match name {
                    "enumerate" => {
                        let pair = |(k, v)| Value::Tuple(Arc::new(Tuple::plain(vec![Value::Int(k as i64), v])));
                        items(values.into_iter().enumerate().map(pair).collect())
                    }
                    "reversed" => {
                        values.reverse();
                        items(values)
                    }
                    _ => items(values),
                }
            }
        }
    }

    /// Returns the values of a list, tuple or range.
    fn items(&mut self, g: Given) -> Result<Vec<Value>> {
        let count = self.count(&g.value, g.span)?;
        self.charge_values(count, g.span)?;
        Ok((0..count).map(|k| self.nth(&g.value, k)).collect())
    }

    /// Returns the tensors in a nested value, in order.
    fn leaves(&mut self, value: &Value, span: Span, out: &mut Vec<Value>) -> Result<()> {
        self.charge(span)?;
        match value {
            Value::List(l) => l.iter().try_for_each(|v| self.leaves(v, span, out)),
            Value::Tuple(t) => t.values.iter().try_for_each(|v| self.leaves(v, span, out)),
            Value::Tensor(_) => {
                self.charge_values(1, span)?;
                out.push(value.clone());
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
