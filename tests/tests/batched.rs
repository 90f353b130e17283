//! Batched evaluation makes the same graph as evaluation one iteration at a time: for loops of compute sets, `map`,
//! reductions and repeated statements, and for random programs.
//!
//! Each program is compiled both ways; the results are equal to the byte, or both fail. Some loops contain a `let mut`,
//! which batched evaluation does not support, so that it is also abandoned halfway.

use girder::{AnyStage, Stage};
use girder_tests::Program;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

const HEAD: &str = "
codelet one(in a: f32, out y: f32) { y = a; }
codelet many(in a: f32[n], out y: f32[n]) { for i in 0..n { y[i] = a[i]; } }
codelet grid(in a: f32[m, n], out y: f32[m, n]) { for i in 0..m, j in 0..n { y[i, j] = a[i, j]; } }
codelet state(const k: i32, in a: f32, out y: f32) { y = a + f32(k); }
let l = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8];
let rows = [(0, 4), (4, 9), (9, 12), (2, 6)];
fn edge(i: int, n: int) -> int { if i == 0 { 0 } else if i >= n { n } else { 1 + i * (n - 2) / n } }
fn half(i: int, n: int) -> int { if i < n { return n - i; } let h = i / 2; return h + n; }
fn tri(n: int) -> int { if n <= 0 { 0 } else { n + tri(n: n - 1) } }
fn pair(i: int, n: int) -> (a: int, b: int) { let l = i * n; (a: l, b: i + n) }
fn cut(i: int, n: int) -> range { if i % 2 == 0 { 0..n } else { i..i + n } }
fn home(i: int) -> place { if i > 3 { tile(1) } else { tile(i) } }
fn met(i: int, n: int) -> (int, float, [int], (range, int)) { (i, i, [n, 2], (i..i + 2, n - i)) }
fn kept(i: int) -> int { let mut h = i; return h; }
fn divisors(n: int) -> [int] { list d in 1..n + 1 where n % d == 0 { d } }
let hop = fn(i: int, n: int) -> int { let h = i * 3; if h < n { n - h } else { h + edge(i, 7) } };
var x: f32[60];
var y: f32[60];
var a: f32[12, 10];
var b: f32[12, 10];
var c: f32[12, 20];
";

/// An integer expression in the loops `i` and `j`.
fn integer() -> BoxedStrategy<String> {
    let leaf = prop_oneof![
        3 => Just("i".to_string()),
        2 => Just("j".to_string()),
        2 => (0..6i64).prop_map(|k| k.to_string()),
        1 => Just("l[i % 12]".to_string()),
        1 => Just("k".to_string()),
    ];
    leaf.prop_recursive(2, 6, 2, |inner| {
        let op = prop::sample::select(vec!["+", "-", "*", "/", "%", "+", "*"]);
        prop_oneof![
            4 => (inner.clone(), op, inner.clone()).prop_map(|(a, op, b)| format!("({a} {op} {b})")),
            1 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("min({a}, {b})")),
            1 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("max({a}, {b})")),
            1 => inner.clone().prop_map(|a| format!("edge({a}, 7)")),
            1 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("half({a}, n: {b})")),
            1 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("hop({a}, n: {b})")),
            1 => inner.clone().prop_map(|a| format!("tri({a} % 5)")),
            1 => inner.clone().prop_map(|a| format!("met({a}, 7)[3][1]")),
            1 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("pair({a}, {b}).b")),
            1 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("div_ceil({a}, {b})")),
            1 => (inner.clone(), inner, inner_reduction())
                .prop_map(|(a, b, (op, of))| format!("({op} d in {of} {{ {a} * d + {b} }})")),
        ]
    })
    .boxed()
}

/// The operator and the range of a reduction over `d` inside another one.
fn inner_reduction() -> impl Strategy<Value = (&'static str, &'static str)> {
    let op = prop::sample::select(vec!["sum", "product", "min", "max"]);
    let ranges = vec!["0..3", "divisors(6)", "l[..4] where d > 1", "divisors(j % 3)", "0..2 where d < i"];
    (op, prop::sample::select(ranges))
}

