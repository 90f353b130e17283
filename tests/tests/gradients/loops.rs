//! Codelet functions that do not become a formula: loops, jumps out of loops, local arrays, reductions, functions of
//! arrays, and named arguments.
//!
//! Each is the head of a program and the body of a model of `x: f64[4, 3]`.

/// The name, the head and the body.
pub const LOOPS: &[(&str, &str, &str)] = &[
    (
        "iterations of Newton",
        "codelet fn f(a: f64, y0: f64) -> f64 {\nlet mut y = y0;\nfor i in 0..6 { y = 0.5 * (y + a / y); }\nreturn \
         y + 0.0 * a;\n}",
        "let a = 1.5 + x; let g = grad(sum(f(a, x + 2.0)), wrt: a); return sum(f(a, 1.5 - x) * x) + sum(g * g);",
    ),
    (
        "a polynomial in a loop",
        "codelet fn f(x: f64, c: f64) -> f64 {\nlet k = [1.0, -2.0, 0.5, 3.0];\nlet mut s = 0.0;\nfor i in 0..4 { s \
         = s * x + k[i] * c; }\nreturn s;\n}",
        "let g = grad(sum(f(x, cos(x))), wrt: x); return sum(f(x, sin(x)) * x) + sum(g * x);",
    ),
    (
        "a series until it converges",
        "codelet fn f(x: f64) -> f64 {\nlet mut term = 1.0; let mut s = 1.0; let mut n = 1;\nwhile abs(term) > \
         1e-18 { term *= x / f64(n); s += term; n += 1; }\nreturn s;\n}",
        "let g = grad(sum(f(x)), wrt: x); return sum(f(x) * x) + sum(g * g);",
    ),
    (
        "a return inside a loop",
        "codelet fn f(x: f64, y: f64) -> f64 {\nif x < 0.0 { return x * y; }\nlet mut z = 1.0;\nwhile true {\nlet \
         next = 0.5 * (z + x / z);\nif abs(next * next - x) < 1e-14 { return next * y; }\nz = next;\n}\nreturn \
         z;\n}",
        "return sum(f(x + 0.3, x * x) * x);",
    ),
    (
        "a tridiagonal system",
        "codelet fn f(b: f64, d: f64) -> f64 {\nlet mut c = [0.0; 5];\nlet mut r = [d, 1.0, d * d, 2.0, 1.0];\nc[0] \
         = -1.0 / b; r[0] = r[0] / b;\nfor i in 1..5 { let m = b + c[i - 1]; c[i] = -1.0 / m; r[i] = (r[i] + r[i - \
         1]) / m; }\nfor i in 3..-1 by -1 { r[i] -= c[i] * r[i + 1]; }\nreturn r[0] * r[2];\n}",
        "let b = x + 3.0; let g = grad(sum(f(b, x)), wrt: x); return sum(f(b, sin(x))) + sum(g * b);",
    ),
    (
        "a search and an interpolation",
        "codelet fn f(x: f64, s: f64) -> f64 {\nlet xs = [0.0, 1.0, 2.5, 4.0, 7.0];\nlet ys = [1.0, -1.0, 0.5, 2.0, \
         3.0];\nlet mut lo = 0; let mut hi = 4;\nwhile hi - lo > 1 { let mid = (lo + hi) / 2; if xs[mid] <= x { lo \
         = mid; } else { hi = mid; } }\nlet t = (x - xs[lo]) / (xs[hi] - xs[lo]);\nreturn s * ((1.0 - t) * ys[lo] + \
         t * ys[hi]);\n}",
        "return sum(f(3.5 + 3.0 * x, x) * x);",
    ),
    (
        "an iteration with a break",
        "codelet fn f(cx: f64, cy: f64) -> f64 {\nlet mut x: f64 = 0.0; let mut y: f64 = 0.0; let mut r: f64 = 0.0; \
         let mut n = 0;\nwhile n < 8 {\n(x, y) = (x * x - y * y + cx, 2.0 * x * y + cy);\nn += 1;\nr = sqrt(x * x \
         + y * y);\nif r > 10.0 { break; }\n}\nreturn log(r) / f64(n);\n}",
        "return sum(f(x, 0.3 * x[.., 0..1] + 0.25));",
    ),
    (
        "a root that is zero at first",
        "codelet fn f(cx: f64, cy: f64) -> f64 {\nlet mut x: f64 = 0.0; let mut y: f64 = 0.0; let mut d: f64 = \
         0.0;\nfor n in 0..5 {\nlet r = sqrt(x * x + y * y);\nd = d + exp(-r);\n(x, y) = (x * x - y * y + cx, 2.0 * \
         x * y + cy);\n}\nreturn d;\n}",
        "let g = grad(sum(f(x, 0.2 + x * x)), wrt: x); return sum(f(x, x) * x) + sum(g * x);",
    ),
    (
        "steps of Runge and Kutta",
        "codelet fn g(t: f64, y: f64, k: f64) -> f64 { return sin(t) - k * y * y; }\ncodelet fn f(y0: f64, k: f64) \
         -> f64 {\nlet h = 0.1; let mut y = y0; let mut t = 0.0;\nfor i in 0..10 {\nlet a = g(t, y, k: k); let b = \
         g(t + 0.5 * h, y + 0.5 * h * a, k);\nlet c = g(t + 0.5 * h, y + 0.5 * h * b, k); let d = g(t: t + h, y: y \
         + h * c, k: k);\ny += h / 6.0 * (a + 2.0 * b + 2.0 * c + d); t += h;\n}\nreturn y;\n}",
        "let g = grad(sum(f(x, sin(x))), wrt: x); return sum(f(x, x * x) * x) + sum(g * g);",
    ),
    (
        "a logarithm of a sum over an array",
        "codelet fn total<T: float>(x: T[n]) -> T {\nlet m = max i in 0..n { x[i] };\nreturn m + log(sum i in 0..n \
         { exp(x[i] - m) });\n}\ncodelet fn f(x: f64, y: f64) -> f64 {\nlet mut a = [0.0; 4];\nfor i in 0..4 { a[i] \
         = x * f64(i) - y * f64(i * i); }\nreturn total(a) + total(a[1..3]);\n}",
        "let g = grad(sum(f(x, sin(x))), wrt: x); return sum(f(x, 0.3 * x) * x) + sum(g * g);",
    ),
    (
        "a running greatest value",
        "codelet fn f(x: f64, y: f64) -> f64 {\nlet mut m = -f64.inf; let mut s = 0.0;\nfor i in 0..5 {\nlet v = \
         sin(x * f64(i)) + y * f64(i);\nlet n = max(m, v);\ns = s * exp(m - n) + exp(v - n);\nm = n;\n}\nreturn m + \
         log(s);\n}",
        "let g = grad(sum(f(x, sin(x))), wrt: x); return sum(f(x, 0.3 * x) * x) + sum(g * x);",
    ),
    (
        "reductions",
        "codelet fn f(x: f64, y: f64) -> f64 {\nlet a = sum i in 0..20 { x * f64(i) * y };\nlet b = product i in \
         1..4 { x + f64(i) * y };\nlet c = max i in 0..5, j in 0..3 where (i + j) % 2 == 1 { sin(x * f64(i)) + y * \
         f64(j) };\nlet d = min i in 0..7 by 2 { (y - f64(i)) * (y - f64(i)) * x };\nlet (p, q) = argmax i in 0..5, \
         j in 0..3 where (i + j) % 2 == 1 { sin(x * f64(i)) + y * f64(j) };\nreturn a * 0.01 + b + c * d + f64(p * \
         10 + q) * x;\n}",
        "let g = grad(sum(f(x, sin(x))), wrt: x); return sum(f(x, 0.3 * x) * x) + sum(g * x);",
    ),
    (
        "jumps out of nested loops",
        "codelet fn inner(x: f64, n: int) -> f64 {\nlet mut s = x;\nfor i in 0..n {\nfor j in 0..5 {\nif j == 3 { \
         continue; }\nif s > 50.0 { return s * x; }\nif i == 2 && j == 2 { break; }\ns += sin(s) * x + \
         0.2;\n}\n}\nreturn s;\n}\ncodelet fn f(x: f64, y: f64) -> f64 {\nlet mut t = 0.0;\nfor i in 0..4, j in \
         0..4 {\nif i == j { continue; }\nlet v = inner(x + f64(i) * 0.1, 2 + j) * y;\nif v > 60.0 { break; }\nt += \
         v;\n}\nreturn t;\n}",
        "return sum(f(x + 1.0, 0.4 * x) * x);",
    ),
    (
        "rules inside a loop",
        "codelet fn g(x: f64, y: f64) -> (f64, f64) { return (x * y, x + y); }\ngrad g(x, y; a, b; da, db) { return \
         (x: da * y + db, y: da * x + db); }\ncodelet fn f(x: f64, y: f64) -> f64 {\nlet mut a = x; let mut b = \
         y;\nfor i in 0..3 { (a, b) = g(sin(a), tanh(b)); a = pow(a * a + 1.0, 0.7) + relu(b) - abs(a - 0.2); \
         }\nreturn a + erf(b) + floor(a) * 0.0;\n}",
        "let g = grad(sum(f(x, sin(x))), wrt: x); return sum(f(x, 0.3 * x) * x) + sum(g * x);",
    ),
    (
        "branches inside a loop",
        "codelet fn f(x: f64, y: f64) -> f64 {\nlet mut s = 0.0;\nfor i in 0..6 {\ns += switch i % 3 { 0 => { x * y \
         } 1 => { if x > 1.0 { sqrt(x - 1.0) } else { y } } _ => { select(x > 0.0, x * x, y) } };\ns = min(s, 10.0 \
         * x) + max(y, s * 0.1) + fma(x, y, s) % 3.0;\n}\nreturn s;\n}",
        "return sum(f(1.1 + x, 0.3 * x) * x);",
    ),
    (
        "elimination in a local matrix",
        "codelet fn cumul(a: f64[n], k: int) -> f64 { let mut s = 0.0; for i in 0..k { s += a[i]; } return s; \
         }\ncodelet fn f(x: f64, y: f64) -> f64 {\nlet mut m = [[0.0; 3]; 3];\nfor i in 0..3, j in 0..3 { m[i, j] = \
         sin(x * f64(i + 1)) * y + f64(j); }\nfor k in 0..2 { for i in k + 1..3 { let r = m[i, k] / m[k, k]; for j \
         in k..3 { m[i, j] -= r * m[k, j] * 0.5; } } }\nreturn cumul(m[1], 3) + m[0, 0] * m[2, 2] + cumul(a: [x, y, \
         x * y], k: 2);\n}",
        "let y = 2.0 + x; let g = grad(sum(f(y, y)), wrt: y); return sum(f(y, x * y) * x) + sum(g * x);",
    ),
    (
        "a loop with several results",
        "codelet fn h(x: f64, y: f64) -> (a: f64, n: i32, b: f64) {\nlet mut s = x; let mut n = 0;\nwhile s < 10.0 \
         { s = s * (1.0 + y); n += 1; }\nreturn (a: s, n: n, b: s * y);\n}\nfn f(x, y) { let r = h(x, y); return \
         r.a * r.b + f64(r.n); }",
        "return sum(f(x * x + 0.5, x * x + 0.3) * x);",
    ),
    (
        "named arguments",
        "codelet fn g(x: f64, y: f64) -> f64 { x - 2.0 * y * x }\ncodelet fn f(x: f64) -> f64 { g(y: x * x, x: sin(x)) \
         * g(x, y: 2.0 * x) }",
        "return sum(f(x) * x);",
    ),
    (
        "named sizes, and a rule with one",
        "codelet fn power<k: int>(x: f64) -> f64 { let mut y = 1.0; for i in 0..k { y *= x; } return y; }\ngrad \
         power(x; y; dy) { return (x: dy * f64(k) * y / x); }\ncodelet fn scaled<k: int>(x: f64) -> f64 { \
         return x * f64(k); }\ncodelet fn f(x: f64) -> f64 { let mut y = x; for i in 0..2 { y = power(y, k: 3) + \
         scaled(x, k: 2); } return y; }",
        "let g = grad(sum(f(x)), wrt: x); return sum(f(x) * x) + sum(g * x);",
    ),
    (
        "a loop under recompute",
        "codelet fn f(x: f64, y: f64) -> f64 { let mut s = x; let mut i = 0; while i < 3 && abs(s) < 9.0 { s = s * y + \
         sin(s); i += 1; } return s; }",
        "var h: f64[4, 3]; h <- x; #[recompute] repeat 2 { h <- f(0.5 * h, x); h <- tanh(h); } #[recompute] let z = \
         f(h, 0.5 * x); return sum(z * z);",
    ),
    (
        "types that change in a loop",
        "codelet fn f(x: f64) -> f64 { let mut s = x; let mut t = f32(0.0); for i in 0..3 { t = f32(s * 0.5); s = \
         f64(t) * 0.0 + s * (1.0 + f64(i)) * x; } return s; }",
        "return sum(f(x) * x);",
    ),
    (
        "constants of a tuple and of an array",
        "codelet fn f(x: f64, i: i32) -> (a: f64, n: i32, b: f64) { let table = [[1.0, 2.0], [x, -1.0]]; let mut t = \
         [[0.0; 2]; 2]; for k in 0..2 { let mut row = [x; 2]; row[k] = x * f64(k + 1); t[k, 0] = table[k, i & 1] * \
         row[0]; t[k, 1] = row[1] * t[k, 0]; } return (a: t[0, 1] + t[1, 0], n: i + 1, b: t[1, 1]); }",
        "let r = f(x, i32(x * 9.0)); let g = grad(sum(r.b), wrt: x); return sum(r.a * r.b) + sum(g * f64(r.n));",
    ),
];
