//! Codelets that the code generator rejects, and codelets at its limits.

use crate::harness::build::Build;
use crate::harness::{Case, Spread};
use cranelift_entity::{EntitySet, SecondaryMap};
use girder_codegen::abi::{Batch, Failure, Status};
use girder_codegen::{CodeTarget, CodegenError, compile, compile_for};
use girder_codelet::bind_sizes;
use girder_codelet::facts::Weights;
use girder_codelet::interpret::{loop_limits::TOTAL, trips};
use girder_codelet::kernel::{Addressing, KernelSpec};
use girder_ir::codelet::*;
use girder_ir::types::ElemType::*;

/// Compiles a codelet of scalars.
fn compiled(codelet: &Codelet) -> Result<(), CodegenError> {
    let shapes = vec![Default::default(); codelet.fields.len()];
    let sizes = bind_sizes(codelet, &shapes, &[]).expect("scalars have no sizes");
    let (proven, weights) = (EntitySet::new(), Weights::new());
    let spec = KernelSpec {
        codelet,
        sizes: &sizes,
        strides: SecondaryMap::new(),
        proven: &proven,
        weights: &weights,
        addressing: Addressing::Affine,
        lines: None,
        points: None,
    };
    compile(&[spec]).map(|_| ())
}

/// `out y = x + x + …`, nested to the right.
fn deep(depth: u32) -> Codelet {
    let mut b = Build::new();
    let (x, y) = (b.field(Dir::In, F32, &[]), b.field(Dir::Out, F32, &[]));
    let mut value = b.load(x, &[]);
    for _ in 0..depth {
        let left = b.load(x, &[]);
        value = b.binary(BinaryOp::Add, left, value);
    }
    let store = b.store(y, &[], value);
    b.done(vec![store])
}

#[test]
fn deep_expressions_compile_up_to_the_limit() {
    assert_eq!(compiled(&deep(500)), Ok(()));
    assert!(matches!(compiled(&deep(700)), Err(CodegenError::Depth { .. })));
    assert!(matches!(compiled(&deep(1_000_000)), Err(CodegenError::Depth { .. })));
}

#[test]
fn deep_statements_compile_up_to_the_limit() {
    let nested = |depth| {
        let mut b = Build::new();
        let x = b.field(Dir::In, I64, &[]);
        let y = b.field(Dir::Out, I64, &[]);
        let value = b.load(x, &[]);
        let mut body = vec![b.store(y, &[], value)];
        for n in 0..depth {
            let label = b.label();
            let (lo, hi, var) = (b.int(0), b.load(x, &[]), b.local(I64));
            let (cond, site) = (b.convert(Bool, lo), b.site(Check::Iterations));
            body = match n % 3 {
                0 => vec![Stmt::For { var, lo, hi, step: 1, label, body, site }],
                1 => vec![Stmt::Labelled { label, body }],
                _ => vec![Stmt::If { cond, then: vec![], els: body }],
            };
        }
        b.done(body)
    };
    assert_eq!(compiled(&nested(300)), Ok(()));
    assert!(matches!(compiled(&nested(2000)), Err(CodegenError::Depth { .. })));
}

#[test]
fn early_returns_in_a_row_are_not_deep() {
    let mut b = Build::new();
    let (x, y) = (b.field(Dir::In, F32, &[DimDecl::Fixed(20)]), b.field(Dir::Out, F32, &[DimDecl::Fixed(20)]));
    let (var, label, called) = (b.local(I64), b.label(), b.label());
    let i = b.read(var);
    let result = b.local(F32);
    let mut inner = Vec::new();
    for n in 0..3000 {
        let (v, number) = (b.load(x, &[i]), b.f32(n as f32));
        let cond = b.binary(BinaryOp::Eq, v, number);
        let then = vec![Stmt::Set { local: result, value: number }, Stmt::Break(called)];
        inner.push(Stmt::If { cond, then, els: vec![] });
    }
    let last = b.f32(-1.0);
    inner.push(Stmt::Set { local: result, value: last });
    let value = b.read(result);
    let store = b.store(y, &[i], value);
    let (lo, hi) = (b.int(0), b.int(20));
    let body = vec![Stmt::Labelled { label: called, body: inner }, store];
    let site = b.site(Check::Iterations);
    let codelet = b.done(vec![Stmt::For { var, lo, hi, step: 1, label, body, site }]);
    let shape: girder_codelet::sizes::Shape = [20].as_slice().into();
    let case = Case::new(codelet, vec![shape.clone(), shape], &[Spread::Contiguous; 2], 1, |_| 0x4100_0000);
    case.check();
}

