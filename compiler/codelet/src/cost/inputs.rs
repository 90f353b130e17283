//! The inputs of a cost: sizes, constants and counters of a vertex, and the placement of its fields in memory.
//!
//! Invariant: plain data; nothing here knows how a cost is computed.

use crate::sizes::Sizes;
use girder_ir::ids::FieldId;

/// A request of a codelet: a placement of fields in memory that would make it faster.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum FieldRequest {
    /// Two fields, ordered by id, in different memory elements.
    DifferentElements(FieldId, FieldId),
    /// A field in interleaved memory.
    Interleaved(FieldId),
}

/// Known facts about the placement of a vertex's fields.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct MemFacts(Vec<FieldRequest>);

impl MemFacts {
    /// Returns the facts that grant these requests and no others.
    pub fn granting(requests: &[FieldRequest]) -> MemFacts {
        let mut list = requests.to_vec();
        list.sort();
        MemFacts(list)
    }

    pub(super) fn in_different_elements(&self, a: FieldId, b: FieldId) -> bool {
        self.0.binary_search(&FieldRequest::DifferentElements(a.min(b), a.max(b))).is_ok()
    }

    pub(super) fn is_interleaved(&self, f: FieldId) -> bool {
        self.0.binary_search(&FieldRequest::Interleaved(f)).is_ok()
    }
}

/// The inputs for evaluating a cost.
#[derive(Clone, Copy, Debug)]
pub struct CostInputs<'a> {
    /// The sizes of the vertex.
    pub sizes: &'a Sizes,
    /// Bits of its `const` fields, by [`FieldId`].
    pub consts: &'a [u64],
    /// The worker, for a `multi` codelet.
    pub worker: u32,
    /// The number of workers of a tile.
    pub workers: u32,
    /// The counts at the codelet's points. Without any, each is its upper bound if the text determines one, else 0.
    pub counters: &'a [u64],
    /// The placement of its fields in memory.
    pub facts: &'a MemFacts,
}
