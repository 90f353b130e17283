//! The flow of values that may differ from replica to replica.
//!
//! Invariant: the result is the least one that all steps agree with.

use super::is_broadcast;
use crate::steps::{callers_first, children};
use cranelift_entity::SecondaryMap;
use girder_ir::family::CopySource;
use girder_ir::graph::{Graph, Init};
use girder_ir::ids::{ProgramId, StepId, StreamId, VarId};
use girder_ir::program::{Effect, StepKind};
use girder_ir::view::View;

/// The place where a value begins to differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Cause {
    /// The number of the replica.
    Index(VarId),
    /// A packet of a stream of which each replica has its own.
    Packet(StepId),
    /// A copy that some replicas receive and others do not, or that each receives from another one.
    Received(StepId),
}

/// What decides whether a step runs, if it differs from replica to replica.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Context {
    /// The step that tests it.
    pub condition: StepId,
    /// Why it differs.
    pub cause: Cause,
}

/// The values that differ.
pub(super) struct Flow<'g> {
    graph: &'g Graph,
    vars: SecondaryMap<VarId, Option<Cause>>,
    /// Remote buffers, of which each replica has its own.
    remotes: SecondaryMap<StreamId, Option<Cause>>,
    /// Remote buffers whose selected row differs.
    rows: SecondaryMap<StreamId, Option<Cause>>,
    /// The step that first wrote each of them so.
    written: SecondaryMap<VarId, Option<StepId>>,
    programs: SecondaryMap<ProgramId, Option<Context>>,
    changed: bool,
}

impl<'g> Flow<'g> {
    /// Follows all values of a graph.
    pub fn of(graph: &'g Graph) -> Flow<'g> {
        let mut flow = Flow {
            graph,
            vars: SecondaryMap::new(),
            remotes: SecondaryMap::new(),
            rows: SecondaryMap::new(),
            written: SecondaryMap::new(),
            programs: SecondaryMap::new(),
            changed: true,
        };
        for (id, _) in graph.vars.iter().filter(|(_, v)| v.init == Some(Init::ReplicaIndex)) {
            flow.vars[id] = Some(Cause::Index(id));
        }
        let programs = callers_first(graph);
        while std::mem::take(&mut flow.changed) {
            for &program in &programs {
                flow.walk(graph.programs[program].body, flow.programs[program]);
            }
        }
        flow
    }

    /// Returns why a variable may differ; `None` if it does not.
    pub fn cause(&self, var: VarId) -> Option<Cause> {
        self.vars[var]
    }

    /// Returns the step that writes a variable that differs.
    pub fn written(&self, var: VarId) -> Option<StepId> {
        self.written[var]
    }

    /// Calls `f` with every step, and with what decides whether it runs.
    pub fn each_step(&self, mut f: impl FnMut(StepId, Option<Context>)) {
        for (program, p) in &self.graph.programs {
            let mut left = vec![(p.body, self.programs[program])];
            while let Some((step, context)) = left.pop() {
                f(step, context);
                let inner = self.inside(step, context);
                let at = left.len();
                children(&self.graph.steps[step].kind, |child| left.push((child, inner)));
                left[at..].reverse();
            }
        }
    }

    fn walk(&mut self, root: StepId, context: Option<Context>) {
        let graph = self.graph;
        let mut left = vec![(root, context)];
        while let Some((step, context)) = left.pop() {
            self.step(step, context);
            let inner = self.inside(step, context);
            let at = left.len();
            children(&graph.steps[step].kind, |child| left.push((child, inner)));
            left[at..].reverse();
        }
    }

    /// Returns what decides whether the steps inside a step run.
    fn inside(&self, step: StepId, context: Option<Context>) -> Option<Context> {
        let tested = match &self.graph.steps[step].kind {
            StepKind::While { cond: view, .. }
            | StepKind::If { cond: view, .. }
            | StepKind::Switch { on: view, .. } => self.of_view(view),
            _ => None,
        };
        context.or(tested.map(|cause| Context { condition: step, cause }))
    }

    fn of_view(&self, view: &View) -> Option<Cause> {
        view.parts.iter().find_map(|p| self.vars[p.var])
    }

    fn step(&mut self, step: StepId, context: Option<Context>) {
        let graph = self.graph;
        let decided = context.map(|c| c.cause);
        match &graph.steps[step].kind {
            StepKind::Execute(set) => {
                for family in graph.sets[*set].families.iter().map(|&f| &graph.families[f]) {
                    let fields = &graph.codelets[family.codelet].fields;
                    let inputs = family.fields.iter().filter(|f| fields[f.field].dir.reads()).flat_map(|f| &f.parts);
                    let read = inputs.into_iter().find_map(|p| self.vars[p.var]);
                    let outputs = family.fields.iter().filter(|f| fields[f.field].dir.writes()).flat_map(|f| &f.parts);
                    outputs.for_each(|p| self.write(p.var, decided.or(read), step));
                }
            }
            StepKind::Copy(copy) => {
                for family in &graph.copies[*copy].families {
                    let read = || family.src.parts.iter().find_map(|p| self.vars[p.var]);
                    let found = match &family.source {
                        CopySource::Own => read(),
                        CopySource::Uniform => None,
                        CopySource::Replicas(pairs) if is_broadcast(pairs, graph.replicas) => None,
                        CopySource::Replicas(_) if family.source.writes_all(graph.replicas) => read(),
                        CopySource::Replicas(_) => Some(Cause::Received(step)),
                    };
                    family.dst.parts.iter().for_each(|p| self.write(p.var, decided.or(found), step));
                }
            }
            StepKind::Repeat { index: Some((var, ..)), .. } => self.write(*var, decided, step),
            StepKind::Call(program) if self.programs[*program].is_none() && context.is_some() => {
                self.programs[*program] = context;
                self.changed = true;
            }
            StepKind::Effect(Effect::Read { stream, into }) if graph.streams[*stream].rows.is_some() => {
                let found = decided.or(self.remotes[*stream]).or(self.rows[*stream]);
                into.parts.iter().for_each(|p| self.write(p.var, found, step));
            }
            StepKind::Effect(Effect::Write { stream, from }) if graph.streams[*stream].rows.is_some() => {
                let found = decided.or(self.of_view(from)).or(self.rows[*stream]);
                if found.is_some() && self.remotes[*stream].is_none() {
                    (self.remotes[*stream], self.changed) = (found, true);
                }
            }
            StepKind::Effect(Effect::Seek { stream, row }) => {
                let found = decided.or(self.of_view(row));
                if found.is_some() && self.rows[*stream].is_none() {
                    (self.rows[*stream], self.changed) = (found, true);
                }
            }
            StepKind::Effect(Effect::Read { stream, into }) => {
                let own = (!graph.streams[*stream].same).then_some(Cause::Packet(step));
                into.parts.iter().for_each(|p| self.write(p.var, decided.or(own), step));
            }
            StepKind::Effect(Effect::Undef { what, .. }) => {
                what.parts.iter().for_each(|p| self.write(p.var, decided, step));
            }
            _ => {}
        }
    }

    fn write(&mut self, var: VarId, cause: Option<Cause>, step: StepId) {
        if cause.is_some() && self.vars[var].is_none() {
            (self.vars[var], self.written[var], self.changed) = (cause, Some(step), true);
        }
    }
}
