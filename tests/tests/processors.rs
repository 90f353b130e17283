//! Programs on several processors: work that the text keeps on different processors does not meet, and takes the time
//! and the memory that it takes alone.

use girder::{AnyStage, Stage};
use girder_engine::Mode;
use girder_ir::graph::VarClass;
use girder_profile::{Profile, StepProfile};
use girder_tests::Program;

fn on(target: &str, text: &str) -> Profile {
    Program::text(text).target(target).estimate("main")
}

/// Returns the cycles of the steps whose names end in `name`, in program order.
fn cycles(profile: &Profile, name: &str) -> Vec<u64> {
    let plain = |step: &StepProfile| step.name.trim_end_matches(|c: char| c == '_' || c.is_ascii_digit()).to_string();
    let is = |step: &&StepProfile| plain(step).ends_with(name);
    profile.steps.iter().filter(is).map(|s| s.total.cycles()).collect()
}

/// Two products, each in the place of its own processor, whose variables are spread over it, or open.
#[test]
fn two_products_take_the_time_of_one() {
    let alone = on(
        "bow-2000",
        "var w: f32[256, 256]; var x: f32[64, 256] = 1; var a: f32[64, 256];
        program main() { on ipu(0) { a <- x @ w; } }",
    );
    for place in ["on ipu", "within ipu", "//"] {
        let text = format!(
            "var w1: f32[256, 256] {place}(0)\n; var x: f32[64, 256] = 1 {place}(0)\n; var a: f32[64, 256] {place}(0)\n;
            var w2: f32[256, 256] {place}(1)\n; var b: f32[64, 256] = 1 {place}(1)\n; var c: f32[64, 256] {place}(1)\n;
            program main() {{ on ipu(0) {{ a <- x @ w1; }} on ipu(1) {{ c <- b @ w2; }} }}"
        );
        let both = on("bow-2000", &text);
        assert_eq!(both.total.bytes_between, 0, "{place}");
        let products = cycles(&both, "product");
        let one = cycles(&alone, "product")[0];
        assert_eq!(products.len(), 2);
        assert!(products.iter().all(|&p| p * 100 <= one * 102), "{place}: {products:?} against {one}");
    }
}

const DENSE: &str = "fn dense(x: f32[b, m], w: f32[m, n], c: f32[n]) -> f32[b, n] { return max(x @ w + c, 0.0); }";

/// A layer on each of four processors, with weights that are parts of one parameter.
#[test]
fn four_branches_take_the_time_of_one() {
    let alone = on(
        "bow-2000",
        &format!(
            "{DENSE} param w: f32[512, 512]; param c: f32[512]; var x: f32[64, 512] = 1; var y: f32[64, 512];
            program main() {{ y <- dense(x, w, c); }}"
        ),
    );
    for (shape, pick) in [("4, ", "[k]"), ("", "")] {
        let mut text = DENSE.to_string();
        for (name, rest) in [("param w", "512, 512"), ("param c", "512"), ("var x", "64, 512"), ("var y", "64, 512")] {
            match pick {
                "" => (0..4).for_each(|k| text += &format!("{name}{k}: f32[{rest}];\n")),
                _ => text += &format!("{name}: f32[{shape}{rest}];\n"),
            }
        }
        text += match pick {
            "" => {
                "let all = [(w0, c0, x0, y0), (w1, c1, x1, y1), (w2, c2, x2, y2), (w3, c3, x3, y3)];
                program main() { par { for k in 0..4 { on ipu(k) {
                    let (w, c, x, y) = all[k];
                    y <- dense(x, w, c);
                } } } }"
            }
            _ => "program main() { par { for k in 0..ipus { on ipu(k) { y[k] <- dense(x[k], w[k], c[k]); } } } }",
        };
        let four = on("bow-2000", &text);
        assert!(four.cycles * 100 <= alone.cycles * 105, "{pick}: {} against {}", four.cycles, alone.cycles);
        assert_eq!(four.total.bytes_between, 0, "{pick}");
    }
}

/// Parameters that are made outside come to the processor of the layer that reads them.
#[test]
fn parameters_follow_their_stage() {
    let layers = "fn layer() { param w: f32[64, 64]; return w; } let net = list k in 0..2 { layer() };";
    let text = format!(
        "{layers} var x: f32[8, 64]; var y: f32[8, 64];
        program main() {{
            let h = on ipu(0) {{ x @ net[0] }};
            on ipu(1) {{ y <- h @ net[1]; }}
        }}"
    );
    let placed = Program::text(text).target("small-2").stage(Stage::Placed).unwrap_or_else(|e| panic!("{e}"));
    let AnyStage::Placed(placed) = placed else { panic!("the stage was asked for") };
    let weights: Vec<_> = placed.vars.iter().filter(|(_, var)| var.class == VarClass::Param).collect();
    for (ipu, (id, var)) in (0..2).zip(weights) {
        let mapping = placed.placement.vars[id].as_ref().expect("it is placed");
        assert!(mapping.runs(var.len()).all(|run| run.2 / 16 == ipu), "{}: {mapping:?}", var.name);
    }
}

