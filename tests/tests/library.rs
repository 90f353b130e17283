//! What the library costs on a machine, in modelled cycles and memory.

use girder_engine::Mode;
use girder_tests::Program;

/// Returns the cycles of `main`, with these declarations, on a machine.
fn cycles(target: &str, declarations: &str, main: &str) -> u64 {
    let text = format!("{declarations} program main() {{ {main} }}");
    Program::text(text).target(target).estimate("main").cycles
}

fn table(rows: usize, columns: usize) -> String {
    format!("var x: f32[{rows}, {columns}]; var index: i32[128]; var y: f32[128, {columns}];")
}

#[test]
fn rows_are_gathered_where_they_lie() {
    let taken = cycles("gc200", &table(8192, 64), "y <- gather(x, index);");
    assert!(taken <= 6_000, "{taken}");
}

#[test]
fn large_tables_fit_and_do_not_move() {
    // 50,257 and 30,522 are the sizes of vocabularies in use; the first has no divisor below 29.
    let cases = [("gc200", 50_000, 64), ("gc200", 50_257, 64), ("gc200", 30_522, 64), ("bow-2000", 30_000, 768)];
    for (target, rows, columns) in cases {
        let text = table(rows, columns);
        let taken = cycles(target, &text, "y <- gather(x, index); update(x, index, y); scatter_add(x, index, y);");
        assert!(taken <= 9_000 + 2 * 15_000, "{rows} x {columns}: {taken}");
    }
}

#[test]
fn many_indices_are_sorted_before_rows_are_added() {
    let cases =
        [(8192, 128, 8192, 70_000), (50_257, 64, 1024, 24_000), (64, 64, 1024, 22_000), (300, 4, 20_000, 170_000)];
    for (rows, columns, many, bar) in cases {
        let program = Program::text(format!(
            "use random;
            param x: f32[{rows}, {columns}] = 0;
            program main() {{
                let index = i32(random.uniform([{many}], seed: 3) * {rows}.0);
                scatter_add(x, index, random.uniform([{many}, {columns}], seed: 4));
            }}"
        ));
        let profile = program.target("gc200").profile(Mode::Fast, 1);
        let of_steps = profile.steps.iter().filter(|step| step.name.starts_with("main.scatter_add"));
        let taken: u64 = of_steps.map(|step| step.total.cycles()).sum();
        assert!(taken <= bar, "{rows} x {columns}, {many} indices: {taken}");
    }
}

#[test]
fn a_table_in_parts_has_many_tiles_for_many_indices() {
    let text = "var x: f32[40000]; var index: i32[100000]; var y: f32[100000];";
    let taken = cycles("gc200", text, "y <- gather(x, index);");
    assert!(taken <= 25_000, "{taken}");
}

#[test]
fn a_small_table_goes_to_the_tiles_of_many_indices() {
    let text = "var x: f32[10000]; var index: i32[100000]; var y: f32[100000];";
    let taken = cycles("gc200", text, "y <- gather(x, index);");
    assert!(taken <= 16_000, "{taken}");
}

#[test]
fn a_table_without_equal_parts_still_fits() {
    let text = "var x: f32[50261, 65]; var index: i32[128]; var y: f32[128, 65];";
    assert!(cycles("gc200", text, "y <- gather(x, index); update(x, index, y);") > 0);
}

#[test]
fn elementwise_steps_cost_what_written_loops_cost() {
    let text = "var x: f32[1000000]; var y: f32[1000000];";
    let doubled = cycles("gc200", text, "y <- 2.0 * x;");
    assert!(doubled <= 1_100, "{doubled}");
    // Longer loops are counted, and what counts its iterations is not fused: pieces stay short.
    let long = cycles("gc200", "var x: f32[60000000]; var y: f32[60000000];", "y += 2.0 * x;");
    assert!(long <= 62_000, "{long}");
    let power = cycles("gc200", "var x: f32[64]; var y: f32[64];", "y <- pow(x, y);");
    assert!(power <= 15_000, "{power}");
}

fn product((m, k, n): (u64, u64, u64)) -> String {
    format!(
        "var x: f32[{m}, {k}];
        var w: f32[{k}, {n}];
        var y: f32[{m}, {n}];
        program main() {{ y <- x @ w; }}"
    )
}

