//! Sets of elements of one variable as strided boxes, with operations that do not list the elements.
//!
//! # Note: Radix
//! A box whose strides divide one another is a mixed-radix number system: the stride of each dimension is the weight of
//! a digit. Two boxes over the same weights intersect iff their intervals intersect in every digit, once an interval
//! that carries into the next digit is cut at the carry. Regions whose strides do not divide one another are listed as
//! intervals, sorted and swept.

use crate::ids::VarId;
use smallvec::{SmallVec, smallvec};

/// The elements `offset + Σ i[k] · stride[k]`, `0 <= i[k] < len[k]`, of a variable.
///
/// Invariant (established by [`Region::new`]): strides are positive and ascend, lengths are at least 2, and no two
/// dimensions form one progression.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Region {
    /// The least element.
    pub offset: i64,
    /// Length and stride of each dimension.
    pub dims: SmallVec<[(u64, i64); 4]>,
    /// Whether the given dimensions certainly named some element twice.
    pub repeats: bool,
}

/// Elements `start..end` of a variable.
pub type Interval = (VarId, u64, u64);

/// Above this many boxes, listing the elements is faster.
const MAX_BOXES: usize = 64;

impl Region {
    /// Builds a region from a first element and dimensions (length at least 1, any stride) in any order.
    pub fn new(mut offset: i64, dims: impl IntoIterator<Item = (u64, i64)>) -> Region {
        let mut repeats = false;
        let mut sorted: SmallVec<[(u64, i64); 4]> = SmallVec::new();
        for (len, stride) in dims.into_iter().filter(|d| d.0 > 1) {
            match stride {
                0 => repeats = true,
                _ => sorted.push((len, stride.abs())),
            }
            if stride < 0 {
                offset += (len as i64 - 1) * stride;
            }
        }
        sorted.sort_unstable_by_key(|d| d.1);
        let mut dims: SmallVec<[(u64, i64); 4]> = SmallVec::new();
        for (len, stride) in sorted {
            match dims.last_mut() {
                // A stride within the span so far, and a multiple of its distance, only lengthens the progression.
                Some(last) if stride % last.1 == 0 && stride / last.1 <= last.0 as i64 => {
                    let steps = (stride / last.1) as u64;
                    repeats |= steps < last.0;
                    last.0 += (len - 1) * steps;
                }
                _ => dims.push((len, stride)),
            }
        }
        Region { offset, dims, repeats }
    }

    /// Returns the least and the greatest element.
    pub fn hull(&self) -> (i64, i64) {
        (self.offset, self.offset + self.dims.iter().map(|d| (d.0 as i64 - 1) * d.1).sum::<i64>())
    }

    /// Returns whether no element was named twice; `None` if that needs a list of the elements.
    pub fn injective(&self) -> Option<bool> {
        if self.repeats {
            return Some(false);
        }
        let mut span = 0;
        for &(len, stride) in &self.dims {
            if stride <= span {
                return None;
            }
            span += (len as i64 - 1) * stride;
        }
        Some(true)
    }

    /// Returns the least common element, if any; `None` if that needs a list of the elements.
    pub fn meets(&self, other: &Region) -> Option<Option<i64>> {
        let ((a, a_end), (b, b_end)) = (self.hull(), other.hull());
        if a > b_end || b > a_end {
            return Some(None);
        }
        let mut weights: SmallVec<[i64; 8]> = self.dims.iter().chain(&other.dims).map(|d| d.1).collect();
        let common = weights.iter().fold(0, |g, &w| gcd(g, w));
        if common == 0 {
            return Some((a == b).then_some(a));
        }
        if (a - b) % common != 0 {
            return Some(None);
        }
        weights.sort_unstable();
        weights.dedup();
        if weights.windows(2).any(|w| w[1] % w[0] != 0) {
            return None;
        }
        // All weights are multiples of the least, so offsets count from a common residue.
        let residue = a.rem_euclid(weights[0]);
        let (x, y) = (self.digit_boxes(&weights, residue)?, other.digit_boxes(&weights, residue)?);
        let meet = |p: &DigitBox, q: &DigitBox| {
            let both = p.iter().zip(q).map(|(p, q)| (p.0.max(q.0), p.1.min(q.1)));
            let least = both.zip(&weights).map(|((lo, hi), w)| (lo <= hi).then_some(lo * w));
            least.sum::<Option<i64>>().map(|e| e + residue)
        };
        Some(x.iter().flat_map(|p| y.iter().filter_map(move |q| meet(p, q))).min())
    }

