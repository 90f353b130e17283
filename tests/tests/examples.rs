//! Every example has the values of an independent source, in every mode on one to three threads.
//!
//! The expected numbers of `digits`, `fashion`, `heat`, `mnist`, `mnist-cnn`, `mnist-pipeline` and `text` were computed
//! by NumPy (`reference.py` beside each). `weight-streaming` has the bits of a program without rows. The numbers of the
//! others are from the public tutorials that they follow.

use girder::{Array, arrays};
use girder_engine::Mode;
use girder_ir::types::ElemType;
use girder_tests::{Element, Outcome, Program, elements, files};
use std::path::Path;

/// Makes a test of each function: its name is that of a directory of `examples/`, with `_` for `-`.
macro_rules! tests {
    ($($test:ident)*) => {
        /// The directories of `examples/` that have a test here.
        fn tested() -> Vec<String> {
            vec![$(stringify!($test).replace('_', "-")),*]
        }

        mod gives_the_values_of_its_source {
            $(#[test]
            fn $test() {
                super::$test(&stringify!($test).replace('_', "-"));
            })*
        }
    };
}

tests! {
    digits fashion heat matvec mnist mnist_cnn mnist_pipeline operations suffix_sum text variables weight_streaming
}

#[test]
fn every_example_has_a_test_and_a_readme() {
    let mut all = tested();
    // `validation.rs` compares its predictions with measurements.
    all.push("validation".into());
    all.sort_unstable();
    assert_eq!(files::names("examples"), all);
    for name in tested() {
        let readme = files::text(format!("examples/{name}/README.md"));
        assert!(
            readme.contains(&format!("girder run examples/{name}")),
            "the README of {name} does not say how to run it"
        );
    }
}

fn example(name: &str) -> Program {
    Program::file(format!("examples/{name}/{name}.gir"))
}

fn expected(path: &str, key: Option<&str>) -> Vec<f32> {
    elements(&arrays::read(&files::root().join(path), key).unwrap_or_else(|e| panic!("{path}: {e}")))
}

fn variables(name: &str) {
    let done = example(name).run_everywhere();
    let lines = [
        "v1 [1.0, 1.5, 2.0, 2.5]",
        "v2 [1.0, 1.5, 2.0, 2.5]",
        "v3 [[0.0, 0.0, 0.0, 0.0], [0.0, 1.0, 1.5, 2.0], [0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]",
        "v4-0 [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]",
        "v4-1 [10, 11, 12, 13, 14, 15, 16, 17, 18, 19]",
        "Program complete",
    ];
    assert_eq!(done.prints, lines);
    assert_eq!(done.get::<f32>("v3")[4..8], [0.0, 1.0, 1.5, 2.0]);
    assert_eq!(done.get::<i32>("v4"), (10..20).collect::<Vec<_>>());
}

fn operations(name: &str) {
    let done = example(name).run_everywhere();
    assert_eq!(
        done.prints,
        ["v3 [[5.0, 4.5], [4.0, 3.5]]", "v4 [[9.0, 7.5], [6.0, 4.5]]", "v5 [[5.0, 3.5], [5.0, 3.5]]"]
    );
    assert_eq!(done.get::<f32>("v5"), [5.0, 3.5, 5.0, 3.5]);
}

fn suffix_sum(name: &str) {
    let done = example(name).run_everywhere();
    assert_eq!(done.prints, ["v2 [7.0, 6.0, 4.5, 2.5]"]);
    assert_eq!(done.get::<f32>("v2"), [7.0, 6.0, 4.5, 2.5]);
}

fn matvec(name: &str) {
    let done = example(name).run_everywhere();
    assert_eq!(done.prints, ["Multiplication result OK"]);
    assert_eq!(done.get::<f32>("y"), done.get::<f32>("expected"));
    let other = example(name).arg("rows=3").arg("columns=7").run_everywhere();
    let row = |i: i32| (0..7).map(|j| ((7 * i + 3 * j) % 11 - 5) * (j % 9 - 4)).sum::<i32>() as f32;
    assert_eq!(other.get::<f32>("y"), [row(0), row(1), row(2)]);
}

fn heat(name: &str) {
    let expected = expected("examples/heat/expected.npy", None);
    let done = example(name).compile(&[Mode::Fast, Mode::Exact]).run_on(&[Mode::Fast, Mode::Exact], &[1, 2, 3]);
    assert!(done.get::<f32>("field") == expected, "the field is not that of NumPy");
    assert!(example(name).arg("steps=4").run_everywhere().get::<f32>("field") != expected);
}

fn digits(name: &str) {
    let done = example(name).compile(&[Mode::Fast]).run(Mode::Fast, 2);
    let last = done.prints.last().map(String::as_str).unwrap_or_default();
    assert!(last.starts_with("test accuracy 0.9"), "the last line is `{last}`");
    for key in ["w", "b"] {
        let expected = expected("examples/digits/expected.npz", Some(key));
        let found = done.get::<f32>(key);
        assert_eq!(found.len(), expected.len());
        let worst = found.iter().zip(&expected).map(|(x, y)| (x - y).abs()).fold(0.0, f32::max);
        assert!(worst < 1e-4, "`{key}` differs from NumPy's by {worst}");
    }
    example(name).arg("steps=2").run_everywhere();
}

