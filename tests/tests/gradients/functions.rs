//! Random codelet functions: branches, `switch`, loops, returns before the end, tuples, arrays and variables.

use super::{Model, Parameter};
use crate::numbers::Random;

/// Functions that they call: with a rule, without, and with several results.
const HEAD: &str = "
codelet fn pair(x: f64, y: f64) -> (p: f64, q: f64) { return (x * y, sin(x)); }
codelet fn three(x: f64, y: f64) -> f64[3] { return [x * y, cos(y), 0.5]; }
codelet fn early(x: f64, y: f64) -> f64 {
    if x > 0.2 {
        if y > 0.1 { return sqrt(x + y); }
        if x > y + 0.7 { return x * x; }
    } else if y > 0.3 { return 0.4 * x; }
    return x - y;
}
codelet fn ruled(x: f64, y: f64) -> (f64, f64) {
    let mut s = 0.0;
    for i in 0..2 { s += x * y; }
    return (s, x + y * y);
}
grad ruled(x, y; a, b; da, db) { return (x: 2.0 * y * da + db, y: 2.0 * x * da + 2.0 * y * db); }
";

/// Functions of arrays, and with loops.
const LOOPS: &str = "
codelet fn sum_of(a: f64[n], w: f64) -> f64 { let mut s = 0.0; for i in 0..n { s = 0.5 * s + w * a[i]; } return s; }
codelet fn least(a: f64[n], w: f64) -> f64 { return min i in 0..n { w * a[i] + 0.3 * f64(i) }; }
codelet fn halved(x: f64, y: f64) -> f64 {
    let mut t = x;
    for i in 0..6 {
        if abs(t) < 0.3 { return t * y; }
        t = 0.6 * t * (1.1 + 0.1 * y);
    }
    return t;
}
";

/// What a name is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Number,
    Pair,
    Array,
    Flag,
    Integer,
}

/// A name in scope, and whether it may be written.
type Named = (String, Kind, bool);

/// A function under construction.
struct Maker {
    random: Random,
    names: usize,
    scope: Vec<Named>,
    /// Whether there are loops, and functions of arrays.
    has_loops: bool,
    /// The number of loops around.
    loops: usize,
}

/// Returns a model that applies a random function, or its gradient. Those of odd seeds have loops.
pub fn model(seed: u64) -> Model {
    let random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let scope = [("x", Kind::Number), ("y", Kind::Number), ("k", Kind::Integer)];
    let scope = scope.map(|(n, kind)| (n.to_string(), kind, false)).to_vec();
    let mut m = Maker { random, names: 0, scope, has_loops: seed % 2 == 1, loops: 0 };
    let count = 2 + m.random.below(5);
    let statements = m.statements(count, 3);
    let result = m.returned();
    let head = format!(
        "{HEAD}{LOOPS}codelet fn random(x: f64, y: f64) -> f64 {{
    let k = i32(floor(x * 3.0)) - i32(y * 2.0);
    {statements}
    {result}
}}"
    );
    let body = match m.random.below(3) {
        0 => "let g = grad(sum(random(x, y)), wrt: (x: x, y: y)); return sum(g.x * g.x) + sum(g.y * x);",
        _ => "let z = random(x, y); return sum(z * z) + sum(z) + sum(x * y);",
    };
    let params = vec![Parameter::new("x", &[8], (-1.0, 1.0)), Parameter::new("y", &[8], (-1.0, 1.0))];
    Model { head, difference: body.into(), body: body.into(), params, bound: super::BOUND }
}

impl Maker {
    fn once_in(&mut self, n: usize) -> bool {
        self.random.below(n) == 0
    }

    fn name(&mut self) -> String {
        self.names += 1;
        format!("v{}", self.names)
    }

    fn number(&mut self) -> String {
        format!("{:?}", (self.random.below(4001) as f64 - 2000.0) / 1024.0)
    }

    /// Returns a name of a kind, if there is one.
    fn of(&mut self, kind: Kind, written: bool) -> Option<String> {
        let all: Vec<&Named> = self.scope.iter().filter(|(_, k, w)| *k == kind && (*w || !written)).collect();
        all.get(self.random.below(all.len())).map(|(n, ..)| n.clone())
    }

    fn integer(&mut self) -> String {
        self.of(Kind::Integer, false).unwrap_or_else(|| "k".into())
    }

