//! Generic codelets and the inference of their arguments.

use super::*;
use GenericArg::{Int, Type};

const DOT: &str = "codelet dot<T: float, k: int>(in a: T[n, k], in b: T[n], out y: f32, const s: T) { y = 0.0; }";

#[test]
fn types_come_from_views_and_numbers_from_the_text() {
    use ElemType::{F32, F64};
    assert_eq!(inferred(DOT, &[Type(F32), Int(3)], &[F32, F32, F32]), Ok(vec![Type(F32), Int(3)]));
    let missing = inferred(DOT, &[], &[F64, F64, F32]).unwrap_err();
    assert_eq!(missing, "codelet::generic: the argument `k` is missing");
    let source = "codelet c<T>(in a: T[n], out y: T) { y = a[0]; }";
    assert_eq!(inferred(source, &[], &[ElemType::Bool, ElemType::Bool]), Ok(vec![Type(ElemType::Bool)]));
}

#[test]
fn contradictions_are_reported() {
    use ElemType::{F32, F64, I32};
    let two = inferred(DOT, &[Type(F32), Int(1)], &[F64, F32, F32]).unwrap_err();
    assert_eq!(two, "codelet::field_type: field `a` has elements `f32`, and what is bound to it has `f64`");
    let class = inferred(DOT, &[Type(I32), Int(1)], &[I32, I32, F32]).unwrap_err();
    assert_eq!(class, "codelet::generic: `T` is a `float`, which `i32` is not");
    let kind = inferred(DOT, &[Int(3), Int(1)], &[F32, F32, F32]).unwrap_err();
    assert!(kind.contains("`T` is a type, and 3 is a number"), "{kind}");
    let fixed = inferred(DOT, &[Type(F32), Int(1)], &[F32, F32, I32]).unwrap_err();
    assert!(fixed.contains("field `y` has elements `f32`"), "{fixed}");
    let many = inferred(DOT, &[Type(F32), Int(1), Int(1)], &[]).unwrap_err();
    assert!(many.contains("3 arguments for 2 generics"), "{many}");
    let half = inferred(DOT, &[Type(ElemType::F16), Int(1)], &[]).unwrap_err();
    assert!(half.contains("codelet::not_supported: `f16` is not yet supported"), "{half}");
}

#[test]
fn integer_generics_are_static() {
    let source = "codelet c<k: int>(in a: f32[n, k], out y: f32) {
        let t = [1.5; k];
        if k > 2 { y = sum i in 0..n, j in 0..k { a[i, j] * t[j] }; } else { y = no_such; }
    }";
    let r = run_with(source, &[Int(3)], &[array(&[1, 3], &[1.0f32, 2.0, 3.0]), scalar(0f32)]).unwrap();
    assert_eq!(r[1], scalar(9.0f32));
}

#[test]
fn static_comparison_of_types() {
    let source =
        "codelet c<T: element>(in a: T, out y: f32) { y = if T == bool { 1 } else if a.type == f32 { 2 } else { 3 }; }";
    let y = |t, a| run_with(source, &[Type(t)], &[a, scalar(0f32)]).unwrap().pop().unwrap();
    assert_eq!(y(ElemType::Bool, scalar(true)), scalar(1.0f32));
    assert_eq!(y(ElemType::I32, scalar(1i32)), scalar(3.0f32));
}

#[test]
fn generics_of_functions_are_checked() {
    reports(
        "codelet c(in k: i32, out y: i32) { y = f(k); y = g(k); y = h(k, m: 2); y = h(k); }
        codelet fn f<T: float>(x: T) -> T { x }
        codelet fn g<T: number, U: float>(x: T) -> T { x }
        codelet fn h<m: int>(x: i32) -> i32 { x * m }",
        &[("codelet::generic", "f(k)"), ("codelet::generic", "g(k)"), ("codelet::generic", "h(k)")],
    );
}
