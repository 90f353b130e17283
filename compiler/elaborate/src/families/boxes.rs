//! Boxes of iterations as domains of families.

use girder_ir::family::Domain;

/// Returns the number of points of a box; `None` if it exceeds 64 bits.
pub fn volume(extents: &[u32]) -> Option<u64> {
    extents.iter().try_fold(1u64, |n, &e| n.checked_mul(e as u64))
}

/// Returns the box of the loops with these extents if `count` instances fill it, otherwise a domain of one dimension.
pub fn box_of(extents: &[u32], count: usize) -> Domain {
    let full = volume(extents) == Some(count as u64);
    match (full && !extents.is_empty(), count) {
        (true, _) => Domain(extents.iter().copied().collect()),
        (false, 1) => Domain::default(),
        (false, n) => Domain::line(n as u32),
    }
}
