//! Views and expressions of random models.

use super::{Maker, Named, Style};

/// The greatest number of elements of a tensor.
const MOST: u64 = 64;

impl Maker {
    /// Returns a view of a tensor.
    pub fn view(&mut self) -> Named {
        let (name, shape) = self.pick();
        self.view_of(name, shape)
    }

    fn view_of(&mut self, name: String, shape: Vec<u64>) -> Named {
        if shape.is_empty() {
            return (name, shape);
        }
        let axis = self.random.below(shape.len());
        let n = shape[axis];
        let at = |index: &str| {
            let all: Vec<&str> = (0..shape.len()).map(|a| if a == axis { index } else { ".." }).collect();
            format!("{name}[{}]", all.join(", "))
        };
        let but_axis = || shape.iter().enumerate().filter(|(a, _)| *a != axis).map(|(_, &n)| n).collect();
        let with_axis = |n: u64| shape.iter().enumerate().map(|(a, &m)| if a == axis { n } else { m }).collect();
        match self.random.below(11) {
            0 => {
                let k = self.random.below(n as usize);
                (at(&k.to_string()), but_axis())
            }
            1 if n > 1 => (at(".. by 2"), with_axis(n.div_ceil(2))),
            2 => (format!("{name}.reverse({axis})"), shape),
            3 => (format!("{name}.flatten()"), vec![shape.iter().product()]),
            4 if shape.len() == 2 => (format!("{name}.transpose()"), vec![shape[1], shape[0]]),
            5 => (format!("concat([{name}, {name}], axis: {axis})"), with_axis(2 * n)),
            6 if n > 2 => (at(&format!("1..{n}")), with_axis(n - 1)),
            7 if shape.len() == 3 => (format!("{name}.permute([2, 0, 1])"), vec![shape[2], shape[0], shape[1]]),
            8 => match self.index(shape[0]) {
                Some(index) => (format!("{name}[{index}]"), shape[1..].to_vec()),
                None => (name, shape),
            },
            9 if self.style == Style::Rich => {
                let (k, j) = (self.random.below(shape[0] as usize), self.random.below(shape[0] as usize));
                let rest: Vec<u64> = [3].into_iter().chain(shape[1..].iter().copied()).collect();
                (format!("gather({name}, i32([{k}, {j}, {k}]))"), rest)
            }
            _ => (name, shape),
        }
    }

    /// Returns the index of a loop that stays below a length.
    pub fn index(&mut self, below: u64) -> Option<String> {
        self.indices.iter().rev().find(|(_, least)| *least <= below).map(|(name, _)| name.clone())
    }

    /// Returns an operand that broadcasts to a shape.
    pub fn fitting(&mut self, shape: &[u64]) -> String {
        for _ in 0..8 {
            let (text, s) = self.view();
            let fits = s.len() <= shape.len() && s.iter().rev().zip(shape.iter().rev()).all(|(a, b)| a == b || *a == 1);
            if fits {
                return text;
            }
        }
        "0.7".into()
    }

    /// Returns an operand of a shape.
    pub fn same(&mut self, shape: &[u64]) -> String {
        for _ in 0..8 {
            let (text, s) = self.view();
            if s == shape {
                return text;
            }
        }
        format!("(0.7 + zeros(shape: [{}], T: f64))", super::list(shape))
    }

    /// Returns an expression of a shape, given one operand of that shape.
    pub fn expression(&mut self, operand: &str, shape: &[u64]) -> String {
        let choices = if self.style == Style::Rich { 19 } else { 10 };
        match self.random.below(choices) {
            0 => format!("tanh({operand})"),
            1 => format!("sin({operand} * 1.3)"),
            2 => format!("exp({operand} * 0.3) - 1.0"),
            3 => format!("sigmoid({operand})"),
            4 => format!("{operand} * 0.5 + 0.1"),
            5 => format!("tanh({operand} * {})", self.fitting(shape)),
            6 => format!("0.6 * ({operand} - {})", self.fitting(shape)),
            7 => {
                let other = self.fitting(shape);
                format!("{operand} / (1.5 + {other} * {other})")
            }
            8 => format!("fma({operand}, 0.4, {})", self.fitting(shape)),
            9 => format!("maximum({operand}, {}) * 0.5", self.fitting(shape)),
            10 => format!("curved({operand})"),
            11 => format!("twofold({operand})"),
            12 => format!("ruled({operand}, {})", self.same(shape)),
            13 => format!("looped({operand})"),
            14 => format!("tanh(bent({operand}, {}))", self.fitting(shape)),
            15 => format!("tanh(cubic({operand}) + {})", self.fitting(shape)),
            16 => {
                let scale = self.fitting(shape);
                let member = ["value", "square"][self.random.below(2)];
                format!("parted({operand}, (scale: {scale}, rate: 2)).{member}")
            }
            17 => {
                let member = ["[0]", "[1][0]", "[1][1]"][self.random.below(3)];
                format!("tanh(paired({operand}){member})")
            }
            _ if self.once_in(3) => format!("narrow({operand})"),
            _ => format!("select({operand} > {} + 0.0137, {operand}, {})", self.fitting(shape), self.fitting(shape)),
        }
    }

    /// Returns an expression of a new tensor, and its shape.
    pub fn computed(&mut self) -> Option<Named> {
        let (operand, shape) = self.view();
        if !shape.is_empty() && self.once_in(6) {
            let axis = self.random.below(shape.len());
            let rest = shape.iter().enumerate().filter(|(a, _)| *a != axis).map(|(_, &n)| n).collect();
            let function = ["mean", "0.4 * sum", "max_of", "mean"][self.random.below(4)];
            return Some((format!("{function}({operand}, axis: {axis})"), rest));
        }
        if shape.len() == 2 && self.once_in(6) {
            return Some((format!("0.3 * ({operand} @ {operand}.transpose())"), vec![shape[0], shape[0]]));
        }
        if shape.iter().product::<u64>() > MOST {
            return None;
        }
        Some((self.expression(&operand, &shape), shape))
    }
}
