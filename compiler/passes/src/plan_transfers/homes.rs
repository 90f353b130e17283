//! Homes of elements, looked up in the runs of a mapping. The lookup starts at the run that was found last.
//!
//! Invariant: a hint changes the time of a lookup, never its result.

use super::buffers::PlanError;
use girder_ir::ids::VarId;
use girder_ir::plan::{Homes, Loc, Object};

/// The home of an element: its tile, and its position in a block by the run of the mapping that holds it.
#[derive(Clone, Copy, Debug)]
pub(super) struct ElementHome {
    /// Its tile.
    pub tile: u32,
    offset: u32,
    /// The number of elements between the first of the run and this one.
    behind: u32,
}

impl ElementHome {
    /// Returns the location of the element in the block of its variable.
    pub fn loc(self, var: VarId, bytes: u32) -> Loc {
        Loc { tile: self.tile, object: Object::Var(var), offset: self.byte(bytes) }
    }

    /// Returns the byte of the element in its block.
    pub fn byte(self, bytes: u32) -> u32 {
        self.offset + self.behind * bytes
    }
}

/// The run of a mapping that was found last. It affects only the time of lookups.
#[derive(Clone, Copy, Default)]
pub(super) struct RunHint {
    /// The index of the run.
    pub at: usize,
    /// The number of runs from the last jump: rows of a block are evenly spaced.
    jump: usize,
}

/// Returns the home of an element.
pub(super) fn locate(homes: &Homes, element: u64, hint: &mut RunHint) -> ElementHome {
    let holds = |k: &usize| homes.runs.get(*k).is_some_and(|r| r.elements().contains(&element));
    if !holds(&hint.at) && !holds(&(hint.at + 1)) {
        // Rows of a block are evenly apart, others anywhere.
        let ahead = Some(hint.at.wrapping_add(hint.jump)).filter(holds);
        let found = ahead.unwrap_or_else(|| homes.run_of(element));
        *hint = RunHint { at: found, jump: found.wrapping_sub(hint.at) };
    } else if !holds(&hint.at) {
        hint.at += 1;
    }
    let run = &homes.runs[hint.at];
    ElementHome { tile: run.tile, offset: run.offset, behind: element as u32 - run.start }
}

/// Returns the byte of an element in its block, and one past the last element of the run that holds it.
pub(super) fn home_run(homes: &Homes, element: u64, hint: &mut RunHint) -> (u32, u64) {
    let at = locate(homes, element, hint);
    (at.byte(homes.elem_bytes), homes.runs[hint.at].end as u64)
}

/// Splits `len` elements from `start` on, `stride` apart, where the mapping changes. Calls `f(k, n, home of the k-th,
/// its run)` for elements k to k + n - 1.
pub(super) fn split(
    homes: &Homes,
    start: u64,
    stride: i64,
    len: u64,
    hint: &mut RunHint,
    mut f: impl FnMut(u64, u64, ElementHome, usize) -> Result<(), PlanError>,
) -> Result<(), PlanError> {
    let mut k = 0;
    while k < len {
        let element = (start as i64 + k as i64 * stride) as u64;
        let at = locate(homes, element, hint);
        let run = homes.runs[hint.at].elements();
        let here = match stride {
            0 => len,
            1.. => (run.end - 1 - element) / stride as u64 + 1,
            _ => (element - run.start) / stride.unsigned_abs() + 1,
        };
        let n = here.min(len - k);
        f(k, n, at, hint.at)?;
        k += n;
    }
    Ok(())
}
