//! Indexing by numbers that are known only at run time gives what static indexing gives, and costs little.

use girder_tests::Program;

/// Reads and writes the same elements by static indices and by those of a variable, and counts the differences.
fn program(shape: [usize; 3], axis: usize, count: usize) -> String {
    let [a, b, c] = shape;
    let len = shape[axis];
    let index = |text: &str| (0..3).map(|k| if k == axis { text } else { ".." }).collect::<Vec<_>>().join(", ");
    let (one, many) = (index("k"), index(&format!("k..k + {count}")));
    format!(
        "let (a, b, c) = ({a}, {b}, {c});
        var x: f32[a, b, c] = list i in 0..a {{ list j in 0..b {{ list l in 0..c {{ (i * b + j) * c + l }} }} }};
        var y: f32[a, b, c];
        var z: f32[a, b, c];
        var differences: i32;
        fn read(k, s: int) {{ if s == 0 {{ x[{one}] }} else {{ x[{many}] }} }}
        fn write(to: f32[..d], k, s: int) {{
            if s == 0 {{ to[{one}] <- 1000.0 + x[{one}]; to[{one}] += 1.0; }}
            else {{ to[{many}] <- x[{many}] * 3.0; to[{many}] <- -to[{many}]; }}
        }}
        program main() {{
            y <- x;
            z <- x;
            for s in 0..2, i in 0..{len} {{
                if s == 1 && i + {count} > {len} {{ continue; }}
                let k = differences * 0 + i;
                differences += sum(i32(read(k, s) != read(i, s)).flatten());
                write(y, k, s);
                write(z, i, s);
                differences += sum(i32(y != z).flatten());
            }}
        }}"
    )
}

#[test]
fn they_select_what_static_indices_select() {
    // Strips of columns; groups of rows, some of them ragged; several levels of groups; rows of one element.
    let cases = [
        ([5, 3, 2], 0, 2),
        ([5, 3, 2], 1, 3),
        ([3, 2, 7], 2, 4),
        ([3, 40, 16], 0, 2),
        ([6, 1, 1], 0, 6),
        ([7, 3, 90], 0, 3),
    ];
    for (shape, axis, count) in cases {
        let outcome = Program::text(program(shape, axis, count)).run_everywhere();
        assert!(outcome.failure.is_none(), "{shape:?}, {axis}, {count}: {:?}", outcome.failure);
        assert_eq!(outcome.get::<i32>("differences"), [0], "{shape:?}, {axis}, {count}");
    }
}

#[test]
fn long_arrays_are_cut_into_groups_of_rows() {
    // On `small`, a strip of these does not fit a tile.
    for (n, k) in [(90_000, 1), (30_011, 3), (1_001, 70)] {
        let (third, half, last) = (n / 3, n / 2, n - 5);
        let text = format!(
            "codelet number(out x: f32[n], const first: i32) {{ for i in 0..n {{ x[i] = f32(i32(i) + first); }} }}
            var x: f32[{n} * {k}];
            var at: i32[6] = [0, 1, 699, {third}, {half}, {last}];
            var numbers: f32[5, {k}] = list i in 0..5 {{ list j in 0..{k} {{ i * {k} + j }} }};
            var wrong: i32;
            program main() {{
                compute {{ for i in 0..{n} by 100 {{
                    let part = i * {k}..min(i + 100, {n}) * {k};
                    vertex number(x: x[part], first: i * {k});
                }} }}
                let rows = x.reshape([{n}, {k}]);
                repeat i in 0..6 {{
                    let t = at[i];
                    let first = f32(t * {k});
                    wrong += sum(i32(rows[t] != numbers[0] + first));
                    wrong += sum(i32(rows[t..t + 5] != numbers + first));
                    rows[t] <- -rows[t];
                    rows[t + 1..t + 4] <- numbers[2..5];
                    wrong += sum(i32(rows[t] != -(numbers[0] + first))) + sum(i32(rows[t + 1..t + 4] != numbers[2..5]));
                    rows[t..t + 5] <- numbers + first;
                }}
                wrong += sum(i32(x[0..1000] + 1.0 != x[1..1001]));
                wrong += sum(i32(x[{n} * {k} - 1000..] - 1.0 != x[{n} * {k} - 1001..{n} * {k} - 1]));
            }}"
        );
        let outcome = Program::text(text).run_everywhere();
        assert!(outcome.failure.is_none(), "{n}, {k}: {:?}", outcome.failure);
        assert_eq!(outcome.get::<i32>("wrong"), [0], "{n}, {k}");
    }
}

