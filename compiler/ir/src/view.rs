//! Views: ordered references to elements of variables. A view never moves data.
//!
//! The index space of a view is a box of *digits*; each axis is the product of some neighbouring digits, so that a
//! reshape only regroups digits and strides survive. The elements are given by parts: disjoint boxes over the digits
//! that together fill the space, each an affine function into one variable.
//!
//! Invariants: `axes` sums to `digits.len()`; parts are disjoint and cover the box; every referenced element lies in
//! its variable; an empty view has no parts; digits of length 1 may be dropped or added freely; a view has at most
//! [`View::MAX_LEN`] elements (the code that builds a view checks the length first).

mod digits;
mod ops;
mod reshape;
mod runs;
mod sets;
mod simplify;
#[cfg(test)]
mod tests;

pub use runs::{CopyRun, Runs, copy_runs};
pub use sets::overlap;

use crate::ids::VarId;
use smallvec::SmallVec;
use std::ops::Range;

/// A point or extent over the digits of a view.
pub type Digits = SmallVec<[u32; 4]>;
/// The lengths of axes.
pub type Shape = SmallVec<[u64; 4]>;

/// An ordered, shaped set of references to elements.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct View {
    /// Lengths, outermost first.
    pub digits: Digits,
    /// The number of digits of each axis.
    pub axes: SmallVec<[u8; 4]>,
    /// The elements.
    pub parts: SmallVec<[ViewPart; 1]>,
}

/// A box of a view whose elements lie at equal strides in one variable: the element at digits `d` (from `lo`) is
/// `offset + Σ (d[k] - lo[k]) · stride[k]` of the variable's flat, row-major order.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ViewPart {
    /// First point.
    pub lo: Digits,
    /// Extent, at least 1 in every digit.
    pub len: Digits,
    /// The variable.
    pub var: VarId,
    /// Flat element at `lo`.
    pub offset: i64,
    /// Elements from one point to the next along each digit; 0 repeats an element.
    pub stride: SmallVec<[i64; 4]>,
}

/// Elements of one variable at equal distances.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Run {
    /// The variable.
    pub var: VarId,
    /// First flat element.
    pub start: u64,
    /// Number of elements, at least 1.
    pub len: u64,
    /// Distance; 1 is contiguous, 0 repeats one element.
    pub stride: i64,
}

/// The elements of a view as one strided box, one stride per axis.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct StridedBox {
    /// The variable.
    pub var: VarId,
    /// Flat element at index (0, …, 0).
    pub offset: i64,
    /// Lengths of the axes.
    pub shape: Shape,
    /// Elements from one index to the next along each axis; 0 for an axis of length 1.
    pub strides: SmallVec<[i64; 4]>,
}

/// The properties of a view except its offsets: views of one signature fit in one field of a family.
///
/// Invariant: the view with all offsets 0.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Signature(View);

impl View {
    /// The greatest number of elements of a view; any product of digits then fits in one digit.
    pub const MAX_LEN: u64 = u32::MAX as u64;

    /// Returns the view of all elements of a variable.
    pub fn whole(var: VarId, shape: &[u64]) -> View {
        let mut view = View::empty(shape);
        let mut stride: SmallVec<[i64; 4]> = SmallVec::from_elem(1, view.digits.len());
        for k in (1..view.digits.len()).rev() {
            stride[k - 1] = stride[k].wrapping_mul(view.digits[k] as i64);
        }
        if !view.digits.contains(&0) {
            let lo = SmallVec::from_elem(0, view.digits.len());
            view.parts.push(ViewPart { lo, len: view.digits.clone(), var, offset: 0, stride });
        }
        view
    }

    /// Returns the view of elements of one variable at equal distances: index (i, …) is `offset + Σ i · stride`.
    pub fn strided(var: VarId, offset: i64, shape: &[u64], strides: &[i64]) -> View {
        let mut view = View::empty(shape);
        if !shape.contains(&0) {
            let stride = shape.iter().zip(strides).filter(|(n, _)| **n != 1).map(|(_, s)| *s).collect();
            let lo = SmallVec::from_elem(0, view.digits.len());
            view.parts.push(ViewPart { lo, len: view.digits.clone(), var, offset, stride });
        }
        view
    }

    /// Returns a box without parts: an empty view if some length is zero, otherwise the start of one.
    fn empty(shape: &[u64]) -> View {
        debug_assert!(shape.contains(&0) || shape.iter().product::<u64>() <= View::MAX_LEN);
        let digits = shape.iter().filter(|&&n| n != 1).map(|&n| n as u32).collect();
        View { digits, axes: shape.iter().map(|&n| (n != 1) as u8).collect(), parts: SmallVec::new() }
    }