#[test]
fn products_are_cut_along_all_three_axes() {
    let bounds = [
        ((1024, 1024, 1024), 88_500),
        ((64, 784, 512), 7_900),
        ((64, 1437, 10), 4_000),
        ((40, 9216, 128), 13_000),
        ((64, 256, 256), 4_700),
        ((1, 1000, 1000), 4_000),
    ];
    for (sizes, cycles) in bounds {
        let profile = Program::text(product(sizes)).target("gc200").estimate("main");
        assert!(profile.cycles <= cycles, "{sizes:?}: {}", profile.cycles);
    }
}

#[test]
fn products_of_many_matrices_are_one_superstep() {
    let text = "
        var x: f32[16, 128, 64];
        var w: f32[16, 64, 128];
        var y: f32[16, 128, 128];
        program main() { y <- x @ w; }";
    // The copy to `y` stays on each tile.
    let profile = Program::text(text).target("gc200").estimate("main");
    assert_eq!(profile.supersteps, 2);
    assert!(profile.cycles <= 6_200, "{}", profile.cycles);
}

/// Declarations of parameters, the steps of a program, and the most cycles and supersteps that it may take on `gc200`.
type Bar<'a> = (&'a str, &'a str, u64, u64);

#[test]
fn functions_of_networks_take_few_supersteps() {
    let rows = "param x: f32[512, 768]; param gain: f32[768]; param bias: f32[768]; const d: f32[512, 768] = 1;";
    let logits = "param x: f32[64, 10]; const c: i32[64] = 1;";
    let words = "param x: f32[512, 50257]; const c: i32[512] = 1;";
    let heads = "param q: f32[1, 64, 4, 32]; param k: f32[1, 64, 4, 32]; param v: f32[1, 64, 4, 32];";
    let loss = "let l = nn.cross_entropy(x, c); let g = grad(l, wrt: x); print(g[0, 0]);";
    let mean = |of: &str| format!("mean({of}, axis: -1, keep: true)");
    let norm = format!(
        "let c = x - {}; let v = {}; print((c * rsqrt(v + 1e-5) * gain + bias)[0, 0]);",
        mean("x"),
        mean("c * c")
    );
    let perceptron = "param x: f32[64, 784]; param c: i32[64]; param w1: f32[784, 512]; param b1: f32[512];
        param w2: f32[512, 10]; param b2: f32[10];";
    let step = "let loss = mean(nn.cross_entropy(relu(x @ w1 + b1) @ w2 + b2, c));
        let (g1, g2, g3, g4) = grad(loss, wrt: (w1, b1, w2, b2));
        w1 <- w1 - 0.1 * g1; b1 <- b1 - 0.1 * g2; w2 <- w2 - 0.1 * g3; b2 <- b2 - 0.1 * g4;";
    let images = "param x: f32[16, 64, 64, 32]; const d: f32[16, 128, 128, 32] = 1;";
    let matrix = "param x: f32[2048, 1024];";
    let cubes = "param x: f32[8, 64, 64, 64];";
    let bars: [Bar; 21] = [
        // With loops over the windows of each element these derivatives would take four to seven times as many.
        (cubes, "let y = nn.max_pool(x, 2); print(grad(y, wrt: x, dy: 1)[0, 0, 0, 0]);", 14_000, 2),
        (cubes, "let y = nn.max_pool(x, 3, stride: 1, pad: 1); print(grad(y, wrt: x, dy: 1)[0, 0, 0, 0]);", 98_000, 2),
        (cubes, "let y = nn.max_pool(x, 3, stride: 2, pad: 1); print(grad(y, wrt: x, dy: 1)[0, 0, 0, 0]);", 39_500, 2),
        (cubes, "let y = nn.avg_pool(x, 2); print(grad(y, wrt: x, dy: 1)[0, 0, 0, 0]);", 4_700, 2),
        // A loop for each pair would take 5,400; vertices that load the factor of a row for each element, 3,200.
        ("param x: f32[524288, 2];", "print(sum(x, axis: 1)[0]);", 950, 1),
        ("param x: f32[1024, 1024]; param c: f32[1024, 1];", "print((x * c)[0, 0]);", 1_450, 1),
        // One vertex for each column would take 62,100 cycles; one for all elements does not fit on a tile.
        (matrix, "print(argmax(x, axis: 0)[0]);", 10_500, 2),
        (matrix, "print(argmax(x));", 15_800, 4),
        // Sums of 64 elements by loops would take 2,172.
        ("var x: f32[8, 32, 16, 2, 8] = 0.5;", "print(sum(x, axis: [1, 3])[1, 2, 3]);", 1_300, 2),
        // Each element gets the sum of four, which lie in two rows.
        (images, "let y = nn.upsample(x, 2); print(grad(y, wrt: x, dy: d)[0, 0, 0, 0]);", 8_400, 1),
        (rows, &norm, 6_900, 7),
        (perceptron, step, 35_000, 14),
        (rows, "let y = nn.softmax(x); print(y[0, 0]);", 4_100, 2),
        (rows, "let y = nn.softmax(x); print(grad(y, wrt: x, dy: d)[0, 0]);", 6_200, 4),
        (rows, "print(nn.layer_norm(x, gain, bias)[0, 0]);", 3_600, 2),
        (rows, "let y = nn.layer_norm(x, gain, bias); print(grad(y, wrt: (x, gain, bias), dy: d)[1][0]);", 11_200, 4),
        (rows, "print(nn.rms_norm(x, gain)[0, 0]);", 3_200, 2),
        (logits, loss, 3_200, 3),
        (words, loss, 194_000, 6),
        (heads, "print(nn.attention(q, k, v, causal: true)[0, 0, 0, 0]);", 9_100, 3),
        (
            heads,
            "let y = nn.attention(q, k, v, causal: true); print(grad(y, wrt: (q, k, v), dy: 1)[0][0, 0, 0, 0]);",
            21_400,
            6,
        ),
    ];
    for (declarations, main, cycles, supersteps) in bars {
        let text = format!("use nn; {declarations} program main() {{ {main} }}");
        let profile = Program::text(text).target("gc200").estimate("main");
        let taken = (profile.cycles, profile.supersteps);
        assert!(taken.0 <= cycles && taken.1 <= supersteps, "{main} takes {taken:?}");
    }
}

