//! Codelets from source text, with functions of the prelude: they agree with the interpreter, and their loops become
//! vectors.

use crate::harness::Neighbours;
use crate::harness::source::{case, vertices};
use girder_ir::types::ElemType;
use girder_ir::types::ElemType::F32;

/// Checks that compiled code agrees with the interpreter, and loads vectors of this type.
fn becomes_vectors(text: &str, shapes: &[&[u64]], ty: &str) {
    let case = case(text, shapes);
    assert!(case.check().failure.is_none());
    let clif = case.clif_without_vector_kernels();
    assert!(clif.contains(&format!("load.{ty}")), "{text}\n{clif}");
}

/// Checks that compiled code agrees with the interpreter, and that AVX-512 code calls a vector kernel.
fn becomes_a_vector_kernel(text: &str, shapes: &[&[u64]]) {
    let case = case(text, shapes);
    assert!(case.check().failure.is_none());
    let clif = case.clif(girder_codegen::Level::Avx512);
    assert!(clif.contains("u1:0"), "{text}\n{clif}");
    let portable = case.clif(girder_codegen::Level::Portable);
    assert!(!portable.contains("u1:"), "{text} calls a vector kernel on a host that has none");
}

#[test]
fn stores_under_conditions_become_vectors() {
    let leaky = "codelet f(in x: f32[n], out y: f32[n]) {
        for i in 0..n { if x[i] > 0.0 { y[i] = x[i]; } else { y[i] = 0.01 * x[i]; } }
    }";
    becomes_vectors(leaky, &[&[67], &[67]], "f32x4");
    becomes_a_vector_kernel(leaky, &[&[67], &[67]]);
    let steps = "codelet f(in x: f32[n], out y: f32[n]) {
        for i in 0..n {
            let v = x[i];
            if v < -1.0 { y[i] = -1.0; } else if v > 1.0 { let w = v * v; y[i] = w + 0.5; } else { y[i] = v; }
        }
    }";
    becomes_vectors(steps, &[&[67], &[67]], "f32x4");
    becomes_a_vector_kernel(steps, &[&[67], &[67]]);
    for body in [
        "if x[i] > 0.0 { y[i] = x[i]; }",
        "if x[i] > 0.0 { y[i] = x[i]; z[i] = 1; } else { z[i] = 2; }",
        "if x[i] > 0.0 { continue; } y[i] = sqrt(-x[i]); z[i] += 1;",
        "if x[i] > 0.0 { z[i] = 3; } else { continue; } y[i] = x[i];",
        "if i >= 3 { y[i] = x[i - 3]; }",
        "if i >= 3 && x[i - 3] > 0.0 { y[i] = x[i]; } else { if x[i] < 1.0 { z[i] = 7; } }",
        "if s > 0.0 { y[i] = x[i]; } else { z[i] = 4; }",
    ] {
        let text = format!(
            "codelet f(in x: f32[n], inout y: f32[n], inout z: u8[n], in s: f32) {{ for i in 0..n {{ {body} }} }}"
        );
        becomes_a_vector_kernel(&text, &[&[67], &[67], &[67], &[]]);
    }
    let vertex = "codelet f(in x: f32, inout y: f32) { if x < 0.0 { y = 0.0; return; } if y < x { y = sqrt(x); } }";
    let case = vertices(vertex, &[&[], &[]], (37, Neighbours::SideBySide), &[]);
    assert!(case.check().failure.is_none());
    assert!(case.clif(girder_codegen::Level::Avx512).contains("u1:0"));
}

#[test]
fn checks_under_conditions_fail_where_the_program_comes_to_them() {
    for body in ["if x[i] < 0.0 { y[i] = x[k[i]]; } else { y[i] = 1.0; }", "if x[i] < 0.0 { y[i] = f32(100 / k[i]); }"]
    {
        let text = format!("codelet f(in x: f32[n], in k: i32[n], inout y: f32[n]) {{ for i in 0..n {{ {body} }} }}");
        assert!(case(&text, &[&[67], &[67], &[67]]).check().failure.is_some());
        let never = text.replace("x[i] < 0.0", "x[i] < -1000.0");
        assert!(case(&never, &[&[67], &[67], &[67]]).check().failure.is_none());
    }
}

