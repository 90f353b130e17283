//! Every operation against values written by hand, and integers against wide arithmetic.

use super::*;
use girder_ir::types::{ElemType::*, Scalar};
use proptest::prelude::*;

fn un32(op: UnaryOp, x: f32) -> f32 {
    f32_of(unary(op, F32, bits_of(x)))
}

fn bin32(op: BinaryOp, a: f32, b: f32) -> f32 {
    f32_of(binary(op, F32, bits_of(a), bits_of(b)).unwrap())
}

fn bin64(op: BinaryOp, a: f64, b: f64) -> f64 {
    f64::from_bits(binary(op, F64, a.to_bits(), b.to_bits()).unwrap())
}

fn int(ty: ElemType, v: i128) -> u64 {
    Scalar::int(ty, v).unwrap().bits
}

fn bin(op: BinaryOp, ty: ElemType, a: i128, b: i128) -> Result<i128, Check> {
    binary(op, ty, int(ty, a), int(ty, b)).map(|bits| Scalar { ty, bits }.as_int().unwrap())
}

fn same32(a: f32, b: f32) -> bool {
    a.to_bits() == b.to_bits()
}

#[test]
fn float_unary() {
    assert!(same32(un32(UnaryOp::Neg, 0.0), -0.0));
    assert!(same32(un32(UnaryOp::Abs, -0.0), 0.0));
    assert!(same32(un32(UnaryOp::Floor, -0.5), -1.0));
    assert!(same32(un32(UnaryOp::Ceil, -0.5), -0.0));
    assert!(same32(un32(UnaryOp::Trunc, -1.5), -1.0));
    for (x, rounded) in [(0.5, 0.0), (1.5, 2.0), (2.5, 2.0), (-0.5, -0.0), (-2.5, -2.0), (2.4999998, 2.0)] {
        assert!(same32(un32(UnaryOp::Round, x), rounded), "{x}");
    }
    assert!(same32(un32(UnaryOp::Sqrt, 2.0), std::f32::consts::SQRT_2));
    assert!(un32(UnaryOp::Sqrt, -1.0).is_nan());
    assert!(same32(un32(UnaryOp::Sqrt, -0.0), -0.0));
    assert_eq!(f64::from_bits(unary(UnaryOp::Round, F64, 3.5f64.to_bits())), 4.0);
}

#[test]
fn int_unary() {
    let un = |op, ty, v| Scalar { ty, bits: unary(op, ty, int(ty, v)) }.as_int().unwrap();
    assert_eq!(un(UnaryOp::Neg, I32, i32::MIN as i128), i32::MIN as i128);
    assert_eq!(un(UnaryOp::Neg, U8, 1), 255);
    assert_eq!(un(UnaryOp::Not, U8, 0x0f), 0xf0);
    assert_eq!(un(UnaryOp::Not, I32, 0), -1);
    assert_eq!(unary(UnaryOp::Not, Bool, 1), 0);
    assert_eq!(un(UnaryOp::Abs, I64, i64::MIN as i128), i64::MIN as i128);
    assert_eq!(un(UnaryOp::Abs, I32, -7), 7);
    assert_eq!(un(UnaryOp::Abs, U32, u32::MAX as i128), u32::MAX as i128);
    assert_eq!(un(UnaryOp::Popcount, I32, -1), 32);
    assert_eq!(un(UnaryOp::Popcount, U8, 0x81), 2);
    assert_eq!(un(UnaryOp::Clz, U8, 0), 8);
    assert_eq!(un(UnaryOp::Clz, U8, 1), 7);
    assert_eq!(un(UnaryOp::Clz, I32, -1), 0);
    assert_eq!(un(UnaryOp::Clz, I64, 0), 64);
}

#[test]
fn float_binary() {
    assert_eq!(bin32(BinaryOp::Add, 1.0, 2.0f32.powi(-24)), 1.0);
    assert!(bin32(BinaryOp::Div, 0.0, 0.0).is_nan());
    assert_eq!(bin32(BinaryOp::Div, 1.0, -0.0), f32::NEG_INFINITY);
    assert_eq!(bin32(BinaryOp::Rem, -5.5, 2.0), -1.5);
    assert!(same32(bin32(BinaryOp::Rem, -4.0, 2.0), -0.0));
    assert!(bin32(BinaryOp::Rem, 1.0, 0.0).is_nan());
    assert_eq!(bin64(BinaryOp::Rem, 1e300, 3.0), 1e300 % 3.0);
    assert_eq!(bin64(BinaryOp::Rem, 5.0, f64::INFINITY), 5.0);
}

