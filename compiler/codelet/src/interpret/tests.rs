//! Statements, reductions and `amp` against values written by hand or computed directly.

use super::*;
use crate::build::Builder;
use crate::sizes::{Shape, bind_sizes};
use girder_ir::codelet::*;
use girder_ir::ids::ExprId;
use girder_ir::types::{ElemType, Scalar};
use girder_source::Limits;
use proptest::prelude::*;

/// One array per field.
struct Arrays(Vec<Vec<u64>>);

impl VertexMemory for Arrays {
    fn load(&mut self, field: FieldId, flat: u64) -> u64 {
        self.0[field.as_u32() as usize][flat as usize]
    }
    fn store(&mut self, field: FieldId, flat: u64, bits: u64) {
        self.0[field.as_u32() as usize][flat as usize] = bits;
    }
}

/// Runs a codelet over fields of the given shapes and contents.
fn execute(c: &Codelet, shapes: &[&[u64]], data: Vec<Vec<u64>>) -> (Result<(), Stop>, Vec<Vec<u64>>) {
    let shapes: Vec<Shape> = shapes.iter().map(|s| Shape::from_slice(s)).collect();
    let sizes = bind_sizes(c, &shapes, &[]).unwrap();
    let mut arrays = Arrays(data);
    let session = Session { limits: Limits { iterations: 1000, ..Limits::default() }, ..Session::default() };
    let result = run(c, &sizes, &mut arrays, &[], 3, &session);
    (result, arrays.0)
}

fn floats(v: &[f32]) -> Vec<u64> {
    v.iter().map(|x| x.to_bits() as u64).collect()
}

/// `out f1 = op i in 0..n where f0[i] is not 0 (if filtered) { f0[i] }`, or `f0[i] * f0[i]`.
fn reduction(op: ReduceOp, ty: ElemType, filtered: bool, squares: bool) -> Codelet {
    let mut b = Builder::new();
    let n = b.size("n");
    let x = b.field(Dir::In, ty, &[DimDecl::Size(n)]);
    let result = match op {
        ReduceOp::ArgMin | ReduceOp::ArgMax => ElemType::I64,
        _ => ty,
    };
    let y = b.field(Dir::Out, result, &[]);
    let (var, dst) = (b.local(ElemType::I64), b.local(result));
    let (lo, hi, i) = (b.int(0), b.size_of(n), b.get(var));
    let element = b.load(x, &[i]);
    let zero = b.constant(Scalar::zero(ty));
    let filter = filtered.then(|| b.binary(BinaryOp::Ne, element, zero));
    let value = if squares { b.binary(BinaryOp::Mul, element, element) } else { element };
    let reduce = Reduce {
        dst,
        op,
        binders: vec![Binder { var, lo, hi, step: 1 }],
        filter_before: Vec::new(),
        filter,
        before: Vec::new(),
        value,
        factors: squares.then_some((element, element)),
        site: b.site(Check::Empty),
        iterations: b.site(Check::Iterations),
    };
    let got = b.get(dst);
    let store = b.store(y, &[], got);
    b.finish(vec![Stmt::Reduce(Box::new(reduce)), store])
}

fn reduce_floats(op: ReduceOp, filtered: bool, squares: bool, x: &[f32]) -> Result<u64, Stop> {
    let c = reduction(op, ElemType::F32, filtered, squares);
    let (r, data) = execute(&c, &[&[x.len() as u64], &[]], vec![floats(x), vec![77]]);
    r.map(|()| data[1][0])
}

#[test]
fn empty_reductions() {
    let f = |v: f32| Ok(v.to_bits() as u64);
    assert_eq!(reduce_floats(ReduceOp::Sum, false, false, &[]), f(0.0));
    assert_eq!(reduce_floats(ReduceOp::Sum, true, false, &[0.0, 0.0]), f(0.0));
    assert_eq!(reduce_floats(ReduceOp::Sum, false, false, &[-0.0]), f(-0.0));
    assert_eq!(reduce_floats(ReduceOp::Product, false, false, &[]), f(1.0));
    assert_eq!(reduce_floats(ReduceOp::Min, false, false, &[]), f(f32::INFINITY));
    assert_eq!(reduce_floats(ReduceOp::Max, false, false, &[]), f(f32::NEG_INFINITY));
    let stop = reduce_floats(ReduceOp::ArgMin, false, false, &[]).unwrap_err();
    assert!(matches!(stop, Stop::Failed(Failure { values: [0, 0], worker: None, .. })));
}

