//! The costs of codelets on a tile, from their text: the published figures of the model, and closed forms compared with
//! counts.
//!
//! Figures have the names of `docs/cycles.md`.

use super::{Data, World, run_costed};
use girder_codelet::cost::{Busy, Cost, CostInputs, MemFacts, TileCosts, cost_of, counted_cost_of, tile_cycles};
use girder_codelet::{Sizes, bind_sizes};
use girder_ir::codelet::Codelet;
use girder_source::Diagnostics;

fn compiled(source: &str) -> Codelet {
    let world = World::new(source);
    let mut diagnostics = Diagnostics::default();
    let codelet = world.compile(&[], &mut diagnostics);
    let reported: Vec<_> = diagnostics.iter().map(|d| d.render(&world.map, false, 100)).collect();
    codelet.unwrap_or_else(|| panic!("{}", reported.join("\n")))
}

fn cost(source: &str) -> (Codelet, Cost) {
    let codelet = compiled(source);
    let cost = cost_of(&codelet, &costs()).expect("nothing is refused");
    (codelet, cost)
}

fn sizes(codelet: &Codelet, shapes: &[&[u64]]) -> Sizes {
    let shapes: Vec<_> = shapes.iter().map(|s| (*s).into()).collect();
    bind_sizes(codelet, &shapes, &[]).expect("the shapes fit")
}

/// Returns the bundles of worker 0 for these shapes of the fields.
fn bundles((codelet, cost): &(Codelet, Cost), shapes: &[&[u64]], facts: &MemFacts) -> u64 {
    let sizes = sizes(codelet, shapes);
    cost.eval(&CostInputs { sizes: &sizes, consts: &[0; 8], worker: 0, workers: 6, counters: &[], facts })
}

fn costs() -> TileCosts {
    TileCosts::from(&girder_machine::builtin("gc200").expect("it comes with Girder"))
}

fn none() -> MemFacts {
    MemFacts::default()
}

/// Returns the bundles of one more element, for a codelet whose three fields have this shape.
fn each(source: &str, shape: impl Fn(u64) -> Vec<u64>) -> u64 {
    let cost = cost(source);
    let of = |n| bundles(&cost, &[&shape(n), &shape(n), &shape(n), &[]], &none());
    assert_eq!(of(11) - of(10), of(1001) - of(1000));
    of(11) - of(10)
}

#[test]
fn v3a_takes_15_bundles_a_step() {
    let cost = cost(
        "codelet pi(in steps: f32[n], const step: f32, out y: f32) {
             let mut sum = 0.0;
             for i in 1..n + 1 {
                 let x = (f32(i) - 0.5) * step;
                 sum += 4.0 / (1.0 + x * x);
             }
             y = sum * step;
         }",
    );
    let of = |n: u64| bundles(&cost, &[&[n], &[], &[]], &none());
    assert_eq!(of(1001) - of(1000), 15);
}

#[test]
fn m1_takes_6_bundles_an_element() {
    let triad = "codelet triad(out a: f32[n], in b: f32[n], in c: f32[n], const s: f32) {
                     for i in 0..n { a[i] = b[i] + s * c[i]; }
                 }";
    assert_eq!(each(triad, |n| vec![n]), 6);
}

#[test]
fn m2_takes_6_bundles_two_elements() {
    let lanes = "codelet triad(out a: f32[n, 2], in b: f32[n, 2], in c: f32[n, 2], const s: f32) {
                     for i in 0..n { for l in 0..2 { a[i, l] = b[i, l] + s * c[i, l]; } }
                 }";
    assert_eq!(each(lanes, |n| vec![n, 2]), 6);
    let flat = "codelet triad(out a: f32[n], in b: f32[n], in c: f32[n], const s: f32) {
                    for i in 0..n / 2 {
                        a[2 * i] = b[2 * i] + s * c[2 * i];
                        a[2 * i + 1] = b[2 * i + 1] + s * c[2 * i + 1];
                    }
                }";
    assert_eq!(each(flat, |n| vec![2 * n]), 6);
}

