//! Loops in vectors of 512 or 256 bits, for which Cranelift has no types: programs over virtual registers that become
//! machine code here.
//!
//! - `inst`: the steps that a strip is made of; `program`: what a strip does
//! - `arith`: the language's operators; `integers`: those that have no instruction; `convert`: from type to type;
//!   `packed`: integers in lanes of 8 and 16 bits
//! - `codes`, `encode`: the instructions and their bytes
//! - `registers`: virtual registers to those of the machine
//! - `constants`: what stands before the code
//! - `emit`: the loop around a body; `weave`: several groups of places in its turn, step by step
//! - `step`: one step, as far as it is the same for both widths; `full`: what is done under masks, in vectors of 512 bits;
//!   `stretch`: elements a few places apart
//! - `halves`: the same program in vectors of 256 bits; `half`: what is done under their masks
//!
//! `lower::vector` makes programs from plans, and calls their code.
//!
//! Invariant: code is position-free: it reads its own constants and what its arguments point to.

mod arith;
mod convert;
mod integers;
mod packed;
mod codes;
mod constants;
mod emit;
mod step;
mod encode;
mod inst;
mod program;
mod registers;
mod weave;
mod stretch;
mod halves;
mod full;
mod half;

pub(crate) use arith::{Value, is_long};
pub(crate) use codes::*;
pub(crate) use emit::{MOST_ABREAST, Places, Strip, assemble};
pub(crate) use encode::Code;
pub(crate) use inst::{Effect, Elements, Op, Pointer, Reg, Width};
pub(crate) use packed::{Packed, repeated};
pub(crate) use program::{Apart, LANES, Lanes, Moving, Program};
pub(crate) use registers::WIDEST;
pub(crate) use stretch::Stretch;
