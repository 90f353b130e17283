//! What the workers of a `multi` codelet write together, against runs of all workers.

use super::*;
use girder_codelet::{Cover, facts_on};

/// `y[i, j]` is written for all j.
const ROW: &str = "for j in 0..m { y[i, j] = 1.0; }";

/// Ways of sharing `0..n`. `ROW` writes row `i`.
const WAYS: [&str; 20] = [
    "for i in worker * n / workers..(worker + 1) * n / workers { ROW }",
    "for i in n * worker / workers..n * (1 + worker) / workers { ROW }",
    "let (lo, hi) = (worker * n / workers, (worker + 1) * n / workers); for i in lo..hi { ROW }",
    "let (lo, hi) = share(n, worker, workers); for i in lo..hi { ROW }",
    "for i in worker..n by workers { ROW }",
    "let step = workers; for i in workers - 1 - worker..n by step { ROW }",
    "let each = (n + workers - 1) / workers; for i in worker * each..min((worker + 1) * each, n) { ROW }",
    "let (each, more) = (n / workers, n % workers);
     let lo = worker * each + min(worker, more);
     let mut hi = lo + each;
     if worker < more { hi += 1; }
     for i in lo..hi { ROW }",
    "let lo = worker * (n / workers);
     let mut hi = lo + n / workers;
     if worker == workers - 1 { hi = n; }
     for i in lo..hi { ROW }",
    "for i in (worker + 1) * n / workers - 1..worker * n / workers - 1 by -1 { ROW }",
    "for t in 0..(n - worker + workers - 1) / workers { let i = worker + t * workers; ROW }",
    "if worker >= n { return; } for i in worker..n by workers { ROW }",
    "if worker == 0 { for i in 0..n { ROW } }",
    "for b in 4 * worker..n by 4 * workers { for i in b..min(b + 4, n) { ROW } }",
    "for h in worker..n / 2 by workers { for i in 2 * h..2 * h + 2 { ROW } }
     if worker == 0 && n % 2 == 1 { let i = n - 1; ROW }",
    "let mut i = worker; while i < n { ROW i += workers; }",
    "for i in 0..n { if i % workers == worker { ROW } }",
    "for i in 0..n { if i % workers != worker { continue; } ROW }",
    "for p in worker..n * m by workers { y[p / m, p % m] = 1.0; }",
    "let (lo, hi) = (worker * n / workers, (worker + 1) * n / workers); amp(y[lo..hi], x[lo..hi], w, first: true);",
];

/// Ways that often leave an element out.
const NEARLY: [&str; 12] = [
    "for i in worker..n - 1 by workers { ROW }",
    "for i in worker + 1..n by workers { ROW }",
    "for i in worker..n by workers + 1 { ROW }",
    "let each = n / workers; for i in worker * each..(worker + 1) * each { ROW }",
    "for i in worker * n / workers..(worker + 1) * n / workers - 1 { ROW }",
    "let mut i = worker; while i < n { ROW i += workers; if i > 5 { break; } }",
    "let mut i = worker; while i < n { if x[i, 0] > 0.5 { break; } ROW i += workers; }",
    "for i in 0..n { if i % workers == worker && i != 3 { ROW } }",
    "for i in 0..n { if i % workers == worker && x[i, 0] > 0.5 { ROW } }",
    "for i in worker..n by workers { if x[i, 0] > 0.5 { return; } ROW }",
    "if worker > 0 { return; } for i in 0..min(n, 6) { ROW }",
    "let (lo, hi) = (worker * n / workers, (worker + 1) * n / workers); amp(y[lo..hi], x[lo..hi], w);",
];

fn source(way: &str) -> String {
    let head = "multi codelet c(in x: f32[n, k], in w: f32[k, m], out y: f32[n, m])";
    let share = "codelet fn share(n: i64, a: i64, of: i64) { return (a * n / of, (a + 1) * n / of); }";
    format!("{head} {{ {} }} {share}", way.replace("ROW", ROW))
}

/// Calls `f` with whether `y` is called fully written, and whether a run writes it, for many sizes and workers.
fn for_all_sizes(way: &str, f: impl Fn(bool, bool, &str)) {
    let world = World::new(&source(way));
    let mut diagnostics = Diagnostics::default();
    let codelet = world.compile(&[], &mut diagnostics);
    let reported: Vec<_> = diagnostics.iter().map(|d| d.render(&world.map, false, 100)).collect();
    let codelet = codelet.unwrap_or_else(|| panic!("{}", reported.join("\n")));
    let y = FieldId::from_u32(2);
    for (n, m, workers) in (0..=40).flat_map(|n| (1..=7).map(move |workers| (n, 1 + n % 3, workers))) {
        let filled = |shape: [u64; 2], v: f32| array(&shape, &vec![v; (shape[0] * shape[1]) as usize]);
        let mut memory = Memory(vec![filled([n, 2], 0.25), filled([2, m], 2.0), filled([n, m], f32::NAN)]);
        // Some rows differ, for conditions on data.
        memory.0[0].bits.iter_mut().skip(9).step_by(11).for_each(|v| *v = 1f32.bits());
        let shapes: Vec<_> = memory.0.iter().map(|d| d.shape.clone().into()).collect();
        let sizes = bind_sizes(&codelet, &shapes, &[]).expect("shapes fit");
        let facts = facts_on(&codelet, &sizes, workers);
        run(&codelet, &sizes, &mut memory, &[0; 3], workers, &world.session).expect("no check fails");
        let written = memory.0[2].bits.iter().all(|&v| !f32::from_bits(v as u32).is_nan());
        f(facts.cover[y] == Cover::Full, written, &format!("{way}\nn = {n}, m = {m}, workers = {workers}"));
    }
}

#[test]
fn shares_cover_however_they_are_written() {
    for way in WAYS {
        for_all_sizes(way, |full, written, case| assert!(full && written, "{full} {written}: {case}"));
    }
}

#[test]
fn what_no_worker_writes_is_not_covered() {
    for way in NEARLY {
        for_all_sizes(way, |full, written, case| assert!(!full || written, "{case}"));
    }
}