#[test]
fn m14_takes_17_bundles_two_points() {
    let heat = cost(
        "codelet heat(in a: f32[h + 2, w + 2, 2], out b: f32[h, w, 2], const alpha: f32, const beta: f32) {
             for y in 0..h {
                 for x in 0..w {
                     b[y, x, 0] = beta * a[y + 1, x + 1, 0]
                         + alpha * (a[y, x + 1, 0] + a[y + 2, x + 1, 0] + a[y + 1, x, 1] + a[y + 1, x + 1, 1]);
                     b[y, x, 1] = beta * a[y + 1, x + 1, 1]
                         + alpha * (a[y, x + 1, 1] + a[y + 2, x + 1, 1] + a[y + 1, x + 1, 0] + a[y + 1, x + 2, 0]);
                 }
             }
         }",
    );
    let of = |w: u64| bundles(&heat, &[&[3, w + 2, 2], &[1, w, 2], &[], &[]], &none());
    assert_eq!(of(101) - of(100), 17);
}

#[test]
fn v8_takes_24_bundles_a_value() {
    let blur = cost(
        "codelet blur(in a: f32[h + 2, w + 8], out b: f32[h, w]) {
             for y in 0..h {
                 for x in 0..w {
                     let corners = a[y, x] + a[y, x + 8] + a[y + 2, x] + a[y + 2, x + 8];
                     let sides = a[y, x + 4] + a[y + 1, x] + a[y + 1, x + 8] + a[y + 2, x + 4];
                     b[y, x] = (corners + 2.0 * sides + 4.0 * a[y + 1, x + 4]) * 0.0625;
                 }
             }
         }",
    );
    let of = |w: u64| bundles(&blur, &[&[3, w + 8], &[1, w]], &none());
    assert_eq!(of(101) - of(100), 24);
}

/// F4: PopLibs' estimate of i32 addition, whose workers take every sixth element.
#[test]
fn f4_takes_7_bundles_an_element_of_a_worker() {
    let add = |body: &str| {
        let source = format!(
            "multi codelet add(in x: i32[n], in y: i32[n], out z: i32[n]) {{
                for i in worker..n by workers {{ {body} }}
            }}"
        );
        each_of_six(&cost(&source))
    };
    assert_eq!(add("z[i] = x[i] + y[i];"), 7);
    assert_eq!(add("z[i] = x[i] + i32(i);"), 6, "the index is there, and not computed");
    let step = cost(
        "codelet add(in x: i32[n], in y: i32[n], out z: i32[n], const s: int) {
        for i in 0..n by s { z[i] = x[i] + y[i]; }
    }",
    );
    assert_eq!(step.1.to_string().matches("7·").count(), 1, "{}", step.1);
    assert_eq!(
        add("if i >= worker && i < n { z[i] = x[i] + y[i]; }"),
        7,
        "a condition that the range answers is no work"
    );
    let other = cost(
        "multi codelet c(in x: i32[n], in y: i32[n], out z: i32[n]) {
             for i in worker..n by workers { if i >= worker && i < n - 1 { z[i] = x[i] + y[i]; } }
         }",
    );
    assert!(!other.1.points().is_empty(), "another one is: {}", other.1);
}

/// Returns the bundles of six more elements for worker 0.
fn each_of_six(cost: &(Codelet, Cost)) -> u64 {
    let of = |n| bundles(cost, &[&[n], &[n], &[n]], &none());
    assert_eq!(of(66) - of(60), of(6006) - of(6000));
    of(66) - of(60)
}

const SCALED_ADD: &str = "#[pipelined]
    multi codelet scaled_add(inout y: f32[n], in x: f32[n], const a: f32) {
        for i in worker * n / workers..(worker + 1) * n / workers { y[i] = y[i] + a * x[i]; }
    }";

const TRIAD: &str = "#[pipelined(apart)]
    multi codelet triad(out a: f32[n], in b: f32[n], in c: f32[n], const s: f32) {
        for i in worker * n / workers..(worker + 1) * n / workers { a[i] = b[i] + s * c[i]; }
    }";

/// Returns the cycles of a vertex that has a tile to itself.
fn tile((codelet, cost): &(Codelet, Cost), shapes: &[&[u64]], facts: &MemFacts) -> u64 {
    let sizes = sizes(codelet, shapes);
    let at = CostInputs { sizes: &sizes, consts: &[0; 8], worker: 0, workers: 6, counters: &[], facts };
    tile_cycles([cost.busy(&at)], &costs())
}

