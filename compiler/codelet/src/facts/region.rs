//! Regions of fields that have certainly been written: products of arithmetic progressions, and whether they cover a
//! whole field.
//!
//! Invariant: a list of regions stands for elements that have certainly been written. Every operation keeps the union
//! of a list or makes it smaller.

use super::affine::{Affine, Symbol};
use girder_ir::ids::FieldId;
use smallvec::SmallVec;

/// Indices along one axis: `start + Σ stride · d` with each `d` below its count.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Axis {
    pub start: Affine,
    /// Stride and count of each digit: strides are positive and ascend, counts are greater than one.
    digits: SmallVec<[(i64, i64); 2]>,
}

/// A product of axes, one per dimension of the field.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Region {
    pub field: FieldId,
    pub axes: SmallVec<[Axis; 3]>,
    /// Whether the workers of a tile write it together, instead of each of them all of it.
    pub together: bool,
}

/// Maximal length of a list; regions beyond it count as unwritten.
const MAX_REGIONS: usize = 1 << 10;
/// Maximal number of pairs that an intersection of two lists compares.
const MAX_PAIRS: usize = 1 << 10;
/// Maximal number of boxes that [`covers`] may have left over at a time.
const MAX_BOXES: usize = 1 << 10;

impl Axis {
    fn point(start: Affine) -> Axis {
        Axis { start, digits: SmallVec::new() }
    }

    /// Returns the number of indices if they are contiguous from `start` on.
    fn length(&self) -> Option<i64> {
        match self.digits[..] {
            [] => Some(1),
            [(1, n)] => Some(n),
            _ => None,
        }
    }

    fn with_length(start: Affine, n: i64) -> Axis {
        let digits = if n == 1 { SmallVec::new() } else { SmallVec::from_slice(&[(1, n)]) };
        Axis { start, digits }
    }

    /// Adds a digit; contiguous progressions are joined.
    fn push(&mut self, stride: i64, count: i64) -> Option<()> {
        if count == 1 {
            return Some(());
        }
        self.digits.push((stride, count));
        self.digits.sort_unstable();
        let mut joined: SmallVec<[(i64, i64); 2]> = SmallVec::new();
        for &(s, n) in &self.digits {
            match joined.last_mut() {
                Some((t, m)) if s % *t == 0 && s / *t <= *m => *m = m.checked_add((s / *t).checked_mul(n - 1)?)?,
                _ => joined.push((s, n)),
            }
        }
        self.digits = joined;
        Some(())
    }

    /// Returns the intersection if it is an axis again.
    fn meet(&self, other: &Axis) -> Option<Axis> {
        if self == other {
            return Some(self.clone());
        }
        let offset = other.start.difference(&self.start)?;
        let (n, m) = (self.length()?, other.length()?);
        let (lo, hi) = (offset.max(0), n.min(offset.checked_add(m)?));
        let start = Affine { terms: self.start.terms.clone(), base: self.start.base.checked_add(lo)? };
        (lo < hi).then(|| Axis::with_length(start, hi - lo))
    }
}

impl Region {
    /// Returns the region of one element.
    pub fn element(field: FieldId, index: impl Iterator<Item = Affine>) -> Region {
        Region { field, axes: index.map(Axis::point).collect(), together: false }
    }

    /// Returns the union of `count` copies of the region, each `step` indices further along an axis.
    pub fn repeated(mut self, axis: usize, step: i64, count: i64) -> Option<Region> {
        let axis = self.axes.get_mut(axis)?;
        if step == 0 {
            return Some(self);
        }
        if step < 0 {
            axis.start.base = axis.start.base.checked_add(step.checked_mul(count - 1)?)?;
        }
        axis.push(step.checked_abs()?, count)?;
        Some(self)
    }

    /// Returns whether a symbol occurs in the region's starts.
    pub fn mentions(&self, s: Symbol) -> bool {
        self.axes.iter().any(|a| a.start.factor(s) != 0)
    }

    /// Returns the union over `s = start + step · t` for `t` in `0..trips`, if it is a region; `trips` is positive.
    fn expand(mut self, s: Symbol, start: &Affine, step: i64, trips: i64) -> Option<Region> {
        let mut moving = self.axes.iter_mut().filter(|a| a.start.factor(s) != 0);
        let Some(axis) = moving.next() else { return Some(self) };
        if moving.next().is_some() {
            return None;
        }
        let stride = axis.start.factor(s).checked_mul(step)?;
        axis.start = axis.start.substitute(s, start)?;
        if stride < 0 {
            axis.start.base = axis.start.base.checked_add(stride.checked_mul(trips - 1)?)?;
        }
        axis.push(stride.checked_abs()?, trips)?;
        Some(self)
    }

