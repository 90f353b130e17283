//! From the text of every example to its first superstep, stage by stage.
//!
//! `cargo bench -p girder-tests --bench compile [-- SUBSTRING]` prints a table for the examples whose paths contain the
//! substring: medians in milliseconds, then the worst ratio of a total to its bar. Every repetition is a process of its
//! own, as a user's is. Repetitions of the examples are interleaved, so that other work on the machine affects all of
//! them alike. The first superstep is the program's own work: it is shown, but not part of the total.
//!
//! Invariant: an example is compiled as the command would compile it, with the options of its head, in the fast mode on
//! as many threads as there are processors.

use girder_engine::Mode;
use girder_passes::pipeline::PASSES;
use girder_tests::{Program, files};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Milliseconds from text to the first superstep.
const BAR: f64 = 50.0;
/// Processes for each example.
const REPETITIONS: usize = 9;
/// The columns of the table, by the names of the timings: a pass has its own.
fn columns() -> Vec<&'static str> {
    let passes = PASSES.iter().map(|pass| pass.name);
    ["parse", "elaborate"].into_iter().chain(passes).chain(["codegen", "load", "total", "first superstep"]).collect()
}

/// The heading of a column: the first word of a name such as `place-tiles`, the last of others.
fn heading(name: &str) -> &str {
    name.split_once('-').map_or(name, |(first, _)| first).split(' ').next_back().unwrap_or(name)
}

/// Prints the name and the nanoseconds of each stage.
fn child(path: &str, superstep: bool) {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let program = Program::file(path);
    for (name, time) in program.start(Mode::Fast, threads, superstep) {
        println!("{name}={}", time.as_nanos());
    }
}

/// Milliseconds by stage of one process.
fn measure(path: &Path, superstep: bool) -> BTreeMap<String, f64> {
    let me = std::env::current_exe().expect("the bench has a path");
    let output = Command::new(me)
        .arg(if superstep { "--run" } else { "--start" })
        .arg(path)
        .output()
        .expect("the bench can be started");
    assert!(output.status.success(), "{}: {}", path.display(), String::from_utf8_lossy(&output.stderr));
    let row = |line: &str| {
        let (name, time) = line.split_once('=')?;
        Some((name.to_string(), time.parse::<f64>().ok()? / 1e6))
    };
    String::from_utf8_lossy(&output.stdout).lines().filter_map(row).collect()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    if let [flag, path] = &args[..]
        && ["--run", "--start"].contains(&flag.as_str())
    {
        return child(path, flag == "--run");
    }
    let wanted = |path: &Path| args.first().is_none_or(|a| path.to_string_lossy().contains(a.as_str()));
    let paths: Vec<_> = files::examples().into_iter().filter(|p| wanted(p)).collect();
    let mut found: Vec<Vec<BTreeMap<String, f64>>> = vec![vec![]; paths.len()];
    for repetition in 0..REPETITIONS {
        paths.iter().zip(&mut found).for_each(|(path, times)| times.push(measure(path, repetition == 0)));
    }
    let columns = columns();
    let names: String = columns.iter().map(|name| format!("{:>10}", heading(name))).collect();
    println!("{:<24}{names}", "milliseconds, medians");
    let mut worst = (0.0f64, String::new());
    for (path, repetitions) in paths.iter().zip(&found) {
        let name = path.strip_prefix("examples").unwrap_or(path).with_extension("").display().to_string();
        let of = |column: &str| median(repetitions.iter().filter_map(|times| times.get(column).copied()).collect());
        let row: String = columns.iter().map(|name| format!("{:>10.2}", of(name))).collect();
        println!("{name:<24}{row}");
        let ratio = of("total") / BAR;
        if ratio > worst.0 {
            worst = (ratio, name);
        }
    }
    println!("\nworst ratio to the {BAR} ms that a start may take: {:.2} ({})", worst.0, worst.1);
}