#[test]
fn v2a_fixes_the_launch_and_v2c_follows() {
    let add = cost(SCALED_ADD);
    assert_eq!(tile(&add, &[&[64], &[64], &[]], &none()), 375);
    let long = tile(&add, &[&[256], &[256], &[]], &none());
    assert!(long.abs_diff(665) <= 2, "{long}");
    assert_eq!(long, 663, "as docs/cycles.md has it");
}

#[test]
fn v1a_takes_one_bundle_a_vector_if_its_fields_are_apart() {
    let triad = cost(TRIAD);
    let shapes: &[&[u64]] = &[&[45_000], &[45_000], &[45_000], &[]];
    let apart = MemFacts::granting(triad.1.wants());
    let cycles = tile(&triad, shapes, &apart);
    assert!(cycles.abs_diff(22_711) * 100 <= 22_711, "{cycles}");
    assert_eq!(cycles, 22_797, "as docs/cycles.md has it");
    assert!(tile(&triad, shapes, &none()) > 3 * 22_500);
}

/// An in-place loop cannot load and store in one bundle, whatever the layout of memory.
#[test]
fn intervals_are_those_of_the_published_loop() {
    let add = cost(&SCALED_ADD.replace("pipelined", "pipelined(apart)"));
    let of = |n: u64, facts: &MemFacts| bundles(&add, &[&[n], &[n], &[]], facts);
    let per_vector = |facts: &MemFacts| of(1200, facts) - of(1200 - 12, facts);
    assert_eq!(per_vector(&none()), 3);
    assert_eq!(per_vector(&MemFacts::granting(add.1.wants())), 2);
}

/// Bundles per vector of PopLibs' own loops (F1, F3, F5, F6 of the reference), to which no constant was fitted.
#[test]
fn library_loops_take_what_is_published() {
    let interval = |value: &str| {
        let cost = cost(&format!(
            "#[pipelined] codelet c(out y: f32[n], in x: f32[n], in z: f32[n], const s: f32) {{
                 for i in 0..n {{ y[i] = {value}; }}
             }}
             codelet fn exp(x: f32) -> f32 {{ x * x + x }}
             codelet fn log(x: f32) -> f32 {{ let t = x - 1.0; t * t }}
             codelet fn rsqrt(x: f32) -> f32 {{ 1.0 / sqrt(x) }}"
        ));
        let of = |n| bundles(&cost, &[&[n], &[n], &[n], &[]], &none());
        of(1002) - of(1000)
    };
    assert_eq!(interval("x[i] + z[i]"), 3);
    assert_eq!(interval("x[i] / z[i]"), 10);
    assert_eq!(interval("x[i] + s"), 2);
    assert_eq!(interval("-x[i]"), 2);
    assert_eq!(interval("exp(x[i])"), 6);
    assert_eq!(interval("log(x[i])"), 12);
    assert_eq!(interval("sqrt(x[i])"), 10);
    assert_eq!(interval("rsqrt(x[i])"), 8);
}

/// A tile makes one multiply-add of two lanes in a cycle, so a sum of two products takes two instructions.
#[test]
fn a_sum_contains_one_of_its_products() {
    let floats = |value: &str| {
        let cost = cost(&format!(
            "#[pipelined] codelet c(out y: f32[n], in x: f32[n], const s: f32, const t: f32) {{
                 for i in 0..n {{ y[i] = {value}; }}
             }}"
        ));
        let of = |n| bundles(&cost, &[&[n], &[n], &[], &[]], &none());
        of(1002) - of(1000)
    };
    // A load and a store take two bundles, and so do two float instructions.
    assert_eq!(floats("s * x[i] + t * (x[i] * x[i])"), 3);
    assert_eq!(floats("s * x[i] + t * (x[i] * x[i]) + 1.0"), 4);
    assert_eq!(floats("(s * x[i] + t * (x[i] + t)) * (s - x[i])"), 5);
}

#[test]
fn a_narrow_store_reads_and_merges() {
    let bytes = "codelet c(out a: u8[n], in b: u8[n], in c: u8[n], const s: f32) {
                     for i in 0..n { a[i] = b[i] + c[i]; }
                 }";
    // load, load, add, load, merge, store, branch
    assert_eq!(each(bytes, |n| vec![n]), 7);
}

