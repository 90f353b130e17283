//! Chains of compute sets and copies that run in cache blocks or as fused steps have the outcome of the reference, and
//! report the failure that comes first in program order.

use girder::{AnyStage, Stage};
use girder_engine::{CodeForm, Executable, Mode};
use girder_tests::{Program, with_context};
use proptest::prelude::*;
use std::collections::BTreeSet;

const HEAD: &str = "
codelet mix(in x: i32, inout y: i32) { y = 3 * y + x; }
codelet held(in x: i32, inout y: i32, const not: i32) { assert(x != not, \"met\"); y = y - x; }
let n = 6000;
var a: i32[n] = list i in 0..n { i };
var b: i32[n] = list i in 0..n { n - i };
var c: i32[n];
var d: i32[n];
";

const VARS: [&str; 4] = ["a", "b", "c", "d"];

/// Configures a property test with few cases, so that it is fast; `PROPTEST_CASES` sets another number.
fn config(cases: u32) -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(cases);
    ProptestConfig { failure_persistence: None, max_shrink_iters: 400, ..ProptestConfig::with_cases(cases) }
}

/// Makes one step between two variables; most steps connect elements of equal index.
fn step() -> impl Strategy<Value = String> {
    let element = prop_oneof![6 => Just("i"), 1 => Just("i + 1"), 1 => Just("n - 1 - i"), 1 => Just("i * 11 % n")];
    (0usize..4, 1usize..4, element, 0u8..8, 0..4000i32).prop_map(|(from, ahead, element, kind, not)| {
        let (x, y) = (VARS[from], VARS[(from + ahead) % 4]);
        match kind {
            0 => format!("    copy {{ {y} <- {x}; }}\n"),
            1 => format!("    copy {{ for i in 0..n / 2 {{ {y}[2 * i] <- {x}[i]; }} }}\n"),
            2 => format!(
                "    compute {{ for i in 0..n - 1 {{ vertex held(x: {x}[{element}], y: {y}[i], not: {not}); }} }}\n"
            ),
            _ => format!("    compute {{ for i in 0..n - 1 {{ vertex mix(x: {x}[{element}], y: {y}[i]); }} }}\n"),
        }
    })
}

proptest! {
    #![proptest_config(config(10))]

    #[test]
    fn chains_have_the_outcome_of_the_reference(steps in proptest::collection::vec(step(), 2..8)) {
        let text = format!("{HEAD}program main() {{\n{}}}\n", steps.concat());
        let modes = [Mode::Interpret, Mode::Fast];
        with_context(&text, || Program::text(text.as_str()).compile(&modes).run_on(&modes, &[1, 2, 8]));
    }
}

/// The first set fails in its last vertices, the second in its first: the failure of the first set counts.
#[test]
fn the_failure_is_the_least_in_program_order() {
    let text = format!(
        "{HEAD}program main() {{
            compute early {{ for i in 0..n {{ vertex held(x: a[i], y: c[i], not: n - 1); }} }}
            compute late {{ for i in 0..n {{ vertex held(x: c[i], y: d[i], not: 0); }} }}
        }}"
    );
    let outcome =
        Program::text(text).compile(&[Mode::Interpret, Mode::Fast]).run_on(&[Mode::Interpret, Mode::Fast], &[1, 2, 8]);
    let failure = outcome.failure.expect("it fails");
    let report = format!("{failure:?}");
    assert!(report.contains("early") && report.contains("5999"), "{report}");
}

/// The variables of the expressions.
const MATRICES: &str = "
codelet mark(in x: f32, out y: f32, inout seen: i32, const bar: f32) { y = select(x > bar, x - bar, x); seen += 1; }
var a: f32[24, 40] = list i in 0..24 { list j in 0..40 { i - 0.25 * j } };
var b: f32[24, 40] = list i in 0..24 { list j in 0..40 { (i * 7 + j * 3) % 11 } };
var c: f32[24, 40];
var row: f32[40] = list j in 0..40 { 0.5 * j };
var column: f32[24, 1] = list i in 0..24 { [i] };
var k: i32[24, 40] = list i in 0..24 { list j in 0..40 { i * j } };
var u: u8[24, 40] = list i in 0..24 { list j in 0..40 { i + j } };
var h: f64[24, 40];
var spare: f32[24, 40];
var s: f32 = 0.75;
";

/// Makes an element-wise expression of `f32[24, 40]` that may use the `lets` names defined so far.
fn elements(lets: usize) -> impl Strategy<Value = String> {
    let mut leaves = vec!["a", "b", "c", "d", "d"].into_iter().map(String::from).collect::<Vec<_>>();
    leaves.extend(["(a + row)", "f32(k)", "f32(u)", "f32(h)", "(column * b)", "a.reverse(axis: 1)"].map(String::from));
    leaves.extend((0..lets).map(|n| format!("t{n}")));
    let leaf = proptest::sample::select(leaves);
    leaf.prop_recursive(3, 8, 2, |inner| {
        let ops = proptest::sample::select(vec!["+", "-", "*", "+", "-"]);
        prop_oneof![
            4 => (inner.clone(), ops, inner.clone()).prop_map(|(x, op, y)| format!("({x} {op} {y})")),
            2 => (inner.clone(), 0..9u8).prop_map(|(x, n)| format!("({x} * 0.{n})")),
            1 => inner.clone().prop_map(|x| format!("max({x}, s)")),
            1 => (inner.clone(), inner.clone()).prop_map(|(x, y)| format!("f32({x} > {y})")),
            1 => inner.clone().prop_map(|x| format!("sigmoid({x})")),
            1 => (inner.clone(), inner).prop_map(|(x, y)| format!("min({x}, abs({y}))")),
        ]
    })
}

