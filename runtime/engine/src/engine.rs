//! The engine: a graph, its memory in one mode, and the programs that run on it.
//!
//! Invariant: results do not depend on the mode or on the number of threads (NaNs may differ in sign and payload).
//! After a failed run, no value can be read.

use crate::error::{EngineError, RunError};
use crate::exact::Exact;
use crate::executable::Executable;
use crate::fast::{Fast, FastGraph};
use crate::host::RunHost;
use crate::interpret::Interpreted;
use crate::mode::Mode;
use crate::predict::Supersteps;
use crate::remote::Remotes;
use crate::replicas::{Meetings, read_each};
use crate::report::RunReport;
use crate::store::{Store, initialise, one_nan, tidy, whole};
use crate::walk::{ProgramWalk, StepRuns};
use girder_host::HostedGraph;
use girder_ir::graph::{Graph, VarClass};
use girder_ir::ids::{ProgramId, StreamId, VarId};
use girder_ir::placement::Placement;
use girder_ir::trace::Trace;
use girder_source::Session;
use std::sync::Arc;

/// Returns the tiles that messages name, if they are known. It may wait for them.
type Placer<'e> = Box<dyn Fn() -> Option<Arc<Placement>> + 'e>;

/// The variables of a graph, and the programs that run over them.
pub struct Engine<'e> {
    graph: &'e Graph,
    placement: Placer<'e>,
    session: &'e Session,
    store: Box<dyn Store + 'e>,
    step_runs: StepRuns,
    supersteps: Supersteps,
    meetings: Meetings,
    remotes: Remotes,
    buffer: Vec<u8>,
    failed: bool,
}

