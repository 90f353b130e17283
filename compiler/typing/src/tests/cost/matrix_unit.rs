//! The costs of codelets that use the matrix unit.

use super::*;

/// The time of a vertex: cycles of its code, and cycles of the matrix unit.
fn parts((codelet, cost): &(Codelet, Cost), shapes: &[&[u64]], facts: &MemFacts) -> (u64, u64) {
    let sizes = sizes(codelet, shapes);
    let of = |workers: u32| {
        cost.busy(&CostInputs { sizes: &sizes, consts: &[0; 8], worker: 0, workers, counters: &[], facts })
    };
    match of(6) {
        Busy::One(code) => (code, 0),
        Busy::Unit { code, unit } => (code, unit),
        Busy::All(all) => (all, 0),
    }
}

/// A pass over 8 terms and 16 columns: 512 bytes of coefficients at 8 bytes per cycle, or 16 from interleaved memory,
/// then 22 bundles and 8 for each row of the worker with most rows (F17).
fn pass(rows: u64) -> u64 {
    64 + 6 * (22 + 8 * rows)
}

#[test]
fn f17_a_product_has_the_matrix_unit_to_itself() {
    let alone = cost("codelet c(in a: f32[m, k], in b: f32[k, n], out y: f32[m, n]) { amp(y, a, b, first: true); }");
    let shapes = |m, k, n| [vec![m, k], vec![k, n], vec![m, n]];
    let unit = |m, k, n| {
        let shapes = shapes(m, k, n);
        parts(&alone, &[&shapes[0], &shapes[1], &shapes[2]], &none()).1
    };
    assert_eq!(unit(12, 16, 32), 2 * 2 * pass(12));
    assert_eq!(unit(5, 17, 33), 3 * 3 * pass(5));
    assert_eq!(unit(0, 16, 32), 2 * 2 * pass(0));
    // Without terms it writes zeros.
    assert_eq!(unit(12, 0, 32), 2 * pass(12));
    assert_eq!(alone.1.to_string(), "16, ⌈n/16⌉·⌈max(k, 1)/8⌉·(196 + 48·m) cycles of the matrix unit");
    // Code beside it is charged as usual, and runs beside the products of other vertices.
    let filled = cost(
        "codelet c(in a: f32[m, k], in b: f32[k, n], out y: f32[m, n]) {
            for i in 0..m, j in 0..n { y[i, j] = 0.0; }
            amp(y, a, b);
        }",
    );
    let (code, unit) = parts(&filled, &[&[12, 16], &[16, 32], &[12, 32]], &none());
    assert_eq!(unit, 4 * pass(12));
    assert!(code > 6 * 12 * 32, "{code}");
    let doubles = cost("codelet c(in a: f64[m, k], in b: f64[k, n], inout y: f64[m, n]) { amp(y, a, b); }");
    let (code, unit) = parts(&doubles, &[&[2, 3], &[3, 5], &[2, 5]], &none());
    assert_eq!((code % (6 * 40 * 30) < 300, unit), (true, 0), "{code}");
}

#[test]
fn workers_share_the_coefficients_of_the_matrix_unit() {
    let body = |lines: &str| {
        cost(&format!("multi codelet c(in a: f32[m, k], in b: f32[k, n], inout y: f32[m, n]) {{ {lines} }}"))
    };
    let time = |cost: &(Codelet, Cost)| parts(cost, &[&[20, 16], &[16, 96], &[20, 96]], &none()).0;
    let shares = "let (lo, hi) = (worker * m / workers, (worker + 1) * m / workers);";
    let rows = time(&body(&format!("{shares} amp(y[lo..hi], a[lo..hi], b);")));
    // The worker with most rows has 4 of 20. The code of a worker is less than 100 bundles.
    assert!((2 * 6 * pass(4)..2 * 6 * pass(4) + 600).contains(&rows), "{rows}");
    let one = time(&body("if worker == 0 { amp(y, a, b); }"));
    assert!((2 * 6 * pass(20)..2 * 6 * pass(20) + 600).contains(&one), "one worker has all rows: {one}");
    // Columns of their own are coefficients of their own: workers take turns.
    let columns = "let (lo, hi) = (worker * n / workers, (worker + 1) * n / workers);";
    let turns = time(&body(&format!("{columns} amp(y[.., lo..hi], a, b[.., lo..hi]);")));
    assert!((6 * 2 * pass(20)..6 * 2 * pass(20) + 600).contains(&turns), "{turns}");
    let local = time(&body(&format!("let t = [[1.0; 16]; 16]; {shares} amp(y[lo..hi, 0..16], a[lo..hi], t);")));
    assert!((2 * (4 * pass(3) + 2 * pass(4))..12_000).contains(&local), "{local}");
}

