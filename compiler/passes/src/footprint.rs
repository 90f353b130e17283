//! The elements of a variable that one part of a field accesses, over all instances of a family, as one strided box.
//!
//! Questions that strides can answer go to [`Region`]. Where its answer is "unknown", the caller enumerates runs.
//!
//! Invariant: a footprint is never empty, and all its elements lie in the variable.

use girder_ir::family::{Domain, Field, Offset};
use girder_ir::ids::VarId;
use girder_ir::region::Region;
use girder_ir::view::View;
use normal::{Normal, normalise};
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;

mod covers;
mod normal;
#[cfg(test)]
mod tests;

pub use covers::Covers;

/// One dimension of a box.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dim {
    /// The number of points, at least 1.
    pub len: u64,
    /// The distance of neighbouring points in elements.
    pub stride: i64,
}

/// Where the boxes of a footprint begin.
#[derive(Clone, Debug)]
enum Bases {
    /// A single box whose first `outer` dimensions are the indices of the family.
    One { base: i64, outer: usize },
    /// One box for each instance, by its base.
    Table(Arc<[u32]>),
}

/// The elements of one variable that one part of a field accesses.
#[derive(Clone, Debug)]
pub struct Footprint {
    /// The variable.
    pub var: VarId,
    bases: Bases,
    dims: SmallVec<[Dim; 8]>,
    /// The extents of the family's domain.
    domain: SmallVec<[u32; 4]>,
}

/// Boxes of one shape: equal runs of neighbouring elements at equal distances.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Boxes {
    /// The first element of each box.
    pub bases: Vec<u64>,
    /// The length of a run, at least 1.
    pub run: u64,
    /// The number of runs in a box, at least 1.
    pub runs: u64,
    /// The distance of neighbouring runs in elements; 0 for a single run.
    pub distance: u64,
}

impl Footprint {
    /// Returns one footprint for each part of a field; none if the field or the domain is empty.
    pub fn of_field(domain: &Domain, field: &Field) -> Vec<Footprint> {
        if domain.count() == 0 || field.is_empty() {
            return vec![];
        }
        let one = |part: &girder_ir::family::FieldPart| {
            let inner = part.len.iter().zip(&part.stride).map(|(&n, &stride)| Dim { len: n as u64, stride });
            let (bases, dims) = match &part.offset {
                Offset::Table(t) => (Bases::Table(t.clone()), inner.collect()),
                Offset::Affine(a) => {
                    let coef = a.coef.iter().copied().chain(std::iter::repeat(0));
                    let outer = domain.0.iter().zip(coef).map(|(&n, stride)| Dim { len: n as u64, stride });
                    (Bases::One { base: a.base, outer: domain.0.len() }, outer.chain(inner).collect())
                }
            };
            Footprint { var: part.var, bases, dims, domain: domain.0.clone() }
        };
        field.parts.iter().map(one).collect()
    }

    /// Returns one footprint for each part of a view.
    pub fn of_view(view: &View) -> Vec<Footprint> {
        let one = |part: &girder_ir::view::ViewPart| Footprint {
            var: part.var,
            bases: Bases::One { base: part.offset, outer: 0 },
            dims: part.len.iter().zip(&part.stride).map(|(&n, &stride)| Dim { len: n as u64, stride }).collect(),
            domain: smallvec![],
        };
        view.parts.iter().map(one).collect()
    }

    /// Returns the footprint of a rank-0 variable.
    pub fn scalar(var: VarId) -> Footprint {
        Footprint { var, bases: Bases::One { base: 0, outer: 0 }, dims: smallvec![], domain: smallvec![] }
    }

    /// Returns the number of elements, counting repetitions.
    pub fn count(&self) -> u64 {
        let each: u64 = self.dims.iter().map(|d| d.len).product();
        match &self.bases {
            Bases::One { .. } => each,
            Bases::Table(t) => each * t.len() as u64,
        }
    }

    /// Returns the least and the greatest element.
    pub fn hull(&self) -> (u64, u64) {
        let (lo, hi) = match &self.bases {
            Bases::One { base, .. } => (*base, *base),
            Bases::Table(t) => {
                let bounds = t.iter().fold((u32::MAX, 0), |(lo, hi), &b| (b.min(lo), b.max(hi)));
                (bounds.0 as i64, bounds.1 as i64)
            }
        };
        let span = |d: &Dim| (d.len as i64 - 1) * d.stride;
        let below: i64 = self.dims.iter().map(|d| span(d).min(0)).sum();
        let above: i64 = self.dims.iter().map(|d| span(d).max(0)).sum();
        ((lo + below) as u64, (hi + above) as u64)
    }

    /// Returns whether the strides prove that no element occurs twice.
    pub fn surely_injective(&self) -> bool {
        let region = self.region();
        let (lo, hi) = region.hull();
        region.injective() == Some(true)
            && match &self.bases {
                Bases::One { .. } => true,
                Bases::Table(t) => t.windows(2).all(|w| w[0] as i64 + hi - lo < w[1] as i64),
            }
    }

    /// Returns whether strides and bounds prove that two footprints of one variable share no element.
    pub fn surely_disjoint(&self, other: &Footprint) -> bool {
        let ((a_lo, a_hi), (b_lo, b_hi)) = (self.hull(), other.hull());
        if a_hi < b_lo || b_hi < a_lo {
            return true;
        }
        let closed = matches!((&self.bases, &other.bases), (Bases::One { .. }, Bases::One { .. }));
        closed && self.region().meets(&other.region()) == Some(None)
    }

