//! Prints every stage of a compilation, and checks that the text reads back to the same bytes and runs to the same
//! results.

mod common;

use common::{check, compilation};
use girder::{AnyStage, Stage};
use girder_ir::layout::Content;

#[test]
fn a_family_with_a_place_and_generics() {
    check(
        "codelet dot<T: float>(in a: T[n], in b: T[n], out y: T) { y = sum i in 0..n { a[i] * b[i] }; }
         var w: f32[10, 32] = 0.5;
         var x: f32[32] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25,
                           26, 27, 28, 29, 30, 31, -32.25];
         var y: f32[10];
         program main() {
             compute rows { for i in 0..10 { vertex dot(a: w[i], b: x, y: y[i]) on tile(i * tiles / 10); } }
         }",
    );
}

#[test]
fn ragged_and_irregular_families_stand_in_tables() {
    check(
        "codelet scale(in x: f32[n], out y: f32[n], const f: f32, const shift: i32) {
             for i in 0..n { y[i] = x[i] * f + f32(shift); }
         }
         let cuts = [(0, 5, 2.5), (5, 12, -1.5), (12, 13, 0.25), (20, 27, 3.0), (30, 30, 1.0)];
         var x: f32[32] = 1.5;
         var y: f32[32];
         var z: f32[4, 8];
         var t: f32[4, 8];
         program main() {
             compute {
                 for (a, b, f) in cuts { vertex scale(x: x[a..b], y: y[a..b], f: f, shift: a); }
                 for i in 0..4, j in 0..2 {
                     vertex scale(x: x[i * i + j..i * i + j + 4], y: z[i, 4 * j..4 * j + 4], f: 2.0, shift: i)
                         on tile(i * 3 % 5 + j);
                 }
                 for i in 0..3 {
                     let cut = i * 32 / 3..(i + 1) * 32 / 3;
                     vertex scale(x: x[cut], y: t.flatten()[cut], f: 1.0, shift: 0);
                 }
             }
         }",
    );
}

#[test]
fn a_stencil_with_halo_copies() {
    check(
        "codelet step(in u: f32[h, w], out next: f32[m, n], const alpha: f32) {
             assert(h == m + 2 && w == n + 2);
             for i in 0..m, j in 0..n {
                 next[i, j] = u[i + 1, j + 1]
                     + alpha * (u[i, j + 1] + u[i + 2, j + 1] + u[i + 1, j] + u[i + 1, j + 2] - 4.0 * u[i + 1, j + 1]);
             }
         }
         var a: f32[2, 2, 6, 6] = 1.0;
         var b: f32[2, 2, 6, 6];
         map a[i, j] on tile(2 * i + j) for i in 0..2, j in 0..2;
         map b[i, j] on tile(2 * i + j) for i in 0..2, j in 0..2;
         fn advance(u: f32[2, 2, 6, 6], next: f32[2, 2, 6, 6], alpha: float) {
             copy halo {
                 for i in 1..2 {
                     u[i, .., 0, 1..5] <- u[i - 1, .., 4, 1..5];
                     u[i - 1, .., 5, 1..5] <- u[i, .., 1, 1..5];
                     u[.., i, 1..5, 0] <- u[.., i - 1, 1..5, 4];
                     u[.., i - 1, 1..5, 5] <- u[.., i, 1..5, 1];
                 }
             }
             compute heat {
                 for i in 0..2, j in 0..2 {
                     vertex step(u: u[i, j], next: next[i, j, 1..5, 1..5], alpha: alpha) on tile(2 * i + j);
                 }
             }
         }
         program heat(steps: int = 4) {
             a[0, 1, 2] <- 7.5;
             repeat steps / 2 { advance(a, b, alpha: 0.2); advance(b, a, alpha: 0.2); }
         }",
    );
}

