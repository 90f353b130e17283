//! `girder run`: compile a program and run it.

use crate::entries;
use crate::host::Console;
use crate::inputs::{self, Input};
use crate::memory;
use crate::options::{Compile, once};
use crate::report::{Done, Report, Stop};
use crate::stats::StatsFormat;
use crate::timeline;
use crate::variables::Variables;
use girder::AnyStage;
use girder::engine::{Engine, FastCode, Mode};
use girder::ir::graph::Graph;
use girder::ir::ids::ProgramId;
use girder::profile::Profiler;
use std::path::PathBuf;

/// Compile a program and run it.
#[derive(clap::Args)]
pub struct Run {
    /// A `.gir` file, or a directory that contains one of its own name.
    file: PathBuf,
    /// The programs to run, in order; by default `main`, or the only program.
    programs: Vec<String>,
    /// Set a variable before the run: `--set w=w.npy`, `--set w=all.npz:w`.
    #[arg(long, value_name = "VAR=FILE")]
    set: Vec<String>,
    /// Set all params and states before the run, from a file that `--save` wrote; `--set` comes later.
    #[arg(long, value_name = "FILE")]
    load: Option<PathBuf>,
    /// Write all params and states after the run, to a `.npz` or `.safetensors` file.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Feed an `in` stream: the packets of an array, in order.
    #[arg(long = "in", value_name = "STREAM=FILE")]
    inputs: Vec<String>,
    /// Write the packets of an `out` stream to a file, as one array.
    #[arg(long = "out", value_name = "STREAM=FILE")]
    outputs: Vec<String>,
    /// Draw what `out` streams carried, a panel for each, to a `.svg` file.
    #[arg(long = "plot", value_name = "STREAM,…=FILE")]
    plots: Vec<String>,
    /// Write a variable after the run; without a file, print it.
    #[arg(long, value_name = "VAR[=FILE]")]
    get: Vec<String>,
    /// How to run; every mode gives the same results.
    #[arg(long, value_enum, default_value_t = ModeName::Fast)]
    mode: ModeName,
    /// Number of threads; by default the number of cores of the host.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Print the modelled cycles of each step and the memory of tiles.
    #[arg(
        long,
        value_enum,
        value_name = "FORMAT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "table"
    )]
    stats: Option<StatsFormat>,
    /// Draw what each processor does when, to a `.svg` file.
    #[arg(long, value_name = "FILE")]
    timeline: Option<PathBuf>,
    #[command(flatten)]
    compile: Compile,
}

/// `--mode`
#[derive(Clone, Copy, clap::ValueEnum)]
enum ModeName {
    /// Compiled vertices on one shared memory.
    Fast,
    /// Compiled vertices on the memory of each tile; every transfer is performed.
    Exact,
    /// The reference interpreter.
    Interpret,
}

impl Run {
    /// Runs the subcommand.
    pub fn run(&self, report: &mut Report) -> Done {
        for (flag, texts) in
            [("--set", &self.set), ("--in", &self.inputs), ("--out", &self.outputs), ("--plot", &self.plots)]
        {
            once(report, flag, texts)?;
        }
        self.timeline.iter().try_for_each(|file| timeline::checked(file, report))?;
        let mut input = inputs::open(&self.file, &self.compile, report)?;
        let cancel = input.compilation.options.session.cancel.clone();
        // `set_handler` fails only if a handler is set already, and this is the only one.
        let _ = ctrlc::set_handler(move || cancel.cancel());
        let mode = match self.mode {
            ModeName::Fast => Mode::Fast,
            ModeName::Exact => Mode::Exact,
            ModeName::Interpret => Mode::Interpret,
        };
        // Everything that the command line names is checked before the passes run.
        let start = input.start(report)?;
        let graph = start.graph();
        let programs = entries::chosen(graph, &self.programs, report)?;
        // The streams of the file's head come last: the first file of a stream feeds it.
        let streams: Vec<String> = self.inputs.iter().chain(&input.streams).cloned().collect();
        let limits = &input.compilation.options.session.limits;
        let console = Console::new(graph, &streams, &self.outputs, &self.plots, limits, report)?;
        let mut variables = Variables::default();
        self.load.iter().try_for_each(|path| variables.load(path, graph, report))?;
        self.set.iter().try_for_each(|text| variables.set(text, graph, report))?;
        self.get.iter().try_for_each(|text| variables.get(text, graph, report))?;
        self.save.iter().try_for_each(|path| variables.save(path, graph, report))?;
        let lowered = match (mode, self.is_profiled()) {
            (Mode::Fast, false) => input.lower_with_code(start, report)?,
            _ => (input.lower(start, report)?, None),
        };
        self.execute(&mut input, lowered, mode, &programs, console, variables, report)
    }

    /// Returns whether the time of the run is modelled.
    fn is_profiled(&self) -> bool {
        self.stats.is_some() || self.timeline.is_some()
    }

    #[allow(clippy::too_many_arguments)]
    fn execute(
        &self,
        input: &mut Input,
        (stage, code): (AnyStage, Option<FastCode>),
        mode: Mode,
        programs: &[ProgramId],
        mut console: Console,
        mut variables: Variables,
        report: &Report,
    ) -> Done {
        let compiled = match self.is_profiled() {
            false => input.compilation.executable_with(stage, code, &[mode]),
            true => input.compilation.executable_counting(stage, &[mode]),
        };
        let Ok(executable) = compiled else {
            report.all(&input.compilation.diagnostics, &input.compilation.map);
            return Err(Stop::User);
        };
        let graph: &Graph = &executable.allocated;
        let threads = self.threads.map_or_else(default_threads, usize::from);
        let session = &input.compilation.options.session;
        let fail = |d: girder::source::Diagnostic| {
            report.emit(&d, &input.compilation.map);
            Stop::User
        };
        memory::bound(&session.limits, true, report);
        let mut engine = Engine::load(&executable, mode, threads, session).map_err(|e| fail(e.diagnostic()))?;
        console.fill(graph, report)?;
        variables.fill(&mut engine, graph, report)?;
        let mut failed = None;
        let mut profiler = self.is_profiled().then(|| Profiler::new(&executable.allocated, &executable.machine));
        if let (Some(profiler), Some(_)) = (&mut profiler, &self.timeline) {
            profiler.record_timeline();
        }
        for &p in programs {
            let ran = match &mut profiler {
                None => engine.run(p, &mut console),
                Some(profiler) => engine.run_traced(p, &mut console, profiler),
            };
            if let Err(e) = ran {
                failed = Some(e);
                break;
            }
        }
        console.finish(graph, report)?;
        if let Some(e) = failed {
            return Err(fail(e.diagnostic()));
        }
        variables.finish(&engine, graph, report)?;
        if let (Some(file), Some(found)) = (&self.timeline, profiler.as_ref().and_then(Profiler::timeline)) {
            timeline::draw(found, file, report)?;
        }
        match (self.stats, profiler) {
            (Some(format), Some(profiler)) => format.print(&profiler.profile(&input.compilation.map)),
            _ => Ok(()),
        }
    }
}

fn default_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