#[test]
fn strided_elements_become_vector_kernels() {
    let pairs = "codelet f(in x: f32[m], out y: f32[n]) {
        assert(m == 2 * n);
        for i in 0..n { y[i] = x[2 * i] + x[2 * i + 1]; }
    }";
    let grey = "codelet f(in x: u8[m], out y: u8[n]) {
        assert(m == 3 * n);
        for i in 0..n { y[i] = u8((77 * i32(x[3 * i]) + 150 * i32(x[3 * i + 1]) + 29 * i32(x[3 * i + 2])) >> 8); }
    }";
    let product = "codelet f(in x: f64[m], in w: f64[m], out y: f64[m]) {
        for i in 0..m / 2 {
            y[2 * i] = x[2 * i] * w[2 * i] - x[2 * i + 1] * w[2 * i + 1];
            y[2 * i + 1] = x[2 * i] * w[2 * i + 1] + x[2 * i + 1] * w[2 * i];
        }
    }";
    for n in [16, 17, 31, 47, 64, 90] {
        becomes_a_vector_kernel(pairs, &[&[2 * n], &[n]]);
        becomes_a_vector_kernel(grey, &[&[3 * n], &[n]]);
        becomes_a_vector_kernel(product, &[&[2 * n], &[2 * n], &[2 * n]]);
        for ty in ["f32", "u8", "i32", "f64"] {
            let last_first =
                "codelet f(in x: T[n], out y: f32[n]) { for i in 0..n { y[i] = f32(x[n - 1 - i]) + 1.0; } }";
            becomes_a_vector_kernel(&last_first.replace('T', ty), &[&[n], &[n]]);
        }
        for steps in [2, 3, 4] {
            for stored in ["y[STEPS * i + 1] = x[i];", "y[STEPS * i + 1] = x[i]; y[STEPS * i] = -x[i];"] {
                let stored = stored.replace("STEPS", &steps.to_string());
                let text = format!(
                    "codelet f(in x: f32[n], inout y: f32[m]) {{
                        assert(m == {steps} * n);
                        for i in 0..n {{ {stored} }}
                    }}"
                );
                becomes_a_vector_kernel(&text, &[&[n], &[steps * n]]);
            }
        }
    }
}

/// Matrices of a few elements, each in a row of an array.
#[test]
fn nests_of_short_loops_become_vector_kernels() {
    let products = "codelet f(in x: f32[m, 16], in w: f32[m, 16], out y: f32[m, 16]) {
        for t in 0..m, i in 0..4, j in 0..4 {
            y[t, 4 * i + j] = sum k in 0..4 { x[t, 4 * i + k] * w[t, 4 * k + j] };
        }
    }";
    let transposed = "codelet f(in x: i32[m, 4, 4], out y: i32[m, 4, 4]) {
        for t in 0..m, i in 0..4, j in 0..4 { y[t, i, j] = x[t, j, i] + x[t, 3 - i, j]; }
    }";
    let scaled = "codelet f(in x: f32[m, 2, 8], in s: f32[2], in c: f32[8], inout y: f32[m, 2, 8]) {
        for t in 0..m, i in 0..2, j in 0..8 { y[t, i, j] = c[j] * max(y[t, i, j], s[i] * x[t, i, 7 - j]); }
    }";
    for m in [2, 7, 40] {
        becomes_a_vector_kernel(products, &[&[m, 16], &[m, 16], &[m, 16]]);
        becomes_a_vector_kernel(transposed, &[&[m, 4, 4], &[m, 4, 4]]);
        becomes_a_vector_kernel(scaled, &[&[m, 2, 8], &[2], &[8], &[m, 2, 8]]);
    }
    let pairs = "codelet f(in x: f32[m, 2, 2], out y: f32[m, 2, 2]) {
        for t in 0..m, i in 0..2, j in 0..2 { y[t, i, j] = x[t, 1 - i, j] - x[t, 0, 0]; }
    }";
    becomes_a_vector_kernel(pairs, &[&[8, 2, 2], &[8, 2, 2]]);
    for m in [1, 3, 6, 13] {
        assert!(case(pairs, &[&[m, 2, 2], &[m, 2, 2]]).check().failure.is_none());
    }
}

