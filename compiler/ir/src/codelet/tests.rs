//! Tests of the queries of expressions and statements.

use super::*;
use crate::types::Scalar;
use girder_source::Span;
use smallvec::smallvec;

fn e(n: u32) -> ExprId {
    ExprId::from_u32(n)
}

/// Returns each form of expression, with the operands 0, 1, … in the order of evaluation.
fn forms() -> Vec<(ExprKind, u32)> {
    let (a, b, c) = (e(0), e(1), e(2));
    let (field, local, site) = (FieldId::from_u32(0), LocalId::from_u32(0), SiteId::from_u32(0));
    vec![
        (ExprKind::Const(Scalar::zero(ElemType::I64)), 0),
        (ExprKind::Local(local), 0),
        (ExprKind::ConstField(field), 0),
        (ExprKind::Size(SizeId::from_u32(0)), 0),
        (ExprKind::Worker, 0),
        (ExprKind::Workers, 0),
        (ExprKind::Load { field, index: smallvec![], site }, 0),
        (ExprKind::Load { field, index: (0..5).map(e).collect(), site }, 5),
        (ExprKind::LoadLocal { local, index: smallvec![a, b], site }, 2),
        (ExprKind::Unary { op: UnaryOp::Neg, x: a }, 1),
        (ExprKind::Binary { op: BinaryOp::Sub, a, b, site: None }, 2),
        (ExprKind::AndThen { a, b }, 2),
        (ExprKind::OrElse { a, b }, 2),
        (ExprKind::Select { cond: a, a: b, b: c }, 3),
        (ExprKind::Fma { a, b, c }, 3),
        (ExprKind::Convert { x: a }, 1),
        (ExprKind::Bits { x: a }, 1),
    ]
}

#[test]
fn operands_are_in_the_order_of_evaluation_and_mapped_in_it() {
    for (mut kind, count) in forms() {
        let expected: Vec<ExprId> = (0..count).map(e).collect();
        assert_eq!(*kind.operands(), expected, "{kind:?}");
        let mut seen = Vec::new();
        kind.map_operands(|x| {
            seen.push(x);
            e(x.as_u32() + 10)
        });
        assert_eq!(seen, expected, "{kind:?}");
        let moved: Vec<ExprId> = (10..10 + count).map(e).collect();
        assert_eq!(*kind.operands(), moved, "{kind:?}");
    }
}

#[test]
fn a_reduction_names_all_that_it_evaluates_and_assigns() {
    let (local, site) = (LocalId::from_u32, SiteId::from_u32(0));
    let binder = |n: u32| Binder { var: local(n), lo: e(2 * n), hi: e(2 * n + 1), step: 1 };
    let mut stmt = Stmt::Reduce(Box::new(Reduce {
        dst: local(9),
        op: ReduceOp::Sum,
        binders: vec![binder(0), binder(1)],
        filter_before: vec![Stmt::Return],
        filter: Some(e(4)),
        before: vec![Stmt::Return, Stmt::Return],
        value: e(5),
        factors: Some((e(6), e(7))),
        site,
        iterations: site,
    }));
    let (mut exprs, mut assigned) = (Vec::new(), Vec::new());
    stmt.for_each_expr(|x| exprs.push(x));
    stmt.for_each_assigned(|l| assigned.push(l));
    assert_eq!(exprs, (0..8).map(e).collect::<Vec<_>>());
    assert_eq!(assigned, [local(9), local(0), local(1)]);
    assert_eq!(stmt.blocks().map(Vec::len).collect::<Vec<_>>(), [1, 2]);
    stmt.blocks_mut().for_each(Vec::clear);
    assert_eq!(stmt.blocks().map(Vec::len).sum::<usize>(), 0);
}

#[test]
fn edges_are_all_fields_but_constants() {
    let mut codelet = Codelet::empty("c", Span::NONE);
    for dir in [Dir::In, Dir::Const, Dir::InOut] {
        let (name, span) = ("f".into(), Span::NONE);
        codelet.fields.push(FieldDecl { name, dir, ty: ElemType::F32, dims: smallvec![], align: 1, span });
    }
    assert_eq!(codelet.edges().map(|(id, _)| id.as_u32()).collect::<Vec<_>>(), [0, 2]);
}
