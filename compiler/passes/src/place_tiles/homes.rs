//! The tiles of a variable's elements in a candidate, in a form that is cheap to make and to look up.

use super::linear;
use super::owners::Owners;
use girder_ir::graph::Var;
use girder_ir::placement::{Mapping, TileRange};
use std::sync::Arc;

/// Neighbouring elements on one tile.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct ElementRun {
    pub start: u64,
    pub end: u64,
    pub tile: u32,
}

/// The tiles of one variable's elements.
#[derive(Clone, Default)]
pub(super) enum Home {
    /// The variable is in no step.
    #[default]
    Nowhere,
    Even(Even),
    /// Ascending runs that cover all elements, and the number of their tiles.
    Runs(Arc<Vec<ElementRun>>, u32),
    /// The elements are with their owners; elements without an owner are spread evenly.
    Owned(Arc<Owners>, Even),
}

/// Grains that are spread evenly over neighbouring tiles.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Even {
    pub first: u32,
    pub tiles: u32,
    grain: u32,
    grains: u64,
}

impl Home {
    /// Returns the home of a variable with a mapping.
    pub(super) fn of(var: &Var, mapping: &Mapping) -> Home {
        match *mapping {
            Mapping::One(tile) => Home::Even(Even::of(var, tile, 1)),
            Mapping::Linear { first, tiles, grain } => {
                let grains = var.len().div_ceil(u64::from(grain)).max(1);
                Home::Even(Even { first, tiles, grain, grains })
            }
            _ => {
                let mut runs = Vec::with_capacity(mapping.listed());
                let mut seen: Vec<bool> = vec![];
                for (start, end, tile) in mapping.runs(var.len()) {
                    runs.push(ElementRun { start, end, tile });
                    if seen.len() <= tile as usize {
                        seen.resize(tile as usize + 1, false);
                    }
                    seen[tile as usize] = true;
                }
                Home::Runs(Arc::new(runs), seen.into_iter().filter(|&s| s).count() as u32)
            }
        }
    }
}

impl Even {
    /// Spreads a variable over tiles from `first` on.
    pub(super) fn of(var: &Var, first: u32, tiles: u32) -> Even {
        let grain = linear::grain(var.ty.bytes());
        let grains = var.len().div_ceil(u64::from(grain)).max(1);
        Even { first, tiles: u64::from(tiles).min(grains) as u32, grain, grains }
    }

    /// Spreads `len` neighbouring elements of a variable over some tiles.
    pub(super) fn of_part(var: &Var, len: u64, within: TileRange) -> Even {
        let grain = linear::grain(var.ty.bytes());
        let grains = len.div_ceil(u64::from(grain)).max(1);
        let tiles = linear::tiles_for(len, var.ty.bytes(), linear::BYTES_PER_TILE, within.count);
        Even { first: within.first, tiles: u64::from(tiles).min(grains) as u32, grain, grains }
    }

    /// Calls `each` for the runs of `start..end`. Returns `false` if `each` stopped it.
    pub(super) fn each_run(&self, start: u64, end: u64, each: &mut dyn FnMut(ElementRun) -> bool) -> bool {
        let (tiles, grain) = (u64::from(self.tiles), u64::from(self.grain));
        let mut at = start;
        while at < end {
            let k = at / grain * tiles / self.grains;
            let to = (((k + 1) * self.grains).div_ceil(tiles) * grain).min(end);
            if !each(ElementRun { start: at, end: to, tile: self.first + k as u32 }) {
                return false;
            }
            at = to;
        }
        true
    }

    /// Returns the mapping of the variable.
    pub(super) fn mapping(&self) -> Mapping {
        match self.tiles {
            0 | 1 => Mapping::One(self.first),
            tiles => Mapping::Linear { first: self.first, tiles, grain: self.grain },
        }
    }
}
