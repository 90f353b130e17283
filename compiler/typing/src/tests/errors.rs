//! The diagnostics of wrong codelets, and their spans.

use super::*;

#[test]
fn types_do_not_mix() {
    body_reports("y[0] = a[0] + k;", &[("codelet::type_mismatch", "a[0] + k")]);
    body_reports("z = k; z = n; z = 1.5; z = 2;", &[("codelet::type_mismatch", "k"), ("codelet::type_mismatch", "n")]);
    body_reports("let x: i32 = 0.5;", &[("codelet::type_mismatch", "0.5")]);
    body_reports("if k { z = 1; }", &[("codelet::type_mismatch", "k")]);
    body_reports("z = -true; z = !a[0];", &[("codelet::type_mismatch", "true"), ("codelet::type_mismatch", "a[0]")]);
    body_reports(
        "let x = a[0] & a[1]; let y = k << a[0];",
        &[("codelet::type_mismatch", "a[0]"), ("codelet::type_mismatch", "k << a[0]")],
    );
    body_reports("z = a[1.5];", &[("codelet::type_mismatch", "1.5")]);
    body_reports("z = sqrt(k);", &[("codelet::type_mismatch", "k")]);
    body_reports(
        "let mut x = 1; x += a[0]; x += k;",
        &[("codelet::type_mismatch", "x += k;")].map(|_| ("codelet::type_mismatch", "x += k;")),
    );
    body_reports(
        "z = f32.bits(true) + f32.bits(f64(1.0));",
        &[("codelet::type_mismatch", "true"), ("codelet::type_mismatch", "f64(1.0)")],
    );
}

#[test]
fn help_names_the_conversion() {
    let world = World::new("codelet c(in a: f32, in k: i32, out y: f32) { y = a + k; }");
    let mut d = Diagnostics::default();
    world.compile(&[], &mut d);
    let d = d.iter().next().unwrap();
    assert_eq!(d.message, "the operands are `f32` and `i32`");
    assert_eq!(d.help.as_deref(), Some("write `f32(…)` around the other one"));
    assert_eq!(d.labels.len(), 3);
}

#[test]
fn one_error_does_not_make_another() {
    body_reports(
        "let x = nope + 1; z = x * 2; let t = x[3]; z = f32(t); if x { z = 1; } for i in x..3 { z += a[i]; }
        z = missing(x);",
        &[("codelet::unknown_name", "nope"), ("codelet::unknown_name", "missing")],
    );
}

#[test]
fn unknown_names_have_a_suggestion() {
    let world = World::new("codelet c(in width: i32, out y: i32) { let height = 1; y = widht + floot(1.0); }");
    let mut d = Diagnostics::default();
    world.compile(&[], &mut d);
    let help: Vec<_> = d.iter().map(|d| d.help.as_deref()).collect();
    assert_eq!(help, [Some("did you mean `width`?"), Some("did you mean `floor`?")]);
    let world = World::new("codelet c(in width: i32, out y: i32) { y = wdth; }");
    let mut d = Diagnostics::default();
    world.compile(&[], &mut d);
    assert_eq!(d.iter().next().unwrap().help.as_deref(), Some("did you mean `width`?"));
}

#[test]
fn directions_are_kept() {
    body_reports("z = y[0];", &[("codelet::read_of_out", "y[0]")]);
    body_reports("y[0] += 1.0;", &[("codelet::read_of_out", "y[0]")]);
    body_reports(
        "a[0] = 1.0; s = 2.0; k = 1;",
        &[("codelet::write_to_in", "a[0]"), ("codelet::write_to_in", "s"), ("codelet::write_to_in", "k")],
    );
    reports(
        "codelet c(in a: f32[n], out y: f32[n]) { fill(a); fill(y); read(y); }
        codelet fn fill(x: f32[k]) { for i in 0..k { x[i] = 0.0; } }
        codelet fn read(x: f32[k]) -> f32 { x[0] }",
        &[("codelet::write_to_in", "x[i]"), ("codelet::read_of_out", "x[0]")],
    );
    reports(
        "codelet c(in a: f32[m, m], out y: f32[m, m]) { amp(y, a, y); amp(a, a, a); }",
        &[("codelet::read_of_out", "y"), ("codelet::write_to_in", "a")],
    );
    reports(
        "codelet c(in a: f32[m, m], inout y: f32[m, m]) { amp(y, a, y[0..1, ..]); }",
        &[("codelet::amp_alias", "y[0..1, ..]")],
    );
}

