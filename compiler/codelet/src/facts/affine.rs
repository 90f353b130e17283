//! Affine forms: a number plus multiples of loop indices and of constants of the vertex.
//!
//! Invariants: terms ascend by symbol and none has the factor zero, so equal forms compare equal; each symbol names
//! the index of one loop at one walk of it, or a constant, and is never used again.

use smallvec::SmallVec;

/// The index of a loop, or a constant of the vertex.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Symbol(pub u32);

/// `base + Σ factor · symbol`
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Affine {
    pub terms: SmallVec<[(Symbol, i64); 2]>,
    pub base: i64,
}

/// Maximal number of terms; a longer form is dropped, so that the time of an operation stays constant.
const MAX_TERMS: usize = 16;

impl Affine {
    /// Returns a constant.
    pub fn constant(base: i64) -> Affine {
        Affine { terms: SmallVec::new(), base }
    }

    /// Returns the value of a symbol.
    pub fn symbol(s: Symbol) -> Affine {
        Affine { terms: SmallVec::from_slice(&[(s, 1)]), base: 0 }
    }

    /// Returns the value, if it depends on no symbol.
    pub fn is_constant(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.base)
    }

    /// Returns the factor of a symbol, zero if it does not occur.
    pub fn factor(&self, s: Symbol) -> i64 {
        self.terms.iter().find(|t| t.0 == s).map_or(0, |t| t.1)
    }

    /// Returns `self + k · other`; `None` if a number overflows.
    pub fn add_scaled(&self, other: &Affine, k: i64) -> Option<Affine> {
        let mut terms = self.terms.clone();
        for &(s, f) in &other.terms {
            let f = f.checked_mul(k)?;
            match terms.binary_search_by_key(&s, |t| t.0) {
                Ok(i) => terms[i].1 = terms[i].1.checked_add(f)?,
                Err(i) => terms.insert(i, (s, f)),
            }
        }
        terms.retain(|t| t.1 != 0);
        let base = self.base.checked_add(other.base.checked_mul(k)?)?;
        (terms.len() <= MAX_TERMS).then_some(Affine { terms, base })
    }

    /// Returns `k · self`, or `None` if a number overflows.
    pub fn scaled(&self, k: i64) -> Option<Affine> {
        Affine::constant(0).add_scaled(self, k)
    }

    /// Returns the form with a symbol replaced by another form.
    pub fn substitute(&self, s: Symbol, by: &Affine) -> Option<Affine> {
        let factor = self.factor(s);
        let mut rest = self.clone();
        rest.terms.retain(|t| t.0 != s);
        rest.add_scaled(by, factor)
    }

    /// Returns `self - other` if it is a number.
    pub fn difference(&self, other: &Affine) -> Option<i64> {
        if self.terms != other.terms {
            return None;
        }
        self.base.checked_sub(other.base)
    }
}