/// An index that is usually inside `0..n`.
fn index(n: u32) -> BoxedStrategy<String> {
    prop_oneof![
        1 => integer(),
        6 => integer().prop_map(move |e| format!("({e} + 64) % {n}")),
        3 => Just("i".to_string()),
    ]
    .boxed()
}

/// A slice of `0..n`.
fn slice(n: u32) -> BoxedStrategy<String> {
    prop_oneof![
        (1..4u32).prop_map(|b| format!("i * {b}..(i + 1) * {b}")),
        Just(format!("i * {n} / 7 % {n}..(i + 1) * {n} / 7 % {n}")),
        (index(n), 1..4u32).prop_map(|(e, b)| format!("{e}..min({e} + {b}, 10)")),
        index(n).prop_map(|e| format!("{e}..")),
        index(n).prop_map(|e| format!("..{e}")),
        (index(n), 1..4u32).prop_map(|(e, s)| format!("{e}.. by {s}")),
        Just("rows[i % 4][0]..rows[i % 4][1]".to_string()),
        Just(format!("edge(i, {n})..edge(i + 1, {n})")),
        integer().prop_map(|e| format!("cut({e}, 3)")),
        Just("..".to_string()),
    ]
    .boxed()
}

fn vertex() -> BoxedStrategy<String> {
    let tile = prop_oneof![
        2 => Just(String::new()),
        1 => Just(" on tile(i)".to_string()),
        1 => Just(" on tile(i / 2)".to_string()),
        1 => Just(" on home(i)".to_string()),
        1 => Just(" on tile(i * 3 / 8)".to_string()),
        1 => Just(" on tile((i * 4 + j) % 4)".to_string()),
        1 => Just(" on tile((i + j) % tiles)".to_string()),
    ];
    let call = prop_oneof![
        (index(60), index(60)).prop_map(|(e, f)| format!("one(x[{e}], y[{f}])")),
        slice(60).prop_map(|s| format!("many(x[{s}], y[{s}])")),
        (index(12), slice(10)).prop_map(|(e, s)| format!("many(a: a[{e}, {s}], y: b[{e}, {s}])")),
        (slice(12), index(10)).prop_map(|(s, e)| format!("many(a[{s}, {e}], b[{s}, {e}])")),
        (slice(12), slice(10)).prop_map(|(s, t)| format!("grid(a[{s}, {t}], b[{s}, {t}])")),
        (slice(10), slice(12)).prop_map(|(s, t)| format!("grid(a.transpose()[{s}, {t}], b.transpose()[{s}, {t}])")),
        slice(10).prop_map(|s| format!("many(a.reshape([6, 2, 10])[i % 6, j % 2, {s}], b[i % 6 * 2 + j % 2, {s}])")),
        (index(12), slice(20)).prop_map(|(e, s)| format!("many(concat([a, b], axis: 1)[{e}, {s}], c[{e}, {s}])")),
        (slice(12), slice(20)).prop_map(|(s, t)| format!("grid(concat([b, a], axis: 1)[{s}, {t}], c[{s}, {t}])")),
        index(12).prop_map(|e| {
            // An axis of two digits.
            let rows = "x.reshape([3, 4, 5]).permute([1, 0, 2]).reshape([12, 5])";
            format!("many({rows}[{e}], y.reshape([12, 5])[{e}])")
        }),
        integer().prop_map(|e| format!("many(x[cut({e}, 3)], y[i..i + len(cut({e}, 3))])")),
        (index(60), index(60)).prop_map(|(e, f)| format!("state(k: {e}, a: x[i], y: y[{f}])")),
        Just("one(2.5, y[i])".to_string()),
    ];
    (call, tile).prop_map(|(call, tile)| format!("vertex {call}{tile};")).boxed()
}

fn condition() -> BoxedStrategy<String> {
    let compare = prop::sample::select(vec!["<", "<=", "==", "!=", ">", ">="]);
    prop_oneof![
        Just("i > 0".to_string()),
        Just("i > 0 && j > 0 && j < 3".to_string()),
        (integer(), compare, integer()).prop_map(|(a, op, b)| format!("{a} {op} {b}")),
        (0..20u32).prop_map(|k| format!("i > 0 && 12 / i > j || i * j == {k}")),
    ]
    .boxed()
}