/// Rows that are too short for a call each: one call runs the loop around them.
#[test]
fn short_rows_share_a_call_of_a_vector_kernel() {
    let outer = "codelet f(in x: f32[m, n], in w: f32[n], inout y: f32[m, n]) {
        for i in 0..m, j in 0..n { y[i, j] += 1e-3 * x[i, 0] * w[j]; }
    }";
    let named = "codelet f(in x: f32[m, n], in w: f32[n], inout y: f32[m, n]) {
        for i in 0..m {
            let (k, a) = (m - 1 - i, exp(x[i, 3]));
            let b = a + x[k, 0];
            for j in 0..n { if y[i, j] < b { y[i, j] = fma(b, w[n - 1 - j], x[k, j]); } }
        }
    }";
    let depthwise = "codelet f(in x: f32[m, n], in w: f32[3, n], inout y: f32[m, n]) {
        for i in 1..m - 1 { for j in 0..n { y[i, j] = sum k in 0..3 { x[i + k - 1, j] * w[k, j] }; } }
    }";
    let added = "codelet f(in x: f32[m, n], in w: f32[n], inout y: f32[m, n]) {
        for i in 0..m { for j in 0..n { y[0, j] = fma(x[i, j], w[j], y[0, j]); } }
    }";
    let pairs = "codelet f(in x: f32[m, n], in w: f32[n], inout y: f32[m, n]) {
        for i in 0..m { for j in 0..n / 2 { y[i, 2 * j] = x[i, 2 * j + 1] - w[0]; y[i, 2 * j + 1] = x[0, j] + w[j]; } }
    }";
    let next = "codelet f(in x: f32[m, n], in w: f32[n], inout y: f32[m, n]) {
        for i in 1..m { for j in 0..n { y[i, j] = y[i - 1, j] * w[j] + x[i, n - 1 - j]; } }
    }";
    for text in [outer, named, depthwise, added, pairs, next] {
        let weights = if text == depthwise { 2 } else { 1 };
        for ty in ["f32", "f64", "i32"] {
            let text = &text.replace("f32", ty);
            if ty == "i32" && ["exp", "fma", "1e-3"].iter().any(|f| text.contains(f)) {
                continue;
            }
            for (m, n) in [(4, 20), (5, 17), (9, 33), (40, 64), (4, 90), (4, 500)] {
                let w: &[u64] = if weights == 2 { &[3, n] } else { &[n] };
                becomes_a_vector_kernel(text, &[&[m, n], w, &[m, n]]);
                let kernels = case(text, &[&[m, n], w, &[m, n]]).vector_kernels();
                assert!(kernels.contains("outer loop"), "each row of {text} has a call\n{kernels}");
            }
            for (m, n) in [(1, 40), (2, 8), (2, 9), (5, 16), (3, 600)] {
                let w: &[u64] = if weights == 2 { &[3, n] } else { &[n] };
                assert!(case(text, &[&[m, n], w, &[m, n]]).check().failure.is_none());
            }
        }
    }
}

/// Elements at many strides, of which some are too far apart for one vector, or overlap those that are stored.
#[test]
fn nests_of_short_loops_agree_with_the_interpreter() {
    for (rows, columns) in [(4, 4), (2, 8), (8, 2), (16, 1), (1, 16), (4, 2), (2, 2), (3, 4), (5, 1), (4, 8)] {
        for (down, right) in [(0, 1), (1, 0), (1, 1), (2, 1), (4, 1), (1, 4), (3, 2), (8, 1), (0, 0), (17, 1)] {
            let (m, length) = (8, (rows - 1) * down + (columns - 1) * right + 2);
            for ty in ["f32", "f64", "i32", "u8"] {
                let text = format!(
                    "codelet f(in x: T[m, l], inout z: T[m, l], inout y: T[m, {rows}, {columns}]) {{
                        for t in 0..m, i in 0..{rows}, j in 0..{columns} {{
                            let k = {down} * i + {right} * j;
                            y[t, i, j] += x[t, {down} * i + {right} * j] - x[m - 1 - t, l - 1 - k];
                        }}
                        for t in 0..m, i in 0..{rows}, j in 0..{columns} {{
                            z[t, {down} * i + {right} * j] = y[t, i, j] + z[t, {down} * i + {right} * j + 1];
                        }}
                        for t in 0..m, i in 0..{rows}, j in 0..{columns} {{
                            if x[t, j] > y[t, i, j] {{ y[t, i, j] = x[t, 0]; }}
                        }}
                    }}"
                );
                let shapes: &[&[u64]] = &[&[m, length.max(16)], &[m, length.max(16)], &[m, rows, columns]];
                assert!(case(&text.replace('T', ty), shapes).check().failure.is_none());
            }
        }
    }
}

