//! Facts that hold for a codelet with given sizes: checks that cannot fail, and fields that are fully written.
//!
//! One walk over the body carries, per path, the interval and the affine form (if any) of every scalar, and the
//! regions that have certainly been written. An index is inside if its interval is, or if its form is by the bounds of
//! a loop around. Loops are walked once: variables that the body assigns are unknown at its head, and a region that
//! moves with the loop's index is expanded over all iterations after the loop.
//!
//! Invariant: sound and cheap. A fact holds for every run with these sizes, for all elements, constants and workers;
//! the time depends on the length of the code, never on sizes.

mod affine;
mod deciding;
mod interval;
mod region;
mod shares;
mod value;
mod walk;

use crate::sizes::Sizes;
use cranelift_entity::{EntitySet, SecondaryMap};
use girder_ir::codelet::{Codelet, Dir, FieldDecl};
use girder_ir::ids::{FieldId, SiteId};
use smallvec::SmallVec;

/// Facts about a codelet for concrete sizes.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Sites whose check never fails or is never reached.
    pub proven: EntitySet<SiteId>,
    /// The coverage of each field that may be written.
    pub cover: SecondaryMap<FieldId, Cover>,
    /// For a `multi` codelet: an element of a field that every worker writes if it ends, whatever its number.
    pub shared: SecondaryMap<FieldId, Option<SmallVec<[i64; 3]>>>,
    /// For a `multi` codelet: the `out` fields that the workers together write in full, each worker its share of a
    /// loop.
    pub parted: EntitySet<FieldId>,
    /// The weights with which loops count iterations.
    pub weights: Weights,
}

/// The weight of one iteration of a loop, by the site of its limit; 0 for a loop that counts only if it is long. See
/// the note on iterations in [`crate::interpret`].
pub type Weights = SecondaryMap<SiteId, u64>;

/// The coverage of a field by the writes of a vertex.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Cover {
    /// Every path that ends writes every element without reading it before.
    Full,
    /// Some path may leave an element unchanged.
    #[default]
    Partial,
}

/// Proves all facts for these sizes, as [`facts`] does, and which `out` fields the `workers` workers of a tile write in
/// full together. If `workers` is 0, their number is unknown.
///
/// Each worker is walked with its number known, so shares are seen however they are computed. Checks and weights do not
/// depend on the number of workers, so that all engines count alike.
pub fn facts_on(codelet: &Codelet, sizes: &Sizes, workers: u32) -> Facts {
    let mut facts = facts(codelet, sizes);
    if codelet.multi && workers > 0 {
        let is_open =
            |&(field, decl): &(FieldId, &FieldDecl)| decl.dir == Dir::Out && facts.cover[field] == Cover::Partial;
        let open: Vec<FieldId> = codelet.edges().filter(is_open).map(|(field, _)| field).collect();
        shares::covered(codelet, sizes, workers, open).into_iter().for_each(|field| facts.cover[field] = Cover::Full);
    }
    facts
}

/// Proves all facts for these sizes.
pub fn facts(codelet: &Codelet, sizes: &Sizes) -> Facts {
    let outcome = walk::walk(codelet, sizes, None);
    let mut proven = EntitySet::with_capacity(codelet.sites.len());
    for site in codelet.sites.keys().filter(|&site| !outcome.may_fail.contains(site)) {
        proven.insert(site);
    }
    let mut cover = SecondaryMap::new();
    for (field, decl) in codelet.edges() {
        let writable = decl.dir != Dir::In;
        // A codelet that never ends has no visible result.
        let covers = |written: &Vec<_>| region::covers(written, field, &sizes.shapes[field]);
        if writable && outcome.written.as_ref().is_none_or(covers) {
            cover[field] = Cover::Full;
        }
    }
    let mut shared: SecondaryMap<FieldId, Option<_>> = SecondaryMap::new();
    // Every worker writes the regions that one worker certainly writes without reading its number.
    for region in outcome.written.iter().flatten().filter(|r| codelet.multi && !r.together) {
        if shared[region.field].is_none() {
            shared[region.field] = region.axes.iter().map(|a| a.start.is_constant()).collect();
        }
    }
    let mut parted = EntitySet::new();
    let regions = || outcome.written.iter().flatten();
    for (field, _) in codelet.edges().filter(|f| codelet.multi && cover[f.0] == Cover::Full) {
        let mut own = regions().filter(|r| r.field == field).peekable();
        if own.peek().is_some() && own.all(|r| r.together) {
            parted.insert(field);
        }
    }
    Facts { proven, cover, shared, parted, weights: outcome.weights }
}

#[cfg(test)]
mod tests;
