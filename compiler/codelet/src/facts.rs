//! What is certain about a codelet for given sizes: checks that cannot fail, and fields that are fully written.
//!
//! One walk over the body carries, per path, the interval and (where it is one) the affine form of every scalar, and
//! the regions that were written for certain. Loops are walked once: what their bodies assign is unknown at their
//! head, and a region that moves with the loop's index is multiplied out behind it.
//!
//! Invariant: sound and cheap. A fact holds for every run with these sizes, whatever elements, constants and workers
//! there are; the time depends on the length of the code, never on sizes.

mod affine;
mod interval;
mod region;
mod value;
mod walk;

use crate::sizes::Sizes;
use cranelift_entity::{EntitySet, SecondaryMap};
use girder_ir::codelet::Codelet;
use girder_ir::ids::{FieldId, SiteId};
use smallvec::SmallVec;

/// Facts about a codelet for concrete sizes.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Sites whose check never fails (or is never reached).
    pub proven: EntitySet<SiteId>,
    /// How the run writes each field that may be written.
    pub cover: SecondaryMap<FieldId, Cover>,
    /// Of a `multi` codelet: an element of a field that every worker writes if it ends, whatever its number.
    pub shared: SecondaryMap<FieldId, Option<SmallVec<[i64; 3]>>>,
    /// What loops count.
    pub weights: Weights,
}

/// What a turn of a loop counts, by the site of its turns; 0 of a loop that counts only if it is long. See the note on
/// turns in [`crate::interpret`].
pub type Weights = SecondaryMap<SiteId, u64>;

/// How much of a field a vertex writes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Cover {
    /// Every path that ends writes every element, without reading it for that.
    Full,
    /// Some path may leave an element as it was.
    #[default]
    Partial,
}

/// Proves what can be proven for these sizes.
pub fn facts(codelet: &Codelet, sizes: &Sizes) -> Facts {
    let outcome = walk::walk(codelet, sizes);
    let mut proven = EntitySet::with_capacity(codelet.sites.len());
    for site in codelet.sites.keys().filter(|&site| !outcome.may_fail.contains(site)) {
        proven.insert(site);
    }
    let mut cover = SecondaryMap::new();
    for (field, decl) in codelet.edges() {
        let writable = decl.dir != girder_ir::codelet::Dir::In;
        // What never ends leaves nothing to be seen.
        let covers = |written: &Vec<_>| region::covers(written, field, &sizes.shapes[field]);
        if writable && outcome.written.as_ref().is_none_or(covers) {
            cover[field] = Cover::Full;
        }
    }
    let mut shared: SecondaryMap<FieldId, Option<_>> = SecondaryMap::new();
    // What one worker surely writes without looking at its number, all workers write.
    for region in outcome.written.iter().flatten().filter(|r| codelet.multi && !r.together) {
        if shared[region.field].is_none() {
            shared[region.field] = region.axes.iter().map(|a| a.start.is_constant()).collect();
        }
    }
    Facts { proven, cover, shared, weights: outcome.weights }
}

#[cfg(test)]
mod tests;
