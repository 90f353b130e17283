//! Matrix products: `x @ y` has the same bits as plain loops, in every mode on any number of threads, and long sums are
//! cut into blocks. Families of `amp` vertices have the bits of loops, whether they tile a larger product or not.

use girder::{AnyStage, Stage};
use girder_codegen::{Level, clif_text};
use girder_tests::{Outcome, Program};

/// Codelets of all programs here. Some elements are infinite or -0, so that some sums are NaN.
const CODELETS: &str = "
codelet numbers<T: float>(out x: T[n], const seed: i32, const special: bool) {
    for i in 0..n {
        let p = i32(i) * 7919 + seed;
        x[i] = T(p % 1009) / 37.0 - 11.0;
        if special && p % 89 == 7 { x[i] = 1.0 / 0.0; }
        if special && p % 97 == 3 { x[i] = -0.0; }
    }
}
codelet loops<T: float>(in a: T[m, k], in b: T[k, n], inout c: T[m, n]) {
    for i in 0..m, j in 0..n {
        let mut sum = c[i, j];
        for l in 0..k { sum = fma(a[i, l], b[l, j], sum); }
        c[i, j] = sum;
    }
}
codelet add_block<T: float>(in a: T[m, k], in b: T[k, n], inout c: T[m, n]) { amp(c, a, b); }
codelet turned<T: float>(in a: T[m, k], in b: T[n, k], out c: T[m, n]) {
    for j in 0..n, i in 0..m { c[i, j] = 1.5; }
    amp(c, a, b.transpose());
}
";

fn same(outcome: &Outcome, case: &str) {
    assert!(outcome.failure.is_none(), "{case}: {:?}", outcome.failure);
    assert_eq!(outcome.array("z").bytes, outcome.array("expected").bytes, "{case}");
}

/// Makes a program with two products of `left` and `right`, expressions over `x` and `y` of `xs` and `ys` elements: `z`
/// by `@`, `expected` by loops.
fn product(
    ty: &str,
    (m, n): (usize, usize),
    (xs, ys): (usize, usize),
    (left, right): (&str, &str),
    special: bool,
) -> String {
    format!(
        "{CODELETS}
        var x: {ty}[{xs}];
        var y: {ty}[{ys}];
        var z: {ty}[{m}, {n}];
        var expected: {ty}[{m}, {n}];
        program main() {{
            compute {{
                vertex numbers(x: x, seed: 5, special: {special});
                vertex numbers(x: y, seed: 11, special: false);
            }}
            let (a, b) = ({left}, {right});
            z <- a @ b;
            compute {{ vertex loops(a: a, b: b, c: expected); }}
        }}"
    )
}

#[test]
fn the_operator_gives_the_bits_of_plain_loops() {
    for (m, k, n) in [(1, 1, 1), (3, 5, 7), (1, 40, 33), (40, 33, 1), (17, 9, 50), (5, 0, 4), (70, 64, 65)] {
        for (ty, special) in [("f32", false), ("f64", true)] {
            let views = (format!("x.reshape([{m}, {k}])"), format!("y.reshape([{k}, {n}])"));
            let text = product(ty, (m, n), (m * k, k * n), (&views.0, &views.1), special);
            same(&Program::text(text).target("gc200").run_everywhere(), &format!("{ty}, {m} x {k} x {n}"));
        }
    }
}

#[test]
fn operands_may_be_any_views() {
    let cases = [
        ("x.reshape([12, 20]).transpose()", "y.reshape([30, 12]).transpose()"),
        ("x.reshape([20, 12])[.., 0..12 by 2]", "y.reshape([12, 30])[0..12 by 2, ..]"),
        ("x.reshape([20, 12])[.., 3..9]", "y.reshape([6, 60])[.., 7..37]"),
        ("concat([x[0..60], x[120..180]], axis: 0).reshape([20, 6])", "y[0..180].reshape([6, 30])"),
    ];
    for views in cases {
        let text = product("f32", (20, 30), (240, 360), views, true);
        same(&Program::text(text).run_everywhere(), views.0);
    }
}