    /// Returns the box as a region; for a table of bases, the box of an instance whose base is 0.
    fn region(&self) -> Region {
        let base = match &self.bases {
            Bases::One { base, .. } => *base,
            Bases::Table(_) => 0,
        };
        Region::new(base, self.dims.iter().map(|d| (d.len, d.stride)))
    }

    /// Calls `f` with the first element and the length of each contiguous run of the footprint. Repeated elements are
    /// passed repeatedly. Stops when `f` returns `false`.
    pub fn runs(&self, mut f: impl FnMut(u64, u64) -> bool) {
        match &self.bases {
            Bases::One { base, .. } => {
                self.normal(*base).runs(&mut f);
            }
            Bases::Table(t) => {
                let mut normal = self.normal(0);
                let first = normal.base;
                for &b in t.iter() {
                    normal.base = first + b as i64;
                    if !normal.runs(&mut f) {
                        return;
                    }
                }
            }
        }
    }

    /// Returns the elements as one box for each instance, or `None` if an instance is not such a box or repeats an
    /// element.
    pub fn boxes(&self) -> Option<Boxes> {
        let outer = match &self.bases {
            Bases::One { outer, .. } => *outer,
            Bases::Table(_) => 0,
        };
        let (outer, inner) = self.dims.split_at(outer);
        let normal = normalise(0, inner);
        let (run, runs, distance) = match normal.dims[..] {
            [] => (1, 1, 0),
            [Dim { len, stride: 1 }] => (len, 1, 0),
            [Dim { len, stride }] => (1, len, stride),
            [Dim { len: run, stride: 1 }, Dim { len, stride }] => (run, len, stride),
            _ => return None,
        };
        let bases = match &self.bases {
            Bases::Table(t) => t.iter().map(|&b| (normal.base + b as i64) as u64).collect(),
            Bases::One { base, .. } => {
                let first = vec![(normal.base + base) as u64];
                let along = |bases: Vec<u64>, d: &Dim| {
                    let step = |b: &u64, i: u64| b.wrapping_add((i as i64 * d.stride) as u64);
                    bases.iter().flat_map(|b| (0..d.len).map(move |i| step(b, i))).collect()
                };
                outer.iter().fold(first, along)
            }
        };
        (normal.repeats == 1).then_some(Boxes { bases, run, runs, distance: distance as u64 })
    }

    /// Returns at most `max` instances that access an element, in ascending order. An instance that accesses it twice
    /// occurs twice.
    pub fn instances_at(&self, element: u64, max: usize) -> Vec<u64> {
        let mut found = vec![];
        match &self.bases {
            Bases::One { base, outer } => {
                let mut point: SmallVec<[u64; 8]> = smallvec![0; self.dims.len()];
                self.search(element as i64 - base, 0, &mut point, &mut |point| {
                    let index = point[..*outer].iter().zip(&self.domain);
                    found.push(index.fold(0, |at, (&i, &n)| at * n as u64 + i));
                    found.len() < max
                });
            }
            Bases::Table(t) => {
                for (instance, &base) in t.iter().enumerate() {
                    let mut point: SmallVec<[u64; 8]> = smallvec![0; self.dims.len()];
                    self.search(element as i64 - base as i64, 0, &mut point, &mut |_| {
                        found.push(instance as u64);
                        found.len() < max
                    });
                    if found.len() >= max {
                        break;
                    }
                }
            }
        }
        found
    }

    /// Returns one past the last element of the run of neighbouring elements, starting at `element`, that one instance
    /// accesses.
    pub fn run_end(&self, element: u64, instance: u64) -> u64 {
        let (base, outer) = match &self.bases {
            Bases::One { base, outer } => {
                let point = Domain(self.domain.clone()).point(instance);
                let shift = self.dims[..*outer].iter().zip(&point).map(|(d, &i)| d.stride * i as i64);
                (base + shift.sum::<i64>(), *outer)
            }
            Bases::Table(t) => (t[instance as usize] as i64, 0),
        };
        let mut end = element + 1;
        normalise(base, &self.dims[outer..]).runs(&mut |start, len| {
            if (start..start + len).contains(&element) {
                end = end.max(start + len);
            }
            true
        });
        end
    }

    fn normal(&self, base: i64) -> Normal {
        normalise(base, &self.dims)
    }

    /// Enumerates, depth first, the points whose element is `rest` beyond the base. Skips branches that the remaining
    /// dimensions cannot reach. Stops when `f` returns `false`.
    fn search(&self, rest: i64, k: usize, point: &mut [u64], f: &mut dyn FnMut(&[u64]) -> bool) -> bool {
        if k == self.dims.len() {
            return rest != 0 || f(point);
        }
        let span = |d: &Dim| (d.len as i64 - 1) * d.stride;
        let below: i64 = self.dims[k + 1..].iter().map(|d| span(d).min(0)).sum();
        let above: i64 = self.dims[k + 1..].iter().map(|d| span(d).max(0)).sum();
        let d = self.dims[k];
        // The points i of this dimension with below <= rest - i * stride <= above.
        let (first, last) = match d.stride {
            0 if (below..=above).contains(&rest) => (0, d.len as i64 - 1),
            0 => return true,
            s if s > 0 => (
                (rest - above).div_euclid(s) + ((rest - above).rem_euclid(s) != 0) as i64,
                (rest - below).div_euclid(s),
            ),
            s => (
                (below - rest).div_euclid(-s) + ((below - rest).rem_euclid(-s) != 0) as i64,
                (above - rest).div_euclid(-s),
            ),
        };
        for i in first.max(0)..=last.min(d.len as i64 - 1) {
            point[k] = i as u64;
            if !self.search(rest - i * d.stride, k + 1, point, f) {
                return false;
            }
        }
        true
    }
}
