//! Sorting gives what a stable sort in Rust gives, wherever a row is cut.

use girder_tests::Program;
use std::cmp::Ordering;

/// The order of the library: NaN counts as greater than every number.
fn order(a: f32, b: f32, descending: bool) -> Ordering {
    let (a, b) = if descending { (b, a) } else { (a, b) };
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// Returns the indices of a row in order.
fn sorted(row: &[f32], descending: bool) -> Vec<i32> {
    let mut index: Vec<i32> = (0..row.len() as i32).collect();
    index.sort_by(|&i, &j| order(row[i as usize], row[j as usize], descending));
    index
}

/// Many equal numbers, both zeros, and in every ninth place NaN, which the program writes as 99.
fn rows(m: usize, n: usize) -> Vec<Vec<f32>> {
    let element = |k: usize| match k * 7919 % 9 {
        0 => f32::NAN,
        1 => -0.0,
        _ => ((k * 2_654_435_761) >> 7) as f32 % 13.0 - 6.0,
    };
    (0..m).map(|r| (0..n).map(|j| element(r * n + j)).collect()).collect()
}

#[test]
fn rows_of_any_length_are_sorted() {
    // One piece; several, of which the last is shorter; many; rows that share a vertex.
    for (target, m, n, k) in [
        ("small", 1, 1, 1),
        ("small", 40, 6, 2),
        ("small", 1, 1001, 7),
        ("small", 3, 500, 400),
        ("gc200", 2, 3001, 5),
        ("gc200", 1, 9000, 20),
    ] {
        let rows = rows(m, n);
        let text = |x: &f32| if x.is_nan() { "99".to_string() } else { format!("{x:?}") };
        let row = |row: &Vec<f32>| format!("[{}]", row.iter().map(text).collect::<Vec<_>>().join(", "));
        let all = rows.iter().map(row).collect::<Vec<_>>().join(", ");
        for descending in [false, true] {
            let program = Program::text(format!(
                "use sorting.{{sort, argsort, topk}};
                const given: f32[{m}, {n}] = [{all}];
                var y: f32[{m}, {n}]; var at: i32[{m}, {n}]; var top: f32[{m}, {k}]; var top_at: i32[{m}, {k}];
                program main() {{
                    let x = select(given == 99.0, 0.0 / (given - given), given);
                    y <- sort(x, descending: {descending});
                    at <- argsort(x.transpose(), axis: 0, descending: {descending}).transpose();
                    let best = topk(x, {k}, largest: {descending});
                    top <- best.values;
                    top_at <- best.indices;
                }}"
            ));
            let outcome = program.target(target).run_everywhere();
            let wanted: Vec<Vec<i32>> = rows.iter().map(|row| sorted(row, descending)).collect();
            let values = |k: usize| -> Vec<u32> {
                let of_row = |(row, index): (&Vec<f32>, &Vec<i32>)| -> Vec<u32> {
                    let value = |&i: &i32| row[i as usize];
                    let bits = |x: f32| if x.is_nan() { f32::NAN.to_bits() } else { x.to_bits() };
                    index[..k].iter().map(value).map(bits).collect()
                };
                rows.iter().zip(&wanted).flat_map(of_row).collect()
            };
            let found = |name: &str| -> Vec<u32> { outcome.get::<f32>(name).iter().map(|x| x.to_bits()).collect() };
            let what = format!("{m} rows of {n} on {target}, descending: {descending}");
            assert_eq!(outcome.get::<i32>("at"), wanted.concat(), "{what}");
            assert_eq!(found("y"), values(n), "{what}");
            let first: Vec<i32> = wanted.iter().flat_map(|row| &row[..k]).copied().collect();
            assert_eq!(outcome.get::<i32>("top_at"), first, "{what}");
            assert_eq!(found("top"), values(k), "{what}");
        }
    }
}

#[test]
fn integers_of_any_type_are_sorted() {
    for (ty, least, most) in [("u8", "0", "255"), ("i32", "-2147483648", "2147483647"), ("u32", "0", "4294967295")] {
        let text = format!(
            "use sorting.{{sort, topk}};
            const x: {ty}[3, 41] = list i in 0..3 {{ list j in 0..41 {{
                if j == 5 {{ {least} }} else {{ if j == 7 {{ {most} }} else {{ (i * 41 + j) * 37 % 100 }} }}
            }} }};
            program main() {{
                print(\"first\", sort(x)[.., 0..2]);
                print(\"last\", sort(x, descending: true)[.., 0]);
                print(\"least\", topk(x, 1, largest: false).indices);
            }}"
        );
        let outcome = Program::text(text).run_everywhere();
        assert_eq!(outcome.prints[1], format!("last [{most}, {most}, {most}]"), "{ty}");
        assert!(outcome.prints[0].starts_with(&format!("first [[{least}, ")), "{ty}: {}", outcome.prints[0]);
        assert_eq!(outcome.prints.len(), 3, "{ty}");
    }
}
