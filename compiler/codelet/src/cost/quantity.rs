//! Closed forms of execution counts, as functions of sizes, constants, the worker and counters.
//!
//! Invariants: a quantity has at most [`LIMIT`] nodes, so that evaluating it is cheap; forms that differ only in the
//! order of summands or factors are equal.

mod bounds;
mod eval;
mod text;

pub use text::Names;
pub(super) use text::sum;

use girder_ir::ids::{FieldId, SizeId};

/// Maximal number of nodes of a quantity.
const LIMIT: usize = 256;

/// A number that is known before a vertex runs, or counted while it runs.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Quantity {
    /// A literal.
    Number(i64),
    /// A size.
    Size(SizeId),
    /// An integer or `bool` constant of the vertex.
    Const(FieldId),
    /// The worker of a `multi` codelet.
    Worker,
    /// Workers of a tile.
    Workers,
    /// A loop's index, by the number of the loop. Occurs only while a codelet is analysed.
    Index(u32),
    /// Executions of a [point](super::Points), by number.
    Counter(u32),
    /// Sum.
    Add(Vec<Quantity>),
    /// Product.
    Mul(Vec<Quantity>),
    /// Quotient towards zero; 0 of a zero divisor.
    Div(Box<[Quantity; 2]>),
    /// Remainder with the sign of the dividend; 0 of a zero divisor.
    Rem(Box<[Quantity; 2]>),
    /// `⌈a / b⌉` for b > 0.
    Ceil(Box<Quantity>, i64),
    /// The lesser.
    Min(Box<[Quantity; 2]>),
    /// The greater.
    Max(Box<[Quantity; 2]>),
    /// 1 if the first is less than the second, else 0.
    Less(Box<[Quantity; 2]>),
    /// 1 if both are equal, else 0.
    Equal(Box<[Quantity; 2]>),
    /// `Σ max(0, ⌈(base + slope · t) / step⌉)` for t in 0..trip_count.
    Ramp(Box<Ramp>),
}

/// The summed trip counts of an inner loop whose bounds move with the index of an outer loop.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Ramp {
    /// The range of the inner loop in iteration 0 of the outer one.
    pub base: Quantity,
    /// The change of the range from iteration to iteration.
    pub slope: i64,
    /// The step of the inner loop, positive.
    pub step: i64,
    /// Trip count of the outer loop.
    pub trip_count: Quantity,
}

use Quantity::*;

impl Quantity {
    /// Returns the quantity if it has at most [`LIMIT`] nodes.
    pub(super) fn fits(self) -> Option<Quantity> {
        (self.nodes() <= LIMIT).then_some(self)
    }

    fn nodes(&self) -> usize {
        1 + self.parts().map(Quantity::nodes).sum::<usize>()
    }

