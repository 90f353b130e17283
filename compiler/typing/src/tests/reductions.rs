//! Reductions and searches.

use super::*;
use girder_ir::codelet::Stmt;

fn on_vector(body: &str, a: &[f32]) -> f32 {
    let source = format!("codelet c(in a: f32[n], out y: f32) {{ {body} }}");
    f32::from_bits(last(&source, &[vector(a), scalar(0f32)]).bits[0] as u32)
}

#[test]
fn every_operator_reduces() {
    let a = [3.0, -1.0, 4.0, 1.0, -5.0];
    for (body, y) in [
        ("y = sum i in 0..n { a[i] };", 2.0),
        ("y = product i in 0..n { a[i] };", 60.0),
        ("y = min i in 0..n { a[i] };", -5.0),
        ("y = max i in 0..n { a[i] };", 4.0),
        ("y = f32(any i in 0..n { a[i] == 4.0 });", 1.0),
        ("y = f32(all i in 0..n { a[i] > -5.0 });", 0.0),
        ("y = f32(argmin i in 0..n { a[i] });", 4.0),
        ("y = f32(argmax i in 1..n by 2 { a[i] });", 3.0),
        ("y = sum i in 0..n where a[i] > 0.0 { a[i] };", 8.0),
        ("y = sum i in 0..n, j in 0..n where j == i + 1 { a[i] * a[j] };", -3.0 - 4.0 + 4.0 - 5.0),
        ("y = sum i in 0..n { let v = a[i]; v * v };", 52.0),
        ("y = (sum i in 0..n { a[i] }) / f32(n) + (max i in 0..n { a[i] });", 4.4),
        ("y = sum i in 0..n { let s = sum j in 0..i { a[j] }; s };", 3.0 + 2.0 + 6.0 + 7.0),
        ("y = sum i in 5..0 by -1 { a[i - 1] };", 2.0),
        ("y = f32(sum i in 0..n { 2 });", 10.0),
    ] {
        assert_eq!(on_vector(body, &a), y, "{body}");
    }
}

#[test]
fn a_search_of_several_binders_gives_a_tuple() {
    let source = "codelet c(in a: f32[m, n], out y: i64[3]) {
        let (i, j) = argmax i in 0..m, j in n - 1..=0 by -1 { a[i, j] };
        let (p, q, r) = argmin p in 0..2, q in 3..9 by 3, r in 0..m { 100 - p - q - r };
        y[0] = 10 * i + j; y[1] = 100 * p + 10 * q + r; y[2] = i;
    }";
    let a = array(&[2, 3], &[1.0f32, 5.0, 2.0, 0.0, 9.0, 3.0]);
    assert_eq!(last(source, &[a, vector(&[0i64; 3])]), vector(&[11i64, 161, 1]));
}

#[test]
fn an_empty_search_fails() {
    let source = "codelet c(in a: f32[n], out y: i64) { y = argmin i in 0..n where a[i] > 9.0 { a[i] }; }";
    let r = run_with(source, &[], &[vector(&[1.0f32]), scalar(0i64)]);
    assert_eq!(r.unwrap_err().0, "argmin i in 0..n where a[i] > 9.0 { a[i] }");
}

fn factors(source: &str) -> Vec<bool> {
    let c = World::new(source).compile(&[], &mut Diagnostics::default()).unwrap();
    c.body.iter().filter_map(|s| if let Stmt::Reduce(r) = s { Some(r.factors.is_some()) } else { None }).collect()
}

#[test]
fn a_sum_of_products_of_floats_takes_them_as_fma() {
    let source = "codelet c(in a: f32[n], in k: i32[n], out y: f32, out z: i32) {
        y = (sum i in 0..n { a[i] * a[i] }) + (sum i in 0..n { (a[i] * 2) }) + (sum i in 0..n { twice(a[i]) });
        z = sum i in 0..n { k[i] * k[i] };
        y = product i in 0..n { a[i] * a[i] };
    }
    codelet fn twice(x: f32) -> f32 { x * 2 }";
    assert_eq!(factors(source), [true, true, false, false, false]);
}

#[test]
fn an_open_product_is_a_product_of_floats_if_its_use_says_so() {
    let source = "codelet c(out y: f32) { let mut a = 2; let s = sum i in 0..3 { a * a }; y = s; a = 1; }";
    assert_eq!(factors(source), [true]);
    assert_eq!(last(source, &[scalar(0f32)]), scalar(12.0f32));
}

#[test]
fn reductions_stand_in_branches_that_need_them() {
    let source =
        "codelet c(in a: f32[n], in k: i32, out y: f32) { y = if k > 0 { sum i in 0..n { a[i] } } else { 0.0 }; }";
    let c = World::new(source).compile(&[], &mut Diagnostics::default()).unwrap();
    assert!(matches!(&c.body[0], Stmt::If { then, .. } if matches!(then[0], Stmt::Reduce(_))));
}
