//! Checks that are due when a loop around a `grad` closes.
//!
//! Invariant: a check is dropped with the last open body that it is about.

use super::active::Active;
use super::order::Moment;
use girder_ir::view::View;
use girder_source::Span;
use std::rc::Rc;

/// A value that no later iteration of a loop may find overwritten.
#[derive(Clone, Debug)]
pub struct LateCheck {
    /// The elements.
    pub view: View,
    /// The end of the `grad` that needs them.
    pub since: Moment,
    /// The number of the open body in which the value was made.
    pub root: usize,
    /// The number of open bodies around the `grad` that are still open.
    pub chain: usize,
    /// The operation that is differentiated.
    pub needed: Span,
    /// The `grad`.
    pub taken: Span,
}

/// What a loss depends on when a body begins.
#[derive(Clone, Debug)]
pub struct Carried {
    /// The number of the open body.
    pub depth: usize,
    /// What it depends on.
    pub views: Vec<View>,
    /// The wanted tensors, each with the moment after its last write.
    pub leaves: Vec<(View, Moment)>,
    /// What depends on the wanted tensors.
    pub active: Rc<Active>,
    /// The `grad`.
    pub taken: Span,
}
