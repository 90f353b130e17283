//! How compile time and memory grow with the program, stage by stage: vertices of three kinds at 10^4, 10^5 and 10^6,
//! a stencil on several processors, a training step of a convolutional network by batch, and ResNet-50 forward.
//!
//! `cargo bench -p girder-tests --bench compile_scale [-- SUBSTRING]` prints a table for each program whose name
//! contains the substring, then the worst ratio of a total to its bar. Each compilation is a process of its own, so
//! that the peak of one is not that of another. Memory is the resident set as Linux counts it. The last row is
//! processor time: where it is less than the total, other work delayed the compilation, and processor time is what
//! counts.
//!
//! Invariant: the programs are made here, or read from beside this file, and depend on nothing but their size.

// With the memory that the command has.
use girder::{Arguments, Compilation, Options, Stage};
use girder_machine::Machine;
use girder_passes::context::PassContext;
use girder_passes::pipeline::lower_to;
use girder_source::Session;
use girder_tests as _;
use std::fmt::Write;
use std::process::Command;
use std::time::{Duration, Instant};

/// A program by size, and what its greatest size may take.
struct Case {
    name: &'static str,
    target: &'static str,
    sizes: &'static [usize],
    text: fn(usize) -> String,
    seconds: f64,
    megabytes: f64,
}

const SIZES: &[usize] = &[10_000, 100_000, 1_000_000];
const BATCHES: &[usize] = &[10, 20, 40];

const CASES: [Case; 8] = [
    Case { name: "regular", target: "bow-pod64", sizes: SIZES, text: regular, seconds: 0.3, megabytes: 200.0 },
    Case { name: "irregular-computed", target: "gc200", sizes: SIZES, text: computed, seconds: 6.0, megabytes: 3000.0 },
    Case { name: "irregular-lists", target: "gc200", sizes: SIZES, text: lists, seconds: 6.0, megabytes: 3000.0 },
    Case {
        name: "irregular-statements",
        target: "gc200",
        sizes: SIZES,
        text: statements,
        seconds: 6.0,
        megabytes: 3000.0,
    },
    Case { name: "blur", target: "gc200", sizes: &[1, 4, 16], text: blur, seconds: 0.5, megabytes: f64::INFINITY },
    Case { name: "cnn-im2col", target: "gc200", sizes: BATCHES, text: im2col, seconds: 1.0, megabytes: 400.0 },
    Case { name: "cnn-shifted", target: "gc200", sizes: BATCHES, text: shifted, seconds: 1.0, megabytes: 400.0 },
    Case { name: "resnet-50", target: "gc200", sizes: &[1], text: resnet, seconds: 2.0, megabytes: 1000.0 },
];

const CODELETS: &str = "
codelet scale(in a: f32[n], out y: f32[n]) { for i in 0..n { y[i] = 2.0 * a[i]; } }
codelet four(in a: f32, in b: f32, in c: f32, out y: f32) { y = a + b * c; }
codelet stencil(in u: f32[m, n], out v: f32[m - 2, n - 2]) {
    for i in 0..m - 2, j in 0..n - 2 {
        v[i, j] = 0.25 * u[i + 1, j + 1] + 0.125 * (u[i, j + 1] + u[i + 2, j + 1] + u[i + 1, j] + u[i + 1, j + 2]);
    }
}
";

/// Three families of equal slices, blocks of neighbours on a tile, as many vertices as `n` in all.
fn regular(n: usize) -> String {
    let n = n / 4;
    let set = |name: &str, from: &str, to: &str, count: usize, size: usize| {
        format!(
            "    compute {name} {{ for i in 0..{count} {{
                vertex scale({from}[i * {size}..(i + 1) * {size}], {to}[i * {size}..(i + 1) * {size}])
                    on tile(i * tiles / {count});
            }} }}\n"
        )
    };
    let (first, second) = (set("first", "x", "y", n, 4), set("second", "y", "z", 2 * n, 2));
    let third = set("third", "z", "x", n, 4);
    let vars = ["x", "y", "z"].map(|v| format!("var {v}: f32[{}];\n", 4 * n)).concat();
    format!("{CODELETS}{vars}program main() {{\n{first}{second}{third}}}\n")
}

/// Offsets by multiplication modulo the size.
fn computed(n: usize) -> String {
    format!(
        "{CODELETS}let n = {n};\nvar x: f32[n];\nvar y: f32[n];\nprogram main() {{ compute gather {{ for i in 0..n {{
            vertex four(x[i * 7919 % n], x[(i * 104729 + 13) % n], x[(i * 1299709 + 7) % n], y[i]) on tile(i % tiles);
        }} }} }}\n"
    )
}

