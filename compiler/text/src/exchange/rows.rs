//! A plan and its schedule as rows: the neutral form between the tables and the items `exchange NAME { … }` of a
//! printed stage.
//!
//! # Note: Text of a row
//! ```gir
//! exchange main.matvec {
//!     cycles(before, 0..2): 784;                                  // on processors 0 and 1, of the phase before
//!     links(after): 2008;                                         // between processors, of the phase after
//!     carries: main.copy;                                         // this copy moves in the phase before
//!     buffer(0..3): tile: 1, next: 1, bytes: 3136;                // buffers 0, 1, 2 on tiles 1, 2, 3
//!     field(0, w, 0..10): byte: 0, step: 3136, strides: [4];   // in place: vertex i at byte 0 + 3136 · i of its block
//!     field(0, x, 3..5): buffer: 0, next: 0, byte: 0, step: 0; // in a buffer: vertices 3 and 4 in buffer 0 at byte 0
//!     gather_before: x[0, 64], bytes: 4, count: 8, steps: [64, 4] -> buffer(4)[0];
//!     before(0): x[0, 0], words: 784 -> [buffer(0..3)[0]];        // from cycle 0; to buffers 0, 1, 2
//!     before: x[0, 784], words: 90 -> [buffer(0..3)[784]];        // in pieces:
//!     piece(before, 1, 784, wide): 0..30;                         // words 0 to 29 of transfer 1, from cycle 784
//!     piece(before, 1, 990): 30..90, to: [0..2];                  // words 30 to 89 to its first two receivers
//!     spread_before: buffer(5)[2], bytes: 3 -> y[3, 1];           // 3 bytes, on tile 3
//!     after(0): buffer(0)[0], words: 2 -> [y[0, 8], z[1..3, 16]]; // to y on tile 0, z on tiles 1 and 2
//! }
//! ```
//! `x[t, b]` is byte b of the block of `x` on tile t, and `x[t..u, b]` is such a byte on each tile of a range.
//! `buffer(k)[b]` is byte b of buffer k, whose tile is known. A sender that is one of several receivers sends to the
//! others. `wide` marks a transfer at the rate of a pair of tiles. `next`, `step`, `count` and `steps` may be left out
//! where they are 0, 0, 1 and [0, 0], and `strides` where it is empty. Without a schedule there are no rows `cycles`,
//! `links` and `piece`, and `before:` and `after:` have no cycle. With a schedule, only transfers to other processors
//! have no cycle.
//!
//! # Note: Families of rows
//! `before(4 * i): x[i + 46 * j, 0], words: 16 -> [y[1 + i + 46 * j, 8]] for j in 0..32, i in 0..45;` stands for one
//! row for each combination of indices, the last index fastest. Every number of a row may be a sum of a constant and
//! multiples of indices, which start at 0. See [`RowFamily`].
//!
//! Invariants: `from_rows ∘ to_rows` is the identity on tables that the passes make. No rows make [`from_rows`] panic
//! or use memory out of proportion to the graph; the verifiers decide whether the tables are valid.

mod families;
mod from_tables;
mod numbers;
#[cfg(test)]
mod tests;
mod to_tables;

pub use families::{Dim, MAX_RANK, RowFamily, fold};
pub use from_tables::to_rows;
pub use numbers::Numbers;
pub use to_tables::{Tables, from_rows};

use girder_ir::ids::CopyId;
use girder_ir::plan::{Loc, LocalCopy, Object};
use girder_ir::schedule::TransferSlice;

/// One row of the table of a compute set or copy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Row {
    /// `cycles(phase, first..first + count): cycles;`
    Cycles {
        /// The phase.
        phase: When,
        /// The first processor.
        first: u32,
        /// The number of processors, at least 1.
        count: u32,
        /// Cycles from the first word of each processor to its last.
        cycles: u32,
    },
    /// `links(phase): cycles;`
    Links {
        /// The phase.
        phase: When,
        /// Cycles of the words between processors.
        cycles: u32,
    },
    /// `carries: copy;`
    Carries {
        /// The copy that moves in the phase before.
        copy: CopyId,
    },
    /// `buffer(first..first + count): tile: …, next: …, bytes: …;`
    Buffers {
        /// Number of the first buffer.
        first: u32,
        /// The number of buffers, at least 1.
        count: u32,
        /// Tile of the first buffer.
        tile: u32,
        /// Tiles from one buffer to the next.
        next: i32,
        /// Bytes of each buffer.
        bytes: u32,
    },
    /// `field(family, field, first..first + count): …;`
    Landings {
        /// Family of the compute set, by position.
        family: u32,
        /// Field of the family, by position.
        field: u32,
        /// The first instance.
        first: u64,
        /// The number of instances, at least 1.
        count: u64,
        /// The location at which they land.
        at: Landed,
    },
    /// `gather_before: from, bytes: …, count: …, steps: [from, to] -> to;`, and `spread_before`, `gather_after`,
    /// `spread_after`.
    Copy {
        /// The phase.
        phase: When,
        /// `gather` (before the transfers) or `spread` (after them).
        gather: bool,
        /// The copy inside the tile.
        copy: LocalCopy,
    },
    /// `before(start, wide): from, words: … -> [to, …];`
    Transfer {
        /// The phase.
        phase: When,
        /// Its first cycle and whether it moves at the rate of a pair of tiles, once scheduled.
        start: Option<(u32, bool)>,
        /// The first word.
        from: Loc,
        /// The number of words.
        words: u32,
        /// Groups of receivers, at least one.
        to: Vec<Receivers>,
    },
    /// `piece(phase, transfer, start, wide): first..first + words, to: [receiver, …];`
    Slice {
        /// The phase.
        phase: When,
        /// The words, their first cycle and the rate. The receivers are in `to`.
        slice: TransferSlice,
        /// Ranges of receivers, by position (first, count); empty if the slice serves all receivers.
        to: Vec<(u32, u32)>,
    },
}

/// The phase before or after the vertices run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum When {
    Before,
    After,
}

/// Landings of consecutive instances.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Landed {
    /// `byte: …, step: …, strides: […]`
    InPlace {
        /// Byte of the first instance in its variable's block.
        byte: u32,
        /// Bytes from one instance to the next.
        step: i64,
        /// Stride of each axis in bytes.
        strides: Vec<i32>,
    },
    /// `buffer: …, next: …, byte: …, step: …`
    Buffer {
        /// Buffer of the first instance.
        buffer: u32,
        /// Buffers from one instance to the next.
        next: i64,
        /// Byte of the first instance.
        byte: u32,
        /// Bytes from one instance to the next.
        step: i64,
    },
}

/// Receivers at one byte of the same variable on consecutive tiles, or of consecutive buffers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Receivers {
    /// The first receiver. The tile of a buffer is not read here; the table of buffers has it.
    pub first: Loc,
    /// The number of receivers, at least 1.
    pub count: u32,
}

/// Returns the k-th receiver of a group that begins at `first`; the tile of a buffer is not set.
fn member(first: Loc, k: u32) -> Option<Loc> {
    Some(match first.object {
        Object::Var(_) => Loc { tile: first.tile.checked_add(k)?, ..first },
        Object::Buffer(b) => Loc { object: Object::Buffer(b.checked_add(k)?), ..first },
    })
}
