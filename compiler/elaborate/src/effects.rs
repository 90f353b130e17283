//! Effects that the host observes: streams, `print`, `abort`, `sync`.

use crate::elaborator::Elaborator;
use crate::elaborator::NodeKind;
use crate::gradients::moments::RemoteWrite;
use crate::gradients::tape::EntryKind;
use crate::value::Given;
use crate::value::{Tensor, Value};
use girder_ir::ids::StreamId;
use girder_ir::program::{Effect, UntilWritten};
use girder_ir::types::ElemType;
use girder_source::{Diagnostic, Failed, Result, Span};
use girder_syntax::ast::{Arg, ExprId, ExprKind};
use smol_str::SmolStr;
use std::sync::Arc;

impl Elaborator<'_> {
    /// Elaborates `target <- read(stream)`: the packet goes directly to the target, if its type and shape fit.
    pub fn read_into(&mut self, target: &Tensor, value: ExprId, span: Span) -> Result<bool> {
        let tree = self.tree();
        let ExprKind::Call { callee, args } = &tree.exprs[value].kind else { return Ok(false) };
        let (ExprKind::Name(name), [Arg { name: None, value: from }]) = (&tree.exprs[*callee].kind, &args[..]) else {
            return Ok(false);
        };
        if name != "read" || !matches!(self.expr(*callee)?, Value::Builtin("read")) {
            return Ok(false);
        }
        let (stream, row) = match self.expr(*from)? {
            Value::Stream(stream) => (stream, None),
            Value::Row(remote, row) => (remote, Some(row)),
            _ => return Ok(false),
        };
        let s = &self.graph.streams[stream];
        if !s.input || s.ty != target.ty || s.shape != target.view.shape() || target.view.parts.len() > 1 {
            return Ok(false);
        }
        self.writable(&target.view, span)?;
        if let Some(row) = row {
            self.seek(stream, &row, span)?;
        }
        self.row_is_selected(stream, span)?;
        let begin = self.moment();
        self.push(NodeKind::Effect(Effect::Read { stream, into: target.view.clone() }), span)?;
        self.record(begin, EntryKind::Fill { dst: target.view.clone(), stream: Some(stream) }, span);
        Ok(true)
    }

    /// Elaborates `read(stream)`: the packet goes to a fresh temporary.
    pub fn read_stream(&mut self, given: Vec<Given>, span: Span) -> Result<Value> {
        let [stream] = self.arguments("read", ["stream"], given, span)?;
        let Some(stream) = stream else { return Err(girder_source::Failed) };
        let id = match stream.value {
            Value::Stream(id) => id,
            Value::Row(id, row) => {
                self.seek(id, &row, span)?;
                id
            }
            other => return Err(self.expected("a stream or a row of a remote buffer", &other, stream.span)),
        };
        self.packet(id, span).map(Value::from)
    }

    /// Reads the next packet into a fresh temporary.
    pub fn packet(&mut self, id: StreamId, span: Span) -> Result<Tensor> {
        self.row_is_selected(id, span)?;
        let s = &self.graph.streams[id];
        if !s.input {
            let message = format!("`{}` is an `out` stream: the program writes it", s.name);
            return Err(self.error_help("elaborate::stream_direction", span, message, "write it with `<-`"));
        }
        let (name, ty, shape) = (s.name.clone(), s.ty, s.shape.clone());
        let t = self.temporary(name.rsplit('.').next().unwrap_or(&name), ty, &shape, span)?;
        let begin = self.moment();
        self.push(NodeKind::Effect(Effect::Read { stream: id, into: t.view.clone() }), span)?;
        self.record(begin, EntryKind::Fill { dst: t.view.clone(), stream: Some(id) }, span);
        Ok(t)
    }

    /// Elaborates `stream <- value;`.
    pub fn write_stream(&mut self, id: StreamId, value: Value, span: Span) -> Result<()> {
        self.row_is_selected(id, span)?;
        let s = &self.graph.streams[id];
        if s.input && s.rows.is_none() {
            let message = format!("`{}` is an `in` stream: the program reads it", s.name);
            return Err(self.error_help("elaborate::stream_direction", span, message, "read it with `read(…)`"));
        }
        let (ty, shape) = (s.ty, s.shape.clone());
        let t = match value {
            Value::Tensor(t) => Arc::unwrap_or_clone(t),
            ref list @ (Value::List(_) | Value::Array(_)) => self.constant_of(list, ty, &shape, span)?,
            number => {
                let s = self.scalar(&number, ty, span)?;
                self.constant(s, span)?
            }
        };
        if t.ty != ty {
            let stream = &self.graph.streams[id];
            let what = if stream.rows.is_some() { "row" } else { "stream" };
            let (name, message) = (&stream.name, format!("{} does not fit the {what}", t.type_name()));
            let help = format!("`{name}` carries {}; convert it: `{ty}(…)`", crate::value::shaped(ty, &shape));
            return Err(self.error_help("elaborate::type_mismatch", span, message, help));
        }
        let view = self.broadcast(&t, &shape, span)?;
        if self.graph.streams[id].rows.is_some() && self.is_taping() {
            let at = self.moment();
            self.recorder.remote_writes.push(RemoteWrite { stream: id, view: view.clone(), at, span });
        }
        let t = self.one_region(Tensor { view, ty }, span)?;
        self.push(NodeKind::Effect(Effect::Write { stream: id, from: t.view }), span)
    }

    /// Elaborates `print("label", x);` or `print(x);`.
    pub fn print(&mut self, given: Vec<Given>, span: Span) -> Result<Value> {
        let mut given = given.into_iter();
        let (first, second, more) = (given.next(), given.next(), given.next());
        let (label, value) = match (first, second, more) {
            (Some(Given { value: Value::Str(label), .. }), Some(v), None) => (label, v),
            (Some(v), None, None) => ("".into(), v),
            _ => {
                let help = "write `print(\"label\", x)`";
                return Err(self.error_help("elaborate::arguments", span, "`print` takes a label and a value", help));
            }
        };
        if !matches!(value.value, Value::Tensor(_)) {
            self.charge_walk(&value.value, span)?;
        }
        if !self.print_value(label, &value.value, span)? {
            return Err(self.expected("a tensor or a static value", &value.value, value.span));
        }
        Ok(Value::Unit)
    }

    /// Prints a value; returns whether anything of it can be printed. Lists and tuples of tensors are printed member by
    /// member, each behind the path that leads to it.
    fn print_value(&mut self, label: SmolStr, value: &Value, span: Span) -> Result<bool> {
        let (names, values): (&[SmolStr], &[Value]) = match value {
            Value::Tensor(t) => {
                let t = self.one_region((**t).clone(), span)?;
                self.push(NodeKind::Effect(Effect::Print { label, value: t.view }), span)?;
                return Ok(true);
            }
            Value::List(values) => (&[], values),
            Value::Tuple(t) => (&t.names, &t.values),
            _ => (&[], &[]),
        };
        if let Some(text) = static_text(value) {
            let text = if label.is_empty() { text.into() } else { format!("{label} {text}").into() };
            self.push(NodeKind::Effect(Effect::PrintText { text }), span)?;
            return Ok(true);
        }
        let mut any = false;
        for (k, value) in values.iter().enumerate() {
            let name = match names.get(k) {
                Some(name) if !name.is_empty() => name.clone(),
                _ => k.to_string().into(),
            };
            let label = if label.is_empty() { name } else { format!("{label}.{name}").into() };
            any |= self.print_value(label, value, span)?;
        }
        Ok(any)
    }

    /// Elaborates `undef(x);` of a tensor, or of all tensors of a nested value. With `filled: true`, they are written
    /// in full before they are read.
    pub fn undef(&mut self, given: Vec<Given>, span: Span) -> Result<Value> {
        let [x, filled] = self.arguments("undef", ["x", "filled?"], given, span)?;
        let filled = self.flag(filled)?;
        let until_written = if filled { UntilWritten::StatedUnread } else { UntilWritten::MayBeRead };
        let x = x.ok_or(Failed)?;
        self.end_values(&x.value, until_written, x.span, span).map(|()| Value::Unit)
    }

    fn end_values(&mut self, value: &Value, until_written: UntilWritten, at: Span, span: Span) -> Result<()> {
        self.charge(span)?;
        match value {
            Value::List(l) => l.iter().try_for_each(|v| self.end_values(v, until_written, at, span)),
            Value::Tuple(t) => t.values.iter().try_for_each(|v| self.end_values(v, until_written, at, span)),
            Value::Tensor(t) => {
                self.writable(&t.view, span)?;
                if t.view.parts.len() > 1 {
                    let message = "this view has several parts";
                    return Err(self.error_help("elaborate::view_parts", at, message, "name each part in an `undef`"));
                }
                if t.view.is_empty() {
                    return Ok(());
                }
                let begin = self.moment();
                self.push(NodeKind::Effect(Effect::Undef { what: t.view.clone(), until_written }), span)?;
                self.record(begin, EntryKind::Fill { dst: t.view.clone(), stream: None }, span);
                Ok(())
            }
            other => Err(self.expected("a tensor", other, at)),
        }
    }

    /// Elaborates `abort("message", when: c);`.
    pub fn abort(&mut self, given: Vec<Given>, span: Span) -> Result<Value> {
        let [message, when] = self.arguments("abort", ["message?", "when?"], given, span)?;
        let message = match message.map(|g| (g.value, g.span)) {
            None => "abort".into(),
            Some((Value::Str(s), _)) => s,
            Some((other, at)) => return Err(self.expected("a string", &other, at)),
        };
        let when = match when.map(|g| (g.value, g.span)) {
            None | Some((Value::Bool(true), _)) => None,
            Some((Value::Bool(false), _)) => return Ok(Value::Unit),
            Some((Value::Tensor(t), _)) if t.ty == ElemType::Bool && t.view.rank() == 0 => {
                Some(self.one_region(Arc::unwrap_or_clone(t), span)?.view)
            }
            Some((other, at)) => {
                let d = Diagnostic::error(
                    "elaborate::condition",
                    at,
                    format!("expected a condition, found {}", other.describe()),
                );
                return Err(self.report(d.help("it is a bool tensor of rank 0, such as `any(x > 1.0)`")));
            }
        };
        self.push(NodeKind::Effect(Effect::Abort { message, when }), span)?;
        Ok(Value::Unit)
    }
}

