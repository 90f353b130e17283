//! Loops, reductions and whole vertices, several iterations at a time.
//!
//! An *iteration* is an iteration of the loop (or a vertex of the batch) that becomes a lane. All lanes of a group run
//! the body together: control is the same for all of them, and values that differ are vectors. A body qualifies if
//! every value that differs has four bytes, or every one has eight (in vector kernels they may mix), no check in it can
//! fail, and no two iterations touch one element that either stores. Each iteration computes what it would alone, in
//! the same order, so the bits are the same.
//!
//! - `steps`: the statements that a body may have
//! - `totals`: locals that a loop only adds to
//! - `differ`: which locals differ from iteration to iteration
//! - `search`: whether a body qualifies
//! - `emit`, `run`: its expressions and statements for one group
//! - `kernel`: the same for vector kernels of `girder-simd`
//! - `loops`, `reduce`, `batch`: the three users: a loop's iterations, a reduction's elements, a batch's vertices
//!
//! # Note: Early
//! What is the same in all iterations and depends on nothing in the body is evaluated before the loop, which is entered
//! only if it has an iteration. That is sound for what every iteration evaluates unconditionally. Where iterations may
//! skip an expression that others evaluate, it loads nothing and has no check, proven or not, for the proof may rest on
//! the condition; but that a vector kernel loads and stores under a mask, and that a load is sure where every iteration
//! has the same.
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

/// A body that can be translated for several iterations at once.
pub(super) struct Plan {
    /// The loop's index; `None` if iterations are vertices.
    pub var: Option<LocalId>,
    pub steps: Vec<Step>,
    /// Bytes of each value.
    pub width: u32,
    /// Locals that the body sets.
    pub sets: EntitySet<LocalId>,
    /// Those that differ from iteration to iteration.
    pub differing: EntitySet<LocalId>,
    /// Expressions that are evaluated before the loop.
    pub early: Vec<ExprId>,
    /// Expressions that are the same in all iterations.
    pub same: EntitySet<ExprId>,
    /// Loads that differ from iteration to iteration, with the bytes between iterations.
    pub loads: Vec<(ExprId, i64)>,
    /// Indices whose values are used, with their growth from iteration to iteration.
    pub ramps: Vec<(ExprId, i64)>,
    /// Whether running an iteration twice does no harm.
    pub idempotent: bool,
    /// Whether a loop stands in the body.
    pub nested: bool,
    /// Number of operations.
    pub size: u32,
    /// Accesses to elements that do not lie side by side.
    pub strided: u32,
    /// Conversions of indices that may take them as 32-bit integers.
    pub narrow: EntitySet<ExprId>,
    /// How often indices are used as values; in a vector kernel each use has a register of its own.
    pub ramp_uses: u32,
    /// Locals that the body only adds to, and how; of vector kernels only.
    pub totals: Vec<(LocalId, ReduceOp)>,
}

impl Plan {
    /// Places of one vector.
    pub fn lanes(&self) -> u64 {
        u64::from(16 / self.width)
    }

    /// How many groups run side by side: where loops stand in the body, a cache line of iterations shares their cost.
    pub fn unroll(&self) -> u64 {
        if self.nested && self.size <= 32 { 4 } else { 1 }
    }

    /// Whether something is stored.
    pub fn stores(&self) -> bool {
        steps::any_store(&self.steps)
    }
}
