//! `#[recompute]` in `#[recompute]`, with states: a gradient has the bits of that of the same text without attributes.

use crate::numbers::Random;
use girder::After;
use girder_source::par_map_slice;
use girder_tests::Program;
use std::fmt::Write;

/// Functions with states, and what the parts read.
const HEAD: &str = "
use nn; use optim; use random;
codelet advance(inout next: u32[2], out key: u32[2]) { key[0] = next[0]; key[1] = next[1]; next[1] += 1; }
state next: u32[2] = [1, 0];
fn tick() { var key: u32[2]; compute { vertex advance(next: next, key: key); } return key; }
fn counter() { state c: f32 = 0; let k = copy(c) + 1.0; c += 1.0; return k; }
fn dropped(x) { random.dropout(x, 0.3, seed: 1) }
fn layer(seed) {
    param w: f32[8, 8] = random.normal(seed: seed);
    return (w: w, apply: fn(x) { x @ w }, train: fn(x) { #[recompute] let y = { dropped(tanh(x @ w)) }; y });
}
let layers = list k in 0..4 { layer(k) };
let inner = nn.repeated([layers[0], layers[1]], recompute: true);
let outer = nn.repeated([inner, nn.repeated([layers[2], layers[3]], recompute: true)], recompute: true);
param w: f32[8] = [1.0, 0.5, -1.0, 2.0, 0.25, -0.5, 1.5, 0.75];
var key: u32[2] = [3, 4];
var n: i32;
var m: f32[8];
";

/// Statements that make `r` of `g`.
const PARTS: &[&str] = &[
    "#[recompute] repeat 2 { #[recompute] repeat 3 { g <- dropped(g); } } let r = g;",
    "#[recompute] repeat 2 { #[recompute] repeat 2 { #[recompute] repeat 2 { g <- g * w + dropped(g); } } } let \
     r = g;",
    "#[recompute] repeat 2 { #[recompute] repeat 2 { g <- g * w * counter(); } g <- dropped(g) * counter(); } let \
     r = g;",
    "#[recompute] repeat 3 { #[recompute] let y = { dropped(g * w) }; g <- y; } let r = g;",
    "repeat 2 { #[recompute] let y = { #[recompute] let z = { dropped(g * w) }; z * w }; g <- y; } let r = g;",
    "#[recompute] let r = { #[recompute] let z = { #[recompute] let v = dropped(g * w); v * v }; z * counter() };",
    "#[recompute] repeat 2 { #[recompute] { let y = dropped(g * w); m <- stopped(y * y); } g <- g * m * counter(); } \
     let r = g;",
    // A loop or a branch in a part advances a state, which the part advances from where it began.
    "#[recompute] let r = { var h: f32[8]; h <- g; repeat 3 { h <- dropped(h * w); } h * counter() };",
    "#[recompute] let r = { var h: f32[8]; h <- g; #[recompute] repeat 2 { #[recompute] let z = dropped(h * w); h <- \
     z + w * counter(); } h };",
    "repeat 2 { #[recompute] let y = { var h: f32[8]; h <- g; if n % 2 == 0 { h <- h * w * counter(); } h }; n += 1; \
     g <- y; } let r = g;",
    "repeat 2 { #[recompute] let y = { n += 1; dropped(g * f32(n) + f32(n)) }; #[recompute] let z = { let a = y * \
     f32(n); n += 2; a * f32(n) }; g <- z; } let r = g;",
    // Both parts read `n` from one row.
    "repeat 2 { #[recompute] let y = { let a = g * f32(n); a * a }; #[recompute] let z = { n += 3; y * f32(n) * w }; \
     g <- z; } let r = g;",
    "#[recompute] let r = { n += 1; let a = g * f32(n); n += 2; a * a * f32(n) };",
    "#[recompute] repeat 2 { let k = tick(); #[recompute] repeat 2 { let q = tick(); g <- random.dropout(g, 0.2, \
     seed: q, site: 1) + random.dropout(w, 0.2, seed: k, site: 2); } } let r = g;",
    "#[recompute] repeat 2 { #[recompute] #[offload] repeat 2 { g <- g * w * counter(); } } let r = g;",
    "#[recompute] #[offload] repeat 2 { #[recompute] repeat 2 { g <- dropped(g); let q = tick(); g <- \
     random.dropout(g, 0.2, seed: q, site: 1); } g <- g * counter(); } let r = g;",
    "let y = outer.train(concat([g, w]).reshape([2, 8])); let r = y[0] + y[1];",
    "#[recompute] let r = inner.train(g.reshape([1, 8]))[0];",
];

/// Returns a program whose last statement prints gradients.
fn program(part: &str, gradients: &str) -> String {
    format!(
        "{HEAD}program main() {{
            n <- 0;
            var g: f32[8];
            g <- w;
            {part}
            print(\"r\", r);
            {gradients}
            print(\"n\", n);
            print(\"next\", next);
            print(\"m\", m);
        }}"
    )
}

fn without_attributes(text: &str) -> String {
    ["#[recompute] ", "#[offload] ", ", recompute: true"].iter().fold(text.into(), |t: String, a| t.replace(a, ""))
}

#[test]
fn parts_in_parts_advance_states_once() {
    par_map_slice(PARTS, |part| {
        let gradients = "let d = grad(sum(r * r), wrt: [w] + leaves(layers)); for v in d { print(\"d\", v); }";
        let text = program(part, gradients);
        let plain = Program::text(without_attributes(&text)).over_memory().run_everywhere();
        let again = Program::text(text).over_memory().run_everywhere();
        assert_eq!(again.prints, plain.prints, "{part}");
    });
}

/// Two gradients through the same parts, and one in `optim.accumulated`.
#[test]
fn parts_are_computed_again_for_each_gradient() {
    par_map_slice(PARTS, |part| {
        let twice = "print(\"w\", grad(sum(r * r), wrt: w)); print(\"w\", grad(sum(r * r * r), wrt: w));";
        let text = program(part, twice);
        let run = |text| Program::text(text).over_memory().interpret(After::ELABORATE).map(|o| o.prints);
        let plain = run(without_attributes(&text)).unwrap_or_else(|f| panic!("{part}: {f}"));
        let again = run(text).unwrap_or_else(|f| panic!("{part}: {f}"));
        assert_eq!(again, plain, "{part}");
    });
    let text = format!(
        "{HEAD}program main() {{
            let r = optim.accumulated(2, fn() {{
                var g: f32[8];
                g <- w;
                #[recompute] repeat 2 {{ #[recompute] repeat 2 {{ g <- dropped(g); }} }}
                (g, grad(sum(g), wrt: w))
            }});
            print(\"same\", all(abs(r[0] - r[1] * w) < 0.00001));
        }}"
    );
    assert_eq!(Program::text(text).over_memory().run_everywhere().prints, ["same true"]);
}

/// A random nest of loops, parts and branches.
struct Nest {
    random: Random,
    text: String,
    sites: usize,
    names: usize,
}

impl Nest {
    fn new(seed: u64) -> Nest {
        let random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let mut nest = Nest { random, text: String::new(), sites: 0, names: 0 };
        nest.repeat("g", 3);
        nest
    }

    fn block(&mut self, g: &str, depth: usize) {
        for _ in 0..1 + self.random.below(3) {
            self.statement(g, depth);
        }
    }

    fn statement(&mut self, g: &str, depth: usize) {
        self.sites += 1;
        let site = self.sites;
        let step = match self.random.below(if depth > 0 { 16 } else { 10 }) {
            0 => format!("{g} <- random.dropout({g}, 0.25, seed: 1, site: {site});"),
            1 => format!("{g} <- random.dropout({g}, 0.25, seed: key, site: {site});"),
            2 => format!("let q{site} = tick(); {g} <- random.dropout({g} * w, 0.2, seed: q{site}, site: {site});"),
            3 => format!("{g} <- {g} + w * random.normal([8], seed: 2, site: {site});"),
            4 => format!("{g} <- {g} * w;"),
            5 => format!("{g} <- tanh({g} + w * f32(n)); n += 1;"),
            6 => format!("n += 1; {g} <- sin({g} * w * f32(n % 3));"),
            7 => format!("m <- 0.5 * m + 0.5 * stopped({g});"),
            8 => format!("{g} <- {g} * counter() * 0.3;"),
            9 => format!("{g} <- {g} * 1.25 + w;"),
            10..=12 => return self.repeat(g, depth),
            13 | 14 => return self.part(g, depth),
            _ => return self.branch(g, depth),
        };
        self.text += &step;
        self.text += "\n";
    }

    fn attributes(&mut self, of_loop: bool) -> &'static str {
        match self.random.below(10) {
            0..=5 => "#[recompute] ",
            6 if of_loop => "#[recompute] #[offload] ",
            7 if of_loop => "#[offload] ",
            _ => "",
        }
    }

    fn repeat(&mut self, g: &str, depth: usize) {
        let (attributes, count) = (self.attributes(true), 1 + self.random.below(3));
        _ = writeln!(self.text, "{attributes}repeat {count} {{");
        self.block(g, depth - 1);
        self.text += "}\n";
    }

    fn part(&mut self, g: &str, depth: usize) {
        self.names += 1;
        let (attributes, k) = (self.attributes(false), self.names);
        _ = writeln!(self.text, "{attributes}let y{k} = {{ var h{k}: f32[8]; h{k} <- {g};");
        self.block(&format!("h{k}"), depth - 1);
        _ = writeln!(self.text, "h{k} }};\n{g} <- y{k};");
    }

    fn branch(&mut self, g: &str, depth: usize) {
        self.text += "if n % 2 == 0 {\n";
        self.block(g, depth - 1);
        self.text += "} else {\n";
        self.block(g, depth - 1);
        self.text += "}\n";
    }
}

/// What one of 60 random nests gives does not depend on its attributes.
#[test]
fn random_nests_are_computed_again() {
    let seeds: Vec<u64> = (1..=60).collect();
    let compared = par_map_slice(&seeds, |&seed| {
        let text = program(&format!("{}let r = g;", Nest::new(seed).text), "print(\"w\", grad(sum(r * r), wrt: w));");
        let run = |text| Program::text(text).over_memory().interpret(After::ELABORATE).map(|o| o.prints);
        let Ok(plain) = run(without_attributes(&text)) else { return 0 };
        let again = run(text.clone()).unwrap_or_else(|f| panic!("nest {seed}: {f}\n{text}"));
        assert_eq!(again, plain, "nest {seed}\n{text}");
        1
    });
    let compared: usize = compared.into_iter().sum();
    assert!(compared >= 50, "{compared} of 60 nests compile");
}
