//! Operations on one element.
//!
//! Invariant: bits of a result above the lane's width are zero.

use crate::ir::{Cond, Kind, Lane, Op, Rounding};

/// Returns the bits of a number, rounded to the nearest float of the lane.
fn float(lane: Lane, value: f64) -> u64 {
    lane.float_bits(value)
}

/// Returns `op x`.
pub(super) fn unary(lane: Lane, op: Op, x: u64) -> u64 {
    let value = match lane.kind() {
        Kind::Truth => u64::from(x == 0),
        Kind::Float => float_unary(lane, op, x),
        Kind::Signed | Kind::Unsigned => integer_unary(lane, op, x),
    };
    value & lane.ones()
}

fn float_unary(lane: Lane, op: Op, x: u64) -> u64 {
    let sign = 1u64 << (lane.bits() - 1);
    let value = lane.float_value(x);
    match op {
        Op::Neg => x ^ sign,
        Op::Abs => x & !sign,
        // The `f64` square root of an `f32` is precise enough that the second rounding has no effect.
        Op::Sqrt => float(lane, value.sqrt()),
        Op::Round(how) => float(lane, rounded(how, value)),
        op => unreachable!("{op:?} is not of floats"),
    }
}

fn rounded(how: Rounding, value: f64) -> f64 {
    match how {
        Rounding::Nearest => value.round_ties_even(),
        Rounding::Floor => value.floor(),
        Rounding::Ceil => value.ceil(),
        Rounding::Trunc => value.trunc(),
    }
}

fn integer_unary(lane: Lane, op: Op, x: u64) -> u64 {
    let value = lane.integer_value(x);
    match op {
        Op::Neg => x.wrapping_neg(),
        Op::Abs => value.unsigned_abs() as u64,
        Op::Not => !x,
        Op::CountOnes => x.count_ones().into(),
        Op::LeadingZeros => u64::from(x.leading_zeros() - (64 - lane.bits())),
        Op::Shl { by } => x << by,
        Op::Shr { by } => (value >> by) as u64,
        Op::DivideBy { divisor } => (value / by(lane, divisor)) as u64,
        Op::RemainderBy { divisor } => (value % by(lane, divisor)) as u64,
        op => unreachable!("{op:?} is not of one integer"),
    }
}

/// Returns a divisor as a value of its lane.
fn by(lane: Lane, divisor: i64) -> i128 {
    lane.integer_value(divisor as u64 & lane.ones())
}

/// Returns `a op b`.
pub(super) fn binary(lane: Lane, op: Op, a: u64, b: u64) -> u64 {
    let value = match (lane.kind(), op) {
        (_, Op::And) => a & b,
        (_, Op::Or) => a | b,
        (_, Op::Xor) => a ^ b,
        (Kind::Float, _) => float_binary(lane, op, a, b),
        _ => integer_binary(lane, op, a, b),
    };
    value & lane.ones()
}

fn float_binary(lane: Lane, op: Op, a: u64, b: u64) -> u64 {
    // One `f64` operation on `f32` operands, rounded to `f32`, is the `f32` operation: `f64` has more than twice the
    // digits.
    let (x, y) = (lane.float_value(a), lane.float_value(b));
    match op {
        Op::Add => float(lane, x + y),
        Op::Sub => float(lane, x - y),
        Op::Mul => float(lane, x * y),
        Op::Div => float(lane, x / y),
        Op::Min | Op::Max if x.is_nan() || y.is_nan() => lane.nan().unwrap_or(0),
        Op::Min if x < y || x == y && x.is_sign_negative() => a,
        Op::Max if x > y || x == y && x.is_sign_positive() => a,
        Op::Min | Op::Max => b,
        op => unreachable!("{op:?} is not of two floats"),
    }
}

fn integer_binary(lane: Lane, op: Op, a: u64, b: u64) -> u64 {
    let (x, y) = (lane.integer_value(a), lane.integer_value(b));
    match op {
        Op::Add => a.wrapping_add(b),
        Op::Sub => a.wrapping_sub(b),
        Op::Mul => a.wrapping_mul(b),
        Op::Min => x.min(y) as u64,
        Op::Max => x.max(y) as u64,
        Op::Average => ((x + y + 1) >> 1) as u64,
        op => unreachable!("{op:?} is not of two integers"),
    }
}

/// Returns `a * b + c`, rounded once.
pub(super) fn fma(lane: Lane, a: u64, b: u64, c: u64) -> u64 {
    match lane.is_long() {
        true => f64::from_bits(a).mul_add(f64::from_bits(b), f64::from_bits(c)).to_bits(),
        false => {
            let [a, b, c] = [a, b, c].map(|bits| f32::from_bits(bits as u32));
            a.mul_add(b, c).to_bits().into()
        }
    }
}

/// Returns whether a comparison holds.
pub(super) fn compare(lane: Lane, cond: Cond, a: u64, b: u64) -> bool {
    let order = match lane.is_float() {
        true => lane.float_value(a).partial_cmp(&lane.float_value(b)),
        false if lane.is_mask() => Some(a.cmp(&b)),
        false => Some(lane.integer_value(a).cmp(&lane.integer_value(b))),
    };
    match cond {
        Cond::Eq => order.is_some_and(|o| o.is_eq()),
        Cond::Ne => order.is_none_or(|o| o.is_ne()),
        Cond::Lt => order.is_some_and(|o| o.is_lt()),
        Cond::Le => order.is_some_and(|o| o.is_le()),
        Cond::Gt => order.is_some_and(|o| o.is_gt()),
        Cond::Ge => order.is_some_and(|o| o.is_ge()),
    }
}

/// Returns the value in another lane.
pub(super) fn convert(from: Lane, to: Lane, x: u64) -> u64 {
    if to.is_mask() {
        return match from.is_float() {
            true => u64::from(lane_is_not_zero(from, x)),
            false => u64::from(x != 0),
        };
    }
    let bits = match (from.is_float(), to.is_float()) {
        (true, true) => to.float_bits(from.float_value(x)),
        (true, false) => {
            let (least, greatest) = to.integer_range();
            // Rust's casts saturate, and NaN becomes 0.
            (from.float_value(x) as i128).clamp(least, greatest) as u64
        }
        (false, true) if from.is_mask() => to.float_bits(x as f64),
        (false, true) => {
            let value = from.integer_value(x);
            if to.is_long() { (value as f64).to_bits() } else { (value as f32).to_bits().into() }
        }
        (false, false) if from.is_mask() => x,
        (false, false) => from.integer_value(x) as u64,
    };
    bits & to.ones()
}

fn lane_is_not_zero(lane: Lane, x: u64) -> bool {
    lane.float_value(x) != 0.0
}
