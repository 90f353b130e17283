//! A program with its options, and its compiled form.

use crate::files;
use crate::outcome::{Outcome, Recorder};
use girder::{After, AnyStage, Arguments, Array, Compilation, Head, Options, Stage, arrays, show};
use girder_engine::{Engine, EngineError, Executable, Mode};
use girder_ir::graph::Graph;
use girder_ir::ids::ProgramId;
use girder_machine::Machine;
use girder_profile::{Profile, Profiler, Timeline};
use girder_source::{Diagnostics, FileId, Limits, Session, SourceMap};
use std::path::Path;

/// All modes, the reference first.
pub const MODES: [Mode; 3] = [Mode::Interpret, Mode::Fast, Mode::Exact];

/// A text with the options of its compilation and its runs.
#[derive(Clone, Debug)]
pub struct Program {
    path: String,
    text: String,
    pub(crate) machine: Machine,
    arguments: Arguments,
    limits: Limits,
    allow_over_memory: bool,
    batched: bool,
    without: Vec<&'static str>,
    streams: Vec<(String, Array)>,
}

/// The reports about a program that does not compile.
#[derive(Clone, Debug)]
pub struct Failure {
    /// All diagnostics.
    pub diagnostics: Diagnostics,
    /// All text.
    pub map: SourceMap,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.diagnostics.iter().try_for_each(|d| f.write_str(&d.render(&self.map, false, 120)))
    }
}

/// A compiled program.
pub struct Compiled {
    /// Warnings.
    pub diagnostics: Diagnostics,
    /// All text.
    pub map: SourceMap,
    executable: Executable,
    session: Session,
    streams: Vec<(String, Array)>,
}

impl Program {
    /// Takes a text with the options of its head, for `machine` if it names no other. Files that it names are relative
    /// to `path`.
    pub fn new(path: impl AsRef<Path>, text: impl Into<String>, machine: &str) -> Program {
        let (path, text) = (path.as_ref(), text.into());
        let head = Head::read(&text, path).unwrap_or_else(|words| panic!("{}: `{words}` in the head", path.display()));
        let (printed, replicas) = girder::text::target_of(&text).unzip();
        let target = head.target.or(printed).unwrap_or(machine.into());
        let machine = girder_machine::builtin(&target).unwrap_or_else(|| panic!("there is no machine `{target}`"));
        let machine = match head.replicas.or(replicas) {
            Some(r) => machine.replicated(r).unwrap_or_else(|e| panic!("{}", e.message)),
            None => machine,
        };
        let array = |file: &Path| array(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        let streams = head.streams.iter().map(|(name, file)| (name.clone(), array(file))).collect();
        let (arguments, limits) = (Arguments::default(), Limits::default());
        let allow_over_memory = head.allow_over_memory;
        let path = path.display().to_string();
        let (batched, without) = (true, vec![]);
        let program = Program { path, text, machine, arguments, limits, allow_over_memory, batched, without, streams };
        let program = head.args.iter().fold(program, |p, arg| p.arg(arg));
        head.limits.iter().fold(program, |p, limit| p.limit(limit))
    }

    /// Takes a text that is in no file, for the machine `small` if it names no other.
    pub fn text(text: impl Into<String>) -> Program {
        Program::new("test.gir", text, "small")
    }

    /// Reads a file of the repository, for the default machine of the command if it names no other.
    pub fn file(path: impl AsRef<Path>) -> Program {
        Program::new(files::root().join(path.as_ref()), files::text(path.as_ref()), "gc200")
    }

    /// Reads a file of the repository, for the machine `small` if it names no other.
    pub fn small(path: impl AsRef<Path>) -> Program {
        Program::new(files::root().join(path.as_ref()), files::text(path.as_ref()), "small")
    }

    /// Takes the printed text of a stage of this program, with the same streams and limits.
    pub fn resumed(&self, text: String) -> Program {
        Program { text, arguments: Arguments::default(), ..self.clone() }
    }

    /// Adds `--arg name=value`.
    pub fn arg(mut self, arg: &str) -> Program {
        let (name, value) = arg.split_once('=').unwrap_or_else(|| panic!("`{arg}` has no `=`"));
        self.arguments.list.push((name.into(), value.into()));
        self
    }

    /// Adds `--limit name=n`.
    pub fn limit(mut self, limit: &str) -> Program {
        let number = limit.split_once('=').and_then(|(name, n)| Some((name, n.parse().ok()?)));
        assert!(number.is_some_and(|(name, n)| self.limits.set(name, n)), "`{limit}` sets no limit");
        self
    }

    /// Adds `--allow-over-memory`.
    pub fn over_memory(mut self) -> Program {
        self.allow_over_memory = true;
        self
    }

    /// Leaves out all optional passes.
    pub fn without_optional_passes(mut self) -> Program {
        self.without = girder::PASSES.iter().filter(|p| p.optional).map(|p| p.name).collect();
        self
    }

    /// Turns batched evaluation off: loops are evaluated one iteration at a time.
    pub fn one_at_a_time(mut self) -> Program {
        self.batched = false;
        self
    }

    /// Sets the machine, a built-in one.
    pub fn target(mut self, name: &str) -> Program {
        self.machine = girder_machine::builtin(name).unwrap_or_else(|| panic!("there is no machine `{name}`"));
        self
    }

    /// Sets the machine, from a description.
    pub fn described(mut self, toml: &str) -> Program {
        self.machine = Machine::from_toml(toml).unwrap_or_else(|e| panic!("{}", e.message));
        self
    }

    /// Lets some replicas run the program, each on its part of the machine.
    pub fn replicas(mut self, replicas: u32) -> Program {
        self.machine = self.machine.replicated(replicas).unwrap_or_else(|e| panic!("{}", e.message));
        self
    }

    /// Returns the arrays that feed its streams.
    pub(crate) fn streams(&self) -> &[(String, Array)] {
        &self.streams
    }

    /// Returns the machine that it is compiled for.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    pub(crate) fn open(&self) -> (Compilation, FileId) {
        let (limits, allow_over_memory, batched) = (self.limits.clone(), self.allow_over_memory, self.batched);
        let without = self.without.clone();
        let session = Session { limits, allow_over_memory, batched, without, ..Session::default() };
        let (machine, arguments) = (self.machine.clone(), self.arguments.clone());
        let mut compilation = Compilation::new(Options { machine, arguments, session });
        let root = compilation.add(&self.path, self.text.as_str()).expect("a small text");
        (compilation, root)
    }

