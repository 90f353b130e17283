//! Analyses of a single codelet that need no host: verification, the meaning of operations, facts for given sizes, and
//! the cost of a vertex.
//!
//! - [`scalar`] is the one definition of every operation on values. Constant folding, the interpreter and the tests of
//!   generated code use it.
//! - [`bind_sizes`] derives the named sizes from the shapes of a vertex's views; [`vertices`] derives shapes and
//!   constants from a family.
//! - [`interpret`] is the reference interpreter: it defines what a codelet computes.
//! - [`facts()`] proves, for concrete sizes, that checks cannot fail and that `out` fields are fully written.
//! - [`cost`] gives the cycles for which a vertex keeps a tile's contexts busy, as a closed form.
//! - [`elementwise`] recognises codelets that compute element by element.
//! - [`neighbours`] decides whether one vertex can do the work of several.
//! - [`kernel`] describes a codelet with everything that code is compiled for: sizes, strides, addressing.
//! - [`fold`], [`locals`], [`nest`] and [`work`] are analyses that rewrites and code generation share: known values,
//!   uses of locals, nests of short loops, amounts of work and code.
//! - [`verify()`] checks the invariants of `girder_ir::codelet`; a failure is a bug of the compiler.
//!
//! Invariant: nothing here depends on the graph or the host.

pub mod cost;
pub mod elementwise;
pub mod facts;
pub mod fold;
pub mod interpret;
pub mod kernel;
pub mod locals;
pub mod neighbours;
pub mod nest;
pub mod scalar;
pub mod sizes;
pub mod vertices;
pub mod verify;
pub mod work;

pub use facts::{Cover, Facts, facts, facts_on};
pub use interpret::{Failure, Interpreter, Stop, VertexMemory, run};
pub use kernel::KernelSpec;
pub use sizes::{Expected, SizeMismatch, Sizes, bind_sizes};
pub use verify::verify;

#[cfg(test)]
mod build;