#[test]
fn large_products_are_shared_by_threads() {
    let views = ("x.reshape([90, 70])", "y.reshape([70, 80])");
    let text = product("f32", (90, 80), (90 * 70, 70 * 80), views, false);
    same(&Program::text(text).target("gc200").run_everywhere(), "90 x 70 x 80");
}

/// Returns the terms of a block of a long sum, by the rule of the language reference.
fn block_terms(m: u64, n: u64, k: u64) -> u64 {
    if k <= 128 {
        return k.max(1);
    }
    let side = (1..).find(|&s: &u64| s * s * s >= m * n * k).expect("there is a root");
    let least = 8 * side.div_ceil(36).min(64).max(k.div_ceil(1024));
    8 * k.div_ceil(8 * k.div_ceil(least))
}

/// Makes a program that compares `z`, a product of `m` by `k` and `k` by `n` elements, with loops that add blocks.
fn in_blocks(ty: &str, (m, k, n): (u64, u64, u64), z: &str) -> String {
    let block = block_terms(m, n, k);
    format!(
        "{CODELETS}
        codelet blocks<T: float>(in a: T[m, k], in b: T[k, n], out c: T[m, n], const block: i64) {{
            for i in 0..m, j in 0..n {{
                let mut total = T(0.0);
                for first in 0..(k + block - 1) / block {{
                    let mut sum = T(0.0);
                    for l in first * block..min((first + 1) * block, k) {{ sum = fma(a[i, l], b[l, j], sum); }}
                    if first == 0 {{ total = sum; }} else {{ total += sum; }}
                }}
                c[i, j] = total;
            }}
        }}
        use linalg.{{matmul}};
        var x: {ty}[{m}, {k}];
        var y: {ty}[{k}, {n}];
        var z: {ty}[{m}, {n}];
        var expected: {ty}[{m}, {n}];
        program main() {{
            compute {{
                vertex numbers(x: x.flatten(), seed: 5, special: true);
                vertex numbers(x: y.flatten(), seed: 11, special: false);
            }}
            z <- {z};
            compute {{ vertex blocks(a: x, b: y, c: expected, block: {block}); }}
        }}"
    )
}

#[test]
fn long_sums_are_those_of_blocks_on_every_machine() {
    for (m, k, n) in [(5, 300, 7), (1, 700, 90), (33, 129, 1), (40, 513, 24), (2, 20_000, 3)] {
        for (ty, target) in [("f32", "gc200"), ("f32", "small-8"), ("f64", "small"), ("f32", "bow-pod16")] {
            let text = in_blocks(ty, (m, k, n), "x @ y");
            let program = Program::text(text).target(target).over_memory();
            same(&program.run_everywhere(), &format!("{ty}, {m} x {k} x {n} on {target}"));
        }
    }
}

#[test]
fn plans_change_no_bits() {
    let plans = [
        "room: 0.001",
        "partials: f32",
        "plan: (height: 3, width: 5, blocks: 2, depth: 16, turned: false, down: false)",
        "plan: (height: 9, width: 2, blocks: 1, depth: 8, turned: true, down: true)",
    ];
    for plan in plans {
        let text = in_blocks("f32", (20, 400, 11), &format!("matmul(x, y, {plan})"));
        let outcome = Program::text(text).target("gc200").run_everywhere();
        assert!(outcome.failure.is_none(), "{plan}: {:?}", outcome.failure);
        same(&outcome, plan);
    }
}

#[test]
fn terms_that_do_not_fit_are_added_in_steps() {
    let steps = |z: &str| {
        let program = Program::text(in_blocks("f32", (64, 100, 64), z)).target("small");
        let Ok(AnyStage::Graph(graph)) = program.stage(Stage::Graph) else { panic!("the program does not compile") };
        graph.sets.values().filter(|s| s.name.contains("product")).count()
    };
    assert_eq!([steps("x @ y"), steps("matmul(x, y, room: 0.02)")], [1, 13]);
}

