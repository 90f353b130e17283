//! Native functions for what has no instruction.
//!
//! Invariants: [`Imports`] is `repr(C)` and all its entries are pointers, so that compiled code finds entry `n` at
//! byte `8 n`; every function agrees with `girder_codelet::scalar`.

use crate::microkernel::{
    Amp, amp_f32_avx2, amp_f32_avx512, amp_f32_portable, amp_f64_avx2, amp_f64_avx512, amp_f64_portable,
};
use girder_kernels::Level;

/// Functions that compiled code calls, by position.
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
    amp_f32_portable: Amp,
    amp_f64_portable: Amp,
    amp_f32_avx2: Amp,
    amp_f64_avx2: Amp,
    amp_f32_avx512: Amp,
    amp_f64_avx512: Amp,
}

/// What [`Batch::imports`](crate::abi::Batch::imports) points to.
pub static IMPORTS: Imports = Imports {
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
    amp_f32_portable,
    amp_f64_portable,
    amp_f32_avx2,
    amp_f64_avx2,
    amp_f32_avx512,
    amp_f64_avx512,
};

/// A function of [`Imports`] for `f32`; the one for `f64` follows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Import {
    Rem = 0,
    Fma = 2,
    Floor = 4,
    Ceil = 6,
    Round = 8,
    Trunc = 10,
    AmpPortable = 12,
    AmpAvx2 = 14,
    AmpAvx512 = 16,
}

impl Import {
    /// The matrix-product unit with the instructions of a level.
    pub(crate) fn amp(level: Level) -> Import {
        match level {
            Level::Portable => Import::AmpPortable,
            Level::Avx2 => Import::AmpAvx2,
            Level::Avx512 => Import::AmpAvx512,
        }
    }
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
