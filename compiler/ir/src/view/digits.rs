//! Cutting, joining and dropping digits of a view.
//!
//! Invariant: none of these changes which elements a view names or their row-major order, except `fix_digit` and
//! `slice_digit`, which select elements; updating `axes` is left to the caller.

use super::{View, ViewPart};
use crate::view::Digits;
use smallvec::SmallVec;

impl View {
    /// Cuts digit `k` into (`digits[k] / inner`, `inner`). Precondition: `inner` divides it.
    pub(super) fn split_digit(&mut self, k: usize, inner: u32) {
        let outer = self.digits[k] / inner;
        self.digits[k] = inner;
        self.digits.insert(k, outer);
        let parts = std::mem::take(&mut self.parts);
        for part in &parts {
            let (first, last) = (part.lo[k], part.lo[k] + part.len[k] - 1);
            let (row, last_row) = (first / inner, last / inner);
            let mut push = |row: u32, rows: u32, from: u32, cols: u32| {
                let shift = row as i64 * inner as i64 + from as i64 - first as i64;
                self.parts.push(part.cut(k, (row, rows, inner), (from, cols), shift));
            };
            if row == last_row {
                push(row, 1, first % inner, last - first + 1);
                continue;
            }
            let ragged_head = first % inner != 0;
            let ragged_tail = last % inner != inner - 1;
            if ragged_head {
                push(row, 1, first % inner, inner - first % inner);
            }
            let (whole, whole_end) = (row + ragged_head as u32, last_row + !ragged_tail as u32);
            if whole < whole_end {
                push(whole, whole_end - whole, 0, inner);
            }
            if ragged_tail {
                push(last_row, 1, 0, last % inner + 1);
            }
        }
    }

    /// Returns whether digits `k` and `k + 1` can be joined without splitting a part.
    pub(super) fn joins(&self, k: usize) -> bool {
        let inner = self.digits[k + 1];
        self.parts.iter().all(|p| p.joins(k, inner))
    }

    /// Joins digits `k` and `k + 1`; a part whose strides do not allow it splits into its rows.
    pub(super) fn join_digits(&mut self, k: usize) {
        let inner = self.digits[k + 1];
        let mut parts: SmallVec<[ViewPart; 1]> = SmallVec::with_capacity(self.parts.len());
        for mut part in std::mem::take(&mut self.parts) {
            if part.joins(k, inner) {
                part.join(k, inner);
                parts.push(part);
                continue;
            }
            for row in 0..part.len[k] {
                let mut row_part = part.clone();
                row_part.lo[k] += row;
                row_part.len[k] = 1;
                row_part.offset += row as i64 * part.stride[k];
                row_part.join(k, inner);
                parts.push(row_part);
            }
        }
        self.parts = parts;
        self.digits[k] *= inner;
        self.digits.remove(k + 1);
    }

    /// Selects one value of digit `k` and drops the digit.
    pub(super) fn fix_digit(&mut self, k: usize, value: u32) {
        self.parts.retain(|p| value >= p.lo[k] && value - p.lo[k] < p.len[k]);
        for part in &mut self.parts {
            part.offset += (value - part.lo[k]) as i64 * part.stride[k];
            part.drop_digit(k);
        }
        self.digits.remove(k);
    }

    /// Selects the values `start`, `start + step`, … of digit `k`; `step` is positive.
    pub(super) fn slice_digit(&mut self, k: usize, start: u64, count: u64, step: u64) {
        self.digits[k] = count as u32;
        self.parts.retain(|part| {
            let (lo, end) = (part.lo[k] as u64, part.lo[k] as u64 + part.len[k] as u64);
            let first = lo.saturating_sub(start).div_ceil(step);
            let last = end.saturating_sub(start).div_ceil(step).min(count);
            if first >= last {
                return false;
            }
            part.offset += (start + first * step - lo) as i64 * part.stride[k];
            part.stride[k] *= step as i64;
            part.lo[k] = first as u32;
            part.len[k] = (last - first) as u32;
            true
        });
    }

    /// Inserts a digit of length `n` with stride 0 before digit `k`.
    pub(super) fn insert_digit(&mut self, k: usize, n: u32) {
        self.digits.insert(k, n);
        if n == 0 {
            self.parts.clear();
        }
        for part in &mut self.parts {
            part.lo.insert(k, 0);
            part.len.insert(k, n);
            part.stride.insert(k, 0);
        }
    }