    fn expr(&mut self, depth: usize) -> String {
        if depth == 0 || self.once_in(4) {
            let literal = self.once_in(7);
            return match self.of(Kind::Number, false).filter(|_| !literal) {
                Some(name) => name,
                None => format!("f64({})", self.number()),
            };
        }
        let a = self.expr(depth - 1);
        let b = self.expr(depth - 1);
        match self.random.below(if self.has_loops { 17 } else { 14 }) {
            14 => format!("{}([{a}, {b}, x], {a})", ["sum_of", "least"][self.random.below(2)]),
            15 => format!("halved({a}, {b})"),
            16 => {
                let op = ["sum", "max", "product"][self.random.below(3)];
                format!("({op} i in 0..3 where i != 1 {{ {a} + 0.3 * f64(i) * {b} }})")
            }
            0..3 => format!("({a} {} {b})", ["+", "-", "*"][self.random.below(3)]),
            3 => format!("sin({a})"),
            4 => format!("{a} / (1.5 + square({b}))"),
            5 => format!("tanh({a})"),
            6 => format!("max({a}, {b} * 0.5)"),
            7 => format!("pair({a}, {b}){}", ["[0]", "[1]", ".p", ".q"][self.random.below(4)]),
            8 => format!("three({a}, {b})[{}]", ["0", "1", "1 + 1", "k & 1"][self.random.below(4)]),
            9 => format!("ruled({a}, {b})[{}]", self.random.below(2)),
            10 => format!("early({a}, {b})"),
            11 => format!("0.3 * f64({}) * {a}", self.integer()),
            12 => match self.of(Kind::Pair, false) {
                Some(name) => format!("{name}{}", [".a", ".b", "[0]", "[1]"][self.random.below(4)]),
                None => a,
            },
            _ => match self.of(Kind::Array, false) {
                Some(name) => format!("{name}[{}]", ["0", "1", "k & 1"][self.random.below(3)]),
                None => b,
            },
        }
    }

    fn condition(&mut self, depth: usize) -> String {
        let (a, c) = (self.expr(1), self.number());
        match self.random.below(6) {
            0 if depth > 0 => format!("({} && {})", self.condition(depth - 1), self.condition(depth - 1)),
            1 if depth > 0 => format!("({} || {})", self.condition(depth - 1), self.condition(depth - 1)),
            2 => match self.of(Kind::Flag, false) {
                Some(flag) => format!("{}{flag}", ["", "!"][self.random.below(2)]),
                None => format!("{a} > {c}"),
            },
            3 => format!("{} {} {}", self.integer(), ["==", "<", ">"][self.random.below(3)], self.random.below(4)),
            _ => format!("{a} {} {c}", ["<", ">"][self.random.below(2)]),
        }
    }

    fn returned(&mut self) -> String {
        format!("return {};", self.expr(2))
    }

    /// Returns a block, with a value if it is wanted; it may return from the function if `leaves`.
    fn block(&mut self, depth: usize, wanted: bool, leaves: bool) -> String {
        let mark = self.scope.len();
        let count = self.random.below(3);
        let statements = self.statements(count, depth);
        let last = match leaves && self.once_in(3) {
            true if self.loops > 0 && !self.once_in(3) => ["break;", "continue;"][self.random.below(2)].into(),
            true => self.returned(),
            false if wanted => self.expr(2),
            false => String::new(),
        };
        self.scope.truncate(mark);
        format!("{{ {statements} {last} }}")
    }

    /// Returns an `if` or a `switch`.
    fn branch(&mut self, depth: usize, wanted: bool) -> String {
        let depth = depth - 1;
        if self.once_in(2) {
            let (cond, then) = (self.condition(1), self.block(depth, wanted, true));
            let els = match self.random.below(3) {
                0 if depth > 0 => format!(" else if {} {}", self.condition(1), self.block(depth, wanted, true)),
                _ => String::new(),
            };
            let last = if wanted || self.once_in(2) { self.block(depth, wanted, !wanted) } else { String::new() };
            let last = if last.is_empty() { last } else { format!(" else {last}") };
            return format!("if {cond} {then}{els}{last}");
        }
        let first = self.random.below(5) as i64 - 3;
        let keys = [format!("{first}"), format!("{}..{}, {}", first + 1, first + 3, first + 5), "_".into()];
        let count = if wanted { 3 } else { 1 + self.random.below(3) };
        let arms = (0..count).map(|k| (keys[k].clone(), self.block(depth, wanted, !wanted || k < 2)));
        let arms: Vec<String> = arms.map(|(key, block)| format!("{key} => {block}")).collect();
        format!("switch {} {{ {} }}", self.integer(), arms.join(" "))
    }