#[test]
fn statements_on_adjacent_elements_become_vector_kernels() {
    for ty in ["f32", "f64"] {
        let text = "codelet f(in s: T, in t: T, inout y: T[m]) {
            for i in 0..m / 2 { y[2 * i] = s; y[2 * i + 1] = t; }
        }";
        for n in [16, 17, 47] {
            becomes_a_vector_kernel(&text.replace('T', ty), &[&[], &[], &[2 * n]]);
        }
    }
}

#[test]
fn small_conditions_on_integers_are_selections() {
    let text = "codelet f(in x: i32[n], out y: i32[n]) {
        for i in 0..n {
            let mut v = (x[i] & 63) + 1;
            let mut steps = i32(0);
            while v != 1 && steps < 40 {
                if v % 2 == 0 { v = v / 2; } else { v = 3 * v + 1; }
                steps += 1;
            }
            y[i] = steps;
        }
    }";
    let mut case = case(text, &[&[19], &[19]]);
    case.iterations = 1 << 20;
    assert!(case.check().failure.is_none());
    assert!(case.clif(girder_codegen::Level::Portable).contains("select"));
}

#[test]
fn iterations_that_touch_one_element_stay_in_order() {
    for (steps, ahead) in [(2, 2), (2, 4), (3, 3), (1, 1)] {
        let text = format!(
            "codelet f(in x: f32[n], inout y: f32[m]) {{
                assert(m == {steps} * n + {ahead});
                for i in 0..n {{ y[{steps} * i] = x[i]; y[{steps} * i + {ahead}] = x[i] + 1.0; }}
            }}"
        );
        assert!(case(&text, &[&[40], &[steps * 40 + ahead]]).check().failure.is_none());
    }
}

#[test]
fn short_inner_loops_are_unrolled_in_vector_kernels() {
    let filter = "codelet f(in x: f32[m], in w: f32[k], out y: f32[n]) {
        assert(m == n + k);
        for i in 0..n { y[i] = sum j in 0..k { w[j] * x[i + j] }; }
    }";
    for k in [1, 3, 9, 17, 40] {
        becomes_a_vector_kernel(filter, &[&[67 + k], &[k], &[67]]);
    }
    let window = "codelet f(in x: f32[m, l], in w: f32[9], out y: f32[k, n]) {
        assert(m == k + 2 && l == n + 2);
        for i in 0..k, j in 0..n { y[i, j] = sum a in 0..3, b in 0..3 { w[a * 3 + b] * x[i + a, j + b] }; }
    }";
    becomes_a_vector_kernel(window, &[&[6, 35], &[9], &[4, 33]]);
    let horner = "codelet f(in x: f32[n], out y: f32[n]) {
        for i in 0..n { let mut r = 0.1; for k in 0..8 { r = r * x[i] + f32(k); } y[i] = r; }
    }";
    becomes_a_vector_kernel(horner, &[&[67], &[67]]);
}

#[test]
fn totals_and_filtered_reductions_become_vector_kernels() {
    for (before, body, after) in [
        ("let mut c = i32(0);", "if x[i] > 1.0 { c += 1; }", "y = f32(c);"),
        ("let mut c = i64(5);", "if x[i] > 1.0 { c -= 3; } else if x[i] < -2.0 { c += i; }", "y = f32(c);"),
        ("let mut m = x[0];", "m = max(m, x[i]);", "y = m;"),
        ("let mut m = f64(x[0]);", "if x[i] < 3.0 { m = min(f64(x[i]), m); }", "y = f32(m);"),
        (
            "let mut s = u32(1); let mut m = i32(0);",
            "let v = i32(x[i]); s += u32(v); m = max(m, v * v);",
            "y = f32(s) + f32(m);",
        ),
    ] {
        let text = format!("codelet f(in x: f32[n], out y: f32) {{ {before} for i in 0..n {{ {body} }} {after} }}");
        becomes_a_vector_kernel(&text, &[&[167], &[]]);
    }
    for value in ["sum i in 0..n where x[i] > 1.0 { x[i] }", "sum i in 0..n where x[i] < 0.0 { x[i] * w[i] }"] {
        let text = format!("codelet f(in x: f32[n], in w: f32[n], out y: f32) {{ y = {value}; }}");
        becomes_a_vector_kernel(&text, &[&[167], &[167], &[]]);
        // No element passes the filter.
        becomes_a_vector_kernel(
            &text.replace("where x[i] >", "where x[i] > 1e30 *").replace("< 0.0", "< -1e30"),
            &[&[67], &[67], &[]],
        );
    }
    let rows = "codelet f(in x: f32[n, m], out y: f32) {
        y = max i in 0..n, j in 0..m where x[i, j] < 9.0 { x[i, j] * 2.0 };
    }";
    becomes_a_vector_kernel(rows, &[&[3, 70], &[]]);
}

