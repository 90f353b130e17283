//! Known values, where arithmetic counts as that of whole numbers.
//!
//! Invariant: it serves decisions on profit only; a codelet whose arithmetic wraps is rewritten as correctly.

use girder_codelet::fold::Folded;
use girder_codelet::forms::Known;
use girder_ir::ids::ExprId;

/// The known values of a codelet.
pub(super) struct Whole<'f>(pub &'f Folded);

impl Known for Whole<'_> {
    fn number(&self, e: ExprId) -> Option<i64> {
        self.0[e].map(|bits| bits as i64)
    }

    fn is_exact(&self, _: ExprId) -> bool {
        true
    }
}
