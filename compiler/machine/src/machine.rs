//! The parameters of one machine: processors, memory, exchange, sync. `docs/machine.md` explains each key and the
//! source of its value.

use crate::costs::{Arrange, HostCosts, Streaming, Tile};
use crate::network::{Links, Topology};

/// A virtual machine of one or more IPUs. Units are in the field's name or comment; "cycles" are cycles of the tile
/// clock.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// The name by which `--target` selects it.
    pub name: String,
    /// A description in one sentence.
    pub description: String,
    /// Number of processors, which are equal.
    pub ipus: u32,
    /// The tiles of one processor.
    pub chip: Chip,
    /// One tile's memory.
    pub memory: Memory,
    /// The costs of code on one tile.
    pub tile: Tile,
    /// The exchange inside one processor.
    pub exchange: Exchange,
    /// On-tile copies before and after an exchange.
    pub arrange: Arrange,
    /// The costs of synchronisation.
    pub sync: Sync,
    /// The network between processors.
    pub links: Links,
    /// Streams to and from the host.
    pub host: HostCosts,
    /// Memory beside the tiles.
    pub streaming: Streaming,
    /// The partition of which this machine is the part of one replica.
    pub partition: Partition,
}

/// A partition: equal parts of a machine, one for each replica of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Number of replicas.
    pub replicas: u32,
    /// The topology of the whole partition.
    pub topology: Topology,
}

/// The tiles of one processor.
#[derive(Clone, Debug, PartialEq)]
pub struct Chip {
    /// Tiles of one processor: `columns * rows * lanes`.
    pub tiles: u32,
    /// Columns of the layout.
    pub columns: u32,
    /// Rows of a column.
    pub rows: u32,
    /// Tiles that share a row of a column.
    pub lanes: u32,
    /// Worker contexts of each tile.
    pub workers: u32,
    /// Tile clock, Hz.
    pub clock_hz: f64,
}

/// One tile's memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Memory {
    /// Bytes of a tile.
    pub bytes_per_tile: u32,
    /// Bytes at the top that programs may not use.
    pub reserved_bytes: u32,
    /// The hardware address of the first byte. Layouts count from 0; listings add this.
    pub base_address: u32,
    /// Bytes of one memory element (bank), which serves one access per cycle.
    pub element_bytes: u32,
    /// Bytes of the narrowest store.
    pub store_bytes: u32,
    /// Regions in ascending order from the first byte; they fill the memory.
    pub regions: Vec<MemoryRegion>,
}

/// A region of a tile's memory.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryRegion {
    /// Size in bytes: whole elements, or whole pairs of elements in an interleaved region.
    pub bytes: u32,
    /// Whether code can run from it.
    pub executable: bool,
    /// Whether two elements are interleaved, so that 128 bits can be loaded at once.
    pub interleaved: bool,
}

/// The exchange inside one processor. There are no buffers on the wires: a tile receives at the rate at which another
/// one sends, so one rate serves both ends.
#[derive(Clone, Debug, PartialEq)]
pub struct Exchange {
    /// Bytes that a tile can send, and at the same time receive, per cycle.
    pub bytes_per_cycle: u32,
    /// Bytes that a tile receives per cycle when the two tiles of a pair (`2k`, `2k + 1`) receive the same stream.
    pub pair_bytes_per_cycle: u32,
    /// Cycles from the release of the sync to the arrival of the first word, for sender and receiver in row 0.
    pub latency_cycles: u32,
    /// Additional cycles for each row of the sender.
    pub sender_row_cycles: u32,
    /// Additional cycles for each row of the receiver.
    pub receiver_row_cycles: u32,
    /// Cycles in which a tile switches to another sender or to another address.
    pub switch_cycles: u32,
    /// Words of four bytes that one send instruction covers.
    pub words_per_send: u32,
    /// Instructions for each run of words that a tile receives: its sender and its address.
    pub receive_instructions: u32,
    /// Bytes of one instruction of exchange code.
    pub instruction_bytes: u32,
}

/// The costs of synchronisation.
#[derive(Clone, Debug, PartialEq)]
pub struct Sync {
    /// Cycles to sync the tiles of one processor.
    pub internal_cycles: u32,
    /// Nanoseconds of a sync across processors beyond the internal sync, for any number of processors.
    pub external_ns: f64,
    /// Nanoseconds of each hop, each way.
    pub hop_ns: f64,
}

/// An error in a machine file; `span` is a range of bytes of the file, if known.
#[derive(Clone, Debug, PartialEq)]
pub struct MachineError {
    /// Lower case, no full stop.
    pub message: String,
    /// Bytes in the TOML text.
    pub span: Option<std::ops::Range<usize>>,
}

impl Machine {
    /// Returns the number of tiles of all processors.
    pub fn tiles(&self) -> u32 {
        self.ipus * self.chip.tiles
    }

    /// Returns the processor of a tile.
    pub fn ipu_of(&self, tile: u32) -> u32 {
        tile / self.chip.tiles
    }

    /// Returns the bytes of a tile that programs may use.
    pub fn usable_bytes(&self) -> u32 {
        self.memory.bytes_per_tile - self.memory.reserved_bytes
    }

    /// Returns the seconds of the tile clock.
    pub fn seconds(&self, cycles: u64) -> f64 {
        cycles as f64 / self.chip.clock_hz
    }

    /// Returns the whole cycles that cover a time.
    pub fn cycles_of_ns(&self, ns: f64) -> u64 {
        // A millionth of a cycle is a rounding error of the product: 15 ns * 1.6 GHz * 10 is 240, not 241.
        (ns * self.chip.clock_hz / 1e9 - 1e-6).ceil().max(0.0) as u64
    }

    /// Returns the machine with other numbers of processors and tiles, all in row 0, for tests that depend on these
    /// numbers only.
    pub fn resized(self, ipus: u32, tiles: u32) -> Machine {
        let chip = Chip { tiles, columns: 1, rows: 1, lanes: tiles, ..self.chip };
        Machine { ipus, chip, ..self }
    }
}
