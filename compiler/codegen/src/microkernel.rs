//! The matrix-product unit: calls of `girder_kernels` from compiled code, whose arguments stand in memory.
//!
//! # Note: Sound access
//! [`Product`] comes from compiled code that has checked (or whose facts prove) that all corners of the three views
//! lie inside their fields or arrays, and compiled code calls it only where `c` shares no storage with `a` and `b`.
//!
//! Invariant: an entry is called only by code that was compiled for its level.

use girder_kernels::{Level, Matrix, Product, Start, product_f32, product_f64};
use std::mem::offset_of;

/// An entry of the import table.
pub(crate) type Amp = unsafe extern "C" fn(*const Product);

/// Offsets in [`Product`] and in each of its matrices.
pub(crate) mod call_offset {
    use super::{Matrix, Product, offset_of};

    pub(crate) const C: i32 = offset_of!(Product, c) as i32;
    pub(crate) const A: i32 = offset_of!(Product, a) as i32;
    pub(crate) const B: i32 = offset_of!(Product, b) as i32;
    pub(crate) const M: i32 = offset_of!(Product, m) as i32;
    pub(crate) const N: i32 = offset_of!(Product, n) as i32;
    pub(crate) const K: i32 = offset_of!(Product, k) as i32;
    pub(crate) const SIZE: u32 = size_of::<Product>() as u32;
    pub(crate) const AT: i32 = offset_of!(Matrix, at) as i32;
    pub(crate) const ROW: i32 = offset_of!(Matrix, row) as i32;
    pub(crate) const COL: i32 = offset_of!(Matrix, col) as i32;
}

macro_rules! entries {
    ($($name:ident = $product:ident($level:ident);)*) => {$(
        /// # Safety
        /// `call` points to a [`Product`] as the note of this module asks, and the machine has the level.
        pub(crate) unsafe extern "C" fn $name(call: *const Product) {
            // SAFETY: the caller's promise.
            unsafe { $product(Level::$level, &*call, Start::Old) }
        }
    )*};
}
entries! {
    amp_f32_portable = product_f32(Portable);
    amp_f64_portable = product_f64(Portable);
    amp_f32_avx2 = product_f32(Avx2);
    amp_f64_avx2 = product_f64(Avx2);
    amp_f32_avx512 = product_f32(Avx512);
    amp_f64_avx512 = product_f64(Avx512);
}
