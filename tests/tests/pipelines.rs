//! Pipelines: every schedule gives the bits of one loop over the micro-batches, and stages overlap as it says.

use girder::{AnyStage, Stage};
use girder_ir::graph::Graph;
use girder_tests::{MODES, Outcome, Program};

#[path = "pipelines/stages.rs"]
mod stages;

#[path = "pipelines/phases.rs"]
mod phases;

#[path = "pipelines/random.rs"]
mod random;

const SCHEDULES: [&str; 4] = ["1f1b", "gpipe", "interleaved", "sharded"];

/// Checks that two outcomes print the same and leave the same parameters.
fn agree(found: &Outcome, expected: &Outcome, context: &str) {
    assert!(found.failure.is_none() && expected.failure.is_none(), "{context}: {:?}", found.failure);
    assert_eq!(found.prints, expected.prints, "{context}");
    assert!(!found.prints.is_empty(), "{context}");
}

/// Runs a program in all modes.
fn run(text: &str, target: &str) -> Outcome {
    Program::text(text).target(target).compile(&MODES).run_on(&MODES, &[1, 2])
}

/// A network of three layers in three stages, with a skip connection, against the same text without stages.
const NETWORK: &str = "
use optim;
use random;
let count = 5;
var xs: f32[15, 2, 6] = random.normal(seed: 8);
var ys: f32[15, 2, 3] = random.normal(seed: 9);
var turn_x: i32;
var turn_y: i32;
param w0: f32[6, 5] = random.normal(seed: 1, scale: 0.4);
param w1: f32[5, 5] = random.normal(seed: 2, scale: 0.4);
param w2: f32[5, 3] = random.normal(seed: 3, scale: 0.4);
let net = (w0: w0, w1: w1, w2: w2);
fn input() { let x = xs[turn_x]; turn_x += 1; return x; }
fn target() { let y = ys[turn_y]; turn_y += 1; return y; }
fn squared(d: f32[..s]) { return mean(d * d); }
fn shown() { print(\"w0\", w0); print(\"w1\", w1); print(\"w2\", w2); }
";

fn staged(schedule: &str, recompute: &str) -> String {
    format!(
        "{NETWORK}
        program main() {{
            repeat 3 {{
                let (loss, g) = pipeline(micro_batches: count, schedule: \"{schedule}\") {{
                    let a = stage on ipu(0) {{ tanh(input() @ w0) }};
                    {recompute} let b = stage on ipu(1) {{ tanh(a @ w1) }};
                    let loss = stage on ipu(2) {{ squared((a + b) @ w2 - target()) }};
                    (loss, grad(loss, wrt: net))
                }};
                optim.sgd(net, g, rate: 0.1);
                print(\"loss\", loss);
            }}
            shown();
        }}"
    )
}

fn looped() -> Outcome {
    let text = format!(
        "{NETWORK}
        program main() {{
            var total: f32;
            var s0: f32[6, 5];
            var s1: f32[5, 5];
            var s2: f32[5, 3];
            repeat 3 {{
                total <- 0.0; s0 <- 0.0; s1 <- 0.0; s2 <- 0.0;
                repeat count {{
                    let a = tanh(input() @ w0);
                    let b = tanh(a @ w1);
                    let loss = squared((a + b) @ w2 - target());
                    let g = grad(loss, wrt: net);
                    total += loss; s0 += g.w0; s1 += g.w1; s2 += g.w2;
                }}
                optim.sgd(net, (w0: s0, w1: s1, w2: s2), rate: 0.1);
                print(\"loss\", total);
            }}
            shown();
        }}"
    );
    run(&text, "small")
}

#[test]
fn schedules_give_the_bits_of_a_loop() {
    let expected = looped();
    for schedule in SCHEDULES {
        for recompute in ["", "#[recompute]"] {
            let found = run(&staged(schedule, recompute), "small-4");
            agree(&found, &expected, &format!("{schedule} {recompute}"));
        }
    }
}

#[test]
fn gradients_accumulate_without_a_pipeline() {
    let text = format!(
        "{NETWORK}
        program main() {{
            repeat 3 {{
                let (loss, g) = optim.accumulated(count, fn() {{
                    let a = tanh(input() @ w0);
                    let b = tanh(a @ w1);
                    let loss = squared((a + b) @ w2 - target());
                    (loss, grad(loss, wrt: net))
                }});
                optim.sgd(net, g, rate: 0.1);
                print(\"loss\", loss);
            }}
            shown();
        }}"
    );
    agree(&run(&text, "small"), &looped(), "accumulated");
}

/// Pipelines with odd stages: uneven ones, several on one IPU, one over two, skip connections, parts computed again,
/// and fewer micro-batches than phases.
#[test]
fn random_pipelines_give_the_bits_of_a_loop() {
    for seed in 0..24 {
        let model = random::Pipeline::new(seed);
        let expected = Program::text(model.looped()).target("small-4").compile(&MODES).run_on(&MODES, &[1]);
        for schedule in SCHEDULES {
            let text = model.staged(schedule);
            agree(&run(&text, "small-4"), &expected, &format!("seed {seed}, {schedule}:\n{text}"));
        }
    }
}

/// A stage that is computed again counts its micro-batches and updates its statistics once for each.
#[test]
fn recomputed_stages_change_their_state_once() {
    let text = |schedule: &str, attribute: &str| {
        format!(
            "use nn; use optim; use random;
            param w: f32[6, 5] = random.normal(seed: 1);
            param v: f32[5, 3] = random.normal(seed: 2);
            var xs: f32[5, 4, 6] = random.normal(seed: 3);
            var ys: f32[5, 4, 3] = random.normal(seed: 4);
            state mu: f32[5]; state va: f32[5] = 1.0; state turn: i32; state at: i32;
            program main() {{
                repeat 2 {{
                    let (loss, g) = pipeline(micro_batches: 5, schedule: \"{schedule}\") {{
                        {attribute} let a = stage on ipu(0) {{
                            let x = xs[turn % 5];
                            turn += 1;
                            tanh(x @ w)
                        }};
                        {attribute} let b = stage on ipu(1) {{ relu(nn.batch_norm(a, mean: mu, variance: va)) }};
                        {attribute} let c = stage on ipu(2) {{
                            let y = ys[at % 5];
                            at += 1;
                            nn.mse((b + a) @ v, y)
                        }};
                        (c, grad(c, wrt: (w, v)))
                    }};
                    optim.sgd((w, v), g, rate: 0.05);
                    print(\"loss\", loss);
                }}
                print(\"w\", w); print(\"v\", v); print(\"mu\", mu); print(\"va\", va); print(\"turns\", turn + at);
            }}"
        )
    };
    let kept = run(&text("sharded", ""), "small-4");
    for schedule in ["1f1b", "gpipe", "interleaved", "sharded"] {
        agree(&run(&text(schedule, "#[recompute]"), "small-4"), &kept, schedule);
    }
}

#[test]
fn a_pipeline_without_gradients_sends_packets_in_order() {
    let text = |schedule: &str| {
        format!(
            "use random;
            stream ys: out f32[4];
            var xs: f32[9, 4] = random.normal(seed: 3);
            var turn: i32;
            var seen: i32;
            program main() {{
                let total = pipeline(micro_batches: 9, schedule: \"{schedule}\") {{
                    let a = stage on ipu(3) {{ let x = xs[turn]; turn += 1; x * 2.0 }};
                    let b = stage on ipu(1) {{ a + 1.0 }};
                    let c = stage on ipu(2) {{ ys <- a * b; seen += 1; sum(b - a) }};
                    (sum: c, count: seen)
                }};
                print(\"sum\", total.sum);
                print(\"count\", total.count);
            }}"
        )
    };
    let expected = run(&text("sharded"), "small-4");
    assert_eq!(expected.prints[0], "sum 36.0");
    assert_eq!(expected.prints[1], "count 45");
    for schedule in SCHEDULES {
        let found = run(&text(schedule), "small-4");
        assert_eq!(found.prints, expected.prints, "{schedule}");
        assert_eq!(found.packets, expected.packets, "{schedule}");
    }
}

fn elaborated(text: &str, target: &str) -> Graph {
    match Program::text(text).target(target).stage(girder::After::ELABORATE) {
        Ok(AnyStage::Graph(graph)) => graph,
        Ok(_) => panic!("the stage was asked for"),
        Err(e) => panic!("{e}"),
    }
}

/// Four stages of one vertex each: 50,000 cycles forwards and 100,000 backwards.
fn balanced(micro_batches: u64, schedule: &str) -> String {
    format!(
        "#[cycles(50000)] codelet ahead(in x: f32[n], out y: f32[n]) {{ for i in 0..n {{ y[i] = x[i] + x[0]; }} }}
        #[cycles(100000)] codelet back(in x: f32[n], in dy: f32[n], out dx: f32[n]) {{
            for i in 0..n {{ dx[i] = dy[i] + x[0]; }}
        }}
        fn layer(x: f32[n]) -> f32[n] {{
            var y: f32[n];
            compute {{ vertex ahead(x: x, y: y); }}
            return y;
        }}
        fn layer_back(x: f32[n], dy: f32[n]) -> f32[n] {{
            var dx: f32[n];
            compute {{ vertex back(x: x, dy: dy, dx: dx); }}
            return dx;
        }}
        grad layer(x; y; dy) {{ return (x: layer_back(x, dy)); }}
        param w: f32[32] = 1.0;
        program main() {{
            let g = pipeline(micro_batches: {micro_batches}, schedule: \"{schedule}\") {{
                let a = stage on ipu(0) {{ layer(w) }};
                let b = stage on ipu(1) {{ layer(a) }};
                let c = stage on ipu(2) {{ layer(b) }};
                let d = stage on ipu(3) {{ sum(layer(c)) }};
                (d, grad(d, wrt: w))
            }};
            print(\"d\", g[0]);
            print(\"g\", g[1]);
        }}"
    )
}

#[test]
fn stages_of_one_forward_one_backward_overlap() {
    let cycles = |schedule| Program::text(balanced(16, schedule)).target("bow-2000").estimate("main").cycles;
    let slots = 16 + 2 * 3;
    let (overlapped, sharded) = (cycles("1f1b"), cycles("sharded"));
    assert!(overlapped * 100 <= slots * 150_000 * 106, "{overlapped}");
    assert!(sharded >= 16 * 4 * 150_000, "{sharded}");
}

/// Stage `s` of `S` keeps 2(S - 1 - s) micro-batches, and no schedule keeps more than there are.
#[test]
fn a_ring_has_a_row_for_each_micro_batch_between() {
    let rows = |text: &str| {
        let graph = elaborated(text, "bow-2000");
        let rings = graph.vars.values().filter(|v| v.name.ends_with(".ring"));
        let mut rows: Vec<(u32, u64)> = rings.map(|v| (v.within.expect("a place").first / 1472, v.shape[0])).collect();
        rows.sort_unstable();
        rows
    };
    // The first stage reads a parameter, which stays.
    assert_eq!(rows(&balanced(16, "1f1b")), [(1, 4), (2, 2)]);
    assert_eq!(rows(&balanced(3, "1f1b")), [(1, 3), (2, 2)]);
    assert_eq!(rows(&balanced(7, "gpipe")), [(1, 7), (2, 7), (3, 7)]);
    assert_eq!(rows(&balanced(16, "sharded")), []);
}

/// A stage and its reverse are made once, whatever the number of slots.
#[test]
fn phases_are_made_once() {
    let sets = |n| elaborated(&balanced(n, "1f1b"), "bow-2000").sets.len();
    assert_eq!(sets(9), sets(1000));
    let texts = |n| {
        let program = Program::text(balanced(n, "1f1b")).target("bow-2000");
        let stage = program.stage(Stage::Graph).unwrap_or_else(|e| panic!("{e}"));
        girder::text::print(&stage, program.machine()).len()
    };
    assert!(texts(1000) <= texts(9) + 100, "{} and {}", texts(1000), texts(9));
}

/// Four dense layers on four processors, and what happens to the gradient.
fn trained(update: &str) -> String {
    format!(
        "use optim; use nn;
        let net = list k in 0..4 {{ nn.dense(256, 256, seed: k) }};
        var xs: f32[8, 16, 256] = 1.0;
        var t: i32;
        program main() {{
            let (l, g) = pipeline(micro_batches: 16) {{
                let mut x = stage on ipu(0) {{ let q = xs[t % 8]; t += 1; q }};
                for k in 0..4 {{ let u = stage on ipu(k) {{ nn.relu(net[k].apply(x)) }}; x = u; }}
                let l = stage on ipu(3) {{ mean(x * x) }};
                (l, grad(l, wrt: net))
            }};
            {update}
            print(\"l\", l);
        }}"
    )
}

/// An optimiser, with its slots and what it makes of the gradient, is on the processors of the parameters. Stages would
/// otherwise wait for one another.
#[test]
fn an_optimiser_is_on_the_processors_of_its_parameters() {
    let estimate = |update: &str| Program::text(trained(update)).target("bow-2000").estimate("main");
    let by_hand = "for k in 0..4 { on ipu(k) { optim.adamw(net[k], g[k], rate: 0.01); } }";
    let by_hand = estimate(by_hand).cycles;
    for update in [
        "optim.adamw(net, g, rate: 0.01);",
        "optim.adamw(net, optim.clip_by_norm(g, 1.0), rate: 0.01);",
        "optim.lamb(net, g, rate: 0.01);",
        "optim.sgd(net, g, rate: 0.01, momentum: 0.9);",
    ] {
        let cycles = estimate(update).cycles;
        assert!(cycles * 100 <= by_hand * 105, "{update} {cycles} against {by_hand}");
    }
}

/// A stage that only reads or writes has no vertices, but takes part in the report.
#[test]
fn a_stage_may_only_send_packets() {
    let text = "var xs: f32[8] = 1.0; stream lo: out f32[8];
        program main() {
            let s = pipeline(micro_batches: 4) {
                let a = stage on ipu(0) { sqrt(xs) };
                stage on ipu(1) { lo <- a; }
                stage on ipu(2) { sum(a) }
            };
            print(\"s\", s);
        }";
    assert!(Program::text(text).target("small-4").estimate("main").cycles > 0);
}

/// Processors without a stage do not wait.
#[test]
fn a_bubble_is_that_of_the_processors_in_use() {
    let text = "var x: f32[64] = 1.0; param w: f32[64] = 2.0;
        program main() {
            let (l, g) = pipeline(micro_batches: 6) {
                let a = stage on ipu(0) { tanh(x * w) };
                let b = stage on ipu(1) { sum(a * w) };
                (b, grad(b, wrt: w))
            };
            print(\"l\", l);
            print(\"g\", g);
        }";
    let bubble = |target: &str| {
        let stages = Program::text(text).target(target).estimate("main").stages.expect("there are two stages");
        stages.bubble
    };
    assert!((bubble("small-2") - bubble("small-8")).abs() < 0.01, "{} {}", bubble("small-2"), bubble("small-8"));
}

/// A number that two stages use is on the processors of both.
#[test]
fn a_number_of_two_stages_crosses_no_link() {
    let cycles = |second: &str| {
        let text = format!(
            "fn scale<T: float>(x: T[..s], factor: T) -> T[..s] {{ return x * factor; }}
            var xs: f32[64] = 1.0;
            program main() {{
                let s = pipeline(micro_batches: 8) {{
                    let a = stage on ipu(0) {{ scale(xs, 2.0) }};
                    stage on ipu(1) {{ sum(scale(a, {second})) }}
                }};
                print(\"s\", s);
            }}"
        );
        Program::text(text).target("small-2").estimate("main").cycles
    };
    assert_eq!(cycles("2.0"), cycles("3.0"));
}

/// Plans of products are made once for all processors of one size.
#[test]
fn plans_are_shared_by_equal_places() {
    let steps = |layers: u32| {
        let text = format!(
            "use nn;
            let net = list k in 0..{layers} {{ nn.dense(100, 100, seed: k) }};
            var x: f32[40, 100] = 1.0;
            program main() {{
                let mut y = copy(x);
                for k in 0..{layers} {{ on ipu(k) {{ y = net[k].apply(y); }} }}
                print(\"y\", sum(y));
            }}"
        );
        let compiles = |steps: u32| {
            let program = Program::text(text.clone()).target("bow-2000");
            program.limit(&format!("static_steps={steps}")).stage(girder::After::ELABORATE).is_ok()
        };
        (0..30).map(|k| 100 << k).find(|&steps| compiles(steps)).expect("some limit is enough")
    };
    assert!(steps(4) <= 2 * steps(1), "{} {}", steps(4), steps(1));
}