    fn parts(&self) -> Box<dyn Iterator<Item = &Quantity> + '_> {
        match self {
            Number(_) | Size(_) | Const(_) | Worker | Workers | Index(_) | Counter(_) => Box::new(std::iter::empty()),
            Add(list) | Mul(list) => Box::new(list.iter()),
            Div(p) | Rem(p) | Min(p) | Max(p) | Less(p) | Equal(p) => Box::new(p.iter()),
            Ceil(x, _) => Box::new(std::iter::once(&**x)),
            Ramp(r) => Box::new([&r.base, &r.trip_count].into_iter()),
        }
    }

    /// Returns whether some part satisfies a condition.
    pub(super) fn any(&self, test: &mut dyn FnMut(&Quantity) -> bool) -> bool {
        test(self) || self.parts().any(|p| p.any(test))
    }

    /// Returns the value of a literal.
    pub fn number(&self) -> Option<i64> {
        if let Number(n) = self { Some(*n) } else { None }
    }

    /// Returns `self + other`.
    pub(super) fn add(self, other: Quantity) -> Quantity {
        self.add_scaled(other, 1)
    }

    /// Returns `self + k · other`.
    pub(super) fn add_scaled(self, other: Quantity, k: i64) -> Quantity {
        let mut terms: Vec<(Quantity, i64)> = Vec::new();
        for (q, k) in [(self, 1), (other, k)] {
            let list = if let Add(list) = q { list } else { vec![q] };
            for q in list {
                let (factor, rest) = q.split();
                let factor = factor.saturating_mul(k);
                match terms.iter_mut().find(|t| t.0 == rest) {
                    Some(t) => t.1 = t.1.saturating_add(factor),
                    None => terms.push((rest, factor)),
                }
            }
        }
        terms.retain(|t| t.1 != 0);
        let mut list: Vec<Quantity> = terms.into_iter().map(|(q, k)| q.scaled(k)).collect();
        list.sort();
        match list.len() {
            0 => Number(0),
            1 => list.remove(0),
            _ => Add(list),
        }
    }

    /// Splits off the numeric factor.
    fn split(self) -> (i64, Quantity) {
        match self {
            Number(n) => (n, Number(1)),
            Mul(mut list) => match list[0] {
                Number(n) => {
                    list.remove(0);
                    (n, if list.len() == 1 { list.remove(0) } else { Mul(list) })
                }
                _ => (1, Mul(list)),
            },
            other => (1, other),
        }
    }

    fn scaled(self, k: i64) -> Quantity {
        match (self, k) {
            (_, 0) => Number(0),
            (q, 1) => q,
            (Number(n), k) => Number(n.saturating_mul(k)),
            (Mul(mut list), k) => {
                list.insert(0, Number(k));
                Mul(list)
            }
            (q, k) => Mul(vec![Number(k), q]),
        }
    }

    /// Returns `self · other`; a sum times a number is multiplied out.
    pub(super) fn mul(self, other: Quantity) -> Quantity {
        match (self, other) {
            (Number(n), Add(list)) | (Add(list), Number(n)) => {
                list.into_iter().fold(Number(0), |sum, q| sum.add_scaled(q, n))
            }
            (a, b) => {
                let ((j, a), (k, b)) = (a.split(), b.split());
                let mut list = Vec::new();
                for q in [a, b] {
                    match q {
                        Number(1) => {}
                        Mul(inner) => list.extend(inner),
                        q => list.push(q),
                    }
                }
                list.sort();
                let product = match list.len() {
                    0 => Number(1),
                    1 => list.remove(0),
                    _ => Mul(list),
                };
                product.scaled(j.saturating_mul(k))
            }
        }
    }

    /// Returns the quotient, rounded towards zero.
    pub(super) fn div(self, other: Quantity) -> Quantity {
        match (&self, &other) {
            (_, Number(1)) => self,
            (Number(a), Number(b)) if *b != 0 => Number(a.wrapping_div(*b)),
            _ => Div(Box::new([self, other])),
        }
    }

    /// Returns the remainder.
    pub(super) fn rem(self, other: Quantity) -> Quantity {
        match (&self, &other) {
            (Number(a), Number(b)) if *b != 0 => Number(a.wrapping_rem(*b)),
            _ => Rem(Box::new([self, other])),
        }
    }

    /// Returns the lesser of both.
    pub(super) fn min(self, other: Quantity) -> Quantity {
        match (&self, &other) {
            (Number(a), Number(b)) => Number(*a.min(b)),
            _ if self == other => self,
            _ => Min(Box::new([self, other])),
        }
    }

    /// Returns the greater of both.
    pub(super) fn max(self, other: Quantity) -> Quantity {
        match (&self, &other) {
            (Number(a), Number(b)) => Number(*a.max(b)),
            (Number(0), q) if q.is_natural() => other,
            _ if self == other => self,
            _ => Max(Box::new([self, other])),
        }
    }

    /// Returns whether the value is never negative.
    fn is_natural(&self) -> bool {
        match self {
            Number(n) => *n >= 0,
            Size(_) | Worker | Workers | Counter(_) | Ramp(_) | Less(_) | Equal(_) => true,
            Add(list) | Mul(list) => list.iter().all(Quantity::is_natural),
            Div(p) | Rem(p) | Min(p) => p.iter().all(Quantity::is_natural),
            Max(p) => p.iter().any(Quantity::is_natural),
            Ceil(x, _) => x.is_natural(),
            Const(_) | Index(_) => false,
        }
    }

    /// Returns `⌈self / d⌉` for d > 0.
    pub(super) fn ceil(self, d: i64) -> Quantity {
        match self {
            q if d == 1 => q,
            Number(n) => Number(ceil(i128::from(n), d) as i64),
            Ceil(x, e) if e.checked_mul(d).is_some() => Ceil(x, e * d),
            q => Ceil(Box::new(q), d),
        }
    }

    /// Returns the trip count of `for _ in lo..hi by step`.
    pub(super) fn trips(lo: Quantity, hi: Quantity, step: i64) -> Quantity {
        let (from, to) = if step > 0 { (lo, hi) } else { (hi, lo) };
        let span = to.add_scaled(from, -1);
        Number(0).max(span).ceil(step.unsigned_abs().min(i64::MAX as u64) as i64)
    }

    /// Multiplies the step of every ramp in a product.
    pub(super) fn scale_ramp_steps(self, by: i64) -> Quantity {
        match self {
            Ramp(mut r) => {
                r.step = r.step.saturating_mul(by);
                Ramp(r)
            }
            Mul(list) => Mul(list.into_iter().map(|q| q.scale_ramp_steps(by)).collect()),
            q => q,
        }
    }

    /// Returns `(a, b)` if the quantity is `a + b · index` with a number b.
    pub(super) fn linear(&self, index: u32) -> Option<(Quantity, i64)> {
        let mentions = |q: &Quantity| q.any(&mut |p| *p == Index(index));
        match self {
            Index(i) if *i == index => Some((Number(0), 1)),
            Add(list) => list.iter().try_fold((Number(0), 0i64), |(a, b), q| {
                let (c, d) = q.linear(index)?;
                Some((a.add(c), b.checked_add(d)?))
            }),
            Mul(list) => match &list[..] {
                [Number(n), q] => {
                    let (a, b) = q.linear(index)?;
                    Some((Number(*n).mul(a), b.checked_mul(*n)?))
                }
                _ => (!mentions(self)).then(|| (self.clone(), 0)),
            },
            q => (!mentions(q)).then(|| (q.clone(), 0)),
        }
    }
}

fn ceil(a: i128, d: i64) -> i128 {
    -(-a).div_euclid(i128::from(d))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_products_have_one_form() {
        let (n, m) = (|| Size(SizeId::from_u32(0)), || Size(SizeId::from_u32(1)));
        assert_eq!(n().add(m()).add(Number(2)), Number(2).add(m()).add(n()));
        assert_eq!(n().mul(m()).mul(Number(2)), Number(2).mul(m()).mul(n()));
        assert_eq!(n().add_scaled(n(), -1), Number(0));
        assert_eq!(Quantity::trips(Number(0), n(), 1), n());
        assert_eq!(Quantity::trips(Number(1), n(), 1), Max(Box::new([Number(0), n().add(Number(-1))])));
    }
}
