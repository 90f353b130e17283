//! The walk over a program that several replicas run.
//!
//! A step *meets* if all replicas take part in it or in a step inside it: copies between them, packets, prints and
//! `sync`. Steps that meet are walked once, for all replicas. Whatever lies between two of them is walked to its end by
//! one replica after the other.
//!
//! Invariant: what a run does depends neither on the order of replicas nor on the mode. Conditions around a step that
//! meets are equal in all replicas, or the run ends.

use crate::error::RunError;
use crate::runs::runs_of;
use crate::store::{Store, one_nan, read_runs, tidy, write_runs};
use crate::walk::ProgramWalk;
use cranelift_entity::{EntitySet, SecondaryMap};
use girder_ir::family::ReplicaPair;
use girder_ir::graph::Graph;
use girder_ir::ids::{CopyId, ProgramId, StepId, VarId};
use girder_ir::program::{Effect, StepKind};
use girder_ir::types::{ElemType, Scalar};
use girder_ir::view::Run;
use std::sync::Arc;

/// The steps in which replicas meet, and the elements that they exchange.
#[derive(Default)]
pub(crate) struct Meetings {
    steps: EntitySet<StepId>,
    copies: SecondaryMap<CopyId, Vec<Exchanged>>,
}

/// Elements that travel between some pairs of replicas.
#[derive(Clone)]
struct Exchanged {
    from: Vec<Run>,
    to: Vec<Run>,
    bytes: usize,
    pairs: Arc<[ReplicaPair]>,
}

impl Meetings {
    /// Returns the meetings of a graph; none if it has one replica.
    pub(crate) fn of(graph: &Graph) -> Meetings {
        let mut meetings = Meetings::default();
        if graph.replicas < 2 {
            return meetings;
        }
        for (id, copy) in graph.copies.iter().filter(|(_, copy)| copy.crosses()) {
            for family in &copy.families {
                let Some(pairs) = family.source.pairs() else { continue };
                for instance in 0..family.domain.count() {
                    let [from, to] = [&family.src, &family.dst].map(|f| runs_of(&f.view(&family.domain, instance)));
                    let size = |r: &Run| r.len as usize * graph.vars[r.var].ty.bytes() as usize;
                    let bytes = from.iter().map(size).sum();
                    meetings.copies[id].push(Exchanged { from, to, bytes, pairs: pairs.clone() });
                }
            }
        }
        // Programs whose steps meet, until no call adds one.
        let mut programs: EntitySet<ProgramId> = EntitySet::new();
        loop {
            let mut more = false;
            for (program, p) in &graph.programs {
                if meetings.enter(graph, p.body, &programs) && programs.insert(program) {
                    more = true;
                }
            }
            if !more {
                return meetings;
            }
        }
    }

    /// Adds the steps of a tree that meet; returns whether its root does.
    fn enter(&mut self, graph: &Graph, root: StepId, programs: &EntitySet<ProgramId>) -> bool {
        let step = &graph.steps[root];
        let mut meets = match &step.kind {
            StepKind::Copy(copy) => graph.copies[*copy].crosses(),
            StepKind::Call(program) => programs.contains(*program),
            StepKind::Effect(Effect::Read { stream, .. } | Effect::Write { stream, .. }) => {
                graph.streams[*stream].rows.is_none()
            }
            StepKind::Effect(effect) => {
                matches!(effect, Effect::Print { .. } | Effect::PrintText { .. } | Effect::Sync)
            }
            _ => false,
        };
        for child in step.children() {
            meets |= self.enter(graph, child, programs);
        }
        if meets {
            self.steps.insert(root);
        }
        meets
    }

    fn has(&self, step: StepId) -> bool {
        self.steps.contains(step)
    }
}

impl ProgramWalk<'_, '_> {
    /// Walks a step for all replicas.
    pub(crate) fn together(&mut self, id: StepId) -> Result<(), RunError> {
        if !self.meetings.has(id) {
            return self.each(|this| this.step(id));
        }
        self.deeper(id, |this| this.meet(id))
    }

    /// Walks what lies between two meetings: `walk` for one replica after the other.
    fn each(&mut self, mut walk: impl FnMut(&mut Self) -> Result<(), RunError>) -> Result<(), RunError> {
        let (before, mut after) = (self.counters(), self.counters());
        for replica in 0..self.graph.replicas {
            self.store.select(replica);
            self.replica = replica;
            self.set_counters(before);
            if let Some(trace) = &mut self.trace {
                trace.replica();
            }
            walk(self).map_err(|e| e.in_replica(replica))?;
            let (supersteps, iterations) = self.counters();
            after = (after.0.max(supersteps), after.1.max(iterations));
        }
        self.set_counters(after);
        if let Some(trace) = &mut self.trace {
            trace.replicas_met();
        }
        self.store.select(0);
        self.replica = 0;
        Ok(())
    }