#[test]
fn large_arrays_are_refused() {
    let with = |elements| {
        let mut b = Build::new();
        let local = b.array(F32, &[elements]);
        let value = b.f32(0.0);
        b.done(vec![Stmt::Fill { local, value }])
    };
    assert_eq!(compiled(&with(1 << 14)), Ok(()));
    assert!(matches!(compiled(&with(1 << 20)), Err(CodegenError::Arrays { .. })));
    assert!(matches!(compiled(&with(u32::MAX)), Err(CodegenError::Arrays { .. })));
}

#[test]
fn half_precision_is_refused() {
    let mut b = Build::new();
    b.field(Dir::In, F16, &[]);
    assert!(matches!(compiled(&b.done(vec![])), Err(CodegenError::Type { ty: F16, .. })));
}

#[test]
fn equal_kernels_share_code() {
    let codelet = deep(3);
    let shapes = vec![Default::default(); 2];
    let sizes = bind_sizes(&codelet, &shapes, &[]).expect("scalars have no sizes");
    let (proven, weights) = (EntitySet::new(), Weights::new());
    let spec = |addressing| KernelSpec {
        codelet: &codelet,
        sizes: &sizes,
        strides: SecondaryMap::new(),
        proven: &proven,
        weights: &weights,
        addressing,
        lines: None,
        points: None,
    };
    let specs = [spec(Addressing::Affine), spec(Addressing::Table32), spec(Addressing::Affine)];
    let target = CodeTarget::detect().expect("this host is supported");
    let kernels = compile_for(&target, &specs).expect("small kernels compile");
    assert_eq!((kernels.codes.len(), &kernels.index[..]), (2, &[0, 1, 0][..]));
    assert_eq!(kernels, compile_for(&target, &specs).expect("they still do"));
}

/// `for i in from..to by step { count += 1 }`, twice, or a sum over such ranges.
fn counting(step: i64, from_fields: bool, reduces: bool, (from, to): (i64, i64)) -> Codelet {
    let mut b = Build::new();
    let ends = [b.field(Dir::In, I64, &[]), b.field(Dir::In, I64, &[])];
    let count = b.field(Dir::InOut, I64, &[]);
    let mut body = vec![];
    for _ in 0..2 {
        let [lo, hi] = match from_fields {
            true => ends.map(|f| b.load(f, &[])),
            false => [b.int(from), b.int(to)],
        };
        let (var, label, iterations) = (b.local(I64), b.label(), b.site(Check::Iterations));
        let (one, old) = (b.int(1), b.load(count, &[]));
        let next = b.binary(BinaryOp::Add, old, one);
        let store = b.store(count, &[], next);
        if !reduces {
            body.push(Stmt::For { var, lo, hi, step, label, body: vec![store], site: iterations });
            continue;
        }
        let (dst, other, two, site) = (b.local(I64), b.local(I64), b.int(2), b.site(Check::Empty));
        let zero = b.int(0);
        let binders = vec![Binder { var, lo, hi, step }, Binder { var: other, lo: zero, hi: two, step: 1 }];
        let (op, value) = (ReduceOp::Sum, b.read(var));
        let (filter_before, filter, before, factors) = (vec![], None, vec![], None);
        let reduce = Reduce { dst, op, binders, filter_before, filter, before, value, factors, site, iterations };
        let sum = b.read(dst);
        body.extend([Stmt::Reduce(Box::new(reduce)), b.store(count, &[], sum)]);
    }
    b.done(body)
}

