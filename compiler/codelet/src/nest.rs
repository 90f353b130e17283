//! Nests of short loops.
//!
//! ```text
//! for t in 0..m { for i in 0..4 { for j in 0..4 { … } } }
//! ```
//!
//! Invariant: nothing runs in an iteration of a nest's loops but the body of the innermost one.

use crate::fold::Folded;
use crate::interpret::trips;
use girder_ir::codelet::{Label, Stmt, StmtBlock};
use girder_ir::ids::{LocalId, SiteId};

/// A loop whose index begins with 0 and grows by 1.
pub struct NestedLoop {
    /// Its index.
    pub index: LocalId,
    /// Its trip count, which is not 0.
    pub trips: u64,
    /// Where its iterations are counted.
    pub site: SiteId,
}

/// The loops inside a loop.
pub struct LoopNest<'s> {
    /// The loops, from the outermost.
    pub inner: Vec<NestedLoop>,
    /// The label of the innermost one.
    pub label: Label,
    /// The body of the innermost one.
    pub body: &'s StmtBlock,
}

/// Returns the nest of loops in the body of a loop with a known trip count. Returns `None` unless the number of all its
/// iterations is a multiple of `group`, and `group` a multiple of the iterations of the inner loops.
pub fn loop_nest<'s>(
    folded: &Folded,
    (outer, body, label): (u64, &'s StmtBlock, Label),
    group: u64,
) -> Option<LoopNest<'s>> {
    let mut nest = LoopNest { inner: Vec::new(), label, body };
    while let [Stmt::For { var, lo, hi, step: 1, label, body, site }] = &nest.body[..] {
        let (lo, hi) = (folded[*lo]? as i64, folded[*hi]? as i64);
        let trips = trips(lo, hi, 1);
        if lo != 0 || trips == 0 {
            return None;
        }
        nest.inner.push(NestedLoop { index: *var, trips, site: *site });
        (nest.body, nest.label) = (body, *label);
    }
    let round = nest.inner.iter().try_fold(1u64, |n, inner| n.checked_mul(inner.trips))?;
    let whole = group.is_multiple_of(round) && outer.checked_mul(round)?.is_multiple_of(group);
    (round > 1 && whole).then_some(nest)
}