#[test]
fn float_min_max() {
    for (a, b) in [(-0.0f32, 0.0f32), (0.0, -0.0)] {
        assert!(same32(bin32(BinaryOp::Min, a, b), -0.0));
        assert!(same32(bin32(BinaryOp::Max, a, b), 0.0));
        assert_eq!(bin64(BinaryOp::Min, a as f64, b as f64).to_bits(), (-0.0f64).to_bits());
        assert_eq!(bin64(BinaryOp::Max, a as f64, b as f64).to_bits(), 0.0f64.to_bits());
    }
    for op in [BinaryOp::Min, BinaryOp::Max] {
        assert!(bin32(op, f32::NAN, 1.0).is_nan() && bin32(op, 1.0, f32::NAN).is_nan());
        assert!(bin64(op, f64::NAN, f64::INFINITY).is_nan() && bin64(op, -f64::INFINITY, -f64::NAN).is_nan());
    }
    assert_eq!(bin32(BinaryOp::Min, 3.0, 2.0), 2.0);
    assert_eq!(bin32(BinaryOp::Max, f32::NEG_INFINITY, 2.0), 2.0);
    assert!(same32(bin32(BinaryOp::Min, -0.0, -0.0), -0.0));
    assert!(same32(bin32(BinaryOp::Max, -0.0, -0.0), -0.0));
}

#[test]
fn comparisons_with_nan() {
    let nan = bits_of(f32::NAN);
    let test = |op| binary(op, F32, nan, nan).unwrap();
    assert_eq!([BinaryOp::Eq, BinaryOp::Lt, BinaryOp::Le, BinaryOp::Gt, BinaryOp::Ge].map(test), [0; 5]);
    assert_eq!(test(BinaryOp::Ne), 1);
    assert_eq!(binary(BinaryOp::Eq, F32, bits_of(0.0), bits_of(-0.0)), Ok(1));
}

#[test]
fn int_division() {
    assert_eq!(bin(BinaryOp::Div, I32, -7, 2), Ok(-3));
    assert_eq!(bin(BinaryOp::Rem, I32, -7, 2), Ok(-1));
    assert_eq!(bin(BinaryOp::Rem, I64, 7, -2), Ok(1));
    assert_eq!(bin(BinaryOp::Div, I32, i32::MIN as i128, -1), Ok(i32::MIN as i128));
    assert_eq!(bin(BinaryOp::Rem, I32, i32::MIN as i128, -1), Ok(0));
    assert_eq!(bin(BinaryOp::Div, I64, i64::MIN as i128, -1), Ok(i64::MIN as i128));
    assert_eq!(bin(BinaryOp::Rem, I64, i64::MIN as i128, -1), Ok(0));
    assert_eq!(bin(BinaryOp::Div, U64, u64::MAX as i128, 2), Ok(i64::MAX as i128));
    assert_eq!(bin(BinaryOp::Div, U32, 1, 0), Err(Check::Division));
    assert_eq!(bin(BinaryOp::Rem, I64, 1, 0), Err(Check::Division));
}

#[test]
fn shifts() {
    assert_eq!(bin(BinaryOp::Shl, I32, 1, 31), Ok(i32::MIN as i128));
    assert_eq!(bin(BinaryOp::Shl, U8, 0xff, 4), Ok(0xf0));
    assert_eq!(bin(BinaryOp::Shr, I32, -8, 1), Ok(-4));
    assert_eq!(bin(BinaryOp::Shr, U32, 0xffff_fff8, 1), Ok(0x7fff_fffc));
    assert_eq!(bin(BinaryOp::Shr, I64, -1, 63), Ok(-1));
    assert_eq!(bin(BinaryOp::Shl, I32, 1, 32), Err(Check::Shift));
    assert_eq!(bin(BinaryOp::Shr, U8, 1, 8), Err(Check::Shift));
    assert_eq!(bin(BinaryOp::Shl, I64, 1, -1), Err(Check::Shift));
    assert_eq!(bin(BinaryOp::Shr, I32, 1, -1), Err(Check::Shift));
}

#[test]
fn fused_multiply_add_rounds_once() {
    let e = 1.0 + f32::EPSILON;
    assert_eq!(f32_of(fma(F32, bits_of(e), bits_of(e), bits_of(-1.0))), 2.0 * f32::EPSILON + f32::EPSILON.powi(2));
    let e = 1.0 + f64::EPSILON;
    let r = f64::from_bits(fma(F64, e.to_bits(), e.to_bits(), (-1.0f64).to_bits()));
    assert_eq!(r, 2.0 * f64::EPSILON + f64::EPSILON.powi(2));
}