/// Long loops are checked against the limits before their first iteration, as in the interpreter; short ones never.
#[test]
fn counted_loops_are_limited() {
    let ends = [
        (0, 2048, 1),
        (0, 2049, 1),
        (0, 4096, 1),
        (0, 4097, 1),
        (0, 5000, 1),
        (5, -40_000, -9),
        (0, 4096 * 7 + 1, 7),
        (i64::MIN, i64::MAX, 1),
        (i64::MAX, i64::MIN, -1),
        (i64::MIN, i64::MAX, i64::MAX),
        (i64::MIN, i64::MAX, 1 << 50),
        (9, 3, 1),
    ];
    for (from, to, step) in ends {
        for (from_fields, reduces) in [(false, false), (true, false), (false, true), (true, true)] {
            for (limit, total_iterations) in [(5, 1 << 30), (5000, 1 << 30), (6000, 9000), (20_000, 20_000)] {
                let codelet = counting(step, from_fields, reduces, (from, to));
                // Each field takes a value as a constant, too.
                let mut values = [from, from, to, to, 0, 0].into_iter();
                let fill = |_| values.next().unwrap_or(0) as u64;
                let mut case = Case::new(codelet, vec![Default::default(); 3], &[Spread::Contiguous; 3], 1, fill);
                (case.iterations, case.total_iterations) = (limit, total_iterations);
                let iterations = trips(from, to, step).saturating_mul(if reduces { 2 } else { 1 });
                let long = iterations > 4096 && (iterations > limit || iterations.saturating_mul(2) > total_iterations);
                assert_eq!(case.check().failure.is_some(), long, "{from}..{to} by {step}: {limit}, {total_iterations}");
            }
        }
    }
}

/// Builds nested short loops. `shape` gives the kind of each level, from the outermost: a `for` of known length (`n`),
/// a `for` whose bounds are data (`d`), a `while` (`w`) or a reduction (`s`, innermost only).
fn nested(shape: &str, trips: i64) -> Codelet {
    let mut b = Build::new();
    let (data, count) = (b.field(Dir::In, I64, &[]), b.field(Dir::InOut, I64, &[]));
    let (one, zero, known) = (b.int(1), b.int(0), b.int(trips));
    let (old, hi) = (b.load(count, &[]), b.load(data, &[]));
    let next = b.binary(BinaryOp::Add, old, one);
    let mut body = vec![b.store(count, &[], next)];
    for level in shape.chars().rev() {
        let (var, label, site) = (b.local(I64), b.label(), b.site(Check::Iterations));
        let i = b.read(var);
        body = match level {
            'n' => vec![Stmt::For { var, lo: zero, hi: known, step: 1, label, body, site }],
            'd' => vec![Stmt::For { var, lo: zero, hi, step: 1, label, body, site }],
            's' => {
                let (dst, empty) = (b.local(I64), b.site(Check::Empty));
                let binders = vec![Binder { var, lo: zero, hi, step: 1 }];
                let (filter_before, filter, before, factors) = (vec![], None, vec![], None);
                let (op, value, site, iterations) = (ReduceOp::Sum, one, empty, site);
                let reduce =
                    Reduce { dst, op, binders, filter_before, filter, before, value, factors, site, iterations };
                let (old, sum) = (b.load(count, &[]), b.read(dst));
                let next = b.binary(BinaryOp::Add, old, sum);
                vec![Stmt::Reduce(Box::new(reduce)), b.store(count, &[], next)]
            }
            _ => {
                let (cond, next) = (b.binary(BinaryOp::Lt, i, hi), b.binary(BinaryOp::Add, i, one));
                body.push(Stmt::Set { local: var, value: next });
                let start = Stmt::Set { local: var, value: zero };
                vec![start, Stmt::While { before: vec![], cond, label, body, site }]
            }
        };
    }
    b.done(body)
}

