//! All that can be known of one codelet without a host: whether it is well formed, what its operations mean, what is
//! certain for given sizes, and what a vertex of it does.
//!
//! - [`scalar`] is the one definition of every operation on values; constant folding, the interpreter and the tests
//!   of generated code all use it.
//! - [`bind_sizes`] gives the named sizes their numbers from the shapes of a vertex's views; [`vertices`] finds shapes and
//!   constants in a family.
//! - [`interpret`] is the reference: what it computes is what a codelet means.
//! - [`facts()`] proves checks superfluous and `out` fields fully written, for concrete sizes.
//! - [`cost`] says how many cycles a vertex keeps a tile's contexts busy, as a closed form.
//! - [`elementwise`] recognises codelets that compute element by element.
//! - [`neighbours`] says whether one vertex does what several do.
//! - [`kernel`] describes a codelet with everything that code is compiled for: sizes, strides, addressing.
//! - [`fold`], [`locals`] and [`work`] are analyses that rewrites and code generation share: known values, uses of
//!   locals, amounts of work and code.
//! - [`verify()`] checks what `girder_ir::codelet` promises; a failure is the compiler's bug.
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
pub mod scalar;
pub mod sizes;
pub mod vertices;
pub mod verify;
pub mod work;

pub use facts::{Cover, Facts, facts};
pub use interpret::{Failure, Interpreter, Stop, VertexMemory, run};
pub use kernel::KernelSpec;
pub use sizes::{Expected, SizeMismatch, Sizes, bind_sizes};
pub use verify::verify;

#[cfg(test)]
mod build;
