//! Patterns that must be proven.

use super::*;
use BinaryOp::*;

const I64: ElemType = ElemType::I64;

fn all_proven(c: &Codelet, facts: &Facts) -> bool {
    c.sites.keys().all(|s| facts.proven.contains(s))
}

/// A codelet over `out f0: i64[n]` and its facts for a length.
fn over_vector(n: u64, body: impl FnOnce(&mut Builder, FieldId, ExprId) -> StmtBlock) -> (Codelet, Facts) {
    let mut b = Builder::new();
    let size = b.size("n");
    let y = b.field(Dir::Out, I64, &[DimDecl::Size(size)]);
    let vn = b.size_of(size);
    let body = body(&mut b, y, vn);
    let c = b.finish(body);
    let facts = compare(&c, &[Shape::from_slice(&[n])]);
    (c, facts)
}

fn cover(facts: &Facts) -> Cover {
    facts.cover[FieldId::from_u32(0)]
}

#[test]
fn a_plain_loop() {
    for (lo, step, expected) in [(0, 1, Cover::Full), (1, 1, Cover::Partial), (0, 2, Cover::Partial)] {
        let (c, facts) = over_vector(8, |b, y, n| {
            let i = b.local(I64);
            let (lo, vi) = (b.int(lo), b.get(i));
            let store = b.store(y, &[vi], n);
            vec![b.for_loop(i, lo, n, step, vec![store])]
        });
        assert!(all_proven(&c, &facts));
        assert_eq!(cover(&facts), expected);
    }
}

#[test]
fn a_loop_counts_down() {
    let (c, facts) = over_vector(7, |b, y, n| {
        let i = b.local(I64);
        let (one, minus, vi) = (b.int(1), b.int(-1), b.get(i));
        let hi = b.binary(Sub, n, one);
        let store = b.store(y, &[vi], n);
        vec![b.for_loop(i, hi, minus, -1, vec![store])]
    });
    assert!(all_proven(&c, &facts));
    assert_eq!(cover(&facts), Cover::Full);
}

#[test]
fn unrolled_loops_and_edges() {
    // y[0] = n; for i in 1..n - 1 by 2 { y[i] = n; y[i + 1] = n; } y[n - 1] = n;
    let (c, facts) = over_vector(8, |b, y, n| {
        let i = b.local(I64);
        let (zero, one, vi) = (b.int(0), b.int(1), b.get(i));
        let (last, next) = (b.binary(Sub, n, one), b.binary(Add, vi, one));
        let stores = [zero, vi, next, last].map(|at| b.store(y, &[at], n));
        let [first, a, c, end] = stores;
        vec![first, b.for_loop(i, one, last, 2, vec![a, c]), end]
    });
    assert!(all_proven(&c, &facts));
    assert_eq!(cover(&facts), Cover::Full);
}

#[test]
fn blocked_loops() {
    // for t in 0..n by 4 { for i in t..min(t + 4, n) { y[i] = n; } }
    for (n, expected) in [(16, Cover::Full), (18, Cover::Partial)] {
        let (c, facts) = over_vector(n, |b, y, n| {
            let (t, i) = (b.local(I64), b.local(I64));
            let (zero, four, vt, vi) = (b.int(0), b.int(4), b.get(t), b.get(i));
            let end = b.binary(Add, vt, four);
            let end = b.binary(Min, end, n);
            let store = b.store(y, &[vi], n);
            let inner = b.for_loop(i, vt, end, 1, vec![store]);
            vec![b.for_loop(t, zero, n, 4, vec![inner])]
        });
        assert!(all_proven(&c, &facts));
        assert_eq!(cover(&facts), expected);
    }
}

