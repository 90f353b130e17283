//! No source text makes the compiler run without end or crash.

use super::*;

#[test]
fn functions_that_double_are_stopped() {
    let mut source =
        "codelet c(in a: f32, out y: f32) { y = g40(a); } codelet fn g0(x: f32) -> f32 { x * 2 }".to_string();
    for i in 1..=40 {
        let j = i - 1;
        source += &format!("codelet fn g{i}(x: f32) -> f32 {{ g{j}(x + 1) * g{j}(x) }}");
    }
    let found = reports_of(&source, &[]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].0, "codelet::too_large");
}

#[test]
fn deep_nesting_is_stopped() {
    let mut source = "codelet c(in a: f32, out y: f32) { y = g300(a); } codelet fn g0(x: f32) -> f32 { x }".to_string();
    for i in 1..=300 {
        source += &format!("codelet fn g{i}(x: f32) -> f32 {{ g{}(x) }}", i - 1);
    }
    assert_eq!(reports_of(&source, &[])[0].0, "codelet::too_large");
    let arms: String = (0..1000).map(|i| format!("{i} => {{ y = {i}.0; }}")).collect();
    let source = format!("codelet c(in k: i32, out y: f32) {{ switch k {{ {arms} _ => {{ y = 0.0; }} }} }}");
    assert_eq!(reports_of(&source, &[])[0].0, "codelet::too_large");
}

/// A long sum is not a deep expression: neither its translation nor any walk over the codelet needs a deep stack.
#[test]
fn long_chains_do_not_nest() {
    let terms = 100_000;
    let sum = "a + ".repeat(terms) + "a";
    let source = format!("codelet c(in a: i32, out y: i32) {{ y = {sum}; }}");
    assert_eq!(last(&source, &[scalar(3i32), scalar(0i32)]), scalar(3 * (terms as i32 + 1)));
    let any = "a == 5 || ".repeat(terms) + "a == 3";
    let source = format!("codelet c(in a: i32, out y: bool) {{ y = {any}; }}");
    assert_eq!(last(&source, &[scalar(3i32), scalar(false)]), scalar(true));
    let all = "n < 9 && ".repeat(300) + "true";
    let source = format!(
        "codelet c(in b: f32[n], in a: f32[n + {}1], out y: f32) {{ y = if {all} {{ a[0] }} else {{ 2.0 }}; }}",
        "n + ".repeat(300)
    );
    assert_eq!(reports_of(&source, &[])[0].0, "codelet::too_large");
}

#[test]
fn a_local_array_has_a_limit() {
    body_reports("let t = [[0.0; 1000]; 1000];", &[("codelet::too_large", "[[0.0; 1000]; 1000]")]);
}

#[test]
fn as_deep_as_the_limit_allows() {
    let mut world =
        World::new(&format!("codelet c(in a: f32, out y: f32) {{ y = {}a{}; }}", "(1.0 + ".repeat(80), ")".repeat(80)));
    world.session.limits.nesting = 400;
    assert!(world.compile(&[], &mut Diagnostics::default()).is_some());
}

#[test]
fn tuples_do_not_grow_without_limit() {
    let doubled = "let t = (t, t);".repeat(60);
    let found = reports_of(&format!("codelet c(in a: f32, out y: f32) {{ let t = (a, 1); {doubled} y = 1.0; }}"), &[]);
    assert_eq!(found[0].0, "codelet::too_large");
    let nested = "let t = (t, 1);".repeat(5000);
    let found = reports_of(&format!("codelet c(in a: f32, out y: f32) {{ let t = (a, 1); {nested} y = 1.0; }}"), &[]);
    assert_eq!(found[0].0, "codelet::too_large");
}

#[test]
fn long_argument_lists_and_keys_do_not_nest() {
    let many = (0..5000).map(|i| i.to_string()).collect::<Vec<_>>().join(", ");
    let found = reports_of(&format!("codelet c(in a: i32, out y: i32) {{ y = max(a, {many}); }}"), &[]);
    assert_eq!(found[0].0, "codelet::too_large");
    let source =
        format!("codelet c(in a: i32, out y: i32) {{ switch a {{ {many} => {{ y = 1; }} _ => {{ y = 2; }} }} }}");
    assert_eq!(last(&source, &[scalar(4999i32), scalar(0i32)]), scalar(1i32));
}

#[test]
fn messages_have_a_limit() {
    assert_eq!(reports_of(&format!("codelet c(out y: i32) {{ {} }}", "y = nope;".repeat(500)), &[]).len(), 50);
}

#[test]
fn every_kind_of_nesting_is_counted() {
    let body = |callee: usize| format!("for i in 0..1 {{ while x > i {{ if x > 0 {{ return g{callee}(x); }} }} }} 1");
    let calls: String = (1..=150).map(|i| format!("codelet fn g{i}(x: i64) -> i64 {{ {} }}", body(i - 1))).collect();
    let source =
        format!("codelet c(in a: i64, out y: i64) {{ y = g150(a); }} codelet fn g0(x: i64) -> i64 {{ x }} {calls}");
    let mut world = World::new(&source);
    world.session.limits.nesting = 400;
    let mut diagnostics = Diagnostics::default();
    assert!(world.compile(&[], &mut diagnostics).is_none());
    assert_eq!(diagnostics.iter().next().unwrap().code, "codelet::too_large");
}
