//! One compilation, from text to executable.
//!
//! Invariant: a method that returns `Err(Failed)` has reported the reason in [`Compilation::diagnostics`].

use crate::by_step::StepTime;
use crate::early::{Early, Tables};
use crate::head::program_text;
use crate::loader::Files;
use girder_elaborate::{Arguments, Context, Modules, StatementTimes};
use girder_engine::{EngineError, Executable, FastGraph, Mode};
use girder_ir::graph::Graph;
use girder_ir::layout::HostLayout;
use girder_ir::stage::Allocated;
use girder_machine::Machine;
use girder_passes::StepTimes;
use girder_passes::allocate_memory::pack_for_host;
use girder_passes::context::PassContext;
use girder_passes::liveness::Liveness;
use girder_passes::pipeline::{self, After, AnyStage, Stage};
use girder_source::{Diagnostic, Diagnostics, Failed, FileId, Result, Session, SourceMap, Span, on_stack};
use girder_syntax::ast::{Decl, ItemKind, Module, Pattern};
use girder_text as text;
use std::path::Path;
use std::time::{Duration, Instant};

/// The options of a compilation.
#[derive(Clone, Debug)]
pub struct Options {
    /// The machine that is compiled for.
    pub machine: Machine,
    /// `--arg`
    pub arguments: Arguments,
    /// Limits and the stop flag.
    pub session: Session,
}

/// A compilation: text, options and diagnostics.
#[derive(Debug)]
pub struct Compilation {
    /// Its options.
    pub options: Options,
    /// All text.
    pub map: SourceMap,
    /// All diagnostics.
    pub diagnostics: Diagnostics,
    /// The last pass that has run.
    pub after: After,
    /// The time that each part took, in order.
    pub timings: Vec<(&'static str, Duration)>,
    /// Whether the time of each step is measured.
    pub measures_steps: bool,
    /// The time of each step in each pass, if it is measured, in the order of passes.
    pub step_times: Vec<StepTime>,
}

/// The root file before any pass has run on it.
#[derive(Debug)]
pub struct Start {
    stage: AnyStage,
    /// The pass after which the text was printed.
    printed: Option<After>,
    /// The arguments of programs; see [`Start::arguments_of_programs`].
    arguments: Vec<(String, Vec<String>)>,
}

impl Start {
    /// Returns the graph.
    pub fn graph(&self) -> &Graph {
        self.stage.graph()
    }

    /// Returns the names of the arguments that no `let` has, each with the names of the programs that have it as a
    /// parameter.
    pub fn arguments_of_programs(&self) -> &[(String, Vec<String>)] {
        &self.arguments
    }
}

/// Bytes of stack for elaboration, which recurses with calls and nested expressions. They suffice for the largest
/// values of the limits. Only touched pages take memory.
const STACK: usize = 2 << 30;

impl Compilation {
    /// Starts a compilation without text.
    pub fn new(options: Options) -> Compilation {
        let (map, diagnostics) = (SourceMap::default(), Diagnostics::default());
        Compilation {
            options,
            map,
            diagnostics,
            after: After::ELABORATE,
            timings: vec![],
            measures_steps: false,
            step_times: vec![],
        }
    }

    /// Reads the root file.
    pub fn open(&mut self, path: &Path) -> Result<FileId> {
        match program_text(path) {
            Ok(text) => self.add(path, text),
            Err(d) => {
                self.diagnostics.push(d);
                Err(Failed)
            }
        }
    }

    /// Adds the text of a root file from memory.
    pub fn add(&mut self, path: impl AsRef<Path>, text: impl Into<String>) -> Result<FileId> {
        match self.map.add(path.as_ref(), text) {
            Some(file) => Ok(file),
            None => Err(self.fail("driver::too_much_text", "the text exceeds 4,080 MiB", "split the program")),
        }
    }

    fn fail(&mut self, code: &'static str, message: impl Into<String>, help: &str) -> Failed {
        self.diagnostics.push(Diagnostic::error(code, Span::NONE, message).help(help));
        Failed
    }