    /// Returns the region as boxes of digits over the weights (see the note); `None` if there are too many.
    fn digit_boxes(&self, weights: &[i64], residue: i64) -> Option<Vec<DigitBox>> {
        let mut done: Vec<(DigitBox, (i64, i64))> = vec![(smallvec![], (0, 0))];
        for (l, &weight) in weights.iter().enumerate() {
            let base = (self.offset - residue) / weight;
            let span = self.dims.iter().find(|d| d.1 == weight).map_or(0, |d| d.0 as i64 - 1);
            let radix = weights.get(l + 1).map(|next| next / weight);
            let digit = radix.map_or(base, |r| base.rem_euclid(r));
            let mut next = Vec::with_capacity(done.len());
            for (digit_boxes, carry) in done {
                for (interval, carry) in cut(carry.0 + digit, carry.1 + digit + span, radix) {
                    let mut digit_boxes: DigitBox = digit_boxes.clone();
                    digit_boxes.push(interval);
                    next.push((digit_boxes, carry));
                }
            }
            done = next;
            if done.len() > MAX_BOXES {
                return None;
            }
        }
        Some(done.into_iter().map(|(digit_boxes, _)| digit_boxes).collect())
    }

    /// Adds its elements as intervals, contiguous ones along the least stride as one.
    pub fn list(&self, var: VarId, out: &mut Vec<Interval>) {
        let contiguous = self.dims.first().is_some_and(|d| d.1 == 1);
        let len = if contiguous { self.dims[0].0 } else { 1 };
        let outer = &self.dims[contiguous as usize..];
        let mut at: SmallVec<[u64; 4]> = SmallVec::from_elem(0, outer.len());
        let mut start = self.offset;
        'all: loop {
            out.push((var, start as u64, start as u64 + len));
            for (at, &(n, stride)) in at.iter_mut().zip(outer) {
                *at += 1;
                start += stride;
                if *at < n {
                    continue 'all;
                }
                start -= n as i64 * stride;
                *at = 0;
            }
            return;
        }
    }
}

/// Cuts an inclusive interval of a digit where it carries into the next digit. Returns the parts with the intervals
/// that they carry. The last digit has no radix and keeps everything.
fn cut(lo: i64, hi: i64, radix: Option<i64>) -> SmallVec<[(DigitInterval, DigitInterval); 3]> {
    let Some(r) = radix else { return smallvec![((lo, hi), (0, 0))] };
    let (row, last) = (lo.div_euclid(r), hi.div_euclid(r));
    if row == last {
        return smallvec![((lo - row * r, hi - row * r), (row, row))];
    }
    let (whole, whole_end) = (row + (lo % r != 0) as i64, last - (hi % r != r - 1) as i64);
    let mut cuts = SmallVec::new();
    if whole > row {
        cuts.push(((lo - row * r, r - 1), (row, row)));
    }
    if whole <= whole_end {
        cuts.push(((0, r - 1), (whole, whole_end)));
    }
    if whole_end < last {
        cuts.push(((0, hi - last * r), (last, last)));
    }
    cuts
}

/// An inclusive interval.
type DigitInterval = (i64, i64);

/// One interval per weight.
type DigitBox = SmallVec<[DigitInterval; 6]>;

