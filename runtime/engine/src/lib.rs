//! Supersteps on the host's threads.
//!
//! One program, three modes, the same bits. The [`Engine`] walks the program (`walk`) and asks a store to execute
//! compute sets, perform copies, and read and write elements (`store`). The stores are [`Mode::Interpret`]
//! (`interpret`, the oracle), [`Mode::Fast`] (`fast`) and [`Mode::Exact`] (`exact`). An [`Executable`] holds the tables
//! and the compiled kernels; a [`Host`] is the outside.
//!
//! # Note: Why the modes agree
//! In a race-free compute set each element is either only read, or touched through exactly one field of exactly one
//! vertex. So every value that a vertex sees is the value at the start of the step, whatever the order of the vertices
//! and wherever the element is kept: in one array, at its home on a tile, or in a landing buffer.
//!
//! Invariant: `unsafe` stands in `arena` (memory that several threads share), `kernel` (calls of compiled code),
//! `products` (calls of native kernels) and `natives` (the same from compiled code) only.

mod arena;
mod cache_blocks;
mod compile;
mod counts;
mod engine;
mod error;
mod exact;
mod executable;
mod failure;
mod fast;
mod host;
mod interpret;
mod kernel;
mod moves;
mod natives;
mod pool;
mod processor;
mod products;
mod report;
mod runs;
mod store;
mod task;
mod tiles;
mod walk;

pub use compile::CodeForm;
pub use engine::{Engine, Mode};
pub use error::{EngineError, RunError};
pub use executable::Executable;
pub use fast::FastCode;
pub use host::{Host, Silent, StreamError};
pub use report::RunReport;
