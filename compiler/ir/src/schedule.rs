//! The table of `schedule-exchange`: when the words of each transfer of a phase move.
//!
//! # Note: Pieces
//! A transfer is served in one piece or in several, each of which moves some of its words to some of its receivers. What
//! stays on the sender's processor is timed by cycles; what goes to other processors takes place in a common part that
//! follows, which has a length but no order.
//!
//! # Note: Delays
//! A word that tile s sends at cycle c reaches tile r at c + a(s) + b(r): the wires' delay is a sum of a sender's and a
//! receiver's part. So the cycles of a port may be counted from its own origin, shifted by a or b, and the delays vanish
//! from the table: a piece that starts at cycle c holds its sender *and* its receivers from c, each on its own clock.
//! The phase takes the greatest a and b once, which is part of the machine's exchange latency.
//!
//! # Note: Pairs
//! Tiles 2k and 2k + 1 of a processor share an exchange bus. A *wide* piece moves `pair_bytes_per_cycle` over the wires of
//! both tiles of each pair that takes part: its receivers are whole pairs, and the sender's partner lends its wires, so
//! that it sends nothing else meanwhile. Where the partner itself takes the stream of other pairs, the sender lends its
//! receiving wires in turn.
//!
//! Invariant: within a phase no tile sends, and no tile receives, two pieces at once; a piece of w words holds its
//! sender, all its receivers, and the wires that are lent to it, for `⌈4 · w / rate⌉` cycles from its start. Every word of a transfer reaches
//! every receiver exactly once.

use crate::ids::{ComputeSetId, CopyId};
use crate::plan::{Loc, Phase, Transfer};
use cranelift_entity::SecondaryMap;

/// Words of a transfer on their way to receivers on the sender's processor.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TransferSlice {
    /// The transfer, by position in its phase.
    pub transfer: u32,
    /// Its first word, from the first of the transfer.
    pub first: u32,
    /// How many words, at least 1.
    pub words: u32,
    /// Cycle of the first word, from the first word of the phase.
    pub start: u32,
    /// Who receives it.
    pub to: Served,
    /// Whether it moves at the rate of a pair of tiles: see the note on pairs.
    pub paired: bool,
}

/// The receivers of a piece.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Served {
    /// All of the transfer's that are on the sender's processor.
    All,
    /// Some of them: a range of [`PhaseSchedule::served`].
    Some {
        /// Where it starts.
        first: u32,
        /// How many, at least 1.
        count: u32,
    },
}

/// When the transfers of one phase take place.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PhaseSchedule {
    /// By transfer, then in the order of time; so are their ranges of `served`.
    pub slices: Vec<TransferSlice>,
    /// Positions among [`Phase::receivers`], ascending within each piece that names some.
    pub served: Vec<u32>,
    /// Of each processor that has pieces, ascending: cycles from its first word to its last.
    pub cycles: Vec<(u32, u32)>,
    /// Cycles of the words between processors, 0 if there are none: the machine's fixed part, and those of the fullest
    /// link group or tile.
    pub link_cycles: u32,
}

impl PhaseSchedule {
    /// Returns the cycles from the first word to the last on the processor that takes longest.
    pub fn tile_cycles(&self) -> u32 {
        self.cycles.iter().map(|c| c.1).max().unwrap_or(0)
    }

    /// Returns the receivers of a piece of a transfer of a phase.
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
