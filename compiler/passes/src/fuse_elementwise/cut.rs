//! Cuts of an iteration space into the iterations of vertices.
//!
//! A cut is a list of boxes. In a box each extent of the space is a product of factors; some of them count vertices,
//! the others iterations of one vertex. A cut is made like the boxes in which other vertices access the same elements,
//! or evenly.
//!
//! Invariant: the boxes of a cut are disjoint and cover the space.

use girder_fusion::space::Access;
use girder_ir::family::{Domain, Field, Offset};

/// Minimal number of iterations of a vertex.
const LEAST: u64 = 32;
/// Minimal number of iterations of a part of a divided vertex.
const LEAST_PART: u64 = 4;
/// Maximal number of boxes of a cut.
const MOST_BOXES: usize = 16;

/// A factor of an extent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Factor {
    /// The number of values.
    pub n: u64,
    /// Iterations along the extent from one value to the next.
    pub unit: u64,
    /// The rank of the factor among those that count vertices, the slowest first; `None` if it counts iterations.
    pub across: Option<usize>,
}

/// A box of iterations.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct CutBox {
    /// Its first index along each extent.
    pub lo: Vec<u64>,
    /// The factors of each extent, the largest unit first.
    pub factors: Vec<Vec<Factor>>,
}

/// See the module.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Cut {
    pub boxes: Vec<CutBox>,
    /// The number of vertices that share the tile of one vertex of the cut that this one divides.
    pub beside: u64,
}

/// The elements that one field accesses in all vertices of a family.
pub(super) type FamilyField = (Domain, Field);

impl CutBox {
    fn len(&self, extent: usize) -> u64 {
        self.factors[extent].iter().map(|f| f.n).product()
    }

    fn meets(&self, other: &CutBox) -> bool {
        (0..self.lo.len()).all(|k| self.lo[k] < other.lo[k] + other.len(k) && other.lo[k] < self.lo[k] + self.len(k))
    }

    /// Returns the number of vertices.
    pub fn vertices(&self) -> u64 {
        self.factors.iter().flatten().filter(|f| f.across.is_some()).map(|f| f.n).product()
    }

    /// Returns the number of iterations of a vertex.
    pub fn iterations(&self) -> u64 {
        self.factors.iter().flatten().filter(|f| f.across.is_none()).map(|f| f.n).product()
    }

    /// Returns the number of values of the factors of each extent, the largest unit first, with neighbours joined that
    /// both count vertices, or both count iterations.
    fn joined_factors(&self) -> Vec<Vec<(u64, bool)>> {
        let of_extent = |factors: &Vec<Factor>| {
            let mut joined: Vec<(u64, bool)> = vec![];
            for factor in factors.iter().filter(|f| f.n > 1) {
                match joined.last_mut().filter(|last| last.1 == factor.across.is_some()) {
                    Some(last) => last.0 *= factor.n,
                    None => joined.push((factor.n, factor.across.is_some())),
                }
            }
            joined
        };
        self.factors.iter().map(of_extent).collect()
    }

    /// Divides each vertex into at most `most` equal ones with enough iterations; returns their number.
    fn divide(&mut self, most: u64) -> u64 {
        let rank = self.factors.iter().flatten().filter_map(|f| f.across).max().map_or(0, |r| r + 1);
        let most = most.min(self.iterations() / LEAST_PART);
        let mut parts = 1;
        for (k, factors) in self.factors.iter_mut().enumerate() {
            let own = factors.iter().position(|f| f.across.is_none() && f.n > 1);
            let Some(at) = own else { continue };
            let Factor { n, unit, .. } = factors[at];
            let divisor = (2..=n).rev().find(|d| n.is_multiple_of(*d) && parts * d <= most);
            if let Some(d) = divisor {
                parts *= d;
                factors[at].n = n / d;
                factors.insert(at, Factor { n: d, unit: unit * (n / d), across: Some(rank + k) });
            }
        }
        parts
    }

