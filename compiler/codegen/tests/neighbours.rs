//! Adjacent reductions share a vector kernel if none depends on another, and agree with the interpreter either way.

use crate::harness::source::case;

/// Checks that compiled code agrees with the interpreter. Returns the number of vector kernels that AVX-512 code calls.
fn vector_kernels(text: &str, shapes: &[&[u64]]) -> usize {
    let mut case = case(text, shapes);
    (case.iterations, case.total_iterations) = (1 << 20, 1 << 30);
    assert!(case.check().failure.is_none(), "{text}");
    let clif = case.clif(girder_codegen::Level::Avx512);
    (0..).take_while(|n| clif.contains(&format!("u1:{n} "))).count()
}

fn vectors(ty: &str, body: &str, n: u64) -> usize {
    let text = format!("codelet f(in x: {ty}[n], in y: {ty}[n], out z: {ty}[4]) {{ {body} }}");
    vector_kernels(&text, &[&[n], &[n], &[4]])
}

#[test]
fn sums_over_equal_ranges_share_a_vector_kernel() {
    let cosine = "let a = sum i in 0..n { x[i] * y[i] }; let b = sum i in 0..n { x[i] * x[i] };
        let c = sum i in 0..n { y[i] * y[i] }; z[0] = a; z[1] = b; z[2] = c; z[3] = a + b * c;";
    let stored = "z[0] = sum i in 0..n { x[i] }; z[1] = sum i in 0..n { x[i] * x[i] };
        z[2] = 1.0 + (sum k in 0..n { let v = x[k] + 1.0; v * v * v }); z[3] = 0.0;";
    for n in [64, 65, 100, 127, 128, 1000, 5000] {
        assert_eq!(vectors("f32", cosine, n), 1);
        assert_eq!(vectors("f64", cosine, n), 1);
        assert_eq!(vectors("i32", cosine, n), 1);
        assert_eq!(vectors("f32", stored, n), 1);
        assert_eq!(vectors("f64", stored, n), 1);
    }
    let set_twice = "let mut a = sum i in 0..n { x[i] }; z[0] = a; a = sum i in 0..n { y[i] }; z[1] = a;";
    assert_eq!(vectors("f32", set_twice, 100), 1);
}

#[test]
fn kinds_of_reductions_mix() {
    let text = "codelet f(in x: f32[n], in y: f64[n], in k: i64[n], in b: u8[n], out z: f64[8]) {
        z[0] = f64(min i in 0..n { x[i] });
        z[1] = f64(max i in 0..n { x[i] });
        z[2] = sum i in 0..n { y[i] };
        z[3] = f64(max i in 0..n { k[i] });
        z[4] = f64(sum i in 0..n { i32(b[i]) });
        z[5] = f64(i32(any i in 0..n { x[i] > 14.0 }));
        z[6] = f64(i32(all i in 0..n { y[i] < 1000.0 }));
        z[7] = product i in 0..n { y[i] };
    }";
    for n in [64, 70, 96, 130, 1024] {
        let kernels = vector_kernels(text, &[&[n], &[n], &[n], &[n], &[8]]);
        assert!((1..8).contains(&kernels), "{kernels} vector kernels");
    }
}

#[test]
fn rows_of_rows_share_a_vector_kernel() {
    let text = "codelet f(in x: f32[m, n], out z: f32[2]) {
        let a = sum i in 0..m, j in 0..n { x[i, j] };
        let b = max k in 0..m, j in 0..n { x[k, j] };
        z[0] = a; z[1] = b;
    }";
    for n in [64, 80, 128] {
        assert_eq!(vector_kernels(text, &[&[5, n], &[2]]), 1);
    }
    assert_eq!(vector_kernels(text, &[&[5, 70], &[2]]), 1);
}