    /// Returns the lengths of its axes.
    pub fn shape(&self) -> Shape {
        let mut digits = self.digits.iter();
        self.axes.iter().map(|&n| digits.by_ref().take(n as usize).map(|&d| d as u64).product()).collect()
    }

    /// Returns the number of axes.
    pub fn rank(&self) -> usize {
        self.axes.len()
    }

    /// Returns the number of elements that it names, repeated ones included.
    pub fn len(&self) -> u64 {
        self.digits.iter().map(|&d| d as u64).product()
    }

    /// Returns whether it names no elements.
    pub fn is_empty(&self) -> bool {
        self.digits.contains(&0)
    }

    /// Returns the range of digits of an axis.
    pub fn axis(&self, axis: usize) -> Range<usize> {
        let start = self.axes[..axis].iter().map(|&n| n as usize).sum();
        start..start + self.axes[axis] as usize
    }

    /// Returns the element at a row-major position. Precondition: `flat < len`.
    pub fn element(&self, mut flat: u64) -> (VarId, u64) {
        let mut point: Digits = SmallVec::from_elem(0, self.digits.len());
        for (p, &n) in point.iter_mut().zip(&self.digits).rev() {
            *p = (flat % n as u64) as u32;
            flat /= n as u64;
        }
        let part = self.parts.iter().find(|p| p.contains(&point)).expect("parts cover the box of a view");
        (part.var, part.at(&point) as u64)
    }

    /// Returns its elements in row-major order.
    pub fn elements(&self) -> impl Iterator<Item = (VarId, u64)> + use<> {
        self.runs().flat_map(|r| r.elements().map(move |e| (r.var, e)))
    }

    /// Returns the variables that it names, ascending.
    pub fn vars(&self) -> SmallVec<[VarId; 2]> {
        let mut vars: SmallVec<[VarId; 2]> = self.parts.iter().map(|p| p.var).collect();
        vars.sort_unstable();
        vars.dedup();
        vars
    }

    /// Returns the view as one strided box, if it is one.
    pub fn single(&self) -> Option<StridedBox> {
        let mut simple = self.clone();
        simple.simplify();
        let [part] = simple.parts.as_slice() else { return None };
        if simple.axes.iter().any(|&n| n > 1) {
            return None;
        }
        let mut strides = part.stride.iter();
        let strides = simple.axes.iter().map(|&n| if n == 0 { 0 } else { *strides.next().unwrap_or(&0) }).collect();
        Some(StridedBox { var: part.var, offset: part.offset, shape: simple.shape(), strides })
    }

    /// Returns the properties in which views that share a field agree; offsets are left out, see [`View::offsets`].
    pub fn signature(&self) -> Signature {
        let mut view = self.clone();
        view.parts.iter_mut().for_each(|p| p.offset = 0);
        Signature(view)
    }

    /// Returns whether two views have the same [`Signature`], without building it.
    pub fn same_signature(&self, other: &View) -> bool {
        let part =
            |(p, q): (&ViewPart, &ViewPart)| p.var == q.var && p.stride == q.stride && p.len == q.len && p.lo == q.lo;
        self.digits == other.digits
            && self.axes == other.axes
            && self.parts.len() == other.parts.len()
            && self.parts.iter().zip(&other.parts).all(part)
    }

    /// Returns the offset of each part, in order.
    pub fn offsets(&self) -> impl Iterator<Item = i64> {
        self.parts.iter().map(|p| p.offset)
    }
}

impl ViewPart {
    /// Returns whether a point of the view's digits is in the box.
    fn contains(&self, point: &[u32]) -> bool {
        point.iter().zip(&self.lo).zip(&self.len).all(|((&x, &lo), &n)| x >= lo && x - lo < n)
    }

    /// Returns the flat element at a point of the box.
    fn at(&self, point: &[u32]) -> i64 {
        let shift = point.iter().zip(&self.lo).zip(&self.stride).map(|((&x, &lo), &s)| (x - lo) as i64 * s);
        self.offset + shift.sum::<i64>()
    }

    /// Returns the least and the greatest element.
    pub fn hull(&self) -> (i64, i64) {
        hull(self.offset, &self.len, &self.stride)
    }
}

/// Returns the least and the greatest element of a box whose first point is the element `offset`.
pub(crate) fn hull(offset: i64, len: &[u32], stride: &[i64]) -> (i64, i64) {
    len.iter().zip(stride).fold((offset, offset), |(least, greatest), (&n, &s)| {
        let reach = (i64::from(n) - 1) * s;
        (least + reach.min(0), greatest + reach.max(0))
    })
}

impl Run {
    /// Returns its elements in order.
    pub fn elements(self) -> impl Iterator<Item = u64> {
        (0..self.len).map(move |k| self.at(k))
    }

    /// Returns the k-th element.
    pub fn at(self, k: u64) -> u64 {
        (self.start as i64 + k as i64 * self.stride) as u64
    }
}