    /// Returns the box in which a family accesses the elements of an access, or `None` if it is no such box.
    fn like(access: &Access, extents: &[u64], first_byte: i64, (domain, field): &FamilyField) -> Option<CutBox> {
        let [part] = &field.parts[..] else { return None };
        let Offset::Affine(affine) = &part.offset else { return None };
        let size = i64::from(access.ty.bytes());
        let lo = access.index_of(affine.base.checked_mul(size)? + first_byte)?;
        let coef = (0..domain.0.len()).map(|k| affine.coef.get(k).copied().unwrap_or(0));
        let outer = domain.0.iter().zip(coef).enumerate().map(|(rank, (&n, c))| (n, c, Some(rank)));
        let inner = part.len.iter().zip(&part.stride).map(|(&n, &s)| (n, s, None));
        let mut factors: Vec<Vec<Factor>> = vec![vec![]; extents.len()];
        // Vertices that read the same elements are the same box.
        for (n, stride, across) in outer.chain(inner).filter(|f| f.0 > 1 && f.1 != 0) {
            let stride = stride.checked_mul(size).filter(|&s| s > 0)?;
            for part in access.parts_along(extents, u64::from(n), stride)? {
                factors[part.extent].push(Factor { n: part.n, unit: part.unit, across });
            }
        }
        for (k, own) in factors.iter_mut().enumerate() {
            own.sort_by_key(|f| std::cmp::Reverse(f.unit));
            let mut unit = 1;
            for factor in own.iter().rev() {
                if factor.unit != unit {
                    return None;
                }
                unit *= factor.n;
            }
            if lo[k] + unit > extents[k] {
                return None;
            }
        }
        Some(CutBox { lo, factors })
    }
}

impl Cut {
    /// Returns the cut in which families access the elements of an access, or `None` if they do not access every one
    /// exactly once. `first_byte` is that of the access's variable.
    pub fn like(access: &Access, extents: &[u64], first_byte: i64, families: &[FamilyField]) -> Option<Cut> {
        if access.strides.iter().any(|&s| s <= 0) || !access.strides.is_sorted_by(|a, b| a > b) {
            return None;
        }
        let families = families.iter().filter(|f| f.0.count() > 0);
        let boxes: Vec<CutBox> =
            families.map(|f| CutBox::like(access, extents, first_byte, f)).collect::<Option<_>>()?;
        Cut { boxes, beside: 1 }.sound(extents)
    }

    /// Returns the cut into equal boxes, the outermost extent first, of about `pieces` vertices; the last ones of an
    /// extent may be smaller.
    pub fn even(extents: &[u64], pieces: u64) -> Option<Cut> {
        let all: u64 = extents.iter().product();
        let mut left = pieces.min(all / LEAST).max(1);
        let mut spans: Vec<Vec<(u64, Vec<Factor>)>> = vec![];
        for (k, &n) in extents.iter().enumerate() {
            let length = n.div_ceil(left.min(n));
            let (count, rest) = (n / length, n % length);
            left = (left / n.div_ceil(length)).max(1);
            let own = |count: u64, length: u64| {
                let across = Factor { n: count, unit: length, across: Some(k) };
                let within = Factor { n: length, unit: 1, across: None };
                [across, within].into_iter().filter(|f| f.n > 1).collect()
            };
            let mut of_extent = vec![(0, own(count, length))];
            if rest > 0 {
                of_extent.push((count * length, own(1, rest)));
            }
            spans.push(of_extent);
        }
        let mut boxes = vec![CutBox { lo: vec![], factors: vec![] }];
        for of_extent in &spans {
            let extend = |b: &CutBox, (lo, factors): &(u64, Vec<Factor>)| {
                let mut b = b.clone();
                b.lo.push(*lo);
                b.factors.push(factors.clone());
                b
            };
            boxes = boxes.iter().flat_map(|b| of_extent.iter().map(move |span| extend(b, span))).collect();
        }
        Cut { boxes, beside: 1 }.sound(extents)
    }

    /// Returns the cut with each vertex divided among at most `workers`.
    pub fn divided(&self, workers: u64) -> Cut {
        let mut cut = self.clone();
        for b in &mut cut.boxes {
            let parts = b.divide(workers);
            cut.beside = cut.beside.max(parts);
        }
        cut
    }

    /// Returns the cut if its boxes are disjoint and cover a space.
    fn sound(self, extents: &[u64]) -> Option<Cut> {
        let total: u64 = self.boxes.iter().map(|b| b.vertices() * b.iterations()).sum();
        let whole = total == extents.iter().product::<u64>() && self.boxes.len() <= MOST_BOXES;
        let disjoint = || self.boxes.iter().enumerate().all(|(i, a)| self.boxes[..i].iter().all(|b| !a.meets(b)));
        (whole && disjoint()).then_some(self)
    }

    /// Returns whether the vertices of another cut have the same iterations, in whatever order.
    pub fn has_boxes_of(&self, other: &Cut) -> bool {
        let all = |cut: &Cut| {
            let mut boxes: Vec<_> = cut.boxes.iter().map(|b| (b.lo.clone(), b.joined_factors())).collect();
            boxes.sort_unstable();
            boxes
        };
        self == other || all(self) == all(other)
    }

    /// Returns the number of vertices.
    pub fn vertices(&self) -> u64 {
        self.boxes.iter().map(CutBox::vertices).sum()
    }
}