/// Statements in the loops `i` and `j`.
fn body() -> BoxedStrategy<String> {
    let some = || prop::collection::vec(vertex(), 1..3).prop_map(|v| v.join("\n"));
    let statement = prop_oneof![
        3 => some(),
        1 => (condition(), some()).prop_map(|(c, v)| format!("if {c} {{ {v} }}")),
        1 => (condition(), some(), some()).prop_map(|(c, v, w)| format!("if {c} {{ {v} }} else {{ {w} }}")),
        1 => (integer(), some()).prop_map(|(e, v)| format!("let k = {e}; {v}")),
        1 => (integer(), integer(), some()).prop_map(|(e, f, v)| format!("let (k, _) = pair({e}, {f}); {v}")),
        1 => (integer(), integer(), some()).prop_map(|(e, f, v)| format!("let (k, _) = ({e}, {f}); {v}")),
        1 => some().prop_map(|v| format!("for k in 0..2 {{ {v} }}")),
        1 => some().prop_map(|v| format!("for k in 0..2 {{ let mut m = k; {v} }}")),
    ];
    prop::collection::vec(statement, 1..3).prop_map(|s| s.join("\n")).boxed()
}

fn nest() -> BoxedStrategy<String> {
    let range = prop_oneof![
        3 => (1..9u32).prop_map(|n| format!("0..{n}")),
        1 => (1..4u32).prop_map(|n| format!("1..{} by 2", 2 * n)),
        1 => Just("l".to_string()),
        1 => Just("5..0 by -1".to_string()),
    ];
    let inner = prop_oneof![
        3 => (1..5u32).prop_map(|n| format!("0..{n}")),
        1 => Just("i..i + 2".to_string()),
        1 => Just("0..i".to_string()),
    ];
    prop_oneof![
        (range.clone(), inner.clone(), body())
            .prop_map(|(r, s, b)| format!("for i in {r}, j in {s} {{ let k = 2; {b} }}")),
        (range, inner, body(), vertex()).prop_map(|(r, s, b, v)| {
            let v = v.replace(['j', 'k'], "i").replace("state(i:", "state(k:");
            format!("for i in {r} {{ {v} for j in {s} {{ let k = i; {b} }} }}")
        }),
    ]
    .boxed()
}

/// A `map`.
fn map() -> BoxedStrategy<String> {
    let tile = prop_oneof![
        2 => Just("tile(i)".to_string()),
        1 => Just("home(i % 4)".to_string()),
        1 => Just("home(kept(i) % 4)".to_string()),
        2 => integer().prop_map(|e| format!("tile(({e} + 64) % 4)")),
        1 => Just("tile(i % 2..3)".to_string()),
    ];
    let view = prop_oneof![
        slice(60).prop_map(|s| format!("x[{s}]")),
        index(60).prop_map(|e| format!("x[{e}]")),
        (slice(12), slice(10)).prop_map(|(s, t)| format!("a[{s}, {t}]")),
        (slice(10), slice(12)).prop_map(|(s, t)| format!("a.transpose()[{s}, {t}]")),
        (index(12), slice(10)).prop_map(|(e, s)| format!("a[{e}, {s}]")),
    ];
    let family = prop_oneof![
        (1..5u32, 1..4u32).prop_map(|(n, m)| format!("for i in 0..{n}, j in 0..{m}")),
        Just("for i in 0..4, j in 0..i".to_string()),
        Just("for i in [3, 1, 2], j in 2..0 by -1".to_string()),
    ];
    (view, tile, family)
        .prop_map(|(v, t, f)| format!("map {} on {} {f};", v.replace('k', "i"), t.replace('k', "i")))
        .boxed()
}

/// Returns the text of the graph, or the codes of the errors.
fn graph(program: &Program) -> Result<String, Vec<&'static str>> {
    match program.stage(Stage::Graph) {
        Ok(stage) => Ok(print(&stage, program)),
        Err(failure) => Err(failure.diagnostics.iter().map(|d| d.code).collect()),
    }
}

fn print(stage: &AnyStage, program: &Program) -> String {
    girder::text::print(stage, program.machine())
}

