//! The overhead of a superstep: empty compute sets, trivial vertices, and copies of short runs.
//!
//! `cargo bench -p girder-tests --bench supersteps [-- SUBSTRING]` prints a line for each case whose name contains the
//! substring: the time of one superstep, vertex or run, and the ratio of its bar to it, which should be at least 1;
//! then the worst ratio. The bar of a copy is 0.8 of the speed of the fastest design in `designs`, with interleaved
//! repetitions.
//!
//! Invariant: the programs depend on the sizes in this file only.

#[path = "supersteps/designs.rs"]
mod designs;
mod measure;

// With the memory that the command has.
use designs::{Segment, Source};
use girder_tests as _;
use measure::{Compiled, Worst, interleaved, timed};
use std::time::Duration;

const WINDOWS: usize = 41;

/// The case that is shown beside native code on one thread: its time depends on the host's memory.
const GATHER: &str = "vertex with offsets of its own";

/// A case with a bar of nanoseconds per unit.
struct Case {
    name: &'static str,
    threads: usize,
    /// Units of work in one iteration of the program's loop.
    units: usize,
    iterations: usize,
    /// The whole program; `iterations` is an argument.
    text: String,
    bar: Option<f64>,
}

fn empty(name: &'static str, threads: usize, bar: Option<f64>, vertices: usize, body: &str) -> Case {
    let text = format!(
        "codelet little(inout x: f32) {{ {body} }}\nvar x: f32[{vertices}];
        program main(iterations: int) {{ repeat iterations {{
            compute empty {{ for i in 0..{vertices} {{ vertex little(x[i]); }} }}
        }} }}\n"
    );
    Case { name, threads, units: 1, iterations: 5_000, text, bar }
}

/// A chain of sets, each of which reads all that the one before wrote, so that threads have to wait for one another.
fn barrier() -> Case {
    let text = "codelet add(in a: f32, out y: f32) { y = a + 1.0; }
        let n = 16384;
        var x: f32[n];
        var y: f32[n];
        program main(iterations: int) { repeat iterations {
            compute there { for i in 0..n { vertex add(x[n - 1 - i], y[i]); } }
            compute back { for i in 0..n { vertex add(y[n - 1 - i], x[i]); } }
        } }";
    Case { name: "set of 16384 that waits", threads: 2, units: 2, iterations: 500, text: text.to_string(), bar: None }
}

fn family(threads: usize, bar: Option<f64>) -> Case {
    let text = "codelet trivial(in a: f32, in b: f32, out y: f32) { y = a + b + 1.0; }
        let n = 1000000;
        var a: f32[n];
        var b: f32[n];
        var y: f32[n];
        program main(iterations: int) { repeat iterations {
            compute all { for i in 0..n { vertex trivial(a[i], b[i], y[i]); } }
        } }";
    Case { name: "vertex of a family", threads, units: 1_000_000, iterations: 3, text: text.to_string(), bar }
}

fn irregular(threads: usize, bar: Option<f64>) -> Case {
    let n = 1_000_000;
    let list = |seed| format!("{:?}", designs::shuffled(n, seed));
    let text = format!(
        "codelet trivial(in a: f32, in b: f32, out y: f32) {{ y = a + b + 1.0; }}
        let n = {n};\nlet p = {};\nlet q = {};
        var a: f32[n];\nvar b: f32[n];\nvar y: f32[n];
        program main(iterations: int) {{ repeat iterations {{
            compute all {{ for i in 0..n {{ vertex trivial(a[p[i]], b[q[i]], y[i]); }} }}
        }} }}",
        list(1),
        list(2)
    );
    Case { name: GATHER, threads, units: n, iterations: 2, text, bar }
}

fn measure_case(case: &Case, worst: &mut Worst) {
    let iterations = case.iterations.to_string();
    let compiled = Compiled::new("supersteps.gir", case.text.as_str(), "gc200", &[("iterations", &iterations)]);
    let mut running = compiled.engine(case.threads, "main");
    let mut runners = vec![timed(|| running.run())];
    if case.name == GATHER {
        let mut gather = designs::gather(case.units);
        runners.push(timed(move || (0..case.iterations).for_each(|_| gather())));
    }
    let seconds = interleaved(WINDOWS, Duration::ZERO, &mut runners);
    let each: Vec<f64> = seconds.iter().map(|s| s * 1e9 / case.iterations as f64 / case.units as f64).collect();
    let name = format!("{}, {} thread{}", case.name, case.threads, if case.threads == 1 { "" } else { "s" });
    let ratio = case.bar.map_or(" ".repeat(10), |bar| format!("{:>10.2}", bar / each[0]));
    let native = each.get(1).map_or(String::new(), |ns| format!("  (native code on one thread {ns:.2})"));
    println!("{name:<48}{:>10.2} ns{ratio}{native}", each[0]);
    if let Some(bar) = case.bar {
        worst.take(&name, bar / each[0]);
    }
}

