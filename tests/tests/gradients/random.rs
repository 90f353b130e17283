//! Random differentiable models: operators, views, writes to parts, functions, branches and loops over a few tensors.

#[path = "random/expressions.rs"]
mod expressions;
#[path = "random/statements.rs"]
mod statements;

use super::{Model, Parameter};
use crate::numbers::Random;

/// A tensor in scope: its name and its shape.
type Named = (String, Vec<u64>);

/// The functions that models call: with a rule, without, with several results, and of numbers.
const HEAD: &str = "
codelet fn bent<T: float>(x: T, y: T) -> T {
    let s = x * y;
    if s > 0.1 && x < 2.0 { return 0.2 * s + y; }
    let t = s * s;
    return if y > 0.0 { t * 2.0 + y } else { 0.2 * s + y };
}
codelet fn cubic<T: float>(x: T) -> T { return x * x * x * T(0.2); }
grad cubic(x; y; dy) { return (x: dy * x * x * 0.6); }
codelet scaled_square(in x: f64[n], in w: f64[n], out y: f64[n]) { for i in 0..n { y[i] = 0.3 * x[i] * x[i] * w[i]; } }
fn curved(x: f64[..s]) { let t = tanh(x); return t * t + 0.3 * x; }
fn twofold(x: f64[..s]) { return curved(curved(x) * 0.5); }
fn ruled(x: f64[..s], w: f64[..s]) {
    var y: f64[..s];
    compute { vertex scaled_square(x: x.flatten(), w: w.flatten(), y: y.flatten()); }
    return y;
}
grad ruled(x, w; y; dy) { return (x: dy * x * w * 0.6, w: dy * x * x * 0.3); }
fn looped(x: f64[..s]) { var h: f64[..s]; h <- x; repeat 2 { h <- 0.5 * h + sin(h * x); } return h; }
fn parted(x: f64[..s], p) { let y = sin(x * p.scale); return (value: y, square: y * y, rate: p.rate); }
fn paired(x: f64[..s]) { return (0.5 * x, [x * x * 0.3, cubic(x)]); }
grad paired(x; y, z; dy, dz) { return (x: 0.5 * dy + 0.6 * x * dz[0] + 0.6 * x * x * dz[1]); }
fn narrow(x: f64[..s]) { return f64(f32(x)); }
fn wide(x: f64[..s]) { return x * 1.0; }
";

/// A model under construction.
struct Maker {
    random: Random,
    /// The statements of the model, and those of the model whose differences are taken.
    text: [String; 2],
    /// Variables that hold stopped values.
    frozen: Vec<String>,
    tensors: Vec<Named>,
    /// Variables, and views of them, that may be written.
    vars: Vec<Named>,
    /// Indices of the loops around, and the least length of an axis that they index.
    indices: Vec<(String, u64)>,
    names: usize,
    depth: usize,
    style: Style,
}

/// What is frequent in a model.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    /// Operators.
    Flat,
    /// Branches and loops, nested.
    Nested,
    /// Functions, and variables that share elements.
    Rich,
    /// Gradients of parts of the model.
    Twice,
}

/// Returns a model of 5 to 40 operators.
pub fn model(seed: u64) -> Model {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let style = [Style::Flat, Style::Nested, Style::Rich, Style::Twice][random.below(4)];
    let text = [String::new(), String::new()];
    let (frozen, tensors, vars, indices) = (vec![], vec![], vec![], vec![]);
    let mut m = Maker { random, text, frozen, tensors, vars, indices, names: 0, depth: 0, style };
    let shapes: [&[u64]; 4] = [&[3, 4], &[4], &[2, 3, 4], &[]];
    let count = 1 + m.random.below(3);
    let mut params = vec![];
    for k in 0..count {
        let shape = shapes[m.random.below(4)];
        params.push(Parameter::new(&format!("p{k}"), shape, (-1.0, 1.0)));
        m.tensors.push((format!("p{k}"), shape.to_vec()));
    }
    let most = match style {
        Style::Flat => 36,
        Style::Nested | Style::Rich => 20,
        Style::Twice => 12,
    };
    let statements = 5 + m.random.below(most);
    m.block(statements);
    let (last, _) = m.tensors[m.tensors.len() - 1].clone();
    let vars: Vec<String> = m.vars.iter().map(|(n, _)| format!("sum({n} * {n})")).collect();
    let sums: Vec<String> = params.iter().map(|p| format!("sum({})", p.name)).collect();
    let all: Vec<String> = [format!("sum(tanh({last}))")].into_iter().chain(vars).chain(sums).collect();
    m.line(&format!("return {};", all.join(" + ")));
    let [body, difference] = m.text;
    let head = format!("{HEAD}{}", m.frozen.concat());
    let bound = if body.contains("narrow(") { 1e-4 } else { super::BOUND };
    Model { head, body, difference: difference.replace("narrow(", "wide("), params, bound }
}

impl Maker {
    fn pick(&mut self) -> Named {
        let k = self.random.below(self.tensors.len());
        self.tensors[k].clone()
    }

    fn var(&mut self) -> Option<Named> {
        let k = self.random.below(self.vars.len());
        self.vars.get(k).cloned()
    }

    fn name(&mut self) -> String {
        self.names += 1;
        format!("t{}", self.names)
    }

    /// Returns whether one of `n` cases holds.
    fn once_in(&mut self, n: usize) -> bool {
        self.random.below(n) == 0
    }

    fn line(&mut self, text: &str) {
        self.lines(text, text);
    }

    /// Adds a line to the model and another to the one whose differences are taken.
    fn lines(&mut self, model: &str, difference: &str) {
        for (all, line) in self.text.iter_mut().zip([model, difference]) {
            *all += &"    ".repeat(self.depth + 1);
            *all += line;
            *all += "\n";
        }
    }
}

fn list(shape: &[u64]) -> String {
    shape.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
}