    /// Compiles it up to a stage.
    pub fn stage(&self, to: impl Into<After>) -> Result<AnyStage, Failure> {
        let (mut compilation, root) = self.open();
        let done = compilation.stage(root, to);
        done.map_err(|_| Failure { diagnostics: compilation.diagnostics, map: compilation.map })
    }

    /// Compiles it up to a stage. Returns the stage, unless there was an error, and the codes of all diagnostics.
    pub fn stage_and_codes(&self, to: Stage) -> (Option<AnyStage>, Vec<&'static str>) {
        let (mut compilation, root) = self.open();
        let stage = compilation.stage(root, to).ok();
        (stage, compilation.diagnostics.iter().map(|d| d.code).collect())
    }

    /// Estimates the profile of one run of a program, as far as its text determines it.
    ///
    /// # Panics
    /// If it does not compile, or has no program of this name.
    pub fn estimate(&self, program: &str) -> Profile {
        self.estimate_with_timeline(program).0
    }

    /// Estimates a profile, and the timeline of the same run.
    ///
    /// # Panics
    /// As [`Program::estimate`].
    pub fn estimate_with_timeline(&self, program: &str) -> (Profile, Timeline) {
        let (mut compilation, root) = self.open();
        let stage = compilation.stage(root, Stage::Allocated).unwrap_or_else(|_| {
            let (diagnostics, map) =
                (std::mem::take(&mut compilation.diagnostics), std::mem::take(&mut compilation.map));
            panic!("{} does not compile\n{}", self.path, Failure { diagnostics, map })
        });
        let AnyStage::Allocated(allocated) = stage else { panic!("{} is not allocated", self.path) };
        let (id, _) = allocated.programs.iter().find(|(_, p)| p.name == program).expect("a program of this name");
        let mut profiler = Profiler::new(&allocated, &self.machine);
        profiler.estimate(id);
        let mut recording = Profiler::new(&allocated, &self.machine);
        recording.record_timeline();
        recording.estimate(id);
        let profile = profiler.profile(&compilation.map);
        assert_eq!(profile.cycles, recording.profile(&compilation.map).cycles, "a timeline changes no time");
        (profile, recording.timeline().cloned().expect("a timeline"))
    }

    /// Runs `main`, or the only program, which must not fail, and returns the profile.
    pub fn profile(&self, mode: Mode, threads: usize) -> Profile {
        self.profile_with_timeline(mode, threads).0
    }

