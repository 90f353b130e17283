//! The table of `plan-transfers`: how each field reaches its data, and the data movement before and after each step.
//!
//! # Note: Phase-keeping layout
//! The elements of a variable on one tile form one block, run after run in flat order. Each run begins at a byte that
//! is congruent to its flat byte offset modulo 8 (see [`Homes`]). So the 4-byte granule of an element is known before
//! any address is.
//!
//! Invariants: transfers are whole words (4 bytes) between different tiles; within one phase no byte is written twice
//! and no byte is both read and written by transfers; local copies run after the transfers of their phase, in order.

mod receivers;

pub use receivers::{Grouping, Receivers, To};

use crate::ids::{ComputeSetId, CopyId, FamilyId, VarId};
use cranelift_entity::SecondaryMap;

/// A byte of an object on one tile.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct Loc {
    /// The tile.
    pub tile: u32,
    /// The object of the block.
    pub object: Object,
    /// Bytes into the block.
    pub offset: u32,
}

/// An object that has a block on a tile.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum Object {
    /// The tile's elements of a variable.
    Var(VarId),
    /// A landing buffer of the current plan, by index into [`StepPlan::buffers`].
    Buffer(u32),
}

/// A buffer for data from or to other tiles, or for gathered data; live only around its step.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Buffer {
    /// Its tile.
    pub tile: u32,
    /// Bytes, a multiple of 4.
    pub bytes: u32,
}

/// Whole words sent from one tile to others at the same time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Transfer {
    /// First word.
    pub from: Loc,
    /// First word on each receiver; receivers are different tiles, in ascending order.
    pub to: To,
    /// Number of words, at least 1.
    pub words: u32,
}

/// A copy of bytes inside a tile.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LocalCopy {
    /// First byte.
    pub from: Loc,
    /// First byte, on the same tile.
    pub to: Loc,
    /// Number of pieces, at least 1.
    pub count: u32,
    /// Bytes of each piece.
    pub bytes: u32,
    /// Bytes from piece to piece at the source.
    pub from_step: i32,
    /// Bytes from piece to piece at the destination.
    pub to_step: i32,
}

/// The data movement of one exchange.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Phase {
    /// On-tile copies before the transfers (a pre-arrangement).
    pub before: Vec<LocalCopy>,
    /// Transfers between tiles.
    pub transfers: Vec<Transfer>,
    /// Locations on several tiles, which transfers name as their receivers.
    pub groups: Vec<Vec<Loc>>,
    /// On-tile copies after the transfers.
    pub after: Vec<LocalCopy>,
}

/// Where a field of one instance finds its elements on the vertex's tile.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FieldLocation {
    /// In its variable's block: element (0, …, 0) is at this byte of the block, strides as in
    /// [`FieldLocations::strides`].
    InPlace(u32),
    /// In a buffer from byte `offset` on, row-major and contiguous.
    Buffer {
        /// Index into [`StepPlan::buffers`].
        buffer: u32,
        /// First byte.
        offset: u32,
    },
}

/// How one field of a family reaches its data.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FieldLocations {
    /// One per instance.
    pub at: Vec<FieldLocation>,
    /// Byte strides per axis of the instances that are in place; one entry per distinct set, with the instances that
    /// use it as `strides_of`.
    pub strides: Vec<Vec<i32>>,
    /// Per instance: an index into `strides` (0 where the field lands in a buffer).
    pub strides_of: Vec<u32>,
}

impl FieldLocations {
    /// Adds the location of the next instance. `strides` are its byte strides if it is in place.
    pub fn push(&mut self, at: FieldLocation, strides: &[i32]) {
        let index = match at {
            FieldLocation::InPlace(_) => intern_strides(&mut self.strides, strides),
            FieldLocation::Buffer { .. } => 0,
        };
        self.at.push(at);
        self.strides_of.push(index);
    }
}

/// Returns the index of strides in a list of distinct ones; adds them if they are new.
pub fn intern_strides(list: &mut Vec<Vec<i32>>, strides: &[i32]) -> u32 {
    // Strides are a few numbers: this loop is faster than a call of `memcmp`.
    let same = |s: &Vec<i32>| s.len() == strides.len() && s.iter().zip(strides).all(|(a, b)| a == b);
    let index = list.iter().rposition(same).unwrap_or_else(|| {
        list.push(strides.to_vec());
        list.len() - 1
    });
    index as u32
}

/// The plan of a compute set (both phases) or of a copy (`before` only).
///
/// A copy between replicas has one plan for all pairs of replicas. Its tiles below the number of tiles of a replica are
/// those of the sender. The receiver's tiles follow them, once for each of the copy's lists of pairs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StepPlan {
    /// Landing buffers.
    pub buffers: Vec<Buffer>,
    /// The exchange before the vertices run.
    pub before: Phase,
    /// The exchange after the vertices have run.
    pub after: Phase,
    /// A copy that moves in the first phase of a compute set: it is the step right before the set, the two are
    /// independent, and its own plan is empty.
    pub carries: Option<CopyId>,
}

impl StepPlan {
    /// Returns, for each buffer, the number of buffers before it on its tile, by which the layout names it; `tiles` is
    /// the number of tiles of a replica.
    pub fn buffer_ranks(&self, tiles: u32) -> Vec<u32> {
        let end = self.buffers.iter().map(|b| b.tile as usize + 1).max().unwrap_or(0);
        let mut counts = vec![0; end.min(tiles as usize)];
        let rank = |b: &Buffer| {
            let count = &mut counts[(b.tile % tiles) as usize];
            *count += 1;
            *count - 1
        };
        self.buffers.iter().map(rank).collect()
    }
}

/// The table of plans.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The plan of every compute set.
    pub sets: SecondaryMap<ComputeSetId, StepPlan>,
    /// The plan of every copy.
    pub copies: SecondaryMap<CopyId, StepPlan>,
    /// The locations of every family: one entry per field, in the family's order.
    pub locations: SecondaryMap<FamilyId, Vec<FieldLocations>>,
}

/// A run of a variable's elements on one tile. Fields are 32 bits wide because runs are many; a variable has fewer than
/// 2³² elements.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct HomeRun {
    /// First flat element.
    pub start: u32,
    /// One past the last.
    pub end: u32,
    /// Its tile.
    pub tile: u32,
    /// Byte of the first element in the tile's block of the variable.
    pub offset: u32,
}

impl HomeRun {
    /// Returns its flat elements.
    pub fn elements(&self) -> std::ops::Range<u64> {
        self.start as u64..self.end as u64
    }
}

/// An index of runs: the run of one element in every `2^shift`. There are at most as many entries as runs, and at least
/// half as many, so a few steps find the run of any element.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunIndex {
    /// The binary logarithm of the distance between samples.
    pub shift: u32,
    /// The run of each sampled element.
    pub runs: Vec<u32>,
}

/// Rows of blocks: groups of runs that repeat with equal lengths on the same tiles.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunRows {
    /// Runs from one row to the next; 0 if there are no rows.
    pub jump: usize,
    /// Elements from one row to the next.
    pub distance: u64,
    /// By run: how often it repeats at equal distances within its block.
    pub again: Vec<u32>,
}

/// The location of every element of one variable; a function of its mapping.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Homes {
    /// Ascending, covering all elements.
    pub runs: Vec<HomeRun>,
    /// The index for finding the run of an element.
    pub index: RunIndex,
    /// The rows of blocks among the runs.
    pub rows: RunRows,
    /// Bytes of the block on each tile that holds any, by ascending tile.
    pub blocks: Vec<(u32, u32)>,
    /// Bytes of one element.
    pub elem_bytes: u32,
}