#[test]
fn arg_reductions_take_the_first() {
    let arg = |op, x: &[f32]| reduce_floats(op, false, false, x).unwrap();
    assert_eq!(arg(ReduceOp::ArgMin, &[3.0, 1.0, 2.0, 1.0]), 1);
    assert_eq!(arg(ReduceOp::ArgMax, &[3.0, 1.0, 3.0]), 0);
    assert_eq!(arg(ReduceOp::ArgMax, &[1.0, f32::NAN, 3.0, f32::NAN]), 1);
    assert_eq!(arg(ReduceOp::ArgMin, &[0.0, -0.0]), 0);
    assert_eq!(reduce_floats(ReduceOp::ArgMin, true, false, &[0.0, 5.0, 4.0]), Ok(2));
}

#[test]
fn integer_reductions_wrap_and_bound() {
    let c = reduction(ReduceOp::Min, ElemType::I32, false, false);
    let (_, data) = execute(&c, &[&[0], &[]], vec![vec![], vec![0]]);
    assert_eq!(data[1][0], i32::MAX as u64);
    let c = reduction(ReduceOp::Max, ElemType::I32, false, false);
    let (_, data) = execute(&c, &[&[1], &[]], vec![vec![0xffff_fffe], vec![0]]);
    assert_eq!(data[1][0], 0xffff_fffe);
    let c = reduction(ReduceOp::Sum, ElemType::U8, false, false);
    let (_, data) = execute(&c, &[&[2], &[]], vec![vec![200, 100], vec![0]]);
    assert_eq!(data[1][0], 44);
    let c = reduction(ReduceOp::All, ElemType::Bool, false, false);
    let (_, data) = execute(&c, &[&[3], &[]], vec![vec![1, 1, 0], vec![1]]);
    assert_eq!(data[1][0], 0);
}

proptest! {
    #[test]
    fn sums_follow_the_lanes(x in prop::collection::vec(-1e6f32..1e6, 0..80), squares: bool, filtered: bool) {
        let x: Vec<f32> = x.into_iter().map(|v| if v as i32 % 3 == 0 { 0.0 } else { v }).collect();
        let mut lanes = [-0.0f32; 16];
        let mut any = false;
        for (p, &v) in x.iter().enumerate() {
            if filtered && v == 0.0 {
                continue;
            }
            lanes[p % 16] = if squares { v.mul_add(v, lanes[p % 16]) } else { lanes[p % 16] + v };
            any = true;
        }
        for s in [8, 4, 2, 1] {
            for l in 0..s {
                lanes[l] += lanes[l + s];
            }
        }
        let expected = if any { lanes[0] } else { 0.0 };
        prop_assert_eq!(reduce_floats(ReduceOp::Sum, filtered, squares, &x), Ok(expected.to_bits() as u64));
    }
}

#[test]
fn positions_count_over_all_binders() {
    // argmax i in 0..2, j in 3..0 by -1 { j - i } is the first element; argmin the last.
    for (op, expected) in [(ReduceOp::ArgMax, 0), (ReduceOp::ArgMin, 5)] {
        let mut b = Builder::new();
        let y = b.field(Dir::Out, ElemType::I64, &[]);
        let (i, j, dst) = (b.local(ElemType::I64), b.local(ElemType::I64), b.local(ElemType::I64));
        let (zero, two, three) = (b.int(0), b.int(2), b.int(3));
        let (vi, vj) = (b.get(i), b.get(j));
        let value = b.binary(BinaryOp::Sub, vj, vi);
        let binders =
            vec![Binder { var: i, lo: zero, hi: two, step: 1 }, Binder { var: j, lo: three, hi: zero, step: -1 }];
        let (site, iterations) = (b.site(Check::Empty), b.site(Check::Iterations));
        let (filter_before, before) = (Vec::new(), Vec::new());
        let reduce =
            Reduce { dst, op, binders, filter_before, filter: None, before, value, factors: None, site, iterations };
        let got = b.get(dst);
        let store = b.store(y, &[], got);
        let c = b.finish(vec![Stmt::Reduce(Box::new(reduce)), store]);
        assert_eq!(execute(&c, &[&[]], vec![vec![9]]), (Ok(()), vec![vec![expected]]));
    }
}

