//! The phases of a pipeline: each stage is one in each direction, whatever its reverse program keeps and adds up.

use crate::pipelines::{SCHEDULES, agree, elaborated, run};
use girder_tests::{MODES, Program};

/// Three stages with a loop, a branch, and a state that its stage alone uses.
fn kept(schedule: &str) -> String {
    format!(
        "use random;
        param w: f32[4] = random.normal(seed: 1, scale: 0.5);
        state m: f32[4] = 1.0;
        var x: f32[3, 4] = random.normal(seed: 5);
        program main() {{
            let (loss, g) = pipeline(micro_batches: 5, schedule: \"{schedule}\") {{
                let a = stage on ipu(0) {{ var h: f32[3, 4]; h <- x; repeat 3 {{ h <- tanh(h * w); }} copy(h) }};
                let b = stage on ipu(1) {{
                    let old = copy(m);
                    let mut h = a * w;
                    h = if sum(h) > 0.0 {{ tanh(h) * h }} else {{ h * h }};
                    m <- 0.9 * old + 0.1 * stopped(mean(h, axis: 0));
                    var y: f32[3, 4];
                    y <- h;
                    repeat 2 {{ y <- if sum(y) > 0.5 {{ y * old }} else {{ sin(y) }}; }}
                    copy(y)
                }};
                let loss = stage on ipu(2) {{ mean(b * b) }};
                (loss, grad(loss, wrt: w))
            }};
            print(\"loss\", loss);
            print(\"g\", g);
            print(\"m\", m);
        }}"
    )
}

#[test]
fn what_the_reverse_keeps_of_loops_and_branches_does_not_divide_a_stage() {
    let expected = run(&kept("sharded"), "small-4");
    for schedule in SCHEDULES {
        agree(&run(&kept(schedule), "small-4"), &expected, schedule);
    }
    let names = |schedule: &str| -> Vec<String> {
        let graph = elaborated(&kept(schedule), "small-4");
        let mut all: Vec<String> = graph.programs.values().map(|p| p.name.to_string()).collect();
        all.sort();
        all
    };
    assert_eq!(names("1f1b"), ["main", "main.a", "main.b", "main.grad.a", "main.grad.b", "main.loss"]);
    let gpipe = ["main", "main.a", "main.b", "main.grad.a", "main.grad.b", "main.grad.loss", "main.loss"];
    assert_eq!(names("gpipe"), gpipe);
}

/// The adjoint of what is used in part begins with zeros, which no stage makes.
#[test]
fn gradients_of_what_is_used_in_part_belong_to_the_stage_that_uses_it() {
    let text = |before: &str, stages: [&str; 4], after: &str| {
        let [a, b, c, d] = stages;
        format!(
            "use random;
            param w: f32[4, 3] = random.normal(seed: 1);
            param v: f32[5] = random.normal(seed: 2);
            var x: f32[2, 3] = random.normal(seed: 3);
            program main() {{
                {before}
                    let a = {a} {{ tanh(x * w[0]) }};
                    let b = {b} {{ tanh(a * w[2] + a) }};
                    let c = {c} {{ b * 2.0 * v[1] }};
                    let d = {d} {{ c[0] * a[1] }};
                    let loss = {d} {{ sum(d * d * v[0..3]) }};
                {after}
            }}"
        )
    };
    let expected = {
        let before = "var gw: f32[4, 3] = 0.0; var gv: f32[5] = 0.0; var gc: f32[2, 3] = 0.0; repeat 4 {";
        let after = "let g = grad(loss, wrt: (w, v, c)); gw += g[0]; gv += g[1]; gc += g[2]; }
            print(\"w\", gw); print(\"v\", gv); print(\"c\", gc);";
        Program::text(text(before, [""; 4], after)).target("small").compile(&MODES).run_on(&MODES, &[1])
    };
    let stages = ["stage on ipu(0)", "stage on ipu(1)", "stage on ipu(2)", "stage on ipu(3)"];
    for schedule in SCHEDULES {
        let before = format!("let g = pipeline(micro_batches: 4, schedule: \"{schedule}\") {{");
        let after = "grad(loss, wrt: (w, v, c)) }; print(\"w\", g[0]); print(\"v\", g[1]); print(\"c\", g[2]);";
        for stages in [stages, ["stage on ipu(1)"; 4]] {
            agree(&run(&text(&before, stages, after), "small-4"), &expected, &format!("{schedule}, {stages:?}"));
        }
    }
    let accumulated = "use optim;
        param w: f32[4] = 1.0;
        program main() {
            let g = optim.accumulated(3, fn() { let loss = sum(w[0..2] * w[0..2]); grad(loss, wrt: w) });
            print(\"g\", g);
        }";
    assert_eq!(run(accumulated, "small").prints, ["g [6.0, 6.0, 0.0, 0.0]"]);
}

fn codes(text: &str) -> Vec<&'static str> {
    Program::text(text).target("small-4").stage_and_codes(girder::Stage::Allocated).1
}

/// What several stages write in parts moves as a whole, and no part is read before it is written.
#[test]
fn a_variable_that_stages_write_in_parts_is_not_read_too_early() {
    let text = |schedule: &str, last: &str| {
        format!(
            "use random;
            param w: f32[4, 4] = random.normal(seed: 1);
            var x: f32[2, 4] = random.normal(seed: 3);
            program main() {{
                let (loss, g) = pipeline(micro_batches: 5, schedule: \"{schedule}\") {{
                    var s: f32[2, 4];
                    let a = stage on ipu(0) {{ tanh(x @ w) }};
                    stage on ipu(1) {{ s[0] <- a[0]; }}
                    stage on ipu(2) {{ s[1, {last}] <- a[1, {last}]; }}
                    let loss = stage on ipu(3) {{ mean(s * s) }};
                    (loss, grad(loss, wrt: w))
                }};
                print(\"loss\", loss);
                print(\"g\", g);
            }}"
        )
    };
    let expected = run(&text("sharded", "0..4"), "small-4");
    for schedule in SCHEDULES {
        assert_eq!(codes(&text(schedule, "0..4")), [""; 0], "{schedule}");
        agree(&run(&text(schedule, "0..4"), "small-4"), &expected, schedule);
        assert_eq!(codes(&text(schedule, "0..3")), ["memory::uninitialised_read"], "{schedule}");
    }
}

/// Words travel only if two stages on different tiles read the same elements of a parameter.
#[test]
fn stages_may_use_parts_of_one_parameter() {
    let text = |other: &str| {
        format!(
            "use random;
            param w: f32[4, 8, 8] = random.normal(seed: 1);
            var x: f32[4, 8] = random.normal(seed: 2);
            program main() {{
                let (l, g) = pipeline(micro_batches: 6) {{
                    let a = stage on ipu(0) {{ tanh(tanh(x @ w[0]) @ w[1]) }};
                    let b = stage on ipu(1) {{ tanh(tanh(a @ w[{other}]) @ w[3]) }};
                    let l = stage on ipu(1) {{ mean(b * b) }};
                    (l, grad(l, wrt: w))
                }};
                w <- w - 0.1 * g;
                print(\"l\", l);
            }}"
        )
    };
    assert_eq!(codes(&text("2")), [""; 0]);
    assert_eq!(codes(&text("1")), ["pipeline::param"]);
}
