//! What the tests share: a program compiled and run as the command would, with everything that the outside sees.
//!
//! A [`Program`] is a text with its options; [`Program::compile`] makes a [`Compiled`], which runs in any mode on any
//! number of threads and gives an [`Outcome`]. [`files`] finds programs on disk, [`generate`] makes others.
//!
//! Invariant: outcomes of one program are equal if and only if the host would see the same, NaNs being one value.

/// As the command has it, so that what is measured here is what a user meets.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

pub mod cases;
mod context;
pub mod files;
pub mod generate;
mod lowered;
mod outcome;
mod program;
mod reported;
mod start;

pub use context::with_context;
pub use lowered::Lowered;
pub use outcome::{Element, Outcome, elements};
pub use program::{Compiled, Failure, MODES, Program};
pub use reported::{Report, Reported};
