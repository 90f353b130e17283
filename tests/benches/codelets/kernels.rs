//! The kernels in both languages.

use super::Count::{Bins, One, Side, Size, Square};
use super::Kernel;
use super::Type::{F32, F64, I32, U8};
use super::Unit::{Bytes, Flop};

/// Those that the bars are for.
pub(super) const KERNELS: &[Kernel] = &[
    Kernel {
        name: "saxpy",
        unit: Flop(2.0),
        c: "const float *x = X; float a = *(const float *)W, *y = Y;
            for (long i = 0; i < n; i++) y[i] = a * x[i] + y[i];",
        girder: "in x: f32[n], in w: f32, inout y: f32[n]) { for i in 0..n { y[i] = w * x[i] + y[i]; } }",
        arrays: [(F32, Size), (F32, One), (F32, Size)],
        close: 1e-5,
    },
    Kernel {
        name: "dot",
        unit: Flop(2.0),
        c: "const float *x = X, *w = W; float s = 0; for (long i = 0; i < n; i++) s += x[i] * w[i]; *(float *)Y = s;",
        girder: "in x: f32[n], in w: f32[n], inout y: f32) { y = sum i in 0..n { x[i] * w[i] }; }",
        arrays: [(F32, Size), (F32, Size), (F32, One)],
        close: 1e-3,
    },
    Kernel {
        name: "sum of squares",
        unit: Flop(2.0),
        c: "const float *x = X; float s = 0; for (long i = 0; i < n; i++) s += x[i] * x[i]; *(float *)Y = s;",
        girder: "in x: f32[n], in w: f32, inout y: f32) { y = sum i in 0..n { x[i] * x[i] }; }",
        arrays: [(F32, Size), (F32, One), (F32, One)],
        close: 1e-3,
    },
    Kernel {
        name: "stencil",
        unit: Flop(6.0),
        c: "const float *x = X; float *y = Y; for (long i = 1; i < n - 1; i++) for (long j = 1; j < n - 1; j++)
            y[i * n + j] = 0.5f * x[i * n + j]
              + 0.125f * (x[(i - 1) * n + j] + x[(i + 1) * n + j] + x[i * n + j - 1] + x[i * n + j + 1]);",
        girder: "in x: f32[n, n], in w: f32, inout y: f32[n, n]) { for i in 1..n - 1, j in 1..n - 1 {
            y[i, j] = 0.5 * x[i, j] + 0.125 * (x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1]);
        } }",
        arrays: [(F32, Square), (F32, One), (F32, Square)],
        close: 1e-5,
    },
    Kernel {
        name: "sigmoid",
        unit: Bytes(8.0),
        c: "const float *x = X; float *y = Y; for (long i = 0; i < n; i++) y[i] = 1.0f / (1.0f + expf(-x[i]));",
        girder: "in x: f32[n], in w: f32, out y: f32[n]) { for i in 0..n { y[i] = sigmoid(x[i]); } }",
        arrays: [(F32, Size), (F32, One), (F32, Size)],
        close: 1e-5,
    },
    Kernel {
        name: "softmax row",
        unit: Bytes(8.0),
        c: "const float *x = X; float *y = Y; float m = x[0], s = 0;
            for (long i = 1; i < n; i++) m = x[i] > m ? x[i] : m;
            for (long i = 0; i < n; i++) { y[i] = expf(x[i] - m); s += y[i]; }
            s = 1.0f / s; for (long i = 0; i < n; i++) y[i] *= s;",
        girder: "in x: f32[n], in w: f32, inout y: f32[n]) {
            let m = max i in 0..n { x[i] };
            for i in 0..n { y[i] = exp(x[i] - m); }
            let s = 1.0 / sum i in 0..n { y[i] };
            for i in 0..n { y[i] *= s; }
        }",
        arrays: [(F32, Size), (F32, One), (F32, Size)],
        close: 1e-5,
    },
    Kernel {
        name: "layer norm row",
        unit: Bytes(12.0),
        c: "const float *x = X, *w = W; float *y = Y; float s = 0, v = 0;
            for (long i = 0; i < n; i++) s += x[i];
            s /= n; for (long i = 0; i < n; i++) v += (x[i] - s) * (x[i] - s);
            v = 1.0f / sqrtf(v / n + 1e-5f); for (long i = 0; i < n; i++) y[i] = (x[i] - s) * v * w[i];",
        girder: "in x: f32[n], in w: f32[n], out y: f32[n]) {
            let mean = (sum i in 0..n { x[i] }) / f32(n);
            let v = (sum i in 0..n { (x[i] - mean) * (x[i] - mean) }) / f32(n);
            let scale = 1.0 / sqrt(v + 1e-5);
            for i in 0..n { y[i] = (x[i] - mean) * scale * w[i]; }
        }",
        arrays: [(F32, Size), (F32, Size), (F32, Size)],
        close: 1e-3,
    },
    Kernel {
        name: "u8 to f32",
        unit: Bytes(5.0),
        c: "const unsigned char *x = X; float a = *(const float *)W, *y = Y;
            for (long i = 0; i < n; i++) y[i] = a * x[i];",
        girder: "in x: u8[n], in w: f32, out y: f32[n]) { for i in 0..n { y[i] = w * f32(x[i]); } }",
        arrays: [(U8, Size), (F32, One), (F32, Size)],
        close: 1e-6,
    },
    Kernel {
        name: "histogram",
        unit: Bytes(4.0),
        c: "const int *x = X; int *y = Y; for (long i = 0; i < n; i++) y[x[i] & 255]++;",
        girder: "in x: i32[n], in w: f32, inout y: i32[256]) { for i in 0..n { y[x[i] & 255] += 1; } }",
        arrays: [(I32, Size), (F32, One), (I32, Bins)],
        close: 0.0,
    },
    Kernel {
        name: "prefix sum",
        unit: Bytes(8.0),
        c: "const float *x = X; float *y = Y, s = 0; for (long i = 0; i < n; i++) { s += x[i]; y[i] = s; }",
        girder: "in x: f32[n], in w: f32, out y: f32[n]) { let mut s = 0.0; for i in 0..n { s += x[i]; y[i] = s; } }",
        arrays: [(F32, Size), (F32, One), (F32, Size)],
        close: 1e-3,
    },
];