    /// Brings the root file to a stage, or to the point after a pass. If the file is the printed text of a stage, its
    /// tables are verified, and compilation resumes with the next pass.
    pub fn stage(&mut self, root: FileId, target: impl Into<After>) -> Result<AnyStage> {
        let start = self.start(root)?;
        self.lower(start, target)
    }

    /// Reads the root file, so that its graph can be inspected before the passes run.
    pub fn start(&mut self, root: FileId) -> Result<Start> {
        self.on_a_large_stack(|this| this.read(root))
    }

    /// Brings a graph to a stage, or to the point after a pass.
    pub fn lower(&mut self, start: Start, target: impl Into<After>) -> Result<AnyStage> {
        let Start { stage, printed, .. } = start;
        let Options { machine, session, .. } = &self.options;
        let mut cx = PassContext::new(machine, session, &mut self.diagnostics);
        if self.measures_steps {
            cx.step_times = StepTimes::measured();
        }
        let target = target.into();
        self.after = target.max(printed.unwrap_or(After::ELABORATE));
        let lowered = match printed {
            Some(after) => pipeline::resume(stage, after, target, &mut cx),
            None => pipeline::lower_to(stage, target, &mut cx),
        };
        self.timings.append(&mut cx.timings);
        if let Ok(stage) = &lowered {
            for (pass, part, time) in cx.step_times.take() {
                let (name, span) = part.name(stage.graph());
                self.step_times.push(StepTime { pass, name, span, time });
            }
        }
        lowered
    }

