//! The gradient by variables that a program writes, whole or in part, once or in loops: by what they hold at the end.
//!
//! The difference by an element adds the step right after the element's last write.

use crate::numbers::Random;
use girder::Stage;
use girder_tests::Program;

/// The elements of each variable.
const N: usize = 4;
/// The variables; the first two are parameters.
const NAMES: [&str; 5] = ["p", "q", "a", "b", "c"];
const STEP: f64 = 1e-5;
/// The codes with which a program may be refused.
const REFUSALS: [&str; 3] = ["grad::written_inside", "grad::overwritten", "grad::overwritten_in_loop"];

/// What a statement does.
enum Does {
    /// Writes elements of a variable from a first one on, and whether it adds.
    Write(usize, usize, bool),
    /// Adds to the loss.
    Loss,
    /// Executes statements several times.
    Repeat(usize, Vec<Statement>),
}

struct Statement {
    does: Does,
    value: String,
    len: usize,
}

/// A line of a program and, if it writes, the variable, the first element and the number of elements.
type Line = (String, Option<(usize, usize, usize)>);

/// Returns a view of some elements of a variable.
fn view(random: &mut Random, len: usize) -> String {
    let (name, first) = (NAMES[random.below(NAMES.len())], random.below(N - len + 1));
    let reverse = if random.below(4) == 0 { ".reverse(axis: 0)" } else { "" };
    format!("{name}[{first}..{}]{reverse}", first + len)
}

fn statement(random: &mut Random, depth: usize) -> Statement {
    let len = 1 + random.below(N);
    let (x, y) = (view(random, len), view(random, len));
    match random.below(8) {
        0 if depth == 0 => {
            let body = (0..1 + random.below(3)).map(|_| statement(random, 1)).collect();
            Statement { does: Does::Repeat(1 + random.below(3), body), value: String::new(), len: 0 }
        }
        1 => Statement { does: Does::Loss, value: format!("sum(sin({x}))"), len },
        k => {
            let forms = [format!("{x} * {y}"), format!("sin({x}) + {y}"), format!("1.25 * {x}"), format!("{x} - {y}")];
            let does = Does::Write(2 + random.below(3), random.below(N - len + 1), k == 2);
            Statement { does, value: forms[random.below(4)].clone(), len }
        }
    }
}

/// Returns the statements as text. With `nudged`, loops are unrolled, and `n` is added after the last writes.
fn text(all: &[Statement], nudged: bool) -> String {
    let mut lines: Vec<Line> = vec![];
    list(all, nudged, &mut lines);
    let mut held = [[false; N]; NAMES.len()];
    let mut nudges: Vec<String> = vec![];
    for (line, write) in lines.iter_mut().rev() {
        let Some((var, first, len)) = *write else { continue };
        for e in (first..first + len).filter(|&e| !held[var][e]).collect::<Vec<_>>() {
            held[var][e] = true;
            *line += &nudge(var, e);
        }
    }
    for (var, held) in held.iter().enumerate() {
        nudges.extend((0..N).filter(|&e| !held[e]).map(|e| nudge(var, e)));
    }
    let lines: Vec<String> = lines.into_iter().map(|l| l.0).collect();
    if nudged { nudges.concat() + &lines.concat() } else { lines.concat() }
}

fn nudge(var: usize, e: usize) -> String {
    format!("{0}[{e}..{1}] += n[{var}, {e}..{1}];\n", NAMES[var], e + 1)
}

fn list(all: &[Statement], nudged: bool, lines: &mut Vec<Line>) {
    for s in all {
        match &s.does {
            Does::Write(var, first, adds) => {
                let (op, name) = (if *adds { "+=" } else { "<-" }, NAMES[*var]);
                let line = format!("{name}[{first}..{}] {op} {};\n", first + s.len, s.value);
                lines.push((line, nudged.then_some((*var, *first, s.len))));
            }
            Does::Loss => lines.push((format!("loss += {};\n", s.value), None)),
            Does::Repeat(count, body) if nudged => (0..*count).for_each(|_| list(body, true, lines)),
            Does::Repeat(count, body) => {
                lines.push((format!("repeat {count} {{\n"), None));
                list(body, false, lines);
                lines.push(("}\n".into(), None));
            }
        }
    }
}

/// Returns a program that prints the gradient, and the differences.
fn program(seed: u64) -> String {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let all: Vec<Statement> = (0..4 + random.below(6)).map(|_| statement(&mut random, 0)).collect();
    let variable = |(k, name)| format!("var {name}: f64[{N}];\n{name} <- start[{k}];\n");
    let head = "var loss: f64 = 0.0;\n".to_string() + &(0..).zip(NAMES).map(variable).collect::<String>();
    let number = |k: usize| 0.3 + 0.173 * (k * k % 11) as f64;
    let start: Vec<Vec<f64>> = (0..NAMES.len()).map(|v| (0..N).map(|e| number(v * N + e)).collect()).collect();
    let end = "loss += sum(a * a) + sum(b) * 0.5;\n";
    format!(
        "const start: f64[5, 4] = {start:?};\n\
         fn moved(n: f64[5, 4]) {{\n{head}{}{end}return loss;\n}}\n\
         program main() {{\n{{\n{head}{}{end}\
         let g = grad(loss, wrt: (p, q, a, b, c));\nprint(\"g\", stack_of(list k in 0..5 {{ g[k] }}));\n}}\n\
         print(\"d\", stack_of(list k in 0..5 {{ concat(list e in 0..4 {{\n\
         let at = f64(list i in 0..5 {{ list j in 0..4 {{ if i == k && j == e {{ {STEP:?} }} else {{ 0.0 }} }} }});\n\
         ((moved(at) - moved(-at)) / {:?}).expand(0) }}) }}));\n}}\n\
         fn stack_of(rows) {{ concat(list k in 0..5 {{ rows[k].expand(0) }}) }}\n",
        text(&all, true),
        text(&all, false),
        2.0 * STEP,
    )
}

/// Returns whether the program compiles.
pub fn agrees(seed: u64) -> bool {
    let text = program(seed);
    let outcome = match Program::text(text.clone()).interpret(Stage::Graph) {
        Ok(outcome) => outcome,
        Err(failure) => {
            let refused = failure.diagnostics.iter().all(|d| REFUSALS.contains(&d.code));
            assert!(refused, "program {seed}\n{text}\n{failure}");
            return false;
        }
    };
    let lines: Vec<Vec<f64>> = outcome.prints.iter().map(|line| numbers_of(line)).collect();
    let [g, d] = &lines[..] else { panic!("program {seed} prints {} lines\n{text}", lines.len()) };
    for (k, (g, d)) in g.iter().zip(d).enumerate() {
        assert!((g - d).abs() <= 1e-5 * (1.0 + d.abs()), "program {seed}, element {k}: {g}, not {d}\n{text}");
    }
    true
}

fn numbers_of(line: &str) -> Vec<f64> {
    let digits = |c: char| !(c.is_ascii_digit() || ".-+e".contains(c));
    line[1..].split(digits).filter(|n| !n.is_empty()).map(|n| n.parse().expect("a number")).collect()
}
