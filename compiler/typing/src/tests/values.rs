//! Arithmetic, literals, conversions.

use super::*;
use girder_codelet::sizes::Shape;

#[test]
fn a_saxpy_loop() {
    let source = "codelet saxpy(in x: f32[n], inout y: f32[n], const a: f32) { for i in 0..n { y[i] += a * x[i]; } }";
    let r = run_with(source, &[], &[vector(&[1.0f32, 2.0]), vector(&[10.0f32, 20.0]), scalar(0.5f32)]);
    assert_eq!(r.unwrap()[1], vector(&[10.5f32, 21.0]));
}

#[test]
fn the_matvec_of_the_language() {
    let source =
        "codelet dot<T: float>(in a: T[n], in b: T[n], out y: T) { y = T(sum i in 0..n { f32(a[i]) * f32(b[i]) }); }";
    let data = [vector(&[1.0f64, 2.0, 3.0]), vector(&[4.0f64, 5.0, 6.0]), scalar(0.0f64)];
    let r = run_with(source, &[GenericArg::Type(ElemType::F64)], &data).unwrap();
    assert_eq!(r[2], scalar(32.0f64));
}

#[test]
fn the_heat_step_of_the_language() {
    let source = "codelet step(in u: f32[h, w], out next: f32[m, n], const alpha: f32) {
        assert(h == m + 2 && w == n + 2);
        for i in 0..m, j in 0..n {
            next[i, j] = u[i + 1, j + 1]
                + alpha * (u[i, j + 1] + u[i + 2, j + 1] + u[i + 1, j] + u[i + 1, j + 2] - 4.0 * u[i + 1, j + 1]);
        }
    }";
    let u = array(&[3, 3], &[0.0f32, 1.0, 0.0, 2.0, 10.0, 3.0, 0.0, 4.0, 0.0]);
    let r = run_with(source, &[], &[u.clone(), array(&[1, 1], &[0.0f32]), scalar(0.5f32)]).unwrap();
    assert_eq!(r[1], array(&[1, 1], &[10.0f32 + 0.5 * (10.0 - 40.0)]));
    let wrong = run_with(source, &[], &[u, array(&[2, 1], &[0.0f32; 2]), scalar(0.5f32)]);
    assert_eq!(wrong.unwrap_err().0, "assert(h == m + 2 && w == n + 2)");
}

#[test]
fn literals_take_the_type_of_their_use() {
    assert_eq!(y_f32("let mut acc = 0; acc += y_of(); y = acc;".replace("y_of()", "1.5").as_str()), 1.5);
    assert_eq!(y_f32("let x: f32 = 0; y = x + 2;"), 2.0);
    assert_eq!(y_int("let mut k = 0; k = k + 3; y = k;"), 3);
    let source = "codelet c(in a: u8[n], out y: u8) { let mut m = 0; for i in 0..n { m = max(m, a[i]); } y = m; }";
    assert_eq!(last(source, &[vector(&[3u8, 200, 7]), scalar(0u8)]), scalar(200u8));
}

#[test]
fn a_static_float_rounds_once() {
    assert_eq!(y_f32("let a = 0.1; let b = 0.2; y = a + b;"), (0.1f64 + 0.2f64) as f32);
    assert_eq!(y_f32("let a: f32 = 0.1; let b: f32 = 0.2; y = a + b;"), 0.1f32 + 0.2f32);
}

#[test]
fn an_immutable_static_adapts_at_each_use() {
    let source = "codelet c(in a: i32, out y: f32) { let two = 2; y = f32(a * two) + two; }";
    assert_eq!(last(source, &[scalar(5i32), scalar(0f32)]), scalar(12.0f32));
}

#[test]
fn conversions_follow_the_language() {
    for (body, y) in [
        ("y = int(2.9);", 2),
        ("y = int(-2.9);", -2),
        ("let x: f32 = 1e30; y = int(i32(x));", i32::MAX.into()),
        ("let x = f32.nan; y = int(x);", 0),
        ("y = int(u8(300));", 44),
        ("let x: i32 = -1; y = int(u32(x));", u32::MAX.into()),
        ("y = int(true);", 1),
        ("y = int(u32.bits(1.0));", 0x3f80_0000),
        ("let x = f32.nan; y = int(u32.bits(x));", 0x7fc0_0000),
        ("y = int(i32.bits(f32.bits(0xbf800000)));", -0x4080_0000),
        ("y = int(i32.max) + 1;", 1 << 31),
        ("y = i64.min;", i64::MIN),
    ] {
        assert_eq!(y_int(body), y, "{body}");
    }
    assert_eq!(y_f32("y = f32.bits(0x40490fdb);"), std::f32::consts::PI);
    assert_eq!(y_f32("y = f32.inf;"), f32::INFINITY);
    assert_eq!(y_f32("y = f32.epsilon;"), f32::EPSILON);
}

