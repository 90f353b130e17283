//! What a vertex connects to the fields of its codelet.
//!
//! Invariant: each field has exactly one argument; that of a `const` field is static, and no argument takes steps.

use crate::codelet::Header;
use crate::elaborator::Elaborator;
use crate::value::Value;
use girder_ir::codelet::{Dir, GenericArg};
use girder_ir::types::{ElemType, Scalar};
use girder_source::{Diagnostic, Result, Span};
use girder_syntax::ast;
use std::sync::Arc;

impl Elaborator<'_> {
    /// Matches arguments to fields.
    pub(super) fn vertex_arguments(&mut self, v: &ast::Vertex, header: &Header) -> Result<Vec<(Value, Span)>> {
        let mut slots: Vec<Option<(Value, Span)>> = vec![None; header.fields.len()];
        let mut next = 0;
        for a in &v.args {
            let span = self.tree().exprs[a.value].span;
            let slot = match &a.name {
                None => {
                    next += 1;
                    Some(next - 1)
                }
                Some(n) => {
                    let found = header.fields.iter().position(|f| f.name == n.name);
                    if found.is_none() {
                        let near = crate::spelling::closest(&n.name, header.fields.iter().map(|f| f.name.as_str()));
                        let message = format!("codelet `{}` has no field `{}`", v.codelet.dotted(), n.name);
                        let d = Diagnostic::error("elaborate::no_such_field", n.span, message);
                        return Err(self.say(match near {
                            Some(near) => d.help(format!("did you mean `{near}`?")),
                            None => d,
                        }));
                    }
                    found
                }
            };
            let emitted = self.emit.last().map(Vec::len);
            let value = self.expr(a.value)?;
            if self.emit.last().map(Vec::len) != emitted {
                let help = "compute it before the `compute` and name it with `let`";
                let message = "a vertex's argument is a view; this one takes steps of its own";
                return Err(self.error_help("elaborate::inside_compute_set", span, message, help));
            }
            match slot.and_then(|s| slots.get_mut(s)) {
                Some(s @ None) => *s = Some((value, span)),
                Some(Some(_)) => return Err(self.error("elaborate::arguments", span, "this field is connected twice")),
                None => {
                    let message = format!("codelet `{}` has {} fields", v.codelet.dotted(), header.fields.len());
                    return Err(self.error("elaborate::arguments", span, message));
                }
            }
        }
        let missing: Vec<&str> =
            header.fields.iter().zip(&slots).filter(|(_, s)| s.is_none()).map(|(f, _)| f.name.as_str()).collect();
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
        Ok(slots.into_iter().flatten().collect())
    }

    /// The view that a field sees; a number becomes a constant.
    pub fn vertex_view(
        &mut self,
        field: &crate::codelet::HeaderField,
        value: Value,
        span: Span,
    ) -> Result<crate::value::Tensor> {
        let t = match value {
            Value::Tensor(t) => Arc::unwrap_or_clone(t),
            ref number @ (Value::Int(_) | Value::Float(_) | Value::Bool(_))
                if field.dir == Dir::In && field.rank == 0 =>
            {
                let ty = match (field.ty, number) {
                    (crate::codelet::HeaderType::Elem(t), _) => t,
                    (_, Value::Float(_)) => girder_ir::types::ElemType::F32,
                    (_, Value::Bool(_)) => girder_ir::types::ElemType::Bool,
                    (_, _) => girder_ir::types::ElemType::I32,
                };
                let s = self.scalar(number, ty, span)?;
                self.constant(s, span)?
            }
            other => return Err(self.expected("a tensor", &other, span)),
        };
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
            return Err(self.say(d));
        }
        Ok(t)
    }

    /// The value of a `const` field.
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
        match self.expr(e)? {
            Value::Type(t) => Ok(GenericArg::Type(t)),
            Value::Int(i) => Ok(GenericArg::Int(i)),
            other => Err(self.expected("a type or an integer", &other, span)),
        }
    }
}
