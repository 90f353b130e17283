//! Which elements of a variable a part of a field touches, over all instances of its family, as one strided box.
//!
//! What strides alone can tell is asked of [`Region`]; where that is "unknown", the caller enumerates runs.
//!
//! Invariant: a footprint is never empty; all its elements lie in the variable.

use girder_ir::family::{Domain, Field, Offset};
use girder_ir::ids::VarId;
use girder_ir::region::Region;
use girder_ir::view::View;
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;

mod covers;

pub use covers::Covers;

/// One dimension of a box.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dim {
    /// Points, at least 1.
    pub len: u64,
    /// Elements from one point to the next.
    pub stride: i64,
}

/// Where the boxes of a footprint begin.
#[derive(Clone, Debug)]
enum Bases {
    /// One box; the first `outer` dimensions are the family's indices.
    One { base: i64, outer: usize },
    /// One box per instance.
    Table(Arc<[u32]>),
}

/// The elements of one variable that one part of a field touches.
#[derive(Clone, Debug)]
pub struct Footprint {
    /// The variable.
    pub var: VarId,
    bases: Bases,
    dims: SmallVec<[Dim; 8]>,
    /// Lengths of the family's indices.
    domain: SmallVec<[u32; 4]>,
}

/// Boxes of one size: runs of neighbouring elements, at one distance.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Boxes {
    /// The first element of each.
    pub bases: Vec<u64>,
    /// Elements of a run, at least 1.
    pub run: u64,
    /// Runs of a box, at least 1.
    pub runs: u64,
    /// Elements from run to run; 0 if there is one.
    pub distance: u64,
}

/// Dimensions in a form that depends only on the elements: ascending positive strides, neighbours merged.
struct Normal {
    base: i64,
    dims: SmallVec<[Dim; 8]>,
    /// How often each element is named by dimensions of stride 0.
    repeats: u64,
}

impl Footprint {
    /// One per part of a field; none if the field or the domain is empty.
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

    /// One per part of a view.
    pub fn of_view(view: &View) -> Vec<Footprint> {
        let one = |part: &girder_ir::view::ViewPart| Footprint {
            var: part.var,
            bases: Bases::One { base: part.offset, outer: 0 },
            dims: part.len.iter().zip(&part.stride).map(|(&n, &stride)| Dim { len: n as u64, stride }).collect(),
            domain: smallvec![],
        };
        view.parts.iter().map(one).collect()
    }

    /// The one element of a rank-0 variable.
    pub fn scalar(var: VarId) -> Footprint {
        Footprint { var, bases: Bases::One { base: 0, outer: 0 }, dims: smallvec![], domain: smallvec![] }
    }

    /// How many elements it names, repeats included.
    pub fn count(&self) -> u64 {
        let each: u64 = self.dims.iter().map(|d| d.len).product();
        match &self.bases {
            Bases::One { .. } => each,
            Bases::Table(t) => each * t.len() as u64,
        }
    }

    /// The least and the greatest element.
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

    /// Whether it is certain, without enumeration, that no element is named twice.
    pub fn surely_injective(&self) -> bool {
        let region = self.region();
        let (lo, hi) = region.hull();
        region.injective() == Some(true)
            && match &self.bases {
                Bases::One { .. } => true,
                Bases::Table(t) => t.windows(2).all(|w| w[0] as i64 + hi - lo < w[1] as i64),
            }
    }

    /// Whether it is certain, without enumeration, that two footprints of one variable share no element.
    pub fn surely_disjoint(&self, other: &Footprint) -> bool {
        let ((a_lo, a_hi), (b_lo, b_hi)) = (self.hull(), other.hull());
        if a_hi < b_lo || b_hi < a_lo {
            return true;
        }
        let closed = matches!((&self.bases, &other.bases), (Bases::One { .. }, Bases::One { .. }));
        closed && self.region().meets(&other.region()) == Some(None)
    }

    /// The box as a set: all of it, or that of an instance whose offset is 0.
    fn region(&self) -> Region {
        let base = match &self.bases {
            Bases::One { base, .. } => *base,
            Bases::Table(_) => 0,
        };
        Region::new(base, self.dims.iter().map(|d| (d.len, d.stride)))
    }

    /// Calls `f` with first element and length of contiguous runs that make up the footprint; repeated elements come
    /// repeatedly. Ends early when `f` returns `false`.
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

    /// Its elements as a box for each instance; `None` where an instance is no such box, or names an element twice.
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

    /// The instances that touch an element, at most `max`, ascending; an instance that names it twice comes twice.
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

    /// One past the end of the run of neighbouring elements from `element` on that one instance touches.
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

