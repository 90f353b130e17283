//! Runs supersteps on the host's threads.
//!
//! One program has the same results in three modes. The [`Engine`] walks the program (`walk`); a store executes compute
//! sets, performs copies, and reads and writes elements (`store`). The stores are [`Mode::Interpret`] (`interpret`, the
//! oracle), [`Mode::Fast`] (`fast`, which executes a plan of `girder_host`) and [`Mode::Exact`] (`exact`). An
//! [`Executable`] holds the tables and the compiled kernels; a [`RunHost`] is the environment of a run.
//!
//! # Note: Why the modes agree
//! In a race-free compute set each element is either only read, or touched through exactly one field of exactly one
//! vertex. So every value that a vertex reads is the value at the start of the step or its own, whatever the order of
//! the vertices and wherever the element is kept: in one array, at its home on a tile, or in a landing buffer.
//!
//! Invariant: `unsafe` occurs only in `arena` (memory that several threads share), `kernel` (calls of compiled code),
//! `products` and `linked` (calls of native kernels) and `natives` (calls of native kernels by compiled code).

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
mod mode;
mod moves;
mod natives;
mod pool;
mod processor;
mod products;
mod linked;
mod report;
mod runs;
mod draw;
mod store;
mod task;
mod tiles;
mod predict;
mod walk;
mod replicas;
mod remote;

pub use compile::CodeForm;
pub use engine::Engine;
pub use error::{EngineError, RunError};
pub use executable::Executable;
pub use fast::FastGraph;
pub use host::{RunHost, Silent, StreamError};
pub use mode::Mode;
pub use report::RunReport;
