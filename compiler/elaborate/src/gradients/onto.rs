//! Views turned round: the elements of a variable that a view names, as regions in canonical order, and the way from a
//! tensor of the view's shape to the elements of each region.
//!
//! Invariant: regions of the same elements are equal views.

use girder_ir::view::View;

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

/// Returns the regions of a view's parts; `None` if a part names an element twice other than by repeating whole axes.
pub fn regions(view: &View) -> Option<Vec<Onto>> {
    view.parts
        .iter()
        .map(|part| {
            let n = part.len.len();
            let bounds: Vec<(u64, u64)> =
                part.lo.iter().zip(&part.len).map(|(&lo, &n)| (lo as u64, n as u64)).collect();
            let repeated: Vec<usize> = (0..n).filter(|&k| part.stride[k] == 0 && part.len[k] > 1).collect();
            let reversed: Vec<usize> = (0..n).filter(|&k| part.stride[k] < 0 && part.len[k] > 1).collect();
            let mut order: Vec<usize> = (0..n).collect();
            order.sort_by_key(|&k| std::cmp::Reverse(if part.len[k] > 1 { part.stride[k].abs() } else { 0 }));
            let mut offset = part.offset;
            for &k in &reversed {
                offset += (part.len[k] as i64 - 1) * part.stride[k];
            }
            let kept = |k: &&usize| !repeated.contains(k);
            let lens: Vec<u64> = order.iter().filter(kept).map(|&k| part.len[k] as u64).collect();
            let strides: Vec<i64> = order.iter().filter(kept).map(|&k| part.stride[k].abs()).collect();
            let boxed = View::strided(part.var, offset, &lens, &strides);
            let region = boxed.reshape(&[boxed.len()]);
            (!region.has_aliases()).then_some(Onto { region, bounds, repeated, reversed, order })
        })
        .collect()
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
        let lens: Vec<u64> = self.order.iter().map(|&k| self.bounds[k].1).collect();
        let mut inverse = vec![0; self.order.len()];
        for (at, &k) in self.order.iter().enumerate() {
            inverse[k] = at;
        }
        let mut v = d.reshape(&lens).permute(&inverse);
        for &k in &self.reversed {
            v = v.reverse(k);
        }
        Some(v.reshape(&view.shape()))
    }
}
