//! Vector kernels: loops whose iterations become the lanes of the host's 256-bit or 512-bit vectors. Cranelift's x64
//! backend has types for such vectors, but lowers only vectors of at most 128 bits.
//!
//! - [`ir`] is the typed vector IR: [`Kernel`]s and their operations
//! - `print` writes kernels as text, and [`evaluate()`] defines their meaning
//! - [`x86`] translates kernels to machine code, with one lowering for each [`Level`]
//!
//! ```text
//! codelet ─girder-codegen→ Kernel ─x86::avx512 or x86::avx2→ machine program ─registers, encode→ bytes
//! ```
//!
//! Invariant: this crate knows neither codelets nor Cranelift; only `x86` knows instructions.

mod evaluate;
pub mod ir;
mod print;
pub mod x86;

pub use evaluate::{Bytes, evaluate};
pub use ir::Kernel;
pub use x86::{Level, Machine, Options, Reference, assemble, interleaved_stride, phase};