#[test]
fn flat_indices() {
    // for i in 0..4, j in 0..3 { let k = i * 3 + j; y[k] = n; }
    let (c, facts) = over_vector(12, |b, y, n| {
        let (i, j, k) = (b.local(I64), b.local(I64), b.local(I64));
        let (zero, three, four) = (b.int(0), b.int(3), b.int(4));
        let (vi, vj, vk) = (b.get(i), b.get(j), b.get(k));
        let row = b.binary(Mul, vi, three);
        let value = b.binary(Add, row, vj);
        let store = b.store(y, &[vk], n);
        let inner = b.for_loop(j, zero, three, 1, vec![Stmt::Set { local: k, value }, store]);
        vec![b.for_loop(i, zero, four, 1, vec![inner])]
    });
    assert!(all_proven(&c, &facts));
    assert_eq!(cover(&facts), Cover::Full);
}

#[test]
fn both_arms_of_an_if() {
    for both in [true, false] {
        let (_, facts) = over_vector(5, |b, y, n| {
            let i = b.local(I64);
            let (zero, vi) = (b.int(0), b.get(i));
            let cond = b.binary(Eq, vi, zero);
            let (s, t) = (b.store(y, &[vi], n), b.store(y, &[vi], zero));
            let els = if both { vec![t] } else { vec![] };
            vec![b.for_loop(i, zero, n, 1, vec![Stmt::If { cond, then: vec![s], els }])]
        });
        assert_eq!(cover(&facts) == Cover::Full, both);
    }
}

#[test]
fn leaving_early_leaves_elements() {
    for early in [Stmt::Return, Stmt::Break(Label(99))] {
        let (_, facts) = over_vector(5, |b, y, n| {
            let i = b.local(I64);
            let (zero, vi) = (b.int(0), b.get(i));
            let big = b.int(3);
            let cond = b.binary(Eq, vi, big);
            let s = b.store(y, &[vi], n);
            let leave = Stmt::If { cond, then: vec![early.clone()], els: vec![] };
            let body = b.for_loop(i, zero, n, 1, vec![s, leave]);
            vec![Stmt::Labelled { label: Label(99), body: vec![body] }]
        });
        assert_eq!(cover(&facts), Cover::Partial);
    }
}

#[test]
fn a_return_after_the_writes_leaves_nothing() {
    let (_, facts) = over_vector(1, |b, y, n| {
        let zero = b.int(0);
        let x = b.load_of(y, zero);
        let cond = b.binary(Eq, x, zero);
        let (s, t) = (b.store(y, &[zero], n), b.store(y, &[zero], zero));
        vec![Stmt::If { cond, then: vec![s, Stmt::Return], els: vec![] }, t]
    });
    assert_eq!(cover(&facts), Cover::Full);
}

#[test]
fn conditions_bound_indices() {
    // for i in 0..n { if i > 0 && y'[i - 1] == 0 { } if i + 1 < n { use i + 1 } }
    let (c, facts) = over_vector(6, |b, y, n| {
        let i = b.local(I64);
        let (zero, one, vi) = (b.int(0), b.int(1), b.get(i));
        let (left, right) = (b.binary(Sub, vi, one), b.binary(Add, vi, one));
        let positive = b.binary(Gt, vi, zero);
        let element = b.load_of(y, left);
        let is_zero = b.binary(Eq, element, zero);
        let both = b.expr(ElemType::Bool, ExprKind::AndThen { a: positive, b: is_zero });
        let inside = b.binary(Lt, right, n);
        let (s, t) = (b.store(y, &[left], n), b.store(y, &[right], n));
        let body = vec![
            Stmt::If { cond: both, then: vec![s], els: vec![] },
            Stmt::If { cond: inside, then: vec![t], els: vec![] },
        ];
        vec![b.for_loop(i, zero, n, 1, body)]
    });
    assert!(all_proven(&c, &facts));
}

