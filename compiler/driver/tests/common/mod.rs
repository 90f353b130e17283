//! Brings programs to every stage, prints the stage, reads it back, prints it again and runs it.

#![allow(dead_code)] // Each test takes what it needs.

use girder::{AnyStage, Arguments, Compilation, Options, Stage};
use girder_engine::{Engine, Mode, RunHost, StreamError};
use girder_ir::graph::Graph;
use girder_ir::ids::StreamId;
use girder_ir::types::{ElemType, Scalar};
use girder_source::{FileId, Session};

/// Returns a compilation for a small machine.
pub fn compilation() -> Compilation {
    let machine = girder_machine::builtin("small").expect("a built-in machine");
    Compilation::new(Options { machine, arguments: Arguments::default(), session: Session::default() })
}

/// Returns the diagnostics so far as text.
pub fn rendered(c: &Compilation) -> String {
    c.diagnostics.iter().map(|d| d.render(&c.map, false, 120)).collect()
}

/// Brings a text to a stage.
pub fn stage(c: &mut Compilation, root: FileId, to: Stage, text: &str) -> AnyStage {
    match c.stage(root, to) {
        Ok(stage) => stage,
        Err(_) => panic!("{}\n--- text\n{text}", rendered(c)),
    }
}

/// Returns the text of a stage of a program.
pub fn print(source: &str, to: Stage) -> String {
    let (c, stage) = read(source, to);
    girder::text::print(&stage, &c.options.machine)
}

/// Reads a text as a stage.
pub fn read(text: &str, to: Stage) -> (Compilation, AnyStage) {
    let mut c = compilation();
    let root = c.add("main.gir", text).expect("small");
    let stage = stage(&mut c, root, to, text);
    (c, stage)
}

/// Prints every stage of a program, reads it back, prints it again, formats it, and runs it.
pub fn check(source: &str) {
    let (c, last) = read(source, Stage::Allocated);
    let expected = run(c, last, Mode::Interpret);
    for to in Stage::ALL {
        let (c, made) = read(source, to);
        let text = girder::text::print(&made, &c.options.machine);
        let (c, again) = read(&text, to);
        assert_eq!(again.stage(), to);
        let second = girder::text::print(&again, &c.options.machine);
        same(&text, &second, to);
        same(&text, &formatted(&text), to);
        assert_eq!(girder::text::target_of(&text), Some(("small".to_string(), 1)));
        for mode in [Mode::Interpret, Mode::Fast, Mode::Exact] {
            let (c, last) = read(&text, Stage::Allocated);
            assert_eq!(expected, run(c, last, mode), "{mode:?} from {to:?}\n{text}");
        }
    }
}

/// Panics with the first line that differs.
pub fn same(a: &str, b: &str, stage: Stage) {
    if a != b {
        let (k, (x, y)) = a.lines().zip(b.lines()).enumerate().find(|(_, (x, y))| x != y).unwrap_or((0, ("", "")));
        panic!("{stage:?} differs in line {}:\n{x}\n{y}\n--- first\n{a}\n--- second\n{b}", k + 1);
    }
}

fn formatted(text: &str) -> String {
    let mut map = girder_source::SourceMap::default();
    let file = map.add("main.gir", text).expect("small");
    let tree = girder_syntax::parse(&map, file, &Session::default(), &mut girder_source::Diagnostics::default());
    girder_syntax::format(&tree, text)
}

/// The effects of a run that are visible to the host.
struct Record<'g> {
    graph: &'g Graph,
    seen: Vec<String>,
    next: u8,
}

impl RunHost for Record<'_> {
    fn read(&mut self, stream: StreamId, into: &mut [u8]) -> Result<(), StreamError> {
        let ty = self.graph.streams[stream].ty;
        for e in into.chunks_exact_mut(ty.bytes() as usize) {
            self.next = self.next.wrapping_add(1);
            let value = match ty {
                ElemType::F32 => Scalar::f32(self.next as f32),
                _ => Scalar::new(ty, self.next as u64),
            };
            e.iter_mut().zip(value.to_le_bytes()).for_each(|(a, b)| *a = b);
        }
        Ok(())
    }

    fn write(&mut self, stream: StreamId, bytes: &[u8]) -> Result<(), StreamError> {
        self.seen.push(format!("{} {bytes:?}", self.graph.streams[stream].name));
        Ok(())
    }

    fn print(&mut self, label: &str, ty: ElemType, shape: &[u64], bytes: &[u8]) {
        self.seen.push(format!("{label} {ty} {shape:?} {bytes:?}"));
    }

    fn print_text(&mut self, text: &str) {
        self.seen.push(text.to_string());
    }
}

/// Runs all programs of an allocated stage and returns their visible effects and the final values of the variables.
pub fn run(c: Compilation, stage: AnyStage, mode: Mode) -> Vec<String> {
    match try_run(c, stage, mode) {
        Ok(seen) => seen,
        Err(e) => panic!("{e}"),
    }
}

/// As [`run`], but returns the failure of a run as an error.
pub fn try_run(mut c: Compilation, stage: AnyStage, mode: Mode) -> Result<Vec<String>, String> {
    let Ok(executable) = c.executable(stage, &[mode]) else { panic!("{}", rendered(&c)) };
    let graph: &Graph = &executable.allocated;
    let session = Session::default();
    let mut engine = Engine::load(&executable, mode, 1, &session).map_err(|e| e.to_string()).expect("loads");
    let mut host = Record { graph, seen: vec![], next: 0 };
    for (id, p) in graph.programs.iter().filter(|(_, p)| p.entry) {
        engine.run(id, &mut host).map_err(|e| format!("{}: {e}", p.name))?;
    }
    let mut seen = host.seen;
    for (id, v) in graph.vars.iter().filter(|(_, v)| v.is_persistent()) {
        seen.push(format!("{} {:?}", v.name, engine.get(id).map_err(|e| e.to_string())?));
    }
    Ok(seen)
}