#[test]
fn the_start_of_a_product_is_static() {
    let amp =
        |rest: &str| format!("codelet c(in a: f32[m, m], in t: bool, out y: f32[m, m]) {{ amp(y, a, a{rest}); }}");
    reports(&amp(", first: true"), &[]);
    reports(&amp(", first: t"), &[("codelet::argument", "t")]);
    reports(&amp(", last: true"), &[("codelet::argument", "last")]);
    reports(&amp(", first: true, first: true"), &[("codelet::argument", "amp(y, a, a, first: true, first: true)")]);
}

#[test]
fn operands_of_a_product_have_the_same_rows() {
    let amp = |c: &str, a: &str, b: &str| {
        let fields = "in a: f32[2, 3, 5], in b: f32[5, 7], inout c: f32[2, 3, 7]";
        format!("codelet f({fields}) {{ amp({c}, {a}, {b}); }}")
    };
    reports(&amp("c", "a", "b"), &[]);
    reports(&amp("c[0]", "a[1]", "b"), &[]);
    reports(&amp("c[0, 0]", "a[1]", "b"), &[("codelet::rank_mismatch", "c[0, 0]")]);
    reports(&amp("c", "a[1]", "b"), &[("codelet::rank_mismatch", "a[1]")]);
    reports(&amp("c[0]", "a", "b"), &[("codelet::rank_mismatch", "a")]);
    reports(&amp("c", "b", "a"), &[("codelet::rank_mismatch", "a")]);
    reports(&amp("c[0..1]", "a", "b"), &[("codelet::type_mismatch", "c[0..1]")]);
    reports(&amp("c", "a[.., 0..2]", "b"), &[("codelet::type_mismatch", "c")]);
    reports(&amp("c[0]", "a[0]", "b[.., 0..6]"), &[("codelet::type_mismatch", "c[0]")]);
    reports(&amp("c", "a", "b[1..]"), &[("codelet::type_mismatch", "a")]);
}

#[test]
fn only_mut_names_are_assigned() {
    body_reports("let x = 1.0; x = 2.0; x += 1.0;", &[("codelet::immutable", "x"), ("codelet::immutable", "x")]);
    body_reports("for i in 0..n { i = 2; }", &[("codelet::immutable", "i")]);
    body_reports("n = 2;", &[("codelet::immutable", "n")]);
    body_reports("let t = [0.0; 2]; t[0] = 1.0;", &[("codelet::immutable", "t[0]")]);
    reports(
        "codelet c(out y: f32) { y = f(1.0); } codelet fn f(x: f32) -> f32 { x = 2.0; x }",
        &[("codelet::immutable", "x")],
    );
}

#[test]
fn recursion_is_reported() {
    reports(
        "codelet c(out y: f32) { y = f(1.0); }
        codelet fn f(x: f32) -> f32 { g(x) }
        codelet fn g(x: f32) -> f32 { f(x) }",
        &[("codelet::recursion", "f(x)")],
    );
}

