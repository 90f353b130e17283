//! Functions that make tensors from values, lists and other tensors.
//!
//! Invariant: a static value becomes a constant; only a run-time value takes a step.

use crate::elaborator::Elaborator;
use crate::literals::Literal;
use crate::modules::Array;
use crate::value::Given;
use crate::value::{Tensor, Value};
use girder_ir::types::{ElemType, Scalar};
use girder_ir::view::View;
use girder_source::{Result, Span};
use std::sync::Arc;

impl Elaborator<'_> {
    /// Evaluates `f32(x)`: a static number becomes a constant; a tensor is converted element by element.
    pub fn convert(&mut self, ty: ElemType, given: Vec<Given>, span: Span) -> Result<Value> {
        let [x] = self.required(ty.name(), ["x"], given, span)?;
        if !ty.is_supported() {
            return Err(self.unsupported(span, &format!("the element type `{ty}`")));
        }
        match x.value {
            Value::Tensor(t) if t.ty == ty => Ok(Value::Tensor(t)),
            Value::Tensor(t) => self.convert_each(Arc::unwrap_or_clone(t), ty, span).map(Value::from),
            Value::Array(a) => {
                let size = a.ty.bytes() as usize;
                self.charge_many((a.bytes.len() / size) as u64, span)?;
                let convert = |b: &[u8]| girder_codelet::scalar::convert(a.ty, ty, Scalar::from_le_bytes(a.ty, b).bits);
                let bytes: Vec<u8> =
                    a.bytes.chunks_exact(size).flat_map(|b| Scalar::new(ty, convert(b)).to_le_bytes()).collect();
                Ok(Value::Array(Arc::new(Array { ty, shape: a.shape.clone(), bytes: bytes.into() })))
            }
            Value::Float(v) | Value::Literal(Literal::Decimal { wide: v, .. }) if !ty.is_float() => {
                let bits = girder_codelet::scalar::convert(ElemType::F64, ty, v.to_bits());
                self.constant(Scalar::new(ty, bits), span).map(Value::from)
            }
            Value::Bool(b) if ty != ElemType::Bool => {
                self.scalar(&Value::Int(b as i64), ty, span).and_then(|s| self.constant(s, span)).map(Value::from)
            }
            ref list @ Value::List(_) => {
                let (mut dims, mut flat) = (vec![], vec![]);
                self.flatten_list(list, 0, &mut dims, &mut flat, span)?;
                self.constant_of(list, ty, &dims, span).map(Value::from)
            }
            number => {
                let s = self.scalar(&number, ty, x.span)?;
                self.constant(s, span).map(Value::from)
            }
        }
    }

    pub(super) fn concat(&mut self, given: Vec<Given>, span: Span) -> Result<Value> {
        let [list, axis] = self.arguments("concat", ["parts", "axis?"], given, span)?;
        let Some(Given { value: Value::List(items), span: at, .. }) = list else {
            return Err(self.error("elaborate::arguments", span, "`concat` takes a list of tensors"));
        };
        let mut tensors: Vec<Tensor> = Vec::new();
        for i in items.iter() {
            match i {
                Value::Tensor(t) => tensors.push(Tensor::clone(t)),
                other => return Err(self.expected("a tensor", other, at)),
            }
        }
        let Some(first) = tensors.first() else {
            return Err(self.error("elaborate::arguments", at, "`concat` of no tensors has no type"));
        };
        let (ty, rank, shape) = (first.ty, first.view.rank(), first.view.shape());
        let axis = self.axis_of(axis, rank, span)?;
        for t in &tensors {
            let s = t.view.shape();
            let fits = s.len() == rank && (0..rank).all(|k| k == axis || s[k] == shape[k]);
            if t.ty != ty {
                let message = format!("`concat` of elements of {ty} and of {}", t.ty);
                let help = format!("convert one of the tensors: `{ty}(…)` or `{}(…)`", t.ty);
                return Err(self.error_help("elaborate::type_mismatch", at, message, help));
            }
            if !fits {
                let message = format!(
                    "{} and {} cannot be concatenated along axis {axis}",
                    tensors[0].type_name(),
                    t.type_name()
                );
                return Err(self.error("elaborate::shape_mismatch", at, message));
            }
        }
        // Each tensor is within the limit of elements; together they may exceed it.
        let total = tensors.iter().fold(0u64, |n, t| n.saturating_add(t.view.len()));
        if total > self.session.limits.elements {
            return Err(self.error("elaborate::too_many_elements", span, "the view has too many elements"));
        }
        let views: Vec<View> = tensors.into_iter().map(|t| t.view).collect();
        Ok(Tensor { view: View::concat(&views, axis), ty }.into())
    }

    /// Evaluates `zeros(T: f32, shape: [n])`: a fresh temporary of zeros.
    pub(super) fn zeros(&mut self, given: Vec<Given>, span: Span) -> Result<Value> {
        let [shape, ty] = self.arguments("zeros", ["shape", "T?"], given, span)?;
        let ty = match ty.map(|g| (g.value, g.span)) {
            None => ElemType::F32,
            Some((Value::Type(t), _)) => t,
            Some((other, at)) => return Err(self.expected("an element type", &other, at)),
        };
        let at = shape.as_ref().map_or(span, |s| s.span);
        let dims = self.int_list(shape)?;
        if dims.iter().any(|&d| d < 0) {
            return Err(self.error("elaborate::bad_dimension", at, format!("a shape of {dims:?}")));
        }
        let dims: Vec<u64> = dims.into_iter().map(|d| d as u64).collect();
        let t = self.temporary("zeros", ty, &dims, span)?;
        self.fill(&t, Scalar::zero(ty), span)?;
        Ok(t.into())
    }
}
