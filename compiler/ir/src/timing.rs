//! Modelled time: what each step takes on the machine, as `model-time` computes it from the tables of an
//! [`Allocated`](crate::stage::Allocated) program.
//!
//! One clock runs on each IPU. A step joins the clocks of the IPUs that take part if words cross between them, else each
//! goes on by itself. All figures are tile cycles.
//!
//! Invariant: modelled time depends on the machine, the tables and counted blocks only.

use crate::ids::{ComputeSetId, CopyId, StepId};
use cranelift_entity::SecondaryMap;

/// The times of all steps that move or compute.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timing {
    /// Of every compute set; what data decide in its vertices counts nothing here.
    pub sets: SecondaryMap<ComputeSetId, StepTime>,
    /// Of every copy.
    pub copies: SecondaryMap<CopyId, StepTime>,
    /// Of each step that moves a packet between host and tiles.
    pub packets: SecondaryMap<StepId, StepTime>,
    /// Of the scalar that a `while`, `if` or `switch` looks at: its broadcast to all tiles.
    pub predicate: StepTime,
    /// Of a `sync();`, for which all IPUs wait.
    pub sync: StepTime,
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
    /// The least cycles that the words of the step's phases could take: the load of the fullest port, if all moves at the
    /// rate of pairs of tiles that may.
    pub exchange_bound: u64,
    /// What the schedule takes for them.
    pub exchange_words: u64,
}

/// The time of one step on one IPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IpuTime {
    /// Waiting for the release of the sync, once everybody has arrived.
    pub sync: u64,
    /// From the release to the last word landed.
    pub exchange: u64,
    /// On-tile copies before the words, on the tile that takes longest.
    pub pre_arrange: u64,
    /// On-tile copies after the words, likewise.
    pub post_arrange: u64,
    /// Words between host and machine, and the host's answers.
    pub host: u64,
    /// Vertices.
    pub compute: ComputeTime,
}

/// Vertices of one compute set on the tiles of one IPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ComputeTime {
    /// Of the tile that takes longest.
    pub worst: u64,
    /// Which, the first of its kind.
    pub tile: u32,
    /// Summed over tiles.
    pub total: u64,
    /// Tiles that have a vertex.
    pub tiles: u32,
}

impl IpuTime {
    /// Returns all parts, one after the other; saturates.
    pub fn cycles(&self) -> u64 {
        let parts = [self.sync, self.exchange, self.pre_arrange, self.post_arrange, self.host, self.compute.worst];
        parts.into_iter().fold(0, u64::saturating_add)
    }
}

impl ComputeTime {
    /// Takes in another tile.
    pub fn add(&mut self, tile: u32, cycles: u64) {
        if self.tiles == 0 || cycles > self.worst {
            (self.worst, self.tile) = (cycles, tile);
        }
        self.total = self.total.saturating_add(cycles);
        self.tiles += 1;
    }
}
