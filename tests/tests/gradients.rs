//! Gradients against central differences in `f64`, for every function of the library and for random programs, and
//! identities to the bit.
//!
//! A model is a function from tensors to a number. The gradient in a random direction, ⟨g, v⟩, is compared with
//! (f(x + h·v) - f(x - h·v)) / 2h, all in one program.

#[path = "gradients/corners.rs"]
mod corners;
#[path = "gradients/functions.rs"]
mod functions;
#[path = "gradients/hand_written.rs"]
mod hand_written;
#[path = "gradients/last_contents.rs"]
mod last_contents;
#[path = "gradients/library.rs"]
mod library;
#[path = "gradients/loops.rs"]
mod loops;
#[path = "gradients/memory.rs"]
mod memory;
#[path = "gradients/models.rs"]
mod models;
#[path = "gradients/random.rs"]
mod random;
#[path = "gradients/recompute.rs"]
mod recompute;
#[path = "gradients/reductions.rs"]
mod reductions;
#[path = "gradients/training.rs"]
mod training;

use girder::Stage;
use girder_source::par_map_slice;
use girder_tests::{Failure, Outcome, Program, files};
use std::fmt::Write;

/// The step of the differences.
const STEP: f64 = 1e-5;
/// The greatest relative error.
const BOUND: f64 = 1e-6;

/// A parameter of a model: its name, its shape and the range of its elements.
#[derive(Clone)]
struct Parameter {
    name: String,
    shape: Vec<u64>,
    range: (f64, f64),
}

impl Parameter {
    fn new(name: &str, shape: &[u64], range: (f64, f64)) -> Parameter {
        Parameter { name: name.into(), shape: shape.to_vec(), range }
    }

    fn ty(&self) -> String {
        let dims: Vec<String> = self.shape.iter().map(u64::to_string).collect();
        if dims.is_empty() { "f64".into() } else { format!("f64[{}]", dims.join(", ")) }
    }
}

/// Numbers of a shape as text, by a fixed sequence.
fn numbers(shape: &[u64], (lo, hi): (f64, f64), state: &mut u64) -> String {
    match shape.split_first() {
        None => {
            *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            format!("{:?}", lo + (hi - lo) * ((*state >> 11) as f64 / (1u64 << 53) as f64))
        }
        Some((&n, rest)) => {
            let list: Vec<String> = (0..n).map(|_| numbers(rest, (lo, hi), state)).collect();
            format!("[{}]", list.join(", "))
        }
    }
}

/// A function from tensors to a number.
struct Model {
    /// The text before it.
    head: String,
    /// Its statements.
    body: String,
    /// The statements of the function whose differences are taken.
    difference: String,
    params: Vec<Parameter>,
    /// The greatest relative error.
    bound: f64,
}