/// Checks that a product that starts at 0 has the bits of loops, whether an element is undefined before or not.
#[test]
fn products_that_start_at_zero_read_nothing() {
    for (m, k, n) in [(1, 1, 1), (7, 5, 3), (6, 0, 4), (33, 20, 17)] {
        let shapes = format!("let (a, b) = (x.reshape([{m}, {k}]), y.reshape([{k}, {n}]));");
        let text = format!(
            "{CODELETS}
            codelet start<T: float>(in a: T[m, k], in b: T[k, n], out c: T[m, n]) {{ amp(c, a, b, first: true); }}
            codelet turned_start(in a: f32[m, k], in b: f32[k, n], out c: f32[n, m]) {{
                amp(c.transpose(), a, b, first: true);
            }}
            multi codelet shared(in a: f32[m, k], in b: f32[k, n], inout c: f32[m, n]) {{
                let (lo, hi) = (worker * m / workers, (worker + 1) * m / workers);
                amp(c[lo..hi], a[lo..hi], b, first: true);
            }}
            var x: f32[{xs}];
            var y: f32[{ys}];
            var z: f32[4, {m}, {n}] = 1.0 / 0.0;
            var expected: f32[4, {m}, {n}];
            program main() {{
                compute {{
                    vertex numbers(x: x, seed: 5, special: true);
                    vertex numbers(x: y, seed: 11, special: false);
                }}
                {shapes}
                var turned: f32[{n}, {m}];
                var fresh: f32[{m}, {n}];
                compute {{
                    vertex start(a: a, b: b, c: z[0]);
                    vertex turned_start(a: a, b: b, c: turned);
                    vertex shared(a: a, b: b, c: z[2]);
                    vertex start(a: a, b: b, c: fresh);
                    for i in 0..4 {{ vertex loops(a: a, b: b, c: expected[i]); }}
                }}
                z[1] <- turned.transpose();
                z[3] <- fresh;
            }}",
            xs = m * k,
            ys = k * n,
        );
        same(&Program::text(text).run_everywhere(), &format!("{m} x {k} x {n}"));
    }
}

