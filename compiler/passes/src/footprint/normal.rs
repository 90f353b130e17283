//! A normal form of boxes, and their runs.
//!
//! Invariant: strides are positive and ascend, and dimensions that continue each other are merged.

use super::Dim;
use smallvec::{SmallVec, smallvec};

/// A box with ascending positive strides and merged dimensions.
pub(super) struct Normal {
    pub(super) base: i64,
    pub(super) dims: SmallVec<[Dim; 8]>,
    /// The number of times that dimensions of stride 0 repeat each element.
    pub(super) repeats: u64,
}

pub(super) fn normalise(mut base: i64, dims: &[Dim]) -> Normal {
    let mut repeats = 1;
    let mut sorted: SmallVec<[Dim; 8]> = smallvec![];
    for d in dims {
        match d.stride {
            _ if d.len == 1 => {}
            0 => repeats *= d.len,
            s => {
                base += ((d.len as i64 - 1) * s).min(0);
                sorted.push(Dim { len: d.len, stride: s.abs() });
            }
        }
    }
    sorted.sort_by_key(|d| (d.stride, d.len));
    let mut merged: SmallVec<[Dim; 8]> = smallvec![];
    for d in sorted {
        match merged.last_mut() {
            Some(last) if last.len as i64 * last.stride == d.stride => last.len *= d.len,
            _ => merged.push(d),
        }
    }
    Normal { base, dims: merged, repeats }
}

impl Normal {
    /// Calls `f` for each run as [`Footprint::runs`](super::Footprint::runs) does. Returns `false` if `f` stopped it.
    pub(super) fn runs(&self, f: &mut impl FnMut(u64, u64) -> bool) -> bool {
        let (len, outer) = match self.dims.first() {
            Some(d) if d.stride == 1 => (d.len, &self.dims[1..]),
            _ => (1, &self.dims[..]),
        };
        let boxes: u64 = outer.iter().map(|d| d.len).product();
        for _ in 0..self.repeats {
            let mut point: SmallVec<[u64; 8]> = smallvec![0; outer.len()];
            let mut at = self.base;
            for _ in 0..boxes {
                if !f(at as u64, len) {
                    return false;
                }
                for (i, d) in point.iter_mut().zip(outer) {
                    *i += 1;
                    at += d.stride;
                    if *i < d.len {
                        break;
                    }
                    at -= d.stride * d.len as i64;
                    *i = 0;
                }
            }
        }
        true
    }
}