#[test]
fn integer_operators_without_an_instruction_become_vector_kernels() {
    for ty in ["u8", "i32", "u32"] {
        // Numbers that are powers of two and others, the least and the greatest.
        let numbers = match ty {
            "u8" => "1 2 3 10 128 255",
            "i32" => "1 2 3 7 -1 -2 -3 -16 10 255 641 2147483647 -2147483647 -2147483648 1073741824",
            _ => "1 2 3 7 10 255 641 2147483648 4294967295",
        };
        for by in numbers.split(' ') {
            let text = format!(
                "codelet f(in x: {ty}[n], out y: {ty}[n], out z: {ty}[n]) {{
                    for i in 0..n {{ let v = x[i] ^ (x[i] << 5); y[i] = v / {by}; z[i] = !v % {by}; }} }}"
            );
            becomes_a_vector_kernel(&text, &[&[67], &[67], &[67]]);
        }
    }
    for ty in ["u8", "i32", "u32", "i64", "u64"] {
        let text = format!(
            "codelet f(in x: {ty}[n], out y: {ty}[n], out z: {ty}[n]) {{
                for i in 0..n {{ y[i] = popcount(x[i]); z[i] = clz(x[i]) + popcount(!(x[i] << 3)); }} }}"
        );
        becomes_a_vector_kernel(&text, &[&[67], &[67], &[67]]);
    }
    // An unknown divisor may be zero, which has to be reported.
    let unknown = "codelet f(in x: i32[n], in d: i32[n], out y: i32[n]) { for i in 0..n { y[i] = x[i] / d[i]; } }";
    assert!(case(unknown, &[&[67], &[67], &[67]]).check().failure.is_some());
}

#[test]
fn functions_of_one_number_become_vectors() {
    for name in ["exp", "log", "tanh", "sigmoid", "relu", "square", "sign", "rsqrt", "abs", "sqrt"] {
        let text = format!("codelet f(in x: f32[n], out y: f32[n]) {{ for i in 0..n {{ y[i] = {name}(x[i]); }} }}");
        becomes_vectors(&text, &[&[67], &[67]], "f32x4");
        let text = text.replace("f32", "f64");
        assert!(case(&text, &[&[67], &[67]]).check().failure.is_none());
    }
    let text = "codelet f(in x: f64[n], out y: f64[n]) { for i in 0..n { y[i] = relu(x[i]) * 2.0; } }";
    becomes_vectors(text, &[&[33], &[33]], "f64x2");
}

#[test]
fn a_rarely_taken_path_has_its_own_version() {
    // Sines of large numbers need a table. Some of the random elements are not finite, which counts as large.
    for body in [
        "let v = x[i]; y[i] = sin(if v > -100.0 && v < 100.0 { v } else { 0.5 });",
        "let v = x[i]; y[i] = sin(v) + cos(2.0 * v);",
        "y[i] = tan(x[i] * 1e30);",
        "let v = sin(f32(i) * 0.1); y[i] = v * cos(v) * x[i];",
        "if x[i] > 0.0 { y[i] = 1.0; } let v = cos(f32(i)); if v > 0.0 { continue; } y[i] = v;",
        "total += f64(sin(f32(i))); y[i] = f32(total);",
    ] {
        let text = format!(
            "codelet f(in x: f32[n], inout y: f32[n], inout s: f64) {{
                let mut total = s; for i in 0..n {{ {body} }} s = total; }}"
        );
        for n in [1, 63, 64, 67, 130, 5000] {
            // More than 4096 iterations exceed the limit of these tests, in either version.
            let fails = case(&text, &[&[n], &[n], &[]]).check().failure.is_some();
            assert_eq!(fails, n > 4096, "{text}");
        }
    }
    becomes_a_vector_kernel(
        "codelet f(in x: f32[n], out y: f32[n]) { for i in 0..n { y[i] = sin(x[i]); } }",
        &[&[67], &[67]],
    );
    // The test for the rare path would depend on values that change in each iteration, so it cannot precede the loop.
    for body in ["v = sin(v * 1e5); y[i] = v;", "y[i] = sin(y[i] * 1e5);", "y[i] = sin(y[n - 1 - i] * 3.0);"] {
        let text =
            format!("codelet f(in x: f32[n], inout y: f32[n]) {{ let mut v = x[0]; for i in 0..n {{ {body} }} }}");
        assert!(case(&text, &[&[67], &[67]]).check().failure.is_none(), "{text}");
    }
}