/// Makes a statement that may use the names of `lets` earlier statements.
fn statement(lets: usize) -> impl Strategy<Value = String> {
    let var = || proptest::sample::select(vec!["a", "b", "d", "d"]);
    let parts = proptest::sample::select(vec!["[3..20]", "[.., 8..40]", "[2..24, 1..5]", ".reverse(axis: 0)", "[7]"]);
    let other = prop_oneof![
        3 => (var(), elements(lets)).prop_map(|(x, e)| format!("{x} <- {e};")),
        2 => (var(), elements(lets)).prop_map(|(x, e)| format!("{x} += {e};")),
        1 => (var(), var(), parts).prop_map(|(x, y, p)| format!("{x}{p} -= 0.5 * {y}{p};")),
        1 => (var(), var()).prop_map(|(x, y)| format!("{x}[1..] <- {y}[..23] * 1.0;")),
        1 => elements(lets).prop_map(|e| format!("k <- i32({e});")),
        1 => elements(lets).prop_map(|e| format!("u <- u8({e}); h <- f64({e}) * 0.5;")),
        1 => (var(), elements(lets)).prop_map(|(x, e)| {
            let fields = format!("x: {x}[i, j], y: spare[i, j], seen: k[i, j]");
            let set = format!("compute {{ for i in 0..24, j in 0..40 {{ vertex mark({fields}, bar: 2.0); }} }}");
            format!("{set} {x} <- {e} + spare;")
        }),
        1 => Just("column <- column * 0.5; row += row * 0.25;".to_string()),
        1 => Just("s <- s * 0.5;".to_string()),
        1 => var().prop_map(|x| format!("print(\"{x}\", {x}[3, 4..9]);")),
    ];
    prop_oneof![
        2 => other.prop_map(move |stmt| format!("    {stmt} let t{lets} = b;\n")),
        1 => elements(lets).prop_map(move |e| format!("    let t{lets} = {e};\n")),
    ]
}

/// Makes some statements, the last of which are in a loop or a branch.
fn program() -> impl Strategy<Value = String> {
    let list = || (0..7usize).map(statement).collect::<Vec<_>>();
    let around = proptest::sample::select(vec!["repeat 3", "if s > 0.5", "while s > 0.2"]);
    let calls = proptest::sample::select(vec!["call work();", "call work(); call work();"]);
    (list(), list(), around, calls).prop_map(|(before, inside, around, calls)| {
        let (before, inside) = (before.concat(), inside.concat());
        let body = format!("{before}    {around} {{\n{inside}    s <- s * 0.5;\n    }}\n");
        format!("{MATRICES}program work() {{\n    var d: f32[24, 40] = 1.0;\n{body}}}\nprogram main() {{ {calls} }}\n")
    })
}

proptest! {
    #![proptest_config(config(12))]

    #[test]
    fn fused_steps_have_the_outcome_of_single_steps(text in program()) {
        let modes = [Mode::Interpret, Mode::Exact, Mode::Fast];
        with_context(&text, || {
            let program = Program::text(text.as_str());
            program.agrees_with_elaborated(&program.compile(&modes).run_on(&modes, &[1, 2, 8]));
        });
    }
}

/// Returns the kernels of fused steps, each with the lengths of its fields in memory.
fn fused(text: &str) -> Vec<String> {
    let stage = Program::text(text).stage(Stage::Allocated).unwrap_or_else(|e| panic!("{e}"));
    let AnyStage::Allocated(allocated) = stage else { panic!("it is allocated") };
    let code = Executable::code_text(&allocated, 6, CodeForm::Clif).expect("it compiles");
    code.lines().filter_map(|l| l.split_once(": codelet fused(")).map(|(_, fields)| format!("({fields}")).collect()
}

/// Returns the numbers of fields in memory that kernels of fused steps have.
fn fields(text: &str) -> BTreeSet<usize> {
    fused(text).into_iter().map(|fields| fields.matches('[').count()).collect()
}

#[test]
fn variables_that_only_fused_steps_use_are_not_in_memory() {
    let head = "var w: f32[100];\nvar g: f32[100];\n";
    let descent =
        |after: &str| fields(&format!("{head}program main() {{ let d = g + 0.01 * w; w -= 0.05 * d; {after} }}"));
    assert_eq!(descent(""), BTreeSet::from([2]));
    // A printed variable is in memory.
    assert_eq!(descent("print(\"d\", d);"), BTreeSet::from([3]));
}

#[test]
fn steps_that_meet_elsewhere_are_not_one() {
    // Both steps would have more fields than each has.
    let of = |body: &str| fields(&format!("var w: f32[101];\nvar g: f32[101];\nprogram main() {{ {body} }}"));
    assert_eq!(of("g += w * 2.0; w += g.reverse(axis: 0) * 3.0;"), BTreeSet::from([2]));
    assert_eq!(of("g[1..] += w[..100] * 2.0; w[1..] += g[..100] * 3.0;"), BTreeSet::from([2]));
}
