//! Value ranges of floats.
//!
//! Invariant: a range contains every possible value except NaN.

use super::{Kernel, Lane, Op, Rounding, Value};

/// The least and the greatest value.
pub(crate) type Range = (f64, f64);

const ALL: Range = (f64::NEG_INFINITY, f64::INFINITY);

/// Returns the range of each value of a kernel.
pub(crate) fn ranges(kernel: &Kernel) -> Vec<Range> {
    let mut ranges: Vec<Range> = Vec::with_capacity(kernel.defs.len());
    for def in &kernel.defs {
        let of = |n: usize| def.args.get(n).map_or(ALL, |a: &Value| ranges[a.0 as usize]);
        let range = if def.lane.is_float() { of_float(def.lane, def.op, &of) } else { ALL };
        ranges.push(range);
    }
    ranges
}

fn of_float(lane: Lane, op: Op, of: &dyn Fn(usize) -> Range) -> Range {
    let (lo, hi) = of(0);
    match op {
        Op::Constant { bits } => {
            let value = lane.float_value(bits);
            if value.is_nan() { ALL } else { (value, value) }
        }
        Op::Neg => (-hi, -lo),
        Op::Abs => (0.0, hi.max(-lo)),
        Op::Round(Rounding::Nearest | Rounding::Floor | Rounding::Ceil | Rounding::Trunc) => (lo.floor(), hi.ceil()),
        Op::Min => (lo.min(of(1).0), hi.min(of(1).1)),
        Op::Max => (lo.max(of(1).0), hi.max(of(1).1)),
        Op::Mul => product((lo, hi), of(1)),
        _ => ALL,
    }
}

fn product((p, q): Range, (r, s): Range) -> Range {
    let corners = [p * r, p * s, q * r, q * s];
    if !corners.iter().all(|c| c.abs() < 1e30) {
        return ALL;
    }
    // An upper bound of the rounding error of a product.
    let slack = 1.0 + corners.iter().fold(0.0f64, |m, c| m.max(c.abs())) * 1e-6;
    let (lo, hi) = corners.iter().fold((f64::MAX, f64::MIN), |(l, h), &c| (l.min(c), h.max(c)));
    (lo - slack, hi + slack)
}

/// Returns a float before it was clamped to limits that are no narrower than these; NaN remains NaN.
pub(crate) fn without_limits(kernel: &Kernel, mut x: Value, (least, greatest): (f64, f64)) -> Value {
    loop {
        let def = kernel.def(x);
        let holds = |n: f64| match def.op {
            Op::Max => n <= least,
            Op::Min => n >= greatest,
            _ => false,
        };
        let number = |v: Value| kernel.constant_bits(v).map(|bits| def.lane.float_value(bits));
        x = match *def.args.as_slice() {
            [a, b] if number(b).is_some_and(holds) => a,
            [a, b] if number(a).is_some_and(holds) => b,
            _ => return x,
        };
    }
}
