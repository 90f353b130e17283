//! The arguments that a vertex connects to the fields of its codelet.
//!
//! Invariant: each field has exactly one argument; that of a `const` field is static, and no argument emits steps.

use crate::binding::{Misplaced, bind};
use crate::elaborator::Elaborator;
use crate::literals::Literal;
use crate::value::Value;
use girder_ir::codelet::{Dir, GenericArg};
use girder_ir::types::{ElemType, Scalar};
use girder_ir::view::View;
use girder_source::{Diagnostic, Failed, Result, Span, closest};
use girder_syntax::ast;
use girder_typing::{Header, HeaderType};
use std::sync::Arc;

impl Elaborator<'_> {
    /// Matches arguments to fields.
    pub(super) fn vertex_arguments(&mut self, v: &ast::Vertex, header: &Header) -> Result<Vec<(Value, Span)>> {
        let field = |name: &str| header.fields.iter().position(|f| f.name == name);
        let slots = bind(&v.args, header.fields.len(), field).map_err(|(a, why)| {
            let span = self.tree().exprs[a.value].span;
            let codelet = v.codelet.dotted();
            match (why, &a.name) {
                (Misplaced::Unknown, Some(n)) => {
                    let near = closest(&n.name, header.fields.iter().map(|f| f.name.as_str()));
                    let message = format!("codelet `{codelet}` has no field `{}`", n.name);
                    let d = Diagnostic::error("elaborate::no_such_field", n.span, message);
                    self.report(match near {
                        Some(near) => d.help(format!("did you mean `{near}`?")),
                        None => d,
                    })
                }
                (Misplaced::Twice(_), _) => self.error("elaborate::arguments", span, "this field is connected twice"),
                _ => {
                    let message = format!("codelet `{codelet}` has {} fields", header.fields.len());
                    self.error("elaborate::arguments", span, message)
                }
            }
        })?;
        // Evaluated in the order of the text, so that messages are in that order.
        let mut order: Vec<(usize, &ast::Arg)> =
            slots.iter().enumerate().filter_map(|(k, slot)| slot.map(|a| (k, a))).collect();
        order.sort_by_key(|(_, a)| a.value);
        let mut values: Vec<Option<(Value, Span)>> = vec![None; slots.len()];
        for (k, a) in order {
            values[k] = Some(self.vertex_argument(a)?);
        }
        let missing: Vec<&str> = header
            .fields
            .iter()
            .zip(&values)
            .filter(|(_, value)| value.is_none())
            .map(|(f, _)| f.name.as_str())
            .collect();
        if !missing.is_empty() {
            let message = format!(
                "field{} `{}` of codelet `{}` {} not connected",
                if missing.len() == 1 { "" } else { "s" },
                missing.join("`, `"),
                v.codelet.dotted(),
                if missing.len() == 1 { "is" } else { "are" }
            );
            return Err(self.error("elaborate::not_connected", v.span, message));
        }
        Ok(values.into_iter().flatten().collect())
    }

    /// Evaluates an argument, which must not emit steps.
    fn vertex_argument(&mut self, a: &ast::Arg) -> Result<(Value, Span)> {
        let span = self.tree().exprs[a.value].span;
        let emitted = self.emission.count();
        let value = self.elements(a.value)?;
        if self.emission.count() != emitted {
            let help = "compute it before the `compute` and name it with `let`";
            let message = "a vertex's argument is a view; this one takes steps of its own";
            return Err(self.error_help("elaborate::inside_compute_set", span, message, help));
        }
        Ok((value, span))
    }

    /// Returns the view of a field's argument; a number becomes a constant of the field's type. `types` are those of
    /// the generics, as far as they are known without numbers.
    pub fn vertex_view(
        &mut self,
        field: &girder_typing::HeaderField,
        types: &[Option<ElemType>],
        value: Value,
        span: Span,
    ) -> Result<crate::value::Tensor> {
        let t = match value {
            Value::Tensor(t) => Arc::unwrap_or_clone(t),
            ref number @ (Value::Int(_) | Value::Float(_) | Value::Bool(_) | Value::Literal(_))
                if field.dir == Dir::In && field.rank == 0 =>
            {
                let known = match field.ty {
                    HeaderType::Elem(ty) => Some(ty),
                    HeaderType::Generic(g) => types.get(g).copied().flatten(),
                };
                let ty = known.unwrap_or(match number {
                    Value::Float(_) | Value::Literal(Literal::Decimal { .. }) => ElemType::F32,
                    Value::Bool(_) => ElemType::Bool,
                    _ => ElemType::I32,
                });
                let s = self.scalar(number, ty, span)?;
                self.constant(s, span)?
            }
            other => return Err(self.expected("a tensor", &other, span)),
        };
        if self.writes_copy_of_rows(field.dir, &t.view) {
            return Err(self.copy_of_rows(span));
        }
        let rank = t.view.rank();
        if rank != field.rank {
            let message = format!(
                "field `{}` has rank {}, but this view is {} of rank {rank}",
                field.name,
                field.rank,
                t.type_name()
            );
            let d = Diagnostic::error("elaborate::shape_mismatch", span, message).label(field.span, "the field");
            let d = if field.rank == 0 { d.help("index it, so that one element remains") } else { d };
            return Err(self.report(d));
        }
        Ok(t)
    }

    /// Reports that a field would write a new tensor that nothing can read.
    pub(super) fn lost_field(&mut self, field: &str, span: Span) -> Failed {
        let message = format!("this is a new tensor without a name, so what the field `{field}` writes is lost");
        let help = "connect a variable, or name the new tensor before the `compute`: `let t = …;`";
        self.error_help("elaborate::copied_target", span, message, help)
    }

    /// Returns whether a field would write a copy of rows that an index selected at run time.
    pub fn writes_copy_of_rows(&self, dir: Dir, view: &View) -> bool {
        matches!(dir, Dir::Out | Dir::InOut) && view.parts.iter().any(|p| self.entities.copies_of_rows.contains(&p.var))
    }

    /// Returns the value of a `const` field.
    pub fn const_scalar(&mut self, value: &Value, ty: ElemType, span: Span) -> Result<Scalar> {
        if let Value::Tensor(_) = value {
            let help = "declare the field `in` instead";
            let message = "a `const` field takes a static value, not a tensor";
            return Err(self.error_help("elaborate::type_mismatch", span, message, help));
        }
        self.scalar(value, ty, span)
    }

    pub(super) fn generic_arg(&mut self, e: ast::ExprId) -> Result<GenericArg> {
        let span = self.tree().exprs[e].span;
        let value = self.expr(e)?;
        self.generic_value(value, span)
    }

    /// Returns a value as an argument of a codelet's generic.
    pub fn generic_value(&mut self, value: Value, span: Span) -> Result<GenericArg> {
        match value {
            Value::Type(t) => Ok(GenericArg::Type(t)),
            Value::Int(i) => Ok(GenericArg::Int(i)),
            Value::Fn(module, item) => self.generic_fn(module, item, span),
            Value::Closure(closure) => self.generic_closure(&closure, span),
            Value::Builtin(name) => match self.prelude_fn(name) {
                Some((module, item)) => self.generic_fn(module, item, span),
                None => {
                    let message = format!("`{name}` runs while the graph is built, so a codelet cannot call it");
                    Err(self.error("elaborate::type_mismatch", span, message))
                }
            },
            other => Err(self.expected("a type, an integer or a function", &other, span)),
        }
    }
}

/// Returns the types of a codelet's generics that are written out, or that the tensors among the arguments have;
/// `tensors` are their types, by field.
pub fn generic_types(
    header: &Header,
    explicit: &[GenericArg],
    tensors: impl Iterator<Item = Option<ElemType>>,
) -> Vec<Option<ElemType>> {
    let mut types = vec![None; header.generics.len()];
    for (field, tensor) in header.fields.iter().zip(tensors) {
        if let HeaderType::Generic(g) = field.ty {
            types[g] = types[g].or(tensor);
        }
    }
    for (ty, arg) in types.iter_mut().zip(explicit) {
        if let GenericArg::Type(t) = arg {
            *ty = Some(*t);
        }
    }
    types
}
