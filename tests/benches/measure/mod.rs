//! What the benches of runs share: a program as it is run, windows of time in turn, and the worst ratio.
//!
//! Invariant: what is compared is measured in turn, window by window; a figure is the lower quartile of its windows,
//! because all that disturbs a window makes it longer.

use girder::{Arguments, Compilation, Options, Stage};
use girder_engine::{Engine, Executable, Mode, Silent};
use girder_ir::graph::Graph;
use girder_ir::ids::ProgramId;
use girder_source::Session;
use std::time::{Duration, Instant};

/// A text compiled for mode `fast`.
pub struct Compiled {
    executable: Executable,
    session: Session,
}

impl Compiled {
    /// Compiles a text for a machine that is built in.
    ///
    /// # Panics
    /// If it does not compile.
    pub fn new(path: &str, text: impl Into<String>, target: &str, args: &[(&str, &str)]) -> Compiled {
        let machine = girder_machine::builtin(target).expect("a machine that is built in");
        let list = args.iter().map(|&(name, value)| (name.into(), value.into())).collect();
        let arguments = Arguments { list };
        let session = Session::default();
        let mut compilation = Compilation::new(Options { machine, arguments, session: session.clone() });
        let root = compilation.add(path, text).expect("less than 4 GiB");
        let made = compilation.stage(root, Stage::Allocated);
        match made.and_then(|stage| compilation.executable(stage, &[Mode::Fast])) {
            Ok(executable) => Compiled { executable, session },
            Err(_) => {
                compilation.diagnostics.iter().for_each(|d| eprintln!("{}: {}", d.code, d.message));
                panic!("a program of the bench does not compile");
            }
        }
    }

    /// A program of it that can be run again and again.
    pub fn engine(&self, threads: usize, program: &str) -> Running<'_> {
        let engine = Engine::load(&self.executable, Mode::Fast, threads, &self.session).expect("memory");
        let mut programs = self.executable.allocated.programs.iter();
        let (program, _) = programs.find(|(_, p)| p.name == program).expect("a program of this name");
        Running { engine, graph: &self.executable.allocated, program }
    }
}

/// See [`Compiled::engine`].
pub struct Running<'e> {
    engine: Engine<'e>,
    graph: &'e Graph,
    program: ProgramId,
}

impl Running<'_> {
    /// Sets element i of a variable to `value(i)`.
    #[allow(dead_code, reason = "each bench uses what it needs")]
    pub fn set(&mut self, name: &str, value: impl Fn(usize) -> f32) {
        let (id, var) = self.graph.vars.iter().find(|(_, v)| v.name == name).expect("a variable of this name");
        let bytes: Vec<u8> = (0..var.len() as usize).flat_map(|i| value(i).to_le_bytes()).collect();
        self.engine.set(id, &bytes).expect("a variable of f32");
    }

    /// Runs it once.
    pub fn run(&mut self) {
        self.engine.run(self.program, &mut Silent).expect("a program that does not fail");
    }
}

/// A thing to measure: it does its work once, and may say itself how long that took.
pub type Runner<'a> = Box<dyn FnMut() -> Option<Duration> + 'a>;

/// Something that is timed from outside.
pub fn timed<'a>(mut work: impl FnMut() + 'a) -> Runner<'a> {
    Box::new(move || {
        work();
        None
    })
}

/// The lower quartile of `windows` windows of each, taken in turn, in seconds.
pub fn in_turn(windows: usize, pause: Duration, runners: &mut [Runner<'_>]) -> Vec<f64> {
    let mut times = vec![Vec::with_capacity(windows); runners.len()];
    for window in 0..=windows {
        for (runner, times) in runners.iter_mut().zip(&mut times) {
            std::thread::sleep(pause);
            let start = Instant::now();
            let said = runner();
            let took = said.unwrap_or(start.elapsed());
            // The first window warms up.
            if window > 0 {
                times.push(took.as_secs_f64());
            }
        }
    }
    times.iter_mut().for_each(|t| t.sort_by(f64::total_cmp));
    times.iter().map(|t| t[t.len() / 4]).collect()
}

/// The least of the ratios that have a bar.
pub struct Worst(f64, String);

impl Worst {
    /// Of none yet.
    pub fn new() -> Worst {
        Worst(f64::INFINITY, String::new())
    }

    /// Takes the ratio of what is asked to what was measured; at least 1 is as asked.
    pub fn take(&mut self, name: &str, ratio: f64) {
        if ratio < self.0 {
            *self = Worst(ratio, name.to_string());
        }
    }

    /// Prints the last line of a bench.
    pub fn print(&self) {
        match self.0.is_finite() {
            true => println!("\nworst ratio: {:.2} ({})", self.0, self.1),
            false => println!("\nnothing that ran has a bar"),
        }
    }
}