/// An index that names sums of sums of itself would have a million million operands.
#[test]
fn indices_of_indices_stay_small() {
    let names: String = (1..40).map(|k| format!("let k{k} = k{} + k{};", k - 1, k - 1)).collect();
    let text = format!(
        "codelet f(in x: f32[n], in d: i32, inout y: f32[m]) {{
            for i in 0..m {{ let k0 = i; {names} y[i] = x[k39 + int(d) - int(d)]; }} }}"
    );
    assert!(case(&text, &[&[90], &[], &[40]]).check().failure.is_some());
}

/// Loops over rows and windows that begin at a number from data, which the codelet does not bound.
#[test]
fn checks_that_all_iterations_share_precede_the_loop() {
    // `D` is a number that only the run shows: the facts know nothing of it.
    let loops = [
        "for i in 0..m { y[i] = x[i + D]; }",
        "for i in 0..m { y[i] = x[D - i]; }",
        "for i in 0..m { y[i] = x[2 * i + D] * x[i]; }",
        "for i in 0..m { y[i + D] = x[i]; }",
        "for i in 0..m { x[i] = 1.0; y[i] = x[i + D]; }",
        "for i in 0..m { if x[i] > 0.0 { y[i] = x[i + D]; } }",
        "for i in 0..D { y[i] = x[i]; }",
        "for i in D..m { y[i] = x[i]; }",
        "for i in D..D { y[i] = x[i - 50]; }",
        "y[0] = sum i in 0..m { x[i + D] };",
        "y[0] = max i in 0..m where x[i] < 3.0 { x[i - D] };",
        "for j in 0..r { for i in 0..c { w[j, i] = v[j + D, i] + v[j, i]; } }",
        "for j in 0..r { for i in 0..c { w[j, i] = v[int(k[j]) + D, i]; } }",
        "for j in 0..r { w[j, 0] = sum i in 0..c { v[D, i] }; }",
        "for i in 0..c { w[D, i] = v[r - 1 - D, c - 1 - i]; }",
    ];
    let shapes: [&[u64]; 6] = [&[90], &[40], &[6, 32], &[6, 32], &[6], &[]];
    let mut outcomes = [0, 0];
    for body in loops {
        for d in [-(1 << 41), -50, -1, 0, 1, 3, 5, 6, 10, 11, 39, 40, 50, 51, 89, 90, 1 << 41, i64::MAX - 3] {
            let number = format!("(int(z) - int(z) + ({d}))");
            let text = format!(
                "codelet f(inout x: f32[n], inout y: f32[m], in v: f32[r, c], inout w: f32[r, c], in k: i32[r],
                     in z: i32) {{ {} }}",
                body.replace('D', &number)
            );
            outcomes[usize::from(case(&text, &shapes).check().failure.is_some())] += 1;
        }
    }
    assert!(outcomes.iter().all(|&n| n > 60), "{outcomes:?}");
    becomes_a_vector_kernel(
        "codelet f(in x: f32[n], in z: i32, out y: f32[m]) { for i in 0..m { y[i] = x[i + int(z) - int(z)]; } }",
        &[&[90], &[], &[67]],
    );
}

