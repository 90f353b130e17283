//! The table of `allocate-memory`: an address for every block on every tile.
//!
//! Tiles that hold the same blocks at the same addresses are one class, so that a regular program has a handful of
//! classes however many tiles it runs on.
//!
//! Invariants: no tile is in two classes; blocks of one tile that are live together do not overlap; a block starts at a
//! multiple of 8. Every block lies inside the tile's usable memory, unless the user allows more
//! (`Session::allow_over_memory`).

mod tiles;

pub use tiles::{StridedTiles, TileSet};

use crate::ids::{ComputeSetId, CopyId, SpecId, StreamId, VarId};
use std::ops::Range;

/// The content of a block of a tile's memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum Content {
    /// The code of a codelet.
    Code(SpecId),
    /// The exchange code that sends and receives for a compute set.
    SetExchange(ComputeSetId),
    /// The exchange code that sends and receives for a copy.
    CopyExchange(CopyId),
    /// The state of the tile's vertices of a compute set: pointers, sizes, constants.
    VertexState(ComputeSetId),
    /// The local arrays of the tile's workers while a compute set runs.
    Stack(ComputeSetId),
    /// The tile's elements of a variable.
    Var(VarId),
    /// A landing buffer of a compute set's plan: the n-th of those on the tile, in the order of the plan.
    SetBuffer(ComputeSetId, u32),
    /// A landing buffer of a copy's plan, numbered in the same way.
    CopyBuffer(CopyId, u32),
    /// The tile's part of the packets that a stream holds `ahead`.
    Packets(StreamId),
}

/// A block of a tile's memory, with its content and its lifetime.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct MemoryBlock {
    /// What it holds.
    pub content: Content,
    /// Address of the first byte, from 0 at the start of the tile's memory.
    pub address: u32,
    /// Its size.
    pub bytes: u32,
    /// The points of the liveness order (see `allocate-memory`) at which it holds data; `None` is always.
    pub live: Option<Range<u32>>,
}

/// The blocks of tiles that have equal blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TileClass {
    /// The tiles.
    pub tiles: TileSet,
    /// Ascending by content.
    pub blocks: Vec<MemoryBlock>,
}

impl TileClass {
    /// Returns the end of the highest byte in use.
    pub fn peak(&self) -> u32 {
        self.blocks.iter().map(|b| b.address + b.bytes).max().unwrap_or(0)
    }

    /// Returns the block of a content.
    pub fn block(&self, content: Content) -> Option<&MemoryBlock> {
        self.blocks.binary_search_by_key(&content, |b| b.content).ok().map(|i| &self.blocks[i])
    }
}

/// The table of addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    classes: Vec<TileClass>,
    /// By tile: one more than the index of its class; 0 is none.
    class_of: Vec<u32>,
}

impl Layout {
    /// Builds the table from classes in any order; the error is a tile that is in two of them.
    pub fn new(mut classes: Vec<TileClass>) -> Result<Layout, u32> {
        classes.retain(|c| c.tiles.first().is_some());
        classes.sort_by_key(|c| c.tiles.first());
        let end = classes.iter().filter_map(|c| c.tiles.end()).max().unwrap_or(0);
        let mut class_of = vec![0; end as usize];
        for (k, class) in (1..).zip(&classes) {
            for tile in class.tiles.iter() {
                if std::mem::replace(&mut class_of[tile as usize], k) != 0 {
                    return Err(tile);
                }
            }
        }
        Ok(Layout { classes, class_of })
    }

    /// Returns the classes, ascending by their first tiles.
    pub fn classes(&self) -> &[TileClass] {
        &self.classes
    }

    /// Returns the index of a tile's class, if anything is on the tile.
    pub fn class_of(&self, tile: u32) -> Option<usize> {
        let k = *self.class_of.get(tile as usize)?;
        (k as usize).checked_sub(1)
    }

    /// Returns the class of a tile, if anything is on the tile.
    pub fn class(&self, tile: u32) -> Option<&TileClass> {
        Some(&self.classes[self.class_of(tile)?])
    }

    /// Returns the blocks on a tile.
    pub fn blocks(&self, tile: u32) -> &[MemoryBlock] {
        self.class(tile).map_or(&[], |c| &c.blocks)
    }

    /// Returns the address of a content on a tile.
    pub fn address(&self, tile: u32, content: Content) -> Option<u32> {
        Some(self.class(tile)?.block(content)?.address)
    }

    /// Returns the tiles with something on them, ascending.
    pub fn tiles(&self) -> impl Iterator<Item = u32> {
        (0u32..).zip(&self.class_of).filter(|(_, k)| **k > 0).map(|(tile, _)| tile)
    }

    /// Returns the end of the highest byte in use on any tile.
    pub fn peak(&self) -> u32 {
        self.classes.iter().map(TileClass::peak).max().unwrap_or(0)
    }
}

/// Memory of the fast engine: one block of host memory for all variables, shared by variables that are never live
/// together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostLayout {
    /// Byte offset of each variable, by id; multiples of 64.
    pub offsets: Vec<u64>,
    /// Size of the block.
    pub bytes: u64,
}
