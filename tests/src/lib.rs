//! Shared code of the tests: programs that are compiled and run as the command does it, and their outcomes.
//!
//! A [`Program`] is a text with its options; [`Program::compile`] makes a [`Compiled`], which runs in any mode on any
//! number of threads and gives an [`Outcome`]. [`files`] finds programs on disk, [`cases`] makes tests of them, and
//! [`generate`] makes random programs, [`mutate`] makes texts that are nearly programs, and [`properties`] hold for
//! any text.
//!
//! Invariant: two outcomes are equal if and only if the host observes the same effects; all NaNs count as one value.

/// The allocator of the command, so that tests and benches measure what a user gets.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

pub mod cases;
mod context;
pub mod files;
pub mod generate;
mod kernels;
mod lowered;
pub mod mutate;
mod outcome;
mod program;
pub mod properties;
mod random;
mod reported;
mod start;

pub use context::with_context;
pub use lowered::Lowered;
pub use outcome::{Element, Outcome, elements};
pub use program::{Compiled, Failure, MODES, Program};
pub use reported::{Report, Reported};
