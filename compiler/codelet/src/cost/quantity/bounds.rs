//! Bounds of quantities that depend on loop indices.
//!
//! Invariant: a bound holds for every value of the indices in their ranges, and mentions no index.

use super::{LIMIT, Quantity};

use Quantity::*;

/// The range of a loop's index, by the number of the loop: the least and the greatest value, both perhaps in terms of
/// outer indices.
pub(in crate::cost) type Ranges<'a> = dyn Fn(u32) -> Option<(Quantity, Quantity)> + 'a;

/// Maximal number of forms that one bound looks at.
const FORMS: u32 = 1 << 8;

/// The side on which a bound lies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Below,
    Above,
}

impl Side {
    fn other(self) -> Side {
        if self == Side::Above { Side::Below } else { Side::Above }
    }
}

impl Quantity {
    /// Returns the least upper bound that is found; `None` if there is none, or it is too long.
    pub(in crate::cost) fn upper(&self, ranges: &Ranges<'_>) -> Option<Quantity> {
        Search { ranges, left: FORMS }.bound(self, Side::Above)?.fits()
    }

    /// Returns whether it depends on a loop's index.
    pub(in crate::cost) fn has_index(&self) -> bool {
        self.any(&mut |q| matches!(q, Index(_)))
    }

    /// Multiplies out products of sums, as far as the result is short.
    fn expanded(self) -> Quantity {
        match self {
            Add(list) => list.into_iter().fold(Number(0), |sum, q| sum.add(q.expanded())),
            Mul(list) => list.into_iter().fold(Number(1), |product, q| {
                let (a, b) = (product.terms(), q.expanded().terms());
                if a.len() * b.len() > LIMIT {
                    return sum_of(a).mul(sum_of(b));
                }
                let each = a.iter().flat_map(|x| b.iter().map(|y| x.clone().mul(y.clone())));
                each.fold(Number(0), Quantity::add)
            }),
            q => q,
        }
    }

    fn terms(self) -> Vec<Quantity> {
        if let Add(list) = self { list } else { vec![self] }
    }
}

fn sum_of(terms: Vec<Quantity>) -> Quantity {
    terms.into_iter().fold(Number(0), Quantity::add)
}

struct Search<'a> {
    ranges: &'a Ranges<'a>,
    left: u32,
}

