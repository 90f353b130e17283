//! Modelled cycles compared with published measurements: the rows of `docs/validation.md`, each with its maximal error.

use girder_profile::{Profile, Total};
use girder_tests::{Program, files};

/// One published figure and its prediction by the model.
struct Row {
    /// The name of the row in `docs/validation.md`.
    id: &'static str,
    /// The quantity with its unit.
    figure: &'static str,
    published: f64,
    predicted: f64,
    /// The largest allowed error of the prediction, in percent.
    bar: f64,
}

impl Row {
    fn error(&self) -> f64 {
        100.0 * (self.predicted / self.published - 1.0)
    }

    fn line(&self) -> String {
        format!(
            "| {} | {} | {:.5e} | {:.5e} | {:+.2} % |",
            self.id,
            self.figure,
            self.predicted,
            self.published,
            self.error()
        )
    }
}

fn estimate(file: &str, target: &str, args: &[&str], program: &str) -> Profile {
    with(file, target, args).estimate(program)
}

fn with(file: &str, target: &str, args: &[&str]) -> Program {
    let start = Program::file(format!("examples/validation/{file}.gir")).target(target);
    args.iter().fold(start, |p, arg| p.arg(arg))
}

fn sum(profile: &Profile, part: impl Fn(&Total) -> u64) -> f64 {
    part(&profile.total) as f64
}

/// Predicts the bandwidth of a triad over all tiles, in bytes per second.
fn triad(target: &str, program: &str, n: u64) -> f64 {
    let p = estimate("triad", target, &[&format!("n={n}")], program);
    let bytes = 12.0 * n as f64 * 6.0 * f64::from(p.tiles_per_ipu);
    bytes / sum(&p, |t| t.compute) * p.clock_hz
}

fn triads() -> Vec<Row> {
    let row = |id, figure, published, predicted, bar| Row { id, figure, published, predicted, bar };
    vec![
        row("V1a", "triad, kernel, GC200, TB/s", 46.55, triad("gc200", "tuned", 7500) / 1e12, 1.0),
        // A triad has two operations for twelve bytes.
        row("V1b", "triad, kernel, GC200, TFLOP/s", 7.76, triad("gc200", "tuned", 7500) / 6e12, 1.0),
        row("M1", "triad, compiled, GC2, GB/s", 3726.0, triad("gc2", "compiled", 3000) / 1e9, 10.0),
        row("M2", "triad, two lanes, GC2, GB/s", 7261.0, triad("gc2", "two_lanes", 3000) / 1e9, 10.0),
    ]
}

fn kernels() -> Vec<Row> {
    let add = |n: u32| sum(&estimate("scaled_add", "gc200", &[&format!("n={n}")], "main"), |t| t.compute);
    let pi = sum(&estimate("pi", "bow", &[], "main"), |t| t.compute);
    // The bar is two cycles, as a percentage of the figure; some rows differ by just these.
    let two = |published: f64| 200.0 / published + 1e-9;
    vec![
        Row { id: "V2a", figure: "scaled add of 64, cycles", published: 375.0, predicted: add(64), bar: two(375.0) },
        Row { id: "V2b", figure: "scaled add of 128, cycles", published: 467.0, predicted: add(128), bar: two(467.0) },
        Row { id: "V2c", figure: "scaled add of 256, cycles", published: 665.0, predicted: add(256), bar: two(665.0) },
        Row {
            id: "V2d",
            figure: "scaled add of 512, cycles",
            published: 1043.0,
            predicted: add(512),
            bar: two(1043.0),
        },
        Row { id: "V3a", figure: "pi, cycles", published: 262_599_924.0, predicted: pi, bar: 1.0 },
    ]
}

