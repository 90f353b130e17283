//! Each invariant, broken once.

use super::*;
use crate::build::Builder;
use girder_ir::codelet::*;
use girder_ir::types::Scalar;

const I64: ElemType = ElemType::I64;

/// Expects an error that contains `what`, or none if it is empty.
fn check(body: impl FnOnce(&mut Builder) -> StmtBlock, what: &str) {
    let mut b = Builder::new();
    let body = body(&mut b);
    match verify(&b.finish(body)) {
        Ok(()) => assert_eq!(what, "", "was accepted"),
        Err(e) => assert!(!what.is_empty() && e.contains(what), "{e}"),
    }
}

#[test]
fn operand_types() {
    let mixed = |b: &mut Builder| {
        let (x, y) = (b.f32(1.0), b.int(1));
        b.binary(BinaryOp::Add, x, y);
        vec![]
    };
    check(mixed, "is i64, not f32");
    let negated = |b: &mut Builder| {
        let x = b.constant(Scalar::bool(true));
        b.unary(UnaryOp::Neg, x);
        vec![]
    };
    check(negated, "Neg does not take bool");
    let no_site = |b: &mut Builder| {
        let a = b.int(1);
        b.expr(I64, ExprKind::Binary { op: BinaryOp::Div, a, b: a, site: None });
        vec![]
    };
    check(no_site, "Div of i64 with the site None");
    let bits = |b: &mut Builder| {
        let x = b.f32(1.0);
        b.expr(ElemType::U64, ExprKind::Bits { x });
        vec![]
    };
    check(bits, "other bits");
}

#[test]
fn fields() {
    let read = |b: &mut Builder| {
        let y = b.field(Dir::Out, I64, &[]);
        b.load(y, &[]);
        vec![]
    };
    check(read, "field0 cannot be read");
    let write = |b: &mut Builder| {
        let (x, v) = (b.field(Dir::In, I64, &[]), b.int(1));
        vec![b.store(x, &[], v)]
    };
    check(write, "field0 cannot be written");
    let rank = |b: &mut Builder| {
        let (x, v) = (b.field(Dir::Out, I64, &[DimDecl::Fixed(3)]), b.int(1));
        vec![b.store(x, &[], v)]
    };
    check(rank, "0 indices for 1 dimensions");
    let half = |b: &mut Builder| {
        b.field(Dir::In, ElemType::F16, &[]);
        vec![]
    };
    check(half, "not supported");
    let unbound = |b: &mut Builder| {
        b.size("n");
        vec![]
    };
    check(unbound, "no dimension binds size0");
    let dynamic = |b: &mut Builder| {
        let l = b.local(I64);
        let e = b.get(l);
        b.field(Dir::In, I64, &[DimDecl::Expr(e)]);
        vec![]
    };
    check(dynamic, "not known before");
}

#[test]
fn assignment_before_use() {
    // let l; if (1 == 1) { l = 1 } else { ELSE } store l
    let program = |els: fn(&mut Builder, LocalId) -> StmtBlock, loops: bool| {
        move |b: &mut Builder| {
            let (y, l, label) = (b.field(Dir::Out, I64, &[]), b.local(I64), b.label());
            let (one, vl) = (b.int(1), b.get(l));
            let cond = b.binary(BinaryOp::Eq, one, one);
            let (els, store) = (els(b, l), b.store(y, &[], vl));
            let body = vec![Stmt::If { cond, then: vec![Stmt::Set { local: l, value: one }], els }];
            let var = b.local(I64);
            let (lo, hi, site) = (one, one, b.site(Check::Iterations));
            let first = match loops {
                true => Stmt::For { var, lo, hi, step: 1, label, body, site },
                false => Stmt::Labelled { label, body },
            };
            vec![first, store]
        }
    };
    use girder_ir::ids::LocalId;
    let nothing = |_: &mut Builder, _: LocalId| vec![];
    let returns = |_: &mut Builder, _: LocalId| vec![Stmt::Return];
    let breaks = |_: &mut Builder, _: LocalId| vec![Stmt::Break(Label(1))];
    let sets = |b: &mut Builder, local: LocalId| {
        let value = b.int(2);
        vec![Stmt::Set { local, value }, Stmt::Break(Label(1))]
    };
    check(program(nothing, false), "before it is assigned");
    check(program(returns, false), "");
    check(program(breaks, false), "before it is assigned");
    check(program(sets, false), "");
    check(program(sets, true), "before it is assigned");
}

#[test]
fn labels_and_loops() {
    check(|_| vec![Stmt::Break(Label(5))], "not in scope");
    let block = vec![Stmt::Continue(Label(1))];
    check(|_| vec![Stmt::Labelled { label: Label(1), body: block }], "no loop");
    let twice = || Stmt::Labelled { label: Label(1), body: vec![] };
    check(|_| vec![twice(), twice()], "two statements");
    let assigned = |b: &mut Builder| {
        let (i, one) = (b.local(I64), b.int(1));
        let set = Stmt::Set { local: i, value: one };
        vec![b.for_loop(i, one, one, 1, vec![set])]
    };
    check(assigned, "assigned inside its loop");
    let still = |b: &mut Builder| {
        let (i, one) = (b.local(I64), b.int(1));
        vec![b.for_loop(i, one, one, 0, vec![])]
    };
    check(still, "step");
    let site = |b: &mut Builder| {
        let (cond, site) = (b.constant(Scalar::bool(true)), b.site(Check::Iterations));
        vec![Stmt::Assert { cond, site }]
    };
    check(site, "is Some(Iterations), not Assert");
}
