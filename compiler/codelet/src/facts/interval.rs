//! Intervals of integers and `bool`.
//!
//! Invariant: an interval of a typed value lies inside the type's range; an operation that might leave the range wraps,
//! so it gives the whole range. Floats have the interval [`Interval::ANY`], which implies nothing.

use crate::scalar;
use girder_ir::codelet::{BinaryOp, UnaryOp};
use girder_ir::types::{ElemType, Scalar};

/// All integers from `lo` to `hi`, both included; `lo <= hi`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Interval {
    pub lo: i128,
    pub hi: i128,
}

impl Interval {
    pub const ANY: Interval = Interval { lo: i128::MIN, hi: i128::MAX };

    /// Returns the interval `lo..=hi`.
    pub fn new(lo: i128, hi: i128) -> Interval {
        debug_assert!(lo <= hi);
        Interval { lo, hi }
    }

    /// Returns the interval of one number.
    pub fn point(v: i128) -> Interval {
        Interval { lo: v, hi: v }
    }

    /// Returns the interval of all values of a type.
    pub fn of(ty: ElemType) -> Interval {
        scalar::int_range(ty).map_or(Interval::ANY, |(lo, hi)| Interval { lo, hi })
    }

    /// Returns the interval of a constant; that of all numbers for a float.
    pub fn constant(c: Scalar) -> Interval {
        c.as_int().map_or(Interval::ANY, Interval::point)
    }

    /// Returns the number, if there is only one.
    pub fn is_point(self) -> Option<i128> {
        (self.lo == self.hi).then_some(self.lo)
    }

    /// Returns whether a number is inside.
    pub fn contains(self, v: i128) -> bool {
        self.lo <= v && v <= self.hi
    }

    /// Returns whether the interval is inside another one.
    pub fn within(self, outer: Interval) -> bool {
        outer.lo <= self.lo && self.hi <= outer.hi
    }

    /// Returns the smallest interval that contains both.
    pub fn hull(self, other: Interval) -> Interval {
        Interval { lo: self.lo.min(other.lo), hi: self.hi.max(other.hi) }
    }

    /// Returns the intersection.
    pub fn meet(self, other: Interval) -> Option<Interval> {
        let (lo, hi) = (self.lo.max(other.lo), self.hi.min(other.hi));
        (lo <= hi).then_some(Interval { lo, hi })
    }

    /// Returns the interval of the results of a function that is monotonic in each operand.
    fn corners(self, other: Interval, f: impl Fn(i128, i128) -> Option<i128>) -> Option<Interval> {
        let first = Interval::point(f(self.lo, other.lo)?);
        [(self.lo, other.hi), (self.hi, other.lo), (self.hi, other.hi)]
            .into_iter()
            .try_fold(first, |hull, (a, b)| Some(hull.hull(Interval::point(f(a, b)?))))
    }
}

/// Returns an interval within a type; `None` stands for a result that may wrap or is unknown.
fn typed(ty: ElemType, exact: Option<Interval>) -> Interval {
    let all = Interval::of(ty);
    exact.filter(|r| r.within(all)).unwrap_or(all)
}

/// Returns the interval of `op x`.
pub(crate) fn unary(op: UnaryOp, ty: ElemType, x: Interval) -> Interval {
    if ty.is_float() {
        return Interval::ANY;
    }
    let width = 8 * ty.bytes() as i128;
    typed(
        ty,
        match op {
            UnaryOp::Neg => Some(Interval::new(-x.hi, -x.lo)),
            UnaryOp::Not if ty == ElemType::Bool => Some(Interval::new(1 - x.hi, 1 - x.lo)),
            UnaryOp::Not if ty.is_signed_int() => Some(Interval::new(-1 - x.hi, -1 - x.lo)),
            UnaryOp::Not => Some(Interval::new(Interval::of(ty).hi - x.hi, Interval::of(ty).hi - x.lo)),
            UnaryOp::Abs if x.lo >= 0 => Some(x),
            UnaryOp::Abs if x.hi <= 0 => Some(Interval::new(-x.hi, -x.lo)),
            UnaryOp::Abs => Some(Interval::new(0, x.hi.max(-x.lo))),
            UnaryOp::Popcount | UnaryOp::Clz => Some(Interval::new(0, width)),
            _ => None,
        },
    )
}

