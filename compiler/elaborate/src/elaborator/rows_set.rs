//! Compute sets of an open body that read or write rows at an index known only at run time.
//!
//! Invariant: the position of a set is that of its step, also after steps were inserted.

use girder_ir::ids::{ComputeSetId, VarId};
use girder_ir::view::View;

/// A compute set that reads rows, which later reads may join.
#[derive(Clone, Debug)]
pub struct RowsSet {
    /// The position of its step in the body.
    pub position: usize,
    /// The compute set.
    pub set: ComputeSetId,
    /// The index of the first row.
    pub start: View,
    /// The greatest index that the step accepts.
    pub greatest: u64,
    /// The bytes that all reads of the set copy.
    pub bytes: u64,
}

impl RowsSet {
    /// Follows the insertion of steps.
    pub fn shift(&mut self, position: usize, count: usize) {
        if self.position >= position {
            self.position += count;
        }
    }
}

/// A write of the elements of a temporary at the values of some variables along some axes.
#[derive(Clone, Debug)]
pub struct RowWrite {
    /// The axes, and what the indices are: a variable plus a number. The other axes are written in full.
    pub at: Vec<(usize, VarId, i64)>,
    /// The temporary.
    pub var: VarId,
    /// The elements along the axes.
    pub of: View,
    /// What writes them.
    pub by: Writer,
}

/// The steps of a body that write the elements. They read the temporary only to write back what they have read.
#[derive(Clone, Debug)]
pub enum Writer {
    /// Compute sets.
    Sets(Vec<ComputeSetId>),
    /// The step at a position, with all that is inside it.
    Step(usize),
}

impl RowWrite {
    /// Follows the insertion of steps.
    pub fn shift(&mut self, position: usize, count: usize) {
        if let Writer::Step(at) = &mut self.by
            && *at >= position
        {
            *at += count;
        }
    }
}
