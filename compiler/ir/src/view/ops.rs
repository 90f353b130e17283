//! The operations of the language on views: select, reorder, repeat.
//!
//! Invariant: a canonical view yields a canonical view.

use super::{Digits, View, ViewPart};
use smallvec::SmallVec;

impl View {
    /// Returns the view at index `i` of an axis, without that axis. Precondition: `i` is less than its length.
    pub fn index(&self, axis: usize, i: u64) -> View {
        debug_assert!(i < self.shape()[axis]);
        if let ([_], [1], [p]) = (&self.digits[..], &self.axes[..], &self.parts[..]) {
            // This is the fast path for one element of a vector; a program may have millions of such views.
            let none = Digits::new();
            let offset = p.offset + i as i64 * p.stride[0];
            let part = ViewPart { lo: none.clone(), len: none.clone(), var: p.var, offset, stride: SmallVec::new() };
            return View { digits: none, axes: SmallVec::new(), parts: [part].into_iter().collect() };
        }
        self.clone().into_index(axis, i)
    }

    /// Works like [`View::index`].
    pub fn into_index(mut self, axis: usize, i: u64) -> View {
        debug_assert!(i < self.shape()[axis]);
        let (range, parts) = (self.axis(axis), self.parts.len());
        self.fix(range, i);
        self.axes.remove(axis);
        self.tidy(parts);
        self
    }

    /// Returns the view of `count` indices `start`, `start + step`, … of an axis. Preconditions: all are within it;
    /// `step` is not 0.
    pub fn slice(&self, axis: usize, start: u64, count: u64, step: i64) -> View {
        let mut shape = self.shape();
        debug_assert!(count == 0 || start < shape[axis]);
        if count == 0 || self.is_empty() {
            shape[axis] = count;
            return View::empty(&shape);
        }
        if count == 1 {
            return self.index(axis, start).expand(axis);
        }
        if step < 0 {
            let least = (start as i64 + (count as i64 - 1) * step) as u64;
            return self.slice(axis, least, count, -step).reverse(axis);
        }
        let mut view = self.clone();
        view.slice_axis(axis, start, count, step as u64);
        view.tidy(self.parts.len());
        view
    }

    /// Slices digit by digit from the innermost, joining two only where the slice fits neither.
    fn slice_axis(&mut self, axis: usize, mut start: u64, mut count: u64, mut step: u64) {
        let range = self.axis(axis);
        let digits = self.digits.len();
        let mut end = range.end;
        while end > range.start {
            let k = end - 1;
            let inner = self.digits[k] as u64;
            let from = start % inner;
            if k == range.start {
                self.slice_digit(k, start, count, step);
                break;
            } else if from + (count - 1) * step < inner {
                self.slice_digit(k, from, count, step);
                self.fix(range.start..k, start / inner);
                break;
            } else if step.is_multiple_of(inner) {
                self.fix_digit(k, from as u32);
                step /= inner;
            } else if inner.is_multiple_of(step) && from < step && count.is_multiple_of(inner / step) {
                self.slice_digit(k, from, inner / step, step);
                count /= inner / step;
                step = 1;
            } else {
                // Only the rows that the slice meets, because each of them may become a part of its own.
                let (first, last) = (start / inner, (start + (count - 1) * step) / inner);
                let rows = self.digits[k - 1] as u64;
                if first / rows == last / rows {
                    self.slice_digit(k - 1, first % rows, last - first + 1, 1);
                    start = (first / rows * (last - first + 1)) * inner + start - first * inner;
                }
                self.join_digits(k - 1);
                end = k;
                continue;
            }
            start /= inner;
            end = k;
        }
        self.axes[axis] -= (digits - self.digits.len()) as u8;
    }

    /// Selects one index over neighbouring digits and drops them.
    fn fix(&mut self, range: std::ops::Range<usize>, mut i: u64) {
        for k in range.rev() {
            let n = self.digits[k] as u64;
            self.fix_digit(k, (i % n) as u32);
            i /= n;
        }
    }

