//! Functions of lists, tuples and ranges.
//!
//! Invariant: the values of a list are charged before they are made.

use super::difference::parts;
use crate::elaborator::Elaborator;
use crate::value::Given;
use crate::value::{Tuple, Value};
use girder_ir::graph::VarClass;
use girder_ir::view::{View, overlap};
use girder_source::{Failed, Result, Span};
use rustc_hash::FxHashSet;
use std::sync::Arc;

impl Elaborator<'_> {
    /// Calls a function of this module.
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
                let [x, captured, paths] = self.arguments(name, ["x", "captured?", "paths?"], given, span)?;
                let Some(x) = x else { return Err(Failed) };
                let [captured, paths] = [self.flag(captured)?, self.flag(paths)?];
                let mut out = Vec::new();
                if paths && captured {
                    let message = "a tensor that a function has captured has no path";
                    return Err(self.error("elaborate::arguments", span, message));
                }
                if paths {
                    self.leaf_paths(&x.value, String::new(), x.span, &mut out)?;
                    return items(out);
                }
                self.leaves(&x.value, x.span, &mut out)?;
                if captured {
                    self.captured_beside(&x.value, x.span, &mut out)?;
                }
                items(out)
            }
            "rebuilt" => self.rebuilt(given, span),
            "difference" => self.difference(given, span),
            "overlap" => {
                let [a, b] = self.required(name, ["a", "b"], given, span)?;
                let (x, y) = match (&a.value, &b.value) {
                    (Value::Tensor(x), Value::Tensor(y)) => (&x.view, &y.view),
                    (Value::Tensor(_), other) => return Err(self.expected("a tensor", other, b.span)),
                    (other, _) => return Err(self.expected("a tensor", other, a.span)),
                };
                let found = match overlap(x, y) {
                    _ if x.clone().canonical() == y.clone().canonical() => "same",
                    Some(_) => "some",
                    None => "none",
                };
                Ok(Value::Str(found.into()))
            }
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

    /// Returns the values of a list, tuple or range.
    pub(super) fn items(&mut self, g: Given) -> Result<Vec<Value>> {
        let count = self.count(&g.value, g.span)?;
        self.charge_values(count, g.span)?;
        Ok((0..count).map(|k| self.nth(&g.value, k)).collect())
    }

    /// Returns the tensors in a nested value, in order.
    pub(crate) fn leaves(&mut self, value: &Value, span: Span, out: &mut Vec<Value>) -> Result<()> {
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

    /// Returns an optional static bool, `false` by default.
    pub fn flag(&mut self, given: Option<Given>) -> Result<bool> {
        match given.map(|g| (g.value, g.span)) {
            None => Ok(false),
            Some((Value::Bool(value), _)) => Ok(value),
            Some((other, at)) => Err(self.expected("a static bool", &other, at)),
        }
    }

    /// Returns the paths of the tensors in a nested value, which is at a path itself, in order.
    fn leaf_paths(&mut self, value: &Value, path: String, span: Span, out: &mut Vec<Value>) -> Result<()> {
        self.charge(span)?;
        if let Value::Tensor(_) = value {
            self.charge_values(1 + path.len() as u64 / 16, span)?;
            out.push(Value::Str(path.trim_start_matches('.').into()));
            return Ok(());
        }
        if let Value::List(_) | Value::Tuple(_) = value {
            let each = |(step, v): (String, &Value)| self.leaf_paths(v, format!("{path}{step}"), span, out);
            return parts(value).into_iter().try_for_each(each);
        }
        Ok(())
    }

    /// Adds the params and states that functions of a nested value have captured, each once, beside those in `out`.
    pub(super) fn captured_beside(&mut self, value: &Value, span: Span, out: &mut Vec<Value>) -> Result<()> {
        let view = |v: &Value| if let Value::Tensor(t) = v { Some(t.view.clone()) } else { None };
        let mut seen: FxHashSet<View> = out.iter().filter_map(view).collect();
        let mut visited: FxHashSet<usize> = FxHashSet::default();
        let mut left = vec![value.clone()];
        while let Some(value) = left.pop() {
            self.charge(span)?;
            let mut add = |values: &mut dyn DoubleEndedIterator<Item = &Value>, address: usize| {
                if visited.insert(address) {
                    left.extend(values.rev().cloned());
                }
            };
            match &value {
                Value::List(list) => add(&mut list.iter(), Arc::as_ptr(list) as usize),
                Value::Tuple(tuple) => add(&mut tuple.values.iter(), Arc::as_ptr(tuple) as usize),
                Value::Closure(c) => add(&mut c.captured.iter().map(|c| &c.1), Arc::as_ptr(c) as usize),
                Value::Tensor(tensor) => {
                    let is_own = |class| self.is_of_class(tensor, class);
                    if (is_own(VarClass::Param) || is_own(VarClass::State)) && seen.insert(tensor.view.clone()) {
                        self.charge_values(1, span)?;
                        out.push(value);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}