/// Returns the greatest common divisor; that of 0 and a number is the number without its sign.
pub fn gcd(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.abs(), b.abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Returns whether some element is named twice, inside a region or by two regions.
pub fn any_repeat(regions: &[(VarId, Region)]) -> bool {
    let mut known = true;
    for (_, region) in regions {
        match region.injective() {
            Some(false) => return true,
            Some(true) => {}
            None => known = false,
        }
    }
    if known {
        let mut found = false;
        if sweep(regions, &[], |e| found |= e.is_some()) {
            return found;
        }
    }
    let mut all = list(regions);
    all.sort_unstable();
    all.windows(2).any(|w| w[0].0 == w[1].0 && w[1].1 < w[0].2)
}

/// Returns the least common element of both lists.
pub fn least_common(a: &[(VarId, Region)], b: &[(VarId, Region)]) -> Option<(VarId, u64)> {
    let mut least: Option<(VarId, u64)> = None;
    let closed = !a.is_empty() && !b.is_empty() && sweep(a, b, |e| least = [least, e].into_iter().flatten().min());
    if closed || a.is_empty() || b.is_empty() {
        return least;
    }
    first_common(&mut list(a), &mut list(b))
}

/// Returns the elements of regions as intervals, unsorted.
fn list(regions: &[(VarId, Region)]) -> Vec<Interval> {
    let mut all = Vec::new();
    regions.iter().for_each(|(var, r)| r.list(*var, &mut all));
    all
}

/// Returns the least common element of both lists; sorts them.
fn first_common(a: &mut [Interval], b: &mut [Interval]) -> Option<(VarId, u64)> {
    a.sort_unstable();
    b.sort_unstable();
    let (mut i, mut j) = (0, 0);
    // Intervals of one list may overlap: the furthest end so far stands for all earlier ones.
    let (mut x, mut y): (Option<Interval>, Option<Interval>) = (None, None);
    while i < a.len() || j < b.len() {
        let take_a = j >= b.len() || (i < a.len() && a[i] <= b[j]);
        let next = if take_a { a[i] } else { b[j] };
        let (mine, theirs) = if take_a { (&mut x, &y) } else { (&mut y, &x) };
        if let Some(t) = theirs.filter(|t| t.0 == next.0 && t.2 > next.1) {
            return Some((t.0, next.1));
        }
        match mine {
            Some(m) if m.0 == next.0 => m.2 = m.2.max(next.2),
            _ => *mine = Some(next),
        }
        if take_a { i += 1 } else { j += 1 }
    }
    None
}

/// Intersects all pairs of one region of `a` and one of `b` (or of two regions of `a` if `b` is empty) whose hulls
/// intersect, and passes the least common element to `found`. Returns `false` if a pair could not be decided or there
/// are too many pairs.
fn sweep(a: &[(VarId, Region)], b: &[(VarId, Region)], mut found: impl FnMut(Option<(VarId, u64)>)) -> bool {
    let mut order: Vec<(VarId, i64, bool, usize)> = Vec::with_capacity(a.len() + b.len());
    order.extend(a.iter().enumerate().map(|(i, r)| (r.0, r.1.offset, false, i)));
    order.extend(b.iter().enumerate().map(|(i, r)| (r.0, r.1.offset, true, i)));
    order.sort_unstable();
    let mut budget = MAX_BOXES * order.len();
    let mut active: [Vec<(i64, usize)>; 2] = [Vec::new(), Vec::new()];
    let mut var = None;
    for (v, start, side, i) in order {
        if var != Some(v) {
            active.iter_mut().for_each(Vec::clear);
            var = Some(v);
        }
        let region = if side { &b[i].1 } else { &a[i].1 };
        let others = if b.is_empty() { 0 } else { !side as usize };
        active[others].retain(|&(end, _)| end >= start);
        let list = if others == 1 { b } else { a };
        for &(_, j) in &active[others] {
            budget = budget.saturating_sub(1);
            match region.meets(&list[j].1) {
                Some(e) if budget > 0 => found(e.map(|e| (v, e as u64))),
                _ => return false,
            }
        }
        active[side as usize].push((region.hull().1, i));
    }
    true
}
