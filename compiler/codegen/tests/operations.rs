//! Every operator and conversion, for every type, on all pairs of values at the edges of their ranges.

use crate::harness::build::Build;
use crate::harness::choices::TYPES;
use crate::harness::{Case, Spread};
use girder_ir::codelet::*;
use girder_ir::ids::ExprId;
use girder_ir::types::ElemType;
use girder_ir::types::ElemType::*;

/// Values at the edges of a type, and some between.
fn edges(ty: ElemType) -> Vec<u64> {
    let float = |v: f64| girder_codelet::scalar::convert(F64, ty, v.to_bits());
    match ty {
        Bool => vec![0, 1],
        F32 | F64 => [
            0.0,
            -0.0,
            1.0,
            -1.0,
            0.5,
            -0.5,
            1.5,
            2.5,
            -2.5,
            0.49999997,
            8388609.0,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::NAN,
            -f64::NAN,
            1e-310,
            -1e-42,
            127.5,
            128.0,
            -128.9,
            -129.0,
            255.9,
            256.0,
            65535.5,
            -32769.0,
            2147483520.0,
            2147483647.5,
            2147483648.0,
            -2147483649.0,
            4294967295.0,
            4294967296.0,
            9.223372036854775e18,
            9.3e18,
            -9.3e18,
            1.844_674_407_370_955e19,
            1.9e19,
            3.4e38,
            1e300,
            0.1,
        ]
        .map(float)
        .to_vec(),
        _ => {
            let width = 8 * ty.bytes();
            let half = 1u64 << (width - 1);
            let near =
                [0, 1, 2, 3, 7, 100, half, half - 1, half + 1, half >> 1, 0x55, 0x0100_0001, 0x20_0000_0000_0001];
            let negative = [1u64, 2, 3, 100, 129].map(u64::wrapping_neg);
            let widths = [u64::from(width) - 1, u64::from(width)];
            let all = near.into_iter().chain(negative).chain(widths);
            all.map(|v| girder_codelet::scalar::mask(ty, v)).collect()
        }
    }
}

/// Runs `op` on all combinations of edge values, one instance each, so that a failing combination can be identified.
fn check(operands: &[ElemType], result: ElemType, op: impl Fn(&mut Build, &[ExprId]) -> ExprId) {
    let mut values: Vec<Vec<u64>> = vec![Vec::new()];
    for &ty in operands {
        let longer = |v: &Vec<u64>| edges(ty).into_iter().map(|e| [&v[..], &[e]].concat()).collect::<Vec<_>>();
        values = values.iter().flat_map(longer).collect();
    }
    let mut b = Build::new();
    let fields: Vec<_> = operands.iter().map(|&ty| b.field(Dir::In, ty, &[])).collect();
    let out = b.field(Dir::Out, result, &[]);
    let args: Vec<_> = fields.iter().map(|&f| b.load(f, &[])).collect();
    let value = op(&mut b, &args);
    let body = vec![b.store(out, &[], value)];
    let codelet = b.done(body);
    let mut given = values.iter().flat_map(|v| v.iter().copied().chain([0]));
    let shapes = vec![Default::default(); operands.len() + 1];
    let mut next = || given.next().unwrap_or(0);
    let mut first = Vec::new();
    let case = Case::new(codelet, shapes, &[Spread::Contiguous; 4], values.len(), |_| {
        // `Case::new` asks once for a constant and once for the element of each field.
        first.push(());
        if first.len() % 2 == 1 { 0 } else { next() }
    });
    in_a_loop(operands, result, &values, &op);
    let mut rest = case;
    // A failure ends the run: continue after it until all instances have run.
    while !rest.offsets.is_empty() {
        let outcome = rest.check();
        let done = outcome.failure.map_or(rest.offsets.len(), |f| f.instance as usize + 1);
        rest.offsets.drain(..done);
        rest.consts.drain(..done);
    }
}

