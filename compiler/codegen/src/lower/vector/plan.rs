//! The result of the search: how a body is translated for several iterations at once.
//!
//! Invariant: every load that differs between iterations, and every index whose value is used, has its step here.

use super::nest::{Nest, Permuted};
use super::steps::{self, Step};
use cranelift_entity::EntitySet;
use girder_ir::codelet::ReduceOp;
use girder_ir::ids::{ExprId, LocalId};

/// The plan for a body that can be translated for several iterations at once.
pub(in crate::lower) struct Plan {
    /// The index of the loop; `None` if iterations are vertices.
    pub var: Option<LocalId>,
    /// The loops inside it whose iterations are lanes too.
    pub nest: Nest,
    /// The index of the loop around it that the vector kernel runs too.
    pub outer: Option<LocalId>,
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
    /// Loads of a nest whose elements have an order of their own.
    pub permuted: Vec<(ExprId, Permuted)>,
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

    /// Returns whether the body stores anything.
    pub fn stores(&self) -> bool {
        steps::any_store(&self.steps)
    }
}