#[test]
fn invariant_values_leave_the_loop() {
    let scaled = "codelet c(out a: f32[n], in b: f32[n], in c: f32[n], const s: f32) {
                      for i in 0..n { a[i] = b[i] * (s * s + 1.0 / s) + c[0] * c[0]; }
                  }";
    // load, mul, add, store, branch
    assert_eq!(each(scaled, |n| vec![n]), 5);
}

#[test]
fn equal_values_are_computed_once() {
    let twice = "codelet c(out a: f32[n], in b: f32[n], in c: f32[n], const s: f32) {
                     for i in 0..n { a[i] = (b[i] + c[i]) * (b[i] + c[i]) + sqrt(b[i] + c[i]); }
                 }";
    // load, load, add, mul, sqrt, add, store, branch
    assert_eq!(each(twice, |n| vec![n]), 7 + 5);
}

#[test]
fn stated_cycles_are_taken_as_they_are() {
    let (codelet, cost) = cost("#[cycles(20 + 2 * n)] codelet c(out a: f32[n]) { for i in 0..n { a[i] = 1.0; } }");
    let sizes = sizes(&codelet, &[&[10]]);
    let facts = none();
    let at = CostInputs { sizes: &sizes, consts: &[], worker: 0, workers: 6, counters: &[], facts: &facts };
    assert_eq!(cost.busy(&at), Busy::One(40));
    assert_eq!(cost.to_string(), "2·n + 20 cycles");
}

#[test]
fn stated_cycles_may_depend_on_constants() {
    let (codelet, cost) =
        cost("#[cycles(k * n)] codelet c(out a: f32[n], const k: i64) { for i in 0..n { a[i] = 1.0; } }");
    let sizes = sizes(&codelet, &[&[10], &[]]);
    let facts = none();
    let at = CostInputs { sizes: &sizes, consts: &[0, 7], worker: 0, workers: 6, counters: &[], facts: &facts };
    assert_eq!(cost.busy(&at), Busy::One(70));
    assert!(cost.reads_constants());
}

#[test]
fn costs_read_well() {
    let (_, plain) = cost("codelet c(out a: f32[n], in b: f32[n]) { for i in 0..n { a[i] = 2.0 * b[i]; } }");
    assert_eq!(plain.to_string(), "19 + 4·n");
    let (_, data) =
        cost("codelet c(inout a: f32[n], in b: f32[n]) { for i in 0..n { if b[i] > 0.0 { a[i] = 2.0; } } }");
    assert_eq!(data.to_string(), "19 + 6·n + #0");
}

/// Checks that closed forms equal the counts of a run; `shapes` gives the arrays' shapes for every n and m.
fn closed_forms_hold(source: &str, shapes: impl Fn(u64, u64) -> Vec<Vec<u64>>) {
    let codelet = compiled(source);
    let costs = costs();
    let closed = cost_of(&codelet, &costs).expect("it is not pipelined");
    let counted = counted_cost_of(&codelet, &costs).expect("it is not pipelined");
    assert!(closed.points().is_empty(), "nothing is left to data: {closed}");
    assert!(!counted.points().is_empty());
    for (n, m) in [(0, 0), (1, 0), (1, 1), (2, 7), (7, 2), (5, 5), (13, 8), (16, 31)] {
        let data: Vec<Data> = shapes(n, m)
            .into_iter()
            .map(|shape| Data { bits: vec![0; shape.iter().product::<u64>() as usize], shape })
            .collect();
        let (sizes, counters) = run_costed(&codelet, &data, counted.points());
        let workers = if codelet.multi { 6 } else { 1 };
        let (own, facts) = (counted.points().len(), none());
        for worker in 0..workers {
            let counters = &counters[own * worker as usize..own * (worker as usize + 1)];
            let at = CostInputs { sizes: &sizes, consts: &[3; 8], worker, workers: 6, counters, facts: &facts };
            assert_eq!(closed.eval(&at), counted.eval(&at), "n = {n}, m = {m}, worker {worker}: {closed}");
        }
    }
}

