//! Rewrites of codelets for the host: each yields a codelet with the same results that compiles to faster code.
//!
//! - `whole_shares` runs the shares of all workers at once;
//! - `inline_indices` replaces locals that hold an index by the index;
//! - `version_loops` makes a second version of a loop, without its rarely taken path;
//! - `hoist_checks` makes a second version of a loop, without the bounds checks that a condition before it decides;
//! - `unroll` unrolls short loops around loops that store short rows;
//! - `interchange` distributes loops over columns, and turns those that reduce their rows into loops over rows;
//! - `substitute` copies expressions and statements with locals replaced by expressions.
//!
//! Invariant: a rewritten codelet leaves the same bits in memory and fails the same checks as the original; the checks
//! that it adds cannot fail.

mod rewritten;
mod whole_shares;
mod inline_indices;
mod version_loops;
mod hoist_checks;
mod unroll;
mod interchange;
mod substitute;

pub use rewritten::Rewritten;

use girder_codelet::kernel::{KernelSpec, KernelTarget, depth, unsupported_type};

/// Rewrites a codelet for the host; returns `None` if no rewrite applies. A codelet whose executions are counted is not
/// rewritten, nor one that the code generator rejects.
pub fn rewrite(spec: &KernelSpec<'_>, target: KernelTarget) -> Option<Rewritten> {
    if spec.counts() || unsupported_type(spec.codelet).is_some() || depth(spec.codelet).is_none() {
        return None;
    }
    let mut done: Option<Rewritten> = None;
    let rewrites = [
        whole_shares::whole_shares,
        inline_indices::inline_indices,
        version_loops::version_loops,
        hoist_checks::hoist_checks,
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
