//! Cuts of an iteration space into the iterations of vertices.
//!
//! A cut is a list of boxes. In a box each extent of the space is a product of factors; some of them count vertices,
//! the others iterations of one vertex. A cut is made like the boxes in which other vertices access the same elements,
//! or evenly. Boxes may need finer extents than the space has: 12 rows of 26 elements, of which vertices take 8 and 4
//! elements, are no boxes of 312 elements.
//!
//! Invariant: the boxes of a cut are disjoint and cover the space.

use girder_fusion::space::{Access, IterationSpace};
use girder_ir::family::{Domain, Field, Offset};

/// Minimal number of iterations of a vertex whose iterations take no longer than usual.
pub(super) const LEAST: u64 = 32;
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

/// Iterations of vertices by number; the last extent of a space counts fastest.
#[derive(Debug)]
struct Numbered {
    first: u64,
    /// Units are distances of numbers.
    factors: Vec<Factor>,
}

/// A cut of an iteration space.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Cut {
    /// The extents of its boxes: those of the space, perhaps split.
    pub extents: Vec<u64>,
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

    /// Returns the lengths of each extent's factors, the largest unit first, and whether they count vertices.
    /// Neighbouring factors that count the same are joined.
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

    /// Returns the ways to divide a vertex into at most `most` equal ones with enough iterations: a divisor of each
    /// factor that counts iterations.
    fn divisions(&self, most: u64) -> Vec<Vec<u64>> {
        let own = self.factors.iter().flatten().filter(|f| f.across.is_none());
        divisors(&own.map(|f| f.n).collect::<Vec<_>>(), most.min(self.iterations() / LEAST_PART))
    }

    /// Divides each vertex by a divisor of each factor that counts iterations.
    fn divide(&mut self, divisors: &[u64]) {
        let mut rank = self.factors.iter().flatten().filter_map(|f| f.across).max().map_or(0, |r| r + 1);
        let mut divisors = divisors.iter();
        for factors in &mut self.factors {
            let divided = factors.drain(..).flat_map(|f| {
                let d = f.across.is_none().then(|| divisors.next().copied()).flatten().unwrap_or(1);
                let part = Factor { n: f.n / d, ..f };
                let across = (d > 1).then(|| {
                    rank += 1;
                    Factor { n: d, unit: f.unit * part.n, across: Some(rank - 1) }
                });
                across.into_iter().chain([part])
            });
            *factors = divided.collect();
        }
    }

    /// Divides each vertex into at most `most` parts along the outermost factor that counts iterations. If the parts
    /// are not equal, a second box has the shorter last parts.
    fn divided_along_outermost(&self, most: u64) -> Vec<CutBox> {
        let own = |factors: &Vec<Factor>| factors.iter().position(|f| f.across.is_none() && f.n > 1);
        let outermost = self.factors.iter().enumerate().find_map(|(k, factors)| Some((k, own(factors)?)));
        let Some((k, at)) = outermost.filter(|_| most > 1) else { return vec![self.clone()] };
        let Factor { n, unit, .. } = self.factors[k][at];
        let rank = self.factors.iter().flatten().filter_map(|f| f.across).max().map_or(0, |r| r + 1);
        let length = n.div_ceil(most);
        let (count, rest) = (n / length, n % length);
        let mut parts = vec![self.clone()];
        let across = Factor { n: count, unit: unit * length, across: Some(rank) };
        parts[0].factors[k].splice(at..=at, [across, Factor { n: length, unit, across: None }]);
        if rest > 0 {
            let mut last = self.clone();
            last.lo[k] += unit * length * count;
            last.factors[k][at].n = rest;
            parts.push(last);
        }
        parts
    }

    /// Returns its iterations by number.
    fn numbered(&self, extents: &[u64]) -> Numbered {
        let mut all = Numbered { first: 0, factors: vec![] };
        let mut inner = 1;
        for (k, &n) in extents.iter().enumerate().rev() {
            all.first += self.lo[k] * inner;
            all.factors.extend(self.factors[k].iter().map(|f| Factor { unit: f.unit * inner, ..*f }));
            inner *= n;
        }
        all
    }
}