#[test]
fn rows_of_several_axes_share_the_coefficients() {
    let window = cost(
        "codelet c(in x: f32[h, w, k], in b: f32[k, n], out y: f32[p, q, n]) {
             amp(y, x[1..p + 1, 0..2 * q by 2], b, first: true);
         }",
    );
    let of = |p, q, n| parts(&window, &[&[p + 2, 2 * q, 16], &[16, n], &[p, q, n]], &none()).1;
    assert_eq!(of(3, 5, 16), 2 * pass(15));
    assert_eq!(of(1, 7, 33), 2 * 3 * pass(7));
    assert_eq!(of(4, 0, 16), 2 * pass(0));
    let shared = cost(
        "multi codelet c(in x: f32[p, q, k], in b: f32[k, n], out y: f32[p, q, n]) {
             let (lo, hi) = (worker * p / workers, (worker + 1) * p / workers);
             amp(y[lo..hi], x[lo..hi], b, first: true);
         }",
    );
    let time = parts(&shared, &[&[20, 7, 16], &[16, 32], &[20, 7, 32]], &none()).0;
    // The worker with most rows has 4 of 20 times 7.
    assert!((4 * pass(28)..4 * pass(28) + 600).contains(&time), "{time}");
}

#[test]
fn the_coefficients_of_a_codelet_apart_are_interleaved() {
    let apart = cost(
        "#[pipelined(apart)] codelet c(in a: f32[m, k], in b: f32[k, n], out y: f32[m, n]) {
             amp(y, a, b, first: true);
         }",
    );
    let shapes: [&[u64]; 3] = [&[12, 16], &[16, 32], &[12, 32]];
    assert_eq!(parts(&apart, &shapes, &none()).1, 4 * pass(12));
    assert_eq!(parts(&apart, &shapes, &MemFacts::granting(apart.1.requests())).1, 4 * (pass(12) - 32));
}

#[test]
fn loops_around_the_matrix_unit_are_not_pipelined_and_others_are() {
    let with = |attribute: &str| {
        cost(&format!(
            "{attribute} codelet c(in a: f32[l, m, k], in b: f32[l, k, n], out y: f32[m, n]) {{
                 amp(y, a[0], b[0], first: true);
                 for t in 1..l {{ amp(y, a[t], b[t]); }}
                 for i in 0..m, j in 0..n {{ y[i, j] = 1.0; }}
             }}"
        ))
    };
    let of = |cost: &(Codelet, Cost), m| parts(cost, &[&[4, m, 16], &[4, 16, 32], &[m, 32]], &none());
    let (plain, pipelined) = (with(""), with("#[pipelined]"));
    assert_eq!(of(&plain, 12).1, 4 * 4 * pass(12));
    assert_eq!(of(&pipelined, 12).1, 4 * 4 * pass(12));
    assert!(of(&pipelined, 40).0 - of(&pipelined, 20).0 < (of(&plain, 40).0 - of(&plain, 20).0) / 2);
}

#[test]
fn lengths_that_depend_on_a_loop_are_bounded() {
    let cost_of = |rows: &str| {
        cost(&format!(
            "codelet c(in a: f32[m, k], in b: f32[k, n], inout y: f32[m, n], const q: i64) {{
                 for p in 0..7 {{ let rows = {rows}; amp(y[p..p + rows], a[p..p + rows], b); }}
             }}"
        ))
    };
    let unit = |rows: &str| parts(&cost_of(rows), &[&[64, 8], &[8, 16], &[64, 16], &[]], &none()).1;
    assert_eq!(unit("min(10, m - p * 10)"), 7 * pass(10));
    assert_eq!(unit("(p + 1) * m / 7 - p * m / 7"), 7 * pass(10));
    assert_eq!(unit("min(m, (p + 1) * 10) - p * 10"), 7 * pass(10));
    assert_eq!(unit("p + 1"), 7 * pass(7));
    // Only the data decide: no matrix is longer than its field.
    assert_eq!(unit("int(b[p, 0])"), 7 * pass(64));
}