#[test]
fn nests_have_closed_forms() {
    closed_forms_hold(
        "codelet c(in a: f32[n, m], inout b: f32[n]) {
             for i in 0..n {
                 let mut t = 0.0;
                 for j in 1..m - 1 by 3 { t += a[i, j]; }
                 for j in 0..m by 2 { t *= a[i, j]; }
                 b[i] = t + sum j in 0..m { a[i, j] * a[i, j] };
             }
         }",
        |n, m| vec![vec![n, m], vec![n]],
    );
}

#[test]
fn triangles_have_closed_forms() {
    closed_forms_hold(
        "codelet c(in a: f32[n, m], inout b: f32[n]) {
             for i in 0..n {
                 for j in 2 * i..n by 3 { b[j] += 1.0; for k in 0..m { b[j] += a[j, k]; } }
                 for j in 0..i { b[j] *= 2.0; }
             }
             for i in 1..n by 2 { for j in i - 3..m + 1 { for k in 0..2 * m { b[i] += a[i, 0] * f32(j + k); } } }
         }",
        |n, m| vec![vec![n, m + 1], vec![n]],
    );
}

#[test]
fn shares_of_workers_have_closed_forms() {
    closed_forms_hold(
        "multi codelet c(in a: f32[n, m], inout b: f32[n]) {
             let rows = div_up(n, workers);
             for i in worker * rows..min((worker + 1) * rows, n) {
                 if worker < 2 { b[i] += sum j in 0..m { a[i, j] }; } else { b[i] += 1.0; }
             }
             if n > m { for i in worker * n / workers..(worker + 1) * n / workers { b[i] *= 2.0; } }
         }
         codelet fn div_up(a: int, b: int) -> int { (a + b - 1) / b }",
        |n, m| vec![vec![n, m], vec![n]],
    );
}

#[test]
fn strides_of_workers_have_closed_forms() {
    closed_forms_hold(
        "multi codelet c(in a: f32[n, m], inout b: f32[n]) {
             for i in worker..n by workers { for j in 0..m { b[i] += a[i, j] * f32(i); } }
             for i in worker..n by workers, j in 1..m by workers { b[i] *= a[i, j]; }
         }",
        |n, m| vec![vec![n, m], vec![n]],
    );
}

fn refused(source: &str, reason: &str) {
    let world = World::new(source);
    let mut diagnostics = Diagnostics::default();
    assert!(world.compile(&[], &mut diagnostics).is_none(), "{source}");
    let found: Vec<_> = diagnostics.iter().map(|d| (d.code.to_string(), d.message.clone())).collect();
    let message = format!("`c` cannot be pipelined: {reason}");
    assert_eq!(found, [("codelet::pipelined".to_string(), message)]);
}

#[test]
fn loops_that_cannot_be_pipelined_are_rejected() {
    let body = |body: &str| format!("#[pipelined] codelet c(inout a: f32[n], in b: f32[n], in k: i32[n]) {{ {body} }}");
    refused(&body("a[0] = 1.0;"), "there is no loop");
    refused(&body("for i in 0..n { if b[i] > 0.0 { a[i] = b[i]; } }"), "there is a branch in the loop");
    refused(&body("for i in 0..n { if b[i] > 0.0 { break; } a[i] = b[i]; }"), "there is a branch in the loop");
    refused(
        &body("let mut i = 0; while i < n { a[i] = 1.0; i += 1; }"),
        "only the data decide the trip count of a `while`",
    );
    refused(&body("for i in 1..n { a[i] = a[i - 1] + b[i]; }"), "an iteration may read what another iteration writes");
    refused(
        &body("let mut x = 1.0; for i in 0..n { x = x * b[i] + 1.0; } a[0] = x;"),
        "an iteration needs a value of the iteration before it, and not as a reduction",
    );
}

#[test]
fn reductions_and_gathers_can_be_pipelined() {
    let body = |body: &str| format!("#[pipelined] codelet c(inout a: f32[n], in b: f32[n], in k: i32[n]) {{ {body} }}");
    for accepted in [
        "a[0] = sum i in 0..n { a[i] * b[i] };",
        "let mut x = 0.0; for i in 0..n { x += b[i]; } a[0] = x;",
        "for j in 0..n { for i in 0..n { a[i] += b[j] * b[i]; } }",
        "for i in 0..n { a[i] = b[int(k[i])]; }",
        "for i in 0..n { a[i] = if b[i] > 0.0 { b[i] } else { 0.0 }; }",
    ] {
        compiled(&body(accepted));
    }
}

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
    assert_eq!(alone.1.to_string(), "16, ⌈k/8⌉·⌈n/16⌉·(196 + 48·m) cycles of the matrix unit");
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
    assert_eq!(parts(&apart, &shapes, &MemFacts::granting(apart.1.wants())).1, 4 * (pass(12) - 32));
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