    /// Depth first over the points whose element is `rest` beyond the base, cutting off where the remaining
    /// dimensions cannot reach it. `f` says whether to go on.
    fn search(&self, rest: i64, k: usize, point: &mut [u64], f: &mut dyn FnMut(&[u64]) -> bool) -> bool {
        if k == self.dims.len() {
            return rest != 0 || f(point);
        }
        let span = |d: &Dim| (d.len as i64 - 1) * d.stride;
        let below: i64 = self.dims[k + 1..].iter().map(|d| span(d).min(0)).sum();
        let above: i64 = self.dims[k + 1..].iter().map(|d| span(d).max(0)).sum();
        let d = self.dims[k];
        // Of the points i of this dimension, those with below <= rest - i * stride <= above.
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

fn normalise(mut base: i64, dims: &[Dim]) -> Normal {
    let mut repeats = 1;
    let mut sorted: SmallVec<[Dim; 8]> = smallvec![];
    for d in dims {
        match d.stride {
            _ if d.len == 1 => {}
            0 => repeats *= d.len,
            s => {
                base += ((d.len as i64 - 1) * s).min(0);
                sorted.push(Dim { len: d.len, stride: s.abs() });
            }
        }
    }
    sorted.sort_by_key(|d| (d.stride, d.len));
    let mut merged: SmallVec<[Dim; 8]> = smallvec![];
    for d in sorted {
        match merged.last_mut() {
            Some(last) if last.len as i64 * last.stride == d.stride => last.len *= d.len,
            _ => merged.push(d),
        }
    }
    Normal { base, dims: merged, repeats }
}

impl Normal {
    /// As [`Footprint::runs`]; `false` if `f` ended it.
    fn runs(&self, f: &mut impl FnMut(u64, u64) -> bool) -> bool {
        let (len, outer) = match self.dims.first() {
            Some(d) if d.stride == 1 => (d.len, &self.dims[1..]),
            _ => (1, &self.dims[..]),
        };
        let boxes: u64 = outer.iter().map(|d| d.len).product();
        for _ in 0..self.repeats {
            let mut point: SmallVec<[u64; 8]> = smallvec![0; outer.len()];
            let mut at = self.base;
            for _ in 0..boxes {
                if !f(at as u64, len) {
                    return false;
                }
                for (i, d) in point.iter_mut().zip(outer) {
                    *i += 1;
                    at += d.stride;
                    if *i < d.len {
                        break;
                    }
                    at -= d.stride * d.len as i64;
                    *i = 0;
                }
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cranelift_entity::EntityRef;
    use proptest::prelude::*;

    fn footprint(base: i64, dims: &[(u64, i64)], outer: usize) -> Footprint {
        let dims: SmallVec<[Dim; 8]> = dims.iter().map(|&(len, stride)| Dim { len, stride }).collect();
        let below: i64 = dims.iter().map(|d| ((d.len as i64 - 1) * d.stride).min(0)).sum();
        let domain = dims[..outer].iter().map(|d| d.len as u32).collect();
        Footprint { var: VarId::new(0), bases: Bases::One { base: base - below, outer }, dims, domain }
    }

    /// Every element with its instance, by counting through the box.
    fn elements(f: &Footprint) -> Vec<(u64, u64)> {
        let Bases::One { base, outer } = f.bases else { unreachable!("tests build boxes") };
        let mut all = vec![(base, 0)];
        for (k, d) in f.dims.iter().enumerate() {
            let step = |&(at, n): &(i64, u64)| {
                let d = *d;
                (0..d.len).map(move |i| (at + i as i64 * d.stride, if k < outer { n * d.len + i } else { n }))
            };
            all = all.iter().flat_map(step).collect();
        }
        all.into_iter().map(|(e, n)| (e as u64, n)).collect()
    }

    fn boxes() -> impl Strategy<Value = Footprint> {
        let stride = prop_oneof![Just(0), Just(1), Just(-1), Just(2), Just(4), Just(8), Just(-8), Just(24), -7i64..8];
        let dims = prop::collection::vec((1u64..5, stride), 0..4);
        (0i64..30, dims, 0usize..3).prop_map(|(base, dims, outer)| footprint(base, &dims, outer.min(dims.len())))
    }

    proptest! {
        #[test]
        fn runs_and_hull_are_those_of_enumeration(f in boxes()) {
            let mut all: Vec<u64> = elements(&f).iter().map(|e| e.0).collect();
            all.sort_unstable();
            let mut runs = vec![];
            f.runs(|start, len| { runs.extend(start..start + len); true });
            runs.sort_unstable();
            prop_assert_eq!(&runs, &all);
            prop_assert_eq!(f.count(), all.len() as u64);
            prop_assert_eq!(f.hull(), (all[0], all[all.len() - 1]));
        }

        #[test]
        fn certainties_hold(f in boxes(), g in boxes()) {
            let a: Vec<u64> = elements(&f).iter().map(|e| e.0).collect();
            let b: Vec<u64> = elements(&g).iter().map(|e| e.0).collect();
            if f.surely_injective() {
                prop_assert!(a.iter().all(|e| a.iter().filter(|x| *x == e).count() == 1));
            }
            if f.surely_disjoint(&g) {
                prop_assert!(a.iter().all(|e| !b.contains(e)));
            }
        }

        #[test]
        fn instances_are_those_of_enumeration(f in boxes(), e in 0u64..60) {
            let mut want: Vec<u64> = elements(&f).iter().filter(|x| x.0 == e).map(|x| x.1).collect();
            want.sort_unstable();
            want.truncate(3);
            prop_assert_eq!(f.instances_at(e, 3), want);
        }
    }

    #[test]
    fn the_interiors_of_blocks_are_proved_disjoint_from_their_rims() {
        // next[i, j, 1..33, 1..33] of f32[8, 8, 34, 34], and its first rows.
        let inner = footprint(35, &[(8, 9248), (8, 1156), (32, 34), (32, 1)], 2);
        let rim = footprint(0, &[(8, 9248), (8, 1156), (34, 1)], 2);
        assert!(inner.surely_injective() && rim.surely_injective());
        assert!(inner.surely_disjoint(&rim));
    }
}
