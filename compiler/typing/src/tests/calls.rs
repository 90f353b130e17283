//! Inlined functions: arguments, generics, results, sites.

use super::*;

#[test]
fn functions_are_inlined() {
    let f =
        "codelet fn square(x: int) -> int { x * x } codelet fn both(x: int, y: int) -> (int, int) { (x + y, x - y) }";
    for (body, y) in [
        ("y = square(3) + square(square(2));", 25),
        ("let (a, b) = both(5, 3); y = a * 10 + b;", 82),
        ("y = both(y: 1, x: 4)[1];", 3),
        ("let mut k = 2; y = square({ k += 1; k });", 9),
    ] {
        let source = format!("codelet c(inout y: i64) {{ {body} }} {f}");
        assert_eq!(last(&source, &[scalar(0i64)]), scalar(y as i64), "{body}");
    }
}

#[test]
fn defaults_see_earlier_parameters() {
    let source = "codelet c(out y: f32) { y = f(2.0) + f(x: 1.0, k: 10.0); }
        codelet fn f(x: f32, k: f32 = 2 * x) -> f32 { x + k }";
    assert_eq!(last(source, &[scalar(0f32)]), scalar(17.0f32));
}

#[test]
fn a_generic_function_may_have_a_body_per_type() {
    let source = "codelet c<T: float>(in x: T, out y: T) { y = f(x) + T(f(1.0)); }
        codelet fn f<T: float>(x: T) -> T {
            if T == f32 { return x + f32.bits(0x3f800000); }
            x + f64.bits(0x4000000000000000)
        }";
    let at = |t| [GenericArg::Type(t)];
    let r = run_with(source, &at(ElemType::F32), &[scalar(0.5f32), scalar(0f32)]).unwrap();
    assert_eq!(r[1], scalar(3.5f32));
    let r = run_with(source, &at(ElemType::F64), &[scalar(0.5f64), scalar(0f64)]).unwrap();
    assert_eq!(r[1], scalar(4.5f64));
}

#[test]
fn literals_follow_the_typed_arguments() {
    let source = "codelet c(in x: f64, out y: f64) { y = least(x, 2) + least(1, x) + pick(T: f64); }
        codelet fn least<T: number>(a: T, b: T) -> T { min(a, b) }
        codelet fn pick<T: float>() -> T { 0.25 }";
    assert_eq!(last(source, &[scalar(1.5f64), scalar(0f64)]), scalar(2.75f64));
}

#[test]
fn early_returns_leave_the_function_only() {
    let source = "codelet c(in a: i32[n], out y: i32[n]) { for i in 0..n { y[i] = class(a[i]) + first(a, a[i]); } }
        codelet fn class(x: i32) -> i32 { if x < 0 { return -1; } if x == 0 { return 0; } 1 }
        codelet fn first(a: i32[k], x: i32) -> i32 {
            for i in 0..k { if a[i] == x { return 10 * i32(i); } }
            return 1000;
        }";
    let r = last(source, &[vector(&[5i32, 0, -7, 5]), vector(&[0i32; 4])]);
    assert_eq!(r, vector(&[1i32, 10, 19, 1]));
}

#[test]
fn a_function_without_early_return_needs_no_label() {
    let source = "codelet c(in x: f32, out y: f32) { y = f(x); }
        codelet fn f<T: float>(x: T) -> T { if T == f32 { return x + 1; } else { return x; } }";
    let c = World::new(source).compile(&[], &mut Diagnostics::default()).unwrap();
    assert!(!format!("{:?}", c.body).contains("Labelled"));
}

#[test]
fn sites_name_the_calls_around_them() {
    let source = "codelet c(in a: f32[n], out y: f32) { y = outer(a); }
        codelet fn outer(x: f32[k]) -> f32 { inner(x) }
        codelet fn inner(x: f32[k]) -> f32 { x[7] }";
    let world = World::new(source);
    let c = world.compile(&[], &mut Diagnostics::default()).unwrap();
    let site = c.sites.values().find(|s| world.map.text(s.span) == "x[7]").unwrap();
    let calls: Vec<_> = site.calls.iter().map(|&s| world.map.text(s)).collect();
    assert_eq!(calls, ["inner(x)", "outer(a)"]);
}

#[test]
fn sizes_of_parameters_are_bound_and_checked() {
    let source = "codelet c(in a: f32[n], in b: f32[m], out y: f32) { y = dot(a, b); }
        codelet fn dot(a: f32[k], b: f32[k]) -> f32 { sum i in 0..k { a[i] * b[i] } }";
    let (a, y) = (vector(&[1.0f32, 2.0]), scalar(0f32));
    assert_eq!(last(source, &[a.clone(), a.clone(), y.clone()]), scalar(5.0f32));
    assert_eq!(run_with(source, &[], &[a, vector(&[1.0f32]), y]).unwrap_err().0, "b");
}

#[test]
fn the_result_type_of_an_element_wise_call() {
    let world = World::new(
        "codelet fn f<T: float>(x: T) -> bool { x > 0.0 } codelet fn g<T: number>(x: T, k: T) -> T { x * k }
        codelet fn two<T: float>(x: T) { (x, i: i32(x)) }
        codelet fn nested<T: float>(x: T) -> (T, (T, T)) { (x, (x, x)) }",
    );
    let ask = |name: &str, args: &[ElemType]| {
        let mut d = Diagnostics::default();
        let f = world.function(name);
        let r = crate::result_types(&world, MODULE, f, args, f.name.span, &world.session, &mut d);
        r.map_err(|_| d.iter().map(|d| d.code.to_string()).collect::<Vec<_>>().join(" "))
    };
    use crate::Results::{One, Tuple};
    use ElemType::{Bool, F32, I32};
    assert_eq!(ask("f", &[F32]), Ok(One(Bool)));
    assert_eq!(ask("g", &[I32, I32]), Ok(One(I32)));
    assert_eq!(ask("two", &[F32]), Ok(Tuple(vec![(None, F32), (Some("i".into()), I32)])));
    assert_eq!(ask("f", &[I32]), Err("codelet::generic".into()));
    assert_eq!(ask("g", &[I32, F32]), Err("codelet::type_mismatch".into()));
    assert_eq!(ask("nested", &[F32]), Err("codelet::elementwise".into()));
    assert_eq!(ask("g", &[I32]), Err("codelet::argument".into()));
    assert_eq!(ask("f", &[ElemType::F16]), Err("codelet::not_supported".into()));
}
