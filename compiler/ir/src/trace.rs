//! Notifications about the path of a run through the program, step by step and in program order.
//!
//! Invariant: notifications depend on the program and its data, never on the engine's mode, its threads or the host.

use crate::ids::{ComputeSetId, CopyId, FamilyId, StepId};

/// A listener of a run.
pub trait Trace {
    /// Called after a compute set has been executed.
    fn executed(&mut self, step: StepId, set: ComputeSetId, counts: &dyn Counts);

    /// Called after a copy has been performed.
    fn copied(&mut self, step: StepId, copy: CopyId);

    /// Called after a `while`, `if` or `switch` has tested its scalar.
    fn tested(&mut self, step: StepId);

    /// Called after a packet has come from the host or gone to it.
    fn packet(&mut self, step: StepId);

    /// Called after all tiles have waited for each other (`sync();`).
    fn synced(&mut self, step: StepId);

    /// Called before the steps of a replica that other replicas run too, one replica after the other.
    fn replica(&mut self) {}

    /// Called after the steps of the last of these replicas, when all of them meet.
    fn replicas_met(&mut self) {}
}

/// Counts of the blocks of vertices in the compute set just executed.
pub trait Counts {
    /// Returns one row per instance with one number per counted block of the codelet; empty if the codelet has none.
    fn of(&self, family: FamilyId) -> &[u64];
}

/// Counts of a run in which nothing was counted.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoCounts;

impl Counts for NoCounts {
    fn of(&self, _: FamilyId) -> &[u64] {
        &[]
    }
}
