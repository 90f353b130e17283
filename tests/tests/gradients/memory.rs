//! What is kept for the reverse program, as `--stats` reports it: sizes are computed by hand.

use girder_profile::{KeptForReverse, Profile};
use girder_tests::Program;

fn profile(text: &str) -> Profile {
    Program::text(text).estimate("main")
}

/// The values: name and line, number and bytes.
fn values(kept: &KeptForReverse) -> Vec<(String, u32, u64)> {
    let line = |place: &Option<String>| place.as_deref().and_then(|p| p.rsplit(':').next()).unwrap_or("").to_string();
    kept.values.iter().map(|v| (format!("{}:{}", v.name, line(&v.location)), v.count, v.bytes)).collect()
}

fn rows(list: &[(&str, u32, u64)]) -> Vec<(String, u32, u64)> {
    list.iter().map(|&(name, count, bytes)| (name.to_string(), count, bytes)).collect()
}

const LAYERS: &str = "param x: f32[8, 4] = 0.5;
param w: f32[4, 6] = 0.25;
param u: f32[6, 2] = 0.125;
fn layer(x: f32[m, k], w: f32[k, n]) { return tanh(x @ w); }
program main() {
    let h = layer(x, w);
    let y = h @ u;
    let g = grad(sum(y * y), wrt: (w, u));
    w <- w - 0.1 * g[0];
    print(\"u\", g[1]);
}
";

/// The derivative of `tanh` needs its result, of 8 × 6 elements, and that of `y * y` needs `y`, of 8 × 2. `x` and the
/// weights are params.
#[test]
fn activations_are_kept() {
    let kept = profile(LAYERS).memory.kept;
    assert_eq!(values(&kept), rows(&[("main.layer.tanh:4", 1, 192), ("main.matmul.y:7", 1, 64)]));
    assert_eq!(kept.bytes, 256);
    let table = profile(LAYERS).table();
    assert!(table.contains("\nkept for the reverse program: 256 bytes, "), "{table}");
    assert!(table.contains("\n  main.layer.tanh  test.gir:4       1  192 bytes"), "{table}");
}

/// Without `grad` nothing is kept, and the table does not speak of it.
#[test]
fn nothing_is_kept_without_gradients() {
    let profile = profile("param x: f32[4] = 1.0; program main() { print(\"y\", tanh(x)); }");
    assert!(profile.memory.kept.values.is_empty() && !profile.table().contains("kept"));
}

/// Equal values of one line are one row.
#[test]
fn layers_of_one_line_are_one_row() {
    let text = "param x: f32[8, 4] = 0.5;
        param w: f32[3, 4, 4] = 0.25;
        program main() {
            let mut h = x;
            for i in 0..3 { h = exp(h @ w[i]); }
            let loss = sum(h);
            print(\"loss\", loss);
            print(\"g\", grad(loss, wrt: w));
        }";
    assert_eq!(values(&profile(text).memory.kept), rows(&[("main.exp:5", 3, 3 * 128)]));
}

/// Sums of gradients, and adjoints on their way to another processor or in a ring there, are values of the reverse
/// program: only what the forward stages made is kept.
#[test]
fn a_pipeline_keeps_what_its_forward_stages_made() {
    let text = |schedule: &str| {
        format!(
            "param w: f32[16, 16] = 0.5;
            param v: f32[16, 16] = 0.25;
            var x: f32[4, 16] = 1.0;
            program main() {{
                let g = pipeline(micro_batches: 4, schedule: \"{schedule}\") {{
                    let a = stage on ipu(0) {{ x @ w }};
                    let b = stage on ipu(1) {{ a * 2.0 }};
                    let l = stage on ipu(2) {{ mean((a + b) @ v) }};
                    grad(l, wrt: (w, v))
                }};
                print(\"g\", sum(g[0]));
            }}"
        )
    };
    for schedule in ["1f1b", "gpipe", "interleaved", "sharded"] {
        let kept = Program::text(text(schedule)).target("small-4").estimate("main").memory.kept;
        // The derivative by `v` needs `a + b`, in a stage of its own with \"gpipe\".
        for v in &kept.values {
            assert!(v.name.starts_with("main.add") && !v.name.contains("grad"), "{schedule}: {}", v.name);
        }
        assert_eq!(kept.values.iter().map(|v| v.count).sum::<u32>(), 1, "{schedule}");
    }
}

/// Printed text says which steps are of the reverse program, so a stage that is read back keeps the same.
#[test]
fn printed_text_keeps_the_same() {
    let program = Program::text(LAYERS);
    for pass in ["elaborate", "merge-copies", "allocate-memory"] {
        let after = girder::After::named(pass).expect("a pass");
        let stage = program.stage(after).unwrap_or_else(|e| panic!("{e}"));
        let kept = program.resumed(girder::text::print(&stage, program.machine())).estimate("main").memory.kept;
        let sizes: Vec<u64> = kept.values.iter().map(|v| v.bytes).collect();
        assert_eq!(sizes, [192, 64], "after {pass}");
    }
}

/// A branch keeps its condition and what each arm needs; a byte of the condition takes a whole one.
#[test]
fn branches_keep_their_conditions() {
    let text = "param x: f32[8] = 0.5;
        program main() {
            var y: f32[8];
            if sum(x) > 1.0 { y <- exp(x) * 2.0; } else { y <- x; }
            print(\"g\", grad(sum(y), wrt: x));
        }";
    let kept = profile(text).memory.kept;
    let names: Vec<(&str, u64)> = kept.values.iter().map(|v| (v.name.as_str(), v.bytes)).collect();
    assert_eq!(names, [("main.exp", 32), ("main.gt", 1)]);
}

/// What a variable holds after an iteration is what it holds before the next: one row for each.
#[test]
fn a_carried_value_is_kept_once() {
    let text = |step: &str| {
        format!(
            "param x: f32[8, 4] = 0.5;
            param w: f32[4, 4] = 0.25;
            program main() {{
                var h: f32[8, 4];
                h <- x;
                repeat 5 {{ {step} }}
                print(\"g\", grad(sum(h), wrt: w));
            }}"
        )
    };
    for step in ["h <- tanh(h @ w);", "let y = tanh(h @ w); h <- y;"] {
        let kept = profile(&text(step)).memory.kept;
        let sizes: Vec<u64> = kept.values.iter().map(|v| v.bytes).collect();
        assert_eq!(sizes, [5 * 128, 128], "{step}");
    }
}

/// What is computed again is not kept, but what it starts with.
#[test]
fn recomputed_values_are_not_kept() {
    let text = |attribute: &str| {
        format!(
            "param x: f32[8, 4] = 0.5;
            param w: f32[4, 4] = 0.25;
            program main() {{
                {attribute} let h = exp(exp(x @ w) @ w);
                {attribute} let y = exp(exp(h @ w) @ w);
                print(\"g\", grad(sum(y), wrt: w));
            }}"
        )
    };
    assert_eq!(profile(&text("")).memory.kept.bytes, 4 * 128);
    let kept = profile(&text("#[recompute]")).memory.kept;
    assert_eq!(values(&kept), rows(&[("main.exp:4", 1, 128)]));
}

/// A reverse program that is written by hand is marked by hand.
#[test]
fn a_block_may_be_marked() {
    let text = "param x: f32[8] = 0.5;
        program main() {
            let y = exp(x);
            let loss = sum(y);
            #[reverse] { print(\"g\", y * 1.0); }
            print(\"loss\", loss);
        }";
    assert_eq!(values(&profile(text).memory.kept), rows(&[("main.exp:3", 1, 32)]));
}

/// A loop of 12 dense layers over stacked weights, for a batch that is large against the width. `outer` and `inner` are
/// attributes of two nested loops; without one, there is one loop.
fn deep(batch: u32, outer: &str, inner: &str) -> String {
    let layer = |i: &str| format!("h <- gelu(h @ row(w, {i}) + row(b, {i}));");
    let layers = match outer {
        "" => format!("repeat i in 0..12 {{ {} }}", layer("i")),
        _ => format!("{outer} repeat k in 0..4 {{ {inner} repeat j in 0..3 {{ {} }} }}", layer("3 * k + j")),
    };
    format!(
        "param w: f32[12, 16, 16] = 0.01;
        param b: f32[12, 16];
        param x: f32[{batch}, 16];
        program main() {{
            var h: f32[{batch}, 16];
            h <- x;
            {layers}
            let g = grad(mean(h * h), wrt: (w, b));
            w <- w - 0.1 * g[0];
            b <- b - 0.1 * g[1];
        }}"
    )
}

/// On a machine of 16 tiles of 64 KiB the program needs 102.0 KiB of a tile if it keeps all, 61.7 KiB if it computes
/// groups of three layers again, and 54.7 KiB if it also computes each layer of a group again, which fits.
#[test]
fn a_deep_network_that_is_computed_again_fits() {
    let peak =
        |outer: &str, inner: &str| Program::text(deep(768, outer, inner)).over_memory().estimate("main").memory.peak;
    let kept = peak("", "");
    assert!(kept > 64 << 10, "{kept}");
    let again = peak("#[recompute]", "#[recompute]");
    assert!(again <= 64 << 10 && 10 * again <= 6 * kept, "{again} of {kept}");
}

/// Integers that are computed from the indices of loops are not kept, nor are rows of tensors that are still there.
#[test]
fn what_indices_give_is_not_kept() {
    let kept = profile(&deep(16, "#[recompute]", "")).memory.kept;
    let names: Vec<&str> = kept.values.iter().map(|v| v.name.as_str()).collect();
    assert_eq!(names, ["main.h.kept", "main.h"]);
    let kept = profile(&deep(16, "", "")).memory.kept;
    let names: Vec<&str> = kept.values.iter().map(|v| v.name.as_str()).collect();
    assert_eq!(names, ["main.add.kept", "main.h.kept", "main.h"]);
}

/// The products of a gradient have the bound of the memory for fetched operands that their product has: 5,242 bytes of
/// a tile. Landing buffers take 18.0 KiB without it, and 7.0 KiB with it, since words that are gathered land too.
#[test]
fn products_of_a_gradient_have_room() {
    let landing = |room: &str| {
        let program = Program::text(format!(
            "param w: f32[64, 64] = 0.01;
            param x: f32[128, 64];
            program main() {{
                let y = matmul(x, w{room});
                let g = grad(sum(y * y), wrt: w);
                print(\"g\", g[0, 0]);
            }}"
        ));
        let all = program.over_memory().estimate("main").memory.categories;
        all.iter().find(|c| c.name == "landing buffers").map_or(0, |c| c.at_peak)
    };
    let (free, bound) = (landing(""), landing(", room: 0.08"));
    assert!(bound > 0 && 2 * bound < free, "{bound} of {free}");
}

/// The gradient by what a loop has written does not depend on how it did: nothing of the loop is kept or reversed.
#[test]
fn what_a_loop_has_written_is_a_value() {
    let text = |how: &str| {
        format!(
            "param w: f32[3, 4] = 0.5;
            var x: f32[4] = [1.0, 2.0, 3.0, 4.0];
            program main() {{
                var h: f32[4];
                h <- x;
                {how}
                let g = grad(sum(h * h * 0.5), wrt: h);
                print(\"same\", g == h);
                print(\"w\", grad(sum(h), wrt: (h: h, w: w)).h);
            }}"
        )
    };
    for how in [
        "repeat i in 0..3 { h <- tanh(h * w[i]); }",
        "if x[0] > 0.0 { h <- tanh(h); } else { h <- sin(h); }",
        "par { on tile(1) { h <- tanh(h); } }",
    ] {
        let outcome = Program::text(text(how)).run_everywhere();
        assert_eq!(outcome.prints, ["same [true, true, true, true]", "w [1.0, 1.0, 1.0, 1.0]"], "{how}");
        let alone = text(how).replace("print(\"w\"", "if false { print(\"w\"").replace(".h);", ".h); }");
        let profile = profile(&alone);
        // `h` itself, and the condition of the `if`.
        assert!(profile.memory.kept.bytes <= 17, "{how}: {}", profile.memory.kept.bytes);
        assert!(profile.steps.iter().all(|s| !s.name.contains("grad.tanh")), "{how}");
    }
}
