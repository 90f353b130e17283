//! The canonical form of a view: no digit of length 1, digits of an axis and parts joined where possible, parts in
//! order.

use super::{View, ViewPart};
use smallvec::smallvec;

impl View {
    /// Brings the view to canonical form; its elements and shape stay the same.
    pub fn simplify(&mut self) {
        if self.is_empty() {
            *self = View::empty(&self.shape());
            return;
        }
        self.drop_units();
        self.canonicalise_strides();
        while self.join_parts() | self.join_axes() {}
        self.parts.sort_unstable_by(|p, q| p.lo.cmp(&q.lo));
    }

    fn drop_units(&mut self) {
        let mut k = 0;
        for axis in 0..self.axes.len() {
            for _ in 0..self.axes[axis] {
                if self.digits[k] == 1 {
                    self.drop_unit(k);
                    self.axes[axis] -= 1;
                } else {
                    k += 1;
                }
            }
        }
    }

    /// Sets the stride of a part along a digit with a single value to 0.
    fn canonicalise_strides(&mut self) {
        for part in &mut self.parts {
            part.stride.iter_mut().zip(&part.len).filter(|(_, n)| **n == 1).for_each(|(s, _)| *s = 0);
        }
    }

    fn join_axes(&mut self) -> bool {
        let mut changed = false;
        let mut first = 0;
        for axis in 0..self.axes.len() {
            let mut k = first + self.axes[axis] as usize;
            while k > first + 1 {
                k -= 1;
                if self.joins(k - 1) {
                    self.join_digits(k - 1);
                    self.axes[axis] -= 1;
                    changed = true;
                }
            }
            first += self.axes[axis] as usize;
        }
        changed
    }

    fn join_parts(&mut self) -> bool {
        let before = self.parts.len();
        for k in (0..self.digits.len()).rev() {
            if self.parts.len() < 2 {
                break;
            }
            self.parts.sort_unstable_by(|p, q| p.beside(q, k));
            let parts = std::mem::replace(&mut self.parts, smallvec![]);
            for part in parts {
                if !self.parts.last_mut().is_some_and(|last| last.append(&part, k)) {
                    self.parts.push(part);
                }
            }
        }
        self.parts.len() < before
    }

    /// Returns the view with all axes joined to one, in canonical form.
    pub(super) fn flat(&self) -> View {
        let mut flat = self.clone();
        flat.axes = smallvec![flat.digits.len() as u8];
        flat.simplify();
        flat
    }
}

impl ViewPart {
    /// Orders parts such that those that differ only along digit `k` are adjacent and ascend.
    fn beside(&self, other: &ViewPart, k: usize) -> std::cmp::Ordering {
        let without = |x: &ViewPart, j: usize| (x.lo[j], x.len[j]);
        let digits = (0..self.lo.len()).filter(|&j| j != k);
        digits
            .map(|j| without(self, j).cmp(&without(other, j)))
            .find(|o| o.is_ne())
            .unwrap_or(self.lo[k].cmp(&other.lo[k]))
    }

    /// Appends `next` if both form one box along digit `k`.
    fn append(&mut self, next: &ViewPart, k: usize) -> bool {
        let same =
            |j: usize| j == k || (self.lo[j], self.len[j], self.stride[j]) == (next.lo[j], next.len[j], next.stride[j]);
        if self.var != next.var || next.lo[k] != self.lo[k] + self.len[k] || !(0..self.lo.len()).all(same) {
            return false;
        }
        let gap = next.offset - self.offset;
        let stride = match (self.len[k], next.len[k]) {
            (1, 1) => gap,
            (1, _) => next.stride[k],
            (_, 1) => self.stride[k],
            _ if self.stride[k] != next.stride[k] => return false,
            _ => self.stride[k],
        };
        if gap != self.len[k] as i64 * stride {
            return false;
        }
        self.len[k] += next.len[k];
        self.stride[k] = stride;
        true
    }
}