impl<'e> Engine<'e> {
    /// Allocates the memory of a mode and writes the initial values; all other elements are zero. Vertices run on
    /// `threads` threads (at least one; `interpret` uses only one).
    pub fn load(
        executable: &'e Executable,
        mode: Mode,
        threads: usize,
        session: &'e Session,
    ) -> Result<Engine<'e>, EngineError> {
        let allocated = &executable.allocated;
        let (workers, counting) = (executable.machine.chip.workers, executable.counting.as_ref());
        let missing = EngineError::NotPrepared;
        let store: Box<dyn Store + 'e> = match mode {
            Mode::Interpret => Box::new(Interpreted::new(allocated, workers, counting, session)?),
            Mode::Fast => {
                let code = executable.fast.as_ref().ok_or(missing)?;
                Box::new(Fast::new(HostedGraph::of(allocated, workers), code, counting, threads, session)?)
            }
            Mode::Exact => {
                let code = executable.exact.as_ref().ok_or(missing)?;
                Box::new(Exact::new(allocated, code, counting, &executable.machine, threads, session)?)
            }
        };
        let mut engine = Engine::with_store(allocated, store, session)?;
        engine.place(|| Some(allocated.placement.clone()));
        Ok(engine)
    }

    /// Works like [`Engine::load`], in mode `fast`, for a graph that need not have tables of tiles.
    pub fn load_fast(graph: &'e FastGraph, threads: usize, session: &'e Session) -> Result<Engine<'e>, EngineError> {
        let store = Box::new(Fast::new(graph.hosted, &graph.code, None, threads, session)?);
        Engine::with_store(graph.hosted.graph, store, session)
    }

    /// Gives a function that returns the tiles that messages name, or waits for them. It is called for a message.
    pub fn place(&mut self, placement: impl Fn() -> Option<Arc<Placement>> + 'e) {
        self.placement = Box::new(placement);
    }

    /// Creates an engine in mode `interpret` from a graph alone, without placement, plan, schedule or layout. `workers`
    /// is the number of workers of a tile.
    pub fn interpret(graph: &'e Graph, workers: u32, session: &'e Session) -> Result<Engine<'e>, EngineError> {
        let store = Box::new(Interpreted::new(graph, workers, None, session)?);
        Engine::with_store(graph, store, session)
    }

    fn with_store(
        graph: &'e Graph,
        mut store: Box<dyn Store + 'e>,
        session: &'e Session,
    ) -> Result<Engine<'e>, EngineError> {
        initialise(&mut *store, graph);
        let remotes = Remotes::new(graph, session.limits.host_bytes)?;
        Ok(Engine {
            graph,
            placement: Box::new(|| None),
            session,
            store,
            step_runs: StepRuns::new(graph),
            supersteps: Supersteps::default(),
            meetings: Meetings::of(graph),
            remotes,
            buffer: Vec::new(),
            failed: false,
        })
    }

    /// Sets all elements of a persistent variable that is not constant, in all replicas; row-major, little-endian. The
    /// bytes are those of one value, or of one for each replica. Bytes of a `bool` other than 0 are true.
    pub fn set(&mut self, var: VarId, bytes: &[u8]) -> Result<(), EngineError> {
        let decl = &self.graph.vars[var];
        let name = decl.name.clone();
        match decl.class {
            VarClass::Temp => return Err(EngineError::Temporary(name)),
            VarClass::Const => return Err(EngineError::Constant(name)),
            VarClass::Var | VarClass::Param | VarClass::State => {}
        }
        let (found, replicas) = (bytes.len() as u64, self.graph.replicas.max(1));
        if found != decl.bytes() && Some(found) != decl.bytes().checked_mul(u64::from(replicas)) {
            return Err(EngineError::WrongSize { name, expected: decl.bytes(), found: bytes.len() as u64 });
        }
        let mut bytes = bytes.to_vec();
        tidy(decl.ty, &mut bytes);
        if let Some(run) = whole(self.graph, var) {
            let of_each = bytes.chunks_exact(decl.bytes() as usize).cycle();
            for (replica, bytes) in (0..replicas).zip(of_each) {
                self.store.select(replica);
                self.store.write(run, bytes);
            }
            self.store.select(0);
        }
        Ok(())
    }

    /// Returns all elements of a persistent variable; row-major, little-endian. If replicas differ, the elements of
    /// each follow one another. Fails after a failed run.
    pub fn get(&self, var: VarId) -> Result<Vec<u8>, EngineError> {
        let decl = &self.graph.vars[var];
        if self.failed {
            return Err(EngineError::AfterFailure);
        }
        if !decl.is_persistent() {
            return Err(EngineError::Temporary(decl.name.clone()));
        }
        Ok(read_each(&*self.store, self.graph, var, whole(self.graph, var)).concat())
    }

    /// Sets all rows of a remote buffer, in all replicas; row-major, little-endian. The bytes are those of one buffer,
    /// or of one for each replica.
    pub fn set_remote(&mut self, remote: StreamId, bytes: &[u8]) -> Result<(), EngineError> {
        let decl = &self.graph.streams[remote];
        let (expected, found) = (decl.remote_bytes(), bytes.len() as u64);
        let replicas = u64::from(self.graph.replicas.max(1));
        if found != expected && found != expected.saturating_mul(replicas) {
            return Err(EngineError::WrongSize { name: decl.name.clone(), expected, found });
        }
        let mut bytes = bytes.to_vec();
        tidy(decl.ty, &mut bytes);
        self.remotes.set_all(remote, &bytes);
        Ok(())
    }

    /// Returns all rows of a remote buffer; row-major, little-endian. If replicas differ, the rows of each follow one
    /// another. Fails after a failed run.
    pub fn get_remote(&self, remote: StreamId) -> Result<Vec<u8>, EngineError> {
        if self.failed {
            return Err(EngineError::AfterFailure);
        }
        let mut bytes = self.remotes.all(remote);
        one_nan(self.graph.streams[remote].ty, &mut bytes);
        Ok(bytes)
    }

    /// Runs a program to its end. Variables keep their values from run to run. After a failed run the engine rejects
    /// all requests.
    pub fn run(&mut self, program: ProgramId, host: &mut dyn RunHost) -> Result<RunReport, RunError> {
        self.walk(program, host, None)
    }

    /// Runs a program as [`run`](Engine::run) does, and reports its path to `trace`.
    pub fn run_traced(
        &mut self,
        program: ProgramId,
        host: &mut dyn RunHost,
        trace: &mut dyn Trace,
    ) -> Result<RunReport, RunError> {
        self.walk(program, host, Some(trace))
    }

    fn walk<'t>(
        &mut self,
        program: ProgramId,
        host: &mut dyn RunHost,
        trace: Option<&mut (dyn Trace + 't)>,
    ) -> Result<RunReport, RunError> {
        if self.failed {
            return Err(EngineError::AfterFailure.into());
        }
        let decl = &self.graph.programs[program];
        if !decl.entry {
            return Err(EngineError::NotEntry(decl.name.clone()).into());
        }
        let mut walk = ProgramWalk {
            graph: self.graph,
            placement: &*self.placement,
            session: self.session,
            step_runs: &self.step_runs,
            trace,
            store: &mut *self.store,
            host,
            report: RunReport::default(),
            total: self.supersteps.of(self.graph, program, self.session),
            buffer: std::mem::take(&mut self.buffer),
            depth: 0,
            iterations: 0,
            meetings: &self.meetings,
            remotes: &mut self.remotes,
            replica: 0,
        };
        let result = walk.start(program);
        let (report, buffer) = (walk.report, walk.buffer);
        self.buffer = buffer;
        self.failed = result.is_err();
        result.map(|()| report)
    }
}