/// Three groups of residual blocks in training: the code of the exchanges takes 0.2 MB of a tile of `gc200`, of 0.21.
#[test]
fn a_residual_network_trains_on_one_processor() {
    let text = "use nn;
        use optim;
        fn cb(size: int, m: int, n: int, stride: int = 1) {
            let c = nn.conv_layer([size, size], m, n, stride: stride, pad: size / 2, bias: false, seed: 1);
            let b = nn.batch_norm_layer(n);
            return (c: c, b: b, train: fn(x) { b.train(c.apply(x)) });
        }
        fn block(m: int, n: int, stride: int) {
            let (a, b, s) = (cb(3, m, n, stride), cb(3, n, n), cb(1, m, n, stride));
            return (a: a, b: b, s: s, train: fn(x) { relu(b.train(relu(a.train(x))) + s.train(x)) });
        }
        let sizes = [(16, 16, 1), (16, 16, 1), (16, 32, 2), (32, 32, 1), (32, 32, 1), (32, 64, 2), (64, 64, 1),
            (64, 64, 1)];
        let blocks = list p in sizes { block(p[0], p[1], p[2]) };
        let net = (stem: cb(3, 3, 16), blocks: blocks, out: nn.dense(64, 10, seed: 1));
        var x: f32[8, 32, 32, 3] = 0.1;
        var c: i32[8];
        program main() {
            let mut h = relu(net.stem.train(x));
            for b in net.blocks { h = b.train(h); }
            let loss = nn.cross_entropy(net.out.apply(nn.global_avg_pool(h)), c);
            optim.sgd(net, grad(loss, wrt: net), rate: 0.1, momentum: 0.9);
        }";
    let profile = Program::text(text).target("gc200").estimate("main");
    assert!(profile.cycles <= 910_000, "{}", profile.cycles);
}
