//! Views turned round: the elements of a variable that a view names, as regions in canonical order, and the way from a
//! tensor of the view's shape to the elements of each region.
//!
//! Invariant: regions of the same elements are equal views.

use girder_ir::view::{View, ViewPart};

/// One part of a view as a region of a variable.
#[derive(Clone, Debug)]
pub struct Onto {
    /// The region's elements in ascending order, of rank 1.
    pub region: View,
    /// The box of the part: for each digit of the view, the first index and the number of indices.
    bounds: Vec<(u64, u64)>,
    /// The digits along which every index names the same elements.
    pub repeated: Vec<usize>,
    /// The digits with falling indices.
    reversed: Vec<usize>,
    /// The digits by falling distance.
    order: Vec<usize>,
}

/// The greatest number of regions into which a part is cut whose indices share elements.
const MOST: u64 = 128;

/// Returns the regions of a view's parts. A part whose indices share elements, other than by repeating whole axes, is
/// cut along some of its digits into boxes that share none; `None` if they were too many.
pub fn regions(view: &View) -> Option<Vec<Onto>> {
    let mut all = vec![];
    for part in &view.parts {
        let whole: Vec<(u64, u64)> = part.len.iter().map(|&n| (0, n as u64)).collect();
        let one = region(part, &whole);
        if !one.region.has_aliases() {
            all.push(one);
            continue;
        }
        let cut = separating(part)?;
        let count: u64 = cut.iter().map(|&k| part.len[k] as u64).product();
        for mut number in 0..count {
            let mut bounds = whole.clone();
            for &k in &cut {
                bounds[k] = (number % part.len[k] as u64, 1);
                number /= part.len[k] as u64;
            }
            all.push(region(part, &bounds));
        }
    }
    Some(all)
}

/// Returns the digits of a part to cut along, so that the indices of a box share no elements: of all choices the one
/// with the fewest boxes.
fn separating(part: &ViewPart) -> Option<Vec<usize>> {
    let long: Vec<usize> = (0..part.len.len()).filter(|&k| part.len[k] > 1 && part.stride[k] != 0).collect();
    let count = |set: u32| -> u64 {
        let chosen = long.iter().enumerate().filter(|(j, _)| set >> j & 1 == 1);
        chosen.fold(1, |n, (_, &k)| n.saturating_mul(part.len[k] as u64))
    };
    let mut sets: Vec<u32> = (1..1u32 << long.len().min(12)).filter(|&s| count(s) <= MOST).collect();
    sets.sort_by_key(|&s| (count(s), s));
    let set = sets.into_iter().find(|set| {
        let one = |k: usize| long.iter().position(|&l| l == k).is_some_and(|j| set >> j & 1 == 1);
        let bounds = part.len.iter().enumerate().map(|(k, &n)| (0, if one(k) { 1 } else { n as u64 }));
        !region(part, &bounds.collect::<Vec<_>>()).region.has_aliases()
    })?;
    Some(long.into_iter().enumerate().filter(|(j, _)| set >> j & 1 == 1).map(|(_, k)| k).collect())
}

/// Returns a box of a part as a region: for each digit, the first index within the part and the number of indices.
fn region(part: &ViewPart, bounds: &[(u64, u64)]) -> Onto {
    let n = bounds.len();
    let repeated: Vec<usize> = (0..n).filter(|&k| part.stride[k] == 0 && bounds[k].1 > 1).collect();
    let reversed: Vec<usize> = (0..n).filter(|&k| part.stride[k] < 0 && bounds[k].1 > 1).collect();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by_key(|&k| std::cmp::Reverse(if bounds[k].1 > 1 { part.stride[k].abs() } else { 0 }));
    let mut offset = part.offset;
    for (k, &(first, len)) in bounds.iter().enumerate() {
        let last = if reversed.contains(&k) { len - 1 } else { 0 };
        offset += (first + last) as i64 * part.stride[k];
    }
    let kept = |k: &&usize| !repeated.contains(k);
    let extents: Vec<u64> = order.iter().filter(kept).map(|&k| bounds[k].1).collect();
    let strides: Vec<i64> = order.iter().filter(kept).map(|&k| part.stride[k].abs()).collect();
    let boxed = View::strided(part.var, offset, &extents, &strides);
    let bounds = bounds.iter().zip(&part.lo).map(|(&(first, len), &lo)| (lo as u64 + first, len)).collect();
    Onto { region: boxed.reshape(&[boxed.len()]), bounds, repeated, reversed, order }
}

impl Onto {
    /// Returns the part of a tensor of the view's shape that belongs to this region, one axis for each digit.
    pub fn cut(&self, view: &View, d: &View) -> View {
        let digits: Vec<u64> = view.digits.iter().map(|&n| n as u64).collect();
        let mut cut = d.reshape(&digits);
        for (k, &(lo, n)) in self.bounds.iter().enumerate() {
            if (lo, n) != (0, digits[k]) {
                cut = cut.slice(k, lo, n, 1);
            }
        }
        cut
    }

    /// Returns a tensor with one axis for each digit, of which the repeated ones have length 1, in the region's order.
    pub fn ordered(&self, cut: &View) -> View {
        let mut v = cut.clone();
        for &k in &self.reversed {
            v = v.reverse(k);
        }
        let v = v.permute(&self.order);
        v.reshape(&[v.len()])
    }

    /// Returns the elements of a region's tensor in the shape of the view, whose only part this is.
    pub fn restored(&self, view: &View, d: &View) -> Option<View> {
        if !self.repeated.is_empty() || view.parts.len() != 1 {
            return None;
        }
        let extents: Vec<u64> = self.order.iter().map(|&k| self.bounds[k].1).collect();
        let mut inverse = vec![0; self.order.len()];
        for (at, &k) in self.order.iter().enumerate() {
            inverse[k] = at;
        }
        let mut v = d.reshape(&extents).permute(&inverse);
        for &k in &self.reversed {
            v = v.reverse(k);
        }
        Some(v.reshape(&view.shape()))
    }
}
