//! Expressions on tensors.
//!
//! Invariant: an expression has the requested type and broadcasts to the requested shape. No operator has two static
//! operands, so that no static number overflows its type.

use super::Generator;
use super::variables::Var;

impl Generator<'_> {
    /// Makes an expression of a type that broadcasts to a shape.
    pub fn value(&mut self, ty: &'static str, shape: &[u64], depth: u32) -> String {
        if depth == 0 || self.choices.spent() || self.choices.once_in(4) {
            return if self.choices.once_in(4) { literal(ty, self.choices.below(10)) } else { self.leaf(ty, shape) };
        }
        self.operation(ty, shape, depth - 1)
    }

    /// Makes an expression that contains a tensor.
    fn operation(&mut self, ty: &'static str, shape: &[u64], depth: u32) -> String {
        let float = ty.starts_with('f');
        if ty == "bool" {
            let of = self.choices.pick(&["f32", "i32", "u8", "f64", "i64"]);
            let op = self.choices.pick(&["<", "<=", ">", ">=", "==", "!="]);
            let (a, b) = (self.leaf(of, shape), self.value(of, shape, depth));
            return format!("({a} {op} {b})");
        }
        match self.choices.below(8) {
            0 => {
                let from = self.choices.pick(&["f32", "i32", "u8", "f64", "i64", "bool"]);
                format!("{ty}({})", self.leaf(from, shape))
            }
            1 => {
                let f = self.choices.pick(&["min", "max"]);
                let (a, b) = (self.operation_or_leaf(ty, shape, depth), self.value(ty, shape, depth));
                format!("{f}({a}, {b})")
            }
            2 if ty != "u8" => format!("abs({})", self.operation_or_leaf(ty, shape, depth)),
            3 => self.reduction(ty, shape, depth),
            _ => {
                let ops: &[&str] = if float { &["+", "*", "-", "/"] } else { &["+", "*", "-", "&", "|", "^"] };
                let op = self.choices.pick(ops);
                let (a, b) = (self.operation_or_leaf(ty, shape, depth), self.value(ty, shape, depth));
                if self.choices.once_in(3) { format!("({b} {op} {a})") } else { format!("({a} {op} {b})") }
            }
        }
    }

    fn operation_or_leaf(&mut self, ty: &'static str, shape: &[u64], depth: u32) -> String {
        if depth == 0 { self.leaf(ty, shape) } else { self.operation(ty, shape, depth - 1) }
    }

    /// Makes a reduction of a variable, or of an expression with it, to one element or along an axis.
    fn reduction(&mut self, ty: &'static str, shape: &[u64], depth: u32) -> String {
        let numbers = |v: &Var| v.ty == ty && !v.shape.contains(&0);
        let Some(v) = self.any_var(numbers) else { return self.leaf(ty, &[]) };
        let op = self.choices.pick(&["sum", "max_of", "min_of", "product"]);
        let mut of = v.name.clone();
        if self.choices.once_in(2) {
            let with = self.choices.pick(&["+", "*", "-"]);
            of = format!("{of} {with} {}", self.value(ty, &v.shape, depth));
        }
        if !v.shape.is_empty() && self.choices.once_in(2) {
            let axis = self.choices.below(v.shape.len() as u64) as usize;
            let left: Vec<u64> = [&v.shape[..axis], &v.shape[axis + 1..]].concat();
            if broadcasts(&left, shape) {
                return format!("{op}({of}, axis: {axis})");
            }
        }
        format!("{op}({of})")
    }

    /// Makes a view that broadcasts to a shape, or the first element of a variable, converted if none has the type.
    pub fn leaf(&mut self, ty: &'static str, shape: &[u64]) -> String {
        for _ in 0..4 {
            let Some(var) = self.any_var(|v| v.ty == ty) else { break };
            let (text, own) = self.view(&var);
            if broadcasts(&own, shape) {
                return text;
            }
        }
        let Some(var) = self.any_var(|v| !v.shape.contains(&0)) else { return format!("{ty}(counter)") };
        let zeros: Vec<&str> = var.shape.iter().map(|_| "0").collect();
        let element = if zeros.is_empty() { var.name } else { format!("{}[{}]", var.name, zeros.join(", ")) };
        if var.ty == ty { element } else { format!("{ty}({element})") }
    }

    /// Chooses a variable for which a condition holds.
    pub fn any_var(&mut self, holds: impl Fn(&Var) -> bool) -> Option<Var> {
        let fit: Vec<&Var> = self.vars.iter().filter(|v| holds(v)).collect();
        (!fit.is_empty()).then(|| fit[self.choices.below(fit.len() as u64) as usize].clone())
    }
}

/// Makes a number of a type.
pub(super) fn literal(ty: &str, n: u64) -> String {
    match ty {
        "bool" => (n.is_multiple_of(2)).to_string(),
        "f32" | "f64" => format!("{}.5", n),
        _ => n.to_string(),
    }
}

/// Returns whether a shape broadcasts to another, as in NumPy.
fn broadcasts(from: &[u64], to: &[u64]) -> bool {
    from.len() <= to.len() && from.iter().rev().zip(to.iter().rev()).all(|(&a, &b)| a == b || a == 1)
}