/// Loops that are not counted alone are counted inside other loops, in compiled code as in the interpreter.
#[test]
fn short_loops_in_loops_are_limited() {
    for (shape, least) in [("nd", 0), ("nw", 0), ("ns", 0), ("ndd", 0), ("nwd", 0), ("wn", 0), ("dnw", 0), ("nn", 1)] {
        let trips = if shape.len() == 2 { 400i64 } else { 100 };
        let codelet = nested(shape, trips);
        let all = (trips as u64).pow(shape.len() as u32);
        for total in [all / 2, 4 * all] {
            let mut values = [trips, trips, 0, 0].into_iter();
            let fill = |_| values.next().unwrap_or(0) as u64;
            let mut case = Case::new(codelet.clone(), vec![Default::default(); 2], &[Spread::Contiguous; 2], 1, fill);
            (case.iterations, case.total_iterations) = (u64::MAX, total);
            let fails = case.check().failure.map(|f| f.values[1]);
            // A loop that is known to be short and small is not counted.
            let expected = (total < all && least == 0).then_some(TOTAL);
            assert_eq!(fails, expected, "{shape} within {total} iterations");
        }
    }
}

/// Loops whose lengths are known count their nest, before its first iteration, if it is large.
#[test]
fn large_nests_are_limited() {
    for shape in ["nnn", "dnn", "wnn"] {
        let codelet = nested(shape, 4000);
        let mut values = [4000, 4000, 0, 0].into_iter();
        let fill = |_| values.next().unwrap_or(0) as u64;
        let mut case = Case::new(codelet, vec![Default::default(); 2], &[Spread::Contiguous; 2], 1, fill);
        (case.iterations, case.total_iterations) = (u64::MAX, 15_000_000);
        assert_eq!(case.check().failure.map(|f| f.values[1]), Some(TOTAL), "{shape}");
    }
}

/// An endless loop stops when it is cancelled, and one with too many iterations fails.
#[test]
fn endless_loops_stop() {
    let mut b = Build::new();
    let (cond, label, site) = (b.bits(Bool, 1), b.label(), b.site(Check::Iterations));
    let codelet = b.done(vec![Stmt::While { before: vec![], cond, label, body: vec![], site }]);
    let sizes = bind_sizes(&codelet, &[], &[]).expect("there are no fields");
    let (proven, weights) = (EntitySet::new(), Weights::new());
    let spec = KernelSpec {
        codelet: &codelet,
        sizes: &sizes,
        strides: SecondaryMap::new(),
        proven: &proven,
        weights: &weights,
        addressing: Addressing::Affine,
        lines: None,
        points: None,
    };
    let code = compile(&[spec]).expect("a small kernel compiles");
    let run = |cancel: u8, iterations: u64| {
        let mut batch = Batch {
            base: std::ptr::null_mut(),
            offsets: std::ptr::null(),
            start: std::ptr::null(),
            step: std::ptr::null(),
            consts: std::ptr::null(),
            const_step: 0,
            cancel: &raw const cancel,
            imports: &raw const crate::harness::natives::IMPORTS,
            iterations,
            total_iterations: u64::MAX,
            workers: 1,
            counters: std::ptr::null_mut(),
            failure: Failure::default(),
        };
        // SAFETY: the codelet has no fields, so that no table is read.
        let status = Status::of(unsafe { code.kernel(0)(&mut batch, 3, 4) });
        (status, batch.failure)
    };
    let failure = Failure { instance: 3, site: 0, worker: 0, values: [1000, 0] };
    assert_eq!(run(0, 1000), (Status::Failed, failure));
    assert_eq!(run(1, u64::MAX).0, Status::Cancelled);
}