#[test]
fn loops_break_and_continue() {
    // for i in 0..10 by 3 { for j in 5..0 by -2 { if j == 3 { continue outer } f0[i] = j; if i == 6 { break outer } } }
    let mut b = Builder::new();
    let y = b.field(Dir::Out, ElemType::I64, &[DimDecl::Fixed(10)]);
    let (i, j) = (b.local(ElemType::I64), b.local(ElemType::I64));
    let (outer, inner) = (b.label(), b.label());
    let (vi, vj) = (b.get(i), b.get(j));
    let numbers = [0, 10, 5, 3, 6].map(|v| b.int(v));
    let three = b.binary(BinaryOp::Eq, vj, numbers[3]);
    let six = b.binary(BinaryOp::Eq, vi, numbers[4]);
    let store = b.store(y, &[vi], vj);
    let body = vec![
        Stmt::If { cond: three, then: vec![Stmt::Continue(outer)], els: vec![] },
        store,
        Stmt::If { cond: six, then: vec![Stmt::Break(outer)], els: vec![] },
    ];
    let site = b.site(Check::Iterations);
    let inner = Stmt::For { var: j, lo: numbers[2], hi: numbers[0], step: -2, label: inner, body, site };
    let body = vec![inner];
    let c = b.finish(vec![Stmt::For { var: i, lo: numbers[0], hi: numbers[1], step: 3, label: outer, body, site }]);
    let (r, data) = execute(&c, &[&[10]], vec![vec![0; 10]]);
    assert_eq!((r, &data[0][..]), (Ok(()), &[5, 0, 0, 5, 0, 0, 5, 0, 0, 0][..]));
}

#[test]
fn failures_name_site_and_values() {
    let mut b = Builder::new();
    let n = b.size("n");
    let x = b.field(Dir::In, ElemType::F32, &[DimDecl::Fixed(2), DimDecl::Size(n)]);
    let y = b.field(Dir::Out, ElemType::F32, &[]);
    let (one, minus) = (b.int(1), b.int(-1));
    let value = b.load(x, &[one, minus]);
    let store = b.store(y, &[], value);
    let c = b.finish(vec![store]);
    let (r, _) = execute(&c, &[&[2, 7], &[]], vec![vec![0; 14], vec![0]]);
    let site = SiteId::from_u32(0);
    assert_eq!(r, Err(Stop::Failed(Failure { site, values: [-1, 7], worker: None })));
}

#[test]
fn iterations_of_a_while_are_limited() {
    let mut b = Builder::new();
    let yes = b.constant(Scalar::bool(true));
    let (site, label) = (b.site(Check::Iterations), b.label());
    let c = b.finish(vec![Stmt::While { before: vec![], cond: yes, label, body: vec![], site }]);
    assert_eq!(execute(&c, &[], vec![]).0, Err(Stop::Failed(Failure { site, values: [1000, 0], worker: None })));
}

#[test]
fn a_raised_flag_stops_a_loop() {
    let mut b = Builder::new();
    let (lo, hi, var) = (b.int(0), b.int(10_000_000), b.local(ElemType::I64));
    let stmt = b.for_loop(var, lo, hi, 1, vec![]);
    let c = b.finish(vec![stmt]);
    let session = Session::default();
    session.cancel.cancel();
    let sizes = bind_sizes(&c, &[], &[]).unwrap();
    assert_eq!(run(&c, &sizes, &mut Arrays(vec![]), &[], 1, &session), Err(Stop::Cancelled));
}

#[test]
fn workers_run_in_turn() {
    // f0[] = f0[] * 10 + worker; then a check that worker 2 fails.
    let mut b = Builder::new();
    b.codelet.multi = true;
    let y = b.field(Dir::InOut, ElemType::I64, &[]);
    let (old, ten, worker) = (b.load(y, &[]), b.int(10), b.expr(ElemType::I64, ExprKind::Worker));
    let product = b.binary(BinaryOp::Mul, old, ten);
    let sum = b.binary(BinaryOp::Add, product, worker);
    let store = b.store(y, &[], sum);
    let two = b.int(2);
    let (cond, site) = (b.binary(BinaryOp::Ne, worker, two), b.site(Check::Assert));
    let c = b.finish(vec![store, Stmt::Assert { cond, site }]);
    let (r, data) = execute(&c, &[&[]], vec![vec![5]]);
    assert_eq!(data, [[5012]]);
    assert_eq!(r, Err(Stop::Failed(Failure { site, values: [0, 0], worker: Some(2) })));
}

/// `amp(f0, f1.transposed, a)` where `a` is a local array that holds f2, all 2 x 2 blocks or of the given rows.
fn product(rows: i64) -> Codelet {
    let mut b = Builder::new();
    let c = b.field(Dir::InOut, ElemType::F32, &[DimDecl::Fixed(3), DimDecl::Fixed(2)]);
    let a = b.field(Dir::In, ElemType::F32, &[DimDecl::Fixed(2), DimDecl::Fixed(2)]);
    let array = b.array(ElemType::F32, &[2, 2]);
    let (zero, one, two, rows) = (b.int(0), b.int(1), b.int(2), b.int(rows));
    let half = b.f32(0.5);
    let matrix = |base, at: [ExprId; 2], dims: (u8, u8), rows, cols| Matrix {
        base,
        at: at.into_iter().collect(),
        outer: vec![],
        row_dim: dims.0,
        col_dim: dims.1,
        row_step: 1,
        col_step: 1,
        rows,
        cols,
    };
    let amp = Amp {
        first: false,
        c: matrix(Storage::Field(c), [one, zero], (0, 1), rows, two),
        a: matrix(Storage::Field(a), [zero, zero], (1, 0), rows, two),
        b: matrix(Storage::Local(array), [zero, zero], (0, 1), two, two),
        site: b.site(Check::Shape),
    };
    let (value, site) = (b.f32(2.0), b.site(Check::Index));
    let store = Stmt::StoreLocal { local: array, index: [zero, one].into_iter().collect(), value, site };
    b.finish(vec![Stmt::Fill { local: array, value: half }, store, Stmt::Amp(Box::new(amp))])
}

