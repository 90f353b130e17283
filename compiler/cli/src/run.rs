//! `girder run`: compile a program and run it.

use crate::entries;
use crate::files::{NamedFiles, array_of};
use crate::host::Console;
use crate::inputs::{self, Input};
use crate::memory;
use crate::options::{Compile, once};
use crate::report::{Done, Report, Stop};
use crate::stats::StatsFormat;
use crate::timeline;
use crate::variables::Variables;
use girder::engine::{Engine, Mode, RunError};
use girder::ir::graph::Graph;
use girder::ir::ids::ProgramId;
use girder::profile::Profiler;
use girder::source::{Diagnostic, SourceMap};
use girder::{AnyStage, Early};
use std::path::PathBuf;

/// Compile a program and run it.
#[derive(clap::Args)]
pub struct Run {
    /// A `.gir` file, or a directory that contains one of its own name.
    file: PathBuf,
    /// The programs to run, in order; by default `main`, or the only program.
    programs: Vec<String>,
    /// Set a variable or a remote buffer before the run: `--set w=w.npy`, `--set w=all.npz:w`.
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
    /// Write the packets of an `out` stream to a file, as one array: `.npy` or `.npz`.
    #[arg(long = "out", value_name = "STREAM=FILE")]
    outputs: Vec<String>,
    /// Draw what `out` streams carried, a panel for each, to a `.svg` file.
    #[arg(long = "plot", value_name = "STREAM,…=FILE")]
    plots: Vec<String>,
    /// Write a variable or a remote buffer after the run, as `.npy` or `.npz`; without a file, print it.
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
        self.name_files(&mut input.files);
        input.files.check(report)?;
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
        input.files.reads_modules(&input.compilation.map);
        input.files.check(report)?;
        let graph = start.graph();
        let programs = entries::chosen(graph, &self.programs, report)?;
        entries::take_arguments(&start, &programs, &self.compile.args, report)?;
        // The streams of the file's head come last: the first file of a stream feeds it.
        let streams: Vec<String> = self.inputs.iter().chain(&input.streams).cloned().collect();
        let limits = &input.compilation.options.session.limits;
        let console = Console::new(graph, &streams, &self.outputs, &self.plots, limits, report)?;
        let mut variables = Variables::default();
        self.load.iter().try_for_each(|path| variables.load(path, graph, report))?;
        self.set.iter().try_for_each(|text| variables.set(text, graph, report))?;
        self.get.iter().try_for_each(|text| variables.get(text, graph, report))?;
        self.save.iter().try_for_each(|path| variables.save(path, graph, report))?;
        memory::bound(limits, true, report);
        let run = Execution { args: self, programs, console, variables };
        if let (Mode::Fast, false) = (mode, self.is_profiled()) {
            // The run's reports come after those of the passes, which it does not wait for.
            let late = report.held();
            let done = input.compilation.run_beside(start, |early| run.beside(early, &late));
            let done = input.reported(done, report)?;
            late.release();
            return done;
        }
        let stage = input.lower(start, report)?;
        run.after(&mut input, stage, mode, report)
    }

    /// Adds the files of the options.
    fn name_files(&self, files: &mut NamedFiles) {
        let file = |text: &String| text.split_once('=').map(|(_, file)| file.to_string());
        let of = |texts: &[String]| texts.iter().filter_map(file).collect::<Vec<_>>();
        for input in of(&self.inputs) {
            files.reads(array_of(&input).0, "`--in` reads");
        }
        // Variables are set before anything is written. Of an archive, that would leave one of its arrays.
        for set in of(&self.set) {
            if let (archive, Some(_)) = array_of(&set) {
                files.reads_but_for(archive, "`--set` reads and which holds several arrays", "--save");
            }
        }
        self.load.iter().for_each(|file| files.reads_but_for(file, "`--load` reads", "--save"));
        for (flag, texts) in [("--out", &self.outputs), ("--plot", &self.plots), ("--get", &self.get)] {
            of(texts).iter().for_each(|file| files.writes(file, flag));
        }
        self.save.iter().for_each(|file| files.writes(file, "--save"));
        self.timeline.iter().for_each(|file| files.writes(file, "--timeline"));
    }

    /// Returns whether the time of the run is modelled.
    fn is_profiled(&self) -> bool {
        self.stats.is_some() || self.timeline.is_some()
    }

    fn threads(&self) -> usize {
        self.threads.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from)
    }
}

