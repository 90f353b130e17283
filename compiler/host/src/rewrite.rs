//! Rewrites of codelets for the host: each yields a codelet with the same results that compiles to faster code.
//!
//! - `inline_indices` replaces locals that hold an index by the index;
//! - `version_loops` makes a second version of a loop, without its rarely taken path;
//! - `unroll` unrolls short loops around loops that store short rows;
//! - `interchange` distributes loops over columns, and turns those that reduce their rows into loops over rows;
//! - `substitute` copies expressions and statements with locals replaced by expressions.
//!
//! Invariant: a rewritten codelet leaves the same bits in memory and fails the same checks as the original; the checks
//! that it adds cannot fail.

mod inline_indices;
mod version_loops;
mod unroll;
mod interchange;
mod substitute;

use cranelift_entity::EntitySet;
use girder_codelet::kernel::{KernelSpec, KernelTarget, depth, unsupported_type};
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

/// Rewrites a codelet for the host; returns `None` if no rewrite applies. A codelet whose executions are counted is not
/// rewritten, nor one that the code generator rejects.
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
