//! From typed codelets to machine code, through Cranelift.
//!
//! - [`abi`] is the calling convention: what an engine passes to compiled code, and what makes a call sound.
//! - [`compile()`] turns kernel specifications (`girder_codelet::kernel`), which `girder_host` has rewritten, into
//!   [`Code`], in parallel; [`clif_text`], [`simd_text`] and [`asm_text`] show one of them.
//! - `validate` refuses what the rest could not translate, so that nothing after it can fail.
//! - `lower` translates one codelet; the vectorised forms of loops and reductions stand in `lower::vector`.
//!   Those with more than 128 bits are vector kernels, which `girder-simd` makes.
//! - `helpers` is the table of functions that compiled code calls, so that code bytes stay position-free;
//!   [`native`] names those of them that the engine supplies.
//!
//! Invariants: compiled code computes what `girder_codelet::interpret` does, to the bit (any NaN counts as any other);
//! it never traps and never unwinds. `unsafe` stands in `memory` (code made executable) only.

pub mod abi;
mod compile;
mod helpers;
mod host;
mod isa;
mod lower;
mod memory;
pub mod native;
mod validate;

pub use compile::{Kernels, asm_text, clif_text, compile, compile_for, simd_text};
pub use helpers::Imports;
pub use host::Host;
pub use isa::Isa;
pub use memory::Code;
pub use validate::CodegenError;
