//! Convolutions and their derivatives are those of plain loops, whatever the stride, padding, dilation and groups, on
//! every machine; and what they cost on one, in modelled cycles, as the documentation says.
//!
//! Elements are small whole numbers, so every order of a sum has the same bits.

use girder::Stage;
use girder_engine::Mode;
use girder_source::par_map_slice;
use girder_tests::{Program, files};
use std::path::Path;

/// A convolution of images of two axes: images, and then for each axis the length, the window, the stride, the padding
/// before and after, and the dilation.
struct Case {
    images: i64,
    axes: [[i64; 6]; 2],
    groups: i64,
    /// Input and output channels of a group.
    channels: (i64, i64),
}

fn case(images: i64, axes: [[i64; 6]; 2], groups: i64, channels: (i64, i64)) -> Case {
    Case { images, axes, groups, channels }
}

fn cases() -> Vec<Case> {
    vec![
        case(1, [[5, 3, 1, 1, 1, 1], [7, 3, 1, 1, 1, 1]], 1, (3, 4)),
        case(2, [[9, 3, 2, 1, 0, 1], [7, 2, 3, 0, 2, 1]], 1, (19, 5)),
        case(3, [[8, 2, 1, 3, 0, 3], [6, 4, 1, 0, 0, 1]], 1, (1, 17)),
        case(2, [[6, 1, 2, 0, 0, 1], [5, 1, 2, 0, 0, 1]], 3, (4, 2)),
        case(1, [[1, 3, 1, 1, 1, 1], [40, 5, 2, 3, 1, 2]], 2, (9, 3)),
        case(2, [[7, 3, 3, 2, 2, 2], [7, 3, 2, 1, 2, 1]], 5, (1, 1)),
        case(1, [[4, 3, 1, 2, 2, 1], [4, 3, 1, 2, 2, 1]], 4, (1, 2)),
        // Dilated axes that become two, in one part or in two, with much, some or no padding, or with one channel.
        case(2, [[29, 3, 1, 9, 9, 9], [5, 2, 1, 0, 1, 1]], 1, (9, 3)),
        case(2, [[1, 1, 1, 0, 0, 1], [37, 2, 1, 8, 0, 8]], 2, (16, 5)),
        case(3, [[1, 1, 1, 0, 0, 1], [40, 3, 1, 0, 0, 10]], 5, (1, 1)),
        // The derivatives by these kernels are sums of 60 parts, which are added in groups.
        case(1, [[60, 3, 1, 1, 1, 1], [9, 3, 1, 1, 1, 1]], 1, (3, 4)),
        case(1, [[60, 3, 1, 1, 1, 1], [5, 3, 1, 1, 1, 1]], 5, (1, 1)),
    ]
}

fn result(a: &[i64; 6]) -> i64 {
    (a[0] + a[3] + a[4] - (a[1] - 1) * a[5] - 1) / a[2] + 1
}

fn number(k: i64, factor: i64) -> i64 {
    k * factor % 11 - 5
}

fn text(shape: &[i64], factor: i64, next: &mut i64) -> String {
    let Some((&n, rest)) = shape.split_first() else {
        *next += 1;
        return format!("{}", number(*next - 1, factor));
    };
    let all: Vec<String> = (0..n).map(|_| text(rest, factor, next)).collect();
    format!("[{}]", all.join(", "))
}

/// Calls `f` with the positions of the elements of the images, of the kernel and of the result that belong together.
fn pairs(c: &Case, mut f: impl FnMut(i64, i64, i64)) {
    let (cs, ns) = (c.groups * c.channels.0, c.groups * c.channels.1);
    let [h, w] = &c.axes;
    let (oh, ow) = (result(h), result(w));
    for b in 0..c.images {
        for (i, j) in (0..oh).flat_map(|i| (0..ow).map(move |j| (i, j))) {
            for (r, s) in (0..h[1]).flat_map(|r| (0..w[1]).map(move |s| (r, s))) {
                let (p, q) = (i * h[2] + r * h[5] - h[3], j * w[2] + s * w[5] - w[3]);
                if p < 0 || p >= h[0] || q < 0 || q >= w[0] {
                    continue;
                }
                for n in 0..ns {
                    for l in 0..c.channels.0 {
                        let from = n / c.channels.1 * c.channels.0 + l;
                        let x = ((b * h[0] + p) * w[0] + q) * cs + from;
                        let k = ((r * w[1] + s) * c.channels.0 + l) * ns + n;
                        f(x, k, ((b * oh + i) * ow + j) * ns + n);
                    }
                }
            }
        }
    }
}

