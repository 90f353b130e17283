//! Translates kernels to machine code for x86-64.
//!
//! - [`table`], `pairs`: the instructions, and descriptive names for them
//! - `encode`: the encoding of instructions
//! - `inst`, `program`: machine programs over virtual registers
//! - `avx512`, `avx2`: one lowering from the IR to machine programs for each level
//! - `integers`, `interleaved`: code that both lowerings share
//! - `interleave`: interleaves the steps of several groups
//! - `registers`: register allocation
//! - `constants`: constants in front of the code
//! - `level`, `machine`: the levels, what a caller gives, and the result
//! - `emit`, `step`: the loop around a body, and the code of one step
//!
//! Invariant: code is position-independent: it reads only its own constants and the memory that its arguments point to.

mod avx2;
mod avx512;
mod constants;
mod emit;
mod encode;
mod inst;
mod integers;
mod interleave;
mod interleaved;
mod level;
mod machine;
mod pairs;
mod program;
mod registers;
mod step;
pub mod table;

pub use interleaved::{interleaved_stride, phase};
pub use level::Level;
pub use machine::{Machine, Options, Reference};

use crate::ir::Kernel;

/// Translates a kernel for a level.
pub fn assemble(kernel: &Kernel, level: Level, options: &Options) -> Machine {
    assert!(kernel.outer.is_none() || options.iterations.is_some(), "an outer loop has a known number of iterations");
    let program = match level {
        Level::Avx2 => avx2::program(kernel, options),
        Level::Avx512 => avx512::program(kernel, options),
    };
    let kernel = options.listing.then(|| kernel.to_string());
    Machine { kernel, ..emit::emit(&program, options) }
}
