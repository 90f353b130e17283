//! Mutated programs: tokens of valid programs are dropped, doubled, exchanged and replaced.
//!
//! Invariant: no mutation causes a panic, and every accepted codelet passes the verifier.

#[path = "../../../../tests/src/random.rs"]
mod random;

use super::*;
use random::Random;

const RIGHT: [&str; 6] = [
    "#[cycles(3 + n * 2)] codelet c(in a: f32[m, n], in k: i32, const s: f32, out y: f32[m], inout z: f32) {
        let mut t = [[0.0; 4]; 2]; let (p, q) = (1, 2.5); let mut w = 0;
        for i in 0..m, j in 0..n by 2 { if a[i, j] > s && k != 3 { continue; } w += j; t[0, 1] = a[i, j] * q; }
        y[0] = sum i in 0..m, j in 0..n where a[i, j] > 0.0 { a[i, j] * s };
        while w > 0 { w -= 1; if w == 5 { break; } }
        z = if k > p { t[1, 2] } else { f32(w) };
    }",
    "codelet c(in a: f32[n], in k: i32, out y: f32[n]) {
        let row = a[1..]; let part = row[.. by 2];
        let (i, j) = argmin i in 0..n, j in 0..3 { a[i] + f32(j) };
        y[i] = switch k { 0, 1 => { total(part) } 2..5 => { return; } _ => { f(a[j], x: 2.0) } };
        (y[0], y[1]) = (1, g(f32(k)).w);
    }
    codelet fn total(x: f32[k]) -> f32 { for i in 0..k { if x[i] > 3.0 { return x[i]; } } sum i in 0..k { x[i] } }
    codelet fn f<T: float>(y: T, x: T = 2 * y) -> T { if T == f64 { return y; } min(x, y, 3) }
    codelet fn g<T>(x: T) -> (w: T, v: bool) { (x, true) }",
    "multi codelet c(in a: f32[m, k], in b: f32[k, n], inout c: f32[m, n]) {
        amp(c[0..2, ..], a[.., 0..2], b.transpose());
        for i in worker..m { assert(i % workers == 0, \"rows\"); c[i, 0] = abs(-b[0, i]) + fma(s(a[i]), 1, f32.max); }
    }
    codelet fn s(x: f32[n]) -> f32 { let mut r = x[0]; for i in 1..=n - 1 { r = max(r, x[i]); } r }",
    "let four = 4; codelet c(in a: u32[four + n], in b: u32[n], out y: u32) {
        let t = [1, 2, four]; let mut h: u32 = 0x9e3779b9; let mut i = 0;
        while any j in 0..n { a[j] > h } { h = h << 3 ^ h >> 2 | !h & 7; i += 1; }
        y = u32.bits(f32.bits(h)) + popcount(h) / u32(t[2]) % a[i] + select(i > 3, 1, clz(h));
        { let a = ({ i = i + 1; i }) * i; y = u32(a) + y_of(a, i); }
    }
    codelet fn y_of(a: int, b: int) -> u32 { let u = a / b; { let u = u - 1; u32(u) } }",
    "codelet c(in a: bool[n], inout y: i64) {
        y = (argmax i in n - 1..=0 by -1 where a[i] || i > 3 { i }) + (product i in 0..n { 2 })
            - int(all i in 0..n { a[i] });
        let x = 1 + 2 * 3 - 4 / 5 % 6; let z = -1.5 + 0.5; let b = true & false | (x > 2) ^ true;
        if x == 7 { y += x; } else if b { y = no_name; }
    }",
    "codelet c(inout y: f32[8, n]) { let v = y[..., 0]; let w = y[7, 3..0 by -1]; twice(v); twice(w); y[0, 0] += w[1]; }
    codelet fn twice(x: f32[k]) { for i in 0..k { x[i] = 2 * x[i]; } }",
];

fn tokens(source: &str) -> Vec<String> {
    let mut list: Vec<String> = vec![];
    let mut joins = false;
    for ch in source.chars() {
        let word = ch.is_alphanumeric() || ch == '_' || ch == '"';
        let pairs = ["..", "=>", "==", "->", "<-", "+=", "-=", "^=", "<<", ">>", "&&", "||", "!=", "<=", ">=", "..="];
        match list.last_mut() {
            Some(l) if word && joins => l.push(ch),
            Some(l) if !word && pairs.contains(&format!("{l}{ch}").as_str()) => l.push(ch),
            _ if ch.is_whitespace() => {}
            _ => list.push(ch.to_string()),
        }
        joins = word;
    }
    list
}

fn is_word(token: &str) -> bool {
    token.chars().all(char::is_alphanumeric)
}

fn mutated(list: &mut Vec<String>, random: &mut Random) {
    for _ in 0..1 + random.below(3) {
        let (i, j) = (random.below(list.len()), random.below(list.len()));
        // A word mostly replaces a word, and a sign a sign, so that many mutations still parse.
        let other = (0..8).map(|_| random.below(list.len())).find(|&k| is_word(&list[k]) == is_word(&list[i]));
        match random.below(12) {
            0 => drop(list.remove(i)),
            1 => list.insert(i, list[j].clone()),
            2 => list.swap(i, j),
            _ => list[i] = list[other.unwrap_or(j)].clone(),
        }
    }
}

#[test]
fn almost_right_programs_are_read_without_a_panic() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let (mut accepted, mut reported) = (0, 0);
    for round in 0..ROUNDS {
        let mut list = tokens(RIGHT[round % RIGHT.len()]);
        mutated(&mut list, &mut random);
        let Some(world) = World::mended(&list.join(" ")) else { continue };
        let (item, attrs) = world.item();
        let args: Vec<_> = item.generics.iter().map(|_| GenericArg::Type(ElemType::F32)).collect();
        let mut diagnostics = Diagnostics::default();
        match specialise(&world, MODULE, item, attrs, &args, &world.session, &mut diagnostics) {
            Ok(codelet) => {
                accepted += 1;
                assert_eq!(verify(&codelet), Ok(()), "{}", list.join(" "));
            }
            Err(_) => reported += 1,
        }
    }
    assert!(accepted > ROUNDS / 100 && reported > ROUNDS / 100, "{accepted} accepted, {reported} reported");
}

#[test]
fn the_right_programs_are_right() {
    for source in RIGHT {
        let world = World::new(source);
        let mut diagnostics = Diagnostics::default();
        let codelet = world.compile(&[], &mut diagnostics);
        let reported: Vec<_> = diagnostics.iter().map(|d| d.render(&world.map, false, 100)).collect();
        assert!(codelet.is_some(), "{}", reported.join("\n"));
    }
}

const ROUNDS: usize = 1500;