fn bytes(values: &[i64]) -> Vec<u8> {
    values.iter().flat_map(|&v| (v as f32).to_le_bytes()).collect()
}

#[test]
fn convolutions_and_their_derivatives_are_those_of_loops() {
    for (index, c) in cases().iter().enumerate() {
        let [h, w] = &c.axes;
        let (cs, ns) = (c.groups * c.channels.0, c.groups * c.channels.1);
        let of_x = [c.images, h[0], w[0], cs];
        let of_k = [h[1], w[1], c.channels.0, ns];
        let of_y = [c.images, result(h), result(w), ns];
        let count = |s: &[i64; 4]| s.iter().product::<i64>();
        let [x, k, dy] = [(&of_x, 7), (&of_k, 3), (&of_y, 5)]
            .map(|(s, factor)| (0..count(s)).map(|i| number(i, factor)).collect::<Vec<i64>>());
        let (mut y, mut dx, mut dk) = (vec![0; dy.len()], vec![0; x.len()], vec![0; k.len()]);
        pairs(c, |i, t, o| {
            let (i, t, o) = (i as usize, t as usize, o as usize);
            y[o] += x[i] * k[t];
            dx[i] += dy[o] * k[t];
            dk[t] += x[i] * dy[o];
        });
        let options = format!(
            "stride: [{}, {}], pad: [{}, {}, {}, {}], dilation: [{}, {}], groups: {}",
            h[2], w[2], h[3], h[4], w[3], w[4], h[5], w[5], c.groups
        );
        let more = [h, w].map(|a| a[0] - ((result(a) - 1) * a[2] + (a[1] - 1) * a[5] + 1 - a[3] - a[4]));
        // A transposed convolution by the kernel with its channels exchanged in each group.
        let has_transposed = c.groups == 1 && (0..2).all(|a| more[a] < c.axes[a][2].max(c.axes[a][5]));
        let transposed = if has_transposed {
            format!("z <- nn.conv_transpose(dy, k.permute([0, 1, 3, 2]), {options}, out_pad: {more:?});")
        } else {
            "z <- dx;".into()
        };
        let program = format!(
            "use nn;
            param x: f32{of_x:?} = {};
            param k: f32{of_k:?} = {};
            const dy: f32{of_y:?} = {};
            var y: f32{of_y:?};
            var dx: f32{of_x:?};
            var dk: f32{of_k:?};
            var z: f32{of_x:?};
            program main() {{
                let t = nn.conv(x, k, {options});
                y <- t;
                let g = grad(t, wrt: (x, k), dy: dy);
                dx <- g[0];
                dk <- g[1];
                {transposed}
            }}",
            text(&of_x, 7, &mut 0),
            text(&of_k, 3, &mut 0),
            text(&of_y, 5, &mut 0)
        );
        for target in ["small", "gc200"] {
            let compiled = Program::text(&program).target(target).over_memory().compile(&[Mode::Fast]);
            let outcome = compiled.run(Mode::Fast, 1);
            assert!(outcome.failure.is_none(), "case {index}: {:?}", outcome.failure);
            let has = |name: &str, want: &[i64]| {
                assert_eq!(*outcome.array(name).bytes, *bytes(want), "`{name}` of case {index} on {target}");
            };
            has("y", &y);
            has("dx", &dx);
            has("dk", &dk);
            has("z", &dx);
        }
    }
}