#[test]
fn conversions() {
    let from32 = |v: f32, to| Scalar { ty: to, bits: convert(F32, to, bits_of(v)) }.as_int().unwrap();
    assert_eq!(from32(-1.9, I32), -1);
    assert_eq!(from32(1e20, I32), i32::MAX as i128);
    assert_eq!(from32(f32::NEG_INFINITY, I64), i64::MIN as i128);
    assert_eq!(from32(-1.0, U32), 0);
    assert_eq!(from32(300.0, U8), 255);
    assert_eq!(from32(f32::NAN, I64), 0);
    assert_eq!(from32(f32::NAN, Bool), 1);
    assert_eq!(from32(-0.0, Bool), 0);
    assert_eq!(convert(I32, U8, int(I32, -1)), 255);
    assert_eq!(convert(I32, I64, int(I32, -1)), u64::MAX);
    assert_eq!(convert(U32, I64, int(U32, u32::MAX as i128)), u32::MAX as u64);
    assert_eq!(convert(I64, I32, int(I64, 1 << 31)), int(I32, i32::MIN as i128));
    assert_eq!(convert(I64, Bool, int(I64, 1 << 40)), 1);
    assert_eq!(convert(Bool, F32, 1), bits_of(1.0));
    assert_eq!(f32_of(convert(I32, F32, int(I32, 16_777_217))), 16_777_216.0);
    assert_eq!(f32_of(convert(U64, F32, u64::MAX)), 18_446_744_073_709_551_616.0);
    assert_eq!(f32_of(convert(I64, F32, int(I64, 0x40_0000_4000_0001))), (0x40_0000_4000_0001i64) as f32);
    assert_eq!(f32_of(convert(F64, F32, (1.0 + 2.0f64.powi(-24)).to_bits())), 1.0);
    assert_eq!(f64::from_bits(convert(F32, F64, bits_of(0.1))), 0.1f32 as f64);
}

#[test]
fn bits_show_only_the_canonical_nan() {
    assert_eq!(bits(F32, U32, bits_of(-1.0)), 0xbf80_0000);
    assert_eq!(bits(F32, I32, 0xffff_ffff), NAN_F32 as u64);
    assert_eq!(bits(F64, U64, 0xfff0_0000_0000_0001), NAN_F64);
    assert_eq!(bits(U32, F32, 0x3f80_0000), bits_of(1.0));
    assert_eq!(bits(I64, F64, 1 << 63), 1 << 63);
}

fn int_type() -> impl Strategy<Value = ElemType> {
    prop::sample::select(vec![U8, I8, U16, I16, U32, I32, U64, I64])
}

proptest! {
    #[test]
    fn integers_wrap_like_128_bit_arithmetic(ty in int_type(), a: u64, b: u64, small in 0u64..4) {
        let b = if small == 0 { b & 3 } else { b };
        let (x, y) = (Scalar::new(ty, a), Scalar::new(ty, b));
        let (v, w) = (x.as_int().unwrap(), y.as_int().unwrap());
        let wrap = |r: i128| Ok(Scalar::new(ty, r as u64).bits);
        let run = |op| binary(op, ty, x.bits, y.bits);
        prop_assert_eq!(run(BinaryOp::Add), wrap(v + w));
        prop_assert_eq!(run(BinaryOp::Sub), wrap(v - w));
        prop_assert_eq!(run(BinaryOp::Mul), wrap(v.wrapping_mul(w)));
        if w != 0 {
            prop_assert_eq!(run(BinaryOp::Div), wrap(v / w));
            prop_assert_eq!(run(BinaryOp::Rem), wrap(v % w));
        }
        prop_assert_eq!(run(BinaryOp::Min), wrap(v.min(w)));
        prop_assert_eq!(run(BinaryOp::Max), wrap(v.max(w)));
        prop_assert_eq!(run(BinaryOp::Lt), Ok((v < w) as u64));
        prop_assert_eq!(run(BinaryOp::Ge), Ok((v >= w) as u64));
        prop_assert_eq!(unary(UnaryOp::Neg, ty, x.bits), Scalar::new(ty, (-v) as u64).bits);
        prop_assert_eq!(unary(UnaryOp::Not, ty, x.bits), Scalar::new(ty, !v as u64).bits);
    }

    #[test]
    fn results_fit_their_type(from in int_type(), to in int_type(), x: u64) {
        let r = convert(from, to, Scalar::new(from, x).bits);
        prop_assert_eq!(r, mask(to, r));
        prop_assert_eq!(r, mask(to, Scalar::new(from, x).as_int().unwrap() as u64));
    }
}

#[test]
fn halves_convert_to_other_types() {
    assert_eq!(convert(ElemType::F16, ElemType::I32, 0xc500) as u32 as i32, -5);
    assert_eq!(f32_of(convert(ElemType::F16, ElemType::F32, 0x3555)), 0.33325195);
}