#[test]
fn operators_follow_the_language() {
    for (body, y) in [
        ("let mut a = 7; a = a / -2; y = a;", -3),
        ("let mut a = 7; a = a % -2; y = a;", 1),
        ("let mut a = 6; y = a & 3 | 8 ^ 1 << 2;", (6 & 3) | (8 ^ (1 << 2))),
        ("let mut a: u8 = 0; a = !a; y = int(a);", 255),
        ("let mut a: u8 = 250; a += 10; y = int(a);", 4),
        ("let mut a = -5; y = abs(a) + max(a, 2, 3) + min(a, 1);", 5 + 3 - 5),
        ("let mut a: u32 = 0xf0; y = int(popcount(a)) * 100 + int(clz(a));", 424),
        ("let mut a: i32 = -16; y = int(a >> 2);", -4),
        ("let mut a = true; a = !a | false; y = int(a);", 0),
        ("let mut a = 3; y = select(a > 2 && a != 4, 10, 20);", 10),
        ("y = 2 * 3 + 10 / 4 - (1 << 4) % 5;", 7),
        ("let mut a = 3; a -= 1; a *= 10; a /= 4; y = a;", 5),
    ] {
        assert_eq!(y_int(body), y, "{body}");
    }
    for (body, y) in [
        ("let mut a = 2.25; y = sqrt(a) + floor(a) + ceil(a) + trunc(-a) + round(2.5);", 1.5 + 2.0 + 3.0 - 2.0 + 2.0),
        ("let mut a = 3.0; y = fma(a, a, 1.0);", 10.0),
        ("let mut a = 3.0; y = -a / 2;", -1.5),
        ("let mut a = 5.5; y = a % 2;", 1.5),
    ] {
        assert_eq!(y_f32(body), y, "{body}");
    }
}

#[test]
fn tuples_are_taken_apart_and_swapped() {
    assert_eq!(y_int("let (a, (b, _)) = (1, (2, 3)); y = 10 * a + b;"), 12);
    assert_eq!(y_int("let mut (a, b) = (1, 2); (a, b) = (b, a); y = 10 * a + b;"), 21);
    assert_eq!(y_int("let p = (w: 4, b: 5); y = p.w * 10 + p[1];"), 45);
    assert_eq!(y_int("let mut p = (1, 2); p = (p[1], p[0]); y = 10 * p[0] + p[1];"), 21);
}

#[test]
fn names_are_hidden_by_inner_ones() {
    assert_eq!(y_int("let a = 1; { let a = 2; y += a; } let a = a + 10; y += a;"), 13);
}

#[test]
fn a_let_of_an_element_is_its_value() {
    assert_eq!(y_int("y = 5; let a = y; y = 7; y = a;"), 5);
}

#[test]
fn a_later_operand_does_not_change_an_earlier_one() {
    assert_eq!(y_int("let mut x = 1; y = x + ({ x = 10; x }) + x;"), 21);
    assert_eq!(y_int("let mut t = [1, 2]; let mut i = 0; t[i] = { i = 1; 7 }; y = 10 * t[0] + t[1];"), 72);
    assert_eq!(y_int("let mut i = 0; let mut t = [1, 2]; t[i] += { i = 1; t[0] = 5; 7 }; y = 10 * t[0] + t[1];"), 82);
}

#[test]
fn the_first_failing_check_is_that_of_the_earlier_operand() {
    let source = "codelet c(in a: i32[n], in k: i32, out y: i32) { y = a[n] + (sum i in 0..n { a[i] / k }); }";
    let r = run_with(source, &[], &[vector(&[1i32]), scalar(0i32), scalar(0i32)]);
    assert_eq!(r.unwrap_err().0, "a[n]");
}

#[test]
fn module_constants_are_literals() {
    let source = "let scale = 3; let half = 0.5; codelet c(in a: i32, out y: f32) { y = f32(a * scale) * half; }";
    assert_eq!(last(source, &[scalar(4i32), scalar(0f32)]), scalar(6.0f32));
}

#[test]
fn multi_codelets_know_their_worker() {
    let source =
        "multi codelet c(inout y: i64[n]) { for i in worker..n by 1 { if i % workers == worker { y[i] = worker; } } }";
    let r = last(source, &[vector(&[9i64; 8])]);
    assert_eq!(r, vector(&[0i64, 1, 2, 3, 4, 5, 0, 1]));
}

#[test]
fn attributes_reach_the_codelet() {
    let world = World::new(
        "#[pipelined, cycles(30 + 6 * div_ceil(n + 1, 2) + max(n, 4))]
        codelet c(in a: f32[n], out y: f32) { y = a[0]; }
        codelet fn div_ceil(a: int, b: int) -> int { (a + b - 1) / b }",
    );
    let c = world.compile(&[], &mut Diagnostics::default()).unwrap();
    assert!(c.pipelined);
    let sizes = girder_codelet::bind_sizes(&c, &[Shape::from_slice(&[7]), Shape::default()], &[]).unwrap();
    let cycles = girder_codelet::sizes::static_int(&c, &sizes, &[], c.cycles.unwrap());
    assert_eq!(cycles, Some(30 + 24 + 7));
}
