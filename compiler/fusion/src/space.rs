//! Iteration spaces: a box of iterations, and for each access the byte of its element at an iteration.
//!
//! Invariant: an operation here keeps the set of iterations and changes only their order or grouping. Each access has
//! one stride per extent, and no extent of a canonical space is less than 2.

use girder_ir::ids::VarId;
use girder_ir::types::ElemType;
use smallvec::SmallVec;

/// Extents of a box of iterations, outermost first.
pub type Extents = SmallVec<[u64; 4]>;

/// An element for each iteration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Access {
    /// The variable.
    pub var: VarId,
    /// Its element type.
    pub ty: ElemType,
    /// Byte of the element at iteration (0, …, 0).
    pub start: i64,
    /// Bytes from one iteration to the next along each extent.
    pub strides: SmallVec<[i64; 4]>,
}

/// A box of iterations with its accesses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IterationSpace {
    /// Their lengths, outermost first.
    pub extents: Extents,
    /// The element of each access at an iteration.
    pub accesses: Vec<Access>,
}

/// Iterations along an extent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExtentPart {
    /// The extent.
    pub extent: usize,
    /// The number of iterations.
    pub n: u64,
    /// The distance from one to the next.
    pub unit: u64,
}

impl Access {
    /// Returns the byte range around all its elements.
    pub fn hull(&self, extents: &[u64]) -> std::ops::Range<i64> {
        let reach = |(&n, &s): (&u64, &i64)| (n as i64 - 1).saturating_mul(s);
        let reaches = || extents.iter().zip(&self.strides).map(reach);
        let lo = reaches().map(|r| r.min(0)).fold(self.start, i64::saturating_add);
        let hi = reaches().map(|r| r.max(0)).fold(self.start, i64::saturating_add);
        lo..hi.saturating_add(i64::from(self.ty.bytes()))
    }

    /// Returns the index of the iteration that accesses the element at a byte, if its extents are in the order of
    /// addresses.
    pub fn index_of(&self, byte: i64) -> Option<Vec<u64>> {
        let mut rest = byte - self.start;
        let mut index = vec![];
        for &stride in &self.strides {
            index.push(u64::try_from(rest.checked_div(stride)?).ok()?);
            rest %= stride;
        }
        (rest == 0).then_some(index)
    }

    /// Returns the extents along which `n` elements at a distance of `stride` bytes are, the innermost first. The
    /// extents are in the order of addresses.
    pub fn parts_along(&self, extents: &[u64], n: u64, stride: i64) -> Option<SmallVec<[ExtentPart; 2]>> {
        let mut parts = SmallVec::new();
        let (mut left, mut stride) = (n, stride);
        for k in (0..extents.len()).rev() {
            let outward = if k == 0 { i64::MAX } else { self.strides[k - 1] };
            if stride < self.strides[k] || stride >= outward {
                continue;
            }
            if stride % self.strides[k] != 0 {
                return None;
            }
            let unit = (stride / self.strides[k]) as u64;
            let here = (extents[k] / unit).max(1);
            if left <= here || k == 0 {
                parts.push(ExtentPart { extent: k, n: left, unit });
                return Some(parts);
            }
            let follows = outward == self.strides[k] * extents[k] as i64;
            if !extents[k].is_multiple_of(unit) || !left.is_multiple_of(here) || !follows {
                return None;
            }
            if here > 1 {
                parts.push(ExtentPart { extent: k, n: here, unit });
            }
            (left, stride) = (left / here, outward);
        }
        None
    }

    /// Returns whether no two iterations share a byte: each stride, from the least on, exceeds the span of the smaller
    /// ones.
    pub fn is_injective(&self, extents: &[u64]) -> bool {
        let mut steps: Vec<(u64, u64)> =
            self.strides.iter().map(|s| s.unsigned_abs()).zip(extents.iter().copied()).collect();
        steps.sort_unstable();
        let mut reach = u64::from(self.ty.bytes());
        steps.into_iter().all(|(stride, n)| {
            let disjoint = stride >= reach;
            reach = reach.saturating_add(stride.saturating_mul(n - 1));
            disjoint
        })
    }
}

impl IterationSpace {
    /// Returns the canonical space in the order of one access: without extents of 1, with iterations in the order of
    /// the access's addresses, and with neighbouring extents joined if all accesses allow it.
    pub fn ordered_by(mut self, access: usize) -> IterationSpace {
        let mut order: Vec<usize> = (0..self.extents.len()).filter(|&k| self.extents[k] != 1).collect();
        order.sort_by_key(|&k| std::cmp::Reverse(self.accesses[access].strides[k].unsigned_abs()));
        let backward: Vec<usize> = order.iter().copied().filter(|&k| self.accesses[access].strides[k] < 0).collect();
        for a in &mut self.accesses {
            for &k in &backward {
                a.start += a.strides[k] * (self.extents[k] as i64 - 1);
                a.strides[k] = -a.strides[k];
            }
            a.strides = order.iter().map(|&k| a.strides[k]).collect();
        }
        self.extents = order.iter().map(|&k| self.extents[k]).collect();
        self.join();
        self
    }

