//! `if`, `switch`, loops, and values of blocks.

use super::*;

#[test]
fn ranges_count_up_and_down() {
    assert_eq!(y_int("for i in 0..3 { y = 10 * y + i; }"), 12);
    assert_eq!(y_int("for i in 1..=3 { y = 10 * y + i; }"), 123);
    assert_eq!(y_int("for i in 6..0 by -2 { y = 10 * y + i; }"), 642);
    assert_eq!(y_int("for i in 3..=1 by -1 { y = 10 * y + i; }"), 321);
    assert_eq!(y_int("let s = 3; for i in 0..8 by s { y = 10 * y + i; }"), 36);
    assert_eq!(y_int("for i in 0..3, j in 0..i { y = 100 * y + 10 * i + j; }"), 102021);
    assert_eq!(y_int("for _ in 0..5 { y += 1; }"), 5);
}

#[test]
fn break_leaves_all_binders_and_continue_goes_on_with_the_innermost() {
    assert_eq!(y_int("for i in 0..3, j in 0..3 { if i == 1 && j == 1 { break; } y += 1; }"), 4);
    assert_eq!(y_int("for i in 0..3, j in 0..3 { if j == 1 { continue; } y += 1; }"), 6);
    assert_eq!(y_int("for i in 0..3 { for j in 0..3 { if j == i { break; } y += 1; } }"), 3);
    assert_eq!(y_int("while true { y += 1; if y == 7 { break; } }"), 7);
    assert_eq!(y_int("let mut i = 0; while i < 6 { i += 1; if i % 2 == 0 { continue; } y += i; }"), 9);
}

#[test]
fn a_while_condition_may_need_statements() {
    let source = "codelet c(inout a: i64[n], out y: i64) {
        let mut count = 0;
        while (sum i in 0..n { a[i] }) > 0 { a[count % n] -= 1; count += 1; }
        y = count;
    }";
    assert_eq!(last(source, &[vector(&[2i64, 2]), scalar(0i64)]), scalar(4i64));
}

#[test]
fn blocks_have_values() {
    assert_eq!(y_int("let a = { let b = 2; b * b }; y = a;"), 4);
    assert_eq!(y_int("let mut k = 2; let a = if k > 1 { k = 5; 10 } else { 20 }; y = a + k;"), 15);
    assert_eq!(
        y_int(
            "let mut k = 2; let (a, b) = if k > 5 { (1, 2) } else if k > 1 { (3, k) } else { (5, 6) }; y = 10 * a + b;"
        ),
        32
    );
    assert_eq!(y_f32("let mut k = 2; y = if k > 5 { 1 } else { 2.5 };"), 2.5);
}

#[test]
fn cheap_branches_become_a_selection() {
    let world = World::new(
        "codelet relu(in a: f32[n], out y: f32[n]) {
            for i in 0..n { let x = a[i]; y[i] = if x > 0.0 { x } else { 0.0 }; }
        }",
    );
    let c = world.compile(&[], &mut Diagnostics::default()).unwrap();
    assert!(c.exprs.values().any(|e| matches!(e.kind, girder_ir::codelet::ExprKind::Select { .. })));
}

#[test]
fn lazy_operators_evaluate_the_right_side_only_if_it_decides() {
    let source = "codelet c(in a: i64[n], in k: i64, out y: bool) {
        y = k < n && a[k] > 0 || (any i in 0..n { a[i] / k == 9 });
    }";
    let data = |k: i64| [vector(&[1i64, 0]), scalar(k), scalar(false)];
    assert_eq!(last(source, &data(0)), scalar(true));
    assert_eq!(last(source, &data(5)), scalar(false));
    let zero = [vector(&[0i64, 0]), scalar(0i64), scalar(false)];
    assert_eq!(run_with(source, &[], &zero).unwrap_err().0, "a[i] / k");
}

#[test]
fn a_switch_takes_the_first_arm_that_matches() {
    let source = "codelet c(in k: i32[n], out y: i32[n]) {
        for i in 0..n { y[i] = switch k[i] { 0, 7 => { 1 } 2..5 => { 2 } 5..=6 => { 3 } -1 => { 4 } _ => { 5 } }; }
    }";
    let k = [0i32, 1, 2, 4, 5, 6, 7, 8, -1];
    assert_eq!(last(source, &[vector(&k), vector(&[0i32; 9])]), vector(&[1i32, 5, 2, 2, 3, 3, 1, 5, 4]));
    assert_eq!(y_int("let mut k = 3; switch k { 3 => { y = 1; } _ => { y = 2; } }"), 1);
    assert_eq!(y_int("let mut k = 4; switch k { 3 => { y = 1; } }"), 0);
    assert_eq!(y_int("y = switch 2 { 0..2 => { 1 } 2 => { 5 } };"), 5);
}

#[test]
fn return_ends_the_vertex() {
    assert_eq!(y_int("for i in 0..10 { y = i; if i == 4 { return; } } y = 100;"), 4);
}

#[test]
fn assertions_are_checked() {
    let source = "codelet c(in k: i32, out y: i32) { assert(k > 0, \"k is positive\"); y = k; }";
    let r = run_with(source, &[], &[scalar(-1i32), scalar(0i32)]).unwrap_err();
    assert_eq!(r, ("assert(k > 0, \"k is positive\")".into(), Some("k is positive".into())));
    assert_eq!(last(source, &[scalar(2i32), scalar(0i32)]), scalar(2i32));
}

#[test]
fn static_conditions_elaborate_one_branch() {
    assert_eq!(y_int("if 2 > 1 { y = 1; } else { y = no_such_name; }"), 1);
    assert_eq!(y_int("let t = [0; 3]; if t.shape[0] == 3 && t.rank == 1 { y = 1; } else { y = f32(2.0); }"), 1);
}

#[test]
fn a_branch_that_leaves_has_no_value() {
    assert_eq!(y_int("let mut k = 1; y = 5; let a = if k > 0 { return; } else { 3 }; y = a;"), 5);
    assert_eq!(
        y_int("let mut k = 1; let (a, b) = switch k { 0 => { return; } 1 => { (k, 2) } _ => { return; } }; y = a + b;"),
        3
    );
    body_reports("z = 1.0 + ({ return; });", &[("codelet::missing_value", "{ return; }")]);
}

#[test]
fn a_read_that_is_in_bounds_is_cheap() {
    let source =
        "codelet relu(in a: f32[n], out y: f32[n]) { for i in 0..n { y[i] = if a[i] > 0.0 { a[i] } else { 0.0 }; } }";
    let world = World::new(source);
    let c = world.compile(&[], &mut Diagnostics::default()).unwrap();
    assert!(!format!("{:?}", c.body).contains("If"));
    let other = "codelet c(in a: f32[n], in k: i32, out y: f32) { y = if k < i32(n) { a[k] } else { 0.0 }; }";
    assert_eq!(last(other, &[vector(&[1.0f32]), scalar(4i32), scalar(9f32)]), scalar(0.0f32));
}