/// Pseudo-random numbers below `n`.
fn numbers(n: usize, mut seed: u64) -> impl Iterator<Item = usize> {
    std::iter::repeat_with(move || {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 33) as usize % n
    })
}

/// Offsets from lists of numbers.
fn lists(n: usize) -> String {
    let mut text = String::from(CODELETS);
    for (seed, name) in ["a", "b", "c"].into_iter().enumerate() {
        let _ = write!(text, "let {name} = [");
        numbers(n, seed as u64).take(n).for_each(|k| text += &format!("{k}, "));
        text += "];\n";
    }
    text + &format!(
        "let n = {n};\nvar x: f32[n];\nvar y: f32[n];\nprogram main() {{ compute gather {{ for i in 0..n {{
            vertex four(x[a[i]], x[b[i]], x[c[i]], y[i]) on tile(i % tiles);
        }} }} }}\n"
    )
}

/// A statement for each vertex.
fn statements(n: usize) -> String {
    let mut text = format!("{CODELETS}var x: f32[{n}];\nvar y: f32[{n}];\nprogram main() {{\n    compute gather {{\n");
    let mut numbers = numbers(n, 1);
    let mut next = || numbers.next().unwrap_or(0);
    for i in 0..n {
        let (a, b, c, tile) = (next(), next(), next(), i % 1472);
        let _ = writeln!(text, "        vertex four(x[{a}], x[{b}], x[{c}], y[{i}]) on tile({tile});");
    }
    text + "    }\n}\n"
}

/// A 3×3 stencil on so many processors: a band of rows on each tile, with the rows beside it from its neighbours.
fn blur(ipus: usize) -> String {
    let (bands, rows, cols) = (1472 * ipus, 2, 256);
    format!(
        "{CODELETS}let rows = {rows};\nlet bands = {bands};
        var u: f32[bands * rows + 2, {cols} + 2];\nvar v: f32[bands * rows + 2, {cols} + 2];
        map u[1 + t * rows..1 + (t + 1) * rows] on tile(t) for t in 0..bands;
        map v[1 + t * rows..1 + (t + 1) * rows] on tile(t) for t in 0..bands;
        program main() {{ repeat 10 {{
            compute there {{ for t in 0..bands {{
                vertex stencil(u[t * rows..(t + 1) * rows + 2], v[1 + t * rows..1 + (t + 1) * rows, 1..{cols} + 1])
                    on tile(t);
            }} }}
            compute back {{ for t in 0..bands {{
                vertex stencil(v[t * rows..(t + 1) * rows + 2], u[1 + t * rows..1 + (t + 1) * rows, 1..{cols} + 1])
                    on tile(t);
            }} }}
        }} }}\n"
    )
}

/// A training step of a network for digits, with convolutions as products of windows.
fn im2col(batch: usize) -> String {
    cnn(batch, false)
}

/// The same with convolutions as sums of nine products.
fn shifted(batch: usize) -> String {
    cnn(batch, true)
}

fn cnn(batch: usize, shifts: bool) -> String {
    let text = include_str!("cnn.gir").replace("let batch = 40;", &format!("let batch = {batch};"));
    text.replace("let shifts = false;", &format!("let shifts = {shifts};"))
}

/// ResNet-50 forward by the number of images.
fn resnet(images: usize) -> String {
    include_str!("resnet50.gir").replace("let images = 1;", &format!("let images = {images};"))
}

/// The most memory that was resident since the last call, in bytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    let kb = line.and_then(|l| l.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0);
    // The kernel starts anew when it is asked to.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    kb << 10
}

/// Time that this process has had on processors, to a hundredth of a second.
fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks: u64 = after_name.split(' ').skip(12).take(2).filter_map(|t| t.parse::<u64>().ok()).sum();
    Duration::from_millis(10 * ticks)
}

