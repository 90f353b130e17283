//! What a run tells about its path through the program, step by step and in program order.
//!
//! Invariant: what is told depends on the program and its data, never on the engine's mode, its threads or the host.

use crate::ids::{ComputeSetId, CopyId, FamilyId, StepId};

/// Listens to a run.
pub trait Trace {
    /// A compute set has been executed.
    fn executed(&mut self, step: StepId, set: ComputeSetId, counts: &dyn Counts);

    /// A copy has been performed.
    fn copied(&mut self, step: StepId, copy: CopyId);

    /// A `while`, `if` or `switch` has looked at its scalar.
    fn tested(&mut self, step: StepId);

    /// A packet has come from the host, or has gone to it.
    fn packet(&mut self, step: StepId);

    /// All tiles have waited for each other (`sync();`).
    fn synced(&mut self, step: StepId);
}

/// How often the counted blocks of vertices ran in the compute set just executed.
pub trait Counts {
    /// One row per instance, one number per counted block of the codelet; empty where the codelet has none.
    fn of(&self, family: FamilyId) -> &[u64];
}

/// Nothing was counted.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoCounts;

impl Counts for NoCounts {
    fn of(&self, _: FamilyId) -> &[u64] {
        &[]
    }
}
