//! From typed codelets to machine code, through Cranelift.
//!
//! - [`abi`] is the calling convention: what an engine passes to compiled code, and what makes a call sound.
//! - [`KernelSpec`] says what to compile: a codelet with concrete shapes, strides and sizes.
//! - [`compile()`] turns many of them into [`Code`], in parallel; [`clif_text`] and [`asm_text`] show one of
//!   them.
//! - `validate` refuses what the rest could not translate, so that nothing after it can fail.
//! - `interchange` turns loops over columns into loops over rows.
//! - `lower` translates one codelet; the vectorised forms of loops and reductions stand in `lower::vector`.
//! - `wide` makes code for vectors of more than 128 bits, which Cranelift does not have.
//! - `helpers` and `microkernel` are native functions that compiled code calls through a table, so that code bytes
//!   stay position-free.
//!
//! Invariants: compiled code computes what `girder_codelet::interpret` does, to the bit (any NaN counts as any other);
//! it never traps and never unwinds. `unsafe` stands in `memory` (code made executable) and `microkernel` (calls of
//! native kernels) only.

pub mod abi;
mod compile;
mod fold;
mod helpers;
mod host;
mod indices;
mod interchange;
mod isa;
mod lower;
mod memory;
mod microkernel;
mod spec;
mod validate;
mod versions;
mod wide;
mod work;

pub use compile::{Kernels, asm_text, clif_text, compile, compile_for};
pub use helpers::{IMPORTS, Imports};
pub use host::Host;
pub use isa::Isa;
pub use memory::Code;
pub use spec::{FieldLayout, KernelSpec, Lines};
pub use validate::CodegenError;