#[test]
fn indices_held_by_locals_are_inlined() {
    for body in [
        "y[i + 1] = exp(x[i]);",
        "y[n - 1 - i] = exp(x[i]);",
        "let k = i + 1; let l = k - 1; y[k] = exp(x[l]);",
        "let k = 2 * i; y[i + 1] = x[i] + f32(k) + exp(x[i]);",
        "let k = i + 1; if x[k] > 0.0 { y[k] = exp(x[k]); } else { let m = k - 1; y[m + 1] = x[m]; }",
    ] {
        let text = format!("codelet f(in x: f32[n], inout y: f32[n]) {{ for i in 0..n - 1 {{ {body} }} }}");
        becomes_a_vector_kernel(&text, &[&[68], &[68]]);
    }
    let rows = "codelet f(in x: f32[m, 16], in w: f32[m, 16], out y: f32[m, 16]) {
        for t in 0..m, i in 0..4, j in 0..4 { y[t, 4 * i + j] = sum k in 0..4 { x[t, 4 * i + k] * w[t, 4 * k + j] }; }
    }";
    becomes_vectors(rows, &[&[9, 16], &[9, 16], &[9, 16]], "f32x4");
    // A local that outlives its iteration, or changes in it, does not hold an index.
    for body in [
        "let mut k = 0; for i in 0..n - 1 { y[k] = exp(x[i]); k = i + 1; } y[k] = 1.0;",
        "let mut k = 0; for i in 0..n - 1 { if i > 5 { k = i + 1; y[k] = exp(x[k]); } } y[k] = 2.0;",
        "for i in 0..n - 1 { let mut k = i + 1; y[k] = exp(x[i]); k = i / 2; y[k] += x[k]; }",
        "let mut j = 0; for i in 0..n - 1 { let k = j + 1; j = k; y[k] = exp(x[i]); }",
    ] {
        let text = format!("codelet f(in x: f32[n], inout y: f32[n]) {{ {body} }}");
        assert!(case(&text, &[&[68], &[68]]).check().failure.is_none(), "{text}");
    }
}

#[test]
fn products_and_sums_become_vectors() {
    let dot = "codelet dot(in a: f32[n], in b: f32[n], out y: f32) { y = sum i in 0..n { a[i] * b[i] }; }";
    becomes_vectors(dot, &[&[83], &[83], &[]], "f32x4");
    let softmax = "codelet softmax(in x: f32[n], out y: f32[n]) {
        let top = max i in 0..n { x[i] };
        let total = sum i in 0..n { exp(x[i] - top) };
        for i in 0..n { y[i] = exp(x[i] - top) / total; }
    }";
    becomes_vectors(softmax, &[&[50], &[50]], "f32x4");
    let columns = "codelet columns(in a: f32[m, n], inout y: f32[n]) {
        for j in 0..n { y[j] = 0.0; }
        for i in 0..m, j in 0..n { y[j] = y[j] + a[i, j]; }
    }";
    becomes_vectors(columns, &[&[5, 21], &[21]], "f32x4");
}

#[test]
fn reductions_side_by_side_become_vectors() {
    let sums = "codelet sums(in a: f32[m, n], out y: f32[n]) { for j in 0..n { y[j] = sum i in 0..m { a[i, j] }; } }";
    let greatest = sums.replace("= sum", "= max");
    let product = "codelet product(in a: f32[m, k], in b: f32[k, n], out y: f32[m, n]) {
        for i in 0..m, j in 0..n { y[i, j] = sum l in 0..k { a[i, l] * b[l, j] }; }
    }";
    let mean = "codelet mean(in a: f32[m, n], in s: f32, inout y: f32[n]) {
        for j in 0..n {
            let mut t = y[j];
            for i in 0..m { if s > 0.0 { t = t + a[i, j]; } }
            y[j] = t * s;
        }
    }";
    for m in [1, 5, 16, 17, 50] {
        for n in [4, 7, 32] {
            becomes_vectors(sums, &[&[m, n], &[n]], "f32x4");
            becomes_vectors(&greatest, &[&[m, n], &[n]], "f32x4");
            becomes_vectors(product, &[&[3, m], &[m, n], &[3, n]], "f32x4");
            becomes_vectors(mean, &[&[m, n], &[], &[n]], "f32x4");
        }
    }
}