/// A part of a profile with its name.
type Part = (&'static str, fn(&Total) -> u64);

/// Predicts each part of a half-step, and their sum; `bar` is the maximal error of the part that vertices alone
/// determine.
fn blur(id: &'static str, target: &str, args: &[&str], published: [f64; 5], bar: f64) -> Vec<Row> {
    let p = estimate("blur", target, args, "main");
    let half_steps = 200.0;
    let parts: [Part; 5] = [
        ("sync, cycles", |t| t.sync),
        ("exchange, cycles", |t| t.exchange),
        ("pre-arrange, cycles", |t| t.pre_arrange),
        ("post-arrange, cycles", |t| t.post_arrange),
        ("compute, cycles", |t| t.compute),
    ];
    let row = |((figure, part), published): (Part, f64)| Row {
        id,
        figure,
        published,
        predicted: sum(&p, part) / half_steps,
        bar: if figure.starts_with("compute") { bar } else { 15.0 },
    };
    let mut rows: Vec<Row> = parts.into_iter().zip(published).map(row).collect();
    let (predicted, published) = (p.cycles as f64 / half_steps, published.iter().sum());
    rows.push(Row { id, figure: "half-step, cycles", published, predicted, bar: 10.0 });
    rows
}

fn blurs() -> Vec<Row> {
    let many = ["ipus=16", "rows=96", "columns=202"];
    let pairs: Vec<&str> = many.into_iter().chain(["lanes=2"]).collect();
    let one = [117.0, 1173.0, 8279.0, 6954.0];
    let with = |compute: f64| [one[0], one[1], one[2], one[3], compute];
    let mut rows = blur("V8, 1 IPU", "gc2", &[], with(210_249.0), 15.0);
    rows.extend(blur("V8, 16 IPUs", "dss8440", &many, [640.0, 397.0 + 4048.0, 1894.0, 954.0, 13_152.0], 15.0));
    rows.extend(blur("V8 in lanes, 1 IPU", "gc2", &["lanes=2"], with(100_257.0), 15.0));
    let published = [642.0, 397.0 + 4017.0, 1897.0, 954.0, 7914.0];
    rows.extend(blur("V8 in lanes, 16 IPUs", "dss8440", &pairs, published, 16.0));
    rows
}

/// Predicts runs of two hundred half-steps, in milliseconds. Each processor has a band of 561 rows, or of 280.
fn longer_blurs() -> Vec<Row> {
    let row = |figure, published, ipus: [&str; 2], columns: &str, lanes: &str, rows: &str| Row {
        id: "V8",
        figure,
        published,
        predicted: 1e3 * estimate("blur", ipus[0], &[ipus[1], rows, columns, lanes], "main").seconds,
        bar: 15.0,
    };
    let (two, four) = (["c2", "ipus=2"], ["dss8440", "ipus=4"]);
    vec![
        row("blur, 2 IPUs, ms", 16.164, two, "columns=25", "lanes=1", "rows=94"),
        row("blur in lanes, 2 IPUs, ms", 9.032, two, "columns=25", "lanes=2", "rows=94"),
        row("blur, 4 IPUs, ms", 8.5488, four, "columns=50", "lanes=1", "rows=96"),
        row("blur in lanes, 4 IPUs, ms", 5.3058, four, "columns=50", "lanes=2", "rows=96"),
    ]
}

/// Predicts a thousand steps of the heat equation in two dimensions, in seconds.
fn heats() -> Vec<Row> {
    let heat = |target: &str, size: u32, ipus: u32| {
        let args = [format!("size={size}"), format!("rows={}", 46 * ipus)];
        estimate("heat", target, &[&args[0], &args[1]], "main").seconds
    };
    let row = |id, figure, published, predicted| Row { id, figure, published, predicted, bar: 15.0 };
    vec![
        row("M14", "heat, 8000 x 8000, 1 IPU, s", 0.30, heat("gc200", 8000, 1)),
        row("M17", "heat, 10000 x 10000, 2 IPUs, s", 0.28, heat("m2000", 10_000, 2)),
        row("M17", "heat, 14000 x 14000, 4 IPUs, s", 0.27, heat("m2000", 14_000, 4)),
        row("M17", "heat, 19000 x 19000, 8 IPUs, s", 0.25, heat("pod16", 19_000, 8)),
        row("M17", "heat, 27000 x 27000, 16 IPUs, s", 0.25, heat("pod16", 27_000, 16)),
    ]
}

/// Predicts the same in three dimensions, with the blocks that have the least surface.
fn cubes() -> Vec<Row> {
    let row = |figure, published, target: &str, args: [u32; 5]| {
        let names = ["size", "ipus", "heights", "widths", "depths"];
        let args: Vec<String> = names.iter().zip(args).map(|(name, value)| format!("{name}={value}")).collect();
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let predicted = estimate("heat3d", target, &args, "main").seconds;
        Row { id: "heat 3D", figure, published, predicted, bar: 15.0 }
    };
    vec![
        row("360 x 360 x 360, 1 IPU, s", 0.26, "gc200", [360, 1, 23, 8, 8]),
        row("402 x 402 x 402, 2 IPUs, s", 0.23, "m2000", [402, 2, 8, 23, 8]),
        row("508 x 508 x 508, 4 IPUs, s", 0.26, "m2000", [508, 4, 4, 16, 23]),
        row("640 x 640 x 640, 8 IPUs, s", 0.26, "pod16", [640, 8, 4, 16, 23]),
        row("806 x 806 x 806, 16 IPUs, s", 0.32, "pod16", [806, 16, 2, 32, 23]),
    ]
}

fn tissues() -> Vec<Row> {
    // The ring buffer does not fit into a tile.
    let program = with("tissue", "gc200", &["size=7000", "rows=46", "columns=32"]).over_memory();
    let predicted = program.estimate("main").seconds;
    vec![Row { id: "tissue", figure: "7000 x 7000, 1 IPU, s", published: 1.09, predicted, bar: 15.0 }]
}

fn products() -> Vec<Row> {
    let p = estimate("matvec", "gc200", &[], "main");
    vec![Row { id: "M25", figure: "exchange, cycles", published: 8697.4, predicted: sum(&p, |t| t.exchange), bar: 2.0 }]
}

fn hold(rows: &[Row]) {
    rows.iter().for_each(|r| println!("{}", r.line()));
    for r in rows {
        assert!(r.error().abs() <= r.bar, "{} {}: {:+.2} %, at most {} %", r.id, r.figure, r.error(), r.bar);
    }
}

#[test]
fn kernels_take_what_was_measured() {
    hold(&kernels());
    hold(&triads());
}

#[test]
fn a_blur_takes_what_was_measured() {
    hold(&blurs());
    hold(&longer_blurs());
}

#[test]
fn heat_takes_what_was_measured() {
    hold(&heats());
}

#[test]
fn heat_in_three_dimensions_takes_what_was_measured() {
    hold(&cubes());
}

#[test]
fn a_tissue_takes_what_was_measured() {
    hold(&tissues());
}

#[test]
fn a_product_exchanges_what_was_measured() {
    hold(&products());
}

/// Row Q6 concerns the figures of the tutorial's formula, not those of the model.
#[test]
fn the_formula_of_the_tutorial_gives_its_figures() {
    let text = files::text("examples/validation/matvec.gir");
    let formula = text.split("#[cycles").next().expect("the formula comes first").to_string();
    let program = |list: &str| format!("{formula}\nprogram main() {{ print({list}); }}\n");
    let of = |m2: &str, list: &str| Program::text(program(list)).target(m2).run_everywhere().prints;
    assert_eq!(of("gc200", "\"best\", (pieces, cycles(pieces))"), ["best (7, 3996)"]);
    assert_eq!(of("gc2", "\"best\", (pieces, cycles(pieces))"), ["best (5, 4751)"]);
    assert_eq!(of("gc200", "max p in 1..n { cycles(p) }"), ["53807"]);
    assert_eq!(of("gc2", "max p in 1..n { cycles(p) }"), ["64373"]);
}
