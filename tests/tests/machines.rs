//! Library results have the same bits on every machine, in every mode.

use girder_engine::Mode;
use girder_tests::{Outcome, Program};

const MACHINES: [&str; 4] = ["small", "small-8", "gc200", "bow-pod16"];
const MODES: [Mode; 3] = [Mode::Interpret, Mode::Exact, Mode::Fast];

/// A program that reduces, normalises and multiplies `n` elements.
fn program(n: usize) -> String {
    format!(
        "use nn;
        codelet harmonic(out x: f32[n]) {{ for i in 0..n {{ x[i] = 1.0 / f32(i + 1); }} }}
        var x: f32[{n}];
        var total: f32;
        var average: f32;
        var dot: f32;
        var row: f32[1, {n}];
        var by_rows: f32[10];
        var running: f32[{n}];
        var long: f32[10, 10];
        var by_columns: f32[{columns}];
        var index: i32[300];
        var gathered: f32[300];
        var added: f32[{n}];
        codelet spread(out index: i32[m]) {{ for i in 0..m {{ index[i] = i32(i) * 7919 % {n} / 10; }} }}
        program main() {{
            compute {{ vertex harmonic(x: x); }}
            total <- sum(x);
            running <- cumsum(x);
            average <- mean(x);
            dot <- x @ x;
            row <- nn.softmax(x.expand(0));
            long <- x.reshape([10, {columns}]) @ x.reshape([{columns}, 10]);
            by_rows <- sum(x.reshape([10, {columns}]), axis: 1);
            by_columns <- sum(x.reshape([10, {columns}]), axis: 0);
            compute {{ vertex spread(index: index); }}
            gathered <- gather(x, index);
            added <- x;
            scatter_add(added, index, gathered * 0.3);
        }}",
        columns = n / 10
    )
}

/// A program that draws `n` numbers of each kind, at load and at run time, and drops.
fn draws(n: usize) -> String {
    format!(
        "use random;
        param w: f32[{n}] = random.normal(seed: 1);
        state truncated: f64[{n}] = random.truncated_normal(seed: 1, scale: 0.5);
        var uniform: f32[{n}];
        var normal: f64[{n}];
        var integers: i32[{n}];
        var order: i32[700];
        var dropped: f32[{n}];
        var gradient: f32[{n}];
        program main() {{
            repeat 2 {{
                uniform <- random.uniform([{n}]);
                normal <- random.normal([{n}], T: f64);
                integers <- random.integers([{n}], lo: -5, hi: 50, seed: 9);
                order <- random.permutation(700, seed: 3);
                let y = random.dropout(w, 0.3);
                dropped <- y;
                gradient <- grad(sum(y), wrt: w);
            }}
        }}"
    )
}

#[test]
fn random_numbers_are_the_same_on_every_machine_and_any_number_of_threads() {
    let names = ["w", "truncated", "uniform", "normal", "integers", "order", "dropped", "gradient"];
    let mut first: Option<Vec<Vec<u8>>> = None;
    for machine in MACHINES {
        let compiled = Program::text(draws(4001)).target(machine).over_memory().compile(&MODES);
        for (mode, threads) in [(MODES[0], 1), (MODES[1], 2), (MODES[2], 1), (MODES[2], 3)] {
            let outcome = compiled.run(mode, threads);
            assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
            let found: Vec<Vec<u8>> = names.iter().map(|name| outcome.array(name).bytes.to_vec()).collect();
            assert_eq!(first.get_or_insert_with(|| found.clone()), &found, "{machine}, {mode:?}, {threads} threads");
        }
    }
}

fn results(outcome: &Outcome) -> Vec<Vec<u8>> {
    assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
    let names = ["total", "average", "dot", "row", "by_rows", "by_columns", "long", "gathered", "added", "running"];
    names.iter().map(|name| outcome.array(name).bytes.to_vec()).collect()
}

fn same_everywhere(n: usize, modes: &[Mode]) {
    let mut first: Option<Vec<Vec<u8>>> = None;
    for machine in MACHINES {
        let compiled = Program::text(program(n)).target(machine).over_memory().compile(modes);
        for &mode in modes {
            let found = results(&compiled.run(mode, 2));
            assert_eq!(first.get_or_insert_with(|| found.clone()), &found, "{n} elements on {machine}, {mode:?}");
        }
    }
    let total = f32::from_le_bytes(first.expect("there are machines")[0][..].try_into().expect("one f32"));
    let expected: f64 = (1..=n).map(|i| f64::from(1.0 / i as f32)).sum();
    assert!((f64::from(total) / expected - 1.0).abs() < 1e-6, "{total} {expected}");
}

#[test]
fn sums_of_many_elements_are_the_same_on_every_machine() {
    same_everywhere(100_000, &MODES);
}

#[test]
fn sums_of_a_million_elements_are_the_same_on_every_machine() {
    same_everywhere(1_000_000, &[Mode::Fast]);
}

#[test]
fn sums_around_the_length_of_two_blocks_are_the_same_on_every_machine() {
    for n in [10, 60, 70, 130, 640, 650, 1290] {
        same_everywhere(n, &MODES);
    }
}

/// Losses, norms and attention of rows of several blocks, with their gradients.
const NETWORK: &str = "
    use nn;
    codelet waves(out x: f32[n], const step: f32) { for i in 0..n { x[i] = sin(step * f32(i)); } }
    var x: f32[3, 70, 2, 5];
    var gain: f32[700];
    var loss: f32;
    var dx: f32[3, 70, 2, 5];
    var dgain: f32[700];
    program main() {
        compute { vertex waves(x: x.flatten(), step: 0.37); vertex waves(x: gain, step: 0.71); }
        let y = nn.attention(x, x * 2.0, x, causal: true);
        let z = nn.layer_norm(y.reshape([3, 700]), gain, gain) + nn.rms_norm(x.reshape([3, 700]));
        let total = nn.cross_entropy(z, i32([3, 400, 699]), smoothing: 0.1) + nn.huber(y, x)
            + nn.kl(nn.log_softmax(z), nn.softmax(z * 0.5));
        let g = grad(total, wrt: (x: x, gain: gain));
        loss <- total;
        dx <- g.x;
        dgain <- g.gain;
    }";

#[test]
fn networks_are_the_same_on_every_machine() {
    let mut first: Option<Vec<Vec<u8>>> = None;
    for machine in ["small", "small-8", "gc200"] {
        let outcome = Program::text(NETWORK).target(machine).over_memory().run_everywhere();
        let found: Vec<Vec<u8>> = ["loss", "dx", "dgain"].map(|name| outcome.array(name).bytes.to_vec()).into();
        assert_eq!(first.get_or_insert_with(|| found.clone()), &found, "{machine}");
    }
}