#[test]
fn checks_that_may_fail_are_not_proven() {
    let (c, facts) = over_vector(6, |b, y, n| {
        let i = b.local(I64);
        let (zero, vi) = (b.int(0), b.get(i));
        let one = b.int(1);
        let right = b.binary(Add, vi, one);
        let quotient = b.binary(Div, n, vi);
        let store = b.store(y, &[right], quotient);
        vec![b.for_loop(i, zero, n, 1, vec![store])]
    });
    // Only that the loop is short is known.
    let short = |s| c.sites[s].check == Check::Iterations;
    assert!(c.sites.keys().all(|s| facts.proven.contains(s) == short(s)));
}

#[test]
fn assertions_on_sizes_are_decided() {
    let (c, facts) = over_vector(6, |b, _, n| {
        let six = b.int(6);
        let cond = b.binary(Eq, n, six);
        let site = b.site(Check::Assert);
        vec![Stmt::Assert { cond, site }]
    });
    assert!(all_proven(&c, &facts));
    assert_eq!(cover(&facts), Cover::Partial);
}

#[test]
fn an_empty_field_is_fully_written() {
    let (_, facts) = over_vector(0, |_, _, _| vec![]);
    assert_eq!(cover(&facts), Cover::Full);
}

#[test]
fn time_does_not_follow_sizes() {
    let (c, facts) = {
        let mut b = Builder::new();
        let (n, m) = (b.size("n"), b.size("m"));
        let z = b.field(Dir::Out, I64, &[DimDecl::Size(n), DimDecl::Size(m)]);
        let (i, j) = (b.local(I64), b.local(I64));
        let (zero, vi, vj, vn, vm) = (b.int(0), b.get(i), b.get(j), b.size_of(n), b.size_of(m));
        let store = b.store(z, &[vi, vj], zero);
        let inner = b.for_loop(j, zero, vm, 1, vec![store]);
        let outer = b.for_loop(i, zero, vn, 1, vec![inner]);
        let c = b.finish(vec![outer]);
        let shape = Shape::from_slice(&[1 << 30, 1 << 31]);
        let sizes = bind_sizes(&c, &[shape], &[]).unwrap();
        (c.clone(), crate::facts(&c, &sizes))
    };
    // All but that the loops are short.
    let long = |s| c.sites[s].check == Check::Iterations;
    assert!(c.sites.keys().all(|s| facts.proven.contains(s) != long(s)));
    assert_eq!(cover(&facts), Cover::Full);
}

#[test]
fn only_an_amp_that_starts_at_zero_writes_purely() {
    for first in [false, true] {
        let (facts, field) = facts_of_amp(first);
        assert_eq!(facts.cover[field], if first { Cover::Full } else { Cover::Partial });
    }
}

fn facts_of_amp(first: bool) -> (Facts, FieldId) {
    let mut b = Builder::new();
    let n = b.size("n");
    let dims = [DimDecl::Size(n), DimDecl::Size(n)];
    let fields = [Dir::InOut, Dir::In, Dir::In].map(|dir| b.field(dir, ElemType::F32, &dims));
    let (zero, vn) = (b.int(0), b.size_of(n));
    let matrix = |f| Matrix {
        base: Storage::Field(f),
        at: [zero, zero].into_iter().collect(),
        outer: vec![],
        row_dim: 0,
        col_dim: 1,
        row_step: 1,
        col_step: 1,
        rows: vn,
        cols: vn,
    };
    let [mc, ma, mb] = fields.map(matrix);
    let site = b.site(Check::Shape);
    let c = b.finish(vec![Stmt::Amp(Box::new(Amp { c: mc, a: ma, b: mb, first, site }))]);
    let shape = Shape::from_slice(&[3, 3]);
    let facts = compare(&c, &[shape.clone(), shape.clone(), shape]);
    assert!(all_proven(&c, &facts));
    (facts, fields[0])
}