#[test]
fn sums_of_blocks_are_bounded_before_a_run_and_counted_in_one() {
    let codelet = "codelet c(in x: f32[n], inout y: f32[m]) {
        for i in 0..m { y[i] = sum j in i * 100..min(n, (i + 1) * 100) { x[j] }; }
    }";
    let (codelet, cost) = cost(codelet);
    let (n, m) = (10_050u64, 101u64);
    let sizes = sizes(&codelet, &[&[n], &[m]]);
    let facts = none();
    let eval = |counters: &[u64]| {
        cost.eval(&CostInputs { sizes: &sizes, consts: &[0; 8], worker: 0, workers: 6, counters, facts: &facts })
    };
    let data = [Data { shape: vec![n], bits: vec![0; n as usize] }, Data { shape: vec![m], bits: vec![0; m as usize] }];
    let (_, counters) = run_costed(&codelet, &data, cost.points());
    let (before, counted) = (eval(&[]), eval(&counters));
    assert!(counted > 2 * n && before >= counted && before < counted + 50 * 6, "{before} and {counted}");
}

#[test]
fn single_vertices_fill_contexts_in_queue_order() {
    let costs = TileCosts { workers: 2, launch_cycles: 0, supervisor_cycles: 0, ..costs() };
    let one = |c: &[u64]| tile_cycles(c.iter().map(|&c| Busy::One(c)), &costs);
    assert_eq!(one(&[5, 3, 3, 3]), 8);
    assert_eq!(one(&[3, 3, 3, 5]), 8);
    assert_eq!(tile_cycles([Busy::One(5), Busy::One(1), Busy::All(4), Busy::One(2)], &costs), 11);
    assert_eq!(tile_cycles([], &costs), 0);
}

/// F23: four columns take two bundles for each row that is added.
#[test]
fn f23_sums_of_rows_load_two_lanes_at_once() {
    let sums = cost(
        "#[pipelined] codelet reduce(in x: f32[p, n, 4], out y: f32[n, 4]) {
             for j in 0..n {
                 let mut a = 0.0;
                 let mut b = 0.0;
                 let mut c = 0.0;
                 let mut d = 0.0;
                 for i in 0..p {
                     a += x[i, j, 0];
                     b += x[i, j, 1];
                     c += x[i, j, 2];
                     d += x[i, j, 3];
                 }
                 y[j, 0] = a;
                 y[j, 1] = b;
                 y[j, 2] = c;
                 y[j, 3] = d;
             }
         }",
    );
    let of = |p: u64, n: u64| bundles(&sums, &[&[p, n, 4], &[n, 4]], &none());
    assert_eq!(of(66, 16) - of(64, 16), 2 * 2 * 16);
}

/// The index of a field of many dimensions is one address, as that of a field of few is.
#[test]
fn dimensions_of_length_one_take_no_time_in_the_innermost_loop() {
    let flat = cost("#[pipelined] codelet f(in x: f32[n], out y: f32) { y = sum l in 0..n { x[l] }; }");
    let deep = cost(
        "#[pipelined] codelet f(in x: f32[a, b, c, n, d], out y: f32[a, b, c, d]) {
             for i in 0..a, j in 0..b, k in 0..c, m in 0..d { y[i, j, k, m] = sum l in 0..n { x[i, j, k, l, m] }; }
         }",
    );
    let of_flat = |n: u64| bundles(&flat, &[&[n], &[]], &none());
    let of_deep = |n: u64| bundles(&deep, &[&[1, 1, 1, n, 1], &[1, 1, 1, 1]], &none());
    // Elements of one column are loaded one by one, those of a row in pairs.
    assert_eq!(of_deep(200) - of_deep(100), 2 * (of_flat(200) - of_flat(100)));
}
