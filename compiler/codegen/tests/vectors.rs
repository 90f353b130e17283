//! Vectorisable loops become vectors, and agree with the interpreter.

use crate::harness::build::Build;
use crate::harness::{Case, Spread};
use girder_ir::codelet::*;
use girder_ir::ids::{ExprId, FieldId, LocalId};
use girder_ir::types::ElemType::*;

/// Small numbers of both signs, and a few special ones.
fn numbers() -> impl FnMut(girder_ir::types::ElemType) -> u64 {
    let mut n = 0i64;
    move |ty| {
        n += 1;
        let v = ((n * 37) % 101 - 50) as f64 / 8.0;
        let v = if n % 97 == 0 { f64::NAN } else { v };
        girder_codelet::scalar::convert(F64, ty, v.to_bits())
    }
}

/// `for i in 0..n { y[i] = max(alpha * x[i] + y[i], 0) }`
fn saxpy(n: u64, spread: Spread) -> Case {
    let mut b = Build::new();
    let size = b.size("n");
    let dims = [DimDecl::Size(size)];
    let alpha = b.field(Dir::In, F32, &[]);
    let (x, y) = (b.field(Dir::In, F32, &dims), b.field(Dir::InOut, F32, &dims));
    let (var, label) = (b.local(I64), b.label());
    let i = b.read(var);
    let (a, p, q) = (b.load(alpha, &[]), b.load(x, &[i]), b.load(y, &[i]));
    let zero = b.f32(0.0);
    let value = b.binary(BinaryOp::Mul, a, p);
    let value = b.binary(BinaryOp::Add, value, q);
    let value = b.binary(BinaryOp::Max, value, zero);
    let store = b.store(y, &[i], value);
    let (lo, hi) = (b.int(0), b.sized(size));
    let site = b.site(Check::Iterations);
    let codelet = b.done(vec![Stmt::For { var, lo, hi, step: 1, label, body: vec![store], site }]);
    let shape: girder_codelet::sizes::Shape = [n].as_slice().into();
    Case::new(codelet, vec![[].as_slice().into(), shape.clone(), shape], &[spread; 3], 3, numbers())
}

/// `y = sum i in 0..rows, j in 0..n { a[i, j] * x[j] }`
fn dot(rows: u64, n: u64) -> Case {
    let mut b = Build::new();
    let (r, size) = (b.size("r"), b.size("n"));
    let a = b.field(Dir::In, F32, &[DimDecl::Size(r), DimDecl::Size(size)]);
    let x = b.field(Dir::In, F32, &[DimDecl::Size(size)]);
    let y = b.field(Dir::Out, F32, &[]);
    let (i, j, dst) = (b.local(I64), b.local(I64), b.local(F32));
    let (at_i, at_j) = (b.read(i), b.read(j));
    let (p, q) = (b.load(a, &[at_i, at_j]), b.load(x, &[at_j]));
    let value = b.binary(BinaryOp::Mul, p, q);
    let (zero, rows_e, n_e) = (b.int(0), b.sized(r), b.sized(size));
    let binders = vec![Binder { var: i, lo: zero, hi: rows_e, step: 1 }, Binder { var: j, lo: zero, hi: n_e, step: 1 }];
    let codelet = reduced(b, (dst, y), ReduceOp::Sum, binders, (value, Some((p, q))));
    let shapes = vec![[rows, n].as_slice().into(), [n].as_slice().into(), [].as_slice().into()];
    Case::new(codelet, shapes, &[Spread::Contiguous; 3], 3, numbers())
}

