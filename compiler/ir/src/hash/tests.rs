//! The reference vectors, and what counts in a codelet.

use super::*;
use crate::codelet::{BinaryOp, Codelet, Dir, Expr, ExprKind, FieldDecl, Local, Stmt};
use crate::ids::{FieldId, LocalId};
use crate::types::{ElemType, Scalar};
use cranelift_entity::{EntityRef, PrimaryMap};
use girder_source::Span;

/// Vectors of the reference implementation: key 00..0f, input 00, 01, 02, …
#[test]
fn agrees_with_the_reference() {
    let key = |from: u8| u64::from_le_bytes(std::array::from_fn(|i| from + i as u8));
    let hash = |n: u8| {
        let mut hasher = StableHasher::with_key(key(0), key(8));
        hasher.bytes(&(0..n).collect::<Vec<u8>>());
        hasher.finish().0.to_le_bytes().iter().map(|b| format!("{b:02x}")).collect::<String>()
    };
    assert_eq!(hash(0), "a3817f04ba25a8e66df67214c7550293");
    assert_eq!(hash(1), "da87c1d86b99af44347659119b22fc45");
}

#[test]
fn numbers_are_their_bytes() {
    let mut a = StableHasher::default();
    a.bytes(&[1]);
    a.u64(7);
    a.u64(8);
    let mut b = StableHasher::default();
    b.bytes(&[1, 7, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(a.finish(), b.finish());
}

/// `let a = 2; let b = a <op> a; y = b` with the locals declared in an order and names.
fn codelet(names: [&str; 2], swap: bool, op: BinaryOp) -> Codelet {
    let (a, b) = if swap { (LocalId::new(1), LocalId::new(0)) } else { (LocalId::new(0), LocalId::new(1)) };
    let ty = ElemType::F32;
    let expr = |kind| Expr { kind, ty, span: Span::NONE };
    let mut exprs = PrimaryMap::new();
    let mut add = |kind| exprs.push(expr(kind));
    if swap {
        add(ExprKind::Worker);
    }
    let two = add(ExprKind::Const(Scalar::f32(2.0)));
    let (x, y) = (add(ExprKind::Local(a)), add(ExprKind::Local(a)));
    let sum = add(ExprKind::Binary { op, a: x, b: y, site: None });
    let field = FieldDecl { name: "y".into(), dir: Dir::Out, ty, dims: Default::default(), align: 1, span: Span::NONE };
    let fields: PrimaryMap<FieldId, FieldDecl> = [field].into_iter().collect();
    Codelet {
        name: names[0].into(),
        args: vec![],
        multi: false,
        fields,
        sizes: PrimaryMap::new(),
        locals: names.iter().map(|n| Local { name: (*n).into(), ty, array: None }).collect(),
        exprs,
        sites: PrimaryMap::new(),
        body: vec![Stmt::Set { local: a, value: two }, Stmt::Set { local: b, value: sum }],
        pipelined: false,
        apart: false,
        cycles: None,
        elementary: Default::default(),
        span: Span::NONE,
    }
}

#[test]
fn names_and_the_order_of_arenas_do_not_count() {
    let hash = codelet_hash(&codelet(["a", "b"], false, BinaryOp::Add));
    assert_eq!(hash, codelet_hash(&codelet(["p", "q"], true, BinaryOp::Add)));
    assert_ne!(hash, codelet_hash(&codelet(["a", "b"], false, BinaryOp::Sub)));
    let mut longer = codelet(["a", "b"], false, BinaryOp::Add);
    longer.body.push(Stmt::Return);
    assert_ne!(hash, codelet_hash(&longer));
    longer.body.pop();
    longer.body.swap(0, 1);
    assert_ne!(hash, codelet_hash(&longer));
}