/// Compiles one program to `last`, and prints a line for each stage.
fn compile(case: &Case, size: usize, last: Stage) {
    let text = (case.text)(size);
    let target = match (case.name, size) {
        ("blur", 4) => "m2000",
        ("blur", 16) => "pod16",
        _ => case.target,
    };
    let machine: Machine = girder_machine::builtin(target).expect("a machine that is built in");
    let options = Options { machine, arguments: Arguments::default(), session: Session::default() };
    let mut compilation = Compilation::new(options);
    let root = compilation.add("scale.gir", text).expect("less than 4 GiB");
    peak();
    let (start, before) = (Instant::now(), processor_time());
    let mut at = match compilation.stage(root, Stage::Graph) {
        Ok(at) => at,
        Err(_) => return compilation.diagnostics.iter().for_each(|d| eprintln!("{}: {}", d.code, d.message)),
    };
    for (name, time) in &compilation.timings {
        println!("{name} {} {}", time.as_nanos(), if *name == "elaborate" { peak() } else { 0 });
    }
    let Options { machine, session, .. } = &compilation.options;
    for stage in Stage::ALL.into_iter().filter(|&s| s > Stage::Graph && s <= last) {
        let mut cx = PassContext::new(machine, session, &mut compilation.diagnostics);
        let next = lower_to(at, stage, &mut cx);
        let (timings, now) = (cx.timings, peak());
        let Ok(next) = next else {
            return compilation.diagnostics.iter().for_each(|d| eprintln!("{}: {}", d.code, d.message));
        };
        at = next;
        for (k, (name, time)) in timings.iter().enumerate() {
            println!("{name} {} {}", time.as_nanos(), if k + 1 == timings.len() { now } else { 0 });
        }
    }
    println!("total {} 0", start.elapsed().as_nanos());
    println!("processors {} 0", (processor_time() - before).as_nanos());
}

/// Name, time and peak of each stage, as a child says them.
fn measure(case: &Case, size: usize, last: Stage) -> Vec<(String, Duration, u64)> {
    let me = std::env::current_exe().expect("the bench has a path");
    let child = Command::new(me).args(["--child", case.name, &size.to_string(), last.name()]).output();
    let output = child.expect("the bench can be started");
    eprint!("{}", String::from_utf8_lossy(&output.stderr));
    let row = |line: &str| {
        let mut words = line.split(' ');
        let name = words.next()?.to_string();
        let mut number = || words.next()?.parse::<u64>().ok();
        Some((name, Duration::from_nanos(number()?), number()?))
    };
    String::from_utf8_lossy(&output.stdout).lines().filter_map(row).collect()
}

/// Prints the table of a program; the ratios of its greatest size to its bars.
fn table(case: &Case, last: Stage) -> f64 {
    let columns: Vec<_> = case.sizes.iter().map(|&size| measure(case, size, last)).collect();
    println!("\n{:<22}{}", case.name, case.sizes.iter().map(|s| format!("{s:>24}")).collect::<String>());
    let rows = columns.last().map_or(0, Vec::len);
    for row in 0..rows {
        let mut line = String::new();
        for column in &columns {
            let (time, peak) = column.get(row).map_or((0.0, 0), |r| (r.1.as_secs_f64(), r.2));
            let peak = if peak > 0 { format!("{:>7} MB", peak >> 20) } else { " ".repeat(10) };
            let _ = write!(line, "{:>11.2} ms{peak}", time * 1e3);
        }
        println!("  {:<20}{line}", columns[rows.min(columns.len()) - 1][row].0);
    }
    let Some(most) = columns.last() else { return 0.0 };
    let seconds = most.iter().rev().take(2).map(|t| t.1.as_secs_f64()).reduce(f64::min);
    let time = seconds.unwrap_or(f64::INFINITY) / case.seconds;
    let memory = most.iter().map(|r| r.2).max().unwrap_or(0) as f64 / 1e6 / case.megabytes;
    println!("  {:.2} of the time and {:.2} of the memory that it may take", time, memory);
    time.max(memory)
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    if let [child, name, size, last] = &args[..]
        && child == "--child"
    {
        let case = CASES.iter().find(|c| c.name == name).expect("a program of this bench");
        let last = Stage::from_name(last).expect("a stage");
        return compile(case, size.parse().expect("a size"), last);
    }
    // `--stage NAME` stops after that stage.
    let last = args.iter().position(|a| a == "--stage").and_then(|k| Stage::from_name(args.get(k + 1)?));
    let wanted = |c: &&Case| args.first().is_none_or(|a| a.starts_with("--") || c.name.contains(a.as_str()));
    let ratios = CASES.iter().filter(wanted).map(|c| table(c, last.unwrap_or(Stage::Allocated)));
    println!("\nworst ratio to what a compilation may take: {:.2}", ratios.fold(0.0, f64::max));
}
