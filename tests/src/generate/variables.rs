//! Variables, their tiles, and views of them.
//!
//! Invariant: a view names no element twice, so that it may be read and written.

use super::Generator;

/// A variable as the text declares it.
#[derive(Clone, Debug)]
pub(super) struct Var {
    pub name: String,
    pub ty: &'static str,
    pub shape: Vec<u64>,
}

/// Element types, the most common ones more often.
const TYPES: [&str; 9] = ["f32", "f32", "i32", "f32", "i32", "u8", "f64", "i64", "bool"];

/// Tiles of the machine `small`.
pub(super) const TILES: u64 = 16;

impl Generator<'_> {
    /// Declares a variable.
    pub fn variable(&mut self) {
        let (k, ty) = (self.vars.len(), self.choices.pick(&TYPES));
        let rank = self.choices.pick(&[1, 2, 1, 2, 3, 0]);
        let dim = |g: &mut Self| g.choices.pick(&[4, 3, 2, 5, 1, 7, 8, 6, 0]);
        let shape: Vec<u64> = (0..rank).map(|_| dim(self)).collect();
        let name = format!("v{k}");
        let (init, place) = (self.initial(ty, &shape), self.place(shape.iter().product()));
        self.head += &format!("var {name}: {ty}{} = {init}{place};\n", dims(&shape));
        if rank > 0 && shape[0] > 0 && self.choices.once_in(3) {
            let by = self.choices.below(TILES);
            self.head += &format!("map {name}[i] on tile((i * {by} + {k}) % tiles) for i in 0..{};\n", shape[0]);
        }
        self.vars.push(Var { name, ty, shape });
    }

    /// Makes an initial value of different numbers, some of which repeat.
    fn initial(&mut self, ty: &str, shape: &[u64]) -> String {
        let (a, b) = (self.choices.below(9) + 1, self.choices.below(13) + 2);
        let terms: Vec<String> = (0..shape.len()).map(|d| format!("{} * i{d}", a + 2 * d as u64)).collect();
        let terms = if terms.is_empty() { a.to_string() } else { terms.join(" + ") };
        let value = match ty {
            "bool" => format!("({terms}) % {b} < {}", b / 2 + 1),
            "u8" => format!("({terms}) % {b}"),
            "f32" | "f64" => format!("(({terms}) % {b} - {}) * 0.75", b / 3),
            _ => format!("({terms}) % {b} - {}", b / 3),
        };
        // Rows of length 0 cannot be written.
        let rows: &[u64] = if shape.contains(&0) { &[] } else { shape };
        let value = if rows.is_empty() { super::values::literal(ty, a) } else { value };
        rows.iter().enumerate().rev().fold(value, |inner, (d, n)| format!("list i{d} in 0..{n} {{ {inner} }}"))
    }

    fn place(&mut self, elements: u64) -> String {
        let first = self.choices.below(TILES);
        match self.choices.below(6) {
            0 => format!(" on tile({first})"),
            1 => format!(" on tile({first}..{TILES})"),
            2 => format!(" on linear(grain: {})", self.choices.below(5) + 1),
            3 if elements > 1 => {
                let cut = self.choices.below(elements - 1) + 1;
                let other = (first + 5) % TILES;
                format!(" on {{ {first}: 0..{cut}; {other}: {cut}..{elements}; }}")
            }
            _ => String::new(),
        }
    }

    /// Makes a view of a variable. Returns its text and its shape.
    pub fn view(&mut self, var: &Var) -> (String, Vec<u64>) {
        let (mut text, mut shape) = (var.name.clone(), vec![]);
        if self.choices.below(2) == 0 {
            return (text, var.shape.clone());
        }
        let index: Vec<String> = var.shape.iter().map(|&n| self.index(n, &mut shape)).collect();
        if !index.is_empty() {
            text += &format!("[{}]", index.join(", "));
        }
        match self.choices.below(5) {
            0 if !shape.is_empty() => {
                text += ".transpose()";
                shape.reverse();
            }
            1 if !shape.is_empty() => text += &format!(".reverse(axis: {})", self.choices.below(shape.len() as u64)),
            2 if !shape.is_empty() => {
                text += ".flatten()";
                shape = vec![shape.iter().product()];
            }
            3 => {
                text += ".expand(0)";
                shape.insert(0, 1);
            }
            _ => {}
        }
        (text, shape)
    }

    /// Makes an index of an axis. If the axis stays, adds its new length to `shape`.
    fn index(&mut self, n: u64, shape: &mut Vec<u64>) -> String {
        match self.choices.below(5) {
            0 if n > 0 => self.choices.below(n).to_string(),
            1 => {
                let lo = self.choices.below(n + 1);
                let hi = lo + self.choices.below(n - lo + 1);
                shape.push(hi - lo);
                format!("{lo}..{hi}")
            }
            2 => {
                shape.push(n.div_ceil(2));
                ".. by 2".to_string()
            }
            3 if n > 0 => {
                shape.push(n);
                format!("{}..=0 by -1", n - 1)
            }
            _ => {
                shape.push(n);
                "..".to_string()
            }
        }
    }
}

/// Writes a shape as `[3, 4]`, or nothing for rank 0.
pub(super) fn dims(shape: &[u64]) -> String {
    if shape.is_empty() { String::new() } else { format!("{shape:?}") }
}
