//! Binding and refusing shapes.

use super::*;
use crate::build::Builder;
use girder_ir::codelet::{BinaryOp, Dir};
use smallvec::smallvec;

/// `in f0: f32[n, 4], out f1: f32[n * 2 + c, n], const f2: i64`, where `c` is the `const` field.
fn codelet() -> Codelet {
    let mut b = Builder::new();
    let n = b.size("n");
    let c = FieldId::from_u32(2);
    let c = b.expr(ElemType::I64, ExprKind::ConstField(c));
    let (two, size) = (b.int(2), b.size_of(n));
    let twice = b.binary(BinaryOp::Mul, size, two);
    let sum = b.binary(BinaryOp::Add, twice, c);
    b.field(Dir::In, ElemType::F32, &[DimDecl::Size(n), DimDecl::Fixed(4)]);
    b.field(Dir::Out, ElemType::F32, &[DimDecl::Expr(sum), DimDecl::Size(n)]);
    b.field(Dir::Const, ElemType::I64, &[]);
    b.finish(Vec::new())
}

fn bind(a: Shape, b: Shape, c: Option<i64>) -> Result<Sizes, SizeMismatch> {
    let mut consts = vec![Scalar::zero(ElemType::F32); 2];
    consts.extend(c.map(|c| Scalar::new(ElemType::I64, c as u64)));
    bind_sizes(&codelet(), &[a, b, Shape::new()], &consts)
}

#[test]
fn fitting_shapes_bind() {
    let sizes = bind(smallvec![3, 4], smallvec![7, 3], Some(1)).unwrap();
    assert_eq!(sizes.sizes[SizeId::from_u32(0)], 3);
    assert_eq!(sizes.elements(FieldId::from_u32(1)), 21);
    assert_eq!(sizes.elements(FieldId::from_u32(2)), 1);
}

#[test]
fn other_shapes_are_refused() {
    let what = |r: Result<Sizes, SizeMismatch>| {
        let e = r.unwrap_err();
        (e.field.as_u32(), e.axis, e.expected, e.found, e.what)
    };
    let expr = ExprId::from_u32(4);
    let size = Expected::Size { size: SizeId::from_u32(0), field: FieldId::from_u32(0), axis: 0 };
    assert_eq!(what(bind(smallvec![3], smallvec![7, 3], None)), (0, 0, 2, 1, Expected::Rank));
    assert_eq!(what(bind(smallvec![3, 5], smallvec![7, 3], Some(1))), (0, 1, 4, 5, Expected::Fixed));
    assert_eq!(what(bind(smallvec![3, 4], smallvec![7, 2], Some(1))), (1, 1, 3, 2, size));
    assert_eq!(what(bind(smallvec![3, 4], smallvec![8, 3], Some(1))), (1, 0, 7, 8, Expected::Expr(expr)));
    assert_eq!(what(bind(smallvec![3, 4], smallvec![7, 3], None)), (1, 0, 0, 7, Expected::NoValue(expr)));
    assert_eq!(what(bind(smallvec![1 << 63, 4], smallvec![7, 3], None)), (0, 0, i64::MAX, 1 << 63, Expected::TooLong));
    let long = 1 << 62;
    assert_eq!(what(bind(smallvec![long, 4], smallvec![7, long], Some(0))).4, Expected::NoValue(expr));
}
