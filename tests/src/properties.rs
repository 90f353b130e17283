//! Properties of the compiler that hold for any text. The fuzz targets and the test of mutated programs call them.
//!
//! Invariant: a property panics if and only if it does not hold.

use crate::program::MODES;
use girder::{Arguments, Compilation, Options, Stage};
use girder_engine::{Engine, Executable, Mode, Silent};
use girder_source::{Diagnostics, Limits, Session, SourceMap};

/// Any text parses to a tree or to diagnostics, and a tree without errors formats to a fixed point.
pub fn formats(text: &str) {
    if let Some(once) = formatted(text) {
        assert_eq!(formatted(&once).as_deref(), Some(once.as_str()));
    }
}

/// Any text compiles through the last pass or ends with a diagnostic.
pub fn compiles_or_reports(text: &str) {
    let mut compilation = compilation();
    if let Ok(root) = compilation.add("text.gir", text) {
        let done = compilation.stage(root, Stage::Allocated);
        assert_eq!(done.is_err(), compilation.diagnostics.has_errors());
    }
}

/// A program that compiles gives the same values in all modes, or fails in all of them for the same reason.
pub fn modes_agree(text: &str) {
    let mut compilation = compilation();
    let Ok(root) = compilation.add("text.gir", text) else { return };
    let Ok(stage) = compilation.stage(root, Stage::Allocated) else { return };
    let Ok(executable) = compilation.executable(stage, &MODES) else { return };
    let session = &compilation.options.session;
    let interpreted = outcome(&executable, Mode::Interpret, session);
    // Only the interpreter looks for races of workers, and only its work is limited.
    if matches!(interpreted, Err("race::workers" | "run::too_much_work")) {
        return;
    }
    assert_eq!(interpreted, outcome(&executable, Mode::Fast, session));
    assert_eq!(interpreted, outcome(&executable, Mode::Exact, session));
}

fn formatted(text: &str) -> Option<String> {
    let (mut map, mut diagnostics) = (SourceMap::default(), Diagnostics::default());
    let file = map.add("text.gir", text)?;
    let tree = girder_syntax::parse(&map, file, &Session::default(), &mut diagnostics);
    (!diagnostics.has_errors()).then(|| girder_syntax::format(&tree, text))
}

/// Begins a compilation with limits that keep one text short.
fn compilation() -> Compilation {
    let limits = Limits { elements: 1 << 12, instances: 1 << 10, static_steps: 20_000, ..Limits::default() };
    let limits = Limits { iterations: 100, total_iterations: 10_000, interpreted: 1_000_000, ..limits };
    let machine = girder_machine::builtin("small").expect("`small` is built in");
    Compilation::new(Options {
        machine,
        arguments: Arguments::default(),
        session: Session { limits, ..Session::default() },
    })
}

/// Runs all programs; returns the variables without floats, whose NaNs may differ, or the code of the failure.
fn outcome(executable: &Executable, mode: Mode, session: &Session) -> Result<Vec<Vec<u8>>, &'static str> {
    let graph = &executable.allocated;
    let mut engine = Engine::load(executable, mode, 2, session).map_err(|e| e.diagnostic().code)?;
    for (id, _) in graph.programs.iter().filter(|(_, p)| p.entry) {
        engine.run(id, &mut Silent).map_err(|e| e.diagnostic().code)?;
    }
    let persistent = graph.vars.iter().filter(|(_, v)| v.is_persistent() && !v.ty.is_float());
    Ok(persistent.map(|(id, _)| engine.get(id).expect("a variable after a run")).collect())
}
