//! Whole models: heat on a square, training on digits, and a step of training a perceptron.
//!
//! `cargo bench -p girder-tests --bench models [-- SUBSTRING]` prints a line for each model whose name contains the
//! substring: the time per step on two threads, and the ratio of its bar to it, which should be at least 1; then the
//! worst ratio. Heat and digits are compared with equivalent C, compiled by `cc` with all optimisations and OpenMP;
//! repetitions of both are interleaved. The bar of heat is 0.9 of the speed of C. The bar of the perceptron is a time.
//!
//! Invariant: C and Girder compute the same function on as many elements and as many threads.

mod measure;

// With the memory that the command has.
use girder_tests as _;
use measure::{Compiled, Runner, Running, Worst, interleaved, timed};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

const THREADS: usize = 2;

fn here(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/models").join(name)
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// A process that does the work of a C program whenever it is told to.
struct Native {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Native {
    fn compile(name: &str) -> Native {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let (source, program) = (folder.join(format!("{name}.c")), folder.join(name));
        let both = text(&here(&format!("{name}.c"))) + &text(&here("main.c"));
        std::fs::write(&source, both).expect("a folder for what is compiled");
        let flags = ["-O3", "-march=native", "-ffast-math", "-fopenmp", "-o"];
        let done = Command::new("cc").args(flags).arg(&program).arg(&source).arg("-lm").status();
        assert!(done.expect("a C compiler").success(), "{name}.c does not compile");
        let mut command = Command::new(&program);
        // Its threads wait for the next loop, but not so long that they are in the way of what is measured next.
        command.env("OMP_NUM_THREADS", THREADS.to_string()).env("GOMP_SPINCOUNT", "10000");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("what was compiled starts");
        let (to, from) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
        Native { child, to, from: BufReader::new(from) }
    }

    fn work(&mut self) -> Duration {
        let mut line = String::new();
        self.to.write_all(b"\n").and_then(|()| self.to.flush()).expect("a program that listens");
        self.from.read_line(&mut line).expect("a program that answers");
        Duration::from_nanos(line.trim().parse().expect("a number"))
    }
}

impl Drop for Native {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A program of `steps` steps against C that takes as many, of which the share `bar` is asked.
fn against_c(name: &str, mut running: Running<'_>, c: &str, steps: usize, bar: Option<f64>, worst: &mut Worst) {
    let mut native = Native::compile(c);
    let mut runners: [Runner<'_>; 2] = [timed(|| running.run()), Box::new(|| Some(native.work()))];
    // Threads of either that spin for more work sleep when the other begins.
    let seconds = interleaved(15, Duration::from_millis(10), &mut runners);
    let [ours, theirs] = [seconds[0], seconds[1]].map(|s| s * 1e6 / steps as f64);
    let share = theirs / ours;
    let ratio = bar.map_or(" ".repeat(10), |bar| format!("{:>10.2}", share / bar));
    println!("{name:<32}{ours:>10.1} us{ratio}  ({share:.2} of C, which takes {theirs:.1})");
    if let Some(bar) = bar {
        worst.take(name, share / bar);
    }
}

fn heat(file: &str, worst: &mut Worst) {
    let path = here(&format!("{file}.gir"));
    let compiled = Compiled::new(&path.display().to_string(), text(&path), "gc200", &[]);
    let mut running = compiled.engine(THREADS, "main");
    running.set("a", |i| (i % 101) as f32);
    against_c(file, running, "heat", 100, Some(0.9), worst);
}

fn chain(worst: &mut Worst) {
    let path = here("chain.gir");
    let compiled = Compiled::new(&path.display().to_string(), text(&path), "gc200", &[]);
    let mut running = compiled.engine(THREADS, "main");
    running.set("w", |i| (i % 101) as f32);
    running.set("g", |i| (i % 7) as f32);
    against_c("chain", running, "chain", 50, None, worst);
}

fn digits(worst: &mut Worst) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/digits/digits.gir");
    let compiled = Compiled::new(&path.display().to_string(), text(&path), "gc200", &[("steps", "50")]);
    against_c("digits", compiled.engine(THREADS, "main"), "digits", 50, None, worst);
}

/// What JAX needs for a step on two threads of the machine of the reference, in microseconds.
const JAX: f64 = 400.0;

fn mlp(worst: &mut Worst) {
    let path = here("mlp.gir");
    let compiled = Compiled::new(&path.display().to_string(), text(&path), "gc200", &[]);
    let mut running = compiled.engine(THREADS, "main");
    let number = |i: usize| ((i * 7919 + 13) % 1009) as f32 / 1009.0 - 0.5;
    running.set("x", number);
    running.set("w1", |i| number(i) / 28.0);
    running.set("w2", |i| number(i) / 23.0);
    let seconds = interleaved(15, Duration::ZERO, &mut [timed(|| running.run())])[0];
    let us = seconds * 1e6 / 10.0;
    println!("{:<32}{us:>10.1} us{:>10.2}  (the bar is {JAX})", "mlp", JAX / us);
    worst.take("mlp", JAX / us);
}

fn main() {
    let wanted = std::env::args().skip(1).find(|a| a != "--bench").unwrap_or_default();
    let mut worst = Worst::new();
    println!("{:<32}{:>13}{:>10}", "", "a step", "ratio");
    for file in ["heat", "heat_rings"].into_iter().filter(|f| f.contains(&wanted)) {
        heat(file, &mut worst);
    }
    if "chain".contains(&wanted) {
        chain(&mut worst);
    }
    if "digits".contains(&wanted) {
        digits(&mut worst);
    }
    if "mlp".contains(&wanted) {
        mlp(&mut worst);
    }
    worst.print();
}