/// Returns the text of a static value for `print`; `None` for a value without text.
fn static_text(value: &Value) -> Option<String> {
    let mut text = String::new();
    match value {
        Value::Str(s) => text.push_str(s),
        value => add_text(value, &mut text)?,
    }
    Some(text)
}

/// Appends the text of a static value; strings are quoted.
fn add_text(value: &Value, out: &mut String) -> Option<()> {
    let separate = |k: usize, out: &mut String| {
        if k > 0 {
            out.push_str(", ")
        }
    };
    match value {
        Value::Int(i) => out.push_str(&i.to_string()),
        Value::Float(x) => out.push_str(&format!("{x:?}")),
        Value::Bool(b) => out.push_str(&b.to_string()),
        Value::Str(s) => out.push_str(&format!("{s:?}")),
        Value::Type(t) => out.push_str(t.name()),
        Value::Range(r) if r.step == 1 => {
            out.push_str(&format!("{}..{}", r.start, r.start as i128 + r.count as i128));
        }
        Value::Range(r) => {
            let end = r.start as i128 + r.step as i128 * r.count as i128;
            out.push_str(&format!("{}..{end} by {}", r.start, r.step));
        }
        Value::List(values) => {
            out.push('[');
            for (k, v) in values.iter().enumerate() {
                separate(k, out);
                add_text(v, out)?;
            }
            out.push(']');
        }
        Value::Array(a) => out.push_str(&a.text()),
        Value::Tuple(t) => {
            out.push('(');
            for (k, (name, v)) in t.names.iter().zip(&t.values).enumerate() {
                separate(k, out);
                if !name.is_empty() {
                    out.push_str(&format!("{name}: "));
                }
                add_text(v, out)?;
            }
            out.push(')');
        }
        _ => return None,
    }
    Some(())
}
