//! The landing, send and staging buffers of one step while they grow.
//!
//! Invariant: one buffer per tile and use, as long as all regions of a field are asked for before those of the next; what
//! is given out never overlaps, and different regions share no word.

use girder_ir::plan::Buffer;

/// What a buffer is for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Use {
    /// Fields of a compute set's vertices: family and field, by position.
    Field(u32, u32),
    /// Pieces made contiguous before they are sent.
    Send,
    /// Words that hold bytes to be copied to their places.
    Stage,
}

/// Why there is no plan.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stop {
    /// A buffer needs more bytes than its tile has.
    TooLarge {
        /// The tile.
        tile: u32,
        /// What the buffer would need.
        bytes: u64,
    },
    /// More pieces move than a step may have.
    TooMany,
}

/// The buffers of one use.
#[derive(Default)]
struct ByTile {
    of: Option<Use>,
    /// Of each tile, as far as one was asked for; or `NONE`.
    ids: Vec<u32>,
}

const NONE: u32 = u32::MAX;

/// The buffers of one step.
#[derive(Default)]
pub(super) struct Buffers {
    /// In the order in which they were first needed.
    pub list: Vec<Buffer>,
    /// Of the field at hand, of sends and of stages.
    by_use: [ByTile; 3],
    /// The most bytes that one buffer may have.
    limit: u64,
}

impl Buffers {
    /// None so far; none may outgrow a tile's memory.
    pub fn new(limit: u32) -> Buffers {
        Buffers { limit: limit as u64, ..Buffers::default() }
    }

    /// Room for `bytes` bytes at `phase` past a multiple of `align`: the buffer and the first byte.
    pub fn room(&mut self, tile: u32, of: Use, bytes: u64, phase: u32, align: u32) -> Result<(u32, u32), Stop> {
        let id = self.of(tile, of);
        let buffer = &mut self.list[id as usize];
        let offset = buffer.bytes.next_multiple_of(align) as u64 + phase as u64;
        let end = (offset + bytes).next_multiple_of(4);
        if end > self.limit {
            return Err(Stop::TooLarge { tile, bytes: end });
        }
        buffer.bytes = end as u32;
        Ok((id, offset as u32))
    }

    /// The buffer of a tile and a use.
    fn of(&mut self, tile: u32, of: Use) -> u32 {
        let by_tile = match of {
            Use::Field(..) => &mut self.by_use[0],
            Use::Send => &mut self.by_use[1],
            Use::Stage => &mut self.by_use[2],
        };
        if by_tile.of.replace(of) != Some(of) {
            by_tile.ids.clear();
        }
        if by_tile.ids.len() <= tile as usize {
            by_tile.ids.resize(tile as usize + 1, NONE);
        }
        let id = &mut by_tile.ids[tile as usize];
        if *id == NONE {
            *id = self.list.len() as u32;
            self.list.push(Buffer { tile, bytes: 0 });
        }
        *id
    }
}