    /// Brings a graph to the last stage. While the passes make the tables of the machine on another thread, the code of
    /// mode fast is compiled on this one, and `run` is called. `Err` if a pass fails or the code cannot be compiled;
    /// what `run` returns is then lost. The printed text of a stage is checked before `run` is called.
    pub fn run_beside<T>(&mut self, start: Start, run: impl FnOnce(&Early<'_>) -> T) -> Result<T> {
        let made = match start {
            Start { stage: AnyStage::Graph(graph), printed: None, .. } => {
                let Options { machine, session, .. } = &self.options;
                let mut cx = PassContext::new(machine, session, &mut self.diagnostics);
                let beside = pipeline::lower_beside(graph, Stage::Allocated, &mut cx, |graph, passes| {
                    let layout = pack_for_host(graph, &Liveness::of(graph), session.limits.host_bytes);
                    let code = code_of(graph, &layout, machine.chip.workers);
                    early(code, (machine, session), &self.map, Tables::InProgress(passes), run)
                });
                self.timings.append(&mut cx.timings);
                let (lowered, made) = beside.map_err(|e| self.no_thread(&e))?;
                lowered?;
                made
            }
            start => {
                let AnyStage::Allocated(allocated) = self.lower(start, Stage::Allocated)? else {
                    return Err(self.not_allocated());
                };
                let Options { machine, session, .. } = &self.options;
                let code = code_of(&allocated, &allocated.host, machine.chip.workers);
                Some(early(code, (machine, session), &self.map, Tables::Made(allocated.placement.clone()), run))
            }
        };
        match made {
            Some(Ok((made, codegen))) => {
                self.timings.push(("codegen", codegen));
                Ok(made)
            }
            Some(Err(e)) => {
                self.diagnostics.push(e.diagnostic());
                Err(Failed)
            }
            None => Err(Failed),
        }
    }

    /// Reads the text as a stage.
    fn read(&mut self, root: FileId) -> Result<Start> {
        let Options { machine, session, arguments } = &self.options;
        session.memory.restart();
        let start = Instant::now();
        let modules = Modules::load(&mut self.map, root, &Files, session, &mut self.diagnostics);
        self.timings.push(("parse", start.elapsed()));
        self.diagnostics.check()?;
        let start = Instant::now();
        let after = text::header(&modules, machine, &mut self.diagnostics)?;
        let mut cx = Context {
            map: &mut self.map,
            machine,
            session,
            loader: &Files,
            arguments,
            diagnostics: &mut self.diagnostics,
            statement_times: self.measures_steps.then(StatementTimes::default),
        };
        let graph = girder_elaborate::elaborate_modules(&modules, &mut cx)?;
        for (span, time) in cx.statement_times.take().unwrap_or_default().list() {
            self.step_times.push(StepTime { pass: "elaborate", name: "statement".into(), span, time });
        }
        self.timings.push(("elaborate", start.elapsed()));
        let stage = match after {
            None => AnyStage::Graph(graph),
            Some(after) => text::read_tables(graph, after.stage(), &modules, &mut cx)?,
        };
        let tree = &modules.get(Modules::ROOT).tree;
        let names = arguments.list.iter().map(|(name, _)| name);
        let owned = names.filter_map(|name| Some((name.to_string(), programs_with(tree, name)?)));
        Ok(Start { stage, printed: after, arguments: owned.collect() })
    }

    fn on_a_large_stack<T: Send>(&mut self, f: impl FnOnce(&mut Self) -> Result<T> + Send) -> Result<T> {
        match on_stack(STACK, || f(self)) {
            Ok(result) => result,
            Err(e) => Err(self.no_thread(&e)),
        }
    }

    fn no_thread(&mut self, e: &std::io::Error) -> Failed {
        self.fail("driver::no_thread", format!("cannot start a thread: {e}"), "free some memory")
    }

    fn not_allocated(&mut self) -> Failed {
        self.fail("internal::stage", "an executable is made of an allocated stage", "report this as a bug")
    }

    /// Compiles the codelets of an allocated stage for the given modes.
    pub fn executable(&mut self, stage: AnyStage, modes: &[Mode]) -> Result<Executable> {
        self.compiled(stage, |allocated, machine| Executable::compile(allocated, machine, modes))
    }

    /// Makes an executable whose runs count the events that modelled time depends on.
    pub fn executable_counting(&mut self, stage: AnyStage, modes: &[Mode]) -> Result<Executable> {
        self.compiled(stage, |allocated, machine| Executable::compile_counting(allocated, machine, modes))
    }

    fn compiled(
        &mut self,
        stage: AnyStage,
        compile: impl FnOnce(Allocated, Machine) -> std::result::Result<Executable, EngineError>,
    ) -> Result<Executable> {
        let AnyStage::Allocated(allocated) = stage else {
            return Err(self.not_allocated());
        };
        let start = Instant::now();
        let made = compile(allocated, self.options.machine.clone());
        self.timings.push(("codegen", start.elapsed()));
        made.map_err(|e| {
            self.diagnostics.push(e.diagnostic());
            Failed
        })
    }
}

/// Returns the programs of a module with a parameter of a name, or `None` if a `let` has the name too.
fn programs_with(tree: &Module, name: &str) -> Option<Vec<String>> {
    let mut programs = vec![];
    for item in &tree.items {
        match &item.kind {
            ItemKind::Decl(Decl::Let(l)) if binds(&l.pattern, name) => return None,
            ItemKind::Program(p) if p.params.iter().any(|q| q.name.name == name) => {
                programs.push(p.name.dotted().to_string());
            }
            _ => {}
        }
    }
    Some(programs)
}

fn binds(pattern: &Pattern, name: &str) -> bool {
    match pattern {
        Pattern::Name(ident) => ident.name == name,
        Pattern::Wildcard(_) => false,
        Pattern::Tuple(parts, _) => parts.iter().any(|part| binds(part, name)),
    }
}

/// Calls `run` with a compiled graph. Also returns the time that the code took.
fn early<'a, T>(
    code: std::result::Result<(FastGraph<'a>, Duration), EngineError>,
    (machine, session): (&'a Machine, &'a Session),
    map: &'a SourceMap,
    tables: Tables<'a>,
    run: impl FnOnce(&Early<'_>) -> T,
) -> std::result::Result<(T, Duration), EngineError> {
    let (code, time) = code?;
    Ok((run(&Early { machine, code: &code, session, map, tables }), time))
}

/// Compiles the code of mode fast, and measures the time.
fn code_of<'a>(
    graph: &'a Graph,
    layout: &'a HostLayout,
    workers: u32,
) -> std::result::Result<(FastGraph<'a>, Duration), EngineError> {
    let start = Instant::now();
    Ok((FastGraph::compile(graph, layout, workers)?, start.elapsed()))
}
