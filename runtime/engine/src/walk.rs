//! The walk over a program's steps, the same in all modes.
//!
//! The elements that steps themselves read or write (predicates, loop indices, packets) are resolved to runs once, in
//! [`StepRuns`]. The walk recurses, because the front end bounds nesting and calls do not recurse.
//!
//! Invariant: effects happen in program order. The stop flag is polled before every superstep and every iteration. An
//! iteration allocates nothing once buffers have grown.

use crate::error::RunError;
use crate::failure::{check_failed, workers_raced};
use crate::host::{RunHost, StreamError};
use crate::predict::{depth_limit, too_long};
use crate::remote::Remotes;
use crate::replicas::Meetings;
use crate::report::RunReport;
use crate::store::{Store, VertexStop, one_nan, read_runs, read_scalar, tidy, write_runs};
use cranelift_entity::SecondaryMap;
use girder_ir::graph::Graph;
use girder_ir::ids::{ComputeSetId, CopyId, FamilyId, ProgramId, StepId, StreamId, VarId};
use girder_ir::placement::Placement;
use girder_ir::program::{Effect, StepKind, UntilWritten};
use girder_ir::trace::Trace;
use girder_ir::types::{ElemType, Scalar};
use girder_ir::view::{Run, View};
use girder_source::{Session, Span};
use std::sync::Arc;

/// The elements that each step itself reads or writes.
#[derive(Clone, Debug, Default)]
pub(crate) struct StepRuns {
    runs: SecondaryMap<StepId, Box<[Run]>>,
}

impl StepRuns {
    /// Resolves the views of all steps of a graph.
    pub(crate) fn new(graph: &Graph) -> StepRuns {
        let mut runs = SecondaryMap::new();
        for (id, step) in &graph.steps {
            if let Some(view) = own_view(&step.kind) {
                runs[id] = view.runs().collect();
            }
        }
        StepRuns { runs }
    }
}

fn own_view(step: &StepKind) -> Option<&View> {
    match step {
        StepKind::While { cond: view, .. } | StepKind::If { cond: view, .. } | StepKind::Switch { on: view, .. } => {
            Some(view)
        }
        StepKind::Effect(effect) => match effect {
            Effect::Print { value: view, .. }
            | Effect::Read { into: view, .. }
            | Effect::Write { from: view, .. }
            | Effect::Seek { row: view, .. }
            | Effect::Undef { what: view, .. }
            | Effect::Agree { what: view } => Some(view),
            Effect::Abort { when, .. } => when.as_ref(),
            Effect::PrintText { .. } | Effect::Sync => None,
        },
        _ => None,
    }
}

/// One run of one program.
pub(crate) struct ProgramWalk<'a, 't> {
    /// The graph.
    pub graph: &'a Graph,
    /// Returns the tiles of vertices, if they are known.
    pub placement: &'a dyn Fn() -> Option<Arc<Placement>>,
    /// The limits, and the stop flag.
    pub session: &'a Session,
    /// The elements of the steps.
    pub step_runs: &'a StepRuns,
    /// The listener.
    pub trace: Option<&'a mut (dyn Trace + 't)>,
    /// The memory.
    pub store: &'a mut dyn Store,
    /// The environment.
    pub host: &'a mut dyn RunHost,
    /// The counters of the run.
    pub report: RunReport,
    /// The number of supersteps that the text implies.
    pub total: u64,
    /// Buffer of packets and printed values.
    pub buffer: Vec<u8>,
    /// The nesting depth of the current step.
    pub depth: u32,
    /// The number of calls, and of iterations of all loops, so far.
    pub iterations: u64,
    /// Where replicas meet.
    pub meetings: &'a Meetings,
    /// The remote buffers.
    pub remotes: &'a mut Remotes,
    /// The replica that walks.
    pub replica: u32,
}

impl ProgramWalk<'_, '_> {
    /// Runs a program from the beginning, unless its text implies that it exceeds a limit.
    pub(crate) fn start(&mut self, program: ProgramId) -> Result<(), RunError> {
        self.store.begin();
        self.remotes.begin();
        let limit = self.session.limits.total_iterations;
        match too_long(self.graph, program, self.session) {
            Some(step) => Err(RunError::Iterations { limit, all: true, span: self.span(step) }),
            None if self.graph.replicas > 1 => self.together(self.graph.programs[program].body),
            None => self.program(program),
        }
    }

    /// Runs a program to its end.
    fn program(&mut self, program: ProgramId) -> Result<(), RunError> {
        self.step(self.graph.programs[program].body)
    }