/// Programs that are about to run, with their surroundings.
struct Execution<'a> {
    args: &'a Run,
    programs: Vec<ProgramId>,
    console: Console,
    variables: Variables,
}

impl Execution<'_> {
    /// Runs in mode fast while the passes make the tables of the machine. Files are written after the last pass.
    fn beside(mut self, early: &Early, report: &Report) -> Done {
        let fail = failing(early.map, report);
        let mut engine = early.engine(self.args.threads()).map_err(|e| fail(e.diagnostic()))?;
        self.fill(&mut engine, early.graph(), report)?;
        if !early.is_race_free() {
            return Err(Stop::User);
        }
        engine.place(|| early.placement());
        let ran = self.programs.iter().try_for_each(|&p| engine.run(p, &mut self.console).map(|_| ()));
        if !early.fits() {
            self.console.clear();
            return Err(Stop::User);
        }
        self.finish(&engine, ran, early.graph(), early.map, report)
    }

    /// Runs a program whose tables are made.
    fn after(mut self, input: &mut Input, stage: AnyStage, mode: Mode, report: &Report) -> Done {
        let profiled = self.args.is_profiled();
        let compiled = match profiled {
            false => input.compilation.executable(stage, &[mode]),
            true => input.compilation.executable_counting(stage, &[mode]),
        };
        let executable = input.reported(compiled, report)?;
        let (graph, map): (&Graph, _) = (&executable.allocated, &input.compilation.map);
        let session = &input.compilation.options.session;
        let fail = failing(map, report);
        let mut engine =
            Engine::load(&executable, mode, self.args.threads(), session).map_err(|e| fail(e.diagnostic()))?;
        self.fill(&mut engine, graph, report)?;
        let mut profiler = profiled.then(|| Profiler::new(&executable.allocated, &executable.machine));
        if let (Some(profiler), Some(_)) = (&mut profiler, &self.args.timeline) {
            profiler.record_timeline();
        }
        let console = &mut self.console;
        let ran = self.programs.iter().try_for_each(|&p| match &mut profiler {
            None => engine.run(p, console).map(|_| ()),
            Some(profiler) => engine.run_traced(p, console, profiler).map(|_| ()),
        });
        self.finish(&engine, ran, graph, map, report)?;
        let args = self.args;
        if let (Some(file), Some(found)) = (&args.timeline, profiler.as_ref().and_then(Profiler::timeline)) {
            timeline::draw(found, file, report)?;
        }
        match (args.stats, profiler) {
            (Some(format), Some(profiler)) => format.print(&profiler.profile(map)),
            _ => Ok(()),
        }
    }

    /// Reads the files of streams and variables.
    fn fill(&mut self, engine: &mut Engine, graph: &Graph, report: &Report) -> Done {
        self.console.fill(graph, report)?;
        self.variables.fill(engine, graph, report)
    }

    /// Writes the files of streams and, if the run has succeeded, of variables.
    fn finish(
        &mut self,
        engine: &Engine,
        ran: Result<(), RunError>,
        graph: &Graph,
        map: &SourceMap,
        report: &Report,
    ) -> Done {
        self.console.finish(graph, report)?;
        ran.map_err(|e| failing(map, report)(e.diagnostic()))?;
        self.variables.finish(engine, graph, report)
    }
}

/// Returns a function that reports an error.
fn failing<'a>(map: &'a SourceMap, report: &'a Report) -> impl Fn(Diagnostic) -> Stop + 'a {
    move |d| {
        report.emit(&d, map);
        Stop::User
    }
}