/// `for j in 0..n { y[j] = op i in 0..m { x[i, j] * w[i] } }`: a sum adds the products by `fma`.
fn columns(op: ReduceOp, (m, n): (u64, u64), spread: Spread) -> Case {
    let mut b = Build::new();
    let (height, width) = (b.size("m"), b.size("n"));
    let x = b.field(Dir::In, F32, &[DimDecl::Size(height), DimDecl::Size(width)]);
    let w = b.field(Dir::In, F32, &[DimDecl::Size(height)]);
    let y = b.field(Dir::Out, F32, &[DimDecl::Size(width)]);
    let (i, j, dst, label) = (b.local(I64), b.local(I64), b.local(F32), b.label());
    let (at_i, at_j) = (b.read(i), b.read(j));
    let (p, q) = (b.load(x, &[at_i, at_j]), b.load(w, &[at_i]));
    let value = b.binary(BinaryOp::Mul, p, q);
    let (lo, hi, columns) = (b.int(0), b.sized(height), b.sized(width));
    let (site, iterations, over) = (b.site(Check::Empty), b.site(Check::Iterations), b.site(Check::Iterations));
    let binders = vec![Binder { var: i, lo, hi, step: 1 }];
    let factors = (op == ReduceOp::Sum).then_some((p, q));
    let (filter_before, filter, before) = (vec![], None, vec![]);
    let reduce = Reduce { dst, op, binders, filter_before, filter, before, value, factors, site, iterations };
    let shown = b.read(dst);
    let body = vec![Stmt::Reduce(Box::new(reduce)), b.store(y, &[at_j], shown)];
    let codelet = b.done(vec![Stmt::For { var: j, lo, hi: columns, step: 1, label, body, site: over }]);
    let shapes = vec![[m, n].as_slice().into(), [m].as_slice().into(), [n].as_slice().into()];
    Case::new(codelet, shapes, &[spread, Spread::Contiguous, Spread::Contiguous], 2, numbers())
}

#[test]
fn columns_of_every_shape_agree() {
    let heights = [0, 1, 63, 64, 65, 79, 80, 95, 96, 127, 128, 129, 143, 144, 200, 257];
    for m in heights {
        for n in [16, 17, 18, 19, 40] {
            columns(ReduceOp::Sum, (m, n), Spread::Contiguous).check();
            columns(ReduceOp::Max, (m, n), Spread::Contiguous).check();
        }
    }
    for n in [255, 256, 257, 259, 511, 512, 530] {
        columns(ReduceOp::Sum, (70, n), Spread::Contiguous).check();
    }
    columns(ReduceOp::Product, (200, 33), Spread::Contiguous).check();
    columns(ReduceOp::Min, (100, 4099), Spread::Contiguous).check();
    columns(ReduceOp::Sum, (100, 40), Spread::Transposed).check();
}

#[test]
fn rows_of_columns_are_read_in_order() {
    // The lanes of a tile of 256 columns.
    let lanes = "explicit_slot 16384";
    let clif = |n, spread| columns(ReduceOp::Sum, (100, n), spread).clif_without_vector_kernels();
    assert!(clif(256, Spread::Contiguous).contains(lanes), "{}", clif(256, Spread::Contiguous));
    assert!(!clif(256, Spread::Transposed).contains(lanes));
}

#[test]
fn elementwise_loops_of_every_length_agree() {
    for n in 0..40 {
        saxpy(n, Spread::Contiguous).check();
        saxpy(n, Spread::Reversed).check();
    }
}

#[test]
fn elementwise_loops_load_vectors() {
    let clif = saxpy(64, Spread::Contiguous).clif_without_vector_kernels();
    assert!(clif.contains("load.f32x4") && clif.contains("bitselect"), "{clif}");
}

#[test]
fn sums_of_every_length_agree() {
    for n in (0..70).chain([79, 80, 127, 128, 129, 200]) {
        dot(1, n).check();
    }
    for (rows, n) in [(3, 64), (2, 80), (3, 96), (2, 100)] {
        dot(rows, n).check();
    }
    for (rows, n) in [(2, 16), (3, 4), (3, 12), (5, 8), (3, 7), (2, 64), (7, 20)] {
        dot(rows, n).check();
    }
}