    /// Runs a step.
    pub(crate) fn step(&mut self, id: StepId) -> Result<(), RunError> {
        self.deeper(id, |this| this.step_inside(id))
    }

    /// Calls `f` for a step one level deeper.
    pub(crate) fn deeper(
        &mut self,
        id: StepId,
        f: impl FnOnce(&mut Self) -> Result<(), RunError>,
    ) -> Result<(), RunError> {
        let limit = depth_limit(self.session);
        if self.depth == limit {
            return Err(RunError::Nesting { limit, span: self.span(id) });
        }
        self.depth += 1;
        let result = f(self);
        self.depth -= 1;
        result
    }

    fn step_inside(&mut self, id: StepId) -> Result<(), RunError> {
        let graph = self.graph;
        match &graph.steps[id].kind {
            StepKind::Seq(steps) => self.sequence(steps),
            StepKind::Par(steps) => steps.iter().try_for_each(|&s| self.step(s)),
            StepKind::Execute(set) => self.execute(id, *set),
            StepKind::Copy(copy) => self.copy(id, *copy),
            StepKind::Repeat { count, index, body } => self.repeat(id, *count, |this, k| {
                this.set_index(*index, k);
                this.step(*body)
            }),
            StepKind::While { before, body, .. } => {
                let test = |this: &mut Self| {
                    this.step(*before)?;
                    Ok(this.test(id))
                };
                self.while_loop(id, test, |this| this.step(*body))
            }
            StepKind::If { then, els, .. } => {
                let taken = self.test(id).bits != 0;
                self.step(if taken { *then } else { *els })
            }
            StepKind::Switch { cases, default, .. } => {
                let value = self.test(id);
                self.step(case(cases, *default, value))
            }
            StepKind::Call(program) => {
                self.count(id)?;
                self.program(*program)
            }
            StepKind::Effect(effect) => self.effect(id, effect),
        }
    }

    /// Runs steps in order; neighbouring steps with a common task run together.
    pub(crate) fn sequence(&mut self, mut steps: &[StepId]) -> Result<(), RunError> {
        while let [first, rest @ ..] = steps {
            steps = match self.grouped(*first)? {
                0 => {
                    self.step(*first)?;
                    rest
                }
                done => &steps[done..],
            };
        }
        Ok(())
    }

    /// Runs the group of steps of a sequence that starts at `first`, if the mode has one, and returns its number of
    /// steps. A trace is notified step by step, so with a trace there are no groups.
    fn grouped(&mut self, first: StepId) -> Result<usize, RunError> {
        if self.trace.is_some() || self.depth == depth_limit(self.session) {
            return Ok(0);
        }
        self.poll()?;
        let done = self.store.grouped(first).map_err(|(stop, step)| self.stopped(stop, step))?;
        (0..done).for_each(|_| self.superstep_done());
        Ok(done)
    }

    fn execute(&mut self, id: StepId, set: ComputeSetId) -> Result<(), RunError> {
        self.poll()?;
        self.store.execute(set).map_err(|stop| self.stopped(stop, id))?;
        if let Some(trace) = &mut self.trace {
            trace.executed(id, set, self.store.counts());
        }
        self.superstep_done();
        Ok(())
    }

    fn copy(&mut self, id: StepId, copy: CopyId) -> Result<(), RunError> {
        self.poll()?;
        self.store.copy(copy);
        if let Some(trace) = &mut self.trace {
            trace.copied(id, copy);
        }
        self.superstep_done();
        Ok(())
    }

    /// Calls `body` with the number of each iteration.
    pub(crate) fn repeat(
        &mut self,
        id: StepId,
        count: u64,
        mut body: impl FnMut(&mut Self, u64) -> Result<(), RunError>,
    ) -> Result<(), RunError> {
        let limit = self.session.limits.iterations;
        if count > limit {
            return Err(RunError::Iterations { limit, all: false, span: self.span(id) });
        }
        for k in 0..count {
            self.count(id)?;
            body(self, k)?;
        }
        Ok(())
    }

    /// Writes the index of a loop before an iteration.
    pub(crate) fn set_index(&mut self, index: Option<(VarId, i32, i32)>, iteration: u64) {
        if let Some((var, start, by)) = index {
            let value = start.wrapping_add(by.wrapping_mul(iteration as i32));
            self.store.write(Run { var, start: 0, len: 1, stride: 1 }, &value.to_le_bytes());
        }
    }

    /// Counts an iteration of a loop, or a call.
    pub(crate) fn count(&mut self, id: StepId) -> Result<(), RunError> {
        self.poll()?;
        let limit = self.session.limits.total_iterations;
        if self.iterations >= limit {
            return Err(RunError::Iterations { limit, all: true, span: self.span(id) });
        }
        self.iterations += 1;
        Ok(())
    }