#[test]
fn vertices_side_by_side_become_vectors() {
    let scale = "codelet scale(in x: f32, in s: f32, out y: f32, const c: f32) { y = exp(x) * s + c; }";
    let dot = "codelet dot(in a: f32[k], in b: f32[k], out y: f32) { y = sum i in 0..k { a[i] * b[i] }; }";
    let pick = "codelet pick(in a: f64, out y: f64) { let mut t = a; if a < 0.0 { t = -a; } y = sqrt(t); }";
    for instances in [3, 8, 21, 40] {
        let side_by_side = (instances, Neighbours::SideBySide);
        for (case, ty) in [
            (vertices(scale, &[&[], &[], &[], &[]], side_by_side, &[1]), "f32x4"),
            (vertices(dot, &[&[1], &[1], &[]], side_by_side, &[]), "f32x4"),
            (vertices(dot, &[&[37], &[37], &[]], side_by_side, &[]), "f32x4"),
            (vertices(pick, &[&[], &[]], side_by_side, &[]), "f64x2"),
        ] {
            assert!(case.check().failure.is_none());
            let clif = case.clif_without_vector_kernels();
            assert!(clif.contains(&format!("load.{ty}")), "{clif}");
        }
    }
}

#[test]
fn stencils_become_vectors() {
    let step = "codelet step(in u: f32[h, w], out next: f32[m, n], const alpha: f32) {
        assert(h == m + 2 && w == n + 2);
        for i in 0..m, j in 0..n {
            next[i, j] = u[i + 1, j + 1] + alpha
                * (u[i, j + 1] + u[i + 2, j + 1] + u[i + 1, j] + u[i + 1, j + 2] - 4.0 * u[i + 1, j + 1]);
        }
    }";
    becomes_vectors(step, &[&[12, 15], &[10, 13], &[]], "f32x4");
}

#[test]
fn small_windows_need_no_loop() {
    let text = "codelet window(in a: f32[3, 3], in b: f32[3, 3], out y: f32) {
        y = sum i in 0..3, j in 0..3 { a[i, j] * b[i, j] };
    }";
    assert!(case(text, &[&[3, 3], &[3, 3], &[]]).check().failure.is_none());
}

#[test]
fn matrix_products_agree() {
    let text = "codelet product(in a: f32[m, k], in b: f32[k, n], inout c: f32[m, n]) { amp(c, a, b); }";
    for (m, n, k) in [(1, 1, 1), (4, 7, 9), (16, 10, 33)] {
        assert!(case(text, &[&[m, k], &[k, n], &[m, n]]).check().failure.is_none());
    }
}

#[test]
fn failures_name_the_vertex_and_the_values() {
    let text = "codelet pick(in x: f32[n], in at: i32, out y: f32) { y = x[at]; }";
    let mut case = case(text, &[&[4], &[], &[]]);
    for (n, at) in [2, 4, 1].into_iter().enumerate() {
        let byte = case.offsets[n][1] as usize;
        crate::harness::put(&mut case.memory, byte, ElemType::I32, at);
    }
    let failure = case.check().failure.expect("the second vertex reads outside");
    assert_eq!((failure.instance, failure.values), (1, [4, 4]));
    assert_eq!(case.codelet.fields.values().next().map(|f| f.ty), Some(F32));
}

#[test]
fn vector_kernels_with_more_pointers_than_registers_agree() {
    for count in 7..14 {
        let fields: String = (0..count).map(|k| format!("in x{k}: f32[n], in k{k}: u8[n], ")).collect();
        let sum: String = (0..count).map(|k| format!(" + x{k}[i] * f32(k{k}[i])")).collect();
        let text = format!(
            "codelet f({fields}inout y: f32[n], inout z: u8[n]) {{
                for i in 0..n {{ y[i] = y[i]{sum}; if y[i] > 0.0 {{ z[i] = k0[i]; }} }}
            }}"
        );
        let shapes = vec![&[77u64][..]; 2 * count + 2];
        becomes_a_vector_kernel(&text, &shapes);
    }
}

#[test]
fn totals_that_add_one_value_twice_agree() {
    for body in ["p += k[i]; p += k[i];", "if k[i] > 1 { p += 1; } else { p += 2; }", "p += 1; if k[i] > 1 { p += 1; }"]
    {
        let text = format!(
            "codelet f(in k: i32[n], out y: i32, out z: u8[n]) {{
                let mut p = 0;
                for i in 0..n {{ {body} z[i] = u8(k[i]); }}
                y = p;
            }}"
        );
        for n in [64, 77] {
            assert!(case(&text, &[&[n], &[], &[n]]).check().failure.is_none());
        }
    }
}
