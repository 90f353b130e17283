//! The scene: what every part of the pass reads.
//!
//! Invariant: it does not change while steps are planned.

use crate::footprint::Covers;
use crate::small_pieces::SmallPieces;
use cranelift_entity::SecondaryMap;
use girder_ir::graph::Graph;
use girder_ir::ids::VarId;
use girder_ir::placement::Placement;
use girder_ir::plan::Homes;
use girder_machine::Machine;
use girder_source::Cancel;
use std::sync::Arc;

/// The graph with its placement, the machine and the limits.
pub(super) struct Scene<'a> {
    pub graph: &'a Graph,
    pub placement: &'a Placement,
    pub machine: &'a Machine,
    pub cancel: &'a Cancel,
    /// The number of pieces that one step may move.
    pub limit: usize,
    /// Which pieces travel together.
    pub small: SmallPieces,
    /// The largest size of a block in bytes.
    pub block_limit: u32,
    pub homes: SecondaryMap<VarId, Homes>,
    /// The `out` fields that are not fetched.
    pub covers: Arc<Covers>,
}

impl Scene<'_> {
    pub fn elem_bytes(&self, var: VarId) -> u32 {
        self.homes[var].elem_bytes
    }

    /// Returns whether the user has cancelled the compilation. Plans are then incomplete, so whoever uses one polls
    /// first.
    pub fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }
}