impl Numbered {
    /// Returns the iterations in which a family accesses the elements of an access.
    fn like(access: &Access, extents: &[u64], first_byte: i64, (domain, field): &FamilyField) -> Option<Numbered> {
        let [part] = &field.parts[..] else { return None };
        let Offset::Affine(affine) = &part.offset else { return None };
        let size = i64::from(access.ty.bytes());
        let lo = access.index_of(affine.base.checked_mul(size)? + first_byte)?;
        let coef = (0..domain.0.len()).map(|k| affine.coef.get(k).copied().unwrap_or(0));
        let outer = domain.0.iter().zip(coef).enumerate().map(|(rank, (&n, c))| (n, c, Some(rank)));
        let inner = part.len.iter().zip(&part.stride).map(|(&n, &s)| (n, s, None));
        let mut all = CutBox { lo, factors: vec![vec![]; extents.len()] };
        // Vertices that read the same elements are the same box.
        for (n, stride, across) in outer.chain(inner).filter(|f| f.0 > 1 && f.1 != 0) {
            let stride = stride.checked_mul(size).filter(|&s| s > 0)?;
            for part in access.parts_along(extents, u64::from(n), stride)? {
                all.factors[part.extent].push(Factor { n: part.n, unit: part.unit, across });
            }
        }
        Some(all.numbered(extents))
    }

    /// Returns the units before which the iterations have gaps, so that an extent ends there.
    fn gaps(&self) -> Vec<u64> {
        let mut factors: Vec<&Factor> = self.factors.iter().collect();
        factors.sort_by_key(|f| f.unit);
        let mut filled = 1;
        let gap = |f: &&&Factor| f.unit != std::mem::replace(&mut filled, f.unit * f.n);
        factors.iter().filter(gap).map(|f| f.unit).collect()
    }

    /// Returns the iterations as a box of extents, or `None` if they are not one.
    fn boxed(&self, extents: &[u64]) -> Option<CutBox> {
        let mut b = CutBox { lo: vec![0; extents.len()], factors: vec![vec![]; extents.len()] };
        let mut left: Vec<Factor> = self.factors.clone();
        let mut inner = 1;
        for (k, &n) in extents.iter().enumerate().rev() {
            b.lo[k] = self.first / inner % n;
            for factor in &mut left {
                if factor.n == 1 || factor.unit >= inner * n {
                    continue;
                }
                let unit = factor.unit / inner;
                let within = factor.n.min(n / unit);
                if !factor.unit.is_multiple_of(inner) || !factor.n.is_multiple_of(within) {
                    return None;
                }
                b.factors[k].push(Factor { n: within, unit, across: factor.across });
                // What is left goes on in the next extent.
                if within < factor.n && unit * within != n {
                    return None;
                }
                *factor = Factor { n: factor.n / within, unit: inner * n, ..*factor };
            }
            let own = &mut b.factors[k];
            own.retain(|f| f.n > 1);
            own.sort_by_key(|f| std::cmp::Reverse(f.unit));
            let follows = own.iter().rev().try_fold(1, |unit, f| (f.unit == unit).then_some(unit * f.n))?;
            if b.lo[k] + follows > n {
                return None;
            }
            inner *= n;
        }
        left.iter().all(|f| f.n == 1).then_some(b)
    }
}

/// Returns all lists of a divisor of each number whose product is at most `most`, or 1.
fn divisors(numbers: &[u64], most: u64) -> Vec<Vec<u64>> {
    let Some((&n, rest)) = numbers.split_first() else { return vec![vec![]] };
    let of_first = (1..=n.min(most.max(1))).filter(|&d| n.is_multiple_of(d));
    let with_rest = |d: u64| divisors(rest, most / d).into_iter().map(move |others| [vec![d], others].concat());
    of_first.flat_map(with_rest).collect()
}

fn products(extents: &[u64]) -> Vec<u64> {
    IterationSpace { extents: extents.into(), accesses: vec![] }.products()
}

/// Splits extents so that their products include the given ones, if each divides the next one.
fn split(extents: &[u64], products: &[u64]) -> Option<Vec<u64>> {
    let space = IterationSpace { extents: extents.into(), accesses: vec![] };
    space.cut_at(products).map(|space| space.extents.to_vec())
}

impl Cut {
    /// Returns the cut in which families access the elements of an access, or `None` if they do not access every one
    /// exactly once. `first_byte` is that of the access's variable.
    pub fn like(access: &Access, extents: &[u64], first_byte: i64, families: &[FamilyField]) -> Option<Cut> {
        let in_order = access.strides.iter().all(|&s| s > 0) && access.strides.is_sorted_by(|a, b| a > b);
        if !in_order || extents.contains(&0) {
            return None;
        }
        let families = families.iter().filter(|f| f.0.count() > 0);
        let like = |f: &FamilyField| Numbered::like(access, extents, first_byte, f);
        let all: Vec<Numbered> = families.map(like).collect::<Option<_>>()?;
        let extents = split(extents, &all.iter().flat_map(Numbered::gaps).collect::<Vec<_>>())?;
        let boxes: Vec<CutBox> = all.iter().map(|numbered| numbered.boxed(&extents)).collect::<Option<_>>()?;
        Cut { extents, boxes, beside: 1 }.sound()
    }

