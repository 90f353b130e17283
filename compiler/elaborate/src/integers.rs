//! Arithmetic of the static 64-bit `int`: operators and functions of integers.
//!
//! Invariant: nothing wraps. Batched evaluation and evaluation one iteration at a time both compute their integers
//! here.

use girder_syntax::ast::BinaryOp;

/// The reason why an operation has no integer result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wrong {
    /// The result does not fit 64 bits.
    Overflow,
    /// The divisor is 0.
    DivisionByZero,
    /// The shift is not within `0..64`.
    Shift,
    /// The function has no integer result for these arguments.
    NotAnInteger,
}

/// The result of an operation on integers.
pub type Checked = Result<i64, Wrong>;

fn fits(value: Option<i64>) -> Checked {
    value.ok_or(Wrong::Overflow)
}

/// Divides, rounding to zero.
pub fn div(a: i64, b: i64) -> Checked {
    if b == 0 { Err(Wrong::DivisionByZero) } else { fits(a.checked_div(b)) }
}

/// Returns the remainder of [`div`], which has the sign of `a`.
pub fn rem(a: i64, b: i64) -> Checked {
    if b == 0 { Err(Wrong::DivisionByZero) } else { fits(a.checked_rem(b)) }
}

/// Divides, rounding up, whatever the signs.
pub fn div_ceil(a: i64, b: i64) -> Checked {
    let (quotient, rest) = (div(a, b)?, rem(a, b)?);
    // Rounding to zero lowers an inexact quotient only if it is positive: `rest` and `b` then have the same sign.
    Ok(quotient + i64::from(rest != 0 && (rest < 0) == (b < 0)))
}

/// Shifts left: multiplies by `2^b`.
pub fn shl(a: i64, b: i64) -> Checked {
    if !(0..64).contains(&b) {
        return Err(Wrong::Shift);
    }
    fits(Some(a << b).filter(|shifted| shifted >> b == a))
}

/// Shifts right, keeping the sign.
pub fn shr(a: i64, b: i64) -> Checked {
    if (0..64).contains(&b) { Ok(a >> b) } else { Err(Wrong::Shift) }
}

/// Raises `a` to a power that is not negative.
pub fn pow(a: i64, b: i64) -> Checked {
    match u32::try_from(b) {
        Ok(power) => fits(a.checked_pow(power)),
        Err(_) if b < 0 => Err(Wrong::NotAnInteger),
        Err(_) => fits(matches!(a, -1..=1).then(|| if b % 2 == 0 { a * a } else { a })),
    }
}

/// Returns the absolute value.
pub fn abs(a: i64) -> Checked {
    fits(a.checked_abs())
}

/// Returns the logarithm of a power of 2 to base 2.
pub fn log2(a: i64) -> Checked {
    if a > 0 && a.count_ones() == 1 { Ok(i64::from(a.ilog2())) } else { Err(Wrong::NotAnInteger) }
}

/// Computes `a op b`; `None` for an operator whose result is not an integer.
pub fn arithmetic(op: BinaryOp, a: i64, b: i64) -> Option<Checked> {
    Some(match op {
        BinaryOp::Add => fits(a.checked_add(b)),
        BinaryOp::Sub => fits(a.checked_sub(b)),
        BinaryOp::Mul => fits(a.checked_mul(b)),
        BinaryOp::Div => div(a, b),
        BinaryOp::Rem => rem(a, b),
        BinaryOp::BitAnd => Ok(a & b),
        BinaryOp::BitOr => Ok(a | b),
        BinaryOp::BitXor => Ok(a ^ b),
        BinaryOp::Shl => shl(a, b),
        BinaryOp::Shr => shr(a, b),
        _ => return None,
    })
}

/// Returns the comparison that an operator makes, if it makes one.
pub fn comparison(op: BinaryOp) -> Option<fn(&i64, &i64) -> bool> {
    Some(match op {
        BinaryOp::Eq => i64::eq,
        BinaryOp::Ne => i64::ne,
        BinaryOp::Lt => i64::lt,
        BinaryOp::Le => i64::le,
        BinaryOp::Gt => i64::gt,
        BinaryOp::Ge => i64::ge,
        _ => return None,
    })
}

/// Returns the function of one integer with this name.
pub fn of_one(name: &str) -> Option<fn(i64) -> Checked> {
    Some(match name {
        "int" | "floor" | "ceil" | "round" | "trunc" => Ok,
        "abs" => abs,
        "log2" => log2,
        _ => return None,
    })
}

/// Returns the function of two integers with this name. `min` and `max` of more arguments fold it.
pub fn of_two(name: &str) -> Option<fn(i64, i64) -> Checked> {
    Some(match name {
        "div_ceil" => div_ceil,
        "pow" => pow,
        "min" => |a, b| Ok(a.min(b)),
        "max" => |a, b| Ok(a.max(b)),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn div_ceil_rounds_up_whatever_the_signs() {
        for a in -20..=20i64 {
            for b in (-20..=20i64).filter(|&b| b != 0) {
                let exact = a as f64 / b as f64;
                assert_eq!(div_ceil(a, b), Ok(exact.ceil() as i64), "div_ceil({a}, {b})");
            }
        }
        assert_eq!(div_ceil(i64::MIN, 2), Ok(i64::MIN / 2));
        assert_eq!(div_ceil(i64::MAX, -1), Ok(-i64::MAX));
        assert_eq!(div_ceil(i64::MIN, -1), Err(Wrong::Overflow));
        assert_eq!(div_ceil(1, 0), Err(Wrong::DivisionByZero));
    }

    #[test]
    fn division_rounds_to_zero_and_the_remainder_has_the_sign_of_the_left_side() {
        for (a, b) in [(7, 2), (-7, 2), (7, -2), (-7, -2), (6, -3)] {
            let (q, r) = (div(a, b).unwrap(), rem(a, b).unwrap());
            assert_eq!(q * b + r, a);
            assert_eq!(q, (a as f64 / b as f64).trunc() as i64);
            assert!(r == 0 || (r < 0) == (a < 0));
        }
        assert_eq!(div(i64::MIN, -1), Err(Wrong::Overflow));
    }

    #[test]
    fn shifts_and_powers_are_exact_or_refused() {
        assert_eq!(shl(-1, 63), Ok(i64::MIN));
        assert_eq!(shl(1, 62), Ok(1 << 62));
        assert_eq!(shl(1, 63), Err(Wrong::Overflow));
        assert_eq!(shl(0, 64), Err(Wrong::Shift));
        assert_eq!(shr(-5, 1), Ok(-3));
        assert_eq!(pow(-2, 63), Ok(i64::MIN));
        assert_eq!(pow(2, 63), Err(Wrong::Overflow));
        assert_eq!(pow(-1, 1 << 40), Ok(1));
        assert_eq!(pow(2, -1), Err(Wrong::NotAnInteger));
        assert_eq!(log2(0), Err(Wrong::NotAnInteger));
    }
}
