//! Operands of element-wise steps.

use crate::value::Tensor;
use girder_ir::types::{ElemType, Scalar};

/// How an element-wise codelet takes an argument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
    /// An element for each of the result.
    Full,
    /// One element for the whole result.
    One,
    /// A static number.
    Static,
}

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
    /// Returns how the codelet takes it.
    pub fn form(&self) -> Form {
        match self {
            Operand::Full(_) => Form::Full,
            Operand::One(_) => Form::One,
            Operand::Static(_) => Form::Static,
        }
    }

    /// Returns the element type.
    pub fn ty(&self) -> ElemType {
        match self {
            Operand::Full(t) | Operand::One(t) => t.ty,
            Operand::Static(s) => s.ty,
        }
    }
}