/// Images of no batch, or of no channels, have a convolution, and derivatives that are empty or 0.
#[test]
fn convolutions_of_nothing_are_empty() {
    for (images, inputs, outputs) in [(0, 2, 3), (1, 0, 3), (1, 2, 0), (0, 1, 1)] {
        let text = format!(
            "use nn;
            param x: f32[{images}, 4, 4, {inputs}] = 1; param k: f32[3, 3, {inputs}, {outputs}] = 1;
            var y: f32[{images}, 2, 2, {outputs}] = 7; var dx: f32[..x.shape] = 7; var dk: f32[..k.shape] = 7;
            program main() {{
                y <- nn.conv(x, k);
                dx <- nn.conv_input(x.shape, k, y);
                dk <- nn.conv_kernel(x, k.shape, y);
                print(\"shape\", nn.conv_transpose(x, k).shape);
            }}"
        );
        let outcome = Program::text(&text).compile(&[Mode::Exact]).run(Mode::Exact, 1);
        assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
        for name in ["y", "dx", "dk"] {
            assert!(outcome.array(name).bytes.iter().all(|&b| b == 0), "`{name}` of {images}, {inputs}, {outputs}");
        }
    }
}

/// Returns the cycles of a layer of ResNet-50, 28 × 28 with 128 channels, and of its derivatives.
fn layer(images: u64) -> [u64; 3] {
    let steps = [
        "print(nn.conv(x, k, pad: 1)[0, 0, 0, 0]);",
        "print(nn.conv_input(x.shape, k, x, pad: 1)[0, 0, 0, 0]);",
        "print(nn.conv_kernel(x, k.shape, x, pad: 1)[0, 0, 0, 0]);",
    ];
    steps.map(|step| {
        let text = format!(
            "use nn; param x: f32[{images}, 28, 28, 128]; param k: f32[3, 3, 128, 128]; program main() {{ {step} }}"
        );
        Program::text(&text).target("gc200").estimate("main").cycles
    })
}

#[test]
fn a_layer_of_a_network_is_fast() {
    for (images, most) in [(1, 24_500), (8, 86_000)] {
        let [forward, by_input, by_kernel] = layer(images);
        assert!(forward <= most, "{images} images: {forward}");
        assert!(10 * by_input <= 13 * forward, "{images} images: {by_input} against {forward}");
        assert!(10 * by_kernel <= 13 * forward, "{images} images: {by_kernel} against {forward}");
    }
}

/// Lengths with few divisors, of few images and channels, once had no cut but that into one vertex.
#[test]
fn a_single_image_of_any_size_has_many_tiles() {
    for (size, most) in [(35, 6_000), (47, 7_000), (149, 9_000), (150, 9_000)] {
        let text = format!(
            "use nn; param k: f32[3, 3, 3, 16]; var x: f32[1, {size}, {size}, 3];
            program main() {{ print(nn.conv(x, k, pad: 1)[0, 0, 0, 0]); }}"
        );
        let taken = Program::text(&text).target("gc200").estimate("main").cycles;
        assert!(taken <= most, "{size}: {taken}");
    }
    let text = "use nn; param k: f32[9, 1, 16]; var x: f32[1, 22050, 1];
        program main() { print(nn.conv(x, k, pad: 4)[0, 0, 0]); }";
    let taken = Program::text(text).target("gc200").estimate("main").cycles;
    assert!(taken <= 7_000, "{taken}");
}

/// Numbers of images of which no number of blocks was a multiple, such as 17 and 50, once had no cut within an image:
/// the derivative by the kernel took ten times as long as that of 18.
#[test]
fn a_derivative_by_a_kernel_is_cut_within_images_for_every_number_of_them() {
    let taken = |images: u64| {
        let text = format!(
            "use nn; param x: f32[{images}, 93, 4, 2]; param y: f32[{images}, 93, 4, 4];
            program main() {{ print(nn.conv_kernel(x, [3, 3, 2, 4], y, pad: 2, dilation: 2)[0, 0, 0, 0]); }}"
        );
        Program::text(&text).target("gc200").estimate("main").cycles
    };
    let of_18 = taken(18);
    for (images, times) in [(17, 1), (19, 1), (31, 1), (50, 2)] {
        let cycles = taken(images);
        assert!(2 * cycles <= 3 * times * of_18, "{images} images: {cycles} against {of_18}");
    }
}

/// Each index of the derivative by the kernel once took steps for each part of the view through which it arrives.
#[test]
fn a_derivative_may_arrive_through_a_view() {
    let text = "use nn; param k: f32[3, 3, 1, 16] = 0.1; var x: f32[10, 28, 28, 1] = 0.5;
        program main() {
            let y = nn.conv(x, k, pad: 1);
            let p = y.reshape([10, 7, 4, 7, 4, 16]).permute([0, 1, 3, 2, 4, 5]).reshape([10, 49, 256]);
            print(grad(sum(tanh(p)), wrt: k)[0, 0, 0, 0]);
        }";
    assert!(Program::text(text).target("gc200").stage(Stage::Graph).is_ok());
}

/// The derivatives by these kernels are sums of 64 or more parts, which are added in groups: two steps for each.
#[test]
fn sums_in_groups_have_the_same_bits_on_every_machine() {
    let text = "use nn; use random;
        var x: f32[2, 64, 20, 5] = random.normal(seed: 3);
        param k: f32[3, 3, 5, 9] = random.normal(seed: 4);
        param d: f32[3, 3, 1, 5] = random.normal(seed: 5);
        program main() {
            let (y, z) = (nn.conv(x, k, pad: 1), nn.conv(x, d, pad: 1, groups: 5));
            let g = grad(mean(tanh(y)) + mean(tanh(z)), wrt: (k, d));
            print(g[0].flatten());
            print(g[1].flatten());
        }";
    let on = |target: &str| Program::text(text).target(target);
    let stage = on("gc200").stage(Stage::Graph).expect("a graph");
    let sums = stage.graph().sets.values().filter(|set| set.name.contains("grad.sum")).count();
    assert_eq!(sums, 4);
    let printed = |target| on(target).compile(&[Mode::Fast]).run(Mode::Fast, 1).prints;
    let expected = printed("gc200");
    for target in ["small", "small-8", "bow-2000"] {
        assert_eq!(printed(target), expected, "on {target}");
    }
}

/// The table of docs/networks.md: the cycles of each convolution of ResNet-50, and its share of the peak. The mean
/// share must not fall below 30 %, nor any below 8 %.
#[test]
fn the_convolutions_of_resnet_50_cost_what_the_documentation_says() {
    let text = files::text(Path::new("docs/networks.md"));
    let table = text.split("### Convolutions of ResNet-50").nth(1).expect("the section");
    let number = |cell: &str| cell.trim().split('×').next().and_then(|n| n.replace(',', "").parse::<u64>().ok());
    let row = |line: &str| line.trim_matches('|').split('|').take(6).map(number).collect::<Option<Vec<u64>>>();
    let rows: Vec<Vec<u64>> = table.lines().take_while(|l| !l.starts_with("## ")).filter_map(row).collect();
    assert_eq!(rows.len(), 23);
    let shares = par_map_slice(&rows, |row| {
        let [size, window, stride, inputs, outputs, cycles] = row[..] else { unreachable!("six cells are numbers") };
        let result = size.div_ceil(stride);
        let program = format!(
            "use nn; param x: f32[4, {size}, {size}, {inputs}]; param k: f32[{window}, {window}, {inputs}, {outputs}];
            program main() {{ print(nn.conv(x, k, stride: {stride}, pad: {})[0, 0, 0, 0]); }}",
            window / 2
        );
        let profile = Program::text(&program).target("gc200").estimate("main");
        let found: u64 =
            profile.steps.iter().filter(|s| s.name.starts_with("main.conv")).map(|s| s.total.cycles()).sum();
        assert_eq!(found, cycles, "{row:?}");
        (4 * result * result * inputs * outputs * window * window) as f64 / (1472 * 16) as f64 / found as f64
    });
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    assert!(mean >= 0.3 && shares.iter().all(|&s| s >= 0.08), "{mean}: {shares:?}");
}

/// Every vertex of its derivatives was once evaluated alone, which took more steps than the limit allows.
#[test]
fn a_training_step_of_resnet_50_is_built_within_the_limits() {
    let forward = files::text(Path::new("tests/benches/resnet50.gir"));
    let step = "use optim; var class: i32[images];
        program step() {
            let loss = nn.cross_entropy(net.apply(image), class);
            optim.sgd(net, grad(loss, wrt: net), rate: 0.1);
        }";
    let stage = Program::text(format!("{forward}{step}")).target("gc200").stage(Stage::Graph).unwrap();
    let kernels = stage.graph().sets.values().filter(|set| set.name.contains("grad.kernels")).count();
    assert_eq!(kernels, 53, "each convolution has a derivative by its kernel");
}