    /// Calls `test`, and `body` as long as the value is true.
    pub(crate) fn while_loop(
        &mut self,
        id: StepId,
        mut test: impl FnMut(&mut Self) -> Result<Scalar, RunError>,
        mut body: impl FnMut(&mut Self) -> Result<(), RunError>,
    ) -> Result<(), RunError> {
        let limit = self.session.limits.iterations;
        let mut iterations = 0;
        loop {
            self.poll()?;
            if test(self)?.bits == 0 {
                return Ok(());
            }
            if iterations == limit {
                return Err(RunError::Iterations { limit, all: false, span: self.span(id) });
            }
            iterations += 1;
            self.count(id)?;
            body(self)?;
        }
    }

    /// Performs an effect.
    pub(crate) fn effect(&mut self, id: StepId, effect: &Effect) -> Result<(), RunError> {
        match effect {
            Effect::Print { label, value } => {
                self.load_buffer(id);
                let ty = self.printed_type(id);
                self.host.print(label, ty, &value.shape(), &self.buffer);
                Ok(())
            }
            Effect::PrintText { text } => {
                self.host.print_text(text);
                Ok(())
            }
            Effect::Abort { message, when } => {
                let yes = when.is_none() || self.scalar(id).bits != 0;
                let error = || RunError::Abort { message: message.clone(), span: self.span(id) };
                if yes { Err(error()) } else { Ok(()) }
            }
            Effect::Seek { stream, .. } => self.seek(id, *stream),
            Effect::Read { stream, .. } if self.graph.streams[*stream].rows.is_some() => {
                let runs = &self.step_runs.runs[id];
                write_runs(self.store, self.graph, runs, self.remotes.row(*stream, self.replica));
                self.packet(id);
                Ok(())
            }
            Effect::Write { stream, .. } if self.graph.streams[*stream].rows.is_some() => {
                self.load_buffer(id);
                self.remotes.set_row(*stream, self.replica, &self.buffer);
                self.packet(id);
                Ok(())
            }
            Effect::Read { stream, .. } => {
                self.read_packet(id, *stream)?;
                self.packet(id);
                Ok(())
            }
            Effect::Write { stream, .. } => {
                self.load_buffer(id);
                one_nan(self.graph.streams[*stream].ty, &mut self.buffer);
                self.host.write(*stream, &self.buffer).map_err(|e| self.stream_error(id, *stream, e))?;
                self.packet(id);
                Ok(())
            }
            Effect::Undef { until_written, .. } => {
                let is_left = *until_written == UntilWritten::Unread && !self.store.fills_unread();
                // A debug build writes large numbers: a read after all gives other results than the other modes.
                if is_left && !cfg!(debug_assertions) {
                    return Ok(());
                }
                let runs = &self.step_runs.runs[id];
                self.buffer.clear();
                self.buffer.resize(self.bytes(runs), if is_left { 0x7f } else { 0 });
                tidy(self.printed_type(id), &mut self.buffer);
                write_runs(self.store, self.graph, runs, &self.buffer);
                Ok(())
            }
            Effect::Agree { .. } => Ok(()),
            Effect::Sync => {
                if let Some(trace) = &mut self.trace {
                    trace.synced(id);
                }
                Ok(())
            }
        }
    }

    /// Selects a row of a remote buffer.
    fn seek(&mut self, id: StepId, stream: StreamId) -> Result<(), RunError> {
        let row = self.scalar(id).as_int().unwrap_or(0);
        if self.remotes.select(stream, self.replica, row) {
            return Ok(());
        }
        let decl = &self.graph.streams[stream];
        let (name, rows) = (decl.name.clone(), decl.rows.unwrap_or(0));
        Err(RunError::Row { name, row: row as i64, rows, span: self.span(id) })
    }

    /// Reads a packet into the buffer and the view of a step.
    pub(crate) fn read_packet(&mut self, id: StepId, stream: StreamId) -> Result<(), RunError> {
        let runs = &self.step_runs.runs[id];
        self.buffer.clear();
        self.buffer.resize(self.bytes(runs), 0);
        self.host.read(stream, &mut self.buffer).map_err(|e| self.stream_error(id, stream, e))?;
        tidy(self.graph.streams[stream].ty, &mut self.buffer);
        self.write_buffer(id);
        Ok(())
    }

    /// Writes the buffer to the view of a step.
    pub(crate) fn write_buffer(&mut self, id: StepId) {
        write_runs(self.store, self.graph, &self.step_runs.runs[id], &self.buffer);
    }

