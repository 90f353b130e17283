//! The table of `place-tiles`: a tile for every element and every vertex.
//!
//! Invariant of a finished table: no element and no vertex is [`UNPLACED`], every tile exists in the machine.

mod fit;
mod homes;
mod mapping;
mod range;
#[cfg(test)]
mod tests;

pub use mapping::MappingRuns;
pub use range::TileRange;

use crate::family::{Domain, TileMap};
use crate::ids::{FamilyId, VarId};
use cranelift_entity::SecondaryMap;
use std::sync::Arc;

/// The tile of elements that the text leaves open; occurs only in [`Mapping::Runs`] of a graph.
pub const UNPLACED: u32 = u32::MAX;

/// The tiles of a variable's elements.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Mapping {
    /// All elements on one tile.
    One(u32),
    /// Of n elements, element e is on tile `first + (e / grain) · tiles / ⌈n / grain⌉` (rounded down).
    Linear {
        /// First tile.
        first: u32,
        /// Number of tiles, at most the number of grains.
        tiles: u32,
        /// Elements that stay together.
        grain: u32,
    },
    /// A function of the index over a box that holds the elements in row-major order (the variable's shape, with axes
    /// split or merged).
    Separable {
        /// The box.
        domain: Domain,
        /// The tiles.
        tiles: TileMap,
    },
    /// Runs of flat elements: the k-th ends (exclusive) at `end[k]`; neighbours differ in tile.
    Runs {
        /// Ascending; the last is the number of elements.
        end: Arc<[u32]>,
        /// One per run.
        tile: Arc<[u32]>,
    },
}

/// The tiles of all variables and vertices.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Placement {
    /// The mapping of every variable.
    pub vars: SecondaryMap<VarId, Option<Mapping>>,
    /// The tiles of every family's vertices.
    pub families: SecondaryMap<FamilyId, Option<TileMap>>,
}

/// Elements `start..end` on one tile.
pub type TileRun = (u64, u64, u32);
