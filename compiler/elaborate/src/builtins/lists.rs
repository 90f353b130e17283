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
            "rebuilt" => self.rebuilt(given, span),
            "has" => {
                let [x, member] = self.required(name, ["x", "member"], given, span)?;
                let Value::Str(member_name) = &member.value else {
                    return Err(self.expected("the name of a member as a string", &member.value, member.span));
                };
                let found = matches!(&x.value, Value::Tuple(t) if t.names.iter().any(|n| n == member_name.as_str()));
                Ok(Value::Bool(found))
            }
            "kind_of" => {
                let [x] = self.required(name, ["x"], given, span)?;
                Ok(Value::Str(x.value.kind().into()))
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

    /// Evaluates `rebuilt(values, like: s)`: the nest `s` with its tensors, in the order of `leaves`, replaced by the
    /// values of a list.
    fn rebuilt(&mut self, given: Vec<Given>, span: Span) -> Result<Value> {
        let [values, like] = self.required("rebuilt", ["values", "like"], given, span)?;
        let at = values.span;
        let values = self.items(values)?;
        let mut wanted = Vec::new();
        self.leaves(&like.value, like.span, &mut wanted)?;
        if values.len() != wanted.len() {
            let message = format!("{} values for a nest of {} tensors", values.len(), wanted.len());
            let help = "`rebuilt` takes one value for each tensor, in the order of `leaves`";
            return Err(self.error_help("elaborate::arguments", at, message, help));
        }
        self.replaced(&like.value, like.span, &mut values.into_iter())
    }

    /// Returns a nested value with its tensors replaced by `values`, which are as many.
    fn replaced(&mut self, value: &Value, span: Span, values: &mut impl Iterator<Item = Value>) -> Result<Value> {
        self.charge(span)?;
        match value {
            Value::List(list) => {
                self.charge_values(list.len() as u64, span)?;
                let all = list.iter().map(|v| self.replaced(v, span, values)).collect::<Result<_>>()?;
                Ok(Value::List(Arc::new(all)))
            }
            Value::Tuple(tuple) => {
                self.charge_values(tuple.values.len() as u64, span)?;
                let all = tuple.values.iter().map(|v| self.replaced(v, span, values)).collect::<Result<_>>()?;
                Ok(Value::Tuple(Arc::new(Tuple { names: tuple.names.clone(), values: all })))
            }
            Value::Tensor(_) => Ok(values.next().unwrap_or(Value::Error)),
            other => Ok(other.clone()),
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
