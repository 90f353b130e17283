//! A program in mode fast that runs while the passes make the tables of the machine, on which its results do not
//! depend.
//!
//! Invariant: a run begins after the proof that the graph is free of races, which needs no tables.

use girder_engine::{Engine, EngineError, FastGraph};
use girder_ir::graph::Graph;
use girder_ir::placement::Placement;
use girder_machine::Machine;
use girder_passes::check_races::is_race_free;
use girder_passes::progress::Progress;
use girder_source::{Session, SourceMap};
use std::sync::Arc;

/// A run in mode fast beside the passes.
pub struct Early<'a> {
    /// The limits and the stop flag of the run. The flag is set if a pass fails.
    pub session: &'a Session,
    /// All text.
    pub map: &'a SourceMap,
    pub(crate) machine: &'a Machine,
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

    /// Returns whether the graph is free of races; if it is not, the passes report it.
    pub fn is_race_free(&self) -> bool {
        match &self.tables {
            Tables::Made(_) => true,
            Tables::InProgress(_) => is_race_free(self.graph(), self.machine, &self.session.cancel),
        }
    }

    /// Waits until the graph is placed, and returns the placement that messages name; `None` if a pass has failed
    /// before.
    pub fn placement(&self) -> Option<Arc<Placement>> {
        match &self.tables {
            Tables::Made(placement) => Some(placement.clone()),
            Tables::InProgress(passes) => passes.placement(),
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