    fn statements(&mut self, count: usize, depth: usize) -> String {
        let all: Vec<String> = (0..count).map(|_| self.statement(depth)).collect();
        all.join("\n    ")
    }

    fn statement(&mut self, depth: usize) -> String {
        let (a, b) = (self.expr(2), self.expr(2));
        let (kind, mutable, value) = match self.random.below(if self.has_loops { 18 } else { 14 }) {
            14 if depth > 0 => return self.repeated(depth),
            15 | 16 => match self.of(Kind::Array, true) {
                Some(name) => {
                    return format!(
                        "{name}[{}] {} {a};",
                        ["0", "1", "k & 1"][self.random.below(3)],
                        ["=", "+="][self.random.below(2)]
                    );
                }
                None => (Kind::Array, true, format!("[{a}, {b}]")),
            },
            0 => (Kind::Number, true, a),
            1 => (Kind::Pair, true, format!("(a: {a}, b: {b})")),
            2 => (Kind::Array, false, format!("[{a}, {b}]")),
            3 => {
                let cond = self.condition(1);
                (Kind::Flag, true, ["true".into(), "false".into(), cond][self.random.below(3)].clone())
            }
            4 => (Kind::Integer, true, ["1", "k + 1", "i32(floor(x))"][self.random.below(3)].into()),
            5 if depth > 0 => (Kind::Number, true, self.branch(depth, true)),
            6 if depth > 0 => {
                let mark = self.scope.len();
                let (first, second) = (self.statement(depth - 1), self.branch(depth, false));
                let value = self.expr(2);
                self.scope.truncate(mark);
                (Kind::Number, false, format!("{{ {first} {second} {value} }}"))
            }
            7 => return self.swapped(a, &b),
            8 => match self.of(Kind::Flag, true) {
                Some(flag) => return format!("{flag} = {};", self.condition(1)),
                None => (Kind::Number, true, b),
            },
            9 => match self.of(Kind::Integer, true) {
                Some(name) => return format!("{name} {} {};", ["=", "+="][self.random.below(2)], self.random.below(3)),
                None => (Kind::Number, true, b),
            },
            10 => match self.of(Kind::Number, true) {
                Some(name) => return format!("{name} {} {a};", ["=", "+=", "*="][self.random.below(3)]),
                None => (Kind::Number, true, b),
            },
            _ if depth > 0 => return self.branch(depth, false),
            _ => (Kind::Number, true, a),
        };
        let name = self.name();
        self.scope.push((name.clone(), kind, mutable));
        format!("let {}{name} = {value};", if mutable { "mut " } else { "" })
    }

    /// Returns a loop.
    fn repeated(&mut self, depth: usize) -> String {
        let (name, count, mark) = (self.name(), 1 + self.random.below(3), self.scope.len());
        let is_while = self.once_in(2);
        self.scope.push((name.clone(), Kind::Integer, false));
        self.loops += 1;
        let body = self.block(depth - 1, false, true);
        self.loops -= 1;
        self.scope.truncate(mark);
        match is_while {
            true => format!("{{ let mut {name} = 0; while {name} < {count} {{ {name} += 1; {body} }} }}"),
            false => format!("for {name} in 0..{count} {body}"),
        }
    }

    /// Returns an assignment to several variables, or to one that holds a pair.
    fn swapped(&mut self, a: String, b: &str) -> String {
        match (self.of(Kind::Pair, true), self.of(Kind::Number, true), self.of(Kind::Number, true)) {
            (Some(pair), ..) if self.once_in(2) => format!("{pair} = ({pair}.b, {a});"),
            (Some(pair), Some(x), _) if self.once_in(2) => format!("({x}, {pair}) = ({b}, ({a}, {x}));"),
            (_, Some(x), Some(y)) if x != y => format!("({x}, {y}) = ({y}, {x} + {a});"),
            _ => self.new_number(a),
        }
    }

    fn new_number(&mut self, value: String) -> String {
        let name = self.name();
        self.scope.push((name.clone(), Kind::Number, true));
        format!("let mut {name} = {value};")
    }
}
