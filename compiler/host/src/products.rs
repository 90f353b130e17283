//! Matrix products: vertices that only run `amp`, perhaps after filling the result with a number, run as native
//! products; those that tile a larger product run as one.
//!
//! - `recognise` finds codelets that are a product, and the matrices in their fields;
//! - `join` merges many small products to few large ones;
//! - `events` finds what other codelets run, and `linked` makes few large products of it;
//! - `sums` merges products with the step that adds them.
//!
//! Invariant: every element of a `c` adds the terms of its vertex in the order of k.

mod join;
mod recognise;
mod events;
mod linked;
mod sums;
mod linked_sums;

use crate::hosted::HostedGraph;
use girder_codelet::facts::Facts;
use girder_codelet::sizes::Sizes;
use girder_fusion::strides::field_strides;
use girder_ir::family::{Family, Field};
use girder_ir::ids::FieldId;
use girder_ir::types::ElemType;
pub(crate) use join::join;
pub use linked::{LinkedProduct, LinkedRow, ProductLink};
pub(crate) use linked::{join_columns, linked_of};
use recognise::{MatrixField, ProductBody};
use std::ops::Range;
pub use sums::SummedProducts;
pub(crate) use sums::summed;

/// A matrix in the host's memory: the byte of element (0, 0), and bytes from row to row and from column to column. The
/// stride of an axis of length 1 is 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MatrixLayout {
    /// Byte of element (0, 0).
    pub at: i64,
    /// Bytes from row to row.
    pub row: i64,
    /// Bytes from column to column.
    pub col: i64,
}

/// The initial value of the sums of a product.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ProductStart {
    /// The element of `c`.
    Old,
    /// A number, by its bits.
    Number(u64),
    /// +0. The sum of the first block of terms is then added to the element of `c` too, like the sums of the other
    /// blocks.
    Added,
}

/// A product of matrices in the host's memory, `c = c + a b` or `c = start + a b`. The sum of each block of terms but
/// the first begins at +0 and is added to `c` when it is complete.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MatrixProduct {
    /// The result, m × n.
    pub c: MatrixLayout,
    /// The left operand, m × k.
    pub a: MatrixLayout,
    /// The right operand, k × n.
    pub b: MatrixLayout,
    /// Rows of `c`.
    pub m: u64,
    /// Columns of `c`.
    pub n: u64,
    /// Terms of each sum.
    pub k: u64,
    /// Element type: `f32` or `f64`.
    pub ty: ElemType,
    /// The initial value of every sum.
    pub start: ProductStart,
    /// Terms of a block; `u64::MAX` if all terms are one block.
    pub block: u64,
}

impl MatrixProduct {
    /// Returns the bytes between the first and the last element of one of its matrices.
    fn bytes(&self, matrix: MatrixLayout, rows: u64, cols: u64) -> Range<i64> {
        if rows == 0 || cols == 0 {
            return matrix.at..matrix.at;
        }
        let reach = |length: u64, stride: i64| (length as i64 - 1).saturating_mul(stride);
        let (down, across) = (reach(rows, matrix.row), reach(cols, matrix.col));
        let end = matrix.at + down.max(0) + across.max(0) + i64::from(self.ty.bytes());
        matrix.at + down.min(0) + across.min(0)..end
    }
}

/// Returns the vertices of a family as products, or `None` if they are not products.
pub(crate) fn products_of(
    hosted: HostedGraph<'_>,
    family: &Family,
    sizes: &Sizes,
    facts: &Facts,
) -> Option<Vec<MatrixProduct>> {
    let codelet = &hosted.codelets[family.codelet];
    let body = ProductBody::of(codelet, sizes, facts, hosted.workers)?;
    let [c, a, b] = [&body.c, &body.a, &body.b].map(|field| FamilyMatrices::of(hosted, family, field));
    let (c, a, b) = (c?, a?, b?);
    let matrices = c.layouts().zip(a.layouts()).zip(b.layouts());
    let (m, n, k) = (body.c.rows, body.c.cols, body.a.cols);
    let start = body.start.map_or(ProductStart::Old, ProductStart::Number);
    let product = |((c, a), b)| MatrixProduct { c, a, b, m, n, k, ty: body.ty, start, block: u64::MAX };
    // Without rows or columns nothing is written.
    Some(if m == 0 || n == 0 { vec![] } else { matrices.map(product).collect() })
}

/// The matrices in one field of all instances of a family.
struct FamilyMatrices<'a> {
    family: &'a Family,
    field: &'a Field,
    /// The matrix of instance 0, relative to the first element of its variable.
    first: MatrixLayout,
    element_bytes: i64,
}

impl<'a> FamilyMatrices<'a> {
    /// Returns the matrices of a field; `None` if the field does not have a stride for each axis.
    fn of(hosted: HostedGraph<'_>, family: &'a Family, matrix: &MatrixField) -> Option<FamilyMatrices<'a>> {
        let of_codelet: FieldId = matrix.field;
        let field = family.fields.iter().find(|f| f.field == of_codelet)?;
        let size = hosted.codelets[family.codelet].fields[of_codelet].ty.bytes();
        let strides = field_strides(field, size)?;
        let var = field.parts.first().map_or(0, |p| hosted.byte(p.var, 0));
        let at = var + matrix.at.iter().zip(&strides).map(|(&i, &s)| i * s).sum::<i64>();
        let along = |length: u64, (dim, step): (usize, i64)| if length > 1 { strides[dim] * step } else { 0 };
        let first = MatrixLayout { at, row: along(matrix.rows, matrix.row), col: along(matrix.cols, matrix.col) };
        Some(FamilyMatrices { family, field, first, element_bytes: i64::from(size) })
    }

    fn layouts(&self) -> Box<dyn Iterator<Item = MatrixLayout> + '_> {
        let layout = |e: i64| MatrixLayout { at: self.first.at + e * self.element_bytes, ..self.first };
        match self.field.parts.first() {
            Some(part) => Box::new(part.offset.values(&self.family.domain).map(layout)),
            None => Box::new((0..self.family.domain.count()).map(move |_| layout(0))),
        }
    }
}
