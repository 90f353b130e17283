//! A program in mode fast that runs while the passes make the tables of the machine, on which its results do not
//! depend.
//!
//! Invariant: a run begins after the proof that the graph is free of races.

use girder_engine::{Engine, EngineError, FastGraph};
use girder_ir::graph::Graph;
use girder_ir::placement::Placement;
use girder_passes::progress::Progress;
use girder_source::{Session, SourceMap};
use std::sync::Arc;

/// A run in mode fast beside the passes.
pub struct Early<'a> {
    /// The limits and the stop flag of the run. The flag is set if a pass fails.
    pub session: &'a Session,
    /// All text.
    pub map: &'a SourceMap,
    pub(crate) code: &'a FastGraph<'a>,
    pub(crate) tables: Tables<'a>,
}

/// The tables of the machine.
pub(crate) enum Tables<'a> {
    Made(Arc<Placement>),
    InProgress(&'a Progress),
}

impl<'a> Early<'a> {
    /// Returns the graph.
    pub fn graph(&self) -> &'a Graph {
        self.code.graph()
    }

    /// Allocates the memory of mode fast and writes the initial values. See [`Engine::load`].
    ///
    /// # Errors
    /// The host lacks the memory.
    pub fn engine(&self, threads: usize) -> Result<Engine<'a>, EngineError> {
        Engine::load_fast(self.code, threads, self.session)
    }

    /// Waits until the graph is proved free of races, and returns the placement that messages name; `None` if a pass
    /// has failed before.
    pub fn race_free(&self) -> Option<Arc<Placement>> {
        match &self.tables {
            Tables::Made(placement) => Some(placement.clone()),
            Tables::InProgress(passes) => passes.race_free(),
        }
    }

    /// Waits for the last pass. Returns whether all have succeeded: whether the program fits the machine.
    pub fn fits(&self) -> bool {
        match &self.tables {
            Tables::Made(_) => true,
            Tables::InProgress(passes) => passes.succeeded(),
        }
    }
}
