//! The result of a rewrite.
//!
//! Invariant: the proven checks are checks of the rewritten codelet.

use cranelift_entity::EntitySet;
use girder_codelet::kernel::KernelSpec;
use girder_ir::codelet::Codelet;
use girder_ir::ids::SiteId;

/// An equivalent codelet.
#[derive(Clone, Debug)]
pub struct Rewritten {
    /// The codelet.
    pub codelet: Codelet,
    /// Its checks that cannot fail.
    pub proven: EntitySet<SiteId>,
}

impl Rewritten {
    /// Returns the specification with this codelet.
    pub fn spec<'s>(&'s self, spec: &KernelSpec<'s>) -> KernelSpec<'s> {
        KernelSpec { codelet: &self.codelet, proven: &self.proven, ..spec.clone() }
    }
}
