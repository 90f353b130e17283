//! The table of `schedule-exchange`: when each transfer of a phase starts.
//!
//! Invariant: within a phase no tile sends, and no tile receives, two transfers at once; a transfer of w words holds its
//! sender and all its receivers for `⌈4 · w / bytes_per_cycle⌉` cycles from its start.

use crate::ids::{ComputeSetId, CopyId};
use cranelift_entity::SecondaryMap;

/// Start cycles of the transfers of one phase.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PhaseSchedule {
    /// One per transfer, cycles from the first word of the phase.
    pub start: Vec<u32>,
    /// Cycles from the first word to the last: the end of the latest transfer.
    pub cycles: u32,
}

/// The schedules of a step's two phases.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StepSchedule {
    /// Of [`StepPlan::before`](crate::plan::StepPlan).
    pub before: PhaseSchedule,
    /// Of [`StepPlan::after`](crate::plan::StepPlan).
    pub after: PhaseSchedule,
}

/// The whole table.
#[derive(Clone, Debug, Default)]
pub struct Schedule {
    /// Of every compute set.
    pub sets: SecondaryMap<ComputeSetId, StepSchedule>,
    /// Of every copy.
    pub copies: SecondaryMap<CopyId, StepSchedule>,
}