    /// Runs `main`, or the only program, which must not fail, and returns the profile and the timeline.
    pub fn profile_with_timeline(&self, mode: Mode, threads: usize) -> (Profile, Timeline) {
        let (mut compilation, root) = self.open();
        let stage = compilation.stage(root, Stage::Allocated);
        let executable = stage.and_then(|s| compilation.executable_counting(s, &[mode])).expect("it compiles");
        let session = &compilation.options.session;
        let mut engine = Engine::load(&executable, mode, threads, session).expect("the engine loads");
        let mut profiler = Profiler::new(&executable.allocated, &executable.machine);
        profiler.record_timeline();
        let mut recorder = Recorder::new(&executable.allocated, &self.streams);
        let ran = engine.run_traced(entry(&executable.allocated), &mut recorder, &mut profiler);
        ran.unwrap_or_else(|e| panic!("{} fails: {}", self.path, e.diagnostic().message));
        (profiler.profile(&SourceMap::default()), profiler.timeline().cloned().expect("a timeline"))
    }

    /// Compiles it for some modes.
    pub fn try_compile(&self, modes: &[Mode]) -> Result<Compiled, Failure> {
        let (mut compilation, root) = self.open();
        let done = compilation.stage(root, Stage::Allocated).and_then(|s| compilation.executable(s, modes));
        let Compilation { diagnostics, map, options, .. } = compilation;
        match done {
            Ok(executable) => {
                let streams = self.streams.clone();
                Ok(Compiled { diagnostics, map, executable, session: options.session, streams })
            }
            Err(_) => Err(Failure { diagnostics, map }),
        }
    }

    /// Compiles it for some modes.
    ///
    /// # Panics
    /// With all diagnostics, if it does not compile.
    pub fn compile(&self, modes: &[Mode]) -> Compiled {
        self.try_compile(modes).unwrap_or_else(|failure| panic!("{} does not compile\n{failure}", self.path))
    }

    /// Runs a program by its name in mode fast, as the command does: without the tables of the machine. The passes that
    /// make them are stopped when it ends.
    ///
    /// # Panics
    /// If it does not compile, or has no program of this name.
    pub fn run_beside_passes(&self, name: &str, threads: usize) -> Outcome {
        let (mut compilation, root) = self.open();
        let mut outcome = None;
        let stopped = compilation.start(root).and_then(|start| {
            compilation.run_beside(start, |early| {
                early.is_race_free().then_some(())?;
                let program = program_of(early.graph(), name);
                outcome = Some(ran(early.graph(), early.engine(threads), program, &self.streams));
                early.session.cancel.cancel();
                Some(())
            })
        });
        outcome.unwrap_or_else(|| {
            let Compilation { diagnostics, map, .. } = compilation;
            panic!("{} does not compile, {stopped:?}\n{}", self.path, Failure { diagnostics, map })
        })
    }

    /// Compiles it and runs it in all modes on one to three threads, and the graph before all passes too.
    ///
    /// # Panics
    /// If it does not compile, or two outcomes differ.
    pub fn run_everywhere(&self) -> Outcome {
        let outcome = self.compile(&MODES).run_everywhere();
        self.agrees_with_elaborated(&outcome);
        outcome
    }

    /// Interprets the graph after a pass, before it is placed: results do not depend on what follows.
    pub fn interpret(&self, to: impl Into<After>) -> Result<Outcome, Failure> {
        let (mut compilation, root) = self.open();
        let done = compilation.stage(root, to);
        let Compilation { diagnostics, map, options, .. } = compilation;
        let Ok(stage) = done else { return Err(Failure { diagnostics, map }) };
        let AnyStage::Graph(graph) = stage else { panic!("the stage is not a graph") };
        let engine = Engine::interpret(&graph, self.machine.chip.workers, &options.session);
        Ok(ran(&graph, engine, entry(&graph), &self.streams))
    }

    /// Checks an outcome against that of the graph before all passes, in mode `interpret`.
    ///
    /// # Panics
    /// If they differ.
    pub fn agrees_with_elaborated(&self, outcome: &Outcome) {
        let Ok(before) = self.interpret(After::ELABORATE) else { panic!("{} does not elaborate", self.path) };
        assert_eq!(before.failure.is_some(), outcome.failure.is_some(), "{}: passes change a failure", self.path);
        assert_eq!(before.prints, outcome.prints, "{}: passes change what is printed", self.path);
        assert_eq!(before.packets, outcome.packets, "{}: passes change what is sent", self.path);
        for (name, array) in &before.variables {
            assert_eq!(array, outcome.array(name), "{}: passes change `{name}`", self.path);
        }
    }
}

