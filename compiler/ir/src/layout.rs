//! The table of `allocate-memory`: an address for every block on every tile.
//!
//! Invariants: blocks of one tile that are live together do not overlap; every block lies inside the tile's usable
//! memory; a variable's block and every buffer start at a multiple of 8.

use crate::ids::{ComputeSetId, CopyId, SpecId, VarId};
use std::ops::Range;

/// What occupies memory on a tile.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum Content {
    /// The code of a codelet.
    Code(SpecId),
    /// The state of the tile's vertices of a compute set: pointers, sizes, constants.
    VertexState(ComputeSetId),
    /// The local arrays of the tile's workers while a compute set runs.
    Stack(ComputeSetId),
    /// The tile's elements of a variable.
    Var(VarId),
    /// A landing buffer of a compute set's plan.
    SetBuffer(ComputeSetId, u32),
    /// A landing buffer of a copy's plan.
    CopyBuffer(CopyId, u32),
}

/// Bytes of a tile's memory with what is in them and when.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Block {
    /// What.
    pub content: Content,
    /// Address of the first byte, from 0 at the start of the tile's memory.
    pub address: u32,
    /// How many bytes.
    pub bytes: u32,
    /// Points of the liveness order (see `allocate-memory`) at which it holds data; `None` is always.
    pub live: Option<Range<u32>>,
}

/// The whole table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// Per tile, ascending by tile: its blocks, ascending by content. Tiles without blocks are absent.
    pub tiles: Vec<(u32, Vec<Block>)>,
}

impl Layout {
    /// The address of a content on a tile.
    pub fn address(&self, tile: u32, content: Content) -> Option<u32> {
        let i = self.tiles.binary_search_by_key(&tile, |(t, _)| *t).ok()?;
        let blocks = &self.tiles[i].1;
        let b = blocks.binary_search_by_key(&content, |b| b.content).ok()?;
        Some(blocks[b].address)
    }

    /// One past the highest byte in use on any tile.
    pub fn peak(&self) -> u32 {
        self.tiles.iter().flat_map(|(_, b)| b).map(|b| b.address + b.bytes).max().unwrap_or(0)
    }
}

/// Memory of the fast engine: one block of host memory for all variables, shared by what is never live together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostLayout {
    /// Byte offset of each variable, by id; multiples of 64.
    pub offsets: Vec<u64>,
    /// Bytes in all.
    pub bytes: u64,
}