/// The first 20 losses. The machine is small, because a result does not depend on the machine, and it saves most of the
/// time of the compiler.
fn mnist(name: &str) {
    let compiled = example(name).arg("steps=20").target("small").over_memory().compile(&[Mode::Fast]);
    close(losses(&compiled.run_named("train", Mode::Fast, 2)), name, "losses");
    // The accuracy after three epochs is in the README; twenty steps give more than chance does.
    let done = compiled.run(Mode::Fast, 2);
    let accuracy = done.prints.last().and_then(|line| line.strip_prefix("test accuracy "));
    let accuracy: f32 = accuracy.and_then(|text| text.parse().ok()).expect("the last line has the accuracy");
    assert!((0.5..1.0).contains(&accuracy), "the accuracy is {accuracy}");
    let compiled = example(name).arg("steps=2").target("small-8").over_memory().compile(&[Mode::Fast, Mode::Exact]);
    let first = compiled.run_named("train", Mode::Fast, 1);
    for (mode, threads) in [(Mode::Fast, 3), (Mode::Exact, 1), (Mode::Exact, 3)] {
        assert!(first == compiled.run_named("train", mode, threads), "{mode:?} on {threads} threads differs");
    }
}

/// The losses of ten steps without dropout; with dropout, all modes have the same losses.
fn mnist_cnn(name: &str) {
    let short = |steps: u32| example(name).arg(&format!("steps={steps}")).target("small").over_memory();
    close(losses(&short(10).arg("drop=0.0").run_beside_passes("train", 2)), name, "losses");
    let compiled = short(2).arg("batch=4").target("small-8").compile(&[Mode::Fast, Mode::Exact]);
    let first = compiled.run_named("train", Mode::Fast, 1);
    for (mode, threads) in [(Mode::Fast, 3), (Mode::Exact, 2)] {
        assert!(first == compiled.run_named("train", mode, threads), "{mode:?} on {threads} threads differs");
    }
}

/// The losses of ten steps. Each schedule gives the same bits, with and without `#[recompute]`, and so does one stage
/// after the other on one processor.
fn mnist_pipeline(name: &str) {
    let path = format!("examples/{name}/{name}.gir");
    let text = files::text(&path);
    let short = |text: String, machine: &str, args: &[&str]| {
        let program = Program::new(files::root().join(&path), text, machine).target(machine).over_memory();
        args.iter().fold(program, |program, arg| program.arg(arg))
    };
    close(losses(&short(text.clone(), "small-4", &["steps=10"]).run_beside_passes("train", 2)), name, "losses");
    let mut first: Option<Outcome> = None;
    for schedule in ["1f1b", "gpipe", "interleaved", "sharded"] {
        for recompute in [true, false] {
            let text = if recompute { text.clone() } else { text.replace("#[recompute] ", "") };
            let args = ["steps=3", "batch=2", "micro_batches=3", "every=1", &format!("schedule={schedule}")];
            let program = short(text, "small-4", &args);
            // Each schedule has tables of the machine, with which 1F1B runs in mode exact too.
            let outcomes = match (schedule, recompute) {
                ("1f1b", _) => {
                    let compiled = program.compile(&[Mode::Fast, Mode::Exact]);
                    [Mode::Fast, Mode::Exact].map(|mode| (mode, compiled.run_named("train", mode, 2))).to_vec()
                }
                (_, true) => vec![(Mode::Fast, program.compile(&[Mode::Fast]).run_named("train", Mode::Fast, 2))],
                (_, false) => vec![(Mode::Fast, program.run_beside_passes("train", 2))],
            };
            for (mode, found) in outcomes {
                let first = first.get_or_insert_with(|| found.clone());
                let what = format!("{schedule}, {mode:?}, recompute: {recompute}");
                assert_eq!(losses(first), losses(&found), "{what}");
                let vars = |outcome: &Outcome| {
                    ["c1", "c2", "d1", "d2"].map(|l| ["w", "b"].map(|v| outcome.get::<f32>(&format!("net.{l}.{v}"))))
                };
                assert!(vars(first) == vars(&found), "{what}");
            }
        }
    }
    let one = ["0", "1", "2", "3"].iter().fold(text, |text, k| text.replace(&format!("ipu({k})"), "ipu(0)"));
    let args = ["steps=3", "batch=2", "micro_batches=3", "every=1", "schedule=sharded"];
    let one = short(one, "small", &args).run_beside_passes("train", 2);
    assert_eq!(losses(&one), losses(&first.expect("an outcome")));
}

