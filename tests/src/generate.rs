//! Random programs that compile: variables of several types, shapes and places, operators, views, copies, compute sets
//! in regular and irregular families, and run-time control around them.
//!
//! Invariant: the text is a function of the bytes, keeps the race rule, and ends: a `while` counts up to a number.

mod choices;
mod sets;
mod values;
mod variables;

use choices::Choices;
use variables::Var;

/// Makes the text of a program; `bytes` determine every choice.
pub fn program(bytes: &[u8]) -> String {
    let mut g = Generator { choices: Choices::new(bytes), head: String::new(), vars: vec![], prints: 0, whiles: 0 };
    for _ in 0..3 + g.choices.below(4) {
        g.variable();
    }
    let mut body = String::new();
    for _ in 0..2 + g.choices.below(6) {
        body += &g.step(2);
    }
    let shown: Vec<String> = g.vars.iter().map(|v| format!("print(\"{0}\", {0});\n", v.name)).collect();
    let (head, shown) = (g.head, shown.concat());
    format!("{}{head}var counter: i32;\n\nprogram main() {{\n{body}{shown}}}\n", sets::CODELETS)
}

struct Generator<'b> {
    choices: Choices<'b>,
    /// Declarations so far.
    head: String,
    vars: Vec<Var>,
    prints: u32,
    whiles: u32,
}

impl Generator<'_> {
    /// Makes a statement, with loops and branches nested at most `depth` deep.
    fn step(&mut self, depth: u32) -> String {
        match self.choices.below(if depth > 0 { 11 } else { 7 }) {
            0..=2 => self.write(),
            3 | 4 => self.compute(),
            5 => self.copy(),
            6 => self.print(),
            7 => {
                let index = if self.choices.below(2) == 0 { "" } else { "t in 0..6 by " };
                format!("repeat {index}{} {{\n{}}}\n", self.choices.below(3) + 1, self.block(depth - 1))
            }
            8 => {
                // Each loop has its own counter, because a loop in its body would reset a shared one.
                self.whiles += 1;
                let (k, most) = (self.whiles, self.choices.below(4));
                self.head += &format!("var c{k}: i32;\n");
                let body = self.block(depth - 1);
                format!("c{k} <- 0;\nwhile c{k} < {most} {{\nc{k} += 1;\n{body}}}\n")
            }
            9 => {
                let cond = self.value("bool", &[], 2);
                let (then, els) = (self.block(depth - 1), self.block(depth - 1));
                format!("if {cond} {{\n{then}}} else {{\n{els}}}\n")
            }
            _ => {
                let on = self.leaf("i32", &[]);
                let (a, b, c) = (self.block(depth - 1), self.block(depth - 1), self.block(depth - 1));
                format!("switch {on} {{ 0, 1 => {{\n{a}}} 2..=5 => {{\n{b}}} _ => {{\n{c}}} }}\n")
            }
        }
    }

    fn block(&mut self, depth: u32) -> String {
        (0..1 + self.choices.below(2)).map(|_| self.step(depth)).collect()
    }

    /// Makes `view <- value;`.
    fn write(&mut self) -> String {
        let Some(var) = self.any_var(|_| true) else { return String::new() };
        let (target, shape) = self.view(&var);
        let op = if var.ty == "bool" { "<-" } else { self.choices.pick(&["<-", "<-", "+=", "*=", "-="]) };
        format!("{target} {op} {};\n", self.value(var.ty, &shape, 3))
    }

    fn print(&mut self) -> String {
        let ty = self.choices.pick(&["f32", "i32"]);
        self.prints += 1;
        let shown = self.leaf(ty, &[4]);
        format!("print(\"p{}\", {shown});\n", self.prints)
    }
}
