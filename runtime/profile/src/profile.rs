//! The data of a profile. All cycles are tile cycles of the target, and all sizes are bytes.

use girder_ir::ids::ProgramId;
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

fn is_one(n: &u32) -> bool {
    *n == 1
}

/// The profile of one run, of one program or of several programs in sequence.
#[derive(Clone, Debug, Serialize)]
pub struct Profile {
    /// The machine's name.
    pub target: String,
    /// The number of its IPUs.
    pub ipus: u32,
    /// The number of replicas, each of which has `ipus` IPUs. The figures are those of one replica.
    #[serde(skip_serializing_if = "is_one")]
    pub replicas: u32,
    /// The number of tiles of each IPU.
    pub tiles_per_ipu: u32,
    /// Its clock in Hz.
    pub clock_hz: f64,
    /// The clock of the IPU that ends last.
    pub cycles: u64,
    /// Whether the cycles exceed 64 bits; `cycles` and the sums are then lower bounds.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub overflows: bool,
    /// `cycles` in seconds of the target.
    pub seconds: f64,
    /// The number of executions of compute sets and copies.
    pub supersteps: u64,
    /// Sums over the steps.
    pub total: Total,
    /// The steps that took part, in program order.
    pub steps: Vec<StepProfile>,
    /// The programs that others call, such as the phases of a pipeline.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub called: Vec<CalledProgram>,
    /// The stages of the pipeline that takes most, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stages: Option<Stages>,
    /// The processors, if there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub processors: Vec<Processor>,
    /// The tiles' memory.
    pub memory: MemoryUse,
    /// A sentence that names the bottleneck of the program.
    pub limit: String,
}

/// Cycles by kind: for each execution, those of the IPU that takes longest. In JSON, `cycles` is their sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Total {
    /// Cycles of waiting for syncs.
    pub sync: u64,
    /// Cycles of words in transit, including latency.
    pub exchange: u64,
    /// Cycles of on-tile copies before exchanges.
    pub pre_arrange: u64,
    /// Cycles of on-tile copies after exchanges.
    pub post_arrange: u64,
    /// Cycles of vertices on the fullest tile.
    pub compute: u64,
    /// Cycles of words between host and machine, and of the host's answers.
    pub host: u64,
    /// Bytes that tiles received from tiles of their own IPU.
    pub bytes_inside: u64,
    /// Bytes that IPUs received from others.
    pub bytes_between: u64,
}

/// The kind of a step.
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
    /// Its kind.
    pub kind: StepKind,
    /// The file and line, if known.
    #[serde(rename = "place")]
    pub location: Option<String>,
    /// The files and lines of other statements whose vertices a merged superstep runs too.
    pub also: Vec<String>,
    /// The number of executions.
    pub executions: u64,
    /// The cycles of all executions.
    #[serde(flatten)]
    pub total: Total,
    /// The fixed part of every execution: syncs, latency of the first word, start of vertices.
    pub fixed: u64,
    /// Cycles of vertices on the mean tile of the IPU that takes longest; tiles without a vertex count as 0.
    pub compute_mean: u64,
    /// `compute_mean / compute`: 1 is perfect.
    pub balance: Option<f64>,
    /// The length of the schedule over the least length of any schedule; 1 is perfect.
    pub schedule: Option<f64>,
    /// The tile whose vertices take longest, in the execution that takes longest.
    pub worst_tile: Option<u32>,
    /// Whether the step is in a branch of a `par` and waits for IPUs of another branch, with which it exchanges words.
    pub waits: bool,
    /// Whether no vertex waits there for a worker that another one occupies: more tiles would not be faster.
    pub worst_is_one_round: bool,
    /// Whether the host moves its packets ahead.
    #[serde(skip)]
    pub is_ahead: bool,
}

/// A program that others call.
#[derive(Clone, Debug, Serialize)]
pub struct CalledProgram {
    #[serde(skip)]
    pub(crate) program: ProgramId,
    /// Its name.
    pub name: String,
    /// The file and line, if known.
    #[serde(rename = "place")]
    pub location: Option<String>,
    /// The number of calls.
    pub calls: u64,
    /// The cycles of its steps in a call, on average.
    pub cycles: u64,
    /// The processors on which its steps run.
    pub ipus: Vec<u32>,
    /// Whether it overlaps with others, as the phases of a pipeline do.
    pub overlaps: bool,
}

/// The stages of a pipeline, in the slots in which all of them work.
#[derive(Clone, Debug, Serialize)]
pub struct Stages {
    /// The processors of the slowest stage.
    pub slowest: Vec<u32>,
    /// Its programs: the stage and its reverse.
    pub programs: Vec<String>,
    /// Their cycles.
    pub cycles: u64,
    /// The mean over the stages, which is what each would take if all were equal.
    pub mean: u64,
    /// The part of the cycles of all processors in use in which they wait for others: while a pipeline fills or drains,
    /// for slower stages, and for what runs on some processors alone.
    pub bubble: f64,
    /// A more even cut, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut: Option<Cut>,
}

