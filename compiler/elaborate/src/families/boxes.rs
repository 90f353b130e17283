//! Boxes of iterations as domains of families.

use girder_ir::family::Domain;

/// Counts the points of a box, if 64 bits do.
pub fn volume(extents: &[u32]) -> Option<u64> {
    extents.iter().try_fold(1u64, |n, &e| n.checked_mul(e as u64))
}

/// Returns the box of loops of these extents if `count` instances fill it, else a line.
pub fn box_of(extents: &[u32], count: usize) -> Domain {
    let full = volume(extents) == Some(count as u64);
    match (full && !extents.is_empty(), count) {
        (true, _) => Domain(extents.iter().copied().collect()),
        (false, 1) => Domain::default(),
        (false, n) => Domain::line(n as u32),
    }
}
