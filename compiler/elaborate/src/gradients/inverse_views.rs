//! Inverses of views: for each part of a view, the elements of the variable as a region in canonical order, and the
//! view that takes a tensor of the view's shape to the elements of the region.
//!
//! Invariant: regions of the same elements are equal views.

use girder_ir::view::{View, ViewPart};

/// One part of a view as a region of a variable.
#[derive(Clone, Debug)]
pub struct InverseView {
    /// The region's elements in ascending order, of rank 1.
    pub region: View,
    /// The box of the part, in indices of the view.
    bounds: Bounds,
    /// The digits along which every index names the same elements.
    pub repeated: Vec<usize>,
    /// The digits with falling indices.
    reversed: Vec<usize>,
    /// The digits by falling distance.
    order: Vec<usize>,
}

/// A box of a part's indices: for each digit the first index, the distance between indices, and their number.
type Bounds = Vec<(u64, u64, u64)>;

/// The greatest number of regions into which one part is cut.
const MOST: u64 = 512;

/// Returns the regions of a view's parts. If the indices of a part share elements, other than by repeating whole axes,
/// the part is cut into boxes that share none; the result is `None` if there would be too many. Overlapping windows
/// that are far enough apart belong to one box.
pub fn regions(view: &View) -> Option<Vec<InverseView>> {
    let mut all = vec![];
    for part in &view.parts {
        let one = region(part, &boxed(part, &vec![1; part.len.len()], 0));
        if !one.region.has_aliases() {
            all.push(one);
            continue;
        }
        let cut = separating(part)?;
        let count: u64 = cut.iter().product();
        all.extend((0..count).map(|number| region(part, &boxed(part, &cut, number))));
    }
    Some(all)
}

/// Returns box `number` of the indices of a part. It has every `cut[k]`-th index of digit `k`.
fn boxed(part: &ViewPart, cut: &[u64], mut number: u64) -> Bounds {
    let bounds = part.len.iter().zip(cut).map(|(&n, &step)| {
        let first = number % step;
        number /= step;
        (first, step, (n as u64 - first).div_ceil(step))
    });
    bounds.collect()
}

/// Returns, for each digit of a part, the distance between the indices of one box, so that no two of them share an
/// element. Of all choices, this is the one with the fewest boxes.
fn separating(part: &ViewPart) -> Option<Vec<u64>> {
    let long: Vec<usize> = (0..part.len.len()).filter(|&k| part.len[k] > 1 && part.stride[k] != 0).collect();
    // The number of elements that the digits with strides of at most `within` span.
    let reach = |of: usize, within: i64| -> u64 {
        let near = long.iter().filter(|&&k| k != of && part.stride[k].abs() <= within);
        near.map(|&k| (part.len[k] as u64 - 1) * part.stride[k].unsigned_abs()).sum::<u64>() + 1
    };
    let choices = |&k: &usize| {
        let (n, stride) = (part.len[k] as u64, part.stride[k].abs());
        let apart = |within: i64| reach(k, within).div_ceil(stride as u64).min(n);
        let mut all = vec![1, n, apart(stride), apart(stride - 1), apart(i64::MAX)];
        all.sort_unstable();
        all.dedup();
        all.retain(|&c| c <= MOST);
        all
    };
    let mut cuts: Vec<Vec<u64>> = vec![vec![1; part.len.len()]];
    for k in &long {
        let list = choices(k);
        let longer = cuts.iter().flat_map(|cut| {
            list.iter().map(|&c| {
                let mut cut = cut.clone();
                cut[*k] = c;
                cut
            })
        });
        cuts = longer.filter(|cut| cut.iter().product::<u64>() <= MOST).take(CHOICES).collect();
    }
    // Boxes of neighbouring indices are quicker to add than others.
    let scattered = |cut: &Vec<u64>| cut.iter().zip(&part.len).filter(|(c, n)| **c > 1 && **c < **n as u64).count();
    cuts.sort_by_cached_key(|cut| (cut.iter().product::<u64>(), scattered(cut)));
    cuts.into_iter().find(|cut| !region(part, &boxed(part, cut, 0)).region.has_aliases())
}

/// The greatest number of ways to cut a part that are compared.
const CHOICES: usize = 4096;

/// Returns a box of a part as a region.
fn region(part: &ViewPart, bounds: &[(u64, u64, u64)]) -> InverseView {
    let n = bounds.len();
    let repeated: Vec<usize> = (0..n).filter(|&k| part.stride[k] == 0 && bounds[k].2 > 1).collect();
    let reversed: Vec<usize> = (0..n).filter(|&k| part.stride[k] < 0 && bounds[k].2 > 1).collect();
    let stride = |k: usize| part.stride[k].abs() * bounds[k].1 as i64;
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by_key(|&k| std::cmp::Reverse(if bounds[k].2 > 1 { stride(k) } else { 0 }));
    let mut offset = part.offset;
    for (k, &(first, step, len)) in bounds.iter().enumerate() {
        let last = if reversed.contains(&k) { (len - 1) * step } else { 0 };
        offset += (first + last) as i64 * part.stride[k];
    }
    let kept = |k: &&usize| !repeated.contains(k);
    let extents: Vec<u64> = order.iter().filter(kept).map(|&k| bounds[k].2).collect();
    let strides: Vec<i64> = order.iter().filter(kept).map(|&k| stride(k)).collect();
    let boxed = View::strided(part.var, offset, &extents, &strides);
    let bounds = bounds.iter().zip(&part.lo).map(|(&(first, step, len), &lo)| (lo as u64 + first, step, len)).collect();
    InverseView { region: boxed.reshape(&[boxed.len()]), bounds, repeated, reversed, order }
}

impl InverseView {
    /// Returns the part of a tensor of the view's shape that belongs to this region, one axis for each digit.
    pub fn cut(&self, view: &View, d: &View) -> View {
        let digits: Vec<u64> = view.digits.iter().map(|&n| n as u64).collect();
        let mut cut = d.reshape(&digits);
        for (k, &(lo, step, n)) in self.bounds.iter().enumerate() {
            if (lo, n) != (0, digits[k]) {
                cut = cut.slice(k, lo, n, step as i64);
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
        let extents: Vec<u64> = self.order.iter().map(|&k| self.bounds[k].2).collect();
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
