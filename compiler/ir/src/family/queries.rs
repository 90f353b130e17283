//! The elements that the instances of a family access, as sets.

use super::{Domain, Field, FieldPart, Offset};
use crate::ids::VarId;
use crate::region::{self, Interval, Region};
use crate::view::hull;

impl Offset {
    /// Returns the least and the greatest value; `None` for an empty domain.
    pub fn bounds(&self, domain: &Domain) -> Option<(i64, i64)> {
        match self {
            Offset::Affine(a) => a.bounds(&domain.0),
            Offset::Table(t) => Some((*t.iter().min()? as i64, *t.iter().max()? as i64)),
        }
    }
}

impl FieldPart {
    /// Returns its elements in an instance with a known offset.
    pub fn region_at(&self, offset: i64) -> Region {
        Region::new(offset, self.len.iter().map(|&n| n as u64).zip(self.stride.iter().copied()))
    }

    /// Returns its least and its greatest element in an instance with a known offset.
    pub fn hull_at(&self, offset: i64) -> (i64, i64) {
        hull(offset, &self.len, &self.stride)
    }

    /// Returns its elements over all instances, if the offset is closed; the domain is not empty.
    pub fn region(&self, domain: &Domain) -> Option<Region> {
        let Offset::Affine(affine) = &self.offset else { return None };
        let coef = |k: usize| affine.coef.get(k).copied().unwrap_or(0);
        let instances = domain.0.iter().enumerate().map(|(k, &n)| (n as u64, coef(k)));
        let digits = self.len.iter().map(|&n| n as u64).zip(self.stride.iter().copied());
        Some(Region::new(affine.base, instances.chain(digits)))
    }
}

impl Field {
    /// Returns its elements over all instances, one set per part, if all offsets are closed. Empty for an empty domain.
    pub fn regions(&self, domain: &Domain) -> Option<Vec<(VarId, Region)>> {
        if domain.count() == 0 {
            return Some(Vec::new());
        }
        self.parts.iter().map(|p| Some((p.var, p.region(domain)?))).collect()
    }

    /// Returns its elements over all instances as intervals, unsorted.
    fn intervals(&self, domain: &Domain) -> Vec<Interval> {
        let mut all = Vec::new();
        for part in &self.parts {
            let mut region = part.region_at(0);
            let first = region.offset;
            for offset in part.offset.values(domain) {
                region.offset = first + offset;
                region.list(part.var, &mut all);
            }
        }
        all
    }

    /// Returns whether no element is named twice, in one instance or by two instances.
    pub fn is_injective(&self, domain: &Domain) -> bool {
        if let Some(regions) = self.regions(domain) {
            return !region::any_repeat(&regions);
        }
        // A region that certainly repeats an element decides at once.
        if self.parts.iter().any(|p| p.region_at(0).repeats) {
            return false;
        }
        let mut all = self.intervals(domain);
        all.sort_unstable();
        all.windows(2).all(|w| w[0].0 != w[1].0 || w[0].2 <= w[1].1)
    }
}