/// Checks products whose rows have several axes against loops: windows, strides, shares of workers, local arrays and
/// sums in f64, with old elements and without.
#[test]
fn rows_of_several_axes_have_the_bits_of_loops() {
    let rows = "
        codelet rows_loops<T: float>(in x: T[p, q, k], in w: T[k, n], inout y: T[p, q, n]) {
            for i in 0..p, j in 0..q, l in 0..n {
                let mut sum = y[i, j, l];
                for t in 0..k { sum = fma(x[i, j, t], w[t, l], sum); }
                y[i, j, l] = sum;
            }
        }
        codelet add<T: float>(in x: T[p, q, k], in w: T[k, n], inout y: T[p, q, n]) { amp(y, x, w); }
        codelet start<T: float>(in x: T[p, q, k], in w: T[k, n], out y: T[p, q, n]) { amp(y, x, w, first: true); }
        multi codelet shared<T: float>(in x: T[p, q, k], in w: T[k, n], out y: T[p, q, n]) {
            let (lo, hi) = (worker * p / workers, (worker + 1) * p / workers);
            amp(y[lo..hi], x[lo..hi], w, first: true);
        }
        multi codelet columns<T: float>(in x: T[p, q, k], in w: T[k, n], out y: T[p, q, n]) {
            let (lo, hi) = (worker * q / workers, (worker + 1) * q / workers);
            amp(y[.., lo..hi], x[.., lo..hi], w, first: true);
        }
        codelet window<T: float>(in x: T[u, v, k], in w: T[k, n], inout y: T[p, q, n]) {
            amp(y[.., q - 1..-1 by -1], x[1..1 + p, 0..2 * q by 2], w);
        }
        codelet local<T: float>(in x: T[p, q, k], in w: T[k, n], out y: T[p, q, n]) {
            let mut t = [[[0.0; 3]; 4]; 2];
            for i in 0..p, j in 0..q, l in 0..n { t[i, j, l] = T(0.0); }
            amp(t[0..p, 0..q, 0..n], x, w);
            for i in 0..p, j in 0..q, l in 0..n { y[i, j, l] = T(t[i, j, l]); }
        }";
    for (ty, p, q, k, n) in [("f32", 5, 4, 6, 3), ("f64", 3, 7, 9, 20), ("f32", 2, 3, 0, 4), ("f32", 7, 1, 33, 17)] {
        let local = if n <= 3 { "vertex local(x: x[0..2], w: w, y: z[5, 0..2]);" } else { "" };
        let expected = if n <= 3 { "vertex rows_loops(x: x[0..2], w: w, y: expected[5, 0..2]);" } else { "" };
        let text = format!(
            "{CODELETS} {rows}
            var x: {ty}[{p}, {q}, {k}];
            var wide: {ty}[{p} + 1, 2 * {q}, {k}];
            var w: {ty}[{k}, {n}];
            var z: {ty}[6, {p}, {q}, {n}];
            var expected: {ty}[6, {p}, {q}, {n}];
            program main() {{
                compute {{
                    vertex numbers(x: x.flatten(), seed: 5, special: false);
                    vertex numbers(x: wide.flatten(), seed: 7, special: true);
                    vertex numbers(x: w.flatten(), seed: 11, special: false);
                    vertex numbers(x: z[0..2].flatten(), seed: 3, special: false);
                    vertex numbers(x: expected[0..2].flatten(), seed: 3, special: false);
                }}
                compute {{
                    vertex add(x: x, w: w, y: z[0]);
                    vertex window(x: wide, w: w, y: z[1]);
                    vertex start(x: x, w: w, y: z[2]);
                    vertex shared(x: x, w: w, y: z[3]);
                    vertex columns(x: x, w: w, y: z[4]);
                    {local}
                    vertex rows_loops(x: x, w: w, y: expected[0]);
                    vertex rows_loops(x: wide[1..1 + {p}, 0..2 * {q} by 2], w: w,
                        y: expected[1][.., {q} - 1..-1 by -1]);
                    for i in 2..5 {{ vertex rows_loops(x: x, w: w, y: expected[i]); }}
                    {expected}
                }}
            }}"
        );
        same(&Program::text(text).run_everywhere(), &format!("{ty}: {p} x {q} x {k} x {n}"));
    }
}

/// Makes vertices at all points of a box, over matrices of 24 × 10, 10 × 20 and 24 × 20.
fn family(vertices: &str) -> Outcome {
    let text = format!(
        "{CODELETS}
        var x: f32[24, 10];
        var y: f32[10, 20];
        var z: f32[24, 20];
        program main() {{
            compute {{
                vertex numbers(x: x.flatten(), seed: 5, special: false);
                vertex numbers(x: y.flatten(), seed: 11, special: false);
                vertex numbers(x: z.flatten(), seed: 3, special: false);
            }}
            {vertices}
        }}"
    );
    Program::text(text).run_everywhere()
}

/// Checks that a family has the same outcome as plain loops.
fn as_loops(vertices: &str) {
    let outcome = family(vertices);
    assert!(outcome.failure.is_none(), "{vertices}: {:?}", outcome.failure);
    let expected = family(&vertices.replace("add_block", "loops"));
    assert_eq!(outcome.array("z").bytes, expected.array("z").bytes, "{vertices}");
}

