//! Parts of a matrix side by side, in the order in which tiles read them.
//!
//! Invariant: a packed row has whole vectors; lanes beyond the matrix are zero.

use super::vector::{Float, Vector};

/// What is packed: `lanes` elements that are read together, for each of `terms` terms.
pub(super) struct Strip {
    /// The first element.
    pub from: *const u8,
    /// Bytes from lane to lane.
    pub lane: i64,
    /// Bytes from term to term.
    pub step: i64,
    /// At least one.
    pub lanes: usize,
    /// How many.
    pub terms: usize,
}

impl Strip {
    fn at<F>(&self, lane: usize, term: usize) -> *const F {
        let ahead = (lane as i64).wrapping_mul(self.lane).wrapping_add((term as i64).wrapping_mul(self.step));
        self.from.wrapping_offset(ahead as isize).cast()
    }
}

/// Packs a strip as rows of `vectors` vectors.
///
/// # Safety
/// The strip's elements may be read; `to` has room for `terms` rows; the machine has the instructions of `V`.
#[inline(always)]
pub(super) unsafe fn pack<V: Vector>(strip: &Strip, vectors: usize, to: *mut V::Float) {
    // SAFETY: passed on.
    unsafe {
        if strip.lane == size_of::<V::Float>() as i64 {
            copy::<V>(strip, vectors, to);
        } else {
            turn::<V>(strip, vectors, to);
        }
    }
}

/// Lanes that lie side by side.
///
/// # Safety
/// As `pack`.
#[inline(always)]
unsafe fn copy<V: Vector>(strip: &Strip, vectors: usize, to: *mut V::Float) {
    let last = V::first(strip.lanes - (vectors - 1) * V::LANES);
    for k in 0..strip.terms {
        let to = to.wrapping_add(k * vectors * V::LANES);
        // SAFETY: `last` selects the lanes of the strip.
        unsafe {
            for n in 0..vectors - 1 {
                V::load(strip.at(n * V::LANES, k)).store(to.wrapping_add(n * V::LANES));
            }
            let n = vectors - 1;
            V::load_some(strip.at(n * V::LANES, k), last).store(to.wrapping_add(n * V::LANES));
        }
    }
}

/// Lanes anywhere; fast if terms lie side by side.
///
/// # Safety
/// As `pack`.
#[inline(always)]
unsafe fn turn<V: Vector>(strip: &Strip, vectors: usize, to: *mut V::Float) {
    let row = vectors * V::LANES;
    let side_by_side = strip.step == size_of::<V::Float>() as i64;
    for n in 0..vectors {
        let first = n * V::LANES;
        let count = (strip.lanes - first).min(V::LANES);
        let to = to.wrapping_add(first);
        let mut k = 0;
        // SAFETY: all lanes and terms below are inside.
        unsafe {
            while side_by_side && count == V::LANES && k + V::QUAD <= strip.terms {
                V::turn(strip.at(first, k), strip.lane, to.wrapping_add(k * row), row);
                k += V::QUAD;
            }
            while k < strip.terms {
                for lane in 0..V::LANES {
                    let inside = lane < count;
                    let x =
                        if inside { strip.at::<V::Float>(first + lane, k).read_unaligned() } else { V::Float::ZERO };
                    to.wrapping_add(k * row + lane).write(x);
                }
                k += 1;
            }
        }
    }
}