    /// Simplifies the view if parts were cut; a view of one part needs nothing.
    fn tidy(&mut self, parts_before: usize) {
        if parts_before > 1 || self.parts.len() > 1 {
            self.simplify();
        }
    }

    /// Returns the view whose axis k is axis `order[k]`. Precondition: a permutation of the axes.
    pub fn permute(&self, order: &[usize]) -> View {
        let from: SmallVec<[usize; 8]> = order.iter().flat_map(|&a| self.axis(a)).collect();
        let mut view = self.clone();
        view.axes = order.iter().map(|&a| self.axes[a]).collect();
        view.digits = from.iter().map(|&k| self.digits[k]).collect();
        for (new, old) in view.parts.iter_mut().zip(&self.parts) {
            new.lo = from.iter().map(|&k| old.lo[k]).collect();
            new.len = from.iter().map(|&k| old.len[k]).collect();
            new.stride = from.iter().map(|&k| old.stride[k]).collect();
        }
        view.parts.sort_unstable_by(|p, q| p.lo.cmp(&q.lo));
        view
    }

    /// Returns the view with its axes in reverse order.
    pub fn transpose(&self) -> View {
        let order: SmallVec<[usize; 4]> = (0..self.rank()).rev().collect();
        self.permute(&order)
    }

    /// Returns the view with one axis reversed.
    pub fn reverse(&self, axis: usize) -> View {
        let mut view = self.clone();
        for k in view.axis(axis) {
            for part in &mut view.parts {
                part.offset += (part.len[k] as i64 - 1) * part.stride[k];
                part.stride[k] = -part.stride[k];
                part.lo[k] = view.digits[k] - part.lo[k] - part.len[k];
            }
        }
        view.parts.sort_unstable_by(|p, q| p.lo.cmp(&q.lo));
        view
    }

    /// Returns the view repeated `n` times along an axis.
    pub fn broadcast(&self, n: u64, axis: usize) -> View {
        let mut view = self.clone();
        if n == 0 || self.is_empty() {
            let mut shape = self.shape();
            shape[axis] *= n;
            return View::empty(&shape);
        }
        if n > 1 {
            let first = view.axis(axis).start;
            view.insert_digit(first, n as u32);
            view.axes[axis] += 1;
            view.tidy_repeat(axis);
        }
        view
    }

    /// Joins repeated repetitions of an axis.
    fn tidy_repeat(&mut self, axis: usize) {
        let range = self.axis(axis);
        if range.len() > 1 && self.joins(range.start) {
            self.join_digits(range.start);
            self.axes[axis] -= 1;
        }
    }

    /// Returns the view with a new axis of length 1 at position `axis`.
    pub fn expand(&self, axis: usize) -> View {
        let mut view = self.clone();
        view.axes.insert(axis, 0);
        view
    }

    /// Returns the view without an axis. Precondition: its length is 1.
    pub fn squeeze(&self, axis: usize) -> View {
        self.index(axis, 0)
    }

    /// Returns the view repeated to a shape by NumPy's rules: axes align at the last, and an axis of length 1 repeats.
    /// `None` if they do not fit.
    pub fn broadcast_to(&self, shape: &[u64]) -> Option<View> {
        let have = self.shape();
        let new = shape.len().checked_sub(have.len())?;
        if have.iter().zip(&shape[new..]).any(|(&h, &w)| h != w && h != 1) {
            return None;
        }
        if shape.contains(&0) {
            return Some(View::empty(shape));
        }
        let mut view = self.clone();
        (0..new).for_each(|_| view.axes.insert(0, 0));
        for (axis, &want) in shape.iter().enumerate() {
            if want > 1 && (axis < new || have[axis - new] == 1) {
                let first = view.axis(axis).start;
                view.insert_digit(first, want as u32);
                view.axes[axis] += 1;
            }
        }
        Some(view)
    }
}
