//! Arrays that are not written as expressions: files that the loader reads, and the base64 of printed text.
//!
//! Invariant: an array has the number of bytes of its shape, and each byte of a `bool` is 0 or 1.

use crate::elaborator::Elaborator;
use crate::modules::Array;
use crate::value::Given;
use crate::value::Value;
use girder_ir::types::ElemType;
use girder_source::{Result, Span};
use std::sync::Arc;

impl Elaborator<'_> {
    /// Evaluates `load("file.npz", "name")`.
    pub(super) fn load(&mut self, given: Vec<Given>, span: Span) -> Result<Value> {
        let [file, key] = self.arguments("load", ["file", "name?"], given, span)?;
        let (Some(file), key) = (self.text_of(file)?, self.text_of(key)?) else { return Err(girder_source::Failed) };
        let path = self.modules.get(self.module()).path.clone();
        let most = self.session.limits.static_steps.saturating_mul(8);
        match self.loader.array(&path, &file, key.as_deref(), most) {
            Ok(a) => {
                self.charge_many(a.bytes.len() as u64 / 8, span)?;
                if a.shape.iter().product::<u64>() > self.session.limits.elements {
                    return Err(self.error("elaborate::too_many_elements", span, "the array has too many elements"));
                }
                let number = a.shape.is_empty().then(|| a.of_bytes(vec![], a.bytes.to_vec()));
                Ok(number.unwrap_or_else(|| Value::Array(Arc::new(a))))
            }
            Err(why) => {
                let help = "the path is taken relative to this file; `.npy` and `.npz` files can be loaded";
                Err(self.error_help("elaborate::load", span, format!("cannot load \"{file}\": {why}"), help))
            }
        }
    }

    /// Returns an optional string argument.
    fn text_of(&mut self, given: Option<Given>) -> Result<Option<smol_str::SmolStr>> {
        match given {
            None => Ok(None),
            Some(Given { value: Value::Str(s), .. }) => Ok(Some(s)),
            Some(g) => Err(self.expected("a string", &g.value, g.span)),
        }
    }

    /// Evaluates `bytes(f32, [3], "…")` of printed text: an array from base64.
    pub(super) fn bytes(&mut self, given: Vec<Given>, span: Span) -> Result<Value> {
        use base64::Engine as _;
        let [ty, shape, data] = self.required("bytes", ["type", "shape", "data"], given, span)?;
        let (Value::Type(ty), Value::Str(data)) = (ty.value, data.value) else {
            return Err(self.error(
                "elaborate::arguments",
                span,
                "`bytes` takes a type, a shape and a string of base64",
            ));
        };
        let shape: Vec<u64> = self.int_list(Some(shape))?.into_iter().map(|d| d.max(0) as u64).collect();
        let len = shape.iter().try_fold(ty.bytes() as u64, |n, &d| n.checked_mul(d));
        match base64::engine::general_purpose::STANDARD.decode(data.as_bytes()) {
            Ok(bytes) if Some(bytes.len() as u64) == len => {
                let canonical = ty != ElemType::Bool || bytes.iter().all(|b| *b < 2);
                if !canonical {
                    return Err(self.error("elaborate::load", span, "a byte of these bools is neither 0 nor 1"));
                }
                Ok(Value::Array(Arc::new(Array { ty, shape, bytes: bytes.into() })))
            }
            Ok(bytes) => {
                let message =
                    format!("{} bytes are not the {} of the array", bytes.len(), crate::value::shaped(ty, &shape));
                Err(self.error("elaborate::load", span, message))
            }
            Err(e) => Err(self.error("elaborate::load", span, format!("this is not base64: {e}"))),
        }
    }
}