/// Returns the interval of `a op b`; `ty` is the operands' type.
pub(crate) fn binary(op: BinaryOp, ty: ElemType, a: Interval, b: Interval) -> Interval {
    if op.is_comparison() {
        return if ty.is_float() { Interval::of(ElemType::Bool) } else { compare(op, a, b) };
    }
    if ty.is_float() {
        return Interval::ANY;
    }
    if let Some(value) = exact(op, ty, a, b) {
        return Interval::point(value);
    }
    typed(
        ty,
        match op {
            BinaryOp::Add => Some(Interval::new(a.lo + b.lo, a.hi + b.hi)),
            BinaryOp::Sub => Some(Interval::new(a.lo - b.hi, a.hi - b.lo)),
            BinaryOp::Mul => a.corners(b, i128::checked_mul),
            BinaryOp::Div => divide(a, b),
            BinaryOp::Rem => remainder(a, b),
            BinaryOp::Min => Some(Interval::new(a.lo.min(b.lo), a.hi.min(b.hi))),
            BinaryOp::Max => Some(Interval::new(a.lo.max(b.lo), a.hi.max(b.hi))),
            BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => logic(op, a, b),
            BinaryOp::Shl => shift_range(ty, b).and_then(|b| a.corners(b, |x, n| x.checked_mul(1 << n))),
            BinaryOp::Shr => shift_range(ty, b).and_then(|b| a.corners(b, |x, n| Some(x >> n))),
            _ => None,
        },
    )
}

/// Returns the result of two numbers, unless their check fails.
fn exact(op: BinaryOp, ty: ElemType, a: Interval, b: Interval) -> Option<i128> {
    let (x, y) = (Scalar::int(ty, a.is_point()?)?, Scalar::int(ty, b.is_point()?)?);
    Scalar { ty, bits: scalar::binary(op, ty, x.bits, y.bits).ok()? }.as_int()
}

/// Returns the shift widths that pass the check.
fn shift_range(ty: ElemType, b: Interval) -> Option<Interval> {
    b.meet(Interval::new(0, 8 * ty.bytes() as i128 - 1))
}

fn compare(op: BinaryOp, a: Interval, b: Interval) -> Interval {
    let (always, never) = match op {
        BinaryOp::Lt => (a.hi < b.lo, a.lo >= b.hi),
        BinaryOp::Le => (a.hi <= b.lo, a.lo > b.hi),
        BinaryOp::Gt => (a.lo > b.hi, a.hi <= b.lo),
        BinaryOp::Ge => (a.lo >= b.hi, a.hi < b.lo),
        _ => {
            let same = a.is_point().is_some() && a == b;
            let distinct = a.meet(b).is_none();
            if op == BinaryOp::Eq { (same, distinct) } else { (distinct, same) }
        }
    };
    Interval::new(always as i128, !never as i128)
}

fn divide(a: Interval, mut b: Interval) -> Option<Interval> {
    // A zero divisor has ended the run.
    b.lo += (b.lo == 0) as i128;
    b.hi -= (b.hi == 0) as i128;
    if b.lo > b.hi {
        return None;
    }
    if b.contains(0) {
        let reach = a.hi.max(-a.lo);
        return Some(Interval::new(-reach, reach));
    }
    a.corners(b, |x, y| Some(x / y))
}

fn remainder(a: Interval, b: Interval) -> Option<Interval> {
    let greatest = b.hi.max(-b.lo) - 1;
    if greatest < 0 {
        return None;
    }
    if a.lo >= 0 && b.lo > 0 && a.hi < b.lo {
        return Some(a);
    }
    let lo = if a.lo < 0 { -greatest.min(-a.lo) } else { 0 };
    let hi = if a.hi > 0 { greatest.min(a.hi) } else { 0 };
    Some(Interval::new(lo, hi))
}

fn logic(op: BinaryOp, a: Interval, b: Interval) -> Option<Interval> {
    match (op, a.lo >= 0, b.lo >= 0) {
        (BinaryOp::And, true, true) => Some(Interval::new(0, a.hi.min(b.hi))),
        (BinaryOp::And, true, false) => Some(Interval::new(0, a.hi)),
        (BinaryOp::And, false, true) => Some(Interval::new(0, b.hi)),
        (_, true, true) => {
            let bits = 128 - a.hi.max(b.hi).leading_zeros();
            let lo = if op == BinaryOp::Or { a.lo.max(b.lo) } else { 0 };
            Some(Interval::new(lo, (1i128 << bits) - 1))
        }
        _ => None,
    }
}

/// Returns the interval of a value converted to another type.
pub(crate) fn convert(from: ElemType, to: ElemType, x: Interval) -> Interval {
    match (from.is_float(), to) {
        (false, ElemType::Bool) => Interval::new(!x.contains(0) as i128, (x != Interval::point(0)) as i128),
        (false, _) if !to.is_float() => typed(to, Some(x)),
        _ => Interval::of(to),
    }
}