/// Returns whether a program compiles; both ways of evaluation must agree on that, and on its graph.
fn agree(text: &str) -> bool {
    let program = Program::text(format!("{HEAD}{text}"));
    let batched = graph(&program);
    match (&batched, &graph(&program.one_at_a_time())) {
        (Ok(batched), Ok(single)) => assert_eq!(batched, single, "{text}"),
        (Err(_), Err(_)) => {}
        (batched, single) => panic!("{text}\nbatched {batched:?}\none at a time {single:?}"),
    }
    batched.is_ok()
}

#[test]
fn loops_of_compute_sets_make_one_graph() {
    let mut runner = TestRunner::deterministic();
    let nests = prop::collection::vec(nest(), 1..3);
    let valid = (0..700).filter(|_| {
        let nests = nests.new_tree(&mut runner).unwrap().current().join("\n");
        agree(&format!("program main() {{ compute set {{ {nests} }} }}"))
    });
    let valid = valid.count();
    assert!(valid > 120, "only {valid} programs are right");
}

#[test]
fn maps_make_one_mapping() {
    let mut runner = TestRunner::deterministic();
    let maps = prop::collection::vec(map(), 1..3);
    let valid = (0..500).filter(|_| agree(&maps.new_tree(&mut runner).unwrap().current().join("\n"))).count();
    assert!(valid > 120, "only {valid} programs are right");
}

/// A reduction over `i` and `j`.
fn reduction() -> BoxedStrategy<String> {
    let op = prop::sample::select(vec!["sum", "min", "max", "list", "minimize", "argmax", "any", "all"]);
    let family = prop_oneof![
        3 => (1..9u32, 1..9u32).prop_map(|(n, m)| format!("i in 0..{n}, j in 0..{m}")),
        1 => (3..8u32).prop_map(|n| format!("i in 0..{n}, j in 0..i")),
        1 => (3..30u32).prop_map(|n| format!("i in [3, 1, 2], j in {n}..0 by -1")),
        1 => Just("i in l, j in l".to_string()),
    ];
    let filter = prop_oneof![2 => Just(String::new()), 1 => condition().prop_map(|c| format!(" where {c}"))];
    let value = prop_oneof![
        4 => integer(),
        1 => (integer(), integer()).prop_map(|(a, b)| format!("let k = {a}; {b}")),
        1 => (condition(), integer(), integer()).prop_map(|(c, a, b)| format!("if {c} {{ {a} }} else {{ {b} }}")),
    ];
    (op, family, filter, value.clone(), value, condition())
        .prop_map(|(op, family, filter, value, other, condition)| {
            let filter = filter.replace('k', "i");
            let (body, shown) = match op {
                "any" | "all" => (condition.replace('k', "i"), "if found { print(\"all or any\"); }"),
                "minimize" => {
                    (format!("({{ {value} }}, {{ {other} }})"), "let (p, q) = found; print(\"p\", p); print(\"q\", q);")
                }
                "argmax" => (value, "let (p, q) = found; print(\"p\", p); print(\"q\", q);"),
                "list" => (value, "for v in found { print(\"v\", v); }"),
                _ => (value, "print(\"v\", found);"),
            };
            format!("let k = 2; let found = {op} {family}{filter} {{ {body} }}; program main() {{ {shown} }}")
        })
        .boxed()
}

#[test]
fn reductions_give_one_value() {
    let mut runner = TestRunner::deterministic();
    let reduction = reduction();
    let valid = (0..700).filter(|_| agree(&reduction.new_tree(&mut runner).unwrap().current())).count();
    assert!(valid > 150, "only {valid} reductions are right");
}

/// Returns the least limit of steps with which a program compiles.
fn least_steps(program: &Program) -> u64 {
    let compiles = |steps: &u64| program.clone().limit(&format!("static_steps={steps}")).stage(Stage::Graph).is_ok();
    let (mut low, mut high) = (0, 1 << 20);
    while high - low > 1 {
        let middle = (low + high) / 2;
        if compiles(&middle) { high = middle } else { low = middle }
    }
    high
}

