//! `girder run`: compile a program and run it.

use crate::entries;
use crate::host::Console;
use crate::inputs::{self, Input};
use crate::memory;
use crate::options::{Compile, once, pair};
use crate::report::{Done, Report, Stop, print};
use crate::stats::StatsFormat;
use girder::engine::{Engine, FastCode, Mode};
use girder::ir::graph::{Graph, Var};
use girder::ir::ids::{ProgramId, VarId};
use girder::profile::Profiler;
use girder::{AnyStage, Array, Stage, arrays};
use std::path::{Path, PathBuf};

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
    /// Feed an `in` stream: the packets of an array, in order.
    #[arg(long = "in", value_name = "STREAM=FILE")]
    inputs: Vec<String>,
    /// Write the packets of an `out` stream to a file, as one array.
    #[arg(long = "out", value_name = "STREAM=FILE")]
    outputs: Vec<String>,
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
        for (flag, texts) in [("--set", &self.set), ("--in", &self.inputs), ("--out", &self.outputs)] {
            once(report, flag, texts)?;
        }
        let mut input = inputs::open(&self.file, &self.compile, report)?;
        let cancel = input.compilation.options.session.cancel.clone();
        // `set_handler` fails only if a handler is set already, and this is the only one.
        let _ = ctrlc::set_handler(move || cancel.cancel());
        let mode = match self.mode {
            ModeName::Fast => Mode::Fast,
            ModeName::Exact => Mode::Exact,
            ModeName::Interpret => Mode::Interpret,
        };
        let (stage, code) = match (mode, self.stats) {
            (Mode::Fast, None) => input.stage_and_code(report)?,
            _ => (input.stage(Stage::Allocated, report)?, None),
        };
        let programs = entries::chosen(stage.graph(), &self.programs, report)?;
        // The streams of the file's head come last: the first file of a stream feeds it.
        let streams: Vec<String> = self.inputs.iter().chain(&input.streams).cloned().collect();
        let console = Console::new(stage.graph(), &streams, &self.outputs, report)?;
        let gets = self.gets(stage.graph(), report)?;
        self.execute(&mut input, (stage, code), mode, &programs, console, &gets, report)
    }

    #[allow(clippy::too_many_arguments)]
    fn execute(
        &self,
        input: &mut Input,
        (stage, code): (AnyStage, Option<FastCode>),
        mode: Mode,
        programs: &[ProgramId],
        mut console: Console,
        gets: &[(VarId, Option<PathBuf>)],
        report: &Report,
    ) -> Done {
        let compiled = match self.stats {
            None => input.compilation.executable_with(stage, code, &[mode]),
            Some(_) => input.compilation.executable_counting(stage, &[mode]),
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
        for s in &self.set {
            let (name, file) = pair(report, "--set", s)?;
            let var = variable(graph, name, "--set", report)?;
            let v = &graph.vars[var];
            let array = read_array(file, "--set", report)?;
            check_array(&array, v.ty, v.len(), &format!("`{name}`"), &v.shape, file, report)?;
            engine.set(var, &array.bytes).map_err(|e| fail(e.diagnostic()))?;
        }
        let mut failed = None;
        let mut profiler = self.stats.map(|_| Profiler::new(&executable.allocated, &executable.machine));
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
        for (var, file) in gets {
            let v = &graph.vars[*var];
            let bytes = engine.get(*var).map_err(|e| fail(e.diagnostic()))?;
            match file {
                None => print(&format!("{} {}\n", v.name, girder::show(v.ty, &v.shape, &bytes)))?,
                Some(path) => {
                    let array = Array { ty: v.ty, shape: v.shape.to_vec(), bytes: bytes.into() };
                    write_array(path, &array, report)?;
                }
            }
        }
        match (self.stats, profiler) {
            (Some(format), Some(profiler)) => format.print(&profiler.profile(&input.compilation.map)),
            _ => Ok(()),
        }
    }

    fn gets(&self, graph: &Graph, report: &Report) -> Result<Vec<(VarId, Option<PathBuf>)>, Stop> {
        let one = |text: &String| {
            let (name, file) = match text.split_once('=') {
                Some((name, file)) => (name, Some(PathBuf::from(file))),
                None => (text.as_str(), None),
            };
            let var = variable(graph, name, "--get", report)?;
            if let Some(path) = &file {
                writable(path, report)?;
            }
            Ok((var, file))
        };
        self.get.iter().map(one).collect()
    }
}

