//! Integers as sums of products of values, from which strides and distances of indices are read.
//!
//! Invariant: products are sorted and distinct and have a non-zero factor, so that equal sums are equal in memory.

use super::graph::Val;
use smallvec::{SmallVec, smallvec};

/// A sum of products of values with integer factors, without the constant term.
pub(super) type Moving = SmallVec<[(SmallVec<[Val; 2]>, i64); 2]>;

/// An integer as a sum of products.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Poly {
    pub moving: Moving,
    pub base: i64,
}

/// Maximal number of terms.
const TERMS: usize = 16;
/// Maximal number of factors of a term. An index into a field of d dimensions has terms of up to d factors.
const DEGREE: usize = 8;

impl Default for Poly {
    fn default() -> Poly {
        Poly { moving: SmallVec::new(), base: 0 }
    }
}

impl Poly {
    /// Returns `self + k · other`, or `None` if it overflows or has too many terms.
    pub fn plus(&self, other: &Poly, k: i64) -> Option<Poly> {
        let mut moving = self.moving.clone();
        for (product, f) in &other.moving {
            let f = f.checked_mul(k)?;
            match moving.binary_search_by(|t| t.0.cmp(product)) {
                Ok(i) => moving[i].1 = moving[i].1.checked_add(f)?,
                Err(i) => moving.insert(i, (product.clone(), f)),
            }
        }
        moving.retain(|t| t.1 != 0);
        let base = self.base.checked_add(other.base.checked_mul(k)?)?;
        (moving.len() <= TERMS).then_some(Poly { moving, base })
    }

    /// Returns `self · other`, or `None` if it overflows or is too long.
    pub fn times(&self, other: &Poly) -> Option<Poly> {
        let mut result = Poly { moving: SmallVec::new(), base: self.base.checked_mul(other.base)? };
        let terms = |p: &Poly| -> Vec<(SmallVec<[Val; 2]>, i64)> {
            p.moving.iter().cloned().chain([(SmallVec::new(), p.base)]).collect()
        };
        for (a, f) in terms(self) {
            for (b, g) in terms(other) {
                let mut product: SmallVec<[Val; 2]> = a.iter().chain(&b).copied().collect();
                let factor = f.checked_mul(g)?;
                if product.is_empty() || factor == 0 {
                    continue;
                }
                if product.len() > DEGREE {
                    return None;
                }
                product.sort();
                result = result.plus(&Poly { moving: smallvec![(product, factor)], base: 0 }, 1)?;
            }
        }
        Some(result)
    }
}
