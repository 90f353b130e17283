//! The rows of the table of a compute set or copy, one item for each kind.
//!
//! Invariant: a row names variables and buffers as the tables do; nothing in it depends on the text.

use girder_ir::ids::CopyId;
use girder_ir::plan::{Loc, LocalCopy, Object};
use girder_ir::schedule::TransferSlice;
use smallvec::SmallVec;

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
    Locations {
        /// Family of the compute set, by position.
        family: u32,
        /// Field of the family, by position.
        field: u32,
        /// The first instance.
        first: u64,
        /// The number of instances, at least 1.
        count: u64,
        /// The location at which they land.
        at: LocationRun,
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
        to: SmallVec<[Receivers; 1]>,
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

/// Locations of consecutive instances.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LocationRun {
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

/// Receivers at one byte of the same variable on tiles at equal distances, or of such buffers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Receivers {
    /// The first receiver. The tile of a buffer is not read here; the table of buffers has it.
    pub first: Loc,
    /// The number of receivers, at least 1.
    pub count: u32,
    /// The number of tiles or buffers from one to the next, at least 1; the same in all rows of a family.
    pub step: u32,
}

impl Receivers {
    /// Creates a group of one receiver.
    pub fn one(first: Loc) -> Receivers {
        Receivers { first, count: 1, step: 1 }
    }

    /// Returns the k-th receiver; the tile of a buffer is not set.
    pub(super) fn member(&self, k: u32) -> Option<Loc> {
        let behind = k.checked_mul(self.step)?;
        Some(match self.first.object {
            Object::Var(_) => Loc { tile: self.first.tile.checked_add(behind)?, ..self.first },
            Object::Buffer(b) => Loc { object: Object::Buffer(b.checked_add(behind)?), ..self.first },
        })
    }
}
