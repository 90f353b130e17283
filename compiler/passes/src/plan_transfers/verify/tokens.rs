//! The tokens that identify all bytes of all elements.

use super::block::{Block, Segment};
use super::memory::Elements;
use cranelift_entity::SecondaryMap;
use girder_ir::ids::VarId;
use girder_ir::plan::{HomeRun, Homes};
use girder_ir::stage::RaceFree;
use girder_machine::Machine;

/// The tokens of all elements: byte b of element e of variable v is `base[v] + e · bytes + b`; 0 is no token.
pub(super) struct Tokens<'a> {
    /// The machine that the plan is for.
    pub machine: &'a Machine,
    /// The greatest size of a block in bytes.
    pub limit: u32,
    base: SecondaryMap<VarId, u64>,
    homes: SecondaryMap<VarId, Homes>,
    /// For each variable, the numbers of its runs, sorted by tile.
    by_tile: SecondaryMap<VarId, Vec<u32>>,
}

impl<'a> Tokens<'a> {
    /// Creates the tokens of the elements of a graph, whose homes follow from its placement.
    pub fn new(race_free: &RaceFree, machine: &'a Machine, limit: u32) -> Tokens<'a> {
        let (mut base, mut homes, mut by_tile) = (SecondaryMap::new(), SecondaryMap::new(), SecondaryMap::new());
        let mut next = 1;
        for (id, var) in &race_free.vars {
            base[id] = next;
            next += var.bytes();
            let Some(mapping) = &race_free.placement.vars[id] else { continue };
            let of = Homes::of(var, mapping);
            let mut order: Vec<u32> = (0..of.runs.len() as u32).collect();
            order.sort_by_key(|&k| of.runs[k as usize].tile);
            by_tile[id] = order;
            homes[id] = of;
        }
        Tokens { machine, limit, base, homes, by_tile }
    }

    /// Returns the token of an element's first byte.
    pub fn first(&self, var: VarId, element: u64) -> u64 {
        self.base[var] + element * self.homes[var].elem_bytes as u64
    }

    /// Returns the token of the first element, the distance from token to token, and the bytes of an element.
    pub fn of(&self, e: &Elements) -> (u64, i64, u32) {
        let bytes = self.homes[e.var].elem_bytes;
        (self.first(e.var, e.first), e.stride * bytes as i64, bytes)
    }

    /// Returns where the elements of a variable are.
    pub fn homes(&self, var: VarId) -> &Homes {
        &self.homes[var]
    }

    /// Returns the runs of a variable on a tile.
    pub fn runs(&self, var: VarId, tile: u32) -> impl Iterator<Item = HomeRun> {
        let (homes, order) = (&self.homes[var], &self.by_tile[var]);
        let first = order.partition_point(|&k| homes.runs[k as usize].tile < tile);
        order[first..].iter().map(|&k| homes.runs[k as usize]).take_while(move |r| r.tile == tile)
    }

    /// Returns a tile's block of a variable with its elements at home.
    pub fn block(&self, var: VarId, tile: u32) -> Result<Block, String> {
        let Some(homes) = self.homes.get(var) else { return Err("there is no such variable".into()) };
        let bytes = homes.block(tile).filter(|&b| b <= self.limit);
        let bytes = bytes.ok_or_else(|| format!("tile {tile} does not hold the variable"))?;
        // The block is padded to a multiple of 8, where the next block starts; whole words of its last elements fit.
        let size = bytes.checked_next_multiple_of(8).unwrap_or(u32::MAX);
        let segment = |run: HomeRun| {
            let token = self.first(var, run.start as u64);
            (run.offset, Segment::plain(token, (run.end - run.start) * homes.elem_bytes))
        };
        Ok(Block::of(size, self.runs(var, tile).map(segment)))
    }
}