#[test]
fn dependent_reductions_stay_separate() {
    for body in [
        "let m = (sum i in 0..n { x[i] }) / f32(n); z[0] = m; z[1] = sum i in 0..n { (x[i] - m) * (x[i] - m) };",
        "let a = sum i in 0..n { x[i] }; let k = i64(a) % 2; z[0] = a; z[1] = sum i in 0..n { x[i] * f32(k) };",
        "z[0] = sum i in 0..n { x[i] }; z[1] = sum i in 1..n { x[i] };",
    ] {
        assert_eq!(vectors("f32", body, 100), 2, "{body}");
    }
    let stored = "codelet f(inout x: f32[n], out z: f32[2]) {
        z[0] = sum i in 0..n { x[i] }; x[3] = 8.0; z[1] = sum i in 0..n { x[i] * x[i] };
    }";
    assert_eq!(vector_kernels(stored, &[&[100], &[2]]), 2);
}

#[test]
fn a_failing_statement_between_reductions_fails() {
    let text = "codelet f(in x: f32[n], in k: i32[n], out z: f32[2]) {
        z[0] = sum i in 0..n { x[i] };
        z[100 * k[0] + 7] = 1.0;
        z[1] = sum i in 0..n { x[i] * x[i] };
    }";
    assert!(case(text, &[&[100], &[100], &[2]]).check().failure.is_some());
    let after = "codelet f(in x: f32[n], in k: i32[n], out z: f32[2]) {
        z[0] = sum i in 0..n { x[i] };
        z[1] = sum i in 0..n { x[k[i]] };
    }";
    assert!(case(after, &[&[100], &[100], &[2]]).check().failure.is_some());
}

#[test]
fn each_reduction_is_checked_against_the_limits() {
    let text = "codelet f(in x: f32[n], out z: f32[2]) {
        z[0] = sum i in 0..n { x[i] };
        z[1] = sum i in 0..n { x[i] * x[i] };
    }";
    for (iterations, total_iterations, fails) in [(4999, 1 << 30, true), (5000, 9999, true), (5000, 30_000, false)] {
        let mut case = case(text, &[&[5000], &[2]]);
        (case.iterations, case.total_iterations) = (iterations, total_iterations);
        assert_eq!(case.check().failure.is_some(), fails, "{iterations}, {total_iterations}");
    }
}

#[test]
fn indices_need_registers_too() {
    for ty in ["f32", "f64", "i32"] {
        let sum = |k: usize| {
            format!(
                "z[{k}] = sum i in 0..n {{
                    x[i] * {ty}({k} * i + 3) + {ty}(2 * i + {k}) * {ty}(i - {k}) - {ty}(5 * i - {k})
                }};"
            )
        };
        let body: String = (1..9).map(sum).collect();
        let text = format!("codelet f(in x: {ty}[n], out z: {ty}[9]) {{ {body} z[0] = 0; }}");
        for n in [64, 100] {
            assert!(case(&text, &[&[n], &[9]]).check().failure.is_none());
        }
    }
}

#[test]
fn lanes_and_indices_have_registers_together() {
    let mut texts = vec![];
    let uses = ["i64(x[i]) + 3 * i", "i64(x[i]) - 5 * i", "i64(x[i]) * (7 * i)", "i64(x[i]) + 9 * i"];
    for (ty, ops) in [("i32", ["sum", "min", "max", "product"]), ("f32", ["sum", "min", "max", "product"])] {
        for indexed in 0..16u32 {
            let value = |k: usize| match indexed >> k & 1 {
                0 => "x[i]".to_string(),
                _ if ty == "f32" => format!("if {} * i > 5 {{ x[i] }} else {{ 2.0 }}", 2 * k + 1),
                _ => format!("i32({})", uses[k]),
            };
            let one = |(k, op): (usize, &&str)| format!("z[{k}] = {op} i in 0..n {{ {} }};", value(k));
            let body: String = ops.iter().enumerate().map(one).collect();
            texts.push(format!("codelet f(in x: {ty}[n], out z: {ty}[4]) {{ {body} }}"));
        }
    }
    for text in texts {
        for n in [64, 100, 70_000] {
            vector_kernels(&text, &[&[n], &[4]]);
        }
    }
}
