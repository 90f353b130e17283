//! What the benches of runs share: a program that can be run, interleaved windows of time, and the worst ratio.
//!
//! Invariant: things that are compared are measured in interleaved windows. A figure is the lower quartile of its
//! windows, because a disturbance can only make a window longer.

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

    /// Loads a program of the text, to be run any number of times.
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

/// Work to measure: each call does it once, and may return the time that it took.
pub type Runner<'a> = Box<dyn FnMut() -> Option<Duration> + 'a>;

/// Wraps work that does not measure its own time.
pub fn timed<'a>(mut work: impl FnMut() + 'a) -> Runner<'a> {
    Box::new(move || {
        work();
        None
    })
}

/// Measures `windows` interleaved windows of each runner. Returns the lower quartile of each, in seconds.
pub fn interleaved(windows: usize, pause: Duration, runners: &mut [Runner<'_>]) -> Vec<f64> {
    let mut times = vec![Vec::with_capacity(windows); runners.len()];
    for window in 0..=windows {
        for (runner, times) in runners.iter_mut().zip(&mut times) {
            std::thread::sleep(pause);
            let start = Instant::now();
            let took = runner().unwrap_or_else(|| start.elapsed());
            // The first window warms up.
            if window > 0 {
                times.push(took.as_secs_f64());
            }
        }
    }
    times.iter_mut().for_each(|t| t.sort_by(f64::total_cmp));
    times.iter().map(|t| t[t.len() / 4]).collect()
}

/// The least ratio, with its name.
pub struct Worst(f64, String);

impl Worst {
    /// Returns the worst of no ratios.
    pub fn new() -> Worst {
        Worst(f64::INFINITY, String::new())
    }

    /// Takes the ratio of a bar to what was measured, which should be at least 1.
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
