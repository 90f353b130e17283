//! The nouns of a profile. All cycles are tile cycles of the target; all bytes are bytes.

use serde::Serialize;

/// What one run, of one program or several in turn, takes on the machine.
#[derive(Clone, Debug, Serialize)]
pub struct Profile {
    /// The machine's name.
    pub target: String,
    /// Its IPUs.
    pub ipus: u32,
    /// The tiles of each.
    pub tiles_per_ipu: u32,
    /// Its clock, Hz.
    pub clock_hz: f64,
    /// The clock of the IPU that ends last.
    pub cycles: u64,
    /// The same in seconds of the target.
    pub seconds: f64,
    /// Executions of compute sets and copies.
    pub supersteps: u64,
    /// Sums over the steps.
    pub total: Total,
    /// The steps that took part, in program order.
    pub steps: Vec<StepProfile>,
    /// The tiles' memory.
    pub memory: Memory,
    /// What limits the program, in a sentence.
    pub limit: String,
}

/// Cycles by what they are spent on: of each execution, those of the IPU that takes longest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Total {
    /// Waiting for syncs to be released.
    pub sync: u64,
    /// Words on their way, latency included.
    pub exchange: u64,
    /// On-tile copies before exchanges.
    pub pre_arrange: u64,
    /// On-tile copies after exchanges.
    pub post_arrange: u64,
    /// Vertices, on the fullest tile.
    pub compute: u64,
    /// Words between host and machine, and the host's answers.
    pub host: u64,
    /// Bytes that tiles received from tiles of their own IPU.
    pub bytes_inside: u64,
    /// Bytes that IPUs received from others.
    pub bytes_between: u64,
}

/// What a step does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum StepKind {
    Compute,
    Copy,
    Predicate,
    Stream,
    Sync,
}

/// One step over the whole run.
#[derive(Clone, Debug, Serialize)]
pub struct StepProfile {
    /// Its path, such as `main.blur`.
    pub name: String,
    /// What it does.
    pub kind: StepKind,
    /// File and line, where they are known.
    pub place: Option<String>,
    /// How often it ran.
    pub executions: u64,
    /// Cycles of all executions.
    #[serde(flatten)]
    pub total: Total,
    /// Of these, what every execution costs whatever it does: sync, latency of the first word, start of vertices.
    pub fixed: u64,
    /// Vertices, on the mean tile of the IPU that takes longest; tiles without a vertex count with 0.
    pub compute_mean: u64,
    /// `compute_mean / compute`: 1 is perfect.
    pub balance: Option<f64>,
    /// What the schedule takes for the words over the least that any schedule could take; 1 is perfect.
    pub schedule: Option<f64>,
    /// The tile whose vertices take longest, in the execution that takes longest.
    pub worst_tile: Option<u32>,
    /// Whether none of its vertices waits there for a worker that another one has: on more tiles they would take as long.
    pub worst_is_one_round: bool,
}

/// The tiles' memory.
#[derive(Clone, Debug, Serialize)]
pub struct Memory {
    /// What a program may use of a tile.
    pub usable_per_tile: u32,
    /// One past the highest byte used on the fullest tile.
    pub peak: u32,
    /// Tiles that hold anything.
    pub tiles_used: u32,
    /// By what it is for, largest first.
    pub categories: Vec<Category>,
    /// The fullest tiles, fullest first.
    pub fullest: Vec<TileMemory>,
}

/// Memory for one purpose.
#[derive(Clone, Debug, Serialize)]
pub struct Category {
    /// `variables`, `code` and so on.
    pub name: &'static str,
    /// Over all tiles; what shares an address counts each time.
    pub bytes: u64,
    /// On the tile that has most of it.
    pub worst: u32,
}

/// One tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TileMemory {
    /// Which.
    pub tile: u32,
    /// One past its highest byte in use.
    pub bytes: u32,
}

impl Total {
    /// Cycles on everything.
    pub fn cycles(&self) -> u64 {
        let parts = [self.sync, self.exchange, self.arrange(), self.compute, self.host];
        parts.into_iter().fold(0, u64::saturating_add)
    }

    /// Cycles on on-tile copies.
    pub fn arrange(&self) -> u64 {
        self.pre_arrange.saturating_add(self.post_arrange)
    }

    /// Takes in another sum.
    pub fn add(&mut self, other: &Total) {
        self.each(other, |sum, more| *sum = sum.saturating_add(more));
    }

    /// Adds what came after `before` another `times`.
    pub(crate) fn extend(&mut self, before: &Total, times: u64) {
        self.each(before, |now, then| *now = now.saturating_add((*now - then).saturating_mul(times)));
    }

    fn each(&mut self, other: &Total, f: impl Fn(&mut u64, u64)) {
        f(&mut self.sync, other.sync);
        f(&mut self.exchange, other.exchange);
        f(&mut self.pre_arrange, other.pre_arrange);
        f(&mut self.post_arrange, other.post_arrange);
        f(&mut self.compute, other.compute);
        f(&mut self.host, other.host);
        f(&mut self.bytes_inside, other.bytes_inside);
        f(&mut self.bytes_between, other.bytes_between);
    }
}

impl Profile {
    /// As one object of JSON on one line.
    pub fn to_json(&self) -> String {
        // Numbers, strings and lists of them: there is nothing that JSON cannot say.
        serde_json::to_string(self).unwrap_or_default()
    }
}
