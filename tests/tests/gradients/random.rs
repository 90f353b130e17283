//! Random differentiable models: operators, views, writes to parts, branches and loops over a few tensors.

use super::Parameter;
#[path = "../../src/random.rs"]
mod numbers;
use numbers::Random;

struct Model {
    random: Random,
    text: String,
    /// Tensors: names and shapes.
    tensors: Vec<(String, Vec<u64>)>,
    /// Variables that may be written.
    vars: Vec<(String, Vec<u64>)>,
    /// Indices of the loops around, and the least length of an axis that they index.
    indices: Vec<(String, u64)>,
    names: usize,
    depth: usize,
    /// Whether branches and loops are frequent and nested.
    nested: bool,
}

/// Returns the body of a model of 5 to 40 operators, and its parameters.
pub fn model(seed: u64) -> (String, Vec<Parameter>) {
    let random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let (text, nested) = (String::new(), seed.is_multiple_of(2));
    let mut m = Model { random, text, tensors: vec![], vars: vec![], indices: vec![], names: 0, depth: 0, nested };
    let shapes: [&[u64]; 4] = [&[3, 4], &[4], &[2, 3, 4], &[]];
    let count = 1 + m.random.below(3);
    let mut params = vec![];
    for k in 0..count {
        let shape = shapes[m.random.below(4)];
        params.push(Parameter::new(&format!("p{k}"), shape, (-1.0, 1.0)));
        m.tensors.push((format!("p{k}"), shape.to_vec()));
    }
    let statements = 5 + m.random.below(if nested { 20 } else { 36 });
    m.block(statements);
    let (last, _) = m.tensors[m.tensors.len() - 1].clone();
    let vars: Vec<String> = m.vars.iter().map(|(n, _)| format!("sum({n} * {n})")).collect();
    let sums: Vec<String> = params.iter().map(|p| format!("sum({})", p.name)).collect();
    let all: Vec<String> = [format!("sum(tanh({last}))")].into_iter().chain(vars).chain(sums).collect();
    m.text += &format!("    return {};", all.join(" + "));
    (m.text, params)
}

impl Model {
    fn pick(&mut self) -> (String, Vec<u64>) {
        let k = self.random.below(self.tensors.len());
        self.tensors[k].clone()
    }

    fn name(&mut self) -> String {
        self.names += 1;
        format!("t{}", self.names)
    }

    fn block(&mut self, statements: usize) {
        for _ in 0..statements {
            let (choices, depth) = if self.nested { (18, 3) } else { (14, 2) };
            match self.random.below(choices) {
                0..=6 => self.value(),
                7 => self.declare(),
                8 | 9 => self.write(),
                10 => self.rewrite(),
                11 | 14 | 15 if self.depth < depth => self.branch(),
                12 | 16 | 17 if self.depth < depth => self.repeat(),
                _ => self.value(),
            }
        }
    }

    /// Returns a view of a tensor, and its shape.
    fn view(&mut self) -> (String, Vec<u64>) {
        let (name, shape) = self.pick();
        if shape.is_empty() {
            return (name, shape);
        }
        let axis = self.random.below(shape.len());
        let n = shape[axis];
        match self.random.below(8) {
            7 => {
                let fitting = self.indices.iter().rev().find(|(_, least)| *least <= shape[0]);
                match fitting {
                    Some((index, _)) => (format!("{name}[{index}]"), shape[1..].to_vec()),
                    None => (name, shape),
                }
            }
            0 => {
                let k = self.random.below(n as usize);
                let index: Vec<String> =
                    (0..shape.len()).map(|a| if a == axis { k.to_string() } else { "..".into() }).collect();
                let rest = shape.iter().enumerate().filter(|(a, _)| *a != axis).map(|(_, &n)| n).collect();
                (format!("{name}[{}]", index.join(", ")), rest)
            }
            1 if n > 1 => {
                let index: Vec<String> = (0..shape.len())
                    .map(|a| if a == axis { "..".to_string() + " by 2" } else { "..".into() })
                    .collect();
                let mut new = shape.clone();
                new[axis] = n.div_ceil(2);
                (format!("{name}[{}]", index.join(", ")), new)
            }
            2 => (format!("{name}.reverse({axis})"), shape),
            3 => (format!("{name}.reshape([{}])", shape.iter().product::<u64>()), vec![shape.iter().product()]),
            4 if shape.len() == 2 => (format!("{name}.transpose()"), vec![shape[1], shape[0]]),
            5 => {
                let mut new = shape.clone();
                new[axis] *= 2;
                (format!("concat([{name}, {name}], axis: {axis})"), new)
            }
            _ => (name, shape),
        }
    }

    /// Returns an operand that broadcasts to a shape.
    fn fitting(&mut self, shape: &[u64]) -> String {
        for _ in 0..8 {
            let (text, s) = self.view();
            let fits = s.len() <= shape.len() && s.iter().rev().zip(shape.iter().rev()).all(|(a, b)| a == b || *a == 1);
            if fits {
                return text;
            }
        }
        "0.7".into()
    }

