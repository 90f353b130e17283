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

/// A write of the row of a temporary whose number is the value of a variable.
#[derive(Clone, Debug)]
pub struct RowWrite {
    /// The variable with the number.
    pub index: VarId,
    /// The temporary.
    pub var: VarId,
    /// All rows.
    pub of: View,
    /// The axis of the rows.
    pub axis: usize,
    /// The compute set that writes the row.
    pub set: ComputeSetId,
}
