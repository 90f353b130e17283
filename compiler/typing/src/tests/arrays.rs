//! Local arrays, sub-views, shapes, and the matrix unit.

use super::*;

#[test]
fn local_arrays_have_elements() {
    assert_eq!(y_int("let mut t = [0; 4]; for i in 0..4 { t[i] = i * i; } y = t[2] + t[3];"), 13);
    assert_eq!(y_int("let t = [5, 6, 7]; y = t[0] * 100 + t[1] * 10 + t[2];"), 567);
    assert_eq!(y_int("let mut t = [[1; 3]; 2]; t[1, 2] = 9; y = sum i in 0..2, j in 0..3 { t[i, j] };"), 14);
    assert_eq!(y_int("let t = [[1, 2], [3, 4]]; y = t[1][0] * 10 + t[0, 1];"), 32);
    assert_eq!(y_f32("let mut t: f32[4] = [0; 4]; t[1] = 2.5; y = t[1] + t[0];"), 2.5);
    assert_eq!(y_int("let n = 3; let t = [n; n + 1]; y = t[3];"), 3);
}

#[test]
fn an_array_is_filled_in_each_iteration() {
    assert_eq!(y_int("for i in 0..3 { let mut t = [0; 2]; t[0] += 1; y += t[0]; }"), 3);
}

#[test]
fn an_open_element_type_is_decided_by_a_store() {
    let source = "codelet c(in a: f32[n], out y: f32) { let mut t = [0; 2]; t[1] = a[0]; y = t[0] + t[1]; }";
    assert_eq!(last(source, &[vector(&[2.5f32]), scalar(0f32)]), scalar(2.5f32));
}

#[test]
fn any_integer_indexes() {
    let source = "codelet c(in a: f32[n], in k: u8, out y: f32) { let mut j = 1; y = a[k] + a[j]; }";
    assert_eq!(last(source, &[vector(&[1.0f32, 2.0, 4.0]), scalar(2u8), scalar(0f32)]), scalar(6.0f32));
}

const A: [f32; 12] = [0.0, 1.0, 2.0, 3.0, 10.0, 11.0, 12.0, 13.0, 20.0, 21.0, 22.0, 23.0];

fn on_matrix(body: &str) -> f32 {
    let source = format!(
        "codelet c(in a: f32[m, n], out y: f32) {{ {body} }}
        codelet fn total(x: f32[k]) -> f32 {{ sum i in 0..k {{ x[i] }} }}"
    );
    f32::from_bits(last(&source, &[array(&[3, 4], &A), scalar(0f32)]).bits[0] as u32)
}

#[test]
fn sub_views_are_passed_by_reference() {
    assert_eq!(on_matrix("y = total(a[1]);"), 46.0);
    assert_eq!(on_matrix("y = total(a[.., 2]);"), 36.0);
    assert_eq!(on_matrix("y = total(a[1, 1..3]);"), 23.0);
    assert_eq!(on_matrix("y = total(a[2, 0..n by 2]);"), 42.0);
    assert_eq!(on_matrix("y = total(a[2, .. by 3]);"), 43.0);
    assert_eq!(on_matrix("y = total(a[2, 1..]);"), 66.0);
    assert_eq!(on_matrix("y = total(a[2, ..1]);"), 20.0);
    assert_eq!(on_matrix("y = total(a[..., 3]);"), 39.0);
    assert_eq!(on_matrix("let row = a[1]; y = row[3] + row[0];"), 23.0);
    assert_eq!(on_matrix("let t = a[1.., 2..]; y = t[1, 1] + t[0][0];"), 35.0);
    assert_eq!(on_matrix("let t = a[1.., 1..4]; let u = t[.., 1..]; y = u[1, 1] + f32(u.shape[1]);"), 25.0);
    assert_eq!(on_matrix("let t = a[2, 3..0 by -2]; y = t[0] * 100 + t[1];"), 2321.0);
    assert_eq!(on_matrix("let t = a[2, ..  by -1]; y = t[0] * 100 + t[3];"), 2320.0);
    assert_eq!(on_matrix("let t = a.transpose(); y = t[3, 1] + f32(t.shape[0]);"), 17.0);
    assert_eq!(on_matrix("y = f32(a.rank) * 10 + f32(a.shape[1]);"), 24.0);
}

