//! `c = c + a b`, or `start + a b`, of matrices of `f32` or `f64` in memory.
//!
//! # Note: Order
//! The terms of an element of `c` are taken in blocks of `Product::block` terms, the last of which may be shorter. A
//! block is a chain of `fma`s in the order of k. The chain of the first block begins at the [`Start`], the others at
//! +0; their sums are added to `c` in the order of the blocks. Elements are independent, so a tile of them is computed
//! at once, and several threads may compute parts of `c`. However a product is cut, the bits are those of plain loops.
//!
//! # Note: Sound access
//! A call is sound if all elements of the three matrices may be read, those of `c` written, no two elements of `c`
//! share a byte, and none shares one with `a` or `b`. Nothing needs alignment.
//!
//! Invariant: no element outside `m × n`, `m × k` and `k × n` is accessed.

mod operands;
mod blocked;
mod plan;
mod pack;
mod scratch;
mod tile;
mod sums;
mod flat;
mod linked;
mod vector;
mod plain;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use linked::{Link, LinkedProduct, Row};
pub use operands::{Matrix, Product, Start};

use crate::Level;

/// Computes a product of `f32`.
///
/// # Safety
/// The call is sound (see the note of this module), and the machine has the level's instructions.
pub unsafe fn product_f32(level: Level, call: &Product, start: Start<f32>) {
    // SAFETY: the caller's promise.
    unsafe {
        match level {
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => x86::f32x16::product(call, start),
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => x86::f32x8::product(call, start),
            _ => plain::product(call, start),
        }
    }
}

/// Computes a product of `f64`.
///
/// # Safety
/// As [`product_f32`].
pub unsafe fn product_f64(level: Level, call: &Product, start: Start<f64>) {
    // SAFETY: the caller's promise.
    unsafe {
        match level {
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => x86::f64x8::product(call, start),
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => x86::f64x4::product(call, start),
            _ => plain::product(call, start),
        }
    }
}

/// Computes a linked product of `f32`.
///
/// # Safety
/// As [`product_f32`].
pub unsafe fn linked_f32(level: Level, call: &LinkedProduct<'_>, start: Start<f32>) {
    // SAFETY: the caller's promise.
    unsafe {
        match level {
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => x86::f32x16::linked(call, start),
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => x86::f32x8::linked(call, start),
            _ => linked::plain(call, start),
        }
    }
}

/// Computes a linked product of `f64`.
///
/// # Safety
/// As [`product_f32`].
pub unsafe fn linked_f64(level: Level, call: &LinkedProduct<'_>, start: Start<f64>) {
    // SAFETY: the caller's promise.
    unsafe {
        match level {
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => x86::f64x8::linked(call, start),
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => x86::f64x4::linked(call, start),
            _ => linked::plain(call, start),
        }
    }
}

#[cfg(test)]
mod tests;
