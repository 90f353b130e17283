//! The costs of codelets on a tile, from their text: the published figures of the model, and closed forms compared with
//! counts.
//!
//! Figures have the names of `docs/cycles.md`.

mod closed_forms;
mod matrix_unit;

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
    let apart = MemFacts::granting(triad.1.requests());
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
    assert_eq!(per_vector(&MemFacts::granting(add.1.requests())), 2);
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
