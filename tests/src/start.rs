//! The time from a text to its first superstep, by stage.
//!
//! Invariant: the total is the time for which a user of the command waits, except for the start of the process.

use crate::outcome::Recorder;
use crate::program::{Program, entry};
use girder::Stage;
use girder_engine::{Engine, Mode};
use girder_ir::ids::{ComputeSetId, CopyId, StepId};
use girder_ir::trace::{Counts, Trace};
use girder_source::Cancel;
use std::time::{Duration, Instant};

/// Stops a run after its first superstep.
struct First {
    cancel: Cancel,
    at: Option<Instant>,
}

impl First {
    fn superstep(&mut self) {
        self.at.get_or_insert_with(Instant::now);
        self.cancel.cancel();
    }
}

impl Trace for First {
    fn executed(&mut self, _: StepId, _: ComputeSetId, _: &dyn Counts) {
        self.superstep();
    }

    fn copied(&mut self, _: StepId, _: CopyId) {
        self.superstep();
    }

    fn tested(&mut self, _: StepId) {}

    fn packet(&mut self, _: StepId) {}

    fn synced(&mut self, _: StepId) {}
}

impl Program {
    /// Measures each stage until the first superstep of `main`, or of the only program, can begin: parsing,
    /// elaboration, every pass, code generation and loading. Adds the total and, if `superstep`, the first superstep.
    ///
    /// # Panics
    /// If it does not compile.
    pub fn start(&self, mode: Mode, threads: usize, superstep: bool) -> Vec<(&'static str, Duration)> {
        let begin = Instant::now();
        let (mut compilation, root) = self.open();
        let stage = match mode {
            Mode::Fast => compilation.start(root).and_then(|start| compilation.lower_with_code(start)),
            _ => compilation.stage(root, Stage::Allocated).map(|stage| (stage, None)),
        };
        let executable =
            stage.and_then(|(s, code)| compilation.executable_with(s, code, &[mode])).expect("it compiles");
        let session = &compilation.options.session;
        let loading = Instant::now();
        let mut engine = Engine::load(&executable, mode, threads, session).expect("the engine loads");
        let ready = Instant::now();
        let mut times = std::mem::take(&mut compilation.timings);
        times.extend([("load", ready - loading), ("total", ready - begin)]);
        if superstep {
            let mut recorder = Recorder::new(&executable.allocated, self.streams());
            let mut first = First { cancel: session.cancel.clone(), at: None };
            // The run is cancelled after its first superstep, so its error is expected.
            let _ = engine.run_traced(entry(&executable.allocated), &mut recorder, &mut first);
            times.push(("first superstep", first.at.unwrap_or_else(Instant::now) - ready));
        }
        times
    }
}
