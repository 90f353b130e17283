//! The limits of facts: a walk that forgot one rule would call each of these cases proven or fully written.

use super::*;
use BinaryOp::*;

const I64: ElemType = ElemType::I64;

/// A codelet over `out f0: i64[n]`, its facts for a length, and how the run ends.
fn over_vector(n: u64, body: impl FnOnce(&mut Builder, FieldId, ExprId) -> StmtBlock) -> Facts {
    let mut b = Builder::new();
    let size = b.size("n");
    let y = b.field(Dir::Out, I64, &[DimDecl::Size(size)]);
    let vn = b.size_of(size);
    let body = body(&mut b, y, vn);
    let c = b.finish(body);
    compare(&c, &[Shape::from_slice(&[n])])
}

fn is_full(facts: &Facts) -> bool {
    facts.cover[FieldId::from_u32(0)] == Cover::Full
}

/// `k = 0; LOOP { y[k] = n; k = k + 1; }`, which runs over the end.
fn counter(b: &mut Builder, y: FieldId, n: ExprId, wrap: impl FnOnce(&mut Builder, StmtBlock) -> Stmt) -> StmtBlock {
    let k = b.local(I64);
    let (zero, one, vk) = (b.int(0), b.int(1), b.get(k));
    let next = b.binary(Add, vk, one);
    let store = b.store(y, &[vk], n);
    let iteration = wrap(b, vec![store, Stmt::Set { local: k, value: next }]);
    vec![Stmt::Set { local: k, value: zero }, iteration]
}

#[test]
fn variables_that_a_for_loop_assigns_are_unknown_in_it() {
    let facts = over_vector(3, |b, y, n| {
        counter(b, y, n, |b, body| {
            let (i, zero, five) = (b.local(I64), b.int(0), b.int(5));
            b.for_loop(i, zero, five, 1, body)
        })
    });
    assert!(!is_full(&facts));
}

#[test]
fn variables_that_a_while_loop_assigns_are_unknown_in_it() {
    over_vector(3, |b, y, n| {
        counter(b, y, n, |b, body| {
            let (cond, label, site) = (b.constant(Scalar::bool(true)), b.label(), b.site(Check::Iterations));
            Stmt::While { before: Vec::new(), cond, label, body, site }
        })
    });
}

#[test]
fn variables_that_a_reduction_assigns_are_unknown_in_it() {
    over_vector(2, |b, y, n| {
        let (i, k, dst) = (b.local(I64), b.local(I64), b.local(I64));
        let (zero, one, four, vk) = (b.int(0), b.int(1), b.int(4), b.get(k));
        let next = b.binary(Add, vk, one);
        let value = b.load_of(y, vk);
        let reduce = Reduce {
            dst,
            op: ReduceOp::Sum,
            binders: vec![Binder { var: i, lo: zero, hi: four, step: 1 }],
            filter_before: Vec::new(),
            filter: None,
            before: vec![Stmt::Set { local: k, value: next }],
            value,
            factors: None,
            site: b.site(Check::Empty),
            iterations: b.site(Check::Iterations),
        };
        let set = Stmt::Set { local: k, value: zero };
        let store = b.store(y, &[zero], n);
        vec![set, Stmt::Reduce(Box::new(reduce)), store]
    });
}

/// `for i in 0..n by 1 until HI { y[i] = n }` where the bound comes from an element.
#[test]
fn a_loop_of_unknown_length_fills_nothing() {
    let facts = over_vector(4, |b, y, n| {
        let (i, zero, vi) = (b.local(I64), b.int(0), b.get(i_of(0)));
        let element = b.load_of(y, zero);
        let hi = b.binary(Min, element, n);
        let store = b.store(y, &[vi], n);
        vec![b.for_loop(i, zero, hi, 1, vec![store])]
    });
    assert!(!is_full(&facts));
}

fn i_of(n: u32) -> LocalId {
    LocalId::from_u32(n)
}

#[test]
fn a_loop_that_may_not_iterate_fills_nothing() {
    // if y[0] > 0 { m = 1 } else { m = 0 } for t in 0..m { for i in 0..n { y[i] = n } }
    let facts = over_vector(4, |b, y, n| {
        let (m, t, i) = (b.local(I64), b.local(I64), b.local(I64));
        let (zero, one, vm, vi) = (b.int(0), b.int(1), b.get(m), b.get(i));
        let element = b.load_of(y, zero);
        let cond = b.binary(Gt, element, zero);
        let choose = Stmt::If {
            cond,
            then: vec![Stmt::Set { local: m, value: one }],
            els: vec![Stmt::Set { local: m, value: zero }],
        };
        let store = b.store(y, &[vi], n);
        let inner = b.for_loop(i, zero, n, 1, vec![store]);
        vec![choose, b.for_loop(t, zero, vm, 1, vec![inner])]
    });
    assert!(!is_full(&facts));
}