/// A cut of a pipeline into other stages, with estimated cycles.
#[derive(Clone, Debug, Serialize)]
pub struct Cut {
    /// The cycles of a slot of the slowest stage.
    pub cycles: u64,
    /// The stages.
    pub stages: Vec<CutStage>,
}

/// A stage of a cut.
#[derive(Clone, Debug, Serialize)]
pub struct CutStage {
    /// Its processors.
    pub ipus: Vec<u32>,
    /// Its cycles in a slot, with its reverse.
    pub cycles: u64,
    /// The calls of the program that it has, in order, and how often each comes in a row.
    pub calls: Vec<(String, u32)>,
}

/// A processor of several.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Processor {
    /// Its number.
    pub ipu: u32,
    /// The cycles in which it works, syncs, exchanges words or waits for the host; in the others it waits for another
    /// processor.
    pub busy: u64,
    /// The bytes of params on its tiles.
    pub params: u64,
    /// The bytes of states, such as slots of optimisers.
    pub states: u64,
    /// The bytes of rings and of what lands from other processors.
    pub rings: u64,
    /// The bytes of other variables and of buffers; those that share an address all count.
    pub values: u64,
    /// The bytes of code and of vertices.
    pub code: u64,
}

/// The tiles' memory.
#[derive(Clone, Debug, Serialize)]
pub struct MemoryUse {
    /// The usable bytes of a tile.
    pub usable_per_tile: u32,
    /// One past the highest byte used on the fullest tile.
    pub peak: u32,
    /// The number of tiles that hold data or code.
    pub tiles_used: u32,
    /// The memory by purpose, largest first.
    pub categories: Vec<Category>,
    /// The fullest tiles, fullest first.
    pub fullest: Vec<TileMemory>,
    /// What is kept for reverse programs.
    pub kept: KeptForReverse,
    /// The bytes of remote buffers of a replica.
    pub remote: u64,
    /// The bytes beside the tiles of a replica, for remote buffers.
    pub beside: u64,
    /// The processor with the most bytes of remote buffers beside it; the first such.
    pub remote_fullest: Option<RemoteMemory>,
}

/// The remote buffers beside one processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RemoteMemory {
    /// The processor.
    pub ipu: u32,
    /// The bytes of rows that its tiles hold.
    pub bytes: u64,
}

/// What is kept for reverse programs: the values that other steps write and those of a reverse program read.
#[derive(Clone, Debug, Default, Serialize)]
pub struct KeptForReverse {
    /// The bytes over all tiles.
    pub bytes: u64,
    /// The most bytes that are kept at one time on one tile.
    pub worst: u32,
    /// The values by origin, largest first.
    pub values: Vec<KeptValues>,
}

/// Values that are kept for reverse programs and have the same origin.
#[derive(Clone, Debug, Serialize)]
pub struct KeptValues {
    /// The path of the first, without a number at its end.
    pub name: String,
    /// The file and line of the step that makes them, if known.
    #[serde(rename = "place")]
    pub location: Option<String>,
    /// Their number.
    pub count: u32,
    /// The bytes over all tiles.
    pub bytes: u64,
    /// The most bytes that are kept at one time on one tile.
    pub worst: u32,
}

/// The memory for one purpose.
#[derive(Clone, Debug, Serialize)]
pub struct Category {
    /// `variables`, `code` and so on.
    pub name: &'static str,
    /// The bytes over all tiles; blocks that share an address all count.
    pub bytes: u64,
    /// The bytes on the tile that has most of it.
    pub worst: u32,
    /// The bytes on the fullest tile at its fullest moment.
    pub at_peak: u32,
}

/// The memory of one tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TileMemory {
    /// The tile.
    pub tile: u32,
    /// One past its highest byte in use.
    pub bytes: u32,
}

impl Serialize for Total {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fields = [
            ("cycles", self.cycles()),
            ("sync", self.sync),
            ("exchange", self.exchange),
            ("pre_arrange", self.pre_arrange),
            ("post_arrange", self.post_arrange),
            ("compute", self.compute),
            ("host", self.host),
            ("bytes_inside", self.bytes_inside),
            ("bytes_between", self.bytes_between),
        ];
        let mut all = serializer.serialize_struct("Total", fields.len())?;
        for (name, value) in fields {
            all.serialize_field(name, &value)?;
        }
        all.end()
    }
}

impl Total {
    /// Returns the sum of all cycles.
    pub fn cycles(&self) -> u64 {
        let parts = [self.sync, self.exchange, self.arrange(), self.compute, self.host];
        parts.into_iter().fold(0, u64::saturating_add)
    }

    /// Returns the cycles of on-tile copies.
    pub fn arrange(&self) -> u64 {
        self.pre_arrange.saturating_add(self.post_arrange)
    }

    /// Adds another sum.
    pub fn add(&mut self, other: &Total) {
        self.each(other, |sum, more| *sum = sum.saturating_add(more));
    }

    /// Adds the increase since `before` another `times` times.
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
    /// Returns the profile as one JSON object on one line.
    pub fn to_json(&self) -> String {
        // Everything here is a number, a string or a list, which JSON can represent.
        serde_json::to_string(self).unwrap_or_default()
    }
}
