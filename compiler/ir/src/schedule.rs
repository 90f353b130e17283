//! The table of `schedule-exchange`: when the words of each transfer of a phase move.
//!
//! # Note: Slices
//! A transfer is served in one slice or in several; each moves some of its words to some of its receivers. Words that
//! stay on the sender's processor are timed by cycles. Words to other processors move in a common period that follows,
//! which has a length but no order.
//!
//! # Note: Delays
//! A word that tile s sends at cycle c reaches tile r at c + a(s) + b(r): the delay of the wires is the sum of a
//! sender's and a receiver's part. So the cycles of a port can be counted from its own origin, shifted by a or b, and
//! the delays vanish from the table: a slice that starts at cycle c holds its sender *and* its receivers from c, each
//! on its own clock. The phase adds the greatest a and b once, as part of the machine's exchange latency.
//!
//! # Note: Pairs
//! Tiles 2k and 2k + 1 of a processor share an exchange bus. A *paired* slice moves `pair_bytes_per_cycle` over the
//! wires of both tiles of each pair: its receivers are whole pairs, and the sender's partner lends its wires, so the
//! partner sends nothing else meanwhile. If the partner itself receives the stream of another pair, the sender lends
//! its receiving wires in turn.
//!
//! Invariant: within a phase no tile sends, and no tile receives, two slices at once; a slice of w words holds its
//! sender, all its receivers, and the wires lent to it, for `⌈4 · w / rate⌉` cycles from its start. Every word of a
//! transfer reaches every receiver exactly once.

use crate::ids::{ComputeSetId, CopyId};
use crate::plan::{Loc, Phase, Transfer};
use cranelift_entity::SecondaryMap;
use std::sync::Arc;

/// Words of a transfer that move together to receivers on the sender's processor.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TransferSlice {
    /// The transfer, by position in its phase.
    pub transfer: u32,
    /// Its first word, relative to the first word of the transfer.
    pub first: u32,
    /// Number of words, at least 1.
    pub words: u32,
    /// Cycle of the first word, relative to the first word of the phase.
    pub start: u32,
    /// Its receivers.
    pub to: Served,
    /// Whether it moves at the rate of a pair of tiles: see the note on pairs.
    pub paired: bool,
}

/// The receivers of a slice.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Served {
    /// All receivers of the transfer on the sender's processor.
    All,
    /// Some of them: a range of [`PhaseSchedule::served`].
    Some {
        /// The start of the range.
        first: u32,
        /// The length of the range, at least 1.
        count: u32,
    },
}

/// The schedule of one phase.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PhaseSchedule {
    /// Ascending by transfer, then by time; so are their ranges of `served`.
    pub slices: Vec<TransferSlice>,
    /// Positions among [`Phase::receivers`], ascending within each slice that names some.
    pub served: Vec<u32>,
    /// For each processor that has slices, ascending: the cycles from its first word to its last.
    pub cycles: Vec<(u32, u32)>,
    /// Cycles of the words between processors: the machine's fixed part and those of the fullest link group or tile; 0
    /// if there are none.
    pub link_cycles: u32,
}

impl PhaseSchedule {
    /// Returns the cycles from the first word to the last on the slowest processor.
    pub fn tile_cycles(&self) -> u32 {
        self.cycles.iter().map(|c| c.1).max().unwrap_or(0)
    }

    /// Returns the receivers of a slice.
    pub fn receivers(&self, slice: &TransferSlice, phase: &Phase, transfer: &Transfer, tiles_per_ipu: u32) -> Vec<Loc> {
        let to = phase.receivers(transfer);
        match slice.to {
            Served::All => {
                let ipu = |tile| tile / tiles_per_ipu;
                to.filter(|l| ipu(l.tile) == ipu(transfer.from.tile)).collect()
            }
            Served::Some { first, count } => {
                let some = self.served.get(first as usize..(first as usize).saturating_add(count as usize));
                some.unwrap_or(&[]).iter().filter_map(|&k| to.at(k as usize)).collect()
            }
        }
    }
}

/// The schedules of a step's two phases. Phases that are scheduled alike share one table.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StepSchedule {
    /// The schedule of [`StepPlan::before`](crate::plan::StepPlan).
    pub before: Arc<PhaseSchedule>,
    /// The schedule of [`StepPlan::after`](crate::plan::StepPlan).
    pub after: Arc<PhaseSchedule>,
}

/// The table of schedules.
#[derive(Clone, Debug, Default)]
pub struct Schedule {
    /// The schedules of every compute set.
    pub sets: SecondaryMap<ComputeSetId, StepSchedule>,
    /// The schedules of every copy.
    pub copies: SecondaryMap<CopyId, StepSchedule>,
}