#[test]
fn an_abandoned_batch_is_charged_once() {
    let inside = "let mut m = i; vertex one(x[m], y[m]);";
    let first = format!("vertex one(x[i], y[i]); for j in 0..2 {{ {inside} }}");
    for text in [
        format!("program main() {{ compute set {{ for i in 0..50 {{ {inside} }} }} }}"),
        format!("program main() {{ compute set {{ for i in 0..50 {{ {first} }} }} }}"),
        "map x[i] on home(kept(i % 4)) for i in 0..60;".to_string(),
        "let s = sum i in 0..50 { let mut m = i * i; m };".to_string(),
        "let s = sum i in 0..50 { i * i };".to_string(),
    ] {
        let program = Program::text(format!("{HEAD}{text}"));
        let (batched, single) = (least_steps(&program), least_steps(&program.clone().one_at_a_time()));
        assert!(batched <= single, "{text}\n{batched} steps where one at a time takes {single}");
    }
}

#[test]
fn types_of_results_do_not_end_a_batch() {
    for value in ["met(i, 3)[0]", "met(i, 3)[3][1]", "pair(i, 2).b", "met(i, 3)[2][1]", "len(cut(0, 3)) + i"] {
        let text = format!("{HEAD} let s = sum i in 0..50 {{ {value} + i }};");
        let program = Program::text(text.as_str());
        let (batched, single) = (least_steps(&program), least_steps(&program.clone().one_at_a_time()));
        assert!(4 * batched < 3 * single, "{value}\n{batched} steps where one at a time takes {single}");
        assert!(agree(&format!("let s = sum i in 0..50 {{ {value} + i }};")));
    }
}

#[test]
fn inner_reductions_do_not_end_a_batch() {
    for (range, value) in [
        ("i in divisors(30), j in 0..60", "i * j + i - j"),
        ("i in 0..50", "min d in divisors(6) { i * d }"),
        ("i in 0..50", "sum d in 0..4, e in divisors(4) where d < e { d * i + e }"),
        ("i in 0..50", "if any d in 0..3 { i > 10 * d } { 1 } else { 2 }"),
        ("i in 0..50", "if all d in 0..3 { i > 10 * d } { 1 } else { 2 }"),
        ("i in 0..50", "len(list d in 0..3 { d }) + i"),
    ] {
        let text = format!("let s = sum {range} {{ {value} }};");
        let program = Program::text(format!("{HEAD}{text}"));
        let (batched, single) = (least_steps(&program), least_steps(&program.clone().one_at_a_time()));
        assert!(3 * batched < 2 * single, "{text}\n{batched} steps where one at a time takes {single}");
        assert!(agree(&format!("{text} program main() {{ print(\"s\", s); }}")), "{text}");
    }
}

/// One plan at a time, the search would take more than a million steps.
#[test]
fn plans_of_a_product_are_searched_in_one_batch() {
    let text = "use linalg; program main() { print(\"blocks\", linalg.matmul_plan(512, 512, 4096).blocks); }";
    let program = Program::text(text).target("gc200").limit("static_steps=100000");
    assert!(program.stage(Stage::Graph).is_ok());
    assert!(program.one_at_a_time().stage(Stage::Graph).is_err());
}

#[test]
fn integers_of_both_signs_divide_alike() {
    for (a, b) in [("i - 10", "j"), ("10 - i", "-j"), ("i - 10", "-j"), ("3 * i - 25", "j + 1")] {
        let (div, rem) = (format!("({a}) / ({b})"), format!("({a}) % ({b})"));
        for e in [div, rem, format!("div_ceil({a}, {b})"), format!("abs({a}) + pow({b}, 2)")] {
            let list = format!("let v = list i in 0..20, j in 1..4 {{ {e} }};");
            assert!(agree(&format!("{list} program main() {{ for k in v {{ print(\"v\", k); }} }}")));
        }
    }
}

