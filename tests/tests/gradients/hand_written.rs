//! Training steps with `grad` against the same steps with the reverse program written by hand: the same bits and no
//! further superstep.

use girder_engine::Mode;
use girder_ir::program::StepKind;
use girder_tests::{Outcome, Program, files};

/// The reverse of `cross_entropy`, by the functions that its rule calls.
const SLOPES: &str = "
fn slopes(logits: f32[m, n], class: i32[m]) {
    let none = logits.flatten()[0..0];
    let r = class_loss.class_loss(logits, class, none, (), 0.0, 0, 2);
    return class_loss.class_slopes(logits, class, none, r.kept, f32(1.0), r.scale, (), 0.0, 0);
}
";

/// Returns the example `digits` with another training step.
fn digits(step: &str) -> Program {
    let path = files::root().join("examples/digits/digits.gir");
    let text = files::text("examples/digits/digits.gir");
    let (head, _) = text.split_once("program main").expect("a program");
    let head = head.replace("--arg steps=500", "").replace("use nn;", "use nn;\nuse class_loss;");
    let text = format!(
        "{head}\n{SLOPES}\nprogram main() {{
    let x = f32(images.reshape([1797, 64])[0..300]) / 16.0;
    let class = i32(labels)[0..300];
    repeat 3 {{ {step} }}
}}"
    );
    Program::new(path, text, "small")
}

/// Two programs give the same bits to some variables, in all modes and on one to three threads.
fn same(with_grad: &Program, by_hand: &Program, variables: &[&str]) {
    let (trained, expected) = (with_grad.run_everywhere(), by_hand.run_everywhere());
    for name in variables {
        let bits = |o: &Outcome| o.get::<f32>(name).iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&trained), bits(&expected), "{name}");
        assert!(bits(&trained).iter().any(|&x| x != 0));
    }
}

#[test]
fn digits_with_grad_has_the_bits_of_the_hand_written_reverse() {
    let grad =
        digits("let g = grad(nn.cross_entropy(x @ w + b, class), wrt: (w: w, b: b)); w -= 2.0 * g.w; b -= 2.0 * g.b;");
    let hand = digits("let d = slopes(x @ w + b, class); w -= 2.0 * (x.transpose() @ d); b -= 2.0 * sum(d, axis: 0);");
    for machine in ["small", "gc200"] {
        same(&grad.clone().target(machine), &hand.clone().target(machine), &["w", "b"]);
    }
}

/// Returns a training step of a perceptron of two layers.
fn perceptron([rows, inputs, hidden, classes]: [u64; 4], step: &str) -> Program {
    Program::text(format!(
        "use nn;\nuse class_loss;\n{SLOPES}
param w1: f32[{inputs}, {hidden}] =
    list i in 0..{inputs} {{ list j in 0..{hidden} {{ 0.01 * ((7 * i + 3 * j) % 19) - 0.09 }} }};
param b1: f32[{hidden}] = 0.1;
param w2: f32[{hidden}, {classes}] =
    list i in 0..{hidden} {{ list j in 0..{classes} {{ 0.02 * ((5 * i + j) % 13) - 0.12 }} }};
param b2: f32[{classes}];
param x: f32[{rows}, {inputs}] = list i in 0..{rows} {{ list j in 0..{inputs} {{ 0.1 * ((3 * i + 11 * j) % 10) }} }};
param class: i32[{rows}] = list i in 0..{rows} {{ i % {classes} }};
program main() {{
    repeat 2 {{ {step} }}
}}"
    ))
}

const WITH_GRAD: &str = "
    let h = relu(x @ w1 + b1);
    let g = grad(nn.cross_entropy(h @ w2 + b2, class), wrt: (w1: w1, b1: b1, w2: w2, b2: b2));
    w1 -= 0.1 * g.w1; b1 -= 0.1 * g.b1; w2 -= 0.1 * g.w2; b2 -= 0.1 * g.b2;";

const BY_HAND: &str = "
    let h = relu(x @ w1 + b1);
    let d2 = slopes(h @ w2 + b2, class);
    let db2 = sum(d2, axis: 0);
    let dw2 = h.transpose() @ d2;
    let d1 = select(h > 0.0, d2 @ w2.transpose(), 0.0);
    let db1 = sum(d1, axis: 0);
    let dw1 = x.transpose() @ d1;
    w1 -= 0.1 * dw1; b1 -= 0.1 * db1; w2 -= 0.1 * dw2; b2 -= 0.1 * db2;";

#[test]
fn a_perceptron_with_grad_has_the_bits_of_the_hand_written_reverse() {
    for machine in ["small", "gc200"] {
        let trained = |step| perceptron([12, 20, 16, 5], step).target(machine);
        same(&trained(WITH_GRAD), &trained(BY_HAND), &["w1", "b1", "w2", "b2"]);
    }
}

/// Returns the number of compute sets and copies that a program runs.
fn supersteps(program: &Program) -> usize {
    let compiled = program.compile(&[Mode::Interpret]);
    let steps = compiled.graph().steps.values();
    steps.filter(|s| matches!(s.kind, StepKind::Execute(_) | StepKind::Copy(_))).count()
}

#[test]
fn the_reverse_of_a_perceptron_has_no_superstep_that_the_hand_written_one_has_not() {
    let sizes = [64, 784, 512, 10];
    let count = |step| supersteps(&perceptron(sizes, step).target("gc200"));
    let (with_grad, by_hand) = (count(WITH_GRAD), count(BY_HAND));
    assert!(with_grad <= by_hand, "{with_grad} supersteps, and {by_hand} by hand");
}
