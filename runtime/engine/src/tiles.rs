//! Addresses of mode `exact`: the memory of each tile is a share of one arena.
//!
//! Invariant: shares do not overlap, and a share ends after the last word that its tile uses.

use crate::error::EngineError;
use cranelift_entity::SecondaryMap;
use girder_ir::ids::{ComputeSetId, CopyId, VarId};
use girder_ir::layout::{Content, Layout};
use girder_ir::plan::{Homes, Loc, Object};
use girder_ir::stage::Allocated;
use girder_ir::view::Run;

/// The step to whose plan a buffer belongs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Owner {
    /// A compute set.
    Set(ComputeSetId),
    /// A copy.
    Copy(CopyId),
}

/// Shares of the tiles in use, and homes of the variables.
pub(crate) struct Tiles {
    /// Tiles in use, ascending; the k-th has the k-th share.
    used: Vec<u32>,
    /// Bytes of each share.
    share: u64,
    homes: SecondaryMap<VarId, VarAddresses>,
    /// For each buffer of a plan, the number of buffers before it on its tile.
    set_buffers: SecondaryMap<ComputeSetId, Vec<u32>>,
    copy_buffers: SecondaryMap<CopyId, Vec<u32>>,
}

/// The addresses of one variable's elements.
#[derive(Clone, Default)]
struct VarAddresses {
    /// The first flat element, the end, and the first byte in the arena of each run; ascending.
    runs: Vec<(u64, u64, u64)>,
    element_bytes: usize,
}

impl Tiles {
    /// Returns the bytes of all shares of a layout.
    pub(crate) fn bytes(layout: &Layout) -> u128 {
        layout.tiles().count() as u128 * share(layout) as u128
    }

    fn none(share: u64) -> Tiles {
        Tiles {
            used: vec![],
            share,
            homes: SecondaryMap::new(),
            set_buffers: SecondaryMap::new(),
            copy_buffers: SecondaryMap::new(),
        }
    }

    /// Finds the address of every element.
    pub(crate) fn new(allocated: &Allocated, tiles_of_machine: u32) -> Result<Tiles, EngineError> {
        let mut tiles = Tiles { used: allocated.layout.tiles().collect(), ..Tiles::none(share(&allocated.layout)) };
        allocated
            .sets
            .keys()
            .for_each(|s| tiles.set_buffers[s] = allocated.plan.sets[s].buffer_ranks(tiles_of_machine));
        allocated
            .copies
            .keys()
            .for_each(|c| tiles.copy_buffers[c] = allocated.plan.copies[c].buffer_ranks(tiles_of_machine));
        for (id, var) in &allocated.vars {
            let missing = || EngineError::Internal(format!("`{}` has no mapping", var.name));
            let mapping = allocated.placement.vars[id].as_ref().ok_or_else(missing)?;
            let mut home = VarAddresses { runs: Vec::new(), element_bytes: var.ty.bytes() as usize };
            // Neighbouring runs often alternate between the same tiles, so a block's address is looked up once per run.
            for run in Homes::of(var, mapping).runs {
                let at = tiles.var_byte(&allocated.layout, run.tile, id, run.offset)?;
                home.runs.push((run.start as u64, run.end as u64, at));
            }
            tiles.homes[id] = home;
        }
        Ok(tiles)
    }

    /// Returns the bytes of an element of a variable.
    pub(crate) fn element_bytes(&self, var: VarId) -> usize {
        self.homes[var].element_bytes
    }

    /// Returns the arena's byte of an offset in a tile's block of a variable.
    pub(crate) fn var_byte(&self, layout: &Layout, tile: u32, var: VarId, offset: u32) -> Result<u64, EngineError> {
        self.block_byte(layout, tile, Content::Var(var), offset)
    }

