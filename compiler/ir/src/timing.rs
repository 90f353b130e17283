//! Modelled time: the cycles of each step on the machine, as `model-time` computes them from the tables of an
//! [`Allocated`](crate::stage::Allocated) program.
//!
//! One clock runs on each IPU. A step joins the clocks of the IPUs between which words cross; otherwise each clock goes
//! on by itself. All figures are tile cycles.
//!
//! Invariant: modelled time depends on the machine, the tables and counted blocks only.

use crate::ids::{ComputeSetId, CopyId, StepId, StreamId};
use cranelift_entity::SecondaryMap;

/// The times of all steps that move or compute data.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timing {
    /// The time of every compute set; work of its vertices that depends on data counts as 0 here.
    pub sets: SecondaryMap<ComputeSetId, StepTime>,
    /// The time of every copy.
    pub copies: SecondaryMap<CopyId, StepTime>,
    /// The time of each step that moves a packet between host and tiles.
    pub packets: SecondaryMap<StepId, StepTime>,
    /// The host's part of each packet of a stream with `ahead`, which is no part of the step's time.
    pub ahead: SecondaryMap<StepId, Option<PacketAhead>>,
    /// The time of the scalar that each `while`, `if` or `switch` tests: its broadcast to the tiles of the IPUs that
    /// have a part in the step.
    pub predicates: SecondaryMap<StepId, StepTime>,
    /// Steps in branches of a `par` that join the clock of an IPU of another branch, ascending.
    pub waits: Vec<StepId>,
    /// The time of a `sync();`, for which all IPUs wait.
    pub sync: StepTime,
}

/// A packet that the host moves while tiles compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketAhead {
    /// Its stream.
    pub stream: StreamId,
    /// The cycles that the host takes for it.
    pub host: u64,
}

/// The time of one step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepTime {
    /// The IPUs that take part, ascending.
    pub ipus: Vec<(u32, IpuTime)>,
    /// Whether words cross between them, so that they wait for each other.
    pub joined: bool,
    /// Bytes that tiles receive from tiles of their own IPU.
    pub bytes_inside: u64,
    /// Bytes that IPUs receive from others.
    pub bytes_between: u64,
    /// A lower bound of the cycles that the words of the step's phases take: the load of the fullest port if every
    /// transfer that may move at the rate of pairs does so.
    pub exchange_bound: u64,
    /// The cycles that the schedule takes for these words.
    pub exchange_words: u64,
}

/// The time of one step on one IPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IpuTime {
    /// Waiting for the release of the sync after every tile has arrived.
    pub sync: u64,
    /// From the release to the last word landed.
    pub exchange: u64,
    /// On-tile copies before the words, on the slowest tile.
    pub pre_arrange: u64,
    /// On-tile copies after the words, on the slowest tile.
    pub post_arrange: u64,
    /// Words between host and machine, and waiting for the host.
    pub host: u64,
    /// The vertices.
    pub compute: ComputeTime,
}

/// The vertices of one compute set on the tiles of one IPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ComputeTime {
    /// Cycles of the slowest tile.
    pub worst: u64,
    /// The slowest tile; the first of several.
    pub tile: u32,
    /// Cycles summed over tiles.
    pub total: u64,
    /// Tiles that have a vertex.
    pub tiles: u32,
}

impl IpuTime {
    /// Returns the sum of all parts; saturates.
    pub fn cycles(&self) -> u64 {
        let parts = [self.sync, self.exchange, self.pre_arrange, self.post_arrange, self.host, self.compute.worst];
        parts.into_iter().fold(0, u64::saturating_add)
    }
}

impl ComputeTime {
    /// Adds a tile.
    pub fn add(&mut self, tile: u32, cycles: u64) {
        if self.tiles == 0 || cycles > self.worst {
            (self.worst, self.tile) = (cycles, tile);
        }
        self.total = self.total.saturating_add(cycles);
        self.tiles += 1;
    }
}
