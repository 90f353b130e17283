//! The code generator: compiles typed codelets to machine code, with Cranelift.
//!
//! - [`abi`] is the calling convention: what an engine passes to compiled code, and when a call is sound.
//! - [`compile()`] compiles kernel specifications (`girder_codelet::kernel`), which `girder_host` has rewritten, to
//!   [`Code`], in parallel; [`clif_text`], [`simd_text`] and [`asm_text`] print a single one.
//! - `validate` rejects what the other modules cannot translate, so that they cannot fail.
//! - `lower` translates one codelet; the vectorised forms of loops and reductions are in `lower::vector`. Those with
//!   vectors of more than 128 bits are vector kernels, which `girder-simd` compiles.
//! - `helpers` is the table of functions that compiled code calls, so that the code is position-independent; [`native`]
//!   defines those that the engine supplies.
//!
//! Invariants: compiled code computes the same bits as `girder_codelet::interpret` (all NaNs count as equal). It never
//! traps and never unwinds. Only `memory` uses `unsafe`, to make code executable.

pub mod abi;
mod compile;
mod helpers;
mod target;
mod level;
mod lower;
mod memory;
pub mod native;
mod validate;

pub use compile::{Kernels, asm_text, clif_text, compile, compile_for, simd_text};
pub use helpers::Imports;
pub use level::Level;
pub use memory::Code;
pub use target::CodeTarget;
pub use validate::CodegenError;