#[test]
fn operators_broadcast_and_views_are_joined() {
    check(
        "var x: f32[4, 6] = 2.0;
         var r: f32[6] = [1, 2, 3, 4, 5, 6];
         var c: f32[4, 1] = [[1], [-2], [3], [-4]];
         var y: f32[4, 6];
         var z: f32[8, 6];
         var f: f32[48];
         var g: f32[10];
         program main() {
             y <- x * r + c;
             z <- concat([y + 1.0, x.reverse(axis: 1)], axis: 0);
             f <- concat([x.transpose(), y.transpose()], axis: 0).flatten();
             g <- concat([z[1..3, 2], r[1..5], c[.., 0]], axis: 0) * 2.0;
             y[.., 1] <- concat([z, y], axis: 0).reshape([18, 4])[3..17 by 4, 1];
             x <- concat([z, z], axis: 0).reshape([2, 48])[1, 12..36].reshape([4, 6]);
         }",
    );
}

#[test]
fn control_flow_of_every_kind() {
    check(
        "var n: i32;
         var x: f32[8] = 1.0;
         var log: i32[4];
         program twice(k: int = 2) { repeat k { x <- x * 2.0; } }
         program main() {
             repeat i in 0..6 by 2 { n <- n + i; log[0] <- i; }
             repeat 3 { n <- n + 1; }
             while n < 20 { n <- n + 3; if n > 15 { log[1] <- n; } else { log[2] <- n; } }
             let big = if n > 100 { x * 3.0 } else { x + 1.0 };
             x <- big;
             switch n { 0, 1 => { log[3] <- 1; } 2..21 => { log[3] <- 2; } _ => { log[3] <- 3; } }
             switch n { 21 => { log[3] <- log[3] + 10; } }
             call twice(k: 3);
             call twice();
             call twice(3);
             print(\"n\", n);
             print(\"done\");
             print(\"part\", x[2..4]);
             abort(\"too large\", when: n > 1000);
             sync();
         }
         program other() { n <- n + 100; print(\"x\", x); }",
    );
}

#[test]
fn streams_and_their_packets() {
    check(
        "stream images: in f32[2, 3] with (wrap: true, shuffle: 7, ahead: 2);
         stream labels: in i32[2];
         stream sums: out f32[3] with (ahead: 1);
         var kept: f32[2, 3];
         program main() {
             repeat 2 {
                 let x = read(images);
                 kept <- read(images);
                 let l = read(labels);
                 sums <- x[0] + kept[1];
                 sums <- x[1];
                 print(\"labels\", l);
             }
         }",
    );
}

#[test]
fn numbers_of_every_type() {
    check(
        "var a: f64[3] = [0.1, -1e300, 3.0];
         var b: u8[5] = [0, 255, 7, 1, 2];
         var c: bool[3] = [true, false, true];
         var d: i64[2] = [-9223372036854775807, 5];
         var e: u64[2] = [9223372036854775807, 0];
         var f: f64 = -0.0;
         param p: u32[20] = 4000000000;
         const k: i32 = 0;
         const t: f32[2, 2] = [[1, 2], [3, 4]];
         const far: f32 = f32.inf;
         var long: i32[20] = list i in 0..20 { i * i };
         var o: bool[3];
         program main() {
             a <- a * 2.0 + f;
             b <- b + u8(3);
             o <- c & !c | (a > 0.0);
             d <- d - 1;
             e <- e * u64(2);
             f <- f64(k) + 0.5;
             long <- long + i32(c[0]) + k;
             print(\"t\", t @ t);
             print(\"far\", far);
         }",
    );
}

#[test]
fn functions_of_the_library() {
    check(
        "use nn;
         var x: f32[6, 8] = 0.25;
         var w: f32[8, 5] = 0.5;
         var y: f32[6, 5];
         var s: f32[8];
         var best: i32[6];
         var loss: f32;
         var class: i32[6] = [0, 1, 2, 3, 4, 0];
         program main() {
             y <- x @ w;
             y[2, 3] <- 9.0;
             s <- sum(x, axis: 0);
             best <- argmax(y, axis: 1);
             loss <- nn.cross_entropy(nn.softmax(y), class);
             print(\"all\", sum(x));
             print(\"mean\", mean(y, axis: 1));
         }",
    );
}

#[test]
fn places_of_every_kind() {
    check(
        "var a: f32[100] on tile(3);
         var b: f32[100] on linear(grain: 2);
         var c: f32[100] on { 1: 0..10; 2: 10..90, 95..100; };
         var d: f32[10, 10];
         var e: f32[3, 50] on tile(2..5);
         var f: f32[0];
         map d[i] on tile(i / 3) for i in 0..10;
         map e[1, 7..9] on tile(9);
         codelet inc(inout x: f32[n]) { for i in 0..n { x[i] += 1.0; } }
         program main() {
             a <- a + b;
             on tile(4..8) { let h = c * 2.0; c <- h + a; }
             compute {
                 for i in 0..10 { vertex inc(x: d[i]) on tile(i / 3); }
                 vertex inc(x: e[2, 0..50 by 7]);
                 vertex inc(x: f);
             }
             compute {
                 for i in 0..3, j in 0..5 { vertex inc(x: e[i, 10 * j..10 * j + 10]) on tile(15 - i * 5 - j % 2); }
             }
             d <- d + 1.0;
             e <- e + 1.0;
         }",
    );
}

#[test]
fn names_that_mean_something_else() {
    check(
        "var i: f32[3] = 1.0;
         var tile: f32[4];
         var concat: f32[2];
         var bytes: i32[40] = list k in 0..40 { k };
         var c0: f32[8];
         codelet put(in x: f32, out y: f32, const v: f32) { y = x + v; }
         program main() {
             var print: f32[4];
             print <- 2.0;
             compute { for (k, v) in [(0, 1.5), (2, 0.5), (1, 2.5)] { vertex put(x: i[k], y: c0[k], v: v); } }
             tile <- print + c0[0..4];
         }",
    );
}

#[test]
fn copies_that_overlap_and_copies_in_place() {
    check(
        "var x: i32[12] = list i in 0..12 { i };
         var y: i32[3, 4];
         program main() {
             x[1..12] <- x[0..11];
             copy swap { x[0] <- x[11]; x[11] <- x[0]; }
             copy { for i in 0..3, j in 0..4 { y[i, j] <- x[4 * (2 - i) + (j + i) % 4]; } }
             y <- y.reverse(axis: 1);
             let t = copy(y[0]);
             y[1] <- t;
             y[2] <- t[0];
         }",
    );
}

#[test]
fn values_that_have_no_literal() {
    check(
        "var a: f64[2] = [f64.inf, -f64.inf];
         var b: f32 = f32.nan;
         var c: f64 = -f64.inf;
         var d: i64 = i64.min;
         var e: u64[3];
         var f: f32[3] = [f32.nan, -0.0, f32.bits(0x7fc00123)];
         const g: u64 = 9223372036854775807;
         codelet put(in x: f64, out y: f64, const v: f64, const k: i64, const t: bool) { y = select(t, x, v); }
         var y: f64[4];
         program main() {
             e <- e + u64(1e19);
             a[0] <- a[1];
             compute {
                 for (k, v) in [(0, f64.inf), (2, -f64.inf), (1, -0.0)] {
                     vertex put(x: a[1], y: y[k], v: v, k: i64.min, t: k > 0);
                 }
             }
         }",
    );
}

#[test]
fn codelets_with_helpers_constants_and_generics() {
    check(
        "let scale = 2.5;
         let steps = 3;
         let T = f32;
         let far = f32.inf;
         let none = -f64.nan;
         codelet fn twice(x: T) -> T { let y: T = min(other(x), far); return max(y * T(2), -far); }
         codelet fn other<T: float>(x: T) -> T { return x + scale; }
         #[cycles(20 + 2 * n)]
         multi codelet rows<T: float, k: int>(in x: T[n], inout y: T[n]) {
             // Workers take turns.
             for i in 0..n { if i % workers == worker { y[i] += x[i] * T(k * steps); } }
         }
         #[pipelined]
         codelet helped(in x: T[n], out y: f32[n]) { for i in 0..n { y[i] = select(x[i] == none, 1.0, twice(x[i])); } }
         var x: f32[20] = 1.5;
         var y: f32[20];
         var z: f64[20] = 0.5;
         program main() {
             compute { vertex rows<f32, 7>(x: x, y: y) on tile(1); vertex rows<f64, -2>(x: z[0..10], y: z[10..20]); }
             compute helped { for i in 0..2 { vertex helped(x: x[10 * i..10 * i + 10], y: y[10 * i..10 * i + 10]); } }
             x <- twice(y) + other(x);
         }",
    );
}

#[test]
fn temporaries_that_are_read_first_stay_persistent() {
    check(
        "var y: f32[4];
         program main() {
             var h: f32[4];
             repeat i in 10..0 by -3 {
                 y <- y + h + f32(i);
                 h <- y * 0.5;
             }
             let e = y[2..2];
             print(\"empty\", e);
             print(\"wide\", y.reshape([1, 4, 1])[.., 0..0, ..]);
             repeat 0 { y <- 0.0; }
             repeat k in 5..5 { y <- f32(k); }
         }",
    );
}

#[test]
fn branches_side_by_side() {
    check(
        "var x: f32[8] = 1.0;
         var y: f32[8] = 2.0;
         program main() {
             par {
                 on tile(0..8) { x <- x + 1.0; repeat 2 { x <- x * 2.0; } }
                 on tile(8..16) { y <- y * 3.0; }
             }
             with block(\"forward\") { x <- x + y; }
         }",
    );
}

#[test]
fn conditions_that_take_steps() {
    check(
        "var x: f32[8] = 1.0;
         var n: i32;
         var flags: bool[3] = [true, false, true];
         program main() {
             while (sum(x) < 100.0) & flags[2] {
                 x <- x + x;
                 while n < 4 { n += 1; if flags[1] { n <- 9; } else if flags[0] { if n == 2 { n += 10; } } }
             }
             if any(x > 3.0) { print(\"big\"); } else { abort(\"small\"); }
             switch n { -3, -2..=0 => { n <- 1; } 12..14 => { switch n { 13 => { n <- 5; } _ => { n <- 6; } } } }
         }",
    );
}

#[test]
fn module_level_sets_and_mapped_steps() {
    check(
        "codelet add(in a: f32[n], in b: f32[n], out c: f32[n]) { for i in 0..n { c[i] = a[i] + b[i]; } }
         var a: f32[12] = 1.0 on { i: 3 * i..3 * i + 3 for i in 0..4; };
         var b: f32[12] = 2.0 on { i % 3 * 2: i..i + 1 for i in 0..12; };
         var c: f32[3, 4];
         var g: f32[64];
         map c[.., j] on tile(15 - j / 2) for j in 0..4;
         map g[r] on tile(1) for r in [0..64 by 2, 1..4, 50..51];
         compute sums {
             for i in 0..4 {
                 vertex add(a: a[3 * i..3 * i + 3], b: b[9 - 3 * i..12 - 3 * i], c: c[.., i]) on tile(i / 2 * 3 + 1);
             }
         }
         compute nothing {}
         copy moved { c[0, i..i + 1] <- g[4 * i..4 * i + 1] for i in 0..4; a <- 7.0; }
         program main() {
             execute sums;
             execute moved;
             execute nothing;
             execute sums;
             g <- concat([a, b, a, b, a, g[0..4]]);
         }",
    );
}

/// An aligned field begins at a multiple of its alignment, in a variable and in a landing buffer, whatever else is on
/// the tile.
#[test]
fn fields_are_aligned_as_they_ask() {
    let source =
        "codelet f(#[align(256)] in x: f32[n], in z: f32[k], #[align(64)] inout y: f32[m]) { y[0] = x[0] + z[0]; }
         var z: f32[3] on tile(0);
         var x: f32[24] on tile(0);
         var y: f32[10] on tile(0);
         var far: f32[5] on tile(1);
         program main() {
             compute set {
                 vertex f(x: x[2..10], z: z, y: y[0..3]) on tile(0);
                 vertex f(x: far, z: z, y: y[3..6]) on tile(2);
             }
         }";
    let mut c = compilation();
    let root = c.add("main.gir", source).expect("small");
    let Ok(AnyStage::Allocated(allocated)) = c.stage(root, Stage::Allocated) else { panic!("{:?}", c.diagnostics) };
    assert!(c.diagnostics.iter().next().is_none(), "{:?}", c.diagnostics);
    let address = |name: &str| {
        let (var, _) = allocated.vars.iter().find(|(_, v)| v.name == name).expect(name);
        allocated.layout.class(0).and_then(|class| class.block(Content::Var(var))).expect(name).address
    };
    assert_eq!((address("x") + 8) % 256, 0);
    assert_eq!(address("y") % 64, 0);
}
