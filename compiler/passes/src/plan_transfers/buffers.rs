//! The landing, send and staging buffers of one step while they grow.
//!
//! Invariant: there is one buffer per tile and use, provided that all regions of a field are requested before those of
//! the next field. Regions never overlap, and different regions share no word.

use girder_ir::plan::Buffer;

/// The use of a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum BufferUse {
    /// A field of a compute set's vertices: family and field, by position.
    Field(u32, u32),
    /// Pieces that are made contiguous before they are sent.
    Send,
    /// Words whose bytes are copied to their destinations after the exchange.
    Stage,
}

/// The reason why there is no plan.
#[derive(Clone, Copy, Debug)]
pub(super) enum PlanError {
    /// A buffer needs more bytes than its tile has.
    TooLarge {
        /// The tile.
        tile: u32,
        /// The size that the buffer would need.
        bytes: u64,
    },
    /// More pieces move than a step may have.
    TooMany,
}

/// The buffers of one use.
#[derive(Default)]
struct ByTile {
    of: Option<BufferUse>,
    /// The buffer of each tile, or `NONE`.
    ids: Vec<u32>,
}

const NONE: u32 = u32::MAX;

/// The buffers of one step.
#[derive(Default)]
pub(super) struct Buffers {
    /// In the order in which they were first needed.
    pub list: Vec<Buffer>,
    /// The buffers of the current field, of sends and of stages.
    by_use: [ByTile; 3],
    /// The largest size of a buffer.
    limit: u64,
}

impl Buffers {
    /// Creates an empty set of buffers that cannot outgrow `limit` bytes each.
    pub fn new(limit: u32) -> Buffers {
        Buffers { limit: limit as u64, ..Buffers::default() }
    }

    /// Reserves `bytes` bytes at `phase` past a multiple of `align`. Returns the buffer and the first byte.
    pub fn room(
        &mut self,
        tile: u32,
        of: BufferUse,
        bytes: u64,
        phase: u32,
        align: u32,
    ) -> Result<(u32, u32), PlanError> {
        let id = self.of(tile, of);
        let buffer = &mut self.list[id as usize];
        let offset = buffer.bytes.next_multiple_of(align) as u64 + phase as u64;
        let end = (offset + bytes).next_multiple_of(4);
        if end > self.limit {
            return Err(PlanError::TooLarge { tile, bytes: end });
        }
        buffer.bytes = end as u32;
        Ok((id, offset as u32))
    }

    /// Returns the buffer of a tile and a use.
    fn of(&mut self, tile: u32, of: BufferUse) -> u32 {
        let by_tile = match of {
            BufferUse::Field(..) => &mut self.by_use[0],
            BufferUse::Send => &mut self.by_use[1],
            BufferUse::Stage => &mut self.by_use[2],
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