/// Runs a program of a graph. Without a failure, the outcome has the variables that stay.
fn ran(
    graph: &Graph,
    engine: Result<Engine<'_>, EngineError>,
    program: ProgramId,
    streams: &[(String, Array)],
) -> Outcome {
    let mut engine = match engine {
        Ok(engine) => engine,
        Err(e) => return Outcome::failed(e.diagnostic()),
    };
    let mut recorder = Recorder::new(graph, streams);
    let failed = engine.run(program, &mut recorder).err();
    let mut outcome = recorder.outcome;
    match failed {
        Some(e) => outcome.failure = Some(e.diagnostic()),
        None => {
            for (id, var) in graph.vars.iter().filter(|(_, v)| v.is_persistent()) {
                let bytes = engine.get(id).unwrap_or_else(|e| panic!("{}: {e}", var.name));
                outcome.keep(var, bytes);
            }
        }
    }
    outcome
}

impl Compiled {
    /// Returns the graph.
    pub fn graph(&self) -> &Graph {
        &self.executable.allocated
    }

    /// Runs the program that the command runs by default: `main`, or the only one.
    pub fn run(&self, mode: Mode, threads: usize) -> Outcome {
        self.run_program(entry(self.graph()), mode, threads)
    }

    /// Runs a program by its name.
    ///
    /// # Panics
    /// If there is no such program.
    pub fn run_named(&self, name: &str, mode: Mode, threads: usize) -> Outcome {
        self.run_program(program_of(self.graph(), name), mode, threads)
    }

    fn run_program(&self, program: ProgramId, mode: Mode, threads: usize) -> Outcome {
        let engine = Engine::load(&self.executable, mode, threads, &self.session);
        ran(self.graph(), engine, program, &self.streams)
    }

    /// Runs it in all modes on one to three threads.
    ///
    /// # Panics
    /// If it was not compiled for all modes, or two outcomes differ.
    pub fn run_everywhere(&self) -> Outcome {
        self.run_on(&MODES, &[1, 2, 3])
    }

    /// Runs it in some modes on some numbers of threads (the interpreter on one).
    ///
    /// # Panics
    /// If it was not compiled for one of the modes, or two outcomes differ.
    pub fn run_on(&self, modes: &[Mode], threads: &[usize]) -> Outcome {
        let mut first: Option<Outcome> = None;
        for &mode in modes {
            for &n in if mode == Mode::Interpret { &[1] } else { threads } {
                let found = self.run(mode, n);
                match &first {
                    None => first = Some(found),
                    Some(first) => assert!(*first == found, "{}", differ(first, &found, mode, n)),
                }
            }
        }
        first.expect("a mode to run in")
    }
}

/// Reads `file.npy` or `file.npz:name`.
fn array(file: &Path) -> Result<Array, String> {
    let name = file.to_string_lossy();
    let (file, key) = files::array_of(&name);
    arrays::read(Path::new(file), key)
}

fn program_of(graph: &Graph, name: &str) -> ProgramId {
    let found = graph.programs.iter().find(|(_, p)| p.entry && p.name == name);
    found.expect("a program of this name").0
}

/// Returns the program that the command runs by default: `main`, or the only one.
pub(crate) fn entry(graph: &Graph) -> ProgramId {
    let entries: Vec<(ProgramId, &str)> =
        graph.programs.iter().filter(|(_, p)| p.entry).map(|(id, p)| (id, p.name.as_str())).collect();
    let main = entries.iter().find(|(_, name)| *name == "main").or(entries.first());
    main.expect("the module has a program").0
}

/// Describes the differences of two outcomes.
fn differ(first: &Outcome, found: &Outcome, mode: Mode, threads: usize) -> String {
    let mut text = format!("{mode:?} on {threads} threads does not do the same as the first mode:\n");
    if first.failure != found.failure {
        text += &format!("failures {:?}\n     and {:?}\n", first.failure, found.failure);
    }
    if first.prints != found.prints {
        text += &format!("prints {:#?}\n   and {:#?}\n", first.prints, found.prints);
    }
    if first.packets != found.packets {
        text += "packets of streams\n";
    }
    for ((name, a), (_, b)) in first.variables.iter().zip(&found.variables).filter(|(a, b)| a != b) {
        text += &format!("{name} {}\nand {}\n", show(a.ty, &a.shape, &a.bytes), show(b.ty, &b.shape, &b.bytes));
    }
    text
}