impl Search<'_> {
    fn bound(&mut self, q: &Quantity, side: Side) -> Option<Quantity> {
        if !q.has_index() {
            return Some(q.clone());
        }
        self.left = self.left.checked_sub(1)?;
        match q {
            Index(i) => {
                let (least, greatest) = (self.ranges)(*i)?;
                self.bound(if side == Side::Above { &greatest } else { &least }, side)
            }
            Add(list) => self.sum(list, side),
            Mul(_) => self.product(q, side),
            Div(p) if !p[1].has_index() && p[1].is_natural() => Some(self.bound(&p[0], side)?.div(p[1].clone())),
            Rem(p) if side == Side::Above && !p[1].has_index() && p[1].is_natural() => {
                Some(Number(0).max(p[1].clone().add(Number(-1))))
            }
            Ceil(x, d) => Some(self.bound(x, side)?.ceil(*d)),
            Min(p) => self.choice(p, true, side),
            Max(p) => self.choice(p, false, side),
            Less(_) | Equal(_) => Some(Number((side == Side::Above).into())),
            _ => None,
        }
    }

    /// Bounds the lesser (or greater) of two forms. One of them suffices on one of the sides.
    fn choice(&mut self, pair: &[Quantity; 2], lesser: bool, side: Side) -> Option<Quantity> {
        let (a, b) = (self.bound(&pair[0], side), self.bound(&pair[1], side));
        let join = |a: Quantity, b: Quantity| if lesser { a.min(b) } else { a.max(b) };
        match (a, b) {
            (Some(a), Some(b)) => Some(join(a, b)),
            (a, b) if lesser == (side == Side::Above) => a.or(b),
            _ => None,
        }
    }

    /// Bounds a sum. A sum with `min(a, b)` is the lesser of the sum with a and the sum with b, and the difference of
    /// two quotients is nearly the quotient of the difference, so that what they have in common is cancelled.
    fn sum(&mut self, list: &[Quantity], side: Side) -> Option<Quantity> {
        let split = |q: &Quantity| q.clone().split();
        for (at, q) in list.iter().enumerate() {
            let (k, form) = split(q);
            let (pair, lesser) = match &form {
                Min(p) if form.has_index() => (p, k > 0),
                Max(p) if form.has_index() => (p, k < 0),
                _ => continue,
            };
            let rest = list.iter().enumerate().filter(|&(n, _)| n != at);
            let rest = rest.fold(Number(0), |sum, (_, q)| sum.add(q.clone()));
            let with = |x: &Quantity| rest.clone().add_scaled(x.clone(), k);
            return self.choice(&[with(&pair[0]), with(&pair[1])], lesser, side);
        }
        for (at, q) in list.iter().enumerate() {
            let (k, Div(x)) = split(q) else { continue };
            let partner = list.iter().enumerate().find_map(|(n, other)| match split(other) {
                (l, Div(y)) if k > 0 && l == -k && x[1] == y[1] => Some((n, y)),
                _ => None,
            });
            let Some((other, y)) = partner.filter(|_| x[1].is_natural() && !x[1].has_index()) else { continue };
            let far = x[0].clone().expanded().add_scaled(y[0].clone().expanded(), -1);
            if far.has_index() || !far.is_natural() {
                continue;
            }
            let round = if side == Side::Above { x[1].clone().add(Number(-1)) } else { Number(0) };
            let quotient = far.add(round).div(x[1].clone());
            let rest = list.iter().enumerate().filter(|&(n, _)| n != at && n != other);
            let sum = rest.fold(Number(0), |sum, (_, q)| sum.add(q.clone())).add_scaled(quotient, k);
            return self.bound(&sum, side);
        }
        let whole = Add(list.to_vec()).expanded();
        match whole {
            Add(list) => list.iter().try_fold(Number(0), |sum, q| Some(sum.add(self.bound(q, side)?))),
            q => self.bound(&q, side),
        }
    }

    /// Bounds a product whose factors, apart from a number, are never negative.
    fn product(&mut self, q: &Quantity, side: Side) -> Option<Quantity> {
        let (k, rest) = q.clone().split();
        let side = if k < 0 { side.other() } else { side };
        let Mul(factors) = rest else { return Some(Number(k).mul(self.bound(&rest, side)?)) };
        let mut product = Number(k);
        for f in &factors {
            if f.has_index() && !self.bound(f, Side::Below)?.is_natural() {
                return None;
            }
            if !f.has_index() && !f.is_natural() {
                return None;
            }
            product = product.mul(self.bound(f, side)?);
        }
        Some(product)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use girder_ir::ids::SizeId;

    fn size(n: u32) -> Quantity {
        Size(SizeId::from_u32(n))
    }

    /// An index from 0 to below the first size.
    fn upper(q: &Quantity) -> Option<Quantity> {
        q.upper(&|_| Some((Number(0), size(0).add(Number(-1)))))
    }

    #[test]
    fn the_last_block_is_not_longer_than_the_others() {
        // min(n, (i + 1) · 100) − i · 100
        let i = || Index(0).mul(Number(100));
        let length = size(1).min(i().add(Number(100))).add_scaled(i(), -1);
        assert_eq!(upper(&length), Some(size(1).min(Number(100))));
    }

    #[test]
    fn shares_by_division_differ_by_one() {
        // (i + 1) · n / 7 − i · n / 7
        let share = |i: Quantity| i.mul(size(1)).div(Number(7));
        let length = share(Index(0).add(Number(1))).add_scaled(share(Index(0)), -1);
        assert_eq!(upper(&length), Some(size(1).add(Number(6)).div(Number(7))));
    }

    #[test]
    fn a_triangle_is_as_long_as_its_last_row() {
        assert_eq!(upper(&Index(0).add(Number(1))), Some(size(0)));
        assert_eq!(upper(&size(1).add_scaled(Index(0), -1)), Some(size(1)));
        assert_eq!(upper(&Index(0).mul(size(1))), Some(size(0).add(Number(-1)).mul(size(1))));
    }

    #[test]
    fn an_index_without_a_range_has_no_bound() {
        assert_eq!(Index(0).upper(&|_| None), None);
        assert_eq!(Index(0).min(size(0)).upper(&|_| None), Some(size(0)));
    }
}
