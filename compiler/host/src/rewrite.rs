//! Rewrites of codelets for the host: another codelet with the same results that compiles to faster code.
//!
//! - `inline_indices` writes out the locals that hold an index;
//! - `version_loops` makes a second version of a loop without the exit that is seldom taken;
//! - `unroll` writes out short loops around loops that store short rows;
//! - `interchange` distributes loops over columns, and turns loops over columns that each reduce their rows into loops over rows;
//! - `substitute` copies expressions and statements with other expressions instead of locals.
//!
//! Invariant: a rewritten codelet leaves the same bits in memory and fails the same checks as the original; its checks
//! that are new cannot fail.

mod inline_indices;
mod version_loops;
mod unroll;
mod interchange;
mod substitute;

use cranelift_entity::EntitySet;
use girder_codelet::kernel::{KernelSpec, KernelTarget, depth, unsupported_type};
use girder_ir::codelet::Codelet;
use girder_ir::ids::SiteId;

/// A codelet that computes the same in another way.
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

/// Rewrites a codelet for the host, or returns `None` if it stays as it is. A codelet whose executions are counted is
/// not rewritten, nor one that the code generator refuses.
pub fn rewrite(spec: &KernelSpec<'_>, target: KernelTarget) -> Option<Rewritten> {
    if spec.counts() || unsupported_type(spec.codelet).is_some() || depth(spec.codelet).is_none() {
        return None;
    }
    let mut done: Option<Rewritten> = None;
    let rewrites = [
        inline_indices::inline_indices,
        version_loops::version_loops,
        unroll::unroll,
        interchange::distribute,
        interchange::interchange,
    ];
    for rewrite in rewrites {
        let next = match &done {
            Some(rewritten) => rewrite(&rewritten.spec(spec), target),
            None => rewrite(spec, target),
        };
        done = next.filter(|next| depth(&next.codelet).is_some()).or(done);
    }
    done
}
