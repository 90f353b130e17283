//! Forms: multiples of unknown values, and quotients of them.
//!
//! Invariant: an operation whose numbers overflow gives no form.

use super::Side;
use girder_ir::ids::{FieldId, LocalId};

/// A value that is not known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Atom {
    /// A local in its scope.
    Local(LocalId),
    /// A `const` field.
    Const(FieldId),
}

/// `floor((Σ factor · atom + number) / over) + plus`
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Form {
    /// Each atom once, with a factor that is not 0.
    terms: Vec<(Atom, i64)>,
    number: i64,
    /// At least 1.
    over: i64,
    plus: i64,
}

impl Form {
    pub(super) fn number(n: i64) -> Form {
        Form { terms: vec![], number: n, over: 1, plus: 0 }
    }

    pub(super) fn atom(atom: Atom) -> Form {
        Form { terms: vec![(atom, 1)], number: 0, over: 1, plus: 0 }
    }

    /// Returns the value of a form without atoms.
    pub fn value(&self) -> Option<i64> {
        if self.terms.is_empty() { self.number.div_euclid(self.over).checked_add(self.plus) } else { None }
    }

    /// Returns a form on a side of the product with a number, for a form on the side from which that follows.
    pub(super) fn times(&self, n: i64, side: Side) -> Option<Form> {
        if let Some(value) = self.value() {
            return Some(Form::number(value.checked_mul(n)?));
        }
        if n == 0 {
            return Some(Form::number(0));
        }
        let (mut factor, mut number) = (n, self.number);
        if self.over > 1 {
            // `over * floor(x / over)` is at most x, and more than `x - over`.
            (n % self.over == 0).then_some(())?;
            factor = n / self.over;
            if (side == Side::Below) == (n > 0) {
                number = number.checked_sub(self.over - 1)?;
            }
        }
        let terms = self.terms.iter().map(|&(atom, f)| Some((atom, f.checked_mul(factor)?)));
        let number = number.checked_mul(factor)?.checked_add(self.plus.checked_mul(n)?)?;
        Some(Form { terms: terms.collect::<Option<_>>()?, number, over: 1, plus: 0 })
    }

    pub(super) fn plus(&self, other: &Form) -> Option<Form> {
        if let Some(n) = other.value() {
            return Some(Form { plus: self.plus.checked_add(n)?, ..self.clone() });
        }
        if self.value().is_some() {
            return other.plus(self);
        }
        (self.over == 1 && other.over == 1).then_some(())?;
        let mut terms = self.terms.clone();
        for &(atom, factor) in &other.terms {
            match terms.iter_mut().find(|t| t.0 == atom) {
                Some(term) => term.1 = term.1.checked_add(factor)?,
                None => terms.push((atom, factor)),
            }
        }
        terms.retain(|t| t.1 != 0);
        let number = self.number.checked_add(other.number)?;
        Some(Form { terms, number, over: 1, plus: self.plus.checked_add(other.plus)? })
    }

    /// Returns `floor((self + more) / n)`.
    pub(super) fn over(self, n: i64, more: i64) -> Option<Form> {
        if let Some(value) = self.value() {
            return Some(Form::number(value.checked_add(more)?.div_euclid(n)));
        }
        if n == 1 {
            return Some(Form { plus: self.plus.checked_add(more)?, ..self });
        }
        (self.over == 1).then_some(())?;
        Some(Form { number: self.number.checked_add(self.plus)?.checked_add(more)?, over: n, plus: 0, ..self })
    }

    /// Returns the most by which the form is greater than another, if that is a number.
    pub fn apart(&self, less: &Form) -> Option<i64> {
        if let (Some(x), Some(y)) = (self.value(), less.value()) {
            return x.checked_sub(y);
        }
        let same = self.terms.len() == less.terms.len() && self.terms.iter().all(|t| less.terms.contains(t));
        (same && self.over == less.over).then_some(())?;
        // floor(x) - floor(y) is at most the least whole number that is not less than x - y.
        let quotient = -(less.number.checked_sub(self.number)?.div_euclid(self.over));
        quotient.checked_add(self.plus)?.checked_sub(less.plus)
    }
}
