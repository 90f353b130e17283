//! The values of a codelet's named sizes, from the shapes of a vertex's views.
//!
//! Invariant of [`Sizes`]: every dimension of every field equals its declaration, so that an index below a size lies
//! inside the dimension that the size names.

use crate::scalar;
use cranelift_entity::SecondaryMap;
use girder_ir::codelet::{Codelet, DimDecl, ExprKind, UnaryOp};
use girder_ir::ids::{ExprId, FieldId, SizeId};
use girder_ir::types::{ElemType, Scalar};
use smallvec::SmallVec;

/// The shape of one field; empty for a scalar.
pub type Shape = SmallVec<[u64; 3]>;

/// Shapes and sizes of one vertex, or of all vertices of a family.
#[derive(Clone, Debug, PartialEq)]
pub struct Sizes {
    /// Shape of each field; empty for `const` ones.
    pub shapes: SecondaryMap<FieldId, Shape>,
    /// The value of each named size; none is negative.
    pub sizes: SecondaryMap<SizeId, i64>,
}

impl Sizes {
    /// Returns the number of elements of a field; 1 for a scalar.
    pub fn elements(&self, field: FieldId) -> u64 {
        self.shapes[field].iter().product()
    }
}

/// A shape that a codelet does not accept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SizeMismatch {
    /// The field whose view does not fit.
    pub field: FieldId,
    /// Its dimension; 0 where `what` is [`Expected::Rank`].
    pub axis: usize,
    /// The declared length.
    pub expected: i64,
    /// The length of the view.
    pub found: u64,
    /// The reason.
    pub what: Expected,
}

/// The reason why a dimension must have a certain length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// `expected` and `found` are numbers of dimensions.
    Rank,
    /// Another dimension has bound the size.
    Size {
        /// The size.
        size: SizeId,
        /// The field that bound it.
        field: FieldId,
        /// The dimension that bound it.
        axis: usize,
    },
    /// The declaration is a number.
    Fixed,
    /// The declaration is an expression, and this is its value.
    Expr(ExprId),
    /// The declaration is an expression without a value: it overflows, divides by zero or reads a `const` field that is
    /// not given. `expected` is 0.
    NoValue(ExprId),
    /// The view is longer than any `i64`. `expected` is the greatest length.
    TooLong,
}

/// Binds each size by the first dimension that names it and checks all dimensions, fields in order.
///
/// `shapes` and `consts` are indexed by [`FieldId`]; shapes of `const` fields are not read, and a `const` field
/// beyond the end of `consts` counts as unknown.
pub fn bind_sizes(codelet: &Codelet, shapes: &[Shape], consts: &[Scalar]) -> Result<Sizes, SizeMismatch> {
    let mut result = Sizes { shapes: SecondaryMap::new(), sizes: SecondaryMap::new() };
    let mut bound: SecondaryMap<SizeId, Option<(FieldId, usize)>> = SecondaryMap::new();
    let mismatch = |field, axis, expected, found, what| Err(SizeMismatch { field, axis, expected, found, what });
    for (field, decl) in codelet.edges() {
        let shape = &shapes[field.as_u32() as usize];
        if shape.len() != decl.dims.len() {
            return mismatch(field, 0, decl.dims.len() as i64, shape.len() as u64, Expected::Rank);
        }
        for (axis, (dim, &found)) in decl.dims.iter().zip(shape).enumerate() {
            let Ok(length) = i64::try_from(found) else {
                return mismatch(field, axis, i64::MAX, found, Expected::TooLong);
            };
            if let DimDecl::Size(size) = *dim
                && bound[size].is_none()
            {
                bound[size] = Some((field, axis));
                result.sizes[size] = length;
            }
        }
        result.shapes[field] = shape.clone();
    }
    for (field, decl) in codelet.edges() {
        for (axis, (dim, &found)) in decl.dims.iter().zip(&result.shapes[field]).enumerate() {
            let (expected, what) = match *dim {
                DimDecl::Size(size) => {
                    let (field, axis) = bound[size].unwrap_or((field, axis));
                    (result.sizes[size], Expected::Size { size, field, axis })
                }
                DimDecl::Fixed(n) => (i64::try_from(n).unwrap_or(i64::MAX), Expected::Fixed),
                DimDecl::Expr(expr) => match static_int(codelet, &result, consts, expr) {
                    Some(value) => (value, Expected::Expr(expr)),
                    None => return mismatch(field, axis, 0, found, Expected::NoValue(expr)),
                },
            };
            if expected != found as i64 {
                return mismatch(field, axis, expected, found, what);
            }
        }
    }
    Ok(result)
}