    /// Returns an expression of a shape, given one operand of that shape.
    fn expression(&mut self, operand: &str, shape: &[u64]) -> String {
        match self.random.below(9) {
            0 => format!("tanh({operand})"),
            1 => format!("sin({operand} * 1.3)"),
            2 => format!("exp({operand} * 0.3) - 1.0"),
            3 => format!("sigmoid({operand})"),
            4 => format!("{operand} * 0.5 + 0.1"),
            5 => {
                let other = self.fitting(shape);
                format!("tanh({operand} * {other})")
            }
            6 => {
                let other = self.fitting(shape);
                format!("0.6 * ({operand} - {other})")
            }
            7 => {
                let other = self.fitting(shape);
                format!("{operand} / (1.5 + {other} * {other})")
            }
            _ => {
                let other = self.fitting(shape);
                format!("fma({operand}, 0.4, {other})")
            }
        }
    }

    fn value(&mut self) {
        let (operand, shape) = self.view();
        let name = self.name();
        if !shape.is_empty() && self.random.below(6) == 0 {
            let axis = self.random.below(shape.len());
            let rest = shape.iter().enumerate().filter(|(a, _)| *a != axis).map(|(_, &n)| n).collect();
            self.line(&format!("let {name} = mean({operand}, axis: {axis});"));
            self.tensors.push((name, rest));
            return;
        }
        if shape.len() == 2 && self.random.below(6) == 0 {
            self.line(&format!("let {name} = 0.3 * ({operand} @ {operand}.transpose());"));
            self.tensors.push((name, vec![shape[0], shape[0]]));
            return;
        }
        if shape.iter().product::<u64>() > 64 {
            return;
        }
        let value = self.expression(&operand, &shape);
        self.line(&format!("let {name} = {value};"));
        self.tensors.push((name, shape));
    }

    fn declare(&mut self) {
        let (operand, shape) = self.view();
        if shape.is_empty() || self.depth > 0 || shape.iter().product::<u64>() > 64 {
            return;
        }
        let name = self.name();
        let dims: Vec<String> = shape.iter().map(u64::to_string).collect();
        let value = self.expression(&operand, &shape);
        self.line(&format!("var {name}: f64[{}]; {name} <- {value};", dims.join(", ")));
        self.vars.push((name.clone(), shape.clone()));
        self.tensors.push((name, shape));
    }

    fn var(&mut self) -> Option<(String, Vec<u64>)> {
        let k = self.random.below(self.vars.len());
        self.vars.get(k).cloned()
    }

    /// Writes a part of a variable.
    fn write(&mut self) {
        let Some((name, shape)) = self.var() else { return };
        let (n, rest) = (shape[0], shape[1..].to_vec());
        let k = self.random.below(n as usize);
        let other = self.fitting(&rest);
        let value = if self.random.below(2) == 0 { format!("0.9 * {other}") } else { other };
        let value = if value == "0.7" { "0.7".to_string() } else { value };
        self.line(&format!("{name}[{k}] <- {value};"));
    }

    /// Writes all of a variable.
    fn rewrite(&mut self) {
        let Some((name, shape)) = self.var() else { return };
        let value = self.expression(&name, &shape);
        self.line(&format!("{name} <- {value};"));
    }

    fn inner(&mut self, statements: usize) {
        let tensors = self.tensors.len();
        self.depth += 1;
        self.block(statements);
        self.rewrite();
        self.depth -= 1;
        self.tensors.truncate(tensors);
    }

    fn branch(&mut self) {
        let (name, _) = self.pick();
        let limit = self.random.below(5) as f64 * 0.3 - 0.6;
        self.line(&format!("if sum({name}) > {limit:?} {{"));
        let n = self.length();
        self.inner(n);
        self.line("} else {");
        let n = self.length();
        self.inner(n);
        self.line("}");
    }

    fn repeat(&mut self) {
        if self.vars.is_empty() {
            return;
        }
        let count = 1 + self.random.below(3);
        self.names += 1;
        let index = format!("k{}", self.names);
        let indices = self.indices.len();
        let head = match self.random.below(4) {
            0 => format!("repeat {count}"),
            1 => format!("#[recompute] repeat {count}"),
            2 => {
                self.indices.push((index.clone(), count as u64));
                format!("repeat {index} in 0..{count}")
            }
            _ => {
                self.indices.push((index.clone(), count as u64 + 1));
                format!("repeat {index} in {count}..0 by -1")
            }
        };
        self.line(&format!("{head} {{"));
        let n = self.length();
        self.inner(n);
        self.line("}");
        self.indices.truncate(indices);
    }

    /// Returns the number of statements of an inner block.
    fn length(&mut self) -> usize {
        1 + self.random.below(if self.nested { 5 } else { 3 })
    }

    fn line(&mut self, text: &str) {
        self.text += &"    ".repeat(self.depth + 1);
        self.text += text;
        self.text += "\n";
    }
}
