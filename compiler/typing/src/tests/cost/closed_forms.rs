//! Closed forms of costs, compared with the counts of a run.

use super::*;

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
