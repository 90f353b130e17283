//! Recurrent layers give what loops over numbers give.

use girder_tests::Program;

/// A number for a position of a tensor.
fn number(salt: usize, k: usize) -> f64 {
    ((k * 37 + salt * 11) % 19) as f64 / 10.0 - 0.9
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// The sizes of a layer and of its sequence.
#[derive(Clone, Copy)]
struct Sizes {
    t: usize,
    b: usize,
    m: usize,
    n: usize,
    gates: usize,
}

impl Sizes {
    /// The sums of the gates from an input, with the bias, and those from a state.
    fn gates(&self, at: usize, state: &[f64], row: usize) -> (Vec<f64>, Vec<f64>) {
        let all = self.gates * self.n;
        let x = |j: usize| number(1, (at * self.b + row) * self.m + j);
        let from_x = |g: usize| (0..self.m).map(|j| x(j) * number(2, j * all + g)).sum::<f64>() + number(4, g);
        let from_h = |g: usize| (0..self.n).map(|j| state[j] * number(3, j * all + g)).sum::<f64>();
        ((0..all).map(from_x).collect(), (0..all).map(from_h).collect())
    }

    /// All states of a layer, whose step is given: it changes a state and the cell of an LSTM.
    fn states(&self, reverse: bool, step: impl Fn(&[f64], &[f64], &mut [f64], &mut [f64])) -> Vec<f64> {
        let mut y = vec![0.0; self.t * self.b * self.n];
        for row in 0..self.b {
            let (mut h, mut c) = (vec![0.0; self.n], vec![0.0; self.n]);
            for k in 0..self.t {
                let at = if reverse { self.t - 1 - k } else { k };
                let (from_x, from_h) = self.gates(at, &h, row);
                step(&from_x, &from_h, &mut h, &mut c);
                let first = (at * self.b + row) * self.n;
                y[first..first + self.n].copy_from_slice(&h);
            }
        }
        y
    }
}

#[test]
fn layers_give_what_loops_give() {
    let (t, b, m, n) = (5, 2, 3, 4);
    for (kind, gates, reverse) in [("rnn", 1, false), ("lstm", 4, true), ("gru", 3, false), ("gru", 3, true)] {
        let sizes = Sizes { t, b, m, n, gates };
        let wanted = sizes.states(reverse, |x, s, h, c| {
            let old = h.to_vec();
            for j in 0..n {
                let of = |g: usize| x[g * n + j] + s[g * n + j];
                match kind {
                    "rnn" => h[j] = of(0).tanh(),
                    "lstm" => {
                        c[j] = sigmoid(of(1)) * c[j] + sigmoid(of(0)) * of(2).tanh();
                        h[j] = sigmoid(of(3)) * c[j].tanh();
                    }
                    _ => {
                        let (reset, keep) = (sigmoid(of(0)), sigmoid(of(1)));
                        let new = (x[2 * n + j] + reset * (s[2 * n + j] + number(5, j))).tanh();
                        h[j] = (1.0 - keep) * new + keep * old[j];
                    }
                }
            }
        });
        let list = |salt: usize, rows: usize, columns: usize| {
            let row =
                |r: usize| format!("{:?}", (0..columns).map(|k| number(salt, r * columns + k)).collect::<Vec<_>>());
            format!("[{}]", (0..rows).map(row).collect::<Vec<_>>().join(", "))
        };
        let all = gates * n;
        let (x, w, u) = (list(1, t * b, m), list(2, m, all), list(3, n, all));
        let (bias, inner) = (list(4, 1, all), list(5, 1, n));
        let of_gru = if kind == "gru" { "l.d <- d[0];" } else { "" };
        let program = Program::text(format!(
            "use nn;
            let l = nn.{kind}({m}, {n}, reverse: {reverse}, init: 0, T: f64);
            const x: f64[{}, {m}] = {x}; const w: f64[{m}, {all}] = {w}; const u: f64[{n}, {all}] = {u};
            const b: f64[1, {all}] = {bias}; const d: f64[1, {n}] = {inner};
            var y: f64[{t}, {b}, {n}]; var z: f64[{t}, {n}]; var joined: f64[{t}, {b}, {n}];
            program main() {{
                l.w <- w; l.u <- u; l.b <- b[0]; {of_gru}
                let sequence = x.reshape([{t}, {b}, {m}]);
                y <- l.apply(sequence);
                // Without a batch, and in two parts.
                z <- l.apply(sequence[.., 1]);
                let (first, second) = if {reverse} {{ (3..{t}, 0..3) }} else {{ (0..3, 3..{t}) }};
                let begun = l.run(sequence[first]);
                joined[first] <- begun.y;
                joined[second] <- l.apply(sequence[second], {});
            }}",
            t * b,
            if kind == "lstm" { "(h: begun.h, c: begun.c)" } else { "begun.h" },
        ));
        let outcome = program.run_everywhere();
        let near = |found: &[f64], wanted: &[f64]| {
            found.len() == wanted.len() && found.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-12)
        };
        let y = outcome.get::<f64>("y");
        assert!(near(&y, &wanted), "{kind}: {y:?} against {wanted:?}");
        assert_eq!(outcome.get::<f64>("joined"), y, "{kind}");
        let second: Vec<f64> = (0..t).flat_map(|k| &y[(k * b + 1) * n..(k * b + 2) * n]).copied().collect();
        assert!(near(&outcome.get::<f64>("z"), &second), "{kind}");
    }
}