#[test]
fn sums_multiply_vectors() {
    for (rows, n) in [(1, 64), (4, 32), (3, 12)] {
        let clif = dot(rows, n).clif_without_vector_kernels();
        assert!(clif.contains("load.f32x4") && clif.contains("= fma"), "{clif}");
    }
}

/// `y = op … { value }`, by way of a local.
fn reduced(
    mut b: Build,
    (dst, y): (LocalId, FieldId),
    op: ReduceOp,
    binders: Vec<Binder>,
    (value, factors): (ExprId, Option<(ExprId, ExprId)>),
) -> Codelet {
    let (site, iterations) = (b.site(Check::Empty), b.site(Check::Iterations));
    let (filter_before, filter, before) = (vec![], None, vec![]);
    let reduce = Reduce { dst, op, binders, filter_before, filter, before, value, factors, site, iterations };
    let result = b.read(dst);
    let store = b.store(y, &[], result);
    b.done(vec![Stmt::Reduce(Box::new(reduce)), store])
}

/// `y = op i in 0..n { a[i] }`
fn fold(op: ReduceOp, ty: girder_ir::types::ElemType, n: u64) -> Case {
    let mut n_th = 0u64;
    fold_of(op, ty, n, move |ty| {
        n_th += 1;
        let v = (n_th.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as f64 / 4096.0 - 2048.0;
        // The elements are zeros of each sign, sometimes only one of them.
        let v = if n_th.is_multiple_of(5) {
            -0.0
        } else if n_th.is_multiple_of(7) {
            0.0
        } else {
            v
        };
        girder_codelet::scalar::convert(F64, ty, v.to_bits())
    })
}

/// As [`fold`], with a filter.
fn fold_of(
    op: ReduceOp,
    ty: girder_ir::types::ElemType,
    n: u64,
    elements: impl FnMut(girder_ir::types::ElemType) -> u64,
) -> Case {
    let mut b = Build::new();
    let size = b.size("n");
    let a = b.field(Dir::In, ty, &[DimDecl::Size(size)]);
    let y = b.field(Dir::Out, ty, &[]);
    let (i, dst) = (b.local(I64), b.local(ty));
    let at = b.read(i);
    let value = b.load(a, &[at]);
    let (lo, hi) = (b.int(0), b.sized(size));
    let (site, iterations) = (b.site(Check::Empty), b.site(Check::Iterations));
    let binders = vec![Binder { var: i, lo, hi, step: 1 }];
    let reduce = Reduce {
        dst,
        op,
        binders,
        filter_before: vec![],
        filter: None,
        before: vec![],
        value,
        factors: None,
        site,
        iterations,
    };
    let result = b.read(dst);
    let store = b.store(y, &[], result);
    let codelet = b.done(vec![Stmt::Reduce(Box::new(reduce)), store]);
    let shapes = vec![[n].as_slice().into(), [].as_slice().into()];
    Case::new(codelet, shapes, &[Spread::Contiguous; 2], 2, elements)
}

/// `y = op i in 0..min(k, rows), j in 0..n { a[i, j] }`: the number of rows is data, and may be 0.
fn rows_by_data(op: ReduceOp, ty: girder_ir::types::ElemType, (rows, n): (u64, u64), k: i64) -> Case {
    let mut b = Build::new();
    let (r, size) = (b.size("r"), b.size("n"));
    let a = b.field(Dir::In, ty, &[DimDecl::Size(r), DimDecl::Size(size)]);
    let count = b.field(Dir::In, I64, &[]);
    let y = b.field(Dir::Out, ty, &[]);
    let (i, j, dst) = (b.local(I64), b.local(I64), b.local(ty));
    let (at_i, at_j) = (b.read(i), b.read(j));
    let value = b.load(a, &[at_i, at_j]);
    let (zero, all, hi_j) = (b.int(0), b.sized(r), b.sized(size));
    let count = b.load(count, &[]);
    let hi_i = b.binary(BinaryOp::Min, count, all);
    let binders = vec![Binder { var: i, lo: zero, hi: hi_i, step: 1 }, Binder { var: j, lo: zero, hi: hi_j, step: 1 }];
    let codelet = reduced(b, (dst, y), op, binders, (value, None));
    let shapes = vec![[rows, n].as_slice().into(), [].as_slice().into(), [].as_slice().into()];
    Case::new(codelet, shapes, &[Spread::Contiguous; 3], 2, move |ty| if ty == I64 { k as u64 } else { 0 })
}

#[test]
fn reductions_over_a_run_time_number_of_rows_agree() {
    for op in [ReduceOp::Sum, ReduceOp::Product, ReduceOp::Min, ReduceOp::Max] {
        for k in [-1, 0, 1, 3, 9] {
            for shape in [(3, 64), (3, 80), (5, 7)] {
                for ty in [F32, F64, I32] {
                    rows_by_data(op, ty, shape, k).check();
                }
            }
        }
    }
}

#[test]
fn reductions_of_every_kind_agree() {
    use ReduceOp::*;
    for n in [64, 65, 79, 96, 128, 150, 257] {
        for ty in [F32, F64, I32, U32, I64, U64] {
            for op in [Sum, Product, Min, Max] {
                fold(op, ty, n).check();
            }
        }
        for op in [Any, All] {
            fold(op, Bool, n).check();
        }
    }
}

#[test]
fn the_last_element_may_be_the_least_or_the_greatest() {
    for n in 65..=81 {
        for ty in [F32, F64, I64, U64] {
            for (op, sign) in [(ReduceOp::Min, -1.0), (ReduceOp::Max, 1.0)] {
                let mut at = 0.0;
                let rising = move |ty| {
                    at += 1.0;
                    girder_codelet::scalar::convert(F64, ty, f64::to_bits(1000.0 + sign * at))
                };
                fold_of(op, ty, n, rising).check();
            }
        }
    }
}

/// `for i in 0..n { y[i] = sum k in 0..taps { x[i + k] * w[k] } }`
fn filter(n: u64, taps: u64) -> Case {
    let mut b = Build::new();
    let (size, taps_size, long) = (b.size("n"), b.size("taps"), b.size("long"));
    let x = b.field(Dir::In, F32, &[DimDecl::Size(long)]);
    let w = b.field(Dir::In, F32, &[DimDecl::Size(taps_size)]);
    let y = b.field(Dir::Out, F32, &[DimDecl::Size(size)]);
    let (var, k, dst, label) = (b.local(I64), b.local(I64), b.local(F32), b.label());
    let (i, at) = (b.read(var), b.read(k));
    let sum = b.binary(BinaryOp::Add, i, at);
    let (p, q) = (b.load(x, &[sum]), b.load(w, &[at]));
    let value = b.binary(BinaryOp::Mul, p, q);
    let (lo, hi, last) = (b.int(0), b.sized(size), b.sized(taps_size));
    let (site, iterations, loop_site) = (b.site(Check::Empty), b.site(Check::Iterations), b.site(Check::Iterations));
    let reduce = Reduce {
        dst,
        op: ReduceOp::Sum,
        binders: vec![Binder { var: k, lo, hi: last, step: 1 }],
        filter_before: vec![],
        filter: None,
        before: vec![],
        value,
        factors: Some((p, q)),
        site,
        iterations,
    };
    let result = b.read(dst);
    let body = vec![Stmt::Reduce(Box::new(reduce)), b.store(y, &[i], result)];
    let codelet = b.done(vec![Stmt::For { var, lo, hi, step: 1, label, body, site: loop_site }]);
    let shapes = vec![[n + taps].as_slice().into(), [taps].as_slice().into(), [n].as_slice().into()];
    Case::new(codelet, shapes, &[Spread::Contiguous; 3], 2, numbers())
}

#[test]
fn loops_with_short_reductions_agree() {
    for n in [16, 21, 64, 100] {
        for taps in [0, 1, 3, 5, 8, 9, 16, 17, 40] {
            filter(n, taps).check();
        }
    }
}