#[test]
fn misplaced_constructs_are_reported() {
    body_reports("z <- 1.0;", &[("codelet::not_here", "z <- 1.0;")]);
    body_reports("repeat 3 { z = 1.0; }", &[("codelet::not_here", "repeat 3 { z = 1.0; }")]);
    body_reports("var t: f32[4];", &[("codelet::not_here", "var t: f32[4];")]);
    body_reports("let l = list i in 0..3 { i };", &[("codelet::not_here", "list")]);
    body_reports("z = a @ a;", &[("codelet::not_here", "a @ a")]);
    body_reports("break;", &[("codelet::not_here", "break;")]);
    body_reports("z = worker;", &[("codelet::not_here", "worker")]);
    body_reports("z = sum i in 0..n { z = 1.0; a[i] };", &[("codelet::not_here", "z")]);
    body_reports("let mut t = [0.0; 4]; z = sum i in 0..4 { t[i] = 1.0; a[i] };", &[("codelet::not_here", "t[i]")]);
    body_reports("let mut q = 1.0; z = sum i in 0..4 { q = 2.0; a[i] };", &[("codelet::not_here", "q")]);
    body_reports("for i in 0..3 { z = sum j in 0..n { break; 1.0 }; }", &[("codelet::not_here", "break;")]);
    reports(
        "var w: f32; fn g(x: f32) -> f32 { x } codelet c(out y: f32) { y = w; y = g(1.0); }",
        &[("codelet::not_here", "w"), ("codelet::not_here", "g")],
    );
}

#[test]
fn ranks_agree() {
    body_reports("z = a;", &[("codelet::type_mismatch", "a")]);
    body_reports("z = a[0, 1];", &[("codelet::rank_mismatch", "a[0, 1]")]);
    body_reports("y = a;", &[("codelet::rank_mismatch", "y")]);
    body_reports("z = k[0];", &[("codelet::rank_mismatch", "k[0]")]);
    body_reports("let t = [[1, 2], [3]];", &[("codelet::rank_mismatch", "[3]")]);
    reports(
        "codelet c(in a: f32[n], out y: f32) { y = f(a); y = g(a[0]); let t = [1.0; 3]; y = h(t); y = g(f(1.0)); }
        codelet fn f(x: f32) -> f32 { x }
        codelet fn g(x: f32[n]) -> f32 { x[0] }
        codelet fn h(x: f32[4]) -> f32 { x[0] }",
        &[
            ("codelet::rank_mismatch", "a"),
            ("codelet::rank_mismatch", "a[0]"),
            ("codelet::rank_mismatch", "t"),
            ("codelet::rank_mismatch", "f(1.0)"),
        ],
    );
}

#[test]
fn static_things_are_static() {
    body_reports("for i in 0..n by a[0] { z = 1.0; }", &[("codelet::type_mismatch", "a[0]")]);
    body_reports("z = sum i in 0..n by k { 1.0 };", &[("codelet::not_static", "k")]);
    body_reports("let t = [0.0; n];", &[("codelet::not_static", "n")]);
    body_reports("for i in 0..n by 0 { z = 1.0; }", &[("codelet::static_arithmetic", "0")]);
    body_reports("let x = 1 / 0;", &[("codelet::static_arithmetic", "1 / 0")]);
    body_reports("z = a[-1];", &[("codelet::index_range", "-1")]);
    body_reports("let t = [0.0; 4]; z = t[4];", &[("codelet::index_range", "4")]);
    body_reports("switch k { k => { z = 1.0; } }", &[("codelet::not_static", "k")]);
    body_reports("z = sum i in 0..4, j in 0..i { 1.0 };", &[("codelet::ragged_reduction", "j in 0..i")]);
}

#[test]
fn literals_fit_their_type() {
    body_reports("let x: u8 = 300;", &[("codelet::literal_range", "300")]);
    body_reports("let x = u32(1) + -1;", &[("codelet::literal_range", "-1")]);
    body_reports("z = 1e60;", &[("codelet::literal_range", "1e60")]);
    body_reports(
        "z = f32.bits(0x1_0000_0000);".replace('_', "").as_str(),
        &[("codelet::literal_range", "0x100000000")],
    );
}

#[test]
fn branches_with_values_agree() {
    body_reports("z = if k > 0 { 1.0 };", &[("codelet::missing_value", "if k > 0 { 1.0 }")]);
    body_reports(
        "z = if k > 0 { a[0] } else { n };",
        &[("codelet::type_mismatch", "if k > 0 { a[0] } else { n }")].map(|(c, _)| (c, "n")),
    );
    body_reports("z = switch k { 0 => { 1.0 } };", &[("codelet::missing_value", "switch k { 0 => { 1.0 } }")]);
    body_reports("z = sum i in 0..n { a[i]; };", &[("codelet::missing_value", "{ a[i]; }")]);
    reports(
        "codelet c(out y: f32) { y = f(1.0); } codelet fn f(x: f32) -> f32 { if x > 0.0 { return x; } }",
        &[("codelet::missing_value", "f")],
    );
}