/// Returns a program that prints the gradient of a model in a direction, and the difference.
fn program(model: &Model, seed: u64) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let Model { head, body, difference, params, .. } = model;
    let mut text = format!("{head}\n");
    for p in params {
        let (name, ty) = (&p.name, p.ty());
        let _ = writeln!(text, "param {name}: {ty} = {};", numbers(&p.shape, p.range, &mut state));
        let _ = writeln!(text, "param v_{name}: {ty} = {};", numbers(&p.shape, (-1.0, 1.0), &mut state));
    }
    let each = |f: &dyn Fn(&str) -> String, sep: &str| params.iter().map(|p| f(&p.name)).collect::<Vec<_>>().join(sep);
    let typed: Vec<String> = params.iter().map(|p| format!("{}: {}", p.name, p.ty())).collect();
    let typed = typed.join(", ");
    let names = each(&|n| n.into(), ", ");
    let wrt = each(&|n| format!("{n}: {n}"), ", ");
    let dot = each(&|n| format!("sum(gradient.{n} * v_{n})"), " + ");
    let moved = |sign: &str| each(&|n| format!("copy({n} {sign} v_{n} * {STEP:?})"), ", ");
    let (above, below, double) = (moved("+"), moved("-"), 2.0 * STEP);
    let _ = write!(
        text,
        "fn model({typed}) {{\n{body}\n}}
fn again({typed}) {{\n{difference}\n}}
program main() {{
    let value = model({names});
    let gradient = grad(value, wrt: ({wrt},));
    print(\"dot\", {dot});
    print(\"difference\", (again({above}) - again({below})) / {double:?});
}}
"
    );
    text
}

fn printed(outcome: &Outcome, label: &str) -> f64 {
    assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
    let line = outcome.prints.iter().find_map(|l| l.strip_prefix(label)).expect("the program prints it");
    line.trim().parse().expect("a number")
}

/// Runs a program of [`program`] and compares.
fn compared(text: &str, bound: f64) -> Result<Result<(), String>, Box<Failure>> {
    let outcome = Program::text(text).interpret(Stage::Graph).map_err(Box::new)?;
    let (dot, difference) = (printed(&outcome, "dot"), printed(&outcome, "difference"));
    let error = (dot - difference).abs() / difference.abs().max(1.0);
    let message = || format!("⟨g, v⟩ is {dot}, the difference {difference}\n{text}");
    Ok(if error <= bound { Ok(()) } else { Err(message()) })
}

fn checked(head: &str, body: &str, params: &[Parameter], seed: u64) {
    let (body, params) = (body.to_string(), params.to_vec());
    let model = Model { head: head.into(), difference: body.clone(), body, params, bound: BOUND };
    let text = program(&model, seed);
    match compared(&text, BOUND) {
        Ok(Ok(())) => {}
        Ok(Err(message)) => panic!("{message}"),
        Err(failure) => panic!("{failure}\n{text}"),
    }
}

/// Codelet functions that stop gradients: they are constant between jumps, or their results are no floats.
const STOPS: [&str; 21] = [
    "floor", "ceil", "round", "trunc", "popcount", "clz", "sign", "not", "bit_and", "bit_or", "bit_xor", "shl", "shr",
    "eq", "ne", "lt", "le", "gt", "ge", "isnan", "isfinite",
];

/// The ranges of operands where they are not (-0.9, 0.9).
const RANGES: [(&str, (f64, f64)); 12] = [
    ("log", (0.1, 2.0)),
    ("log2", (0.1, 2.0)),
    ("log10", (0.1, 2.0)),
    ("log1p", (-0.5, 2.0)),
    ("sqrt", (0.1, 2.0)),
    ("rsqrt", (0.1, 2.0)),
    ("pow", (0.1, 2.0)),
    ("cbrt", (0.1, 2.0)),
    ("div", (0.1, 2.0)),
    ("rem", (0.1, 2.0)),
    ("acosh", (1.1, 3.0)),
    ("atan2", (0.1, 2.0)),
];

/// Returns the names of the functions that begin with some words, and the numbers of their parameters.
fn functions(module: &str, words: &str) -> Vec<(String, usize)> {
    let text = files::text(format!("stdlib/{module}.gir"));
    let heads = text.lines().filter_map(|l| l.strip_prefix(words));
    let mut found: Vec<(String, usize)> = vec![];
    for head in heads {
        let name = head.split(['<', '(']).next().unwrap_or_default().to_string();
        let list = head.split_once('(').map_or("", |(_, rest)| rest);
        let count = list.split(')').next().unwrap_or_default().matches(':').count();
        found.push((name, count));
    }
    found
}

#[test]
fn every_function_of_numbers_has_the_derivative_of_differences() {
    let mut checked_ones = 0;
    for module in ["prelude", "math"] {
        for (name, count) in functions(module, "codelet fn ") {
            // Functions of one type are parts of those of every type.
            if name.ends_with("_f32") || name.ends_with("_f64") || name.ends_with("_u64") || STOPS.contains(&&*name) {
                continue;
            }
            let range = RANGES.iter().find(|(n, _)| *n == name).map_or((-0.9, 0.9), |(_, r)| *r);
            let of = ["x", "y", "z"].map(|n| Parameter::new(n, &[7], range));
            let (args, used) = match &*name {
                "select" => ("x > y, x, y".to_string(), 2),
                _ => (["x", "y", "z"][..count].join(", "), count),
            };
            checked("", &format!("    let y_ = {name}({args});\n    return sum(y_ * y_ + y_);"), &of[..used], 5);
            checked_ones += 1;
        }
    }
    assert!(checked_ones >= 38, "only {checked_ones} functions were found");
}

#[test]
fn every_function_of_tensors_has_the_derivative_of_differences() {
    let head = "use nn;\nuse linalg;\nuse slices;\nuse optim;\nuse random;\nuse pool;\nuse sorting;";
    let numbered: Vec<(usize, &str)> = models::MODELS.iter().map(|(_, body)| *body).enumerate().collect();
    let _: Vec<()> = par_map_slice(&numbered, |&(k, body)| {
        let of = [Parameter::new("x", &[4, 3], (-1.0, 1.0)), Parameter::new("w", &[2, 3, 5], (-1.0, 1.0))];
        let uses_w = body.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == "w");
        let of = if uses_w { &of[..] } else { &of[..1] };
        girder_tests::with_context(body, || checked(head, &format!("    {body}"), of, k as u64 + 1));
    });
}