/// Runs `op` in one loop on all combinations for which it does not fail.
fn in_a_loop(
    operands: &[ElemType],
    result: ElemType,
    values: &[Vec<u64>],
    op: &impl Fn(&mut Build, &[ExprId]) -> ExprId,
) {
    let mut b = Build::new();
    let size = b.size("n");
    let dims = [DimDecl::Size(size)];
    let fields: Vec<_> = operands.iter().map(|&ty| b.field(Dir::In, ty, &dims)).collect();
    let out = b.field(Dir::Out, result, &dims);
    let (var, label) = (b.local(I64), b.label());
    let i = b.read(var);
    let args: Vec<_> = fields.iter().map(|&f| b.load(f, &[i])).collect();
    let value = op(&mut b, &args);
    let store = b.store(out, &[i], value);
    let (lo, hi, site) = (b.int(0), b.sized(size), b.site(Check::Iterations));
    let codelet = b.done(vec![Stmt::For { var, lo, hi, step: 1, label, body: vec![store], site }]);
    let columns = (0..operands.len()).flat_map(|k| [0].into_iter().chain(values.iter().map(move |v| v[k])));
    let mut given = columns.collect::<Vec<u64>>().into_iter();
    let shape: girder_codelet::sizes::Shape = [values.len() as u64].as_slice().into();
    let shapes = vec![shape; operands.len() + 1];
    Case::new(codelet, shapes, &[Spread::Contiguous; 4], 1, |_| given.next().unwrap_or(0)).check();
}

#[test]
fn unary_operators() {
    use UnaryOp::*;
    for ty in TYPES {
        let ops: &[UnaryOp] = match ty {
            Bool => &[Not],
            F32 | F64 => &[Neg, Abs, Floor, Ceil, Round, Trunc, Sqrt],
            _ => &[Neg, Not, Abs, Popcount, Clz],
        };
        for &op in ops {
            check(&[ty], ty, |b, x| b.unary(op, x[0]));
        }
    }
}

#[test]
fn arithmetic() {
    use BinaryOp::*;
    for ty in TYPES {
        let ops: &[BinaryOp] = match ty {
            Bool => &[And, Or, Xor],
            F32 | F64 => &[Add, Sub, Mul, Div, Rem, Min, Max],
            _ => &[Add, Sub, Mul, Min, Max, And, Or, Xor],
        };
        for &op in ops {
            check(&[ty, ty], ty, |b, x| b.binary(op, x[0], x[1]));
        }
    }
}

#[test]
fn operators_that_fail() {
    use BinaryOp::*;
    for ty in [I64, I32, U8, U32, U64, I8] {
        for op in [Div, Rem, Shl, Shr] {
            check(&[ty, ty], ty, |b, x| b.binary(op, x[0], x[1]));
        }
    }
}

#[test]
fn constant_divisors_and_widths() {
    use BinaryOp::*;
    for ty in [I64, I32, U8, U32, U64, I8] {
        for divisor in [0, 1, 2, 3, 10, u64::MAX] {
            for op in [Div, Rem, Shl, Shr] {
                check(&[ty], ty, |b, x| {
                    let by = b.bits(ty, divisor);
                    b.binary(op, x[0], by)
                });
            }
        }
    }
}

#[test]
fn comparisons() {
    use BinaryOp::*;
    for ty in TYPES {
        let ops: &[BinaryOp] = if ty == Bool { &[Eq, Ne] } else { &[Eq, Ne, Lt, Le, Gt, Ge] };
        for &op in ops {
            check(&[ty, ty], Bool, |b, x| b.binary(op, x[0], x[1]));
        }
    }
}

#[test]
fn conversions() {
    for from in TYPES {
        for to in TYPES {
            check(&[from], to, |b, x| b.convert(to, x[0]));
            if from.bytes() == to.bytes() && (from == Bool) == (to == Bool) {
                check(&[from], to, |b, x| b.expr(to, ExprKind::Bits { x: x[0] }));
            }
        }
    }
}

#[test]
fn three_operands() {
    check(&[F32, F32, F32], F32, |b, x| b.expr(F32, ExprKind::Fma { a: x[0], b: x[1], c: x[2] }));
    for ty in TYPES {
        check(&[Bool, ty, ty], ty, |b, x| b.expr(ty, ExprKind::Select { cond: x[0], a: x[1], b: x[2] }));
    }
}
