//! The table of functions that compiled code calls: scalar operations without an instruction, and native kernels.
//!
//! Invariants: [`Imports`] is `repr(C)` and all its entries are pointers, so that entry `n` is at byte `8 n`. Every
//! scalar function agrees with `girder_codelet::scalar`.

use crate::native::NativeKernels;
use std::mem::offset_of;

/// The functions that compiled code calls, by position.
#[repr(C)]
#[derive(Debug)]
pub struct Imports {
    rem_f32: extern "C" fn(f32, f32) -> f32,
    rem_f64: extern "C" fn(f64, f64) -> f64,
    fma_f32: extern "C" fn(f32, f32, f32) -> f32,
    fma_f64: extern "C" fn(f64, f64, f64) -> f64,
    floor_f32: extern "C" fn(f32) -> f32,
    floor_f64: extern "C" fn(f64) -> f64,
    ceil_f32: extern "C" fn(f32) -> f32,
    ceil_f64: extern "C" fn(f64) -> f64,
    round_f32: extern "C" fn(f32) -> f32,
    round_f64: extern "C" fn(f64) -> f64,
    trunc_f32: extern "C" fn(f32) -> f32,
    trunc_f64: extern "C" fn(f64) -> f64,
    natives: NativeKernels,
}

impl Imports {
    /// The byte offset of the native kernels.
    pub(crate) const NATIVES: i32 = offset_of!(Imports, natives) as i32;

    /// Returns the table with the given native kernels. They must use only instructions of the machine that calls them.
    pub const fn new(natives: NativeKernels) -> Imports {
        Imports {
            rem_f32,
            rem_f64,
            fma_f32,
            fma_f64,
            floor_f32,
            floor_f64,
            ceil_f32,
            ceil_f64,
            round_f32,
            round_f64,
            trunc_f32,
            trunc_f64,
            natives,
        }
    }
}

/// A scalar function of [`Imports`] for `f32`; the one for `f64` follows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Import {
    Rem = 0,
    Fma = 2,
    Floor = 4,
    Ceil = 6,
    Round = 8,
    Trunc = 10,
}

extern "C" fn rem_f32(a: f32, b: f32) -> f32 {
    a % b
}

extern "C" fn rem_f64(a: f64, b: f64) -> f64 {
    a % b
}

extern "C" fn fma_f32(a: f32, b: f32, c: f32) -> f32 {
    a.mul_add(b, c)
}

extern "C" fn fma_f64(a: f64, b: f64, c: f64) -> f64 {
    a.mul_add(b, c)
}

extern "C" fn floor_f32(x: f32) -> f32 {
    x.floor()
}

extern "C" fn floor_f64(x: f64) -> f64 {
    x.floor()
}

extern "C" fn ceil_f32(x: f32) -> f32 {
    x.ceil()
}

extern "C" fn ceil_f64(x: f64) -> f64 {
    x.ceil()
}

extern "C" fn round_f32(x: f32) -> f32 {
    x.round_ties_even()
}

extern "C" fn round_f64(x: f64) -> f64 {
    x.round_ties_even()
}

extern "C" fn trunc_f32(x: f32) -> f32 {
    x.trunc()
}

extern "C" fn trunc_f64(x: f64) -> f64 {
    x.trunc()
}