/// Returns the value of an integer expression over sizes and constants (a dimension, or the codelet's `cycles`); `None`
/// if it overflows its type, divides by zero, or reads anything else.
pub fn static_int(codelet: &Codelet, sizes: &Sizes, consts: &[Scalar], expr: ExprId) -> Option<i64> {
    let value = evaluate(codelet, sizes, consts, expr)?;
    i64::try_from(value.as_int()?).ok()
}

fn evaluate(codelet: &Codelet, sizes: &Sizes, consts: &[Scalar], expr: ExprId) -> Option<Scalar> {
    let ty = codelet.exprs[expr].ty;
    let value = |e| evaluate(codelet, sizes, consts, e);
    let truth = |e| value(e).map(|v| v.bits != 0);
    match codelet.exprs[expr].kind {
        ExprKind::Const(c) => Some(c),
        ExprKind::ConstField(field) => consts.get(field.as_u32() as usize).copied(),
        ExprKind::Size(size) => Scalar::int(ElemType::I64, sizes.sizes[size] as i128),
        ExprKind::Unary { op, x } => unary(op, ty, value(x)?),
        ExprKind::Binary { op, a, b, .. } => binary(op, ty, value(a)?, value(b)?),
        ExprKind::AndThen { a, b } => Some(Scalar::bool(truth(a)? && truth(b)?)),
        ExprKind::OrElse { a, b } => Some(Scalar::bool(truth(a)? || truth(b)?)),
        ExprKind::Select { cond, a, b } => {
            if truth(cond)? {
                value(a)
            } else {
                value(b)
            }
        }
        ExprKind::Fma { a, b, c } => {
            Some(Scalar::new(ty, scalar::fma(ty, value(a)?.bits, value(b)?.bits, value(c)?.bits)))
        }
        ExprKind::Convert { x } => value(x).map(|v| Scalar::new(ty, scalar::convert(v.ty, ty, v.bits))),
        ExprKind::Bits { x } => value(x).map(|v| Scalar::new(ty, scalar::bits(v.ty, ty, v.bits))),
        ExprKind::Local(_)
        | ExprKind::Worker
        | ExprKind::Workers
        | ExprKind::Load { .. }
        | ExprKind::LoadLocal { .. } => None,
    }
}

/// Works like [`scalar::unary`], but returns `None` where `i64` overflows.
fn unary(op: UnaryOp, ty: ElemType, x: Scalar) -> Option<Scalar> {
    match (op, ty) {
        (UnaryOp::Neg, ElemType::I64) => Scalar::int(ty, -x.as_int()?),
        (UnaryOp::Abs, ElemType::I64) => Scalar::int(ty, x.as_int()?.abs()),
        _ => Some(Scalar::new(ty, scalar::unary(op, ty, x.bits))),
    }
}

/// Works like [`scalar::binary`], but returns `None` where `i64` overflows.
fn binary(op: girder_ir::codelet::BinaryOp, ty: ElemType, a: Scalar, b: Scalar) -> Option<Scalar> {
    use girder_ir::codelet::BinaryOp::*;
    if a.ty == ElemType::I64 {
        let (x, y) = (a.as_int()?, b.as_int()?);
        match op {
            Add => return Scalar::int(ty, x + y),
            Sub => return Scalar::int(ty, x - y),
            Mul => return Scalar::int(ty, x * y),
            Div if y == -1 => return Scalar::int(ty, -x),
            _ => {}
        }
    }
    scalar::binary(op, a.ty, a.bits, b.bits).ok().map(|bits| Scalar::new(ty, bits))
}

#[cfg(test)]
mod tests;