/// Kernels of other kinds, of which nothing is asked.
pub(super) const OTHERS: &[Kernel] = &[
    Kernel {
        name: "relu",
        unit: Bytes(8.0),
        c: "const float *x = X; float *y = Y; for (long i = 0; i < n; i++) y[i] = x[i] > 0 ? x[i] : 0;",
        girder: "in x: f32[n], in w: f32, out y: f32[n]) { for i in 0..n { y[i] = max(x[i], 0.0); } }",
        arrays: [(F32, Size), (F32, One), (F32, Size)],
        close: 0.0,
    },
    Kernel {
        name: "gelu",
        unit: Bytes(8.0),
        c: "const float *x = X; float *y = Y; for (long i = 0; i < n; i++) {
            float v = x[i]; y[i] = 0.5f * v * (1.0f + tanhf(0.79788456f * (v + 0.044715f * v * v * v))); }",
        girder: "in x: f32[n], in w: f32, out y: f32[n]) { for i in 0..n {
            let v = x[i]; y[i] = 0.5 * v * (1.0 + tanh(0.79788456 * (v + 0.044715 * v * v * v)));
        } }",
        arrays: [(F32, Size), (F32, One), (F32, Size)],
        close: 1e-5,
    },
    Kernel {
        name: "Black-Scholes",
        unit: Bytes(8.0),
        c: "const float *x = X; float *y = Y; for (long i = 0; i < n; i++) {
            float s = x[i] * x[i] + 0.5f, t = 0.2f + 0.1f * s, q = 0.3f * sqrtf(t);
            float d = (logf(s) + 0.065f * t) / q, e = d - q;
            y[i] = 0.5f * (s * (1.0f + erff(d * 0.70710678f)) - expf(-0.02f * t) * (1.0f + erff(e * 0.70710678f))); }",
        girder: "in x: f32[n], in w: f32, out y: f32[n]) { for i in 0..n {
            let s = x[i] * x[i] + 0.5; let t = 0.2 + 0.1 * s; let q = 0.3 * sqrt(t);
            let d = (log(s) + 0.065 * t) / q; let e = d - q;
            y[i] = 0.5 * (s * (1.0 + erf(d * 0.70710678)) - exp(-0.02 * t) * (1.0 + erf(e * 0.70710678)));
        } }",
        arrays: [(F32, Size), (F32, One), (F32, Size)],
        close: 1e-4,
    },
    Kernel {
        name: "Black-Scholes twice",
        unit: Bytes(8.0),
        c: "const float *x = X; float *y = Y; for (long i = 0; i < n; i++) {
            float s = x[i] * x[i] + 0.5f, t = 0.2f + 0.1f * s, q = 0.3f * sqrtf(t);
            float d = (logf(s) + 0.065f * t) / q, e = d - q;
            float a = s * (1.0f + erff(d * 0.70710678f)) - expf(-0.02f * t) * (1.0f + erff(e * 0.70710678f));
            float u = 0.3f + 0.2f * s, p = 0.25f * sqrtf(u), f = (logf(s * 1.1f) + 0.05f * u) / p, g = f - p;
            float b = s * (1.0f + erff(f * 0.70710678f)) - expf(-0.03f * u) * (1.0f + erff(g * 0.70710678f));
            y[i] = 0.5f * (a - b); }",
        girder: "in x: f32[n], in w: f32, out y: f32[n]) { for i in 0..n {
            let s = x[i] * x[i] + 0.5; let t = 0.2 + 0.1 * s; let q = 0.3 * sqrt(t);
            let d = (log(s) + 0.065 * t) / q; let e = d - q;
            let a = s * (1.0 + erf(d * 0.70710678)) - exp(-0.02 * t) * (1.0 + erf(e * 0.70710678));
            let u = 0.3 + 0.2 * s; let p = 0.25 * sqrt(u); let f = (log(s * 1.1) + 0.05 * u) / p; let g = f - p;
            let b = s * (1.0 + erf(f * 0.70710678)) - exp(-0.03 * u) * (1.0 + erf(g * 0.70710678));
            y[i] = 0.5 * (a - b);
        } }",
        arrays: [(F32, Size), (F32, One), (F32, Size)],
        close: 1e-4,
    },
    Kernel {
        name: "log",
        unit: Bytes(8.0),
        c: "const float *x = X; float *y = Y; for (long i = 0; i < n; i++) y[i] = logf(x[i] * x[i] + 1.0f);",
        girder: "in x: f32[n], in w: f32, out y: f32[n]) { for i in 0..n { y[i] = log(x[i] * x[i] + 1.0); } }",
        arrays: [(F32, Size), (F32, One), (F32, Size)],
        close: 1e-5,
    },
    Kernel {
        name: "polynomial",
        unit: Flop(14.0),
        c: "const float *x = X; float *y = Y; for (long i = 0; i < n; i++) { float v = x[i];
            y[i] = ((((((0.1f * v + 0.2f) * v - 0.3f) * v + 0.4f) * v - 0.5f) * v + 0.6f) * v - 0.7f) * v + 0.8f; }",
        girder: "in x: f32[n], in w: f32, out y: f32[n]) { for i in 0..n { let v = x[i];
            y[i] = ((((((0.1 * v + 0.2) * v - 0.3) * v + 0.4) * v - 0.5) * v + 0.6) * v - 0.7) * v + 0.8; } }",
        arrays: [(F32, Size), (F32, One), (F32, Size)],
        close: 1e-5,
    },
    Kernel {
        name: "column sums",
        unit: Flop(1.0),
        c: "const float *x = X; float *y = Y; for (long j = 0; j < n; j++) y[j] = 0;
            for (long i = 0; i < n; i++) for (long j = 0; j < n; j++) y[j] += x[i * n + j];",
        girder: "in x: f32[n, n], in w: f32, out y: f32[n]) { for j in 0..n { y[j] = sum i in 0..n { x[i, j] }; } }",
        arrays: [(F32, Square), (F32, One), (F32, Side)],
        close: 1e-3,
    },
    Kernel {
        name: "column max",
        unit: Flop(1.0),
        c: "const float *x = X; float *y = Y; for (long j = 0; j < n; j++) y[j] = x[j];
            for (long i = 1; i < n; i++)
                for (long j = 0; j < n; j++) y[j] = x[i * n + j] > y[j] ? x[i * n + j] : y[j];",
        girder: "in x: f32[n, n], in w: f32, out y: f32[n]) { for j in 0..n { y[j] = max i in 0..n { x[i, j] }; } }",
        arrays: [(F32, Square), (F32, One), (F32, Side)],
        close: 0.0,
    },
    Kernel {
        name: "row sums",
        unit: Flop(1.0),
        c: "const float *x = X; float *y = Y; for (long i = 0; i < n; i++) { float s = 0;
            for (long j = 0; j < n; j++) s += x[i * n + j]; y[i] = s; }",
        girder: "in x: f32[n, n], in w: f32, out y: f32[n]) { for i in 0..n { y[i] = sum j in 0..n { x[i, j] }; } }",
        arrays: [(F32, Square), (F32, One), (F32, Side)],
        close: 1e-3,
    },
    Kernel {
        name: "matrix by vector",
        unit: Flop(2.0),
        c: "const float *x = X, *w = W; float *y = Y; for (long i = 0; i < n; i++) { float s = 0;
            for (long j = 0; j < n; j++) s += x[i * n + j] * w[j]; y[i] = s; }",
        girder: "in x: f32[n, n], in w: f32[n], out y: f32[n]) {
            for i in 0..n { y[i] = sum j in 0..n { x[i, j] * w[j] }; } }",
        arrays: [(F32, Square), (F32, Side), (F32, Side)],
        close: 1e-3,
    },
    Kernel {
        name: "vector by matrix",
        unit: Flop(2.0),
        c: "const float *x = X, *w = W; float *y = Y; for (long j = 0; j < n; j++) y[j] = 0;
            for (long i = 0; i < n; i++) for (long j = 0; j < n; j++) y[j] += w[i] * x[i * n + j];",
        girder: "in x: f32[n, n], in w: f32[n], out y: f32[n]) {
            for j in 0..n { y[j] = sum i in 0..n { w[i] * x[i, j] }; } }",
        arrays: [(F32, Square), (F32, Side), (F32, Side)],
        close: 1e-3,
    },
    Kernel {
        name: "transpose",
        unit: Bytes(8.0),
        c: "const float *x = X; float *y = Y; for (long i = 0; i < n; i++)
            for (long j = 0; j < n; j++) y[j * n + i] = x[i * n + j];",
        girder: "in x: f32[n, n], in w: f32, out y: f32[n, n]) { for i in 0..n, j in 0..n { y[j, i] = x[i, j]; } }",
        arrays: [(F32, Square), (F32, One), (F32, Square)],
        close: 0.0,
    },
    Kernel {
        name: "box 3x3",
        unit: Flop(9.0),
        c: "const float *x = X; float *y = Y; for (long i = 1; i < n - 1; i++) for (long j = 1; j < n - 1; j++) {
            float s = 0; for (long a = -1; a < 2; a++) for (long b = -1; b < 2; b++) s += x[(i + a) * n + j + b];
            y[i * n + j] = s / 9.0f; }",
        girder: "in x: f32[n, n], in w: f32, inout y: f32[n, n]) { for i in 1..n - 1, j in 1..n - 1 {
            let mut s = 0.0;
            for a in 0..3, b in 0..3 { s += x[i + a - 1, j + b - 1]; }
            y[i, j] = s / 9.0; } }",
        arrays: [(F32, Square), (F32, One), (F32, Square)],
        close: 1e-5,
    },
    Kernel {
        name: "filter of 9",
        unit: Flop(18.0),
        c: "const float *x = X, *w = W; float *y = Y; for (long i = 0; i < n - 8; i++) { float s = 0;
            for (long k = 0; k < 9; k++) s += w[k] * x[i + k]; y[i] = s; }",
        girder: "in x: f32[n], in w: f32[n], inout y: f32[n]) { for i in 0..n - 8 {
            y[i] = sum k in 0..9 { w[k] * x[i + k] }; } }",
        arrays: [(F32, Size), (F32, Size), (F32, Size)],
        close: 1e-5,
    },
    Kernel {
        name: "f64 axpy",
        unit: Flop(2.0),
        c: "const double *x = X; double a = *(const double *)W, *y = Y;
            for (long i = 0; i < n; i++) y[i] = a * x[i] + y[i];",
        girder: "in x: f64[n], in w: f64, inout y: f64[n]) { for i in 0..n { y[i] = w * x[i] + y[i]; } }",
        arrays: [(F64, Size), (F64, One), (F64, Size)],
        close: 1e-12,
    },
    Kernel {
        name: "f64 dot",
        unit: Flop(2.0),
        c: "const double *x = X, *w = W; double s = 0;
            for (long i = 0; i < n; i++) s += x[i] * w[i]; *(double *)Y = s;",
        girder: "in x: f64[n], in w: f64[n], inout y: f64) { y = sum i in 0..n { x[i] * w[i] }; }",
        arrays: [(F64, Size), (F64, Size), (F64, One)],
        close: 1e-9,
    },
    Kernel {
        name: "sum of i32",
        unit: Bytes(4.0),
        c: "const int *x = X; int s = 0; for (long i = 0; i < n; i++) s += x[i]; *(int *)Y = s;",
        girder: "in x: i32[n], in w: f32, out y: i32) { y = sum i in 0..n { x[i] }; }",
        arrays: [(I32, Size), (F32, One), (I32, One)],
        close: 0.0,
    },
    Kernel {
        name: "max of f32",
        unit: Bytes(4.0),
        c: "const float *x = X; float m = x[0]; for (long i = 1; i < n; i++) m = x[i] > m ? x[i] : m; *(float *)Y = m;",
        girder: "in x: f32[n], in w: f32, out y: f32) { y = max i in 0..n { x[i] }; }",
        arrays: [(F32, Size), (F32, One), (F32, One)],
        close: 0.0,
    },
    Kernel {
        name: "argmax",
        unit: Bytes(4.0),
        c: "const float *x = X; float m = x[0]; int k = 0;
            for (long i = 1; i < n; i++) if (x[i] > m) { m = x[i]; k = i; }
            *(int *)Y = k;",
        girder: "in x: f32[n], in w: f32, out y: i32) { y = i32(argmax i in 0..n { x[i] }); }",
        arrays: [(F32, Size), (F32, One), (I32, One)],
        close: 0.0,
    },
    Kernel {
        name: "count above",
        unit: Bytes(4.0),
        c: "const float *x = X; int s = 0; for (long i = 0; i < n; i++) s += x[i] > 0.5f; *(int *)Y = s;",
        girder: "in x: f32[n], in w: f32, out y: i32) {
            let mut s: i32 = 0; for i in 0..n { if x[i] > 0.5 { s += 1; } } y = s; }",
        arrays: [(F32, Size), (F32, One), (I32, One)],
        close: 0.0,
    },
    Kernel {
        name: "sum where",
        unit: Bytes(4.0),
        c: "const float *x = X; float s = 0; for (long i = 0; i < n; i++) if (x[i] > 0) s += x[i]; *(float *)Y = s;",
        girder: "in x: f32[n], in w: f32, out y: f32) { y = sum i in 0..n where x[i] > 0.0 { x[i] }; }",
        arrays: [(F32, Size), (F32, One), (F32, One)],
        close: 1e-3,
    },
    Kernel {
        name: "complex product",
        unit: Flop(3.0),
        c: "const float *x = X, *w = W; float *y = Y; for (long i = 0; i < n / 2; i++) {
            float a = x[2 * i], b = x[2 * i + 1], c = w[2 * i], d = w[2 * i + 1];
            y[2 * i] = a * c - b * d; y[2 * i + 1] = a * d + b * c; }",
        girder: "in x: f32[n], in w: f32[n], inout y: f32[n]) { for i in 0..n / 2 {
            let (a, b, c, d) = (x[2 * i], x[2 * i + 1], w[2 * i], w[2 * i + 1]);
            y[2 * i] = a * c - b * d; y[2 * i + 1] = a * d + b * c; } }",
        arrays: [(F32, Size), (F32, Size), (F32, Size)],
        close: 1e-5,
    },
    Kernel {
        name: "f32 to u8",
        unit: Bytes(5.0),
        c: "const float *x = X; unsigned char *y = Y; for (long i = 0; i < n; i++) {
            float v = x[i] * 64 + 128; v = v < 0 ? 0 : v > 255 ? 255 : v; y[i] = v; }",
        girder: "in x: f32[n], in w: f32, out y: u8[n]) { for i in 0..n {
            y[i] = u8(min(max(x[i] * 64.0 + 128.0, 0.0), 255.0)); } }",
        arrays: [(F32, Size), (F32, One), (U8, Size)],
        close: 0.0,
    },
    Kernel {
        name: "i32 to f32",
        unit: Bytes(8.0),
        c: "const int *x = X; float *y = Y; for (long i = 0; i < n; i++) y[i] = 0.5f * x[i];",
        girder: "in x: i32[n], in w: f32, out y: f32[n]) { for i in 0..n { y[i] = 0.5 * f32(x[i]); } }",
        arrays: [(I32, Size), (F32, One), (F32, Size)],
        close: 0.0,
    },
    Kernel {
        name: "luma of RGB",
        unit: Bytes(1.34),
        c: "const unsigned char *x = X; unsigned char *y = Y; for (long i = 0; i < n / 3; i++)
            y[i] = (77 * x[3 * i] + 150 * x[3 * i + 1] + 29 * x[3 * i + 2]) >> 8;",
        girder: "in x: u8[n], in w: f32, inout y: u8[n]) { for i in 0..n / 3 {
            y[i] = u8((77 * i32(x[3 * i]) + 150 * i32(x[3 * i + 1]) + 29 * i32(x[3 * i + 2])) >> 8); } }",
        arrays: [(U8, Size), (F32, One), (U8, Size)],
        close: 0.0,
    },
    Kernel {
        name: "gather",
        unit: Bytes(12.0),
        c: "const float *x = X; const int *w = W; float *y = Y; for (long i = 0; i < n; i++) y[i] = x[w[i]];",
        girder: "in x: f32[n], in w: i32[n], out y: f32[n]) { for i in 0..n { y[i] = x[w[i]]; } }",
        arrays: [(F32, Size), (I32, Size), (F32, Size)],
        close: 0.0,
    },
    Kernel {
        name: "reverse",
        unit: Bytes(8.0),
        c: "const float *x = X; float *y = Y; for (long i = 0; i < n; i++) y[i] = x[n - 1 - i];",
        girder: "in x: f32[n], in w: f32, out y: f32[n]) { for i in 0..n { y[i] = x[n - 1 - i]; } }",
        arrays: [(F32, Size), (F32, One), (F32, Size)],
        close: 0.0,
    },
    Kernel {
        name: "max pool 2x2",
        unit: Bytes(5.0),
        c: "const float *x = X; float *y = Y; long m = n / 2; for (long i = 0; i < m; i++)
            for (long j = 0; j < m; j++) {
            const float *p = x + 2 * i * n + 2 * j;
            float a = p[0] > p[1] ? p[0] : p[1], b = p[n] > p[n + 1] ? p[n] : p[n + 1];
            y[i * n + j] = a > b ? a : b; }",
        girder: "in x: f32[n, n], in w: f32, inout y: f32[n, n]) { for i in 0..n / 2, j in 0..n / 2 {
            y[i, j] = max(max(x[2 * i, 2 * j], x[2 * i, 2 * j + 1]), max(x[2 * i + 1, 2 * j], x[2 * i + 1, 2 * j + 1]));
        } }",
        arrays: [(F32, Square), (F32, One), (F32, Square)],
        close: 0.0,
    },
    Kernel {
        name: "curve",
        unit: Flop(42.0),
        c: "const float *x = X; float *y = Y; for (long i = 0; i < n; i++) { float t = i * (1.0f / n), z = t;
            for (int k = 0; k < 10; k++) z = (z * t - 0.75f) * z + 0.25f;
            y[i] = z * x[i]; }",
        girder: "in x: f32[n], in w: f32, out y: f32[n]) { for i in 0..n {
            let t = f32(i) * (1.0 / f32(n)); let mut z = t;
            for k in 0..10 { z = (z * t - 0.75) * z + 0.25; }
            y[i] = z * x[i]; } }",
        arrays: [(F32, Size), (F32, One), (F32, Size)],
        close: 1e-5,
    },
    Kernel {
        name: "iterate 20",
        unit: Flop(60.0),
        c: "const float *x = X; float *y = Y; for (long i = 0; i < n; i++) { float z = 0, c = x[i] * 0.25f;
            for (int k = 0; k < 20; k++) z = z * z * 0.5f + c; y[i] = z; }",
        girder: "in x: f32[n], in w: f32, out y: f32[n]) { for i in 0..n {
            let mut z = 0.0; let c = x[i] * 0.25;
            for k in 0..20 { z = z * z * 0.5 + c; }
            y[i] = z; } }",
        arrays: [(F32, Size), (F32, One), (F32, Size)],
        close: 1e-4,
    },
    Kernel {
        name: "decaying mean",
        unit: Bytes(8.0),
        c: "const float *x = X; float *y = Y, s = 0;
            for (long i = 0; i < n; i++) { s = 0.9f * s + 0.1f * x[i]; y[i] = s; }",
        girder: "in x: f32[n], in w: f32, out y: f32[n]) {
            let mut s = 0.0; for i in 0..n { s = 0.9 * s + 0.1 * x[i]; y[i] = s; } }",
        arrays: [(F32, Size), (F32, One), (F32, Size)],
        close: 1e-4,
    },
    Kernel {
        name: "distance",
        unit: Bytes(12.0),
        c: "const float *x = X, *w = W; float *y = Y;
            for (long i = 0; i < n; i++) y[i] = sqrtf(x[i] * x[i] + w[i] * w[i]);",
        girder: "in x: f32[n], in w: f32[n], out y: f32[n]) {
            for i in 0..n { y[i] = sqrt(x[i] * x[i] + w[i] * w[i]); } }",
        arrays: [(F32, Size), (F32, Size), (F32, Size)],
        close: 1e-6,
    },
    Kernel {
        name: "integer hash",
        unit: Bytes(8.0),
        c: "const unsigned *x = X; unsigned *y = Y; for (long i = 0; i < n; i++) { unsigned v = x[i];
            v ^= v >> 16; v *= 0x7feb352du; v ^= v >> 15; v *= 0x846ca68bu; v ^= v >> 16; y[i] = v & 0xffff; }",
        girder: "in x: i32[n], in w: f32, out y: i32[n]) { for i in 0..n {
            let mut v = u32.bits(x[i]);
            v ^= v >> 16; v *= 0x7feb352d; v ^= v >> 15; v *= 0x846ca68b; v ^= v >> 16;
            y[i] = i32(v & 0xffff); } }",
        arrays: [(I32, Size), (F32, One), (I32, Size)],
        close: 0.0,
    },
];
