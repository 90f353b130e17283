//! Programs in which a gradient was wrong once, or would be wrong by a plausible mistake: views of views, rules that
//! return their arguments, loops that run once or never, arms that must not be evaluated.
//!
//! Each is the head of a program and the body of a model of `x: f64[4, 3]`.

/// The name, the head and the body.
pub const CORNERS: &[(&str, &str, &str)] = &[
    (
        "index again",
        "",
        "var h: f64[4, 3]; h <- x; #[recompute] repeat i in 3..1 by -1 { h <- tanh(h * f64(i) + x[i] + h[i - 1]); } \
         return sum(h * h);",
    ),
    // The gradient inside the arm reverses the loop, whose product is no variable of the arm.
    (
        "gradient in an arm through a loop before it",
        "",
        "var t: f64[4, 3]; t <- x; repeat 3 { t <- tanh(t * x); } if sum(x) < 100.0 { let g = grad(sum(tanh(t)), \
         wrt: x); t <- tanh(t); } return sum(t * t);",
    ),
    // The second derivative reaches the temporary of the `else` from outside of the `if`.
    (
        "second derivative of arms that overwrite",
        "",
        "var t: f64[4, 3]; t <- tanh(x); if sum(x) > 100.0 { t <- 0.6 * t; } else { t <- tanh(t); } let g = \
         grad(sum(tanh(t)), wrt: x); return sum(g * g);",
    ),
    (
        "second derivative of cases that overwrite",
        "",
        "var t: f64[4, 3]; t <- tanh(x); let k = i32(sum(x) * 0.0) + 1; switch k { 0 => { t <- 0.6 * t; } 1 => { t <- \
         exp(t); } _ => { t <- tanh(t); } } let g = grad(sum(tanh(t)), wrt: x); return sum(g * g);",
    ),
    // The values that were computed again have derivatives too.
    (
        "second derivative through recomputed values",
        "",
        "#[recompute] let y = { let a = x * x; let b = sin(a * x); b * b }; let g = grad(sum(y * y), wrt: x); return \
         sum(g * g);",
    ),
    (
        "second derivative through recomputed values that overwrite",
        "",
        "#[recompute] let y = { var t: f64[4, 3]; t <- x * x; t <- sin(t * x); if sum(x) > -100.0 { t <- t * t; t <- \
         tanh(t); } t }; let g = grad(sum(y * y), wrt: x); return sum(g * g * x);",
    ),
    (
        "second derivative through nested recomputed values",
        "",
        "#[recompute] let y = { #[recompute] let a = exp(x * x); #[recompute] let b = { var t: f64[4, 3]; t <- a; t <- \
         t * a * x; t * t }; sin(b) * a }; let g = grad(sum(y * y), wrt: x); let h = grad(sum(g * x), wrt: x); return \
         sum(h * h);",
    ),
    // No gradient passes through a compute set that reads no floats, and what it overwrites has none.
    (
        "a compute set that fills",
        "const d: i32 = 2;\ncodelet count(out y: f64[n], in d: i32) { for i in 0..n { y[i] = f64(i32(i) * d); } }",
        "var y: f64[4, 3]; y <- x * x; let a = sum(y); compute { vertex count(y: y.reshape([12]), d: d); } return a \
         * a * sum(y * x);",
    ),
    // One stash serves what a variable holds before an iteration and after it.
    ("a carried value", "", "var h: f64[4, 3]; h <- x; repeat 4 { h <- tanh(h * x); } return sum(h * x);"),
    (
        "a carried value with a name",
        "",
        "var h: f64[4, 3]; var s: f64[4, 3]; h <- x; s <- 0.0; repeat k in 0..3 { let y = exp(-h * x); s += y * \
         f64(k); h <- y; } return sum(h * s);",
    ),
    (
        "two carried values",
        "",
        "var h: f64[4, 3]; var c: f64[4, 3]; h <- x; c <- 0.5 * x; repeat 3 { let y = tanh(h * c); c <- exp(-c * y); h \
         <- y; } return sum(h * c * x);",
    ),
    (
        "a carried value of nested loops",
        "",
        "var h: f64[4, 3]; h <- x; repeat 2 { h <- exp(-h * x); repeat 3 { h <- tanh(h * x); } } repeat 1 { h <- \
         tanh(h * x); } return sum(h * h);",
    ),
    (
        "a carried value that changes behind its step",
        "",
        "var h: f64[4, 3]; h <- x; repeat 3 { let y = tanh(h * x); h <- y; h[0] <- y[1] * h[2]; } return sum(h * h);",
    ),
    (
        "a carried value that an arm changes",
        "",
        "var h: f64[4, 3]; h <- x; repeat k in 0..4 { if k != 1 { h <- tanh(h * x); } } repeat k in 0..3 { h <- tanh(h \
         * x); if k == 1 { h <- h * h; } } return sum(h * h);",
    ),
    (
        "a carried value under recompute",
        "",
        "var h: f64[4, 3]; h <- x; #[recompute] repeat 2 { repeat 3 { h <- tanh(h * x); } h <- h * 1.1; } return sum(h \
         * x);",
    ),
    (
        "holes",
        "",
        "var y: f64[4, 3]; y <- x; let z = y[0] * 2.0; y[0] <- 0.0; y[0..2] <- x[2..4]; return sum(y * y) + \
         sum(z * z);",
    ),
    (
        "ident",
        "fn f(x: f64[..s]) { return x; }\ngrad f(x; y; dy) { return (x: dy); }",
        "let a = x * x; let y = f(a); return sum(y * y) + sum(a * 3.0);",
    ),
    (
        "ident2",
        "fn f(x: f64[..s]) { return x; }\ngrad f(x; y; dy) { return (x: dy); }",
        "let a = x * x; let u = sum(a * 3.0); let y = f(a); return sum(y * y) + u;",
    ),
    (
        "ident3",
        "fn f(x: f64[..s]) { return x; }\ngrad f(x; y; dy) { return (x: dy); }",
        "let y = f(x); return sum(y * y) + sum(x);",
    ),
    (
        "identt",
        "fn f(x: f64[m, n]) { return x.transpose(); }\ngrad f(x; y; dy) { return (x: dy.transpose()); }",
        "let y = f(x); return sum(y * y) + sum(x);",
    ),
    (
        "two",
        "fn f(x: f64[m, n]) { let t = x * 2.0; return (t, t.transpose()); }\ngrad f(x; y, z; dy, dz) { return \
         (x: 2.0 * (dy + dz.transpose())); }",
        "let (a, b) = f(x); return sum(a * a) + sum(b.transpose() * x);",
    ),
    (
        "twoone",
        "fn f(x: f64[m, n]) { let t = x * 2.0; let q = x * 3.0; return (t, q); }\ngrad f(x; y, z; dy, dz) { \
         return (x: 2.0 * dy + 3.0 * dz); }",
        "let (a, b) = f(x); return sum(a * a);",
    ),
    (
        "nest",
        "fn f(p) { return p.a * p.b; }\ngrad f(p; y; dy) { return (p: (a: dy * p.b, b: dy * p.a)); }",
        "let r = f((a: x, b: x * x)); return sum(r * r);",
    ),
    (
        "nestl",
        "fn f(p) { return p[0] * p[1]; }\ngrad f(p; y; dy) { return (p: [dy * p[1], dy * p[0]]); }",
        "let r = f([x, x * x]); return sum(r * r);",
    ),
    (
        "nestnum",
        "fn f(x, k: int) { return x * 3.0; }\ngrad f(x, k; y; dy) { return (x: dy * 3.0, k: 0); }",
        "let r = f(x, 3); return sum(r * r);",
    ),
    (
        "rnum",
        "fn f(x) { return x + 1.0; }\ngrad f(x; y; dy) { return (x: 1.0); }",
        "let r = f(x); return sum(r) + sum(x * x);",
    ),
    (
        "ruleloop",
        "fn f(x: f64[..s]) { var y: f64[..s]; y <- tanh(x); return y; }\ngrad f(x; y; dy) { return (x: dy * \
         (1.0 - y * y)); }",
        "var h: f64[4, 3]; h <- x; repeat 3 { h <- f(h) + x; } return sum(h * h);",
    ),
    (
        "ruleident_loop",
        "fn f(x: f64[..s]) { return x; }\ngrad f(x; y; dy) { return (x: dy); }",
        "var h: f64[4, 3]; h <- x; repeat 3 { let q = f(h); h <- tanh(q) + q * x + h; } return sum(h * h);",
    ),
    (
        "gradinrule",
        "fn f(x: f64[..s]) { return grad(sum(exp(x * x)), wrt: x); }\ngrad f(x; y; dy) { return (x: dy * (2.0 \
         * exp(x * x) + 4.0 * x * x * exp(x * x))); }",
        "let y = f(x); return sum(y * y);",
    ),
    (
        "gradinrule2",
        "fn f(x: f64[..s]) { return sum(exp(x * x)); }\nfn g(x: f64[..s]) { return grad(f(x), wrt: x); }",
        "let y = g(x); return sum(y * y);",
    ),
    ("diag", "", "let a = x[0..3]; return sum(a.strided(0, [3], [4]) * 2.0) + sum(a * a);"),
    (
        "rev",
        "",
        "let a = x.reverse(0)[0..2]; var y: f64[4, 3]; y <- 0.0; y[.., 1..3] <- x.reverse(1)[.., 0..2]; \
         return sum(a * a) + sum(y * y * y);",
    ),
    (
        "concatw",
        "",
        "var a: f64[2, 3]; var b: f64[3, 3]; concat([a, b])[1..5] <- x * x; a[0] <- x[0]; return sum(a * a) + \
         sum(b * b * b);",
    ),
    (
        "concatr",
        "",
        "let a = x * 2.0; let b = exp(x); let z = concat([a, b, a], axis: 1); return sum(z[.., 2..7] * z[.., 3..8]);",
    ),
    (
        "concatrev",
        "",
        "let a = x * 2.0; let z = concat([a, x.reverse(0), a.reverse(1)]).reshape([6, 6]).transpose(); return \
         sum(z * z * z);",
    ),
    (
        "selfrev",
        "",
        "var y: f64[4, 3]; y <- x; y <- y.reverse(0); y[0..2] <- y[2..4].reverse(1); return sum(y * y * y);",
    ),
    ("zero", "", "let e = x[0..0]; let a = concat([e, x * x]); return sum(a * a) + sum(e) + sum(e * 2.0);"),
    ("rep0", "", "var h: f64[4, 3]; h <- x * x; repeat 0 { h <- exp(h); } return sum(h * h);"),
    ("rep1", "", "var h: f64[4, 3]; h <- x * x; repeat 1 { h <- exp(h); } return sum(h * h);"),
    (
        "rep0n",
        "",
        "var h: f64[4, 3]; h <- x * x; repeat 2 { repeat 0 { h <- exp(h); } h <- sin(h); repeat 1 { h <- h * \
         x; } } return sum(h * h);",
    ),
    ("selfloss", "", "let y = x[0, 0]; return y;"),
    (
        "row",
        "",
        "var k: i32; k <- 2; let r = x[k]; let q = x[k, 1]; let z = x[.., k] ; return sum(r * r) + q * q + \
         sum(z * z * z);",
    ),
    (
        "rowloop",
        "",
        "var y: f64[4, 3]; y <- x; repeat k in 0..3 { y[k + 1] <- sin(y[k] * y[k + 1]); y[.., k] <- y[.., k] \
         * x[k, 0]; } return sum(y * y);",
    ),
    ("scat", "", "var t: f64[4, 3]; t <- x * x; scatter_add(t, i32([1, 1, 3]), x[0..3]); return sum(t * t * t);"),
    (
        "scat2",
        "",
        "var t: f64[4, 3]; t <- x * x; repeat 2 { scatter_add(t, i32([1, 1, 3]), sin(t[0..3])); } return \
         sum(t * t * t);",
    ),
    (
        "ifnest",
        "",
        "var y: f64[4, 3]; y <- x; repeat k in 0..3 { if x[k, 0] > 0.0 { let t = exp(y * 0.3); if x[k, 1] > \
         0.0 { y <- t * t; } else { let q = t * x; y <- q * q; } } else { repeat 2 { let t = sin(y); y <- t * \
         x; } } } return sum(y * y);",
    ),
    (
        "ifval",
        "",
        "let y = if x[0, 0] > 0.0 { (a: x * x, b: sin(x)) } else { (a: x, b: x * x * x) }; return sum(y.a * y.b);",
    ),
    (
        "swrep",
        "",
        "var h: f64[4, 3]; h <- x; repeat k in 0..4 { switch k { 0 => { h <- sin(h); } 1 => { let q = h * h; \
         h <- q * x; } 2..4 => { h[0] <- h[1] * h[2]; } _ => {} } } return sum(h * h);",
    ),
    (
        "cond",
        "",
        "let p = x > 0.0; let y = select(p, x * x, sin(x)); let i = i32(x * 10.0); return sum(y * f64(i)) + \
         sum(floor(x) * x);",
    ),
    (
        "parrep",
        "",
        "var y: f64[4, 3]; var z: f64[4, 3]; y <- x; z <- x; repeat 3 { par { on tile(0) { y <- sin(y) * x; } \
         on tile(1) { z <- exp(z * 0.1) * x; } } } return sum(y * z);",
    ),
    (
        "cbrep",
        "",
        "let y = copy(x); var z: f64[4, 3]; copy { z[0..2] <- y[2..4]; z[2..4] <- y[0..2]; } return sum(z * z * x);",
    ),
    (
        "copyfor",
        "",
        "let y = x * x; var z: f64[3, 4]; copy { for i in 0..4 { z[.., i] <- y[3 - i]; } } return sum(z * z * \
         x.transpose());",
    ),
    (
        "static",
        "",
        "let a = [x, x * x, x * x * x]; var t: f64[4, 3]; t <- 0.0; for (k, v) in zip([1.0, 2.0, 3.0], a) { t \
         += v * k; } return sum(t * t);",
    ),
    ("scalar", "", "let s = sum(x); let y = s * s * x[0, 0]; let t = x / s; return y + sum(t * t);"),
    ("minmax", "", "return sum(maximum(x, x)) + sum(minimum(x, 0.0)) + max_of(x * x) + min_of(x, axis: 1)[2];"),
    (
        "idle_division",
        "codelet fn f<T: float>(x: T, i: i32) -> T { if i != 0 { return x * T(10 / i); } return x; }",
        "let i = i32(x * 3.0); return sum(f(x, i) * x);",
    ),
    (
        "short_circuit",
        "codelet fn f<T: float>(x: T, i: i32) -> T { if i != 0 && 10 / i > 2 { return x * x; } return sin(x); }",
        "let i = i32(x * 9.0); return sum(f(x, i) * x);",
    ),
    // A `return` inside a value leaves the function; the root of the other arm has no derivative where it does not run.
    (
        "return_inside_a_value",
        "codelet fn f(x: f64) -> f64 { let y = if x < 0.2 { return x * x; } else { sqrt(x) }; let z = { if y > 0.8 { \
         return y; } y * 3.0 }; return z * y + sqrt(if x < 0.5 { return z; } else { x - 0.4 }); }",
        "let g = grad(sum(f(x)), wrt: x); return sum(f(x) * x) + sum(g * g);",
    ),
    (
        "branches_that_change_flags_and_tuples",
        "codelet fn f(x: f64) -> f64 { let mut c = false; let mut t = (a: x, b: x * x); let y = if x > 0.1 { c = true; \
         t = (t.b, sin(x)); 2.0 * x } else { x }; if c { return t.a * y; } return t.a * t.a * y; }",
        "return sum(f(x) * x);",
    ),
    (
        "one_rule_in_both_arms",
        "codelet fn p(x: f64) -> (f64, f64) { return (x * x, sin(x)); }\ngrad p(x; a, b; da, db) { return (x: 2.0 * x \
         * da + cos(x) * db); }\ncodelet fn f(x: f64) -> f64 { if x > 0.0 { let (a, b) = p(x); return a * b; } let \
         (a, b) = p(x); return a + b; }",
        "return sum(f(x) * x);",
    ),
    // A literal has the type that a variable, a result or a parameter has.
    (
        "literals_of_a_type",
        "codelet fn one(x: f64) -> f64 { return 1; }\ncodelet fn third<T: float>(x: T) -> T { return x / 3; }\ncodelet \
         fn f(x: f64) -> f64 { let mut s = 1; s = s / 2; if x > 0.0 { s = 3; } return x * (one(x) / 2) * s + \
         f64(third(1)) * x * (s / 2); }",
        "return sum(f(x) * x);",
    ),
    (
        "rule_whose_arms_name_members_in_another_order",
        "codelet fn f(x: f64, y: f64) -> f64 { let mut s = 0.0; for i in 0..1 { s += x * y; } return s; }\ngrad f(x, \
         y; z; dz) { if x > 0.0 { return (x: y * dz, y: x * dz); } else { return (y: x * dz, x: y * dz); } }",
        "return sum(f(x, sin(x)) * x);",
    ),
    (
        "idle_shift",
        "codelet fn f(x: f64, i: i32) -> f64 { if i >= 0 && i < 8 { return x * f64(1 << i); } return x * x; }",
        "let i = i32(x * 99.0); return sum(f(x, i) * x);",
    ),
    (
        "switch_of_a_function",
        "let first = -1;\ncodelet fn f(x: f64, i: i32) -> f64 { let y = switch i { first => { return x * x; } 0, 3..=8 \
         => { let mut a = x; let mut b = sin(x); (a, b) = (b, a * b); a * b } 1..3 => { [x, x * x, cos(x)][i] } _ => \
         { x } }; return y * x; }",
        "let i = i32(x * 9.0); let g = grad(sum(f(x, i)), wrt: x); return sum(f(x, i) * x) + sum(g * g);",
    ),
    (
        "other_arm_writes",
        "",
        "var h: f64[4, 3]; var y: f64[4, 3]; h <- sin(x); if x[0, 0] < 2.0 { y <- h * x; } else { h <- 1.0; y <- h * \
         h; } return sum(y * y);",
    ),
    (
        "arm_under_recompute",
        "",
        "var h: f64[4, 3]; h <- x; #[recompute] repeat 3 { if h[0, 0] > 0.1 { h[0] <- h[1] * 0.5; h <- tanh(h * x); } \
         else { h <- h * h + x; h[1] <- 0.3 * h[2]; } h[3] <- h[2] * h[1]; repeat 2 { h <- sin(h); } h <- h * h; } \
         return sum(h * h);",
    ),
    (
        "block_under_recompute",
        "",
        "#[recompute] let y = { var h: f64[4, 3]; h <- x; let a = h * h; h[0] <- a[1]; let b = h * a; if x[1, 1] > 0.0 \
         { h <- b * h; } h[1..3] <- h[2..4] * x[0]; b * h * a }; return sum(y * y);",
    ),
    (
        "index_under_recompute",
        "",
        "var y: f64[4, 3]; y <- x; #[recompute] repeat k in 3..0 by -1 { y[k] <- y[k] * x[k - 1] * x[0, 0]; } return \
         sum(y * y);",
    ),
    (
        "windows",
        "",
        "let v = x.flatten().reverse(0)[1..]; let w = v.strided(1, [4, 3, 2], [2, 1, 1]); return sum(w * w * w);",
    ),
    // Windows that overlap with the next one only are added in two steps.
    (
        "frames",
        "",
        "let c = copy(concat([x.flatten(), sin(x).flatten()])); let f = c.strided(0, [5, 8], [4, 1]); \
         let b = x.flatten().strided(11, [4, 5], [-2, -1]); return sum(f * f * f[1]) + sum(b * b * b[2]);",
    ),
    (
        "im2col",
        "",
        "let c = concat(list i in 0..2, j in 0..2 { x[i..i + 3, j..j + 2] }, axis: 1); let y = c.reshape([3, 2, 4]); \
         return sum(sin(y) * y[0]);",
    ),
    (
        "parapart",
        "",
        "var y: f64[4, 3]; var z: f64[4, 3]; let a = x * x; let b = sin(x); par { on tile(0) { y <- exp(a) * a; } on \
         tile(1) { z <- b * b; z[0] <- z[1] * z[2]; } } let g = grad(sum(y * y * z), wrt: x); return sum(g * g);",
    ),
    (
        "twice_max",
        "",
        "let y = max_of(x * x * x, axis: 1) + min_of(x) + max_of(x, axis: 0, keep: true)[0, 1]; let g = grad(sum(y * \
         y), wrt: x); let h = grad(sum(g * g * x), wrt: x); return sum(h * h);",
    ),
    (
        "tuple_of_numbers",
        "codelet fn split<T: float>(x: T, w: T) -> (T, i32, T) { if x > 0.0 { return (x * x, 1, sin(x * w)); } return \
         (x, 2, w); }",
        "let (m, k, r) = split(x, x[0]); let g = grad(sum(m * r * f64(k)), wrt: x); return sum(m * r) + sum(r * r) + \
         sum(g * g);",
    ),
    (
        "rule_of_a_tuple",
        "codelet fn split<T: float>(x: T, w: T) -> (a: T, b: T) { return (a: x * x, b: x * w); }\ngrad split(x, w; a, \
         b; da, db) { return (x: 2.0 * x * da + w * db, w: x * db); }\ncodelet fn f<T: float>(x: T) -> T { let s = \
         split(x, sin(x)); return s.a * s.b; }\ncodelet fn h<T: float>(x: T) -> T { return split(x, cos(x)).b; }",
        "let s = split(x, x[1]); let g = grad(sum(s.b * s.b), wrt: x); return sum(s.a * s.a * s.b) + sum(f(x) * x) + \
         sum(h(x) * x) + sum(g * x);",
    ),
];
