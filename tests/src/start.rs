//! The time from a text to its first superstep, by stage.
//!
//! Invariant: the total is the time for which a user of the command waits, except for the start of the process.

use crate::outcome::Recorder;
use crate::program::{Program, entry};
use girder::Stage;
use girder_engine::{Engine, Mode};
use girder_ir::graph::Graph;
use girder_ir::ids::{ComputeSetId, CopyId, StepId};
use girder_ir::trace::{Counts, Trace};
use girder_source::{Cancel, Session};
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
        if let Mode::Fast = mode {
            let start = compilation.start(root).expect("it compiles");
            let mut times = vec![];
            // Stopping the run after a superstep also stops the passes, if they have not ended.
            let _ = compilation.run_beside(start, |early| {
                let loading = Instant::now();
                let mut engine = early.engine(threads).expect("the engine loads");
                assert!(early.is_race_free(), "it is free of races");
                let ready = Instant::now();
                times = vec![("load", ready - loading), ("total", ready - begin)];
                if superstep {
                    times.push(self.first_superstep(&mut engine, early.graph(), early.session));
                }
            });
            assert!(!times.is_empty(), "it does not compile: {:?}", compilation.diagnostics);
            return compilation.timings.into_iter().chain(times).collect();
        }
        let stage = compilation.stage(root, Stage::Allocated);
        let executable = stage.and_then(|s| compilation.executable(s, &[mode])).expect("it compiles");
        let session = &compilation.options.session;
        let loading = Instant::now();
        let mut engine = Engine::load(&executable, mode, threads, session).expect("the engine loads");
        let ready = Instant::now();
        let mut times = std::mem::take(&mut compilation.timings);
        times.extend([("load", ready - loading), ("total", ready - begin)]);
        if superstep {
            times.push(self.first_superstep(&mut engine, &executable.allocated, session));
        }
        times
    }

    fn first_superstep(&self, engine: &mut Engine, graph: &Graph, session: &Session) -> (&'static str, Duration) {
        let mut recorder = Recorder::new(graph, self.streams());
        let (begin, mut first) = (Instant::now(), First { cancel: session.cancel.clone(), at: None });
        // The run is cancelled after its first superstep, so its error is expected.
        let _ = engine.run_traced(entry(graph), &mut recorder, &mut first);
        ("first superstep", first.at.unwrap_or_else(Instant::now) - begin)
    }
}