#[test]
fn layers_in_a_repeat_over_stacked_weights_cost_little_more_than_their_text_repeated() {
    let layers = |weights: &str, body: &str| {
        Program::text(format!(
            "//! girder: --target gc200 --allow-over-memory
            {weights} var x: f32[64, 512]; var y: f32[64, 512];
            program main() {{ var h: f32[64, 512] = 0; h <- x; {body} y <- h; }}"
        ))
    };
    let stacked = |count: usize| {
        let weights = format!("param w: f32[{count}, 512, 512]; param b: f32[{count}, 512];");
        let repeat = layers(&weights, &format!("repeat i in 0..{count} {{ h <- relu(h @ w[i] + b[i]); }}"));
        let (_, codes) = repeat.stage_and_codes(girder::Stage::Allocated);
        assert!(codes.is_empty(), "{count} layers do not fit the memory: {codes:?}");
        repeat.estimate("main").cycles
    };
    let (mut separate, mut steps) = (String::new(), String::new());
    for i in 0..24 {
        separate += &format!("param w{i}: f32[512, 512]; param b{i}: f32[512];");
        steps += &format!("h <- relu(h @ w{i} + b{i});");
    }
    let repeated = layers(&separate, &steps).estimate("main").cycles;
    for count in [24, 96] {
        // A bias that is a row of a stacked one travels in each iteration; one of its own is where its layer is.
        let (cycles, repeated) = (stacked(count), repeated * count as u64 / 24);
        println!("{count} layers: {cycles} cycles in a repeat, {repeated} repeated");
        assert!(cycles as f64 <= 1.18 * repeated as f64, "{count} layers: {cycles} against {repeated}");
    }
}

