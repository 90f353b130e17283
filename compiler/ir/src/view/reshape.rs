//! Regrouping of digits into other axes, and joining of views.

use super::digits::common_digits;
use super::{Digits, Shape, View};
use smallvec::SmallVec;

impl View {
    /// Returns the same elements in row-major order under another shape. Precondition: the same number of elements.
    ///
    /// Digits are cut where the new lengths divide them. Otherwise, if the strides do not join, a part splits into its
    /// rows.
    pub fn reshape(&self, shape: &[u64]) -> View {
        debug_assert_eq!(self.len(), shape.iter().product::<u64>());
        if self.is_empty() {
            return View::empty(shape);
        }
        let mut view = self.flat();
        let want: Digits = shape.iter().map(|&n| n as u32).collect();
        view.axes = view.regroup(0, view.digits.len(), &want).iter().copied().collect();
        view.simplify();
        view
    }

    /// Returns the same elements in row-major order with one axis.
    pub fn flatten(&self) -> View {
        self.flat()
    }

    /// Returns the shape that cuts the digits of all views where any of them is cut, or `None` if some digits would
    /// have to be joined for it. All views have the same number of elements.
    pub fn common_shape(views: &[View]) -> Option<Shape> {
        let mut products: Vec<u64> = vec![1];
        for view in views {
            let mut inner = 1;
            products.extend(view.digits.iter().rev().map(|&n| {
                inner *= u64::from(n);
                inner
            }));
        }
        products.sort_unstable();
        products.dedup();
        let cut = |pair: &[u64]| pair[1].is_multiple_of(pair[0]).then(|| pair[1] / pair[0]);
        products.windows(2).rev().map(cut).collect()
    }

    /// Returns the concatenation of views along an axis. Preconditions: at least one view; all other axes agree.
    pub fn concat(views: &[View], axis: usize) -> View {
        let mut shape: Shape = views[0].shape();
        shape[axis] = views.iter().map(|v| v.shape()[axis]).sum();
        let mut views: Vec<View> = views.iter().filter(|v| !v.is_empty()).cloned().collect();
        let Some(first) = views.first() else { return View::empty(&shape) };
        if views.len() == 1 {
            return first.clone();
        }
        for other in (0..shape.len()).filter(|&a| a != axis) {
            align_axis(&mut views, other);
        }
        let suffix = common_suffix(&views, axis);
        let inner: u32 = suffix.iter().product();
        for view in &mut views {
            let outer = (view.shape()[axis] / inner as u64) as u32;
            let want: Digits = std::iter::once(outer).chain(suffix.iter().copied()).collect();
            view.refine(axis, &want);
        }
        let k = views[0].axis(axis).start;
        let mut views = views.into_iter();
        let mut all = views.next().unwrap_or_else(|| View::empty(&shape));
        for view in views {
            let shift = all.digits[k];
            all.digits[k] += view.digits[k];
            all.parts.extend(view.parts.into_iter().map(|mut p| {
                p.lo[k] += shift;
                p
            }));
        }
        all.simplify();
        all
    }
}

/// Gives an axis the same digits in all views.
fn align_axis(views: &mut [View], axis: usize) {
    let digits = |v: &View| Digits::from_slice(&v.digits[v.axis(axis)]);
    let mut common = digits(&views[0]);
    if views.iter().all(|v| v.digits[v.axis(axis)] == common[..]) {
        return;
    }
    for view in &*views {
        common = common_digits(&common, &view.digits[view.axis(axis)]);
    }
    views.iter_mut().for_each(|v| v.refine(axis, &common));
}

/// Returns the inner digits that an axis has in all views, or can be cut to have, so that only its outermost digit
/// differs.
fn common_suffix(views: &[View], axis: usize) -> Digits {
    let mut rest: Vec<SmallVec<[u32; 4]>> =
        views.iter().map(|v| SmallVec::from_slice(&v.digits[v.axis(axis)])).collect();
    let mut suffix = Digits::new();
    while rest.iter().any(|r| r.len() > 1) {
        let inner = |r: &SmallVec<[u32; 4]>| r.last().copied().unwrap_or(1);
        let low = rest.iter().map(inner).min().unwrap_or(1);
        if low == 1 || rest.iter().any(|r| inner(r) % low != 0) {
            break;
        }
        suffix.push(low);
        for digits in &mut rest {
            if let Some(last) = digits.last_mut() {
                *last /= low;
            }
            if digits.last() == Some(&1) {
                digits.pop();
            }
        }
    }
    suffix.reverse();
    suffix
}
