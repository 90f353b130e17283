//! Patterns besides those of the kernels that people know by name.

use super::Count::{Bins, Cube, One, Rows, Side, Size, Square, Three};
use super::Kernel;
use super::Type::{F32, I32, U8, U64};
use super::Unit::{Bytes, Flop};

/// Of which nothing is asked.
pub(super) const PATTERNS: &[Kernel] = &[
    Kernel {
        name: "Adam step",
        unit: Bytes(28.0),
        c: "const float *x = X; float *p = Y, *m = p + n, *v = m + n, a = *(const float *)W; for (long i = 0; i < n;
            i++) { float g = x[i]; m[i] = 0.9f * m[i] + 0.1f * g; v[i] = 0.999f * v[i] * v[i] + 0.001f * g * g;
            p[i] -= a * m[i] / (sqrtf(v[i]) + 1e-3f); }",
        girder: "in x: f32[n], in w: f32, inout y: f32[3, n]) { for i in 0..n { let g = x[i]; y[1, i] = 0.9 * y[1, i]
            + 0.1 * g; y[2, i] = 0.999 * y[2, i] * y[2, i] + 0.001 * g * g;
            y[0, i] -= w * y[1, i] / (sqrt(y[2, i]) + 1e-3); } }",
        arrays: [(F32, Size), (F32, One), (F32, Three)],
        close: 0.0001,
    },
    Kernel {
        name: "min-max",
        unit: Bytes(12.0),
        c: "const float *x = X; float *y = Y, a = x[0], b = x[0];
            for (long i = 0; i < n; i++) { a = x[i] < a ? x[i] : a; b = x[i] > b ? x[i] : b; }
            b = 1 / (b - a); for (long i = 0; i < n; i++) y[i] = (x[i] - a) * b;",
        girder: "in x: f32[n], in w: f32, out y: f32[n]) { let a = min i in 0..n { x[i] };
            let b = 1.0 / ((max i in 0..n { x[i] }) - a); for i in 0..n { y[i] = (x[i] - a) * b; } }",
        arrays: [(F32, Size), (F32, One), (F32, Size)],
        close: 1e-06,
    },
    Kernel {
        name: "running max",
        unit: Bytes(8.0),
        c: "const float *x = X; float *y = Y, m = x[0]; for (long i = 0; i < n; i++) { m = x[i] > m ? x[i] : m;
            y[i] = m; }",
        girder:
            "in x: f32[n], in w: f32, out y: f32[n]) { let mut m = x[0]; for i in 0..n { m = max(m, x[i]); y[i] = m;
            } }",
        arrays: [(F32, Size), (F32, One), (F32, Size)],
        close: 0.0,
    },
    Kernel {
        name: "masked sum",
        unit: Bytes(5.0),
        c: "const float *x = X; const unsigned char *w = W; float s = 0; for (long i = 0; i < n;
            i++) if (w[i] > 100) s += x[i]; *(float *)Y = s;",
        girder: "in x: f32[n], in w: u8[n], out y: f32) { y = sum i in 0..n where w[i] > 100 { x[i] }; }",
        arrays: [(F32, Size), (U8, Size), (F32, One)],
        close: 0.001,
    },
    Kernel {
        name: "quantise",
        unit: Bytes(8.0),
        c: "const float *x = X; int *y = Y; for (long i = 0; i < n; i++) { int v = (int)rintf(x[i] * 50.0f);
            y[i] = v < -128 ? -128 : v > 127 ? 127 : v; }",
        girder: "in x: f32[n], in w: f32, out y: i32[n]) { for i in 0..n {
            y[i] = min(max(i32(round(x[i] * 50.0)), -128), 127); } }",
        arrays: [(F32, Size), (F32, One), (I32, Size)],
        close: 0.0,
    },
    Kernel {
        name: "popcount",
        unit: Bytes(8.0),
        c: "const int *x = X; int *y = Y; for (long i = 0; i < n; i++) y[i] = __builtin_popcount(x[i]);",
        girder: "in x: i32[n], in w: f32, out y: i32[n]) { for i in 0..n { y[i] = popcount(x[i]); } }",
        arrays: [(I32, Size), (F32, One), (I32, Size)],
        close: 0.0,
    },
    Kernel {
        name: "popcount u64",
        unit: Bytes(8.0),
        c: "const unsigned long *x = X; unsigned long s = 0; for (long i = 0; i < n;
            i++) s += __builtin_popcountl(x[i]); *(unsigned long *)Y = s;",
        girder: "in x: u64[n], in w: f32, out y: u64) { y = sum i in 0..n { popcount(x[i]) }; }",
        arrays: [(U64, Size), (F32, One), (U64, One)],
        close: 0.0,
    },
    Kernel {
        name: "filter 3x3",
        unit: Flop(18.0),
        c: "const float *x = X, *w = W; float *y = Y; for (long i = 1; i < n - 1; i++) for (long j = 1; j < n - 1;
            j++) { float s = 0; for (long a = 0; a < 3; a++) for (long b = 0; b < 3;
            b++) s += x[(i + a - 1) * n + j + b - 1] * w[3 * a + b]; y[i * n + j] = s; }",
        girder: "in x: f32[n, n], in w: f32[256], inout y: f32[n, n]) { for i in 1..n - 1, j in 1..n - 1 {
            y[i, j] = sum a in 0..3, b in 0..3 { x[i + a - 1, j + b - 1] * w[3 * a + b] }; } }",
        arrays: [(F32, Square), (F32, Bins), (F32, Square)],
        close: 0.0001,
    },
    Kernel {
        name: "filter by 2",
        unit: Flop(5.0),
        c: "const float *x = X, *w = W; float *y = Y; for (long i = 0; i < n / 2 - 2; i++) { float s = 0;
            for (long k = 0; k < 5; k++) s += w[k] * x[2 * i + k]; y[i] = s; }",
        girder: "in x: f32[n], in w: f32[256], inout y: f32[n]) { for i in 0..n / 2 - 2 { y[i] = sum k in 0..5 {
            w[k] * x[2 * i + k] }; } }",
        arrays: [(F32, Size), (F32, Bins), (F32, Size)],
        close: 0.0001,
    },
    Kernel {
        name: "stencil 3D",
        unit: Flop(8.0),
        c: "const float *x = X; float *y = Y; for (long i = 1; i < n - 1; i++) for (long j = 1; j < n - 1;
            j++) for (long k = 1; k < n - 1; k++) { const float *p = x + (i * n + j) * n + k;
            y[(i * n + j) * n + k] = 0.4f * p[0] + 0.1f * (p[-n * n] + p[n * n] + p[-n] + p[n] + p[-1] + p[1]); }",
        girder: "in x: f32[n, n, n], in w: f32, inout y: f32[n, n, n]) {
            for i in 1..n - 1, j in 1..n - 1, k in 1..n - 1 { y[i, j, k] = 0.4 * x[i, j, k]
            + 0.1 * (x[i - 1, j, k] + x[i + 1, j, k] + x[i, j - 1, k] + x[i, j + 1, k] + x[i, j, k - 1]
                + x[i, j, k + 1]);
            } }",
        arrays: [(F32, Cube), (F32, One), (F32, Cube)],
        close: 1e-05,
    },
    Kernel {
        name: "products 4x4",
        unit: Flop(8.0),
        c: "const float *x = X, *w = W; float *y = Y; for (long t = 0; t < n / 16; t++) for (long i = 0; i < 4;
            i++) for (long j = 0; j < 4; j++) { float s = 0; for (long k = 0; k < 4;
            k++) s += x[16 * t + 4 * i + k] * w[16 * t + 4 * k + j]; y[16 * t + 4 * i + j] = s; }",
        girder: "in x: f32[m, 16], in w: f32[m, 16], out y: f32[m, 16]) { for t in 0..m, i in 0..4, j in 0..4 {
            y[t, 4 * i + j] = sum k in 0..4 { x[t, 4 * i + k] * w[t, 4 * k + j] }; } }",
        arrays: [(F32, Rows(16)), (F32, Rows(16)), (F32, Rows(16))],
        close: 0.0001,
    },
    Kernel {
        name: "outer product",
        unit: Flop(2.0),
        c: "const float *x = X, *w = W; float *y = Y; for (long i = 0; i < n; i++) for (long j = 0; j < n;
            j++) y[i * n + j] += 1e-3f * x[i * n] * w[j];",
        girder: "in x: f32[n, n], in w: f32[n], inout y: f32[n, n]) { for i in 0..n, j in 0..n {
            y[i, j] += 1e-3 * x[i, 0] * w[j]; } }",
        arrays: [(F32, Square), (F32, Side), (F32, Square)],
        close: 0.001,
    },
    Kernel {
        name: "Mandelbrot",
        unit: Bytes(8.0),
        c: "const float *x = X; int *y = Y; for (long i = 0; i < n; i++) {
            float a = 0, b = 0, p = x[i], q = x[i] * 0.3f; int k = 0; while (k < 50 && a * a + b * b < 4) {
            float t = a * a - b * b + p; b = 2 * a * b + q; a = t; k++; } y[i] = k; }",
        girder: "in x: f32[n], in w: f32, out y: i32[n]) { for i in 0..n { let mut (a, b) = (0.0, 0.0);
            let (p, q) = (x[i], x[i] * 0.3); let mut k: i32 = 0; while k < 50 && a * a + b * b < 4.0 {
            let t = a * a - b * b + p; b = 2.0 * a * b + q; a = t; k += 1; } y[i] = k; } }",
        arrays: [(F32, Size), (F32, One), (I32, Size)],
        close: 1.0,
    },
    Kernel {
        name: "table of u8",
        unit: Bytes(5.0),
        c: "const unsigned char *x = X; const float *w = W; float *y = Y;
            for (long i = 0; i < n; i++) y[i] = w[x[i]];",
        girder: "in x: u8[n], in w: f32[256], out y: f32[n]) { for i in 0..n { y[i] = w[x[i]]; } }",
        arrays: [(U8, Size), (F32, Bins), (F32, Size)],
        close: 0.0,
    },
    Kernel {
        name: "both hold",
        unit: Bytes(9.0),
        c: "const float *x = X, *w = W; unsigned char *y = Y; for (long i = 0; i < n;
            i++) y[i] = x[i] > 0.5f && w[i] < 0.25f;",
        girder: "in x: f32[n], in w: f32[n], out y: u8[n]) { for i in 0..n { y[i] = u8(x[i] > 0.5 && w[i] < 0.25); } }",
        arrays: [(F32, Size), (F32, Size), (U8, Size)],
        close: 0.0,
    },
    Kernel {
        name: "SAD of u8",
        unit: Bytes(2.0),
        c: "const unsigned char *x = X, *w = W; int s = 0; for (long i = 0; i < n; i++) { int d = x[i] - w[i];
            s += d < 0 ? -d : d; } *(int *)Y = s;",
        girder: "in x: u8[n], in w: u8[n], out y: i32) { y = sum i in 0..n { abs(i32(x[i]) - i32(w[i])) }; }",
        arrays: [(U8, Size), (U8, Size), (I32, One)],
        close: 0.0,
    },
    Kernel {
        name: "u8 average",
        unit: Bytes(3.0),
        c: "const unsigned char *x = X, *w = W; unsigned char *y = Y; for (long i = 0; i < n;
            i++) y[i] = (x[i] + w[i] + 1) >> 1;",
        girder: "in x: u8[n], in w: u8[n], out y: u8[n]) { for i in 0..n { y[i] = u8((i32(x[i]) + i32(w[i]) + 1) >> 1);
            } }",
        arrays: [(U8, Size), (U8, Size), (U8, Size)],
        close: 0.0,
    },
    Kernel {
        name: "cosine",
        unit: Flop(6.0),
        c: "const float *x = X, *w = W; float a = 0, b = 0, c = 0; for (long i = 0; i < n; i++) { a += x[i] * w[i];
            b += x[i] * x[i]; c += w[i] * w[i]; } *(float *)Y = a + sqrtf(b * c);",
        girder: "in x: f32[n], in w: f32[n], out y: f32) { let a = sum i in 0..n { x[i] * w[i] };
            let b = sum i in 0..n { x[i] * x[i] }; let c = sum i in 0..n { w[i] * w[i] }; y = a + sqrt(b * c); }",
        arrays: [(F32, Size), (F32, Size), (F32, One)],
        close: 0.001,
    },
    Kernel {
        name: "softmax columns",
        unit: Bytes(8.0),
        c: "const float *x = X; float *y = Y, m[4096], s[4096]; for (long j = 0; j < n; j++) { m[j] = x[j]; s[j] = 0; }
            for (long i = 1; i < n; i++) for (long j = 0; j < n; j++) m[j] = x[i * n + j] > m[j] ? x[i * n + j] : m[j];
            for (long i = 0; i < n; i++) for (long j = 0; j < n; j++) { y[i * n + j] = expf(x[i * n + j] - m[j]);
            s[j] += y[i * n + j]; } for (long i = 0; i < n; i++) for (long j = 0; j < n; j++) y[i * n + j] /= s[j];",
        girder: "in x: f32[n, n], in w: f32, inout y: f32[n, n]) { for j in 0..n { let m = max i in 0..n { x[i, j] };
            for i in 0..n { y[i, j] = exp(x[i, j] - m); } let s = sum i in 0..n { y[i, j] }; for i in 0..n {
            y[i, j] /= s; } } }",
        arrays: [(F32, Square), (F32, One), (F32, Square)],
        close: 0.0001,
    },
    Kernel {
        name: "sine",
        unit: Bytes(8.0),
        c: "const float *x = X; float *y = Y; for (long i = 0; i < n; i++) y[i] = sinf(x[i]);",
        girder: "in x: f32[n], in w: f32, out y: f32[n]) { for i in 0..n { y[i] = sin(x[i]); } }",
        arrays: [(F32, Size), (F32, One), (F32, Size)],
        close: 1e-05,
    },
    Kernel {
        name: "erf",
        unit: Bytes(8.0),
        c: "const float *x = X; float *y = Y; for (long i = 0; i < n;
            i++) y[i] = 0.5f * x[i] * (1 + erff(x[i] * 0.70710678f));",
        girder: "in x: f32[n], in w: f32, out y: f32[n]) { for i in 0..n {
            y[i] = 0.5 * x[i] * (1.0 + erf(x[i] * 0.70710678)); } }",
        arrays: [(F32, Size), (F32, One), (F32, Size)],
        close: 1e-05,
    },
    Kernel {
        name: "power",
        unit: Bytes(8.0),
        c: "const float *x = X; float *y = Y; for (long i = 0; i < n; i++) y[i] = powf(fabsf(x[i]) + 0.1f, 2.4f);",
        girder: "in x: f32[n], in w: f32, out y: f32[n]) { for i in 0..n { y[i] = pow(abs(x[i]) + 0.1, 2.4); } }",
        arrays: [(F32, Size), (F32, One), (F32, Size)],
        close: 1e-05,
    },
    Kernel {
        name: "exp ahead",
        unit: Bytes(8.0),
        c: "const float *x = X; float *y = Y; for (long i = 0; i < n - 1; i++) y[i + 1] = expf(x[i]);",
        girder: "in x: f32[n], in w: f32, inout y: f32[n]) { for i in 0..n - 1 { y[i + 1] = exp(x[i]); } }",
        arrays: [(F32, Size), (F32, One), (F32, Size)],
        close: 1e-05,
    },
    Kernel {
        name: "divide by 10",
        unit: Bytes(8.0),
        c: "const int *x = X; int *y = Y; for (long i = 0; i < n; i++) y[i] = x[i] / 10 + x[i] % 7;",
        girder: "in x: i32[n], in w: f32, out y: i32[n]) { for i in 0..n { y[i] = x[i] / 10 + x[i] % 7; } }",
        arrays: [(I32, Size), (F32, One), (I32, Size)],
        close: 0.0,
    },
    Kernel {
        name: "splitmix",
        unit: Bytes(16.0),
        c: "const unsigned long *x = X; unsigned long *y = Y; for (long i = 0; i < n; i++) {
            unsigned long z = x[i] + 0x9e3779b97f4a7c15; z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
            z = (z ^ (z >> 27)) * 0x94d049bb133111eb; y[i] = (z ^ (z >> 31)) >> 12; }",
        girder: "in x: u64[n], in w: f32, out y: u64[n]) { for i in 0..n { let mut z = x[i] + 0x9e3779b97f4a7c15;
            z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9; z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
            y[i] = (z ^ (z >> 31)) >> 12; } }",
        arrays: [(U64, Size), (F32, One), (U64, Size)],
        close: 0.0,
    },
    Kernel {
        name: "first above",
        unit: Bytes(4.0),
        c: "const float *x = X; int k = n; for (long i = 0; i < n; i++) if (x[i] > 3.0f) { k = i; break; }
            *(int *)Y = k;",
        girder: "in x: f32[n], in w: f32, out y: i32) { let mut k = i32(n); for i in 0..n { if x[i] > 3.0 { k = i32(i);
            break; } } y = k; }",
        arrays: [(F32, Size), (F32, One), (I32, One)],
        close: 0.0,
    },
    Kernel {
        name: "sort 4",
        unit: Bytes(8.0),
        c: "const float *x = X; float *y = Y; for (long i = 0; i < n / 4; i++) {
            float a = x[4 * i], b = x[4 * i + 1], c = x[4 * i + 2], d = x[4 * i + 3], t;
            t = a < b ? a : b; b = a < b ? b : a; a = t; t = c < d ? c : d; d = c < d ? d : c; c = t;
            t = a < c ? a : c; c = a < c ? c : a; a = t; t = b < d ? b : d; d = b < d ? d : b; b = t;
            t = b < c ? b : c; c = b < c ? c : b; b = t;
            y[4 * i] = a; y[4 * i + 1] = b; y[4 * i + 2] = c; y[4 * i + 3] = d; }",
        girder: "in x: f32[m, 4], in w: f32, out y: f32[m, 4]) { for i in 0..m {
            let mut (a, b, c, d) = (x[i, 0], x[i, 1], x[i, 2], x[i, 3]); (a, b) = (min(a, b), max(a, b)); (c, d)
            = (min(c, d), max(c, d)); (a, c) = (min(a, c), max(a, c)); (b, d) = (min(b, d), max(b, d)); (b, c)
            = (min(b, c), max(b, c)); y[i, 0] = a; y[i, 1] = b; y[i, 2] = c; y[i, 3] = d; } }",
        arrays: [(F32, Rows(4)), (F32, One), (F32, Rows(4))],
        close: 0.0,
    },
    Kernel {
        name: "sparse rows",
        unit: Bytes(8.0),
        c: "const float *x = X; const int *w = W; float *y = Y; for (long r = 0; r < n / 8; r++) { float s = 0;
            for (long k = 8 * r; k < 8 * r + 8; k++) s += x[k] * x[w[k]]; y[r] = s; }",
        girder: "in x: f32[n], in w: i32[n], inout y: f32[n]) { for r in 0..n / 8 { y[r] = sum k in 0..8 {
            x[8 * r + k] * x[w[8 * r + k]] }; } }",
        arrays: [(F32, Size), (I32, Size), (F32, Size)],
        close: 0.0001,
    },
    Kernel {
        name: "planes of RGB",
        unit: Bytes(5.0),
        c: "const unsigned char *x = X; float *y = Y; for (long i = 0; i < n / 3; i++) for (long c = 0; c < 3;
            c++) y[c * n + i] = (x[3 * i + c] - 127.5f) * 0.0078f;",
        girder: "in x: u8[n], in w: f32, inout y: f32[3, n]) { for i in 0..n / 3, c in 0..3 {
            y[c, i] = (f32(x[3 * i + c]) - 127.5) * 0.0078; } }",
        arrays: [(U8, Size), (F32, One), (F32, Three)],
        close: 1e-05,
    },
];