    /// Joins neighbouring extents if all accesses allow it.
    pub fn join(&mut self) {
        for k in (1..self.extents.len()).rev() {
            let inner = self.extents[k] as i64;
            if self.accesses.iter().all(|a| a.strides[k].checked_mul(inner) == Some(a.strides[k - 1])) {
                self.extents[k - 1] *= self.extents[k];
                self.extents.remove(k);
                for a in &mut self.accesses {
                    a.strides.remove(k - 1);
                }
            }
        }
    }

    /// Returns the number of iterations.
    pub fn len(&self) -> u64 {
        self.extents.iter().product()
    }

    /// Returns whether it has no iterations.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends the iterations of another space with the same accesses, if they continue an extent of this one or form a
    /// new one with it. Returns whether they were appended.
    pub fn append(&mut self, next: &IterationSpace) -> bool {
        let same = |(a, b): (&Access, &Access)| (a.var, a.ty) == (b.var, b.ty);
        if !self.accesses.iter().zip(&next.accesses).all(same) {
            return false;
        }
        if let Some((k, more)) = (0..self.extents.len()).find_map(|k| Some((k, self.continued(k, next)?))) {
            self.extents[k] += more;
            self.join();
            return true;
        }
        let strides = |(a, b): (&Access, &Access)| a.strides == b.strides;
        let is_equal = self.extents == next.extents && self.accesses.iter().zip(&next.accesses).all(strides);
        if is_equal {
            // Two boxes of one shape: the distance between them is the stride of a new outermost extent.
            let steps: Vec<i64> = self.accesses.iter().zip(&next.accesses).map(|(a, b)| b.start - a.start).collect();
            self.extents.insert(0, 2);
            self.accesses.iter_mut().zip(steps).for_each(|(a, step)| a.strides.insert(0, step));
            self.join();
        }
        is_equal
    }

    /// Returns by how much an extent grows if another space continues it, which may have no such extent if that would
    /// be 1.
    fn continued(&self, k: usize, next: &IterationSpace) -> Option<u64> {
        let is_one = next.extents.len() + 1 == self.extents.len();
        if !is_one && next.extents.len() != self.extents.len() {
            return None;
        }
        let behind = if is_one { k } else { k + 1 };
        let shape = next.extents[..k] == self.extents[..k] && next.extents[behind..] == self.extents[k + 1..];
        let follows = |(a, b): (&Access, &Access)| {
            let strides = b.strides[..k] == a.strides[..k] && b.strides[behind..] == a.strides[k + 1..];
            let along = is_one || b.strides[k] == a.strides[k];
            strides && along && a.strides[k].checked_mul(self.extents[k] as i64) == Some(b.start - a.start)
        };
        let fits = shape && self.accesses.iter().zip(&next.accesses).all(follows);
        fits.then(|| if is_one { 1 } else { next.extents[k] })
    }

    /// Splits extents so that their products, from the innermost on, include the given ones. Returns `None` if a
    /// product does not divide the next one.
    pub fn cut_at(&self, products: &[u64]) -> Option<IterationSpace> {
        let mut all: Vec<u64> = products.iter().chain(&self.products()).copied().collect();
        all.push(self.len());
        all.sort_unstable();
        all.dedup();
        let mut cut = IterationSpace { extents: Extents::new(), accesses: self.accesses.clone() };
        cut.accesses.iter_mut().for_each(|a| a.strides.clear());
        let (mut inner, mut own) = (1, self.extents.len());
        let mut within = 1;
        for product in all.into_iter().filter(|&p| p > 1) {
            if !product.is_multiple_of(inner) {
                return None;
            }
            // The extent of this space along which iterations at a distance of `inner` are.
            if own == self.extents.len() || within == self.extents[own] {
                own = own.checked_sub(1)?;
                within = 1;
            }
            let n = product / inner;
            if !self.extents[own].is_multiple_of(within * n) {
                return None;
            }
            cut.extents.insert(0, n);
            for (to, from) in cut.accesses.iter_mut().zip(&self.accesses) {
                to.strides.insert(0, from.strides[own] * within as i64);
            }
            (inner, within) = (product, within * n);
        }
        Some(cut)
    }

    /// Returns the products of its extents from the innermost on, without the product of all.
    pub fn products(&self) -> Vec<u64> {
        let mut product = 1;
        let running = self.extents.iter().skip(1).rev().map(|n| {
            product *= n;
            product
        });
        running.collect()
    }
}