#[test]
fn families_are_the_sum_of_their_vertices() {
    let block = |a: &str, b: &str, c: &str| {
        format!("compute {{ for i in 0..6, j in 0..5 {{ vertex add_block(a: {a}, b: {b}, c: {c}); }} }}")
    };
    let rows = "x[4 * i..4 * i + 4]";
    let columns = "y[.., 4 * j..4 * j + 4]";
    let both = "z[4 * i..4 * i + 4, 4 * j..4 * j + 4]";
    as_loops(&block(rows, columns, both));
    // Blocks of `a` and of `c` in another order.
    as_loops(&block("x[4 * ((i + 2) % 6)..4 * ((i + 2) % 6) + 4]", columns, both));
    as_loops(&block(rows, columns, "z[4 * (5 - i)..4 * (5 - i) + 4, 4 * ((j + 1) % 5)..4 * ((j + 1) % 5) + 4]"));
    // Blocks of `a` that overlap.
    as_loops(&block("x[3 * i..3 * i + 4]", columns, both));
    // Every second row and column.
    as_loops(&block("x[2 * i..2 * i + 2]", columns, "z[0..24 by 2, ..][2 * i..2 * i + 2, 4 * j..4 * j + 4]"));
    // Holes, with other vertices in the same set.
    as_loops(
        "compute {
            for i in 0..6, j in 0..5 {
                if (i + 2 * j) % 4 == 0 { vertex numbers(x: z[4 * i, 4 * j..4 * j + 4], seed: 7, special: false); }
                else {
                    let (rows, columns) = (4 * i..4 * i + 4, 4 * j..4 * j + 4);
                    vertex add_block(a: x[rows], b: y[.., columns], c: z[rows, columns]);
                }
            }
        }",
    );
    // Terms in two steps, and transposed matrices.
    as_loops(
        "compute { for i in 0..24 { vertex add_block(a: x[i..i + 1, 0..6], b: y[0..6], c: z[i..i + 1]); } }
        compute { for i in 0..24 { vertex add_block(a: x[i..i + 1, 6..10], b: y[6..10], c: z[i..i + 1]); } }
        compute {
            for j in 0..20 {
                vertex add_block(a: y.transpose()[j..j + 1], b: x.transpose(), c: z.transpose()[j..j + 1]);
            }
        }",
    );
}

#[test]
fn a_block_may_begin_at_any_number() {
    let outcome = family(
        "var w: f32[24, 24];
        compute { for i in 0..4 { vertex turned(a: x[6 * i..6 * i + 6], b: x, c: w[6 * i..6 * i + 6]); } }
        z <- w[.., 0..20];",
    );
    let expected = family(
        "var w: f32[24, 24];
        w <- 1.5;
        compute { vertex loops(a: x, b: x.transpose(), c: w); }
        z <- w[.., 0..20];",
    );
    assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
    assert_eq!(outcome.array("z").bytes, expected.array("z").bytes);
}

/// A short loop around rows is unrolled. The rows stay vectors only if the copies share no locals.
#[test]
fn rows_of_an_unrolled_loop_are_vectors() {
    let text = "
        codelet products(in x: f32[m, 16], in w: f32[m, 16], out y: f32[m, 16]) {
            for t in 0..m, i in 0..4, j in 0..4 {
                y[t, 4 * i + j] = sum k in 0..4 { x[t, 4 * i + k] * w[t, 4 * k + j] };
            }
        }
        var x: f32[40, 16] on tile(0);
        var w: f32[40, 16] on tile(0);
        var y: f32[40, 16] on tile(0);
        program main() { compute { vertex products(x: x, w: w, y: y) on tile(0); } }";
    let kernels = Program::text(text).kernels(Level::Avx2, clif_text);
    let [kernel] = &kernels[..] else { panic!("one kernel, not {}", kernels.len()) };
    // One fused multiplication and addition for each row and term.
    let products = kernel.lines().filter(|line| line.contains("= fma ")).count();
    assert!(products == 16 && kernel.contains("f32x4"), "{products} products in\n{kernel}");
}
