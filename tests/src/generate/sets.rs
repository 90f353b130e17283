//! Compute sets and copies in a body.
//!
//! Invariant: they keep the race rule: each vertex writes its own row, of a variable that no vertex reads.

use super::Generator;
use super::values::literal;
use super::variables::{TILES, Var};

/// The codelets of the sets. Each reads `x` and writes `y` of the same length; `k` is a number of the vertex.
pub(super) const CODELETS: &str = "\
codelet scale<T: number>(in x: T[n], const k: T, out y: T[n]) { for i in 0..n { y[i] = x[i] * k + T(i); } }
codelet mix<T: number>(in x: T[n], const k: T, inout y: T[n]) {
    let s = sum i in 0..n { x[i] * x[i] };
    for i in 0..n { if x[i] > k { y[i] += s; } else { y[i] = max(y[i], x[n - 1 - i]) - k; } }
}
codelet some<T: number>(in x: T[n], const k: T, out y: T[n]) {
    for i in 0..n by 2 { if x[i] != k { y[i] = x[i]; } }
}
codelet turned<T: number>(in x: T[n], const k: T, out y: T[n]) {
    let mut t = [T(0); 8];
    for i in 0..n { t[(3 * i + 1) % 8] += x[i]; }
    for i in 0..n { y[i] = t[i % 8] + k; }
}
codelet search<T: number>(in x: T[n], const k: T, out y: T[n]) {
    let mut left = n;
    while left > 0 {
        left -= 1;
        if x[left] == k { break; }
    }
    for i in 0..n { y[i] = T(left) - x[i]; }
}
multi codelet shared<T: number>(in x: T[n], const k: T, out y: T[n]) {
    for i in worker * n / workers..(worker + 1) * n / workers { y[i] = x[i] - k; }
}
";

const NAMES: [&str; 6] = ["scale", "mix", "some", "turned", "search", "shared"];

impl Generator<'_> {
    /// Makes a compute set over the rows of a variable.
    pub fn compute(&mut self) -> String {
        let Some(y) = self.any_var(|v| v.ty != "bool" && !v.shape.is_empty()) else { return String::new() };
        let (rows, length) = (y.shape[0], y.shape[1..].iter().product::<u64>());
        let Some((x, room)) = self.source(&y, length) else { return String::new() };
        let (order, starts) = (self.row_of(rows), self.start_of(rows, room));
        let written = if y.shape.len() == 1 { format!("{}[{order}].expand(0)", y.name) } else { flat(&y, &order) };
        let read = format!("{}.flatten()[{starts}..{starts} + {length}]", x.name);
        let vertex = |g: &mut Self| {
            let (codelet, k) = (g.choices.pick(&NAMES), literal(y.ty, g.choices.below(4)));
            let place = g.vertex_place(rows);
            format!("vertex {codelet}(x: {read}, k: {k}, y: {written}){place};")
        };
        let form = self.choices.below(4);
        if form == 3 && rows <= 4 {
            // Statements outside loops: some with a place, some without.
            let one = |g: &mut Self, i: u64| format!("let i = {i}; {} ", vertex(g));
            let all: String = (0..rows).map(|i| one(self, i)).collect();
            return format!("compute {{ {all}}}\n");
        }
        let first = vertex(self);
        let body = match form {
            0 => {
                let (second, by) = (vertex(self), self.choices.below(3) + 2);
                format!("if i % {by} == 1 {{ {first} }} else {{ {second} }}")
            }
            _ => first,
        };
        format!("compute {{ for i in 0..{rows} {{ {body} }} }}\n")
    }

    /// Finds another variable of the type with enough elements for a row. Returns it and the last possible start of a
    /// row.
    fn source(&mut self, y: &Var, length: u64) -> Option<(Var, u64)> {
        let elements = |v: &Var| v.shape.iter().product::<u64>();
        let length = if y.shape.len() == 1 { 1 } else { length };
        let x = self.any_var(|v| v.name != y.name && v.ty == y.ty && elements(v) >= length)?;
        let room = elements(&x) - length;
        Some((x, room))
    }

    /// Makes the row that vertex `i` writes; each row is written once.
    fn row_of(&mut self, rows: u64) -> String {
        match self.choices.below(3) {
            0 if rows > 0 => format!("{:?}[i]", self.choices.permutation(rows)),
            1 => format!("{rows} - 1 - i"),
            _ => "i".to_string(),
        }
    }

    /// Makes the first element that vertex `i` reads, at most `room`.
    fn start_of(&mut self, rows: u64, room: u64) -> String {
        match self.choices.below(3) {
            0 if rows > 0 => {
                let starts: Vec<u64> = (0..rows).map(|_| self.choices.below(room + 1)).collect();
                format!("{starts:?}[i]")
            }
            1 => format!("min(i * {}, {room})", self.choices.below(4)),
            _ => format!("i % {}", room + 1),
        }
    }

    fn vertex_place(&mut self, rows: u64) -> String {
        match self.choices.below(4) {
            0 => format!(" on tile(i * {} % tiles)", self.choices.below(TILES)),
            1 if rows > 0 => {
                let tiles: Vec<u64> = (0..rows).map(|_| self.choices.below(TILES)).collect();
                format!(" on tile({tiles:?}[i])")
            }
            2 => format!(" on tile({})", self.choices.below(TILES)),
            _ => String::new(),
        }
    }

    /// Makes a copy of rows; it may read the variable that it writes.
    pub fn copy(&mut self) -> String {
        let Some(y) = self.any_var(|v| !v.shape.is_empty()) else { return String::new() };
        let x = self.any_var(|v| v.ty == y.ty && v.shape[..] == y.shape[..]).unwrap_or(y.clone());
        let rows = y.shape[0];
        let (to, from) = (self.row_of(rows), self.row_of(rows));
        format!("copy {{ {}[{to}] <- {}[{from}] for i in 0..{rows}; }}\n", y.name, x.name)
    }
}

fn flat(y: &Var, row: &str) -> String {
    if y.shape.len() == 2 { format!("{}[{row}]", y.name) } else { format!("{}[{row}].flatten()", y.name) }
}