#[test]
fn an_index_outside_its_axis_is_named() {
    let cases = [
        ("5, 300", "x[at[i]]", "[4, 0, 5]", "index 5 is out of range for a dimension of length 5"),
        ("5, 300", "x[at[i]..at[i] + 2]", "[3, 0, 4]", "index 5 is out of range for a dimension of length 5"),
        ("300, 2", "x[.., at[i]]", "[1, 0, -1]", "index -1 is out of range for a dimension of length 2"),
        ("90000, 1", "x[at[i]]", "[1, 89999, 90000]", "index 90000 is out of range for a dimension of length 90000"),
        (
            "90000, 1",
            "x[at[i]..at[i] + 9]",
            "[1, 89991, -2]",
            "index -2 is out of range for a dimension of length 90000",
        ),
    ];
    for (shape, index, at, message) in cases {
        for step in ["print(\"sum\", sum(INDEX));", "INDEX <- 1.0;"] {
            let step = step.replace("INDEX", index);
            let text = format!(
                "var x: f32[{shape}]; var at: i32[3] = {at};
                program main() {{ repeat i in 0..3 {{ {step} print(\"done\"); }} }}"
            );
            let outcome = Program::text(text).run_everywhere();
            let failure = outcome.failure.unwrap_or_else(|| panic!("{shape}, {step}: no failure"));
            assert_eq!((failure.code, &failure.message[..]), ("run::index_out_of_range", message), "{shape}, {step}");
            assert_eq!(outcome.prints.iter().filter(|p| *p == "done").count(), 2, "{shape}, {step}");
        }
    }
}

/// In mode fast, one vertex does the work of those that take parts of the same rows. `run_everywhere` compares the
/// vertices that the messages name.
#[test]
fn vertices_of_one_row_fail_as_the_first_of_them_does() {
    let own = "codelet rows(in x: f32[n, k], in at: i32[m], out y: f32[m, k]) {
            for r in 0..m, j in 0..k { y[r, j] = x[at[r], j]; }
        }
        fn own(x: f32[n, k], at: i32[m]) {
            var y: f32[m, k];
            compute {
                vertex rows(x: x[.., 4 * q..4 * q + 4], at: at[3 * p..3 * p + 3],
                    y: y[3 * p..3 * p + 3, 4 * q..4 * q + 4]) for q in 0..k / 4, p in 0..m / 3;
            }
            return y;
        }";
    for step in ["own(x, at)", "gather(x, at)", "update(x, at, v)", "scatter_add(x, at, v)"] {
        for (at, rows) in [("[6, 0, 1, 2, 3, 4]", 7), ("[0, 6, 1, 8, 3, 9]", 8), ("[0, 1, 2, 3, -1, 7]", 7)] {
            let text = format!(
                "{own} var x: f32[{rows}, 32] = 1.0; var at: i32[6] = {at}; const v: f32[6, 32] = 2.0;
                program main() {{ let result = {step}; print(\"sum\", sum(x)); }}"
            );
            let text = if step.contains("v)") { text.replace("let result = ", "") } else { text };
            let outcome = Program::text(text).run_everywhere();
            let code = outcome.failure.as_ref().map(|failure| failure.code);
            let fits = at.starts_with("[6");
            assert_eq!(code, (!fits).then_some("run::index_out_of_range"), "{step} of {at}");
        }
    }
}

/// A row takes more than the part of a tile that candidates may take: groups of one row left as many candidates.
#[test]
fn a_row_may_take_much_of_a_tile() {
    let text = "var x: f64[16, 63] = list i in 0..16 { list j in 0..63 { 100 * i + j } };
        var y: f64[63];
        var k: i32 = 2;
        program main() { y <- x[k]; print(y[62]); }";
    let machine = "name = \"kb16\"
        extends = \"small\"
        [memory]
        bytes_per_tile = 16384
        element_bytes = 1024
        regions = [ { bytes = 8192, executable = true, interleaved = false },
            { bytes = 8192, executable = false, interleaved = true } ]";
    let outcome = Program::text(text).described(machine).run_everywhere();
    assert_eq!(outcome.prints, ["262.0"]);
}

/// All indices of a histogram once went to the tiles that hold its few bins, sorted in many steps.
#[test]
fn a_histogram_is_counted_on_all_tiles() {
    let text = "var x: i32[1000000]; var h: i32[256];
        program main() { h <- segment_sum(x * 0 + 1, x, 256); scatter_add(h, x, x); }";
    let taken = Program::text(text).target("gc200").estimate("main").cycles;
    assert!(taken <= 60_000, "{taken}");
}

/// Tables of their own, and tables that several tiles share: few and many rows, of one column and of several.
#[test]
fn integers_that_are_added_apart_are_all_counted() {
    for (rows, columns, count) in [(1, 1, 700), (5, 3, 900), (300, 1, 2_000), (40, 8, 300)] {
        let text = format!(
            "let (n, k, m) = ({rows}, {columns}, {count});
            var x: i32[n, k] = 7;
            var expected: i32[n, k] = 7;
            const at: i32[m] = list r in 0..m {{ r * 31 % n }};
            fn number(r: int, j: int) -> int {{ (r * 3 + j) * 7919 % 65521 * 65537 % 2147483647 }}
            var v: i32[m, k] = list r in 0..m {{ list j in 0..k {{ number(r, j) }} }};
            codelet add_all(in v: i32[m, k], in at: i32[m], inout x: i32[n, k]) {{
                for r in 0..m, j in 0..k {{ x[at[r], j] += v[r, j]; }}
            }}
            program main() {{
                scatter_add(x, at, v);
                compute {{ vertex add_all(v: v, at: at, x: expected); }}
                print(sum(i32(x != expected)));
            }}"
        );
        let outcome = Program::text(text).run_everywhere();
        assert!(outcome.failure.is_none(), "{rows}, {columns}, {count}: {:?}", outcome.failure);
        assert_eq!(outcome.prints, ["0"], "{rows}, {columns}, {count}");
    }
}

#[test]
fn an_index_outside_a_table_of_integers_is_an_error() {
    for at in [-1, 5] {
        let text = format!(
            "var x: i32[5]; var at: i32[900]; program main() {{ at[880] <- {at}; scatter_add(x, at, at + 1); }}"
        );
        let outcome = Program::text(text).run_everywhere();
        assert_eq!(outcome.failure.as_ref().map(|failure| failure.code), Some("run::index_out_of_range"));
    }
}