    /// Returns the `count` steps of an axis's outermost digit that begin with step `from`.
    fn part(&self, axis: usize, from: i64, count: i64) -> Option<Region> {
        let mut part = self.clone();
        let axis = part.axes.get_mut(axis)?;
        let (stride, _) = axis.digits.pop()?;
        axis.start.base = axis.start.base.checked_add(stride.checked_mul(from)?)?;
        axis.push(stride, count)?;
        Some(part)
    }

    fn meet(&self, other: &Region) -> Option<Region> {
        if self.field != other.field {
            return None;
        }
        let axes = self.axes.iter().zip(&other.axes).map(|(a, b)| a.meet(b)).collect::<Option<_>>()?;
        Some(Region { field: self.field, axes, together: self.together || other.together })
    }
}

/// Adds a region to a list.
pub(crate) fn push(list: &mut Vec<Region>, region: Region) {
    if list.len() < MAX_REGIONS {
        list.push(region);
    }
}

/// Returns the regions that a loop over `s = start + step · t`, `t` in `0..trips`, has written if each iteration has
/// written `list`.
pub(crate) fn expand(list: Vec<Region>, s: Symbol, start: &Affine, step: i64, trips: i64) -> Vec<Region> {
    let (mut moving, mut rest): (Vec<_>, Vec<_>) = list.into_iter().partition(|r| r.mentions(s));
    merge(&mut moving);
    rest.extend(moving.into_iter().filter_map(|r| r.expand(s, start, step, trips)));
    rest
}

/// Returns the intersection of two lists: equal regions, and common parts of others.
pub(crate) fn meet(mut a: Vec<Region>, mut b: Vec<Region>) -> Vec<Region> {
    a.sort_unstable();
    b.sort_unstable();
    a.dedup();
    b.dedup();
    let (mut both, only_a): (Vec<_>, Vec<_>) = a.iter().cloned().partition(|r| b.binary_search(r).is_ok());
    b.retain(|r| a.binary_search(r).is_err());
    let mut pairs = 0;
    for x in &only_a {
        for y in &b {
            pairs += 1;
            if pairs > MAX_PAIRS {
                return both;
            }
            if let Some(r) = x.meet(y) {
                push(&mut both, r);
            }
        }
    }
    both
}

/// Merges a list that has grown to twice its length after the last merge, which is `many`.
pub(crate) fn compact(list: &mut Vec<Region>, many: &mut usize) {
    if list.len() >= (2 * *many).max(1 << 6) {
        merge(list);
        *many = list.len();
    }
}

/// Splits progressions where others with the same stride end, so that those of several workers can be merged.
///
/// Of `worker..n by workers`, some workers write one element more than others.
pub(crate) fn align(list: &mut Vec<Region>) {
    merge(list);
    let rank = list.iter().map(|r| r.axes.len()).max().unwrap_or(0);
    for axis in 0..rank {
        let strided = |r: &Region| r.axes.get(axis).and_then(|a| a.digits.last().copied()).filter(|d| d.0 > 1);
        let mut counts: Vec<(i64, i64)> = list.iter().filter_map(strided).collect();
        counts.sort_unstable();
        counts.dedup();
        let mut pieces = Vec::with_capacity(list.len());
        for region in list.drain(..) {
            let Some((stride, count)) = strided(&region).filter(|_| pieces.len() < MAX_REGIONS) else {
                pieces.push(region);
                continue;
            };
            // The first element is always a piece of its own, because a worker may have no more than that.
            let ends = counts.iter().filter(|&&(s, n)| s == stride && n <= count).map(|c| c.1);
            let mut from = 0;
            for end in std::iter::once(1).chain(ends) {
                pieces.extend(region.part(axis, from, end - from));
                from = end;
            }
        }
        *list = pieces;
    }
}

/// Merges regions that differ in one axis only: neighbours become one interval, equal steps become a digit.
fn merge(list: &mut Vec<Region>) {
    list.sort_unstable();
    list.dedup();
    let rank = list.iter().map(|r| r.axes.len()).max().unwrap_or(0);
    for axis in 0..rank {
        merge_along(list, axis, |_| (), neighbours);
    }
    for axis in 0..rank {
        merge_along(list, axis, |a| a.digits.clone(), progression);
    }
}

