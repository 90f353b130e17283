//! Integer functions of a family's indices.

use smallvec::SmallVec;

/// `base + Σ coef[k] · i[k]` over the indices of a domain. Missing coefficients are zero, so a constant has none.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Affine {
    /// The value where all indices are 0.
    pub base: i64,
    /// One per index, outermost first; no zeros at the end.
    pub coef: SmallVec<[i64; 4]>,
}

impl Affine {
    /// Returns a constant.
    pub fn constant(base: i64) -> Affine {
        Affine { base, coef: SmallVec::new() }
    }

    /// Returns the function with this base and these coefficients.
    pub fn new(base: i64, coef: &[i64]) -> Affine {
        let len = coef.iter().rposition(|&c| c != 0).map_or(0, |p| p + 1);
        Affine { base, coef: SmallVec::from_slice(&coef[..len]) }
    }

    /// Returns the value at a point of the domain.
    pub fn at(&self, point: &[u32]) -> i64 {
        self.base + self.coef.iter().zip(point).map(|(c, &i)| c * i as i64).sum::<i64>()
    }

    /// Returns the least and greatest value over a domain; `None` if the domain is empty.
    pub fn bounds(&self, domain: &[u32]) -> Option<(i64, i64)> {
        if domain.contains(&0) {
            return None;
        }
        let (mut lo, mut hi) = (self.base, self.base);
        for (c, &n) in self.coef.iter().zip(domain) {
            let span = c * (n as i64 - 1);
            (lo, hi) = (lo + span.min(0), hi + span.max(0));
        }
        Some((lo, hi))
    }
}