    /// Returns the arena's byte of an offset in a buffer, which must be on the tile.
    pub(crate) fn buffer_byte(
        &self,
        allocated: &Allocated,
        tile: u32,
        owner: Owner,
        buffer: u32,
        offset: u32,
    ) -> Result<u64, EngineError> {
        let rank = match owner {
            Owner::Set(set) => self.set_buffers[set].get(buffer as usize),
            Owner::Copy(copy) => self.copy_buffers[copy].get(buffer as usize),
        };
        let rank = *rank.ok_or_else(|| EngineError::Internal(format!("there is no buffer {buffer}")))?;
        let content = match owner {
            Owner::Set(set) => Content::SetBuffer(set, rank),
            Owner::Copy(copy) => Content::CopyBuffer(copy, rank),
        };
        self.block_byte(&allocated.layout, tile, content, offset)
    }

    /// Returns the arena's byte of a location in a plan.
    pub(crate) fn byte(&self, allocated: &Allocated, loc: Loc, owner: Owner) -> Result<u64, EngineError> {
        match loc.object {
            Object::Var(var) => self.var_byte(&allocated.layout, loc.tile, var, loc.offset),
            Object::Buffer(buffer) => self.buffer_byte(allocated, loc.tile, owner, buffer, loc.offset),
        }
    }

    fn block_byte(&self, layout: &Layout, tile: u32, content: Content, offset: u32) -> Result<u64, EngineError> {
        let missing = || EngineError::Internal(format!("{content:?} has no address on tile {tile}"));
        let address = layout.address(tile, content).ok_or_else(missing)?;
        let index = self.used.binary_search(&tile).map_err(|_| missing())?;
        Ok(index as u64 * self.share + address as u64 + offset as u64)
    }

    /// Cuts a run at the boundaries of home runs: calls `f(first, count, byte, step)` for `count` elements from the
    /// run's `first` on.
    pub(crate) fn split(&self, run: Run, mut f: impl FnMut(usize, usize, u64, i64)) {
        let home = &self.homes[run.var];
        let size = home.element_bytes as u64;
        let mut k = 0;
        while k < run.len {
            let element = (run.start as i64 + k as i64 * run.stride) as u64;
            let (start, end, at) = home.runs[home.runs.partition_point(|r| r.1 <= element)];
            let here = match run.stride {
                0 => run.len,
                1.. => (end - 1 - element) / run.stride as u64 + 1,
                _ => (element - start) / run.stride.unsigned_abs() + 1,
            };
            let count = here.min(run.len - k);
            f(k as usize, count as usize, at + (element - start) * size, run.stride * size as i64);
            k += count;
        }
    }
}

/// Returns the bytes of a tile's share: the peak and one more word, in whole cache lines.
fn share(layout: &Layout) -> u64 {
    (layout.peak() as u64 + 4).next_multiple_of(64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cranelift_entity::EntityRef;

    #[test]
    fn a_run_is_cut_where_its_home_ends() {
        let var = VarId::new(0);
        let mut homes = SecondaryMap::new();
        homes[var] = VarAddresses { runs: vec![(0, 3, 100), (3, 8, 1000), (8, 10, 112)], element_bytes: 4 };
        let tiles = Tiles { homes, ..Tiles::none(0) };
        let byte = |e: u64| {
            if e < 3 {
                100 + 4 * e
            } else if e < 8 {
                1000 + 4 * (e - 3)
            } else {
                112 + 4 * (e - 8)
            }
        };
        for (start, len, stride) in [(0, 10, 1), (9, 10, -1), (1, 5, 2), (8, 4, -2), (4, 3, 0), (7, 1, 1)] {
            let mut seen = Vec::new();
            tiles.split(Run { var, start, len, stride }, |first, count, at, step| {
                assert_eq!(first, seen.len());
                seen.extend((0..count as i64).map(|i| (at as i64 + i * step) as u64));
            });
            let expected: Vec<u64> = (0..len as i64).map(|i| byte((start as i64 + i * stride) as u64)).collect();
            assert_eq!(seen, expected);
        }
    }
}