/// A copy of `count` runs of `len` elements of four bytes, in the engine and in the designs.
fn measure_copy(source: Source, len: usize, count: usize, has_bar: bool, worst: &mut Worst) {
    let iterations = (1 << 22) / (len * count).max(1 << 14);
    let row = 2 * len;
    let (lists, at) = match source {
        Source::Gapped => (String::new(), ("i", "i")),
        Source::Shuffled => {
            let list = |seed| designs::shuffled(count, seed);
            (format!("let p = {:?};\nlet q = {:?};\n", list(1), list(2)), ("p[i]", "q[i]"))
        }
    };
    let text = format!(
        "{lists}var x: f32[{count}, {row}];\nvar y: f32[{count}, {row}];
        program main() {{ repeat {iterations} {{
            copy runs {{ for i in 0..{count} {{ y[{}, 0..{len}] <- x[{}, 0..{len}]; }} }}
        }} }}",
        at.1, at.0
    );
    let compiled = Compiled::new("supersteps.gir", text, "gc200", &[]);
    let (mut one, mut two) = (compiled.engine(1, "main"), compiled.engine(2, "main"));
    let segments: Vec<Segment> = designs::segments(source, 4 * len, count);
    let mut native = designs::all(source, 4 * len, count, &segments);
    let mut runners = vec![timed(|| one.run()), timed(|| two.run())];
    for (_, design) in &mut native {
        runners.push(timed(move || (0..iterations).for_each(|_| design())));
    }
    let seconds = interleaved(WINDOWS, Duration::ZERO, &mut runners);
    drop(runners);
    let each: Vec<f64> = seconds.iter().map(|s| s * 1e9 / iterations as f64 / count as f64).collect();
    let best = each[2..].iter().copied().fold(f64::INFINITY, f64::min);
    let name = format!("copy of {count} runs of {} bytes, {}", 4 * len, source.name());
    let designs: String = native.iter().zip(&each[2..]).map(|((n, _), ns)| format!("  {n} {ns:.2}")).collect();
    let share = best / each[0];
    let ratio = if has_bar { format!("{:>10.2}", share / 0.8) } else { " ".repeat(10) };
    println!("{name:<48}{:>10.2} ns{ratio}  ({share:.2} of the best; two threads {:.2};{designs})", each[0], each[1]);
    if has_bar {
        worst.take(&name, share / 0.8);
    }
}

fn main() {
    let wanted = std::env::args().skip(1).find(|a| a != "--bench").unwrap_or_default();
    let mut worst = Worst::new();
    println!("{:<48}{:>13}{:>10}", "", "each", "ratio");
    let cases = [
        empty("empty set", 1, Some(60.0), 1, ""),
        empty("empty set", 2, Some(400.0), 1, ""),
        empty("set of 64 small vertices", 1, Some(60.0), 64, "x += 1.0;"),
        empty("set of 64 small vertices", 2, Some(400.0), 64, "x += 1.0;"),
        empty("set of 2000 small vertices", 1, None, 2000, "x += 1.0;"),
        empty("set of 2000 small vertices", 2, None, 2000, "x += 1.0;"),
        barrier(),
        family(1, None),
        family(2, Some(0.5)),
        irregular(1, None),
        irregular(2, Some(3.0)),
    ];
    for case in cases.iter().filter(|c| c.name.contains(&wanted)) {
        measure_case(case, &mut worst);
    }
    if "copy".contains(&wanted) {
        for (len, count) in [(1, 4096), (4, 4096), (16, 4096), (64, 4096), (256, 1024)] {
            measure_copy(Source::Gapped, len, count, len == 16, &mut worst);
        }
        for (len, count) in [(1, 65536), (4, 65536), (16, 32768), (256, 8192)] {
            measure_copy(Source::Shuffled, len, count, len == 16, &mut worst);
        }
    }
    worst.print();
}
