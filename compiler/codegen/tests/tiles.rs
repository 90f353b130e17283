//! Nests of loops that run in tiles agree with the interpreter, and nests with dependences do not run in tiles.

use crate::harness::build::Build;
use crate::harness::{Case, Spread};
use girder_ir::codelet::*;
use girder_ir::ids::{ExprId, FieldId, LocalId};
use girder_ir::types::ElemType::{self, *};

/// A body of `for i in 0..n, j in 0..m { … }`.
struct Nest {
    b: Build,
    x: FieldId,
    y: FieldId,
    at: [ExprId; 2],
    local: LocalId,
}

/// `codelet(in x: [n, m], inout y: [m + 1, n])` with a nest of loops, and a local that is set before it and stored
/// after it.
fn nest(ty: ElemType, (n, m): (u64, u64), body: impl FnOnce(&mut Nest) -> StmtBlock) -> Case {
    let mut b = Build::new();
    let (rows, columns, more) = (b.size("n"), b.size("m"), b.size("more"));
    let x = b.field(Dir::In, ty, &[DimDecl::Size(rows), DimDecl::Size(columns)]);
    let y = b.field(Dir::InOut, ty, &[DimDecl::Size(more), DimDecl::Size(rows)]);
    let (i, j, local) = (b.local(I64), b.local(I64), b.local(ty));
    let at = [b.read(i), b.read(j)];
    let mut nest = Nest { b, x, y, at, local };
    let inside = body(&mut nest);
    let mut b = nest.b;
    let (zero, none) = (b.int(0), b.bits(ty, 0));
    let (n_e, m_e) = (b.sized(rows), b.sized(columns));
    let mut looped = |var, hi, body| {
        let (label, site) = (b.label(), b.site(Check::Iterations));
        Stmt::For { var, lo: zero, hi, step: 1, label, body, site }
    };
    let inner = looped(j, m_e, inside);
    let outer = looped(i, n_e, vec![inner]);
    let codelet = b.done(vec![Stmt::Set { local, value: none }, outer]);
    let shapes = vec![[n, m].as_slice().into(), [m + 1, n].as_slice().into()];
    let mut count = 0u64;
    Case::new(codelet, shapes, &[Spread::Contiguous; 2], 1, move |ty| {
        count += 1;
        let v = (count.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 57) as f64;
        girder_codelet::scalar::convert(F64, ty, v.to_bits())
    })
}

/// `let v = x[i, j]; y[j, i] = v + v;`
fn transposed(nest: &mut Nest) -> StmtBlock {
    let Nest { b, x, y, at: [i, j], local } = nest;
    let value = b.load(*x, &[*i, *j]);
    let v = b.read(*local);
    let twice = b.binary(BinaryOp::Add, v, v);
    vec![Stmt::Set { local: *local, value }, b.store(*y, &[*j, *i], twice)]
}

#[test]
fn transposed_elements_agree() {
    for ty in [F32, F64, I32, U8] {
        for shape in [(32, 512), (37, 530), (64, 512), (129, 515)] {
            nest(ty, shape, transposed).check();
        }
    }
}

#[test]
fn transposed_elements_run_in_tiles() {
    let loops = |m| nest(F32, (64, m), transposed).clif_without_vector_kernels().matches("brif").count();
    assert!(loops(512) > loops(496));
}

#[test]
fn dependent_iterations_keep_their_order() {
    let shape = (48, 520);
    let same = |case: fn(&mut Nest) -> StmtBlock| {
        let loops = |m| nest(F32, (48, m), case).clif_without_vector_kernels().matches("brif").count();
        nest(F32, shape, case).check();
        assert_eq!(loops(512), loops(496));
    };
    // y[j, 0] = x[i, j], for all i
    same(|Nest { b, x, y, at: [i, j], .. }| {
        let value = b.load(*x, &[*i, *j]);
        let zero = b.int(0);
        vec![b.store(*y, &[*j, zero], value)]
    });
    // y[j + 1, i] = y[j, i]
    same(|Nest { b, y, at: [i, j], .. }| {
        let value = b.load(*y, &[*j, *i]);
        let one = b.int(1);
        let next = b.binary(BinaryOp::Add, *j, one);
        vec![b.store(*y, &[next, *i], value)]
    });
    // s = s + x[i, j]; y[j, i] = s;
    same(|Nest { b, x, y, at: [i, j], local }| {
        let (old, new) = (b.read(*local), b.load(*x, &[*i, *j]));
        let value = b.binary(BinaryOp::Add, old, new);
        let sum = b.read(*local);
        vec![Stmt::Set { local: *local, value }, b.store(*y, &[*j, *i], sum)]
    });
}