#[test]
fn amp_multiplies_views() {
    let start = || vec![floats(&[0.0, 0.0, 1.0, 1.0, 1.0, 1.0]), floats(&[1.0, 2.0, 3.0, 4.0])];
    let (r, data) = execute(&product(2), &[&[3, 2], &[2, 2]], start());
    // a transposed is [1 3; 2 4], the array [0.5 2; 0.5 0.5], the block of c starts at row 1.
    assert_eq!((r, &data[0]), (Ok(()), &floats(&[0.0, 0.0, 3.0, 4.5, 4.0, 7.0])));
    let (r, data) = execute(&product(3), &[&[3, 2], &[2, 2]], start());
    assert_eq!(data, start());
    let site = SiteId::from_u32(0);
    assert_eq!(r, Err(Stop::Failed(Failure { site, values: [3, 3], worker: None })));
    assert_eq!(execute(&product(0), &[&[3, 2], &[2, 2]], start()), (Ok(()), start()));
    let (r, _) = execute(&product(-1), &[&[3, 2], &[2, 2]], start());
    assert_eq!(r, Err(Stop::Failed(Failure { site, values: [-1, 0], worker: None })));
}

#[test]
fn trips_do_not_overflow() {
    assert_eq!(trips(0, 10, 3), 4);
    assert_eq!(trips(10, 0, -3), 4);
    assert_eq!(trips(0, 0, 1), 0);
    assert_eq!(trips(5, 0, 1), 0);
    assert_eq!(trips(i64::MIN, i64::MAX, 1), u64::MAX);
    assert_eq!(trips(i64::MAX, i64::MIN, i64::MIN), 2);
}

/// `multi f(inout f0: i64[8])`: `f0[index(worker)] = worker`, and perhaps a read of `f0[0]` before it.
fn workers(shared: bool, reads: bool) -> Result<(), Stop> {
    let mut b = Builder::new();
    b.codelet.multi = true;
    let x = b.field(Dir::InOut, ElemType::I64, &[DimDecl::Fixed(8)]);
    let (worker, zero, one) = (b.expr(ElemType::I64, ExprKind::Worker), b.int(0), b.int(1));
    let next = b.binary(BinaryOp::Add, worker, one);
    let first = b.load(x, &[zero]);
    let value = if reads { first } else { worker };
    let store = b.store(x, &[if shared { one } else { next }], value);
    let c = b.finish(vec![store]);
    let sizes = bind_sizes(&c, &[Shape::from_slice(&[8])], &[]).unwrap();
    let mut arrays = Arrays(vec![vec![0; 8]]);
    Interpreter::new(&c).watching().run(&sizes, &mut arrays, &[], 3, &Session::default())
}

#[test]
fn workers_that_race_are_found() {
    assert_eq!(workers(false, false), Ok(()));
    assert_eq!(workers(false, true), Ok(()));
    let Err(Stop::Raced(race)) = workers(true, false) else { panic!("all write f0[1]") };
    assert_eq!((race.element, race.first.worker, race.second.worker), (1, 0, 1));
    assert!(race.first.written && race.second.written);
}

#[test]
fn a_worker_that_reads_what_another_writes_is_found() {
    // f0[worker] = f0[1]: worker 0 reads what worker 1 writes.
    let mut b = Builder::new();
    b.codelet.multi = true;
    let x = b.field(Dir::InOut, ElemType::I64, &[DimDecl::Fixed(8)]);
    let (worker, one) = (b.expr(ElemType::I64, ExprKind::Worker), b.int(1));
    let value = b.load(x, &[one]);
    let store = b.store(x, &[worker], value);
    let c = b.finish(vec![store]);
    let sizes = bind_sizes(&c, &[Shape::from_slice(&[8])], &[]).unwrap();
    let mut arrays = Arrays(vec![vec![0; 8]]);
    let result = Interpreter::new(&c).watching().run(&sizes, &mut arrays, &[], 3, &Session::default());
    let Err(Stop::Raced(race)) = result else { panic!("{result:?}") };
    assert_eq!((race.first.worker, race.first.written, race.second.worker, race.second.written), (0, false, 1, true));
}