    /// Returns the type of the elements that a step prints or ends. An empty view has no part from which to take it,
    /// and no byte that depends on it.
    pub(crate) fn printed_type(&self, id: StepId) -> ElemType {
        self.step_runs.runs[id].first().map_or(ElemType::F32, |r| self.graph.vars[r.var].ty)
    }

    /// Returns the supersteps and iterations so far.
    pub(crate) fn counters(&self) -> (u64, u64) {
        (self.report.supersteps, self.iterations)
    }

    /// Goes back to other numbers of supersteps and iterations.
    pub(crate) fn set_counters(&mut self, (supersteps, iterations): (u64, u64)) {
        (self.report.supersteps, self.iterations) = (supersteps, iterations);
    }

    /// Reads the view of a step into the buffer.
    pub(crate) fn load_buffer(&mut self, id: StepId) {
        let runs = &self.step_runs.runs[id];
        self.buffer.clear();
        self.buffer.resize(self.bytes(runs), 0);
        read_runs(self.store, self.graph, runs, &mut self.buffer);
    }

    fn bytes(&self, runs: &[Run]) -> usize {
        runs.iter().map(|r| r.len as usize * self.graph.vars[r.var].ty.bytes() as usize).sum()
    }

    /// Returns the value that a `while`, `if` or `switch` tests.
    pub(crate) fn test(&mut self, id: StepId) -> Scalar {
        if let Some(trace) = &mut self.trace {
            trace.tested(id);
        }
        self.scalar(id)
    }

    /// Notifies the trace of a packet.
    pub(crate) fn packet(&mut self, id: StepId) {
        if let Some(trace) = &mut self.trace {
            trace.packet(id);
        }
    }

    /// Returns the value of a step's rank-0 view.
    pub(crate) fn scalar(&self, id: StepId) -> Scalar {
        let runs = &self.step_runs.runs[id];
        match runs.first() {
            Some(run) => read_scalar(self.store, self.graph.vars[run.var].ty, runs),
            None => Scalar::bool(false),
        }
    }

    /// Counts a superstep, and reports progress to the host.
    pub(crate) fn superstep_done(&mut self) {
        self.report.supersteps += 1;
        self.host.progress(self.report.supersteps.min(self.total), self.total);
    }

    /// Returns an error if the run was cancelled.
    pub(crate) fn poll(&self) -> Result<(), RunError> {
        if self.session.cancel.is_cancelled() { Err(RunError::Cancelled) } else { Ok(()) }
    }

    pub(crate) fn span(&self, id: StepId) -> Span {
        self.graph.origins.span(self.graph.steps[id].origin)
    }

    fn stopped(&self, stop: VertexStop, step: StepId) -> RunError {
        match stop {
            VertexStop::Exhausted => {
                RunError::Interpreted { limit: self.session.limits.interpreted, span: self.span(step) }
            }
            VertexStop::Cancelled => RunError::Cancelled,
            VertexStop::Raced(at) => workers_raced(self.graph, self.tile(at.family, at.instance), at),
            VertexStop::Failed(at) => check_failed(self.graph, self.tile(at.family, at.instance), at),
        }
    }

    fn tile(&self, family: FamilyId, instance: u64) -> Option<u32> {
        let of_graph = self.graph.families[family].tile.as_ref();
        let placement = (self.placement)();
        let map = placement.as_ref().and_then(|p| p.families[family].as_ref()).or(of_graph)?;
        Some(map.at(&self.graph.families[family].domain, instance))
    }

    /// Adds the names and spans of a step and its stream to an error of the host.
    pub(crate) fn stream_error(&self, id: StepId, stream: StreamId, error: StreamError) -> RunError {
        let (decl, span) = (&self.graph.streams[stream], self.span(id));
        let (name, declared) = (decl.name.clone(), self.graph.origins.span(decl.origin));
        let packets = if decl.same { 1 } else { self.graph.replicas.max(1) };
        match error {
            StreamError::Ended => RunError::StreamEnded { stream: name, span, declared, packets },
            StreamError::Failed(message) => RunError::Stream { stream: name, message, span },
        }
    }
}

/// Returns the step of the first case whose keys contain a value, or else the default.
pub(crate) fn case(cases: &[(Vec<(i64, i64)>, StepId)], default: StepId, value: Scalar) -> StepId {
    let value = value.as_int();
    let holds = |&(lo, hi): &(i64, i64)| value.is_some_and(|v| lo as i128 <= v && v <= hi as i128);
    cases.iter().find(|(keys, _)| keys.iter().any(holds)).map_or(default, |c| c.1)
}
