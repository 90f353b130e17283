//! The phase-keeping layout of a variable; see the note in [`plan`](crate::plan).

use super::Mapping;
use crate::graph::Var;
use crate::plan::{HomeRun, Homes, RunIndex, RunRows};

impl Homes {
    /// Returns the homes of a variable's elements under a complete mapping. A block that would exceed `u32::MAX` bytes
    /// is reported with that size, which is more than any tile has.
    pub fn of(var: &Var, mapping: &Mapping) -> Homes {
        let bytes = var.ty.bytes() as u64;
        // For each tile: bytes used, or `None` if it holds nothing.
        let mut ends: Vec<Option<u64>> = vec![];
        let mut runs = Vec::with_capacity(mapping.listed());
        let run = |(start, end, tile): (u64, u64, u32)| {
            if ends.len() <= tile as usize {
                ends.resize(tile as usize + 1, None);
            }
            let used = ends[tile as usize].get_or_insert(0);
            let offset = *used + (start * bytes).wrapping_sub(*used) % 8;
            *used = offset + (end - start) * bytes;
            let offset = u32::try_from(offset).unwrap_or(u32::MAX);
            HomeRun { start: start as u32, end: end as u32, tile, offset }
        };
        runs.extend(mapping.runs(var.len()).map(run));
        let block = |(tile, used): (u32, Option<u64>)| Some((tile, u32::try_from(used?).unwrap_or(u32::MAX)));
        let blocks = (0..).zip(ends).filter_map(block).collect();
        Homes { index: RunIndex::of(&runs), rows: RunRows::of(&runs), runs, blocks, elem_bytes: bytes as u32 }
    }

    /// Returns the index of the run that holds an element; past the last run if there is none.
    pub fn run_of(&self, element: u64) -> usize {
        let RunIndex { shift, runs } = &self.index;
        let at = (element >> shift) as usize;
        let Some(&first) = runs.get(at) else { return self.runs.len() };
        let end = runs.get(at + 1).map_or(self.runs.len(), |&next| next as usize + 1);
        first as usize + self.runs[first as usize..end].partition_point(|r| r.end as u64 <= element)
    }

    /// Returns the tile of an element and its byte in the tile's block. Precondition: the variable has the element.
    pub fn locate(&self, element: u64) -> (u32, u32) {
        let run = &self.runs[self.run_of(element)];
        (run.tile, run.offset.saturating_add((element as u32 - run.start).saturating_mul(self.elem_bytes)))
    }

    /// Returns the bytes of the block on a tile, if it holds any element.
    pub fn block(&self, tile: u32) -> Option<u32> {
        self.blocks.binary_search_by_key(&tile, |b| b.0).ok().map(|i| self.blocks[i].1)
    }
}

impl RunRows {
    /// Finds rows of blocks among ascending runs, if all runs before the first tile's second run repeat.
    fn of(runs: &[HomeRun]) -> RunRows {
        let Some(first) = runs.first() else { return RunRows::default() };
        let Some(jump) = runs[1..].iter().position(|r| r.tile == first.tile).map(|k| k + 1) else {
            return RunRows::default();
        };
        let distance = runs[jump].start - first.start;
        let comes_again = |k: usize| {
            let (a, b) = (&runs[k], &runs[k + jump]);
            b.start - a.start == distance && b.end - a.end == distance && a.tile == b.tile
        };
        if runs.len() < 2 * jump || !(0..jump).all(comes_again) {
            return RunRows::default();
        }
        let step = |k: usize| runs[k + jump].offset.wrapping_sub(runs[k].offset);
        let mut again = vec![0; runs.len()];
        for k in (0..runs.len() - jump).rev().filter(|&k| comes_again(k)) {
            let goes_on = again[k + jump] > 0 && step(k) == step(k + jump);
            again[k] = if goes_on { again[k + jump] + 1 } else { 1 };
        }
        RunRows { jump, distance: distance as u64, again }
    }
}

impl RunIndex {
    /// Builds the index of ascending runs that cover all elements.
    fn of(runs: &[HomeRun]) -> RunIndex {
        let Some(len) = runs.last().map(|r| r.end as u64) else { return RunIndex::default() };
        let shift = (len / runs.len() as u64).max(1).ilog2() + 1;
        let mut index = RunIndex { shift, runs: Vec::with_capacity((len >> shift) as usize + 1) };
        for (k, run) in (0..).zip(runs) {
            // The samples that this run holds and no run before it.
            let end = (run.end as u64).div_ceil(1 << shift) as usize;
            index.runs.resize(end.max(index.runs.len()), k);
        }
        index
    }
}
