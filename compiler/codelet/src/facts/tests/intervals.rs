//! Intervals and affine values against the operations themselves.

use crate::facts::interval::{self, Interval};
use crate::facts::value::Value;
use crate::scalar;
use girder_ir::codelet::{BinaryOp, UnaryOp};
use girder_ir::types::{ElemType, Scalar};
use proptest::prelude::*;

const INTS: [ElemType; 5] = [ElemType::U8, ElemType::I32, ElemType::U32, ElemType::I64, ElemType::U64];

/// Returns a value near an interesting value of a type.
fn near(ty: ElemType, place: u8, offset: i8) -> i128 {
    let all = Interval::of(ty);
    let base = [0, 1, all.lo, all.hi, all.hi / 2, 64, 1 << 7][place as usize % 7];
    (base + offset as i128 % 12).clamp(all.lo, all.hi)
}

/// An interval and a value in it.
fn sample(ty: ElemType, (a, b, c): ((u8, i8), (u8, i8), u64)) -> (Interval, i128) {
    let (a, b) = (near(ty, a.0, a.1), near(ty, b.0, b.1));
    let range = Interval::new(a.min(b), a.max(b));
    let width = range.hi - range.lo;
    let v = match c % 4 {
        0 => range.lo,
        1 => range.hi,
        _ => range.lo + c as i128 % width.saturating_add(1).max(1),
    };
    (range, v)
}

fn inputs() -> impl Strategy<Value = ((u8, i8), (u8, i8), u64)> {
    (any::<(u8, i8)>(), any::<(u8, i8)>(), any::<u64>())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20000))]

    #[test]
    fn results_of_two_operands_lie_inside(ty in prop::sample::select(&INTS[..]), a in inputs(), b in inputs()) {
        use BinaryOp::*;
        let ((ra, x), (rb, y)) = (sample(ty, a), sample(ty, b));
        for op in [Add, Sub, Mul, Div, Rem, Min, Max, And, Or, Xor, Shl, Shr, Eq, Ne, Lt, Le, Gt, Ge] {
            let (sx, sy) = (Scalar::int(ty, x).unwrap(), Scalar::int(ty, y).unwrap());
            let Ok(bits) = scalar::binary(op, ty, sx.bits, sy.bits) else { continue };
            let result = if op.is_comparison() { ElemType::Bool } else { ty };
            let v = Scalar { ty: result, bits }.as_int().unwrap();
            let range = interval::binary(op, ty, ra, rb);
            prop_assert!(range.contains(v), "{x} {op:?} {y} is {v}, not in {range:?}");
            prop_assert!(range.within(Interval::of(result)));
            let points = Value::binary(op, ty, &Value::of(Interval::point(x)), &Value::of(Interval::point(y)));
            if let Some(form) = points.affine {
                prop_assert_eq!(form.is_constant().map(i128::from), Some(v));
            }
        }
    }

    #[test]
    fn results_of_one_operand_lie_inside(ty in prop::sample::select(&INTS[..]), a in inputs()) {
        use UnaryOp::*;
        let (ra, x) = sample(ty, a);
        let bits = Scalar::int(ty, x).unwrap().bits;
        for op in [Neg, Not, Abs, Popcount, Clz] {
            let v = Scalar { ty, bits: scalar::unary(op, ty, bits) }.as_int().unwrap();
            let range = interval::unary(op, ty, ra);
            prop_assert!(range.contains(v), "{op:?} {x} is {v}, not in {range:?}");
            let point = Value::unary(op, ty, &Value::of(Interval::point(x)));
            if let Some(form) = point.affine {
                prop_assert_eq!(form.is_constant().map(i128::from), Some(v));
            }
        }
        for to in INTS.into_iter().chain([ElemType::Bool]) {
            let v = Scalar { ty: to, bits: scalar::convert(ty, to, bits) }.as_int().unwrap();
            prop_assert!(interval::convert(ty, to, ra).contains(v));
        }
    }
}
