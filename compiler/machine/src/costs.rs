//! The costs of work on one tile: instructions, vertices, on-tile copies, streams to the host.
//!
//! A *bundle* is the unit that one worker issues at a time; it issues one in every [`Tile::worker_period`] cycles.

/// The costs of code on one tile.
#[derive(Clone, Debug, PartialEq)]
pub struct Tile {
    /// Cycles between two bundles of one worker, however many workers are active.
    pub worker_period: u32,
    /// Bytes of the widest vector that one instruction works on.
    pub vector_bytes: u32,
    /// Bytes that one bundle can load, from different elements or from an interleaved region.
    pub load_bytes: u32,
    /// Bytes that one bundle can store.
    pub store_bytes: u32,
    /// Bundles of an iteration of a counted loop beyond its body: increment, compare, branch.
    pub loop_bundles: u32,
    /// Cycles of a compute set on a tile beyond its vertices: launch, end, and return to the program.
    pub launch_cycles: u32,
    /// Cycles of the supervisor for a `multi codelet`, or each time that it fills the workers with vertices.
    pub supervisor_cycles: u32,
    /// Bundles of a worker for each vertex beyond its body and its fields: start, end.
    pub vertex_bundles: u32,
    /// Bundles for each field of a vertex: loading its pointer and length.
    pub field_bundles: u32,
    /// Bundles in which a worker finds its share of a `multi codelet`.
    pub share_bundles: u32,
    /// Bundles of an operation for which the tile has no instruction: 64-bit floats and integers.
    pub emulated_bundles: u32,
    /// Instructions on `f32` that take more than one bundle.
    pub f32: Bundles,
    /// Instructions on `f16` that take more than one bundle.
    pub f16: Bundles,
    /// Operations on integers of up to 32 bits that take more than one bundle.
    pub int: IntegerBundles,
    /// The multiply-add units.
    pub multiply_adds: MultiplyAdds,
}

/// Bundles of the floating-point instructions that take more than one; all others take one.
#[derive(Clone, Debug, PartialEq)]
pub struct Bundles {
    /// Elements of one instruction; fewer cost as much.
    pub elements: u32,
    /// Division.
    pub div: u32,
    /// Square root.
    pub sqrt: u32,
    /// Reciprocal square root.
    pub rsqrt: u32,
    /// Exponential.
    pub exp: u32,
    /// Logarithm.
    pub log: u32,
    /// Hyperbolic tangent.
    pub tanh: u32,
    /// Logistic function.
    pub sigmoid: u32,
    /// Sine, cosine: software.
    pub sin: u32,
}

/// Bundles of the integer operations that take more than one.
#[derive(Clone, Debug, PartialEq)]
pub struct IntegerBundles {
    /// Multiplication.
    pub mul: u32,
    /// Division and remainder: software.
    pub div: u32,
}

/// Multiply-adds of the matrix unit per cycle of one tile, all workers together, and the rates at which coefficients
/// are loaded.
#[derive(Clone, Debug, PartialEq)]
pub struct MultiplyAdds {
    /// `f16` inputs, `f16` sums.
    pub f16_f16: u32,
    /// `f16` inputs, `f32` sums.
    pub f16_f32: u32,
    /// `f32` inputs and sums.
    pub f32: u32,
    /// Bytes of coefficients loaded in a cycle from an interleaved region.
    pub coefficient_bytes: u32,
    /// Bytes of coefficients loaded in a cycle from a plain region.
    pub plain_coefficient_bytes: u32,
}

/// On-tile copies that gather data before they are sent and spread data after they have arrived.
#[derive(Clone, Debug, PartialEq)]
pub struct Arrange {
    /// Before the exchange.
    pub before: Copying,
    /// After the exchange.
    pub after: Copying,
}

/// The costs of copying on one tile.
#[derive(Clone, Debug, PartialEq)]
pub struct Copying {
    /// Cycles of a step in which the tile copies anything.
    pub fixed_cycles: u32,
    /// Additional cycles for each contiguous run.
    pub run_cycles: u32,
    /// Bytes copied in a cycle.
    pub bytes_per_cycle: f64,
}

/// Streams to and from the host.
#[derive(Clone, Debug, PartialEq)]
pub struct HostCosts {
    /// Cycles until the host answers.
    pub begin_cycles: u32,
    /// Cycles of the copy beyond its bytes.
    pub copy_cycles: u32,
    /// Cycles until the program goes on.
    pub end_cycles: u32,
    /// Bytes per second, each way.
    pub bytes_per_second: f64,
}

/// Memory beside the tiles: the rows of remote buffers.
#[derive(Clone, Debug, PartialEq)]
pub struct Streaming {
    /// Bytes for each processor.
    pub bytes: u64,
    /// Bytes per second of each processor, each way.
    pub bytes_per_second: f64,
    /// Cycles until the first word has come.
    pub latency_cycles: u32,
}

impl Copying {
    /// Returns the cycles of one tile that copies this number of bytes in this number of runs.
    pub fn cycles(&self, bytes: u64, runs: u64) -> u64 {
        if bytes == 0 {
            return 0;
        }
        let words = (bytes as f64 / self.bytes_per_cycle).ceil() as u64;
        (self.fixed_cycles as u64).saturating_add(runs.saturating_mul(self.run_cycles as u64)).saturating_add(words)
    }
}
