//! The state of the walk over the tapes.
//!
//! Invariant: the path leads from the open body whose tape is walked to the body of the current entry.

use super::active::Active;
use super::adjoints::Adjoints;
use super::leaves::Leaf;
use super::order::{Inside, Moment};
use super::tape::Tape;
use crate::value::Tensor;
use girder_ir::ids::VarId;
use girder_ir::view::View;
use girder_source::Span;
use rustc_hash::FxHashSet;
use std::ops::Range;
use std::rc::Rc;

/// A loop that is being reversed.
#[derive(Clone, Debug)]
pub struct LoopContext {
    /// The moments of the forward loop.
    pub during: Range<Moment>,
    /// The path from the root to its body.
    pub path: Vec<Inside>,
    /// What an iteration does.
    pub body: Rc<Tape>,
    /// The number of iterations.
    pub count: u64,
    /// The index of the forward loop.
    pub index: Option<(VarId, i32, i32)>,
    /// The number of the reversed iteration, from 0.
    pub local: Tensor,
    /// The open body of the reverse loop.
    pub depth: usize,
    /// The number of the iteration in the forward loop.
    pub forward: Option<Tensor>,
    /// The number of the iteration in the reverse loop.
    pub backward: Option<Tensor>,
    /// The index of the forward loop, computed in the reverse loop.
    pub forward_index: Option<Tensor>,
    /// Values that were read back.
    pub rows: Vec<(Kept, Tensor)>,
    /// Whether the values that are kept of its iterations are in remote buffers.
    pub offload: bool,
    /// Variables of the reverse loop, and what it writes to them for the iteration before.
    pub carried: Vec<(Tensor, Tensor)>,
}

/// A view, the moment of its last write and the body where it is kept.
pub type Kept = (View, Moment, Vec<Inside>);

/// The state of a walk.
pub struct ReverseWalk {
    /// The adjoints so far.
    pub adjoints: Adjoints,
    /// What depends on the leaves.
    pub active: Active,
    /// The wanted tensors.
    pub leaves: Vec<Leaf>,
    /// The `grad`.
    pub span: Span,
    /// When it began.
    pub began: Moment,
    /// The number of open bodies there.
    pub chain: usize,
    /// The open body whose tape is walked.
    pub root: usize,
    /// The path from there to the body of the current entry.
    pub path: Vec<Inside>,
    /// The reversed loops around.
    pub loops: Vec<LoopContext>,
    /// Temporaries of arms whose contents are given up before the arms.
    pub given_up: FxHashSet<VarId>,
    /// Values of steps that are computed again, which those steps overwrite and which were kept.
    pub kept: Vec<(Kept, Tensor)>,
}

impl ReverseWalk {
    /// Creates the state at the end of the program so far.
    pub fn new(active: Active, leaves: Vec<Leaf>, chain: usize, span: Span, began: Moment) -> ReverseWalk {
        let (path, loops, given_up) = (vec![], vec![], FxHashSet::default());
        let adjoints = Adjoints::default();
        ReverseWalk { adjoints, active, leaves, span, began, chain, root: 0, path, loops, given_up, kept: vec![] }
    }

    /// Returns whether a write at a moment happens only if the current entry does not run.
    pub fn is_apart(&self, at: Moment) -> bool {
        self.path.iter().flat_map(|p| p.apart.iter()).any(|during| during.contains(&at))
    }

    /// Returns where an iteration of a loop keeps a value that an entry needs: in the body of the entry, or before the
    /// outermost branch around it in which the value does not change, so that all arms share it.
    pub fn keeping_place(&self, k: usize, version: Moment, at: Moment) -> (Vec<Inside>, Moment) {
        let mut path = self.loops[k].path.clone();
        for inside in self.path[path.len()..].iter().take_while(|p| !p.is_loop) {
            if version <= inside.during.start {
                return (path, inside.during.start);
            }
            path.push(inside.clone());
        }
        (path, at)
    }
}
