//! The meaning of every scalar operation, on raw bits.
//!
//! Invariants: bits above a type's width are zero in operands and results; `f16` is never computed with
//! ([`verify`](crate::verify()) refuses it); the payload and sign of a NaN result are unspecified, but [`bits`] never
//! shows them.

use girder_ir::codelet::{BinaryOp, Check, ReduceOp, UnaryOp};
use girder_ir::types::{ElemType, Scalar};

/// The canonical NaN of `f32`, as [`bits`] shows it.
pub const NAN_F32: u32 = 0x7fc0_0000;
/// The canonical NaN of `f64`, as [`bits`] shows it.
pub const NAN_F64: u64 = 0x7ff8_0000_0000_0000;

/// Returns the low bits of a word that a type uses.
#[inline]
pub fn mask(ty: ElemType, bits: u64) -> u64 {
    match ty.bytes() {
        8 => bits,
        n => bits & ((1 << (8 * n)) - 1),
    }
}

/// Returns the value of an integer or `bool`, sign-extended if the type is signed; a `u64` keeps its bits.
#[inline]
pub fn extend(ty: ElemType, bits: u64) -> i64 {
    match ty {
        ElemType::I8 => bits as i8 as i64,
        ElemType::I16 => bits as i16 as i64,
        ElemType::I32 => bits as i32 as i64,
        _ => bits as i64,
    }
}

/// Returns the least and greatest value of an integer type or `bool`; `None` for floats.
pub fn int_range(ty: ElemType) -> Option<(i128, i128)> {
    let width = ty.bytes() * 8;
    match ty {
        ElemType::Bool => Some((0, 1)),
        t if t.is_signed_int() => Some((-(1i128 << (width - 1)), (1i128 << (width - 1)) - 1)),
        t if t.is_int() => Some((0, (1i128 << width) - 1)),
        _ => None,
    }
}

