//! The text of quantities: `8 + 6·n + 3·⌈n/2⌉`.

use super::{Quantity, Ramp};
use smol_str::SmolStr;
use std::fmt::Write;

use Quantity::*;

/// Names of a codelet's sizes and fields, by number.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Names {
    /// Sizes.
    pub sizes: Vec<SmolStr>,
    /// Fields.
    pub fields: Vec<SmolStr>,
}

impl Quantity {
    /// Returns the text, with sizes and constants by name.
    pub(in crate::cost) fn text(&self, names: &Names) -> String {
        self.write(names, 0)
    }

    /// Returns the text as a factor of a product.
    pub(in crate::cost) fn factor(&self, names: &Names) -> String {
        self.write(names, 2)
    }

    fn write(&self, names: &Names, strength: u8) -> String {
        let call =
            |name: &str, p: &[Quantity; 2]| format!("{name}({}, {})", p[0].write(names, 0), p[1].write(names, 0));
        let (own, text) = match self {
            Number(n) if *n < 0 => (1, n.to_string()),
            Number(n) => (3, n.to_string()),
            Size(s) => (3, names.sizes.get(s.as_u32() as usize).map_or("?".into(), |n| n.to_string())),
            Const(f) => (3, names.fields.get(f.as_u32() as usize).map_or("?".into(), |n| n.to_string())),
            Worker => (3, "worker".into()),
            Workers => (3, "workers".into()),
            Index(i) => (3, format!("i{i}")),
            Counter(k) => (3, format!("#{k}")),
            Add(list) => (1, sum(list.iter().rev().map(|q| q.write(names, 1)))),
            Mul(list) => (2, list.iter().map(|q| q.write(names, 2)).collect::<Vec<_>>().join("·")),
            Div(p) => (2, format!("{}/{}", p[0].write(names, 2), p[1].write(names, 3))),
            Rem(p) => (2, format!("{}%{}", p[0].write(names, 2), p[1].write(names, 3))),
            Ceil(x, d) => (3, format!("⌈{}/{d}⌉", x.write(names, 2))),
            Min(p) => (3, call("min", p)),
            Max(p) => (3, call("max", p)),
            Less(p) => (3, format!("[{} < {}]", p[0].write(names, 1), p[1].write(names, 1))),
            Equal(p) => (3, format!("[{} = {}]", p[0].write(names, 1), p[1].write(names, 1))),
            Ramp(r) => (3, r.text(names)),
        };
        if own < strength { format!("({text})") } else { text }
    }
}

impl Ramp {
    fn text(&self, names: &Names) -> String {
        let inner = sum([self.base.write(names, 1), Quantity::Index(0).scaled(self.slope).write(names, 1)]);
        let inner = inner.replace("i0", "t");
        let inner =
            if self.step == 1 { format!("max(0, {inner})") } else { format!("⌈max(0, {inner})/{}⌉", self.step) };
        format!("Σ(t < {}: {inner})", self.trip_count.write(names, 1))
    }
}

/// Joins summands with their signs.
pub(in crate::cost) fn sum(parts: impl IntoIterator<Item = String>) -> String {
    let mut text = String::new();
    for part in parts {
        match (text.is_empty(), part.strip_prefix('-')) {
            (true, _) => text.push_str(&part),
            (false, Some(rest)) => write!(text, " − {rest}").unwrap_or_default(),
            (false, None) => write!(text, " + {part}").unwrap_or_default(),
        }
    }
    text
}
