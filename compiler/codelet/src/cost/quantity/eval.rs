//! The value of a quantity for one vertex.
//!
//! Invariant: evaluation saturates and never fails.

use super::{Quantity, ceil};
use crate::cost::inputs::CostInputs;
use girder_ir::ids::FieldId;
use girder_ir::types::{ElemType, Scalar};

use Quantity::*;

impl Quantity {
    /// Returns the value; `types` gives the types of `const` fields.
    pub(in crate::cost) fn eval(&self, types: &dyn Fn(FieldId) -> ElemType, at: &CostInputs<'_>) -> i64 {
        let value = |q: &Quantity| q.eval(types, at);
        let pair = |p: &[Quantity; 2]| (value(&p[0]), value(&p[1]));
        match self {
            Number(n) => *n,
            Size(s) => at.sizes.sizes[*s],
            Const(f) => {
                let bits = at.consts.get(f.as_u32() as usize).copied().unwrap_or(0);
                let exact = Scalar::new(types(*f), bits).as_int().unwrap_or(0);
                exact.clamp(i64::MIN.into(), i64::MAX.into()) as i64
            }
            Worker => i64::from(at.worker),
            Workers => i64::from(at.workers),
            Index(_) => 0,
            Counter(k) => at.counters.get(*k as usize).map_or(0, |&n| i64::try_from(n).unwrap_or(i64::MAX)),
            Add(list) => list.iter().fold(0, |sum, q| sum.saturating_add(value(q))),
            Mul(list) => list.iter().fold(1, |product, q| product.saturating_mul(value(q))),
            Div(p) => {
                let (a, b) = pair(p);
                if b == 0 { 0 } else { a.saturating_div(b) }
            }
            Rem(p) => {
                let (a, b) = pair(p);
                if b == 0 { 0 } else { a.wrapping_rem(b) }
            }
            Ceil(x, d) => ceil(value(x).into(), *d) as i64,
            Min(p) => value(&p[0]).min(value(&p[1])),
            Max(p) => value(&p[0]).max(value(&p[1])),
            Less(p) => (value(&p[0]) < value(&p[1])).into(),
            Equal(p) => (value(&p[0]) == value(&p[1])).into(),
            Ramp(r) => ramp(value(&r.base).into(), r.slope, r.step, value(&r.trip_count)),
        }
    }
}

/// Evaluates `Σ max(0, ⌈(base + slope · t) / step⌉)` for t in 0..trip_count in a logarithmic number of steps.
fn ramp(base: i128, slope: i64, step: i64, trip_count: i64) -> i64 {
    let (slope, step, trip_count) = (i128::from(slope), i128::from(step), i128::from(trip_count.max(0)));
    // Terms are taken in ascending order; those that are not positive come first.
    let (first, slope) =
        if slope < 0 { (base.saturating_add(slope.saturating_mul(trip_count - 1)), -slope) } else { (base, slope) };
    if trip_count == 0 || (slope == 0 && first <= 0) {
        return 0;
    }
    let skipped = if first > 0 { 0 } else { (-first) / slope + 1 };
    if skipped >= trip_count {
        return 0;
    }
    let start = first.saturating_add(slope.saturating_mul(skipped));
    // ⌈x / step⌉ = ⌊(x + step - 1) / step⌋
    let total = floor_sum(trip_count - skipped, step, slope, start.saturating_add(step - 1));
    total.clamp(0, i64::MAX.into()) as i64
}

/// Evaluates `Σ ⌊(a · t + b) / m⌋` for t in 0..n, with a, b ≥ 0 and m > 0; saturates.
fn floor_sum(n: i128, m: i128, a: i128, b: i128) -> i128 {
    let (mut n, mut m, mut a, mut b) = (n, m, a, b);
    let mut total: i128 = 0;
    loop {
        if a >= m {
            total = total.saturating_add((n * (n - 1) / 2).saturating_mul(a / m));
            a %= m;
        }
        if b >= m {
            total = total.saturating_add(n.saturating_mul(b / m));
            b %= m;
        }
        let top = a.saturating_mul(n).saturating_add(b);
        if top < m {
            return total;
        }
        (n, b) = (top / m, top % m);
        (m, a) = (a, m);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ramp_is_the_sum_of_its_terms() {
        for base in -7..8i64 {
            for slope in -4..5i64 {
                for step in 1..4i64 {
                    for trip_count in 0..9i64 {
                        let term = |t: i64| ceil(i128::from(base + slope * t), step).max(0);
                        let expected: i128 = (0..trip_count).map(term).sum();
                        assert_eq!(i128::from(ramp(base.into(), slope, step, trip_count)), expected);
                    }
                }
            }
        }
    }
}
