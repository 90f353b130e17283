//! The accesses of the workers of a `multi` codelet.
//!
//! Invariant: the first access that breaks the rule, in the order of evaluation with worker 0, 1, … one after another,
//! is found. Fields that are only read are not recorded: they cannot race.

use girder_ir::codelet::{Codelet, Dir};
use girder_ir::ids::{FieldId, SiteId};
use rustc_hash::FxHashMap;

/// An access to an element by one worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WorkerAccess {
    /// The worker.
    pub worker: u32,
    /// The site of the access.
    pub site: SiteId,
    /// Whether the access is a write.
    pub written: bool,
}

/// Two workers that access one element, which at least one of them writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Race {
    /// The field of the element.
    pub field: FieldId,
    /// Row-major position in the field.
    pub element: u64,
    /// The earlier access.
    pub first: WorkerAccess,
    /// The access that breaks the rule.
    pub second: WorkerAccess,
}

/// The accesses to the elements of one vertex so far.
#[derive(Debug, Default)]
pub(super) struct Touches {
    /// First reader and writer of each element; only looked up, never iterated.
    seen: FxHashMap<(FieldId, u64), [Option<WorkerAccess>; 2]>,
}

impl Touches {
    /// Forgets the accesses of the previous vertex.
    pub fn clear(&mut self) {
        self.seen.clear();
    }

    /// Records an access.
    ///
    /// Workers run one after another, so the first reader is this worker only if all readers are.
    pub fn note(&mut self, codelet: &Codelet, field: FieldId, element: u64, touch: WorkerAccess) -> Result<(), Race> {
        if codelet.fields[field].dir == Dir::In {
            return Ok(());
        }
        let [reader, writer] = self.seen.entry((field, element)).or_default();
        let other = |t: &Option<WorkerAccess>| t.filter(|t| t.worker != touch.worker);
        let first = other(writer).or_else(|| if touch.written { other(reader) } else { None });
        if let Some(first) = first {
            return Err(Race { field, element, first, second: touch });
        }
        let own = if touch.written { writer } else { reader };
        own.get_or_insert(touch);
        Ok(())
    }
}
