//! The parameters of one machine: processors, memory, exchange, sync. `docs/machine.md` says of each key what it means
//! and where its value comes from.

use crate::costs::{Arrange, Host, Tile};
use crate::network::Links;

/// A virtual machine of one or more IPUs. Units stand in the field's name or doc; "cycles" are cycles of the tile clock.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// As `--target` takes it.
    pub name: String,
    /// One sentence.
    pub description: String,
    /// Processors, all alike.
    pub ipus: u32,
    /// The tiles of one processor.
    pub chip: Chip,
    /// One tile's memory.
    pub memory: Memory,
    /// What code costs on one tile.
    pub tile: Tile,
    /// The exchange inside one processor.
    pub exchange: Exchange,
    /// On-tile copies before and after an exchange.
    pub arrange: Arrange,
    /// What synchronising costs.
    pub sync: Sync,
    /// The network between processors.
    pub links: Links,
    /// Streams to and from the host.
    pub host: Host,
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
    /// The address that the hardware gives the first byte. Layouts count from 0; listings add this.
    pub base_address: u32,
    /// Bytes of one memory element (bank): one access a cycle.
    pub element_bytes: u32,
    /// The narrowest store, bytes.
    pub store_bytes: u32,
    /// Regions from the first byte upwards; they fill the memory.
    pub regions: Vec<MemoryRegion>,
}

/// A region of a tile's memory.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryRegion {
    /// Bytes: whole elements, or whole pairs of them where they are interleaved.
    pub bytes: u32,
    /// Whether code can run from it.
    pub executable: bool,
    /// Whether two elements are interleaved, so that 128 bits can be loaded at once.
    pub interleaved: bool,
}

/// The exchange inside one processor. There are no buffers on the wires: a tile receives at the rate at which another
/// sends, so one rate serves both ends.
#[derive(Clone, Debug, PartialEq)]
pub struct Exchange {
    /// Bytes that a tile sends, and at the same time receives, in a cycle.
    pub bytes_per_cycle: u32,
    /// Bytes that a tile receives in a cycle when the two tiles of a pair (`2k`, `2k + 1`) take the same stream.
    pub pair_bytes_per_cycle: u32,
    /// Cycles from the release of the sync to the first word landed, sender and receiver in row 0.
    pub latency_cycles: u32,
    /// Cycles more for each row of the sender.
    pub sender_row_cycles: u32,
    /// Cycles more for each row of the receiver.
    pub receiver_row_cycles: u32,
    /// Cycles that a tile needs to turn to another sender or to another address.
    pub switch_cycles: u32,
    /// Words of four bytes that one send instruction covers.
    pub words_per_send: u32,
    /// Instructions for each run of words that a tile receives: which sender, and where to.
    pub receive_instructions: u32,
    /// Bytes of one instruction of exchange code.
    pub instruction_bytes: u32,
}

/// Sync.
#[derive(Clone, Debug, PartialEq)]
pub struct Sync {
    /// Cycles to sync the tiles of one processor.
    pub internal_cycles: u32,
    /// Nanoseconds that a sync across processors takes beyond the internal one, however few they are.
    pub external_ns: f64,
    /// Nanoseconds for each hop of it, each way.
    pub hop_ns: f64,
}

/// What is wrong with a machine file; `span` is a range of bytes in it where that is known.
#[derive(Clone, Debug, PartialEq)]
pub struct MachineError {
    /// Lower case, no full stop.
    pub message: String,
    /// Bytes in the TOML text.
    pub span: Option<std::ops::Range<usize>>,
}

impl Machine {
    /// Returns all tiles of all processors.
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
        // A millionth of a cycle is rounding of the product, not time: 15 ns * 1.6 GHz * 10 is 240, not 241.
        (ns * self.chip.clock_hz / 1e9 - 1e-6).ceil().max(0.0) as u64
    }

    /// Returns the same machine with other numbers of processors and of tiles on each, all in row 0: for tests of what depends
    /// on those numbers alone.
    pub fn resized(self, ipus: u32, tiles: u32) -> Machine {
        let chip = Chip { tiles, columns: 1, rows: 1, lanes: tiles, ..self.chip };
        Machine { ipus, chip, ..self }
    }
}