#[test]
fn every_reduction_has_three_derivatives_of_differences() {
    let w = [Parameter::new("w", &[2, 3, 5], (0.2, 0.9))];
    let _: Vec<()> = par_map_slice(&reductions::bodies(), |body| {
        girder_tests::with_context(body, || checked("", body, &w, 5));
    });
}

#[test]
fn no_function_of_the_library_is_without_a_derivative_or_a_reason() {
    let modules = files::names("stdlib").into_iter().filter_map(|n| n.strip_suffix(".gir").map(String::from));
    for module in modules {
        let without = library::WITHOUT.iter().chain(training::WITHOUT).find(|(m, _)| *m == module);
        let without = without.unwrap_or_else(|| panic!("`{module}` is not among the modules")).1;
        let words: &[&str] = match &*module {
            // The other test walks their functions of numbers.
            "prelude" | "math" => &["fn "],
            _ => &["fn ", "codelet fn "],
        };
        for name in words.iter().flat_map(|w| functions(&module, w)).map(|(name, _)| name) {
            let has = models::MODELS.iter().any(|(n, _)| *n == name) || without.contains(&&*name);
            assert!(has, "`{name}` of `{module}` has neither a model nor a reason to have no derivative");
        }
    }
}

#[test]
fn corners_have_the_derivative_of_differences() {
    let x = [Parameter::new("x", &[4, 3], (-0.9, 0.9))];
    let _: Vec<()> = par_map_slice(corners::CORNERS, |(name, head, body)| {
        girder_tests::with_context(name, || checked(head, body, &x, 7));
    });
}

#[test]
fn the_gradient_by_written_variables_is_by_their_last_contents() {
    let seeds: Vec<u64> = (1..61).collect();
    let compared = par_map_slice(&seeds, |&seed| last_contents::agrees(seed)).into_iter().filter(|c| *c).count();
    assert!(compared > 12, "only {compared} of {} programs have a gradient", seeds.len());
}

#[test]
fn codelet_functions_with_loops_have_the_derivative_of_differences() {
    let x = [Parameter::new("x", &[4, 3], (-0.9, 0.9))];
    let _: Vec<()> = par_map_slice(loops::LOOPS, |(name, head, body)| {
        girder_tests::with_context(name, || checked(head, body, &x, 7));
    });
}