/// Finds a persistent variable by name.
fn variable(graph: &Graph, name: &str, flag: &str, report: &Report) -> Result<VarId, Stop> {
    let known: Vec<_> = graph.vars.iter().filter(|(_, v)| v.is_persistent()).collect();
    match known.iter().copied().find(|(_, v)| v.name == name) {
        Some((id, _)) => Ok(id),
        None => {
            // Constants of bodies are persistent as well, but have no name that a user wrote.
            let is_on_top = |v: &Var| graph.origins.get(v.origin).parent.is_none() && !v.name.starts_with("constant");
            let names: Vec<&str> = known.iter().filter(|(_, v)| is_on_top(v)).map(|(_, v)| v.name.as_str()).collect();
            let temporary = graph.vars.values().any(|v| v.name == name);
            let why = if temporary { "is a temporary and keeps no value" } else { "does not exist" };
            let help = match names.is_empty() {
                true => "declare it at the top of the module: `var x: f32[4];`".to_string(),
                false => format!("variables at the top of the module are {}", names.join(", ")),
            };
            Err(report.error("run::no_variable", format!("`{flag} {name}`: the variable {why}"), help))
        }
    }
}

/// Reads an array from `file.npy`, `file.npz` or `file.npz:key`.
pub fn read_array(text: &str, flag: &str, report: &Report) -> Result<Array, Stop> {
    let (path, key) = match text.rsplit_once(':') {
        Some((path, key)) if path.ends_with(".npz") => (path, Some(key)),
        _ => (text, None),
    };
    arrays::read(Path::new(path), key).map_err(|e| {
        let help = "`.npy` files, and arrays of `.npz` files as `file.npz:name`, can be read";
        report.error("run::cannot_read", format!("`{flag}`: cannot read {path}: {e}"), help)
    })
}

/// Writes a `.npy` file.
pub fn write_array(path: &Path, array: &Array, report: &Report) -> Done {
    arrays::write(path, array).map_err(|e| cannot_write(path, e, report))
}

/// Checks that a file can be written before the run; changes nothing.
pub fn writable(path: &Path, report: &Report) -> Done {
    let is_new = !path.exists();
    std::fs::OpenOptions::new().append(true).create(true).open(path).map_err(|e| cannot_write(path, e, report))?;
    if is_new {
        // The run creates the file again; a file that cannot be removed does no harm.
        let _ = std::fs::remove_file(path);
    }
    Ok(())
}

fn cannot_write(path: &Path, error: impl std::fmt::Display, report: &Report) -> Stop {
    let help = "name a file in a directory that exists";
    report.error("driver::cannot_write", format!("cannot write {}: {error}", path.display()), help)
}

/// Checks that an array has the elements of a variable.
fn check_array(
    array: &Array,
    ty: girder::ir::types::ElemType,
    len: u64,
    what: &str,
    shape: &[u64],
    file: &str,
    report: &Report,
) -> Done {
    let fits =
        array.shape == shape || (array.shape.iter().product::<u64>() == len && (len == 1 || array.shape.len() == 1));
    if array.ty == ty && fits {
        return Ok(());
    }
    let found = girder::shaped(array.ty, &array.shape);
    let wanted = girder::shaped(ty, shape);
    let help = "save it with NumPy in the variable's type and shape: `np.save(file, x.astype(np.float32))`";
    Err(report.error("run::wrong_array", format!("{file} holds {found}, but {what} is {wanted}"), help))
}

fn default_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
