//! What the instances of a family touch, as sets.

use super::{Domain, Field, FieldPart, Offset};
use crate::ids::VarId;
use crate::region::{self, Interval, Region};

impl Offset {
    /// The least and the greatest value; `None` for an empty domain.
    pub fn bounds(&self, domain: &Domain) -> Option<(i64, i64)> {
        match self {
            Offset::Affine(a) => a.bounds(&domain.0),
            Offset::Table(t) => Some((*t.iter().min()? as i64, *t.iter().max()? as i64)),
        }
    }
}

impl FieldPart {
    /// Its elements in an instance whose offset is known.
    pub fn region_at(&self, offset: i64) -> Region {
        Region::new(offset, self.len.iter().map(|&n| n as u64).zip(self.stride.iter().copied()))
    }

    /// Its elements over all instances, if the offset is closed; the domain is not empty.
    pub fn region(&self, domain: &Domain) -> Option<Region> {
        let Offset::Affine(affine) = &self.offset else { return None };
        let coef = |k: usize| affine.coef.get(k).copied().unwrap_or(0);
        let instances = domain.0.iter().enumerate().map(|(k, &n)| (n as u64, coef(k)));
        let digits = self.len.iter().map(|&n| n as u64).zip(self.stride.iter().copied());
        Some(Region::new(affine.base, instances.chain(digits)))
    }
}

impl Field {
    /// The variables that it sees, ascending, with the least and greatest element of each over all instances.
    pub fn hull(&self, domain: &Domain) -> Vec<(VarId, u64, u64)> {
        let mut hulls: Vec<(VarId, u64, u64)> = Vec::new();
        for part in &self.parts {
            let Some((first, last)) = part.offset.bounds(domain) else { continue };
            let (lo, hi) = part.region_at(0).hull();
            let (lo, hi) = ((first + lo) as u64, (last + hi) as u64);
            match hulls.iter_mut().find(|h| h.0 == part.var) {
                Some(h) => (h.1, h.2) = (h.1.min(lo), h.2.max(hi)),
                None => hulls.push((part.var, lo, hi)),
            }
        }
        hulls.sort_unstable_by_key(|h| h.0);
        hulls
    }

    /// Its elements over all instances, one set per part, if all offsets are closed. Empty for an empty domain.
    pub fn regions(&self, domain: &Domain) -> Option<Vec<(VarId, Region)>> {
        if domain.count() == 0 {
            return Some(Vec::new());
        }
        self.parts.iter().map(|p| Some((p.var, p.region(domain)?))).collect()
    }

    /// Its elements over all instances as intervals, unsorted; of one variable, or of all.
    pub fn intervals(&self, domain: &Domain, var: Option<VarId>) -> Vec<Interval> {
        let mut all = Vec::new();
        for part in self.parts.iter().filter(|p| var.is_none_or(|v| v == p.var)) {
            let mut region = part.region_at(0);
            let first = region.offset;
            for offset in part.offset.values(domain) {
                region.offset = first + offset;
                region.list(part.var, &mut all);
            }
        }
        all
    }

    /// Whether no element is named twice, in one instance or by two.
    pub fn is_injective(&self, domain: &Domain) -> bool {
        if let Some(regions) = self.regions(domain) {
            return !region::any_repeat(&regions);
        }
        // A set that repeats by itself may list each of its elements once, so it is asked first.
        if self.parts.iter().any(|p| p.region_at(0).repeats) {
            return false;
        }
        let mut all = self.intervals(domain, None);
        all.sort_unstable();
        all.windows(2).all(|w| w[0].0 != w[1].0 || w[0].2 <= w[1].1)
    }

    /// The least instance that sees an element, if any does. Looks at every instance.
    pub fn instance_with(&self, domain: &Domain, var: VarId, element: u64) -> Option<u64> {
        let sees = |part: &FieldPart| {
            let mut region = part.region_at(0);
            let first = region.offset;
            part.offset.values(domain).position(|offset| {
                region.offset = first + offset;
                region.contains(element as i64).unwrap_or_else(|| {
                    let mut all = Vec::new();
                    region.list(var, &mut all);
                    all.iter().any(|i| (i.1..i.2).contains(&element))
                })
            })
        };
        self.parts.iter().filter(|p| p.var == var).filter_map(sees).min().map(|i| i as u64)
    }
}

/// The least element that two fields both see over all their instances, if any.
pub fn fields_meet(a: (&Field, &Domain), b: (&Field, &Domain)) -> Option<(VarId, u64)> {
    let (hulls, others) = (a.0.hull(a.1), b.0.hull(b.1));
    let meets = |h: &&(VarId, u64, u64)| others.iter().any(|o| o.0 == h.0 && o.1 <= h.2 && h.1 <= o.2);
    for &(var, ..) in hulls.iter().filter(meets) {
        let closed = |(field, domain): (&Field, &Domain)| -> Option<Vec<(VarId, Region)>> {
            let parts = field.parts.iter().filter(|p| p.var == var);
            parts.map(|p| Some((var, p.region(domain)?))).collect()
        };
        let witness = match (closed(a), closed(b)) {
            (Some(x), Some(y)) => region::least_common(&x, &y),
            _ => region::first_common(&mut a.0.intervals(a.1, Some(var)), &mut b.0.intervals(b.1, Some(var))),
        };
        if witness.is_some() {
            return witness;
        }
    }
    None
}