    /// Returns the cut into equal boxes, the outermost extent first, of about `pieces` vertices; the last ones of an
    /// extent may be smaller.
    pub fn even(extents: &[u64], pieces: u64, least: u64) -> Option<Cut> {
        let all: u64 = extents.iter().product();
        let mut left = pieces.min(all / least).max(1);
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
        Cut { extents: extents.to_vec(), boxes, beside: 1 }.sound()
    }

    /// Returns the cut with each vertex divided among at most `workers`, so that the parts are short. Parts are equal
    /// if unequal ones, which are vertices of a second family, are not shorter by more than a quarter.
    pub fn divided(&self, workers: u64) -> Cut {
        let (equal, unequal) = (self.divided_equally(workers), self.divided_along_outermost(workers));
        let longest = |cut: &Cut| cut.boxes.iter().map(CutBox::iterations).max().unwrap_or(1);
        if 4 * longest(&unequal) < 3 * longest(&equal) { unequal } else { equal }
    }

    /// Returns the cut with each vertex divided into equal parts, so that the longest are as short as they can be.
    /// Inner factors stay whole if outer ones suffice, and no vertex has more parts than it needs.
    fn divided_equally(&self, workers: u64) -> Cut {
        let divisions: Vec<Vec<Vec<u64>>> = self.boxes.iter().map(|b| b.divisions(workers)).collect();
        let iterations = |b: &CutBox, parts: &[u64]| b.iterations() / parts.iter().product::<u64>();
        let shortest = |(b, ways): (&CutBox, &Vec<Vec<u64>>)| ways.iter().map(|way| iterations(b, way)).min();
        let longest = self.boxes.iter().zip(&divisions).filter_map(shortest).max().unwrap_or(1);
        let mut cut = self.clone();
        for (b, ways) in cut.boxes.iter_mut().zip(&divisions) {
            let enough = ways.iter().filter(|way| iterations(b, way) <= longest);
            let Some(way) = enough.min_by(|a, b| a.iter().rev().cmp(b.iter().rev())) else { continue };
            b.divide(way);
            cut.beside = cut.beside.max(way.iter().product());
        }
        cut
    }

    /// Returns the cut with each vertex divided along its outermost factor, the last part shorter than the others.
    fn divided_along_outermost(&self, workers: u64) -> Cut {
        let mut cut = Cut { boxes: vec![], ..self.clone() };
        for b in &self.boxes {
            let parts = b.divided_along_outermost(workers.min(b.iterations() / LEAST_PART));
            cut.beside = cut.beside.max(parts.iter().map(CutBox::vertices).sum::<u64>() / b.vertices());
            cut.boxes.extend(parts);
        }
        cut
    }

    /// Returns the cut if its boxes are disjoint and cover the space.
    fn sound(self) -> Option<Cut> {
        let total: u64 = self.boxes.iter().map(|b| b.vertices() * b.iterations()).sum();
        let whole = total == self.extents.iter().product::<u64>() && self.boxes.len() <= MOST_BOXES;
        let disjoint = || self.boxes.iter().enumerate().all(|(i, a)| self.boxes[..i].iter().all(|b| !a.meets(b)));
        (whole && disjoint()).then_some(self)
    }

    /// Returns whether the vertices of another cut have the same iterations, in whatever order.
    pub fn has_boxes_of(&self, other: &Cut) -> bool {
        let Some(extents) = split(&self.extents, &products(&other.extents)) else { return false };
        let all = |cut: &Cut| {
            let boxed =
                |b: &CutBox| Some(b.numbered(&cut.extents).boxed(&extents)?).map(|b| (b.joined_factors(), b.lo));
            let mut boxes: Vec<_> = cut.boxes.iter().map(boxed).collect::<Option<_>>()?;
            boxes.sort_unstable();
            Some(boxes)
        };
        self == other || all(self).is_some_and(|boxes| Some(boxes) == all(other))
    }

    /// Returns the products of the extents of its boxes, from the innermost on.
    pub fn products(&self) -> Vec<u64> {
        products(&self.extents)
    }

    /// Returns the number of vertices.
    pub fn vertices(&self) -> u64 {
        self.boxes.iter().map(CutBox::vertices).sum()
    }
}
