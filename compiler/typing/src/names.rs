//! The meaning of names inside a body, and suggestions for unknown ones.
//!
//! Invariant: an inner name hides an outer one; names of the body hide generics, sizes and fields, these hide
//! built-ins, and built-ins hide items of modules.

use super::Meaning;
use super::builder::Builder;
use super::builtins;
use super::loops::Bounds;
use super::value::{Axis, Binding, Bound, Value, View};
use girder_ir::codelet::{ExprKind, Storage};
use girder_ir::ids::ExprId;
use girder_ir::types::ElemType;
use girder_source::{Diagnostic, Span};
use girder_syntax::ast;
use smol_str::SmolStr;

impl<'a> Builder<'a, '_> {
    /// Runs `f` in an inner scope of names.
    pub(super) fn scoped<T>(&mut self, f: impl FnOnce(&mut Self) -> T) -> T {
        let outer = self.frame().names.len();
        let r = f(self);
        self.frame().names.truncate(outer);
        r
    }

    /// Binds a name until the scope ends.
    pub(super) fn bind(&mut self, name: &ast::Ident, value: Value, bound: Bound) {
        let region = self.region;
        self.frame().names.push(Binding { name: name.name.clone(), value, bound, span: name.span, region });
    }

    /// Returns the binding of a name in the body itself.
    pub(super) fn binding(&self, name: &str) -> Option<&Binding> {
        self.frames.last()?.names.iter().rev().find(|b| b.name == name)
    }

    /// Returns the value of a name; `None` for a function.
    pub(super) fn name(&mut self, name: &str, span: Span) -> Option<Value> {
        if let Some(b) = self.binding(name) {
            let value = b.value.clone();
            return Some(self.reuse(value, span));
        }
        match name {
            "int" => return Some(Value::Type(ElemType::I64)),
            "worker" | "workers" => return Some(self.worker(name, span)),
            _ => {}
        }
        if let Some(ty) = ElemType::from_name(name) {
            return Some(self.supported(ty, span).map_or(Value::Error, Value::Type));
        }
        if builtins::is_builtin(name) {
            return None;
        }
        self.item(name, span)
    }

    /// Returns the value of an item of a module; `None` for a function and for an item that is not a value.
    pub(super) fn item(&mut self, path: &str, span: Span) -> Option<Value> {
        let module = self.frame().module;
        match self.scope.lookup(module, path) {
            Some(Meaning::Int(v)) => Some(Value::Int(v.into())),
            Some(Meaning::Float(v)) => Some(Value::Float(v)),
            Some(Meaning::Bool(v)) => Some(Value::Bool(v)),
            Some(Meaning::Type(ty)) => Some(self.supported(ty, span).map_or(Value::Error, Value::Type)),
            Some(Meaning::CodeletFn { .. }) => None,
            Some(Meaning::Other(what)) => {
                let message = format!("`{path}` is {what}, which a codelet cannot use");
                let help = "pass it to the codelet as a field";
                self.report(Diagnostic::error("codelet::not_here", span, message).help(help));
                Some(Value::Error)
            }
            None => Some(self.unknown(path, span)),
        }
    }

    fn worker(&mut self, name: &str, span: Span) -> Value {
        if !self.out.multi {
            let d = Diagnostic::error("codelet::not_here", span, format!("`{name}` exists only in a `multi codelet`"));
            self.report(d.help("write `multi codelet`"));
            return Value::Error;
        }
        let kind = if name == "worker" { ExprKind::Worker } else { ExprKind::Workers };
        Value::Scalar(self.push(kind, super::types::INT, span))
    }

    /// Returns the type if the engines support it; otherwise reports it.
    pub(super) fn supported(&mut self, ty: ElemType, span: Span) -> Option<ElemType> {
        if !ty.is_supported() {
            self.report(not_supported(ty, span));
            return None;
        }
        Some(ty)
    }

    /// Reports an unknown name.
    pub(super) fn unknown(&mut self, name: &str, span: Span) -> Value {
        let mut d = Diagnostic::error("codelet::unknown_name", span, format!("there is no `{name}` here"));
        let near = {
            let bound = self.frames.iter().rev().take(1).flat_map(|f| f.names.iter().rev());
            let names = bound.map(|b| b.name.as_str()).chain(builtins::NAMES);
            girder_source::closest(name, names.chain(ElemType::ALL.into_iter().map(|t| t.name())))
        };
        let in_codelets = match name {
            "print" => Some("a codelet writes to an `out` field, and the program prints it"),
            "grad" => Some("take it in a `fn` or a `program`: it differentiates the codelet functions that these call"),
            "len" => Some("name the length in the field's type: `n` of `in x: f32[n]`"),
            _ => girder_source::foreign(name),
        };
        match (in_codelets, near) {
            (Some(help), _) => d = d.help(help),
            (None, Some(near)) => d = d.help(format!("did you mean `{near}`?")),
            (None, None) => {}
        }
        self.report(d);
        Value::Error
    }

    /// Returns a bound value for one more use, at another span.
    fn reuse(&mut self, value: Value, span: Span) -> Value {
        match value {
            Value::Scalar(e) => Value::Scalar(self.again_at(e, span)),
            Value::Tuple(list) => Value::Tuple(list.into_iter().map(|(name, v)| (name, self.reuse(v, span))).collect()),
            Value::View(v) => Value::View(self.view_again(v)),
            Value::Range(b) => Value::Range(Bounds { lo: self.again(b.lo), hi: self.again(b.hi), step: b.step }),
            other => other,
        }
    }

    fn again_at(&mut self, e: ExprId, span: Span) -> ExprId {
        let copy = self.again(e);
        if copy != e {
            self.out.exprs[copy].span = span;
        }
        copy
    }

    fn view_again(&mut self, mut view: View) -> View {
        for axis in &mut view.axes {
            match axis {
                Axis::At(e) => *e = self.again(*e),
                Axis::Range(r) => (r.start, r.len) = (self.again(r.start), self.again(r.len)),
            }
        }
        view
    }

    /// Returns the name of a field or local array.
    pub(super) fn storage_name(&self, base: Storage) -> SmolStr {
        let name = match base {
            Storage::Field(f) => self.out.fields[f].name.clone(),
            Storage::Local(l) => self.out.locals[l].name.clone(),
        };
        if name.is_empty() { "this array".into() } else { format!("`{name}`").into() }
    }

    /// Returns `a.b.c` for an expression of names and dots, unless its first name is bound in the body.
    pub(super) fn dotted(&self, e: ast::ExprId) -> Option<SmolStr> {
        let tree = self.tree();
        let mut parts = vec![];
        let mut at = e;
        loop {
            match &tree.exprs[at].kind {
                ast::ExprKind::Field { base, name } => {
                    parts.push(name.name.as_str());
                    at = *base;
                }
                ast::ExprKind::Name(n) if self.binding(n).is_none() && ElemType::from_name(n).is_none() => {
                    parts.push(n);
                    parts.reverse();
                    return Some(parts.join(".").into());
                }
                _ => return None,
            }
        }
    }
}

/// Returns the diagnostic for an element type that no engine supports yet.
pub(super) fn not_supported(ty: ElemType, span: Span) -> Diagnostic {
    let help = if ty.is_float() { "use `f32`" } else { "use `i32` or `u32`" };
    Diagnostic::error("codelet::not_supported", span, format!("`{ty}` is not yet supported")).help(help)
}