#[inline]
fn f32_of(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

#[inline]
fn bits_of(x: f32) -> u64 {
    x.to_bits() as u64
}

/// Returns `op x`, where both have the type `ty`.
///
/// # Panics
/// If the operator does not take the type.
#[inline]
pub fn unary(op: UnaryOp, ty: ElemType, x: u64) -> u64 {
    match ty {
        ElemType::F32 => bits_of(unary_f32(op, f32_of(x))),
        ElemType::F64 => unary_f64(op, f64::from_bits(x)).to_bits(),
        ElemType::Bool => match op {
            UnaryOp::Not => x ^ 1,
            _ => no_operation(ty),
        },
        _ => unary_int(op, ty, x),
    }
}

fn unary_int(op: UnaryOp, ty: ElemType, x: u64) -> u64 {
    let result = match op {
        UnaryOp::Neg => x.wrapping_neg(),
        UnaryOp::Not => !x,
        UnaryOp::Abs if ty.is_signed_int() => extend(ty, x).wrapping_abs() as u64,
        UnaryOp::Abs => x,
        UnaryOp::Popcount => x.count_ones() as u64,
        UnaryOp::Clz => (x.leading_zeros() - (64 - 8 * ty.bytes())) as u64,
        _ => no_operation(ty),
    };
    mask(ty, result)
}

macro_rules! float_unary {
    ($name:ident, $float:ty) => {
        fn $name(op: UnaryOp, x: $float) -> $float {
            match op {
                UnaryOp::Neg => -x,
                UnaryOp::Abs => x.abs(),
                UnaryOp::Floor => x.floor(),
                UnaryOp::Ceil => x.ceil(),
                UnaryOp::Round => x.round_ties_even(),
                UnaryOp::Trunc => x.trunc(),
                UnaryOp::Sqrt => x.sqrt(),
                UnaryOp::Not | UnaryOp::Popcount | UnaryOp::Clz => no_operation(ElemType::F64),
            }
        }
    };
}
float_unary!(unary_f32, f32);
float_unary!(unary_f64, f64);

/// Returns `a op b`, where `ty` is the type of the operands; fails as described at the operator's [`Check`].
///
/// # Panics
/// If the operator does not take the type.
#[inline]
pub fn binary(op: BinaryOp, ty: ElemType, a: u64, b: u64) -> Result<u64, Check> {
    match ty {
        ElemType::F32 => Ok(binary_f32(op, f32_of(a), f32_of(b))),
        ElemType::F64 => Ok(binary_f64(op, f64::from_bits(a), f64::from_bits(b))),
        _ => binary_int(op, ty, a, b),
    }
}

macro_rules! float_binary {
    ($name:ident, $float:ty, $bits:expr, $min:ident) => {
        #[inline]
        fn $name(op: BinaryOp, a: $float, b: $float) -> u64 {
            let value = match op {
                BinaryOp::Add => a + b,
                BinaryOp::Sub => a - b,
                BinaryOp::Mul => a * b,
                BinaryOp::Div => a / b,
                BinaryOp::Rem => a % b,
                BinaryOp::Min => $min(a, b),
                BinaryOp::Max => -$min(-a, -b),
                BinaryOp::Eq => return (a == b) as u64,
                BinaryOp::Ne => return (a != b) as u64,
                BinaryOp::Lt => return (a < b) as u64,
                BinaryOp::Le => return (a <= b) as u64,
                BinaryOp::Gt => return (a > b) as u64,
                BinaryOp::Ge => return (a >= b) as u64,
                BinaryOp::And | BinaryOp::Or | BinaryOp::Xor | BinaryOp::Shl | BinaryOp::Shr => {
                    no_operation(ElemType::F64)
                }
            };
            $bits(value)
        }

        /// Returns NaN if either operand is NaN; -0 is less than +0.
        #[inline]
        fn $min(a: $float, b: $float) -> $float {
            if a < b || a.is_nan() {
                a
            } else if b < a || b.is_nan() || b.is_sign_negative() {
                b
            } else {
                a
            }
        }
    };
}
float_binary!(binary_f32, f32, bits_of, min_f32);
float_binary!(binary_f64, f64, f64::to_bits, min_f64);

#[inline]
fn binary_int(op: BinaryOp, ty: ElemType, a: u64, b: u64) -> Result<u64, Check> {
    use std::cmp::Ordering;
    let (x, y) = (extend(ty, a), extend(ty, b));
    let order = || if ty.is_signed_int() { x.cmp(&y) } else { a.cmp(&b) };
    Ok(match op {
        BinaryOp::Add => mask(ty, a.wrapping_add(b)),
        BinaryOp::Sub => mask(ty, a.wrapping_sub(b)),
        BinaryOp::Mul => mask(ty, a.wrapping_mul(b)),
        BinaryOp::Div | BinaryOp::Rem => return divide(op, ty, a, b),
        BinaryOp::Min => {
            if order() == Ordering::Greater {
                b
            } else {
                a
            }
        }
        BinaryOp::Max => {
            if order() == Ordering::Less {
                b
            } else {
                a
            }
        }
        BinaryOp::And => a & b,
        BinaryOp::Or => a | b,
        BinaryOp::Xor => a ^ b,
        BinaryOp::Shl | BinaryOp::Shr => return shift(op, ty, a, b),
        BinaryOp::Eq => (a == b) as u64,
        BinaryOp::Ne => (a != b) as u64,
        BinaryOp::Lt => (order() == Ordering::Less) as u64,
        BinaryOp::Le => (order() != Ordering::Greater) as u64,
        BinaryOp::Gt => (order() == Ordering::Greater) as u64,
        BinaryOp::Ge => (order() != Ordering::Less) as u64,
    })
}

fn divide(op: BinaryOp, ty: ElemType, a: u64, b: u64) -> Result<u64, Check> {
    if b == 0 {
        return Err(Check::Division);
    }
    let (x, y) = (extend(ty, a), extend(ty, b));
    let result = match (op, ty.is_signed_int()) {
        (BinaryOp::Div, true) => x.wrapping_div(y) as u64,
        (BinaryOp::Div, false) => a / b,
        (_, true) => x.wrapping_rem(y) as u64,
        (_, false) => a % b,
    };
    Ok(mask(ty, result))
}

fn shift(op: BinaryOp, ty: ElemType, a: u64, b: u64) -> Result<u64, Check> {
    // A negative width has high bits, so one comparison refuses both kinds.
    if b >= 8 * ty.bytes() as u64 {
        return Err(Check::Shift);
    }
    let result = match (op, ty.is_signed_int()) {
        (BinaryOp::Shl, _) => a << b,
        (_, true) => (extend(ty, a) >> b) as u64,
        (_, false) => a >> b,
    };
    Ok(mask(ty, result))
}

/// Returns `a * b + c`, rounded once; floats.
///
/// # Panics
/// If `ty` is not `f32` or `f64`.
#[inline]
pub fn fma(ty: ElemType, a: u64, b: u64, c: u64) -> u64 {
    match ty {
        ElemType::F32 => bits_of(f32_of(a).mul_add(f32_of(b), f32_of(c))),
        ElemType::F64 => f64::from_bits(a).mul_add(f64::from_bits(b), f64::from_bits(c)).to_bits(),
        _ => no_operation(ty),
    }
}

/// Returns whether the result of a reduction depends on the order of its elements.
pub fn is_ordered(op: ReduceOp, ty: ElemType) -> bool {
    ty.is_float() && matches!(op, ReduceOp::Sum | ReduceOp::Product)
}

/// Returns the value of `x` in another type; the rules are those of
/// [`ExprKind::Convert`](girder_ir::codelet::ExprKind::Convert).
#[inline]
pub fn convert(from: ElemType, to: ElemType, x: u64) -> u64 {
    match from {
        ElemType::F32 => convert_f64(f32_of(x) as f64, to),
        ElemType::F64 => convert_f64(f64::from_bits(x), to),
        ElemType::F16 => convert_f64(Scalar::new(from, x).as_float().unwrap_or(0.0), to),
        _ if to == ElemType::Bool => (x != 0) as u64,
        _ if from.is_signed_int() => {
            let v = extend(from, x);
            match to {
                ElemType::F32 => bits_of(v as f32),
                ElemType::F64 => (v as f64).to_bits(),
                _ => mask(to, v as u64),
            }
        }
        _ => match to {
            ElemType::F32 => bits_of(x as f32),
            ElemType::F64 => (x as f64).to_bits(),
            _ => mask(to, x),
        },
    }
}

/// Converts a float; an `f32` is passed as `f64`, which changes no value, so that nothing is rounded twice.
fn convert_f64(x: f64, to: ElemType) -> u64 {
    match to {
        ElemType::Bool => (x != 0.0) as u64,
        ElemType::U8 => x as u8 as u64,
        ElemType::I8 => x as i8 as u8 as u64,
        ElemType::U16 => x as u16 as u64,
        ElemType::I16 => x as i16 as u16 as u64,
        ElemType::U32 => x as u32 as u64,
        ElemType::I32 => x as i32 as u32 as u64,
        ElemType::U64 => x as u64,
        ElemType::I64 => x as i64 as u64,
        ElemType::F32 => bits_of(x as f32),
        ElemType::F64 => x.to_bits(),
        ElemType::F16 => no_operation(to),
    }
}

/// Returns the bits of `x` as a type of the same width; a NaN becomes the canonical one first.
#[inline]
pub fn bits(from: ElemType, to: ElemType, x: u64) -> u64 {
    debug_assert_eq!(from.bytes(), to.bytes());
    match from {
        ElemType::F32 if f32_of(x).is_nan() => NAN_F32 as u64,
        ElemType::F64 if f64::from_bits(x).is_nan() => NAN_F64,
        _ => x,
    }
}

#[cold]
fn no_operation(ty: ElemType) -> ! {
    panic!("the operation does not take {ty}; `verify` refuses such a codelet")
}

#[cfg(test)]
mod tests;