/// A branch of a `par` needs no more memory than the same steps one after the other, wherever its vertices are.
#[test]
fn a_branch_of_par_needs_no_more_memory() {
    let text = |par: &str| {
        format!(
            "var x: f32[4096] on tile(0); var y: f32[4096] on tile(0);
            codelet double(in x: f32[n], out y: f32[n]) {{ for i in 0..n {{ y[i] = x[i] * 2.0; }} }}
            program main() {{
                {par} {{
                    {{
                        var a: f32[4096] on tile(1);
                        compute {{ vertex double(x: x, y: a) on tile(1); }}
                        var b: f32[4096] on tile(1);
                        compute {{ vertex double(x: a, y: b) on tile(1); }}
                        var c: f32[4096] on tile(1);
                        compute {{ vertex double(x: b, y: c) on tile(1); }}
                        y <- c;
                    }}
                }}
            }}"
        )
    };
    let (with, without) = (on("small-2", &text("par")), on("small-2", &text("")));
    assert_eq!(with.memory.peak, without.memory.peak);
}

/// A run-time condition waits only for the processors that have a part in its branches.
#[test]
fn conditions_stop_no_other_processor() {
    let text = |cond: &str| {
        format!(
            "#[cycles(1000)] codelet long(inout x: f32) {{ x += 1.0; }}
            var a: f32 on ipu(0); var b: f32 on ipu(1); var flag: bool = true on ipu(1);
            program main() {{
                on ipu(0) {{ repeat 50 {{ compute {{ vertex long(x: a); }} }} }}
                on ipu(1) {{ repeat 50 {{ {cond} {{ compute {{ vertex long(x: b); }} }} }} }}
            }}"
        )
    };
    let with = Program::text(text("if flag")).target("small-2");
    let without = on("small-2", &text(""));
    let profile = with.profile(Mode::Fast, 1);
    // Each processor runs its fifty vertices while the other does.
    assert!(profile.cycles < without.cycles * 3 / 2, "{} and {}", profile.cycles, without.cycles);
}

/// The estimate of a loop over stages on several processors is the time of a run, although the first iterations wait
/// less than later ones.
#[test]
fn an_estimate_waits_until_clocks_are_steady() {
    let text = "
        #[cycles(1000)] codelet quick(in x: f32, out y: f32) { y = x; }
        #[cycles(9000)] codelet slow(in x: f32, out y: f32) { y = x; }
        var x: f32[8] on { 0: 0..1; 16: 1..2; 32: 2..3; 48: 3..4; 64: 4..5; 80: 5..6; 96: 6..7; 112: 7..8; };
        var y: f32[8] on { 0: 0..1; 16: 1..2; 32: 2..3; 48: 3..4; 64: 4..5; 80: 5..6; 96: 6..7; 112: 7..8; };
        program main() {
            repeat 60 {
                for k in 0..8 {
                    compute { if k == 7 { vertex slow(x: x[k], y: y[k]) on tile(16 * k); }
                              else { vertex quick(x: x[k], y: y[k]) on tile(16 * k); } }
                    if k < 7 { x[k + 1] <- y[k]; }
                }
            }
        }";
    let program = Program::text(text).target("small-8");
    assert_eq!(program.estimate("main").cycles, program.profile(Mode::Fast, 2).cycles);
}

/// Words that cross between the processors of two branches are named with their place.
#[test]
fn branches_that_wait_are_named() {
    let text = "
        var x: f32[64] on ipu(0); var y: f32[64] on ipu(1);
        program main() {
            par {
                on ipu(0) { x += 1.0; }
                on ipu(1) {
                    y += 1.0;
                    y <- x[0..64] * 2.0;
                }
            }
        }";
    let race = Program::text(text).target("small-2").try_compile(&[]).err().expect("both branches use x");
    assert!(race.to_string().contains("branches of `par`"), "{race}");
    let text = text.replace("x += 1.0;", "z += 1.0;").replace("program", "var z: f32[64] on ipu(0); program");
    let profile = on("small-2", &text);
    let waiting: Vec<_> = profile.steps.iter().filter(|s| s.waits).collect();
    assert_eq!(waiting.len(), 1, "{:?}", profile.steps);
    let table = profile.table();
    assert!(
        table.contains("branches of `par` wait for each other") && table.contains(": 256 bytes each time"),
        "{table}"
    );
}
