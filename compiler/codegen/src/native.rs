//! Native kernels: functions that an engine supplies and compiled code calls through a table.
//!
//! Compiled code identifies a kernel by its [`NativeKernel`] and passes the address of a record of arguments on its
//! stack. The engine fills [`NativeKernels`] with functions for the instruction set for which the code is compiled.
//!
//! # Note: Sound native calls
//! Compiled code calls a product only if it has checked, or facts prove, that all corners of the three matrices are
//! inside their fields or arrays, and only if `c` shares no storage with `a` and `b`.
//!
//! Invariant: argument records are `repr(C)`. A function keeps no pointer to them.

use girder_ir::types::ElemType;
use std::mem::offset_of;

/// A function that an engine supplies.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum NativeKernel {
    /// A product of matrices of `f32`: [`NativeKernels::product_f32`].
    ProductF32,
    /// A product of matrices of `f64`: [`NativeKernels::product_f64`].
    ProductF64,
}

/// A product of matrices, `c = c + a b`. The terms are added to each element of `c` in the order of k, each by one
/// `fma`.
///
/// # Safety
/// The arguments are valid for the call and satisfy the note on sound native calls.
pub type ProductFn = unsafe extern "C" fn(*const ProductArgs);

/// The functions of all native kernels.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct NativeKernels {
    /// [`NativeKernel::ProductF32`].
    pub product_f32: ProductFn,
    /// [`NativeKernel::ProductF64`].
    pub product_f64: ProductFn,
}

/// A matrix in memory, which need not be aligned.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MatrixArg {
    /// The address of element (0, 0).
    pub at: *mut u8,
    /// The bytes from row to row.
    pub row: i64,
    /// The bytes from column to column.
    pub col: i64,
}

/// The arguments of a product.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ProductArgs {
    /// The result, m × n.
    pub c: MatrixArg,
    /// The left operand, m × k.
    pub a: MatrixArg,
    /// The right operand, k × n.
    pub b: MatrixArg,
    /// The number of rows of `c`.
    pub m: u64,
    /// The number of columns of `c`.
    pub n: u64,
    /// The number of terms of each sum.
    pub k: u64,
}

impl NativeKernel {
    /// Returns the product of matrices of a type, if there is one.
    pub(crate) fn product(ty: ElemType) -> Option<NativeKernel> {
        match ty {
            ElemType::F32 => Some(NativeKernel::ProductF32),
            ElemType::F64 => Some(NativeKernel::ProductF64),
            _ => None,
        }
    }

    /// Returns the byte offset of its function in [`NativeKernels`].
    pub(crate) fn offset(self) -> i32 {
        let byte = match self {
            NativeKernel::ProductF32 => offset_of!(NativeKernels, product_f32),
            NativeKernel::ProductF64 => offset_of!(NativeKernels, product_f64),
        };
        byte as i32
    }
}

/// Offsets in [`ProductArgs`] and in [`MatrixArg`].
pub(crate) mod product_offset {
    use super::{MatrixArg, ProductArgs, offset_of};

    pub(crate) const C: i32 = offset_of!(ProductArgs, c) as i32;
    pub(crate) const A: i32 = offset_of!(ProductArgs, a) as i32;
    pub(crate) const B: i32 = offset_of!(ProductArgs, b) as i32;
    pub(crate) const M: i32 = offset_of!(ProductArgs, m) as i32;
    pub(crate) const N: i32 = offset_of!(ProductArgs, n) as i32;
    pub(crate) const K: i32 = offset_of!(ProductArgs, k) as i32;
    pub(crate) const SIZE: u32 = size_of::<ProductArgs>() as u32;
    pub(crate) const AT: i32 = offset_of!(MatrixArg, at) as i32;
    pub(crate) const ROW: i32 = offset_of!(MatrixArg, row) as i32;
    pub(crate) const COL: i32 = offset_of!(MatrixArg, col) as i32;
}