/// Runs of statements outside loops that differ in their numbers: `#` stands for a number below 10, and occasionally
/// for a larger or wrong one.
fn repeated() -> BoxedStrategy<Vec<String>> {
    let forms = vec![
        "one(x[# + 20], y[#]) on tile(#4);",
        "one(x[5#], y[# * 6]);",
        "one(x[l[#]], y[half(#, n: 3) % 60]) on home(#);",
        "many(x[#..2 * #], y[#..20 by 2]);",
        "many(x[#..1#], y[2#..3#]);",
        "many(a: a[#, 2..7], y: b[#, ..#]);",
        "grid(a[#..9, #..], b.transpose()[#..9, #..]) on tile(1);",
        "state(k: #000, a: x[#], y: y[#]);",
        "state(k: min(#, 4), a: 2.5, y: y[#]) on tile(#4);",
        "one(#, y[#]);",
        "none(x[#], y[#]);",
        "many(x[#], y[#]);",
    ];
    let number =
        prop_oneof![60 => (0..10u32).prop_map(|n| n.to_string()), 1 => (10..80u32).prop_map(|n| n.to_string())];
    let row = prop::collection::vec(number, 5);
    let run = (prop::sample::select(forms), prop::collection::vec(row, 1..7)).prop_map(|(form, rows)| {
        let below_four = |n: &String| (n.parse().unwrap_or(0) % 4).to_string();
        let fill = |row: &Vec<String>| {
            let text = form.replace("#4", &below_four(&row[4]));
            format!("vertex {}", row.iter().fold(text, |text, n| text.replacen('#', n, 1)))
        };
        rows.iter().map(fill).collect::<Vec<_>>()
    });
    prop::collection::vec(run, 1..4).prop_map(|runs| runs.concat()).boxed()
}

/// Returns the graph with the span of each vertex, or the diagnostics.
fn everything(program: &Program) -> (Option<String>, String) {
    match program.stage(Stage::Graph) {
        Ok(stage) => {
            let graph = stage.graph();
            let span = |f: &girder_ir::family::Family, k| format!("{:?}", f.span(&graph.origins, k));
            let spans = graph.families.values().flat_map(|f| (0..f.domain.count()).map(move |k| span(f, k)));
            (Some(print(&stage, program)), spans.collect())
        }
        Err(failure) => (None, format!("{:?}", failure.diagnostics)),
    }
}

#[test]
fn repeated_statements_make_the_same_graph_as_single_ones() {
    let mut runner = TestRunner::deterministic();
    let (statements, mut valid) = (repeated(), 0);
    for _ in 0..1000 {
        let statements = statements.new_tree(&mut runner).unwrap().current();
        // Different spaces before every other statement prevent repetition.
        let body = |spaces: [&str; 2]| -> String {
            statements.iter().zip(spaces.iter().cycle()).map(|(s, space)| format!("\n{space}{s}")).collect()
        };
        let text = |body: String| format!("{HEAD}program main() {{ compute set {{{body}\n}} }}");
        let program = Program::text(text(body(["  ", "  "])));
        let batched = everything(&program);
        assert_eq!(batched, everything(&program.one_at_a_time()), "{}", body(["  ", "  "]));
        let single = everything(&Program::text(text(body(["  ", " \t"]))));
        assert_eq!(batched, single, "{}", body(["  ", "  "]));
        valid += batched.0.is_some() as u32;
    }
    assert!(valid > 200, "only {valid} programs are right");
}

#[test]
fn a_border_that_a_condition_cuts_off_stays_a_box() {
    let text = "program main() { compute set { for i in 0..12, j in 0..10 {
        if i > 0 && j > 0 { vertex one(a[i - 1, j - 1], b[i, j]) on tile(0); }
    } } }";
    let text = graph(&Program::text(format!("{HEAD}{text}"))).unwrap();
    assert!(text.contains("for i in 0..11, j in 0..9"), "{text}");
}

#[test]
fn statements_outside_loops_share_families() {
    let text = "program main() { compute set {
        vertex one(x[3], y[1]) on tile(1); vertex one(x[4], y[0]) on tile(0); vertex one(x[9], y[5]) on tile(3);
    } }";
    let stage = Program::text(format!("{HEAD}{text}")).stage(Stage::Graph).unwrap();
    assert_eq!(stage.graph().families.len(), 1);
    let family = stage.graph().families.values().next().unwrap();
    assert_eq!(family.domain.count(), 3);
    let spans: Vec<_> = (0..3).map(|k| family.span(&stage.graph().origins, k)).collect();
    assert!(spans[0].hi < spans[1].lo && spans[1].hi < spans[2].lo);
}