#[test]
fn an_index_outside_of_a_part_fails() {
    let source = "codelet c(in a: f32[n], in k: i64, out y: f32) { y = part(a[0..2], k); }
        codelet fn part(x: f32[m], k: int) -> f32 { x[k] }";
    let data = |k: i64| [vector(&[1.0f32, 2.0, 3.0]), scalar(k), scalar(0f32)];
    assert_eq!(last(source, &data(1)), scalar(2.0f32));
    assert_eq!(run_with(source, &[], &data(2)).unwrap_err().0, "x[k]");
    assert_eq!(run_with(source, &[], &data(-1)).unwrap_err().0, "x[k]");
    let nested = "codelet c(in a: f32[n], in k: i64, out y: f32) { let x = a[0..2]; let z = x[0..k]; y = z[0]; }";
    assert_eq!(last(nested, &data(2)), scalar(1.0f32));
    assert_eq!(run_with(nested, &[], &data(3)).unwrap_err().0, "x[0..k]");
}

#[test]
fn a_loop_over_a_part_needs_no_check_of_its_own() {
    let source = "codelet c(in a: f32[n], out y: f32) { y = total(a[0..n by 2]); }
        codelet fn total(x: f32[k]) -> f32 { sum i in 0..k { x[i] } }";
    let c = World::new(source).compile(&[], &mut Diagnostics::default()).unwrap();
    assert!(c.sites.values().all(|s| s.check != girder_ir::codelet::Check::Assert));
}

#[test]
fn functions_write_arrays_that_may_be_written() {
    let source =
        "codelet c(in a: f32[n], inout y: f32[n]) { let mut t = [0.0; 2]; twice(a[0..2], t); twice(t, y[1..3]); }
        codelet fn twice(x: f32[k], z: f32[k]) { for i in 0..k { z[i] = 2.0 * x[i]; } }";
    let data = [vector(&[1.0f32, 2.0, 3.0]), vector(&[9.0f32; 3])];
    assert_eq!(last(source, &data), vector(&[9.0f32, 4.0, 8.0]));
}

#[test]
fn the_matrix_unit_adds_a_product() {
    let source = "codelet c(in a: f32[m, k], in b: f32[k, n], inout c: f32[m, n]) { amp(c, a, b); }";
    let (a, b) = (array(&[1, 2], &[1.0f32, 2.0]), array(&[2, 2], &[3.0f32, 4.0, 5.0, 6.0]));
    assert_eq!(last(source, &[a, b.clone(), array(&[1, 2], &[100.0f32, 0.0])]), array(&[1, 2], &[113.0f32, 16.0]));
    let part = "codelet c(in a: f32[m, k], in b: f32[k, n], inout c: f32[p, q, r]) {
        let mut t = [[0.0; 2]; 2];
        amp(t, a[.., 0..2], b.transpose());
        for i in 0..2, j in 0..2 { c[1, i, j] = t[i, j]; }
        amp(c[0, 0..2, ..], a, b);
    }";
    let a = array(&[2, 2], &[1.0f32, 2.0, 0.0, 1.0]);
    let expected = [13.0f32, 16.0, 5.0, 6.0, 11.0, 17.0, 4.0, 6.0];
    assert_eq!(last(part, &[a, b, array(&[2, 2, 2], &[0.0f32; 8])]), array(&[2, 2, 2], &expected));
}