/// The losses of ten steps; all modes have the same losses.
fn fashion(name: &str) {
    if files::missing_input(format!("examples/{name}/{name}.gir")).is_some() {
        return;
    }
    let short = |steps: u32| example(name).arg("epochs=1").arg(&format!("steps={steps}")).over_memory();
    close(losses(&short(10).target("small").run_beside_passes("train", 2)), name, "losses");
    let compiled = short(2).arg("batch=4").target("small-8").compile(&[Mode::Fast, Mode::Exact]);
    let first = compiled.run_named("train", Mode::Fast, 1);
    for (mode, threads) in [(Mode::Fast, 3), (Mode::Exact, 2)] {
        assert!(first == compiled.run_named("train", mode, threads), "{mode:?} on {threads} threads differs");
    }
}

fn text(name: &str) {
    for model in ["lstm", "transformer"] {
        let program = Program::file(format!("examples/{name}/{model}.gir")).arg("steps=20");
        let done = program.target("small").over_memory().compile(&[Mode::Fast]).run(Mode::Fast, 2);
        close(losses(&done), name, model);
    }
}

/// What the stream `losses` carried.
fn losses(done: &Outcome) -> Vec<f32> {
    assert!(done.failure.is_none(), "{:?}", done.failure);
    done.packets.iter().filter(|p| p.0 == "losses").map(|p| f32::read(&p.1.bytes)).collect()
}

/// Compares losses with an array of f64 of the example's `expected.npz`.
fn close(found: Vec<f32>, name: &str, key: &str) {
    let path = files::root().join(format!("examples/{name}/expected.npz"));
    let expected: Vec<f64> = elements(&arrays::read(&path, Some(key)).unwrap_or_else(|e| panic!("{name}: {e}")));
    assert_eq!(found.len(), expected.len());
    for (step, (x, y)) in found.iter().zip(&expected).enumerate() {
        let error = (f64::from(*x) / y - 1.0).abs();
        assert!(error <= 1e-4, "{key} of {name}: the loss of step {step} is {x}, but {y} in NumPy");
    }
}

/// A perceptron that reads floats, and updates its parameters in a loop over their leaves.
const PERCEPTRON: &str = r#"//! girder: --in digits=perceptron_digits.npy --in classes=perceptron_classes.npy
use nn;
stream digits: in f32[64, 784];
stream classes: in i32[64];
let layers = [nn.dense(784, 128, seed: 1), nn.dense(128, 10, seed: 2)];
fn network(x: f32[n, 784]) -> f32[n, 10] {
    let mut h = x @ layers[0].w + layers[0].b;
    for layer in layers[1..] { h = nn.relu(h) @ layer.w + layer.b; }
    return h;
}
program train(steps: int = 1000, lr: float = 0.1) {
    repeat steps {
        let loss = nn.cross_entropy(network(read(digits)), read(classes));
        for (p, d) in zip(leaves(layers), leaves(grad(loss, wrt: layers))) { p -= lr * d; }
        print("loss", loss);
    }
}
"#;

#[test]
fn a_perceptron_may_update_the_leaves_of_its_layers() {
    let steps = 20;
    let data = |key| arrays::read(&files::root().join("examples/mnist/mnist.npz"), Some(key)).expect("an array");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let write = |name: &str, ty: ElemType, shape: &[u64], bytes: Vec<u8>| {
        let array = Array { ty, shape: shape.to_vec(), bytes: bytes.into() };
        arrays::write(&folder.join(name), &array).expect("a folder for what tests write");
    };
    let (images, labels) = (data("train_images"), data("train_labels"));
    let pixels = images.bytes[..steps * 64 * 784].iter().flat_map(|&x| (f32::from(x) / 255.0).to_le_bytes());
    let classes = labels.bytes[..steps * 64].iter().flat_map(|&x| i32::from(x).to_le_bytes());
    write("perceptron_digits.npy", ElemType::F32, &[steps as u64 * 64, 784], pixels.collect());
    write("perceptron_classes.npy", ElemType::I32, &[steps as u64 * 64], classes.collect());
    let program = Program::new(folder.join("perceptron.gir"), PERCEPTRON, "small").arg(&format!("steps={steps}"));
    let done = program.over_memory().compile(&[Mode::Fast]).run(Mode::Fast, 2);
    let losses = done.prints.iter().map(|line| line.strip_prefix("loss ").and_then(|text| text.parse().ok()));
    close(losses.map(|loss| loss.expect("a loss")).collect(), "mnist", "descent");
}

fn weight_streaming(name: &str) {
    let run = |file: &str| {
        let program = Program::file(format!("examples/{name}/{file}.gir")).target("small").over_memory();
        let args = ["width=16", "batch=8", "steps=3", "rate=0.001"];
        args.iter().fold(program, |program, arg| program.arg(arg)).compile(&[Mode::Fast, Mode::Exact])
    };
    let (rows, tiles) = (run("weight-streaming"), run("on-tiles"));
    let modes = [Mode::Fast, Mode::Exact];
    let (rows, tiles) = (rows.run_on(&modes, &[1, 2]), tiles.run_on(&modes, &[2]));
    assert_eq!(rows.prints.len(), 3);
    assert_eq!(rows.prints, tiles.prints);
    for var in ["first", "last"] {
        assert_eq!(rows.get::<f32>(var), tiles.get::<f32>(var), "{var}");
    }
}
