//! Fields that the workers of a `multi` codelet write together.
//!
//! Each worker is walked by itself, with its number and that of all workers known, so that the bounds of its share are
//! numbers however they are computed. What all of them have certainly written is joined.
//!
//! Invariant: a field is covered only if every element is written whenever all workers end. The time is limited by
//! [`SINGLE`] and the length of the code.

use super::deciding::DecidingLoops;
use super::region::{self, covers};
use super::walk::{Worker, walk};
use crate::sizes::Sizes;
use girder_ir::codelet::Codelet;
use girder_ir::ids::FieldId;

/// The number of iterations of all workers that may be walked one by one. This is done if walking each loop once does
/// not decide, as for a `while`, or for an element that a condition assigns to one worker.
const SINGLE: u32 = 1 << 11;

/// Returns those of the fields `open` that the workers certainly write in full together.
pub(super) fn covered(codelet: &Codelet, sizes: &Sizes, workers: u32, mut open: Vec<FieldId>) -> Vec<FieldId> {
    let (mut covered, deciding) = (vec![], DecidingLoops::of(codelet));
    for single in [0, SINGLE / workers] {
        if open.is_empty() {
            break;
        }
        let outcome =
            |number| walk(codelet, sizes, Some(Worker { number, of: workers, single, deciding: &deciding })).written;
        let Some(of_workers) = (0..workers).map(outcome).collect::<Option<Vec<_>>>() else {
            // If a worker never ends, no result is visible.
            covered.append(&mut open);
            break;
        };
        let mut written = of_workers.concat();
        region::align(&mut written);
        let (full, rest) = open.into_iter().partition(|&field| covers(&written, field, &sizes.shapes[field]));
        covered.extend::<Vec<_>>(full);
        open = rest;
    }
    covered
}