#[test]
fn a_product_may_start_at_zero() {
    let source = "codelet c(in a: f32[m, k], in b: f32[k, n], out c: f32[m, n]) { amp(c, a, b, first: true); }";
    let (a, b) = (array(&[1, 2], &[1.0f32, 2.0]), array(&[2, 2], &[3.0f32, 4.0, 5.0, 6.0]));
    assert_eq!(last(source, &[a, b, array(&[1, 2], &[f32::NAN, 7.0])]), array(&[1, 2], &[13.0f32, 16.0]));
    // No terms are +0, and so is the sum of a product that is -0.
    let none = [array(&[1, 0], &[0.0f32; 0]), array(&[0, 2], &[0.0f32; 0]), array(&[1, 2], &[9.0f32, -0.0])];
    assert_eq!(last(source, &none), array(&[1, 2], &[0.0f32, 0.0]));
    let negative = [array(&[1, 1], &[-1.0f32]), array(&[1, 1], &[0.0f32]), array(&[1, 1], &[9.0f32])];
    assert_eq!(last(source, &negative), array(&[1, 1], &[0.0f32]));
}

#[test]
fn all_axes_of_a_product_but_the_last_are_rows() {
    // A window of an image, times a matrix of one column: y[i, j] = Σ x[i + 1, 2 j, k] w[k].
    let source = "codelet c(in x: f32[h, w, k], in b: f32[k, n], inout y: f32[p, q, n]) {
        amp(y, x[1..1 + p, 0..2 * q by 2, ..], b);
    }";
    let x: Vec<f32> = (0..24).map(|v| v as f32).collect();
    let (x, b) = (array(&[3, 4, 2], &x), array(&[2, 1], &[1.0f32, 10.0]));
    // Rows of x: (8, 9) (12, 13) and (16, 17) (20, 21).
    let expected = array(&[2, 2, 1], &[198.0f32, 242.0, 286.0, 330.0]);
    assert_eq!(last(source, &[x, b, array(&[2, 2, 1], &[100.0f32; 4])]), expected);
    let turned = "codelet c(in a: f32[m, l, k], in b: f32[k, n], inout y: f32[n, l, m]) {
        amp(y.transpose(), a, b, first: true);
    }";
    let (a, b) = (array(&[2, 2, 1], &[1.0f32, 2.0, 3.0, 4.0]), array(&[1, 1], &[1.0f32]));
    let y = array(&[1, 2, 2], &[9.0f32; 4]);
    assert_eq!(last(turned, &[a, b, y]), array(&[1, 2, 2], &[1.0f32, 3.0, 2.0, 4.0]));
}

#[test]
fn a_product_of_wrong_shapes_fails() {
    let source = "codelet c(in a: f32[m, k], in b: f32[l, n], inout c: f32[m, n]) { amp(c, a, b); }";
    let (a, b) = (array(&[1, 2], &[1.0f32, 2.0]), array(&[1, 2], &[3.0f32, 4.0]));
    assert_eq!(run_with(source, &[], &[a, b, array(&[1, 2], &[0.0f32; 2])]).unwrap_err().0, "amp(c, a, b)");
}

#[test]
fn dimensions_may_be_expressions() {
    let source = "codelet c(in u: f32[m + 2], in four: f32[2 * 2], out y: f32[m]) {
        for i in 0..m { y[i] = u[i + 2] + four[3]; }
    }";
    let data = [vector(&[1.0f32, 2.0, 3.0]), vector(&[0.0f32, 0.0, 0.0, 0.5]), vector(&[0.0f32])];
    assert_eq!(last(source, &data), vector(&[3.5f32]));
    let rows = "codelet c(in u: f32[m + 2], out y: f32[m]) { let n = u.shape[0]; y[0] = f32(n) + total(u); }
        codelet fn total(x: f32[k]) -> f32 { f32(k) }";
    assert_eq!(last(rows, &[vector(&[0.0f32; 3]), vector(&[0.0f32])]), vector(&[6.0f32]));
}
