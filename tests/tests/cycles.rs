//! `cycles(codelet, …)` is the time that the model gives a compute set with these vertices, and a static call is made
//! once.

use girder::Stage;
use girder_tests::Program;

const CODELETS: &str = "
codelet scale(in x: f32[n], out y: f32[n]) { for i in 0..n { y[i] = 2.0 * x[i]; } }
#[pipelined(apart)]
codelet add<T: float>(in x: T[m, n], in y: T[m, n], out z: T[m, n]) {
    for i in 0..m, j in 0..n { z[i, j] = x[i, j] + y[i, j]; }
}
codelet product(in a: f32[m, k], in b: f32[k, n], out y: f32[m, n]) { amp(y, a, b, first: true); }
multi codelet shared(in a: f32[m, k], in b: f32[k, n], inout y: f32[m, n]) {
    let (lo, hi) = (worker * m / workers, (worker + 1) * m / workers);
    for i in lo..hi, j in 0..n { y[i, j] = 1.0; }
    amp(y[lo..hi], a[lo..hi], b);
}
codelet window(in x: f32[n + 2], out y: f32[n], const times: i32) {
    for i in 0..n { y[i] = x[i] + x[i + 2]; }
    for t in 0..int(times) { y[0] = y[0]; }
}
#[cycles(3 * n)]
codelet stated(in x: f32[n], out y: f32[n]) { for i in 0..n { y[i] = x[i]; } }
codelet blocks(in x: f32[n], out y: f32[m]) {
    for i in 0..m { y[i] = sum j in i * 10..min(n, (i + 1) * 10) { x[j] }; }
}
";

/// Runs vertices on one tile, and compares their modelled time with the value of `cycles`.
fn agrees(vars: &str, vertex: &str, count: u32, question: &str) {
    let codelets = CODELETS.replace("y[0] = y[0];", "y[0] = 1.0;");
    let text = format!(
        "{codelets}
        {vars}
        program main() {{
            compute {{ for i in 0..{count} {{ vertex {vertex} on tile(0); }} }}
            print(cycles({question}, vertices: {count}));
        }}"
    );
    let program = Program::text(text).target("gc200");
    let estimate = program.estimate("main");
    let set = estimate.steps.iter().find(|s| s.total.compute > 0).expect("the vertices take time");
    let printed = program.one_at_a_time().run_everywhere().prints;
    assert_eq!(printed, [set.total.compute.to_string()], "{question}");
}

#[test]
fn a_question_has_the_answer_of_the_model() {
    let vectors = "var x: f32[12, 100]; var y: f32[12, 100];";
    for count in [1, 5, 6, 12] {
        agrees(vectors, "scale(x: x[i], y: y[i])", count, "scale, n: 100");
        agrees(vectors, "scale(x: x[i], y: y[i])", count, "scale, x: x[0]");
        agrees(vectors, "stated(x: x[i], y: y[i])", count, "stated, n: 100");
        let windows = "var x: f32[12, 102]; var y: f32[12, 100];";
        agrees(windows, "window(x: x[i], y: y[i], times: 7)", count, "window, n: 100, times: 7");
        agrees(windows, "window(x: x[i], y: y[i], times: 7)", count, "window, x: [102], y: y[0], times: 7");
        let blocks = "var x: f32[12, 95]; var y: f32[12, 10];";
        agrees(blocks, "blocks(x: x[i], y: y[i])", count, "blocks, n: 95, m: 10");
        let matrices = "var a: f32[12, 9, 40]; var b: f32[40, 32]; var y: f32[12, 9, 32];";
        agrees(matrices, "product(a: a[i], b: b, y: y[i])", count, "product, m: 9, k: 40, n: 32");
        agrees(matrices, "shared(a: a[i], b: b, y: y[i])", count, "shared, m: 9, k: 40, n: 32");
    }
    let apart = "var x: f32[4, 100]; var y: f32[4, 100]; var z: f32[4, 100];";
    agrees(apart, "add(x: x, y: y, z: z)", 1, "add, m: 4, n: 100, T: f32");
    agrees(apart, "add(x: x, y: y, z: z)", 1, "add, x: x, y: [4, 100]");
}