/// A step of the differences may cross a jump of a function: the error is then as large as the jump, for one seed. A
/// function may be wrong because no arm of a branch gives its value.
#[test]
fn random_codelet_functions_have_the_derivative_of_differences() {
    let seeds: Vec<u64> = (1..401).collect();
    let outcomes = par_map_slice(&seeds, |&seed| {
        let text = program(&functions::model(seed), seed);
        let compare = || compared(&text, BOUND);
        match girder_tests::with_context(&format!("random codelet function {seed}"), compare) {
            Ok(Ok(())) => Ok(true),
            Err(failure) if failure.diagnostics.iter().all(|d| d.code == "codelet::missing_value") => Ok(false),
            Ok(Err(message)) => Err(format!("function {seed}: {message}")),
            Err(failure) => Err(format!("function {seed}: {failure}\n{text}")),
        }
    });
    let mut wrong: Vec<&String> = outcomes.iter().filter_map(|o| o.as_ref().err()).collect();
    wrong.sort_by_key(|w| w.len());
    assert!(wrong.is_empty(), "{} functions are wrong, for example {}", wrong.len(), wrong[0]);
    let right = outcomes.iter().filter(|o| **o == Ok(true)).count();
    assert!(right > 380, "only {right} of {} functions have a derivative", seeds.len());
}

/// The codes with which a random program may be refused. It may also write a concatenation of a variable with itself.
const REFUSALS: [&str; 7] = [
    "grad::overwritten",
    "grad::overwritten_in_loop",
    "grad::carried",
    "grad::written_inside",
    "grad::no_rule",
    "grad::overlapping_view",
    "elaborate::aliased_target",
];

/// Returns the seeds of the random programs: 1 to 2,000, or those of `GIRDER_GRADIENTS`, a count or `first..end`.
fn seeds() -> std::ops::Range<u64> {
    let number = |text: &str| text.parse::<u64>().expect("a number");
    match std::env::var("GIRDER_GRADIENTS").as_deref().map(|asked| asked.split_once("..").ok_or(asked)) {
        Ok(Ok((first, end))) => number(first)..number(end),
        Ok(Err(count)) => 1..number(count) + 1,
        Err(_) => 1..2001,
    }
}

#[test]
fn random_programs_have_the_derivative_of_differences() {
    let seeds: Vec<u64> = seeds().collect();
    let outcomes = par_map_slice(&seeds, |&seed| {
        let model = random::model(seed);
        let text = program(&model, seed);
        let compare = || compared(&text, model.bound);
        match girder_tests::with_context(&format!("random program {seed}"), compare) {
            Ok(Ok(())) => Ok(None),
            Ok(Err(message)) => Err(format!("program {seed}: {message}")),
            Err(failure) => {
                let codes: Vec<&str> = failure.diagnostics.iter().map(|d| d.code).collect();
                let refused = REFUSALS.iter().find(|c| codes.contains(*c));
                match refused {
                    Some(code) => Ok(Some(*code)),
                    None => Err(format!("program {seed}: {failure}\n{text}")),
                }
            }
        }
    });
    // The shortest of the wrong ones is the easiest to understand.
    let mut wrong: Vec<&String> = outcomes.iter().filter_map(|o| o.as_ref().err()).collect();
    wrong.sort_by_key(|w| w.len());
    let count = seeds.len();
    let numbers: Vec<u64> = seeds.iter().zip(&outcomes).filter(|(_, o)| o.is_err()).map(|(s, _)| *s).collect();
    assert!(wrong.is_empty(), "of {count} programs, {numbers:?} are wrong, for example {}", wrong[0]);
    let by_code = |code: &&str| outcomes.iter().filter(|o| **o == Ok(Some(*code))).count();
    let refused: Vec<(&str, usize)> = REFUSALS.iter().map(|c| (*c, by_code(c))).collect();
    println!("of {count} programs were refused: {refused:?}");
    assert!(count > 3 * refused.iter().map(|r| r.1).sum::<usize>(), "of {count} programs were refused: {refused:?}");
}

