//! The order of steps: the moments at which they were emitted, and the paths from a body to the bodies inside it.
//!
//! Invariant: a step of a body has a later moment than the steps before it.

use std::ops::Range;
use std::rc::Rc;

/// A point in the order of elaboration.
pub type Moment = u32;

/// An element of a path from a body to one inside it: the step that holds the next body.
#[derive(Clone, Debug, PartialEq)]
pub struct Inside {
    /// The moments of the step that holds the body.
    pub during: Range<Moment>,
    /// The number of the body.
    pub arm: usize,
    /// Whether the step is a loop.
    pub is_loop: bool,
    /// The moments of the other arms of a branch, none of which runs if this one does.
    pub apart: Rc<[Range<Moment>]>,
}