    /// Drops digit `k`, of length 1.
    pub(super) fn drop_unit(&mut self, k: usize) {
        self.digits.remove(k);
        self.parts.iter_mut().for_each(|p| p.drop_digit(k));
    }

    /// Cuts and joins the digits `at..at + have` until each length of `want` is the product of some neighbours; returns
    /// their numbers. The products agree, and the view is not empty.
    pub(super) fn regroup(&mut self, at: usize, have: usize, want: &[u32]) -> SmallVec<[u8; 4]> {
        let mut counts: SmallVec<[u8; 4]> = SmallVec::from_elem(0, want.len());
        let mut end = at + have;
        for (count, &want) in counts.iter_mut().zip(want).rev() {
            let mut need = want;
            while need > 1 {
                let digit = self.digits[end - 1];
                if need.is_multiple_of(digit) {
                    need /= digit;
                    end -= 1;
                    *count += 1;
                } else if digit.is_multiple_of(need) {
                    self.split_digit(end - 1, need);
                    need = 1;
                    *count += 1;
                } else {
                    self.join_digits(end - 2);
                    end -= 1;
                }
            }
        }
        while end > at {
            end -= 1;
            self.drop_unit(end);
        }
        counts
    }

    /// Makes `want` the digits of an axis; the products agree, and the view is not empty.
    pub(super) fn refine(&mut self, axis: usize, want: &[u32]) {
        let range = self.axis(axis);
        let counts = self.regroup(range.start, range.len(), want);
        for (k, &count) in counts.iter().enumerate() {
            match count {
                0 => self.insert_digit(range.start + k, 1),
                _ => (1..count).for_each(|_| self.join_digits(range.start + k)),
            }
        }
        self.axes[axis] = want.len() as u8;
    }
}

impl ViewPart {
    /// Returns the part with digit `k` replaced by rows `row..row + rows` and columns `from..from + cols` of rows of
    /// `inner`.
    fn cut(&self, k: usize, (row, rows, inner): (u32, u32, u32), (from, cols): (u32, u32), shift: i64) -> ViewPart {
        let mut row_part = self.clone();
        let stride = self.stride[k];
        row_part.offset += shift * stride;
        (row_part.lo[k], row_part.len[k]) = (from, cols);
        row_part.lo.insert(k, row);
        row_part.len.insert(k, rows);
        row_part.stride.insert(k, stride * inner as i64);
        row_part
    }

    fn joins(&self, k: usize, inner: u32) -> bool {
        self.len[k] == 1 || self.len[k + 1] == inner && self.stride[k] == inner as i64 * self.stride[k + 1]
    }

    fn join(&mut self, k: usize, inner: u32) {
        self.lo[k] = self.lo[k] * inner + self.lo[k + 1];
        self.len[k] *= self.len[k + 1];
        self.stride[k] = self.stride[k + 1];
        self.drop_digit(k + 1);
    }

    fn drop_digit(&mut self, k: usize) {
        self.lo.remove(k);
        self.len.remove(k);
        self.stride.remove(k);
    }
}

/// Returns the finest digits into which both lists of digits with equal products can be cut or joined.
pub(super) fn common_digits(a: &[u32], b: &[u32]) -> Digits {
    let (mut a, mut b) = (a.iter().rev().map(|&d| d as u64), b.iter().rev().map(|&d| d as u64));
    let mut common = Digits::new();
    let (mut x, mut y) = (1, 1);
    loop {
        if x == 1 || y == 1 {
            match (x, y, a.len(), b.len()) {
                (1, _, 1.., _) => x = a.next().unwrap_or(1),
                (_, 1, _, 1..) => y = b.next().unwrap_or(1),
                _ => break,
            }
            continue;
        }
        let low = x.min(y);
        if x % low == 0 && y % low == 0 {
            common.push(low as u32);
            (x, y) = (x / low, y / low);
        } else if x < y {
            x *= a.next().unwrap_or(1);
        } else {
            y *= b.next().unwrap_or(1);
        }
    }
    common.reverse();
    common
}