#[test]
fn arguments_fit_their_parameters() {
    reports(
        "codelet c(out y: f32) { y = f(); y = f(1.0, 2.0); y = f(q: 1.0); y = f(1.0, x: 2.0); y = f(true); }
        codelet fn f(x: f32) -> f32 { x }",
        &[
            ("codelet::argument", "f()"),
            ("codelet::argument", "2.0"),
            ("codelet::argument", "q"),
            ("codelet::argument", "f(q: 1.0)"),
            ("codelet::argument", "x"),
            ("codelet::type_mismatch", "true"),
        ],
    );
    body_reports(
        "z = min(1.0); z = fma(1.0, 2.0); assert(true, k); z = s(1.0);",
        &[
            ("codelet::argument", "min(1.0)"),
            ("codelet::argument", "fma(1.0, 2.0)"),
            ("codelet::argument", "k"),
            ("codelet::not_callable", "s"),
        ],
    );
}

#[test]
fn headers_are_checked() {
    reports(
        "codelet c(in a: f16[n], in b: i8, out y: f32) { y = f16(1.0); }",
        &[("codelet::not_supported", "f16"), ("codelet::not_supported", "i8")],
    );
    body_reports("z = f32(f16(1.0));", &[("codelet::not_supported", "f16")]);
    reports("codelet c(const a: f32[n], out y: f32) { y = 1.0; }", &[("codelet::const_rank", "f32[n]")]);
    reports("codelet c(in a: f32, out a: f32) { }", &[("codelet::duplicate_name", "a")]);
    reports(
        "codelet c(in a: f23, out y: float) { }",
        &[("codelet::unknown_name", "f23"), ("codelet::unknown_name", "float")],
    );
    reports("codelet c(in a: f32[..n]) { }", &[("codelet::dimension", "f32[..n]")]);
    reports(
        "codelet c(const k: i64, in a: f32[k], in b: f32[k + n], in d: f32[n]) { }",
        &[("codelet::dimension", "k")],
    );
    reports(
        "codelet c(in a: f32[m + 1 / 0 + x.y]) { }",
        &[("codelet::unknown_name", "m"), ("codelet::static_arithmetic", "1 / 0"), ("codelet::unknown_name", "x.y")],
    );
    reports("codelet c(in a: f32[n], in b: f32[0 - 3]) { }", &[("codelet::dimension", "0 - 3")]);
}

#[test]
fn unknown_attributes_are_warned_of() {
    reports(
        "#[pipelined] codelet c(#[align(8)] in a: f32[n], #[odd] in b: f32, out y: f32) {
            #[loud] y = sum i in 0..n { a[i] };
        }",
        &[("codelet::unknown_attribute", "odd"), ("codelet::unknown_attribute", "loud")],
    );
    reports("#[cycles(k)] codelet c(in k: i32, out y: f32) { y = 1.0; }", &[("codelet::dimension", "k")]);
    reports("#[cycles] codelet c(in k: i32, out y: f32) { y = 1.0; }", &[("codelet::argument", "cycles")]);
}

#[test]
fn errors_in_functions_show_the_call() {
    let world =
        World::new("codelet c(in a: i32, out y: i32) { y = f(a); } codelet fn f<T: number>(x: T) -> T { x + 1.5 }");
    let mut d = Diagnostics::default();
    world.compile(&[], &mut d);
    let d = d.iter().next().unwrap();
    let labels: Vec<_> = d.labels.iter().map(|l| (world.map.text(l.span), l.text.as_str())).collect();
    assert!(labels.contains(&("f(a)", "in this call")), "{labels:?}");
}