#[test]
fn statements_that_a_question_executes_are_charged() {
    let compiles = |question: &str| {
        let codelets = CODELETS.replace("y[0] = y[0];", "y[0] = 1.0;");
        let text = format!("{codelets} let c = cycles({question}); program main() {{ print(c); }}");
        Program::text(text).limit("static_steps=20000").stage(Stage::Graph).is_ok()
    };
    assert!(compiles("scale, n: 40000"), "a closed form is evaluated");
    assert!(compiles("blocks, n: 95, m: 1"));
    assert!(!compiles("blocks, n: 40000, m: 4000"), "a statement for each of 40,000 elements");
}

#[test]
fn a_search_has_the_same_result_in_a_batch() {
    let text = format!(
        "{CODELETS}
        fn best(m: int, k: int, n: int) {{
            minimize p in 1..=12, q in 1..=9, r in 1..=4 where p * q * r <= 64 {{
                (cycles(shared, m: div_ceil(m, p), k: div_ceil(k, r), n: div_ceil(n, q)) + 300 * r, p)
            }}
        }}
        let counts = list v in 0..40 {{ cycles(product, m: 9, k: 40, n: 32, vertices: v) }};
        let times = list t in 0..20 {{ cycles(window, n: 10, times: t) }};
        program main() {{
            print(best(100, 200, 300));
            print(counts);
            print(times);
            print([target.multiply_adds(f32), target.multiply_adds(f64)]);
            let all = list a in 0..20 {{ a * target.multiply_adds(f32) }};
            print(all);
        }}"
    );
    let program = Program::text(text.replace("y[0] = y[0];", "y[0] = 1.0;")).target("gc200");
    let batched = program.run_everywhere().prints;
    assert_eq!(batched, program.one_at_a_time().run_everywhere().prints);
    assert_eq!(batched[3], "[16, 0]");
}

#[test]
fn a_static_call_is_made_once() {
    let text = |calls: u32| {
        format!(
            "fn slow(n: int) -> int {{
                let mut total = 0;
                for i in 0..n {{ total = (total * 31 + i) % 1009; }}
                return total;
            }}
            let all = list i in 0..{calls} {{ slow(10000 + i % 2) }};
            program main() {{ print([all[0], all[1]]); }}"
        )
    };
    let prints = |calls| Program::text(text(calls)).limit("static_steps=20000000").run_everywhere().prints;
    assert_eq!(prints(500), prints(2));
}

#[test]
fn calls_that_make_or_read_something_are_not_remembered() {
    let text = "
        fn made(n: int) -> int { param p: f32[n] = 1.0; return len(params()); }
        fn seen() -> int { return len(params()); }
        fn said(n: int) -> int { print(n); return n; }
        fn here() -> int { return tiles; }
        program main() {
            print([made(1), seen(), made(1), seen()]);
            print([said(7), said(7)]);
            print(here());
            on tile(3) { print(here()); }
            print(here());
        }";
    let prints = Program::text(text).target("small").run_everywhere().prints;
    assert_eq!(prints, ["[1, 1, 2, 2]", "7", "7", "[7, 7]", "16", "1", "16"]);
}

/// A body of 2,000 operations in a loop took 7 s to compile with optimisation, and much longer without.
#[test]
fn a_long_body_in_a_loop_is_compiled_in_linear_time() {
    let lines: String = (0..2_000).map(|k| format!("a = a * 1.01 + {k}.5;\n")).collect();
    let text = format!(
        "codelet long(in x: f32[n], out y: f32[n]) {{ for i in 0..n {{ let mut a = x[i];\n{lines} y[i] = a; }} }}
        var x: f32[8];
        var y: f32[8];
        program main() {{ compute {{ vertex long(x: x, y: y); }} }}"
    );
    let start = std::time::Instant::now();
    assert!(Program::text(text).estimate("main").cycles > 0);
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
}