/// Merges runs of regions along one axis. The regions of a run agree in everything else and in the `class` of the axis,
/// and ascend; `join` returns how many of the first regions become which axis.
fn merge_along<C: Ord>(
    list: &mut Vec<Region>,
    axis: usize,
    class: impl Fn(&Axis) -> C,
    join: impl Fn(&[Axis]) -> (usize, Axis),
) {
    let (mut rest, mut keep): (Vec<_>, Vec<_>) = list.drain(..).partition(|r| axis < r.axes.len());
    let key = |r: &Region| {
        let mut others = r.clone();
        let this = others.axes.remove(axis);
        (others, this.start.terms.clone(), class(&this))
    };
    rest.sort_by_cached_key(|r| (key(r), r.axes[axis].start.base));
    for run in rest.chunk_by(|x, y| key(x) == key(y)) {
        let axes: Vec<Axis> = run.iter().map(|r| r.axes[axis].clone()).collect();
        let mut at = 0;
        while at < axes.len() {
            let (taken, joined) = join(&axes[at..]);
            let mut region = run[at].clone();
            region.axes[axis] = joined;
            keep.push(region);
            at += taken;
        }
    }
    *list = keep;
}

/// Joins intervals that touch or overlap.
fn neighbours(axes: &[Axis]) -> (usize, Axis) {
    let start = &axes[0].start;
    let Some(mut length) = axes[0].length() else { return (1, axes[0].clone()) };
    let mut taken = 1;
    for next in &axes[1..] {
        let (Some(offset), Some(n)) = (next.start.base.checked_sub(start.base), next.length()) else { break };
        let Some(end) = offset.checked_add(n).filter(|_| offset <= length) else { break };
        length = length.max(end);
        taken += 1;
    }
    (taken, Axis::with_length(start.clone(), length))
}

/// Joins equal digits at equal distances.
fn progression(axes: &[Axis]) -> (usize, Axis) {
    let distance = |i: usize| axes[i + 1].start.base.checked_sub(axes[i].start.base);
    let mut joined = axes[0].clone();
    let Some(stride) = (axes.len() > 1).then(|| distance(0)).flatten().filter(|&d| d > 0) else { return (1, joined) };
    let taken = 1 + (0..axes.len() - 1).take_while(|&i| distance(i) == Some(stride)).count();
    match joined.push(stride, taken as i64) {
        Some(()) => (taken, joined),
        None => (1, axes[0].clone()),
    }
}

/// A box of plain intervals, `lo..hi` per axis.
type IndexBox = SmallVec<[(i64, i64); 3]>;

/// Returns whether the regions of a field contain all its elements.
pub(crate) fn covers(list: &[Region], field: FieldId, shape: &[u64]) -> bool {
    let mut regions: Vec<Region> = list.iter().filter(|r| r.field == field).cloned().collect();
    merge(&mut regions);
    let whole: IndexBox = shape.iter().map(|&n| (0, i64::try_from(n).unwrap_or(i64::MAX))).collect();
    let mut left = if shape.contains(&0) { Vec::new() } else { vec![whole] };
    for region in &regions {
        let Some(hole) = region.axes.iter().map(interval).collect::<Option<IndexBox>>() else { continue };
        left = left.into_iter().flat_map(|rest_box| subtract(rest_box, &hole)).collect();
        if left.len() > MAX_BOXES {
            return false;
        }
    }
    left.is_empty()
}

fn interval(axis: &Axis) -> Option<(i64, i64)> {
    let lo = axis.start.is_constant()?;
    Some((lo, lo.checked_add(axis.length()?)?))
}

/// Returns the rest of a box: up to two slabs per axis.
fn subtract(mut rest_box: IndexBox, hole: &IndexBox) -> Vec<IndexBox> {
    if rest_box.iter().zip(hole).any(|(p, h)| h.1 <= p.0 || p.1 <= h.0) {
        return vec![rest_box];
    }
    let mut left = Vec::new();
    for (axis, &(lo, hi)) in hole.iter().enumerate() {
        let (first, end) = rest_box[axis];
        if first < lo {
            let mut slab = rest_box.clone();
            slab[axis] = (first, lo);
            left.push(slab);
        }
        if hi < end {
            let mut slab = rest_box.clone();
            slab[axis] = (hi, end);
            left.push(slab);
        }
        rest_box[axis] = (first.max(lo), end.min(hi));
    }
    left
}