    fn meet(&mut self, id: StepId) -> Result<(), RunError> {
        let graph = self.graph;
        match &graph.steps[id].kind {
            StepKind::Seq(steps) => {
                let mut rest = &steps[..];
                while let Some(&first) = rest.first() {
                    let apart = rest.iter().take_while(|s| !self.meetings.has(**s)).count();
                    let (own, others) = rest.split_at(apart);
                    if own.is_empty() {
                        self.together(first)?;
                        rest = &rest[1..];
                        continue;
                    }
                    self.each(|this| this.sequence(own))?;
                    rest = others;
                }
                Ok(())
            }
            StepKind::Par(steps) => steps.iter().try_for_each(|&s| self.together(s)),
            StepKind::Copy(copy) => self.exchange(id, *copy),
            StepKind::Repeat { count, index, body } => {
                self.repeat(id, *count, |this, value| {
                    for replica in (0..graph.replicas).filter(|_| index.is_some()) {
                        this.store.select(replica);
                        this.set_index(*index, value);
                    }
                    this.together(*body)
                })?;
                Ok(())
            }
            StepKind::While { before, body, .. } => self.while_loop(
                id,
                |this| {
                    this.together(*before)?;
                    this.agreed(id)
                },
                |this| this.together(*body),
            ),
            StepKind::If { then, els, .. } => {
                let taken = self.agreed(id)?.bits != 0;
                self.together(if taken { *then } else { *els })
            }
            StepKind::Switch { cases, default, .. } => {
                let value = self.agreed(id)?;
                self.together(crate::walk::case(cases, *default, value))
            }
            StepKind::Call(program) => {
                self.count(id)?;
                self.together(graph.programs[*program].body)
            }
            StepKind::Effect(effect) => self.effect_together(id, effect),
            StepKind::Execute(_) => self.each(|this| this.step(id)),
        }
    }

    /// Returns the value that a step tests, which is that of all replicas.
    fn agreed(&mut self, id: StepId) -> Result<Scalar, RunError> {
        self.store.select(0);
        let value = self.test(id);
        for replica in 1..self.graph.replicas {
            self.store.select(replica);
            if self.scalar(id) != value {
                return Err(RunError::Diverged { what: "this condition", span: self.span(id) });
            }
        }
        self.store.select(0);
        Ok(value)
    }

    fn exchange(&mut self, id: StepId, copy: CopyId) -> Result<(), RunError> {
        self.poll()?;
        if !self.store.exchange(copy) {
            let mut buffer = std::mem::take(&mut self.buffer);
            // No element is both read and written, so the order of pairs does not matter.
            for moved in &self.meetings.copies[copy] {
                buffer.clear();
                buffer.resize(moved.bytes, 0);
                for pair in moved.pairs.iter() {
                    self.store.select(pair.sender);
                    read_runs(self.store, self.graph, &moved.from, &mut buffer);
                    self.store.select(pair.receiver);
                    write_runs(self.store, self.graph, &moved.to, &buffer);
                }
            }
            self.buffer = buffer;
        }
        self.store.select(0);
        if let Some(trace) = &mut self.trace {
            trace.copied(id, copy);
        }
        self.superstep_done();
        Ok(())
    }

    fn effect_together(&mut self, id: StepId, effect: &Effect) -> Result<(), RunError> {
        let replicas = self.graph.replicas;
        match effect {
            Effect::Print { label, value } => {
                let ty = self.printed_type(id);
                let all = self.values(id, ty);
                let shape: Vec<u64> = value.shape().to_vec();
                if all.iter().all(|one| *one == all[0]) {
                    self.host.print(label, ty, &shape, &all[0]);
                } else {
                    let shape: Vec<u64> = std::iter::once(u64::from(replicas)).chain(shape).collect();
                    self.host.print(label, ty, &shape, &all.concat());
                }
                Ok(())
            }
            Effect::Read { stream, .. } => {
                let same = self.graph.streams[*stream].same;
                for replica in 0..replicas {
                    self.store.select(replica);
                    if replica == 0 || !same {
                        self.read_packet(id, *stream)?;
                    } else {
                        self.write_buffer(id);
                    }
                }
                self.store.select(0);
                self.packet(id);
                Ok(())
            }
            Effect::Write { stream, .. } => {
                let all = self.values(id, self.graph.streams[*stream].ty);
                let same = self.graph.streams[*stream].same;
                if same && all.iter().any(|one| *one != all[0]) {
                    return Err(RunError::Diverged { what: "this packet", span: self.span(id) });
                }
                for packet in &all[..if same { 1 } else { all.len() }] {
                    self.host.write(*stream, packet).map_err(|e| self.stream_error(id, *stream, e))?;
                }
                self.packet(id);
                Ok(())
            }
            Effect::PrintText { .. }
            | Effect::Sync
            | Effect::Abort { .. }
            | Effect::Undef { .. }
            | Effect::Agree { .. }
            | Effect::Seek { .. } => self.effect(id, effect),
        }
    }

    /// Returns the elements of a step's view in every replica.
    fn values(&mut self, id: StepId, ty: ElemType) -> Vec<Vec<u8>> {
        let mut all = vec![];
        for replica in 0..self.graph.replicas {
            self.store.select(replica);
            self.load_buffer(id);
            one_nan(ty, &mut self.buffer);
            tidy(ty, &mut self.buffer);
            all.push(self.buffer.clone());
        }
        self.store.select(0);
        all
    }
}

/// Returns the elements of a run in each replica, or once if they are equal in all of them.
pub(crate) fn read_each(store: &dyn Store, graph: &Graph, var: VarId, run: Option<Run>) -> Vec<Vec<u8>> {
    let decl = &graph.vars[var];
    let of = |replica| {
        let mut bytes = vec![0; decl.bytes() as usize];
        if let Some(run) = run {
            store.select(replica);
            store.read(run, &mut bytes);
        }
        one_nan(decl.ty, &mut bytes);
        bytes
    };
    let mut all: Vec<Vec<u8>> = (0..graph.replicas.max(1)).map(of).collect();
    store.select(0);
    if all.iter().all(|one| *one == all[0]) {
        all.truncate(1);
    }
    all
}
