//! Operands of element-wise steps.

use crate::value::Tensor;
use girder_ir::types::{ElemType, Scalar};

/// An argument of an element-wise codelet.
#[derive(Clone)]
pub(super) enum Operand {
    /// A tensor of the result's shape.
    Full(Tensor),
    /// One element for the whole result.
    One(Tensor),
    /// A static number.
    Static(Scalar),
}

impl Operand {
    /// Returns the element type.
    pub fn ty(&self) -> ElemType {
        match self {
            Operand::Full(t) | Operand::One(t) => t.ty,
            Operand::Static(s) => s.ty,
        }
    }
}
