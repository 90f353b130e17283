//! Loops whose bounds depend on constants of the vertex.

use super::*;
use BinaryOp::*;

const I64: ElemType = ElemType::I64;

/// A codelet over `out f0: i64[n]` and `const f1: i32`.
struct Ranges {
    b: Builder,
    y: FieldId,
    n: ExprId,
    constant: FieldId,
}

impl Ranges {
    fn new() -> Ranges {
        let mut b = Builder::new();
        let size = b.size("n");
        let y = b.field(Dir::Out, I64, &[DimDecl::Size(size)]);
        let constant = b.field(Dir::Const, ElemType::I32, &[]);
        let n = b.size_of(size);
        Ranges { b, y, n, constant }
    }

    fn constant(&mut self) -> ExprId {
        let value = self.b.expr(ElemType::I32, ExprKind::ConstField(self.constant));
        self.b.convert(I64, value)
    }

    fn op(&mut self, op: BinaryOp, a: ExprId, b: ExprId) -> ExprId {
        self.b.binary(op, a, b)
    }
}

/// Returns whether no check can fail, after runs with several constants.
fn all_proven(c: &Codelet, n: u64) -> bool {
    let shapes = [Shape::from_slice(&[n]), Shape::new()];
    let all: Vec<Facts> = (-9i32..9).map(|u| compare_with(c, &shapes, 1, &[0, u64::from(u as u32)])).collect();
    all.iter().all(|facts| c.sites.keys().all(|s| facts.proven.contains(s)))
}

/// `for j in max(0, s - 1 - u) / s..min(n, (max(0, n - u) + s - 1) / s) { y[j * s + u] = 0; }`, with locals for bounds.
/// `u` is a constant, and another one if it is `reassigned` between the bounds and the loop.
fn windows(stride: i64, reassigned: bool) -> Codelet {
    let mut r = Ranges::new();
    let (u, from, to, j) = (r.b.local(I64), r.b.local(I64), r.b.local(I64), r.b.local(I64));
    let constant = r.constant();
    let (zero, s, before) = (r.b.int(0), r.b.int(stride), r.b.int(stride - 1));
    let (vu, vj) = (r.b.get(u), r.b.get(j));
    let ahead = r.op(Sub, before, vu);
    let ahead = r.op(Max, zero, ahead);
    let lo = r.op(Div, ahead, s);
    let rest = r.op(Sub, r.n, vu);
    let rest = r.op(Max, zero, rest);
    let rest = r.op(Add, rest, before);
    let hi = r.op(Div, rest, s);
    let hi = r.op(Min, r.n, hi);
    let mut block = vec![
        Stmt::Set { local: u, value: constant },
        Stmt::Set { local: from, value: lo },
        Stmt::Set { local: to, value: hi },
    ];
    if reassigned {
        let value = r.op(Add, vu, before);
        block.push(Stmt::Set { local: u, value });
    }
    let (lo, hi) = (r.b.get(from), r.b.get(to));
    let at = r.op(Mul, vj, s);
    let at = r.op(Add, at, vu);
    let store = r.b.store(r.y, &[at], zero);
    block.push(r.b.for_loop(j, lo, hi, 1, vec![store]));
    r.b.finish(block)
}

#[test]
fn indices_are_inside_where_the_range_is_computed_from_what_they_need() {
    for stride in [1, 2, 3] {
        for n in [1, 5, 12] {
            assert!(all_proven(&windows(stride, false), n));
        }
    }
}

#[test]
fn a_local_that_changes_says_nothing_of_the_range_that_was_computed_from_it() {
    assert!(!all_proven(&windows(3, true), 12));
}

/// A tape of choices.
struct Tape<'a>(std::slice::Iter<'a, u32>);

impl Tape<'_> {
    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.0.next().map_or(0, |&v| v as usize % of.len())]
    }
}

fn bound(r: &mut Ranges, tape: &mut Tape<'_>, locals: &[LocalId], depth: u32) -> ExprId {
    match tape.pick(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]) {
        0 | 1 if depth > 0 => {
            let (a, b) = (bound(r, tape, locals, depth - 1), bound(r, tape, locals, depth - 1));
            r.op(tape.pick(&[Max, Min]), a, b)
        }
        2 | 3 if depth > 0 => {
            let (a, b) = (bound(r, tape, locals, depth - 1), r.b.int(tape.pick(&[1, 2, 3, -2])));
            r.op(Div, a, b)
        }
        4..=6 if depth > 0 => {
            let (a, b) = (bound(r, tape, locals, depth - 1), bound(r, tape, locals, depth - 1));
            r.op(tape.pick(&[Add, Sub, Sub]), a, b)
        }
        7 => r.b.get(tape.pick(locals)),
        8 => r.n,
        n => r.b.int(n - 6),
    }
}

fn random(tape: &[u32]) -> Codelet {
    let (mut r, mut tape) = (Ranges::new(), Tape(tape.iter()));
    let (u, from, to) = (r.b.local(I64), r.b.local(I64), r.b.local(I64));
    let (t, j) = (r.b.local(I64), r.b.local(I64));
    let constant = r.constant();
    let known = [u, t];
    let lo = bound(&mut r, &mut tape, &known, 3);
    let hi = bound(&mut r, &mut tape, &[u, t, from], 4);
    let mut block = vec![Stmt::Set { local: from, value: lo }, Stmt::Set { local: to, value: hi }];
    if tape.pick(&[0, 0, 1]) == 1 {
        let value = bound(&mut r, &mut tape, &[u, t, from, to], 2);
        block.push(Stmt::Set { local: tape.pick(&[u, from, to]), value });
    }
    let mut at = r.b.int(tape.pick(&[0, 0, 1, -1, 2]));
    for local in [j, u, t] {
        let (x, factor) = (r.b.get(local), r.b.int(tape.pick(&[1, 0, 2, -1, 3])));
        let term = r.op(Mul, x, factor);
        at = r.op(Add, at, term);
    }
    let value = r.n;
    let store = r.b.store(r.y, &[at], value);
    let (lo, hi) = (r.b.get(from), r.b.get(to));
    block.push(r.b.for_loop(j, lo, hi, tape.pick(&[1, 1, 1, 2, -1]), vec![store]));
    let (zero, three) = (r.b.int(0), r.b.int(3));
    let around = r.b.for_loop(t, zero, three, 1, block);
    r.b.finish(vec![Stmt::Set { local: u, value: constant }, around])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn facts_hold_for_any_constant(tape in prop::collection::vec(any::<u32>(), 0..60), n in 1u64..12) {
        all_proven(&random(&tape), n);
    }
}
