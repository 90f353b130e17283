//! Loops and sums over narrow integers process sixty-four bytes at a time if the arithmetic permits, and agree with the
//! interpreter.

use crate::harness::Neighbours;
use crate::harness::source::{case, vertices};

/// Checks that compiled code agrees with the interpreter. Returns whether an AVX-512 lane holds four elements of one
/// byte.
fn is_narrow(text: &str, n: u64) -> bool {
    let mut case = case(text, &[&[n], &[n], &[n], &[]]);
    (case.iterations, case.total_iterations) = (1 << 20, 1 << 30);
    assert!(case.check().failure.is_none(), "{text}");
    let clif = case.clif(girder_codegen::Level::Avx512);
    clif.lines().any(|line| line.ends_with(&format!("iconst.i64 {}", n / 4)))
}

fn map(body: &str, n: u64) -> bool {
    let fields = "in x: u8[n], in w: u8[n], inout z: u8[n], in s: u8";
    is_narrow(&format!("codelet f({fields}) {{ for i in 0..n {{ {body} }} }}"), n)
}

fn sum(value: &str, n: u64) -> bool {
    let fields = "in x: u8[n], in w: u8[n], inout z: u8[n], out t: i32";
    is_narrow(&format!("codelet f({fields}) {{ t = sum i in 0..n {{ {value} }}; z[0] = 1; }}"), n)
}

#[test]
fn maps_of_bytes_are_narrow() {
    for body in [
        "z[i] = x[i] ^ w[i];",
        "z[i] = 255 - x[i];",
        "z[i] = z[i] + s;",
        "z[i] = u8((i32(x[i]) + i32(w[i]) + 1) >> 1);",
        "z[i] = u8(min(i32(x[i]) + i32(w[i]), 255));",
        "z[i] = u8(max(i32(x[i]) - i32(w[i]), 0));",
        "z[i] = if x[i] > 100 { 255 } else { 0 };",
        "z[i] = max(min(x[i], w[i]), s);",
        "z[i] = u8(abs(i32(x[i]) - i32(w[i])));",
        "z[i] = u8((u32(x[i]) * 77 + u32(w[i]) * 150) >> 8);",
        "z[i] = x[i] * w[i] + 3;",
        "z[i] = (x[i] >> 3) | (w[i] << 5);",
        "z[i] = if x[i] > 10 && w[i] < 7 { x[i] } else { w[i] };",
        "let d = i32(x[i]) - i32(w[i]); if d > 4 { z[i] = u8(d); } else { z[i] = x[i]; }",
    ] {
        for n in [260, 1000, 1001] {
            assert!(map(body, n), "{body} {n}");
        }
        for n in [1, 16, 63, 64, 65, 67, 70_003, 300_000] {
            map(body, n);
        }
    }
}

#[test]
fn sums_of_narrow_integers_are_narrow() {
    for value in ["i32(x[i])", "abs(i32(x[i]) - i32(w[i]))", "i32(x[i]) * i32(w[i])", "i32(x[i] > 4)"] {
        for n in [260, 1000] {
            assert!(sum(value, n), "{value} {n}");
        }
        for n in [1, 64, 1001, 300_000] {
            sum(value, n);
        }
    }
}

#[test]
fn arithmetic_that_needs_more_bits_is_not_narrow() {
    assert!(!map("z[i] = u8((i32(x[i]) * i32(w[i]) * i32(s)) >> 16);", 1000));
    assert!(!map("z[i] = u8(f32(x[i]) * 0.5);", 1000));
    assert!(!sum("(i32(x[i]) << 8) + i32(w[i])", 1000));
}

/// Interleaved bytes are spread to lanes of 32 bits by a shuffle, whose mask has a bit for each byte.
#[test]
fn interleaved_bytes_are_selected_lane_by_lane() {
    for (n, value) in [(72, "1"), (67, "a"), (130, "1")] {
        let text = format!(
            "codelet f(in x: u8[m], in s: u8, in a: i32, out y: i32, in t: u8[n]) {{
                y = sum i in 0..n {{ select(s < x[i], {value}, i32(x[i + 3])) }};
            }}"
        );
        let case = vertices(&text, &[&[n + 4], &[], &[], &[], &[n]], (2, Neighbours::SideBySide), &[]);
        assert!(case.check().failure.is_none());
    }
}
