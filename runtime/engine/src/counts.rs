//! The execution counts of the counted blocks of one compute set.
//!
//! Invariant: all modes count identically.

use cranelift_entity::SecondaryMap;
use girder_ir::ids::FamilyId;
use girder_ir::trace::Counts;

/// The counters of all vertices of a compute set.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counted {
    rows: SecondaryMap<FamilyId, Vec<u64>>,
}

impl Counted {
    /// Sets the counters of one vertex of a family of `instances`.
    pub(crate) fn set(
        &mut self,
        family: FamilyId,
        instances: u64,
        instance: u64,
        numbers: impl ExactSizeIterator<Item = u64>,
    ) {
        let own = numbers.len();
        let rows = &mut self.rows[family];
        rows.resize(own * instances as usize, 0);
        rows[own * instance as usize..].iter_mut().zip(numbers).for_each(|(row, n)| *row = n);
    }
}

impl Counts for Counted {
    fn of(&self, family: FamilyId) -> &[u64] {
        &self.rows[family]
    }
}
