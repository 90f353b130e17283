//! Packs panels of a matrix: copies its elements in the order in which tiles read them.
//!
//! Invariant: a packed row has whole vectors; lanes beyond the matrix are zero.

use super::vector::{Float, Vector};

/// A panel in a matrix: `lanes` elements that are read together, for each of `terms` terms.
pub(super) struct PanelSource {
    /// The first element.
    pub from: *const u8,
    /// Bytes from lane to lane.
    pub lane: i64,
    /// Bytes from term to term.
    pub step: i64,
    /// Lanes, at least one.
    pub lanes: usize,
    /// Terms.
    pub terms: usize,
}

impl PanelSource {
    fn at<F>(&self, lane: usize, term: usize) -> *const F {
        let ahead = (lane as i64).wrapping_mul(self.lane).wrapping_add((term as i64).wrapping_mul(self.step));
        self.from.wrapping_offset(ahead as isize).cast()
    }
}

/// Packs a panel as rows of `vectors` vectors.
///
/// # Safety
/// The panel's elements may be read; `to` has room for `terms` rows; the machine has the instructions of `V`.
#[inline(always)]
pub(super) unsafe fn pack<V: Vector>(source: &PanelSource, vectors: usize, to: *mut V::Float) {
    // SAFETY: passed on.
    unsafe {
        if source.lane == size_of::<V::Float>() as i64 {
            copy::<V>(source, vectors, to);
        } else {
            transpose::<V>(source, vectors, to);
        }
    }
}

/// Packs contiguous lanes.
///
/// # Safety
/// As `pack`.
#[inline(always)]
unsafe fn copy<V: Vector>(source: &PanelSource, vectors: usize, to: *mut V::Float) {
    let last = V::first(source.lanes - (vectors - 1) * V::LANES);
    for k in 0..source.terms {
        let to = to.wrapping_add(k * vectors * V::LANES);
        // SAFETY: `last` selects the lanes of the panel.
        unsafe {
            for n in 0..vectors - 1 {
                V::load(source.at(n * V::LANES, k)).store(to.wrapping_add(n * V::LANES));
            }
            let n = vectors - 1;
            V::load_some(source.at(n * V::LANES, k), last).store(to.wrapping_add(n * V::LANES));
        }
    }
}

/// Packs lanes at any stride; fast if terms are contiguous.
///
/// # Safety
/// As `pack`.
#[inline(always)]
unsafe fn transpose<V: Vector>(source: &PanelSource, vectors: usize, to: *mut V::Float) {
    let row = vectors * V::LANES;
    let contiguous = source.step == size_of::<V::Float>() as i64;
    for n in 0..vectors {
        let first = n * V::LANES;
        let count = (source.lanes - first).min(V::LANES);
        let to = to.wrapping_add(first);
        let mut k = 0;
        // SAFETY: all lanes and terms below are inside.
        unsafe {
            while contiguous && count == V::LANES && k + V::QUAD <= source.terms {
                V::transpose(source.at(first, k), source.lane, to.wrapping_add(k * row), row);
                k += V::QUAD;
            }
            while k < source.terms {
                for lane in 0..V::LANES {
                    let inside = lane < count;
                    let x =
                        if inside { source.at::<V::Float>(first + lane, k).read_unaligned() } else { V::Float::ZERO };
                    to.wrapping_add(k * row + lane).write(x);
                }
                k += 1;
            }
        }
    }
}