#[test]
fn a_reduction_of_some_elements_has_a_position() {
    let (c, facts) = over_vector(4, |b, y, n| {
        let (i, dst) = (b.local(I64), b.local(I64));
        let (zero, vi, vd) = (b.int(0), b.get(i), b.get(dst));
        let value = b.load_of(y, vi);
        let (site, iterations) = (b.site(Check::Empty), b.site(Check::Iterations));
        let reduce = Reduce {
            dst,
            op: ReduceOp::ArgMax,
            binders: vec![Binder { var: i, lo: zero, hi: n, step: 1 }],
            filter_before: Vec::new(),
            filter: None,
            before: Vec::new(),
            value,
            factors: None,
            site,
            iterations,
        };
        let store = b.store(y, &[vd], n);
        vec![Stmt::Reduce(Box::new(reduce)), store]
    });
    assert!(all_proven(&c, &facts));
}

#[test]
fn conditions_on_quotients_bound_indices() {
    // for i in 0..3 * n { k = 2 * i - 3; if k >= 0 && k % 2 == 1 && k / 3 < n { y[k / 3] = n; } }
    let (c, facts) = over_vector(8, |b, y, n| {
        let (i, k) = (b.local(I64), b.local(I64));
        let [zero, one, two, three] = [0, 1, 2, 3].map(|n| b.int(n));
        let (vi, vk) = (b.get(i), b.get(k));
        let value = b.binary(Mul, two, vi);
        let value = b.binary(Sub, value, three);
        let set = Stmt::Set { local: k, value };
        let (above, odd, third) = (b.binary(Ge, vk, zero), b.binary(Rem, vk, two), b.binary(Div, vk, three));
        let (odd, inside) = (b.binary(Eq, odd, one), b.binary(Lt, third, n));
        let cond = b.expr(ElemType::Bool, ExprKind::AndThen { a: above, b: odd });
        let cond = b.expr(ElemType::Bool, ExprKind::AndThen { a: cond, b: inside });
        let at = b.binary(Div, vk, three);
        let store = b.store(y, &[at], n);
        let hi = b.binary(Mul, three, n);
        vec![b.for_loop(i, zero, hi, 1, vec![set, Stmt::If { cond, then: vec![store], els: vec![] }])]
    });
    assert!(all_proven(&c, &facts));
}

#[test]
fn constants_decide_shifts() {
    let (c, facts) = over_vector(4, |b, y, n| {
        let (zero, five) = (b.int(0), b.int(5));
        let shifted = b.binary(Shl, n, five);
        let divided = b.binary(Rem, shifted, n);
        let c = b.constant(Scalar::new(I64, 3));
        let sum = b.binary(Add, divided, c);
        vec![b.store(y, &[zero], sum)]
    });
    assert!(all_proven(&c, &facts));
}

#[test]
fn workers_that_share_a_loop_part_a_field() {
    let parted = |shares: bool, step: i64| {
        let mut b = Builder::new();
        b.codelet.multi = true;
        let size = b.size("n");
        let y = b.field(Dir::Out, I64, &[DimDecl::Size(size)]);
        let (n, i) = (b.size_of(size), b.local(I64));
        let (worker, workers) = (b.expr(I64, ExprKind::Worker), b.expr(I64, ExprKind::Workers));
        let part = |b: &mut Builder, of: ExprId| {
            let product = b.binary(Mul, of, n);
            b.binary(Div, product, workers)
        };
        let (lo, hi) = if shares {
            let one = b.int(1);
            let next = b.binary(Add, worker, one);
            (part(&mut b, worker), part(&mut b, next))
        } else {
            (b.int(0), n)
        };
        let vi = b.get(i);
        let store = b.store(y, &[vi], n);
        let body = b.for_loop(i, lo, hi, step, vec![store]);
        let c = b.finish(vec![body]);
        let facts = compare(&c, &[Shape::from_slice(&[8])]);
        (cover(&facts), facts.parted.contains(y))
    };
    assert_eq!(parted(true, 1), (Cover::Full, true));
    assert_eq!(parted(false, 1), (Cover::Full, false));
    assert!(!parted(true, 2).1);
}
