//! Vectorisation: loops, reductions and whole vertices, several iterations at a time.
//!
//! An *iteration* is an iteration of the loop (or a vertex of the batch) that becomes a lane. All lanes of a group run
//! the body together: control is the same for all of them, and values that differ are vectors. A body qualifies if all
//! values that differ have four bytes, or all have eight (in vector kernels the widths may be mixed), no check in it
//! can fail, and no two iterations access an element that either of them stores. Each iteration computes what scalar
//! code would compute, in the same order, so the result has the same bits.
//!
//! - `steps`: the statements that a body may contain
//! - `totals`: locals that a loop only accumulates into
//! - `differ`: which locals differ from iteration to iteration
//! - `search`: decides whether a body qualifies
//! - `emit`, `run`: the expressions and statements of one group
//! - `kernel`: the same for vector kernels of `girder-simd`
//! - `loops`, `reduce`, `batch`: the three users: iterations of a loop, elements of a reduction, vertices of a batch
//!
//! # Note: Early evaluation
//! An expression that is the same in all iterations and depends on nothing in the body is evaluated before the loop,
//! which is entered only if it has an iteration. That is sound for an expression that every iteration evaluates
//! unconditionally. An expression that some iterations may skip must not load and must have no check, proven or not,
//! because the proof may depend on the condition. There are two exceptions: a vector kernel loads and stores under a
//! mask, and a load is allowed if every iteration performs the same load unconditionally.
//!
//! Invariant: a [`Plan`] is only made for a body that `emit` and `run` can translate.

mod steps;
mod totals;
mod differ;
mod search;
mod emit;
mod run;
mod loops;
mod reduce;
mod batch;
mod kernel;

use cranelift_entity::EntitySet;
use girder_ir::codelet::ReduceOp;
use girder_ir::ids::{ExprId, LocalId};
use steps::Step;

pub(crate) use kernel::NAMESPACE;
pub(super) use loops::Rest;
pub(crate) use search::WRITTEN_OUT;

/// The plan for a body that can be translated for several iterations at once.
pub(super) struct Plan {
    /// The index of the loop; `None` if iterations are vertices.
    pub var: Option<LocalId>,
    pub steps: Vec<Step>,
    /// The size of each value in bytes.
    pub width: u32,
    /// Locals that the body sets.
    pub sets: EntitySet<LocalId>,
    /// The locals that differ from iteration to iteration.
    pub differing: EntitySet<LocalId>,
    /// Expressions that are evaluated before the loop.
    pub early: Vec<ExprId>,
    /// Expressions that are the same in all iterations.
    pub same: EntitySet<ExprId>,
    /// Loads that differ from iteration to iteration, with their byte stride.
    pub loads: Vec<(ExprId, i64)>,
    /// Indices whose values are used, with their step from iteration to iteration.
    pub ramps: Vec<(ExprId, i64)>,
    /// Whether an iteration may run twice without a change of the result.
    pub idempotent: bool,
    /// Whether the body contains a loop.
    pub nested: bool,
    /// The number of operations.
    pub size: u32,
    /// The number of accesses to elements that are not contiguous.
    pub strided: u32,
    /// Conversions of indices for which 32-bit indices are sufficient.
    pub narrow: EntitySet<ExprId>,
    /// The number of uses of indices as values. In a vector kernel each use takes a register.
    pub ramp_uses: u32,
    /// Locals that the body only accumulates into, with the operation; for vector kernels only.
    pub totals: Vec<(LocalId, ReduceOp)>,
}

impl Plan {
    /// Returns the number of lanes of a vector.
    pub fn lanes(&self) -> u64 {
        u64::from(16 / self.width)
    }

    /// Returns the number of unrolled groups. If the body contains loops, a cache line of iterations shares their
    /// overhead.
    pub fn unroll(&self) -> u64 {
        if self.nested && self.size <= 32 { 4 } else { 1 }
    }

    /// Whether the body stores anything.
    pub fn stores(&self) -> bool {
        steps::any_store(&self.steps)
    }
}