#[test]
fn an_iteration_that_always_leaves_is_the_only_one() {
    let facts = over_vector(4, |b, y, n| {
        let (i, zero, label) = (b.local(I64), b.int(0), b.label());
        let vi = b.get(i);
        let store = b.store(y, &[vi], n);
        let (body, site) = (vec![store, Stmt::Break(label)], b.site(Check::Iterations));
        vec![Stmt::For { var: i, lo: zero, hi: n, step: 1, label, body, site }]
    });
    assert!(!is_full(&facts));
}

#[test]
fn a_loop_without_iterations_does_not_leave() {
    // for i in n..0 { return } y[5] = n
    let facts = over_vector(4, |b, y, n| {
        let (i, zero, label, five) = (b.local(I64), b.int(0), b.label(), b.int(5));
        let store = b.store(y, &[five], n);
        let (body, site) = (vec![Stmt::Return], b.site(Check::Iterations));
        vec![Stmt::For { var: i, lo: n, hi: zero, step: 1, label, body, site }, store]
    });
    assert!(!facts.proven.contains(SiteId::from_u32(0)));
}

#[test]
fn a_diagonal_is_no_box() {
    let mut b = Builder::new();
    let n = b.size("n");
    let y = b.field(Dir::Out, I64, &[DimDecl::Size(n), DimDecl::Size(n)]);
    let i = b.local(I64);
    let (zero, vi, vn) = (b.int(0), b.get(i), b.size_of(n));
    let store = b.store(y, &[vi, vi], zero);
    let body = b.for_loop(i, zero, vn, 1, vec![store]);
    assert!(!is_full(&compare(&b.finish(vec![body]), &[Shape::from_slice(&[3, 3])])));
}

#[test]
fn steps_that_do_not_interlock_leave_gaps() {
    // for i in 0..2, j in 0..2 { y[2 * i + 3 * j] = n } writes 0 2 3 5
    let facts = over_vector(6, |b, y, n| {
        let (i, j) = (b.local(I64), b.local(I64));
        let (zero, two, three, vi, vj) = (b.int(0), b.int(2), b.int(3), b.get(i), b.get(j));
        let (x, z) = (b.binary(Mul, vi, two), b.binary(Mul, vj, three));
        let at = b.binary(Add, x, z);
        let store = b.store(y, &[at], n);
        let inner = b.for_loop(j, zero, two, 1, vec![store]);
        vec![b.for_loop(i, zero, two, 1, vec![inner])]
    });
    assert!(!is_full(&facts));
}

#[test]
fn arms_that_give_different_values_join() {
    // if y[0] > 0 { k = 0 } else { k = 1 } y[k] = n
    let facts = over_vector(1, |b, y, n| {
        let k = b.local(I64);
        let (zero, one, vk) = (b.int(0), b.int(1), b.get(k));
        let element = b.load_of(y, zero);
        let cond = b.binary(Gt, element, zero);
        let choose = Stmt::If {
            cond,
            then: vec![Stmt::Set { local: k, value: zero }],
            els: vec![Stmt::Set { local: k, value: one }],
        };
        vec![choose, b.store(y, &[vk], n)]
    });
    assert!(!is_full(&facts));
    assert!(!facts.proven.contains(SiteId::from_u32(1)));
}

#[test]
fn an_endless_codelet_leaves_nothing_unwritten() {
    let facts = over_vector(4, |b, _, _| {
        let (no, site) = (b.constant(Scalar::bool(false)), b.site(Check::Assert));
        vec![Stmt::Assert { cond: no, site }]
    });
    assert!(is_full(&facts));
}

/// A codelet with many statements in many iterations that cover no field.
#[test]
fn long_iterations_are_not_walked_one_by_one() {
    let mut b = Builder::new();
    b.codelet.multi = true;
    let size = b.size("n");
    let y = b.field(Dir::Out, I64, &[DimDecl::Size(size)]);
    let (i, zero, n) = (b.local(I64), b.int(0), b.size_of(size));
    let body: StmtBlock = (0..20_000).map(|_| b.store(y, &[zero], n)).collect();
    let body = b.for_loop(i, zero, n, 1, body);
    let c = b.finish(vec![body]);
    let sizes = bind_sizes(&c, &[Shape::from_slice(&[1000])], &[]).unwrap();
    let start = std::time::Instant::now();
    assert!(!is_full(&facts_on(&c, &sizes, 8)));
    assert!(start.elapsed().as_secs() < 10, "{:?}", start.elapsed());
}
