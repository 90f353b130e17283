//! Where the elements of a variable are in a trial, in the form that costs least to make and to ask.

use super::linear;
use super::owners::Owners;
use super::trial::Run;
use girder_ir::graph::Var;
use girder_ir::placement::Mapping;
use std::sync::Arc;

/// See the module.
#[derive(Clone, Default)]
pub(super) enum Home {
    /// No step touches it.
    #[default]
    Nowhere,
    Even(Even),
    /// Ascending, covering all elements, and on how many tiles.
    Runs(Arc<Vec<Run>>, u32),
    /// Where owners are; what has none lies evenly.
    Owned(Arc<Owners>, Even),
}

/// Grains over neighbouring tiles.
#[derive(Clone, Copy, Debug)]
pub(super) struct Even {
    pub first: u32,
    pub tiles: u32,
    grain: u32,
    grains: u64,
}

impl Home {
    /// Of a mapping.
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
                    runs.push(Run { start, end, tile });
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
    /// A variable over so many tiles from `first` on.
    pub(super) fn of(var: &Var, first: u32, tiles: u32) -> Even {
        let grain = linear::grain(var.ty.bytes());
        let grains = var.len().div_ceil(u64::from(grain)).max(1);
        Even { first, tiles: u64::from(tiles).min(grains) as u32, grain, grains }
    }

    /// Its runs in a stretch; `false` if `each` has said that it is enough.
    pub(super) fn each_run(&self, start: u64, end: u64, each: &mut dyn FnMut(Run) -> bool) -> bool {
        let (tiles, grain) = (u64::from(self.tiles), u64::from(self.grain));
        let mut at = start;
        while at < end {
            let k = at / grain * tiles / self.grains;
            let to = (((k + 1) * self.grains).div_ceil(tiles) * grain).min(end);
            if !each(Run { start: at, end: to, tile: self.first + k as u32 }) {
                return false;
            }
            at = to;
        }
        true
    }

    /// As a mapping of a variable that it was made for.
    pub(super) fn mapping(&self) -> Mapping {
        match self.tiles {
            0 | 1 => Mapping::One(self.first),
            tiles => Mapping::Linear { first: self.first, tiles, grain: self.grain },
        }
    }
}