/// Returns a program that trains a small network, with the loop and the attributes given.
fn network(layers: &str) -> String {
    format!(
        "param w: f32[6, 6] = list i in 0..6 {{ list j in 0..6 {{ 0.05 * (i - j) + 0.01 * i }} }};
        param x: f32[4, 6] = list i in 0..4 {{ list j in 0..6 {{ 0.2 * i - 0.1 * j }} }};
        var g: f32[6, 6];
        var gx: f32[4, 6];
        program main() {{
            var h: f32[4, 6];
            h <- x;
            {layers}
            let loss = mean(h * h);
            let d = grad(loss, wrt: (w, x));
            g <- d[0];
            gx <- d[1];
        }}"
    )
}

/// Steps that change older variables for what follows do not run again: a counter, running statistics, a scale.
#[test]
fn recomputed_parts_change_older_variables_once() {
    let text = |attribute: &str, old: &str| {
        format!(
            "use random; use nn;
            param w: f32[3, 4, 4] = random.normal(seed: 1);
            var x: f32[6, 4] = random.normal(seed: 2);
            state mu: f32[4]; state va: f32[4] = 1.0; state k: i32; state s: f32[4] = 0.5; state p: f32[4] = 0.5;
            var dw: f32[2, 3, 4, 4]; var dx: f32[2, 6, 4];
            program main() {{
                repeat turn in 0..2 {{
                    var y: f32[6, 4];
                    y <- x;
                    repeat i in 0..3 {{
                        {attribute} let z = {{
                            let z = nn.batch_norm((y * {old}(p)) @ w[i], mean: mu, variance: va);
                            let t = z * f32({old}(k) + 1);
                            p <- p * 0.75;
                            k += 1;
                            t
                        }};
                        y <- tanh(z);
                    }}
                    {attribute} let q = {{
                        let q = y * {old}(s) + f32(k % 7);
                        let q = q * q;
                        s <- s * 0.9;
                        k += 2;
                        q
                    }};
                    let g = grad(mean(q * q), wrt: (w, x));
                    dw[turn] <- g[0];
                    dx[turn] <- g[1];
                }}
            }}"
        )
    };
    let run = |attribute: &str, old: &str| {
        let outcome = Program::text(text(attribute, old)).target("small").run_everywhere();
        let floats = ["dw", "dx", "mu", "va", "s", "p"].map(|name| outcome.get::<f32>(name));
        (floats, outcome.get::<i32>("k"))
    };
    let kept = run("", "copy");
    assert!(kept.0[0].iter().any(|d| *d != 0.0) && kept.1 == [10]);
    assert_eq!(kept, run("#[recompute]", ""));
}

#[test]
fn a_loop_has_the_bits_of_its_unrolled_form_and_recomputed_values_those_of_kept_ones() {
    let step = "h <- tanh(h @ w + 0.1 * h);";
    let plain = Program::text(network(&format!("repeat 5 {{ {step} }}"))).run_everywhere();
    let recomputed = Program::text(network(&format!("#[recompute] repeat 5 {{ {step} }}"))).run_everywhere();
    assert_eq!(plain, recomputed);
    let names: Vec<String> = (0..5).map(|k| format!("let h{} = tanh(h{k} @ w + 0.1 * h{k});", k + 1)).collect();
    let unrolled = network(&format!("let h0 = x; {} h <- h5;", names.join(" ")));
    assert_eq!(plain, Program::text(unrolled).run_everywhere());
    let again = network(&format!("let h0 = x; #[recompute] {} h <- h5;", names.join(" #[recompute] ")));
    assert_eq!(plain, Program::text(again).run_everywhere());
    assert!(plain.get::<f32>("g").iter().any(|&x| x != 0.0));
}

#[test]
fn gradients_do_not_depend_on_the_machine() {
    let text = network("repeat 3 { h <- tanh(h @ w) + w[0] * max_of(x); }");
    let small = Program::text(text.clone()).target("small").run_everywhere();
    for machine in ["small-8", "gc200"] {
        assert_eq!(small, Program::text(text.clone()).target(machine).run_everywhere());
    }
}
