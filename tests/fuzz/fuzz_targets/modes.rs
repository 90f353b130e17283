//! A program that compiles gives the same values in all modes, or fails in all of them for the same reason.
#![no_main]

use girder::{Arguments, Compilation, Options, Stage};
use girder_engine::{Engine, Mode, Silent};
use girder_source::{Limits, Session};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let limits = Limits { elements: 1 << 12, instances: 1 << 10, static_steps: 20_000, ..Limits::default() };
    let limits = Limits { iterations: 100, ..limits };
    let machine = girder_machine::builtin("small").expect("`small` is built in");
    let session = Session { limits, ..Session::default() };
    let options = Options { machine, arguments: Arguments::default(), session: session.clone() };
    let mut compilation = Compilation::new(options);
    let Ok(root) = compilation.add("fuzz.gir", text) else { return };
    let Ok(stage) = compilation.stage(root, Stage::Allocated) else { return };
    let modes = [Mode::Interpret, Mode::Fast, Mode::Exact];
    let Ok(executable) = compilation.executable(stage, &modes) else { return };
    let graph = &executable.allocated;
    let outcome = |mode| {
        let mut engine = Engine::load(&executable, mode, 2, &session).map_err(|e| e.diagnostic().code)?;
        for (id, _) in graph.programs.iter().filter(|(_, p)| p.entry) {
            engine.run(id, &mut Silent).map_err(|e| e.diagnostic().code)?;
        }
        let persistent = graph.vars.iter().filter(|(_, v)| v.is_persistent() && !v.ty.is_float());
        Ok::<_, &str>(persistent.map(|(id, _)| engine.get(id).expect("a variable after a run")).collect::<Vec<_>>())
    };
    let interpreted = outcome(Mode::Interpret);
    assert_eq!(interpreted, outcome(Mode::Fast));
    assert_eq!(interpreted, outcome(Mode::Exact));
});
