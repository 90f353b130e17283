//! What the steps of a phase touch, and steps that touch other variables instead.
//!
//! Invariant: whatever a step may read or write is found; what is found may be more.

use crate::elaborator::{Body, Node, NodeKind};
use girder_ir::codelet::Dir;
use girder_ir::family::Field;
use girder_ir::graph::Graph;
use girder_ir::ids::{ComputeSetId, CopyId, StepId, StreamId, VarId};
use girder_ir::program::{Effect, StepKind};
use girder_ir::view::View;
use girder_source::OriginId;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// What steps touch, each with the first step that does.
#[derive(Clone, Debug, Default)]
pub struct Accesses {
    /// Variables that are read.
    pub reads: BTreeMap<VarId, OriginId>,
    /// Variables that are written.
    pub writes: BTreeMap<VarId, OriginId>,
    /// Streams.
    pub streams: BTreeMap<StreamId, OriginId>,
    /// Effects that the host observes in the order of all steps: `print`, `abort` and `sync`.
    pub ordered: Vec<(&'static str, OriginId)>,
}

impl Accesses {
    /// Returns what some steps touch.
    pub fn of<'n>(graph: &Graph, nodes: impl IntoIterator<Item = &'n Node>) -> Accesses {
        let mut all = Accesses::default();
        nodes.into_iter().for_each(|node| all.add(graph, node));
        all
    }

    /// Returns whether the order of these steps and others before them matters: some write a variable that the others
    /// access.
    pub fn depends_on(&self, before: &Accesses) -> bool {
        self.reads.keys().any(|v| before.writes.contains_key(v))
            || self.writes.keys().any(|&v| before.touch(v).is_some())
    }

    /// Returns the first step that reads or writes a variable.
    pub fn touch(&self, var: VarId) -> Option<OriginId> {
        self.writes.get(&var).or(self.reads.get(&var)).copied()
    }

    /// Adds what a step touches.
    pub fn add(&mut self, graph: &Graph, node: &Node) {
        let at = node.origin;
        let mut inside = |body: &Body| body.nodes.iter().for_each(|n| self.add(graph, n));
        match &node.kind {
            NodeKind::Execute(set) => self.set(graph, *set, at),
            NodeKind::Copy(copy) => self.copy(graph, *copy, at),
            NodeKind::Repeat { index, body, .. } => {
                inside(body);
                self.index(*index, at);
            }
            NodeKind::While { before, cond, body } => {
                [before, body].into_iter().for_each(inside);
                self.read(cond, at);
            }
            NodeKind::If { cond, then, els } => {
                [then, els].into_iter().for_each(inside);
                self.read(cond, at);
            }
            NodeKind::Switch { on, cases, default } => {
                cases.iter().map(|(_, body)| body).chain([default]).for_each(inside);
                self.read(on, at);
            }
            NodeKind::Par(branches) => branches.iter().for_each(inside),
            NodeKind::Call(program) => self.step(graph, graph.programs[*program].body, at),
            NodeKind::Effect(effect) => self.effect(effect, at),
        }
    }

    /// Adds the steps of a called program.
    fn step(&mut self, graph: &Graph, root: StepId, at: OriginId) {
        let mut left = vec![root];
        while let Some(step) = left.pop() {
            let step = &graph.steps[step];
            match &step.kind {
                StepKind::Execute(set) => self.set(graph, *set, at),
                StepKind::Copy(copy) => self.copy(graph, *copy, at),
                StepKind::Repeat { index, .. } => self.index(*index, at),
                StepKind::While { cond: view, .. } | StepKind::If { cond: view, .. } => self.read(view, at),
                StepKind::Switch { on, .. } => self.read(on, at),
                StepKind::Call(program) => left.push(graph.programs[*program].body),
                StepKind::Effect(effect) => self.effect(effect, at),
                StepKind::Seq(_) | StepKind::Par(_) => {}
            }
            left.extend(step.children());
        }
    }

    fn set(&mut self, graph: &Graph, set: ComputeSetId, at: OriginId) {
        for &id in &graph.sets[set].families {
            let family = &graph.families[id];
            let fields = &graph.codelets[family.codelet].fields;
            for field in &family.fields {
                match fields[field.field].dir {
                    Dir::In => self.field(field, true, false, at),
                    Dir::Out => self.field(field, false, true, at),
                    _ => self.field(field, true, true, at),
                }
            }
        }
    }

    fn copy(&mut self, graph: &Graph, copy: CopyId, at: OriginId) {
        for family in &graph.copies[copy].families {
            self.field(&family.src, true, false, at);
            self.field(&family.dst, false, true, at);
        }
    }

    fn field(&mut self, field: &Field, reads: bool, writes: bool, at: OriginId) {
        for part in &field.parts {
            if reads {
                self.reads.entry(part.var).or_insert(at);
            }
            if writes {
                self.writes.entry(part.var).or_insert(at);
            }
        }
    }

    fn index(&mut self, index: Option<(VarId, i32, i32)>, at: OriginId) {
        if let Some((var, ..)) = index {
            self.writes.entry(var).or_insert(at);
        }
    }

    fn read(&mut self, view: &View, at: OriginId) {
        view.parts.iter().for_each(|p| _ = self.reads.entry(p.var).or_insert(at));
    }

    fn write(&mut self, view: &View, at: OriginId) {
        view.parts.iter().for_each(|p| _ = self.writes.entry(p.var).or_insert(at));
    }

    fn effect(&mut self, effect: &Effect, at: OriginId) {
        match effect {
            Effect::Read { stream, into } => {
                self.streams.entry(*stream).or_insert(at);
                self.write(into, at);
            }
            Effect::Write { stream, from } => {
                self.streams.entry(*stream).or_insert(at);
                self.read(from, at);
            }
            Effect::Seek { stream, row } => {
                self.streams.entry(*stream).or_insert(at);
                self.read(row, at);
            }
            Effect::Undef { what } => self.write(what, at),
            Effect::Print { value, .. } => {
                self.read(value, at);
                self.ordered.push(("print", at));
            }
            Effect::PrintText { .. } => self.ordered.push(("print", at)),
            Effect::Abort { when, .. } => {
                when.iter().for_each(|view| self.read(view, at));
                self.ordered.push(("abort", at));
            }
            Effect::Sync => self.ordered.push(("sync", at)),
        }
    }
}

/// Lets steps touch other variables of the same shapes, but for the steps of called programs.
pub fn rename(graph: &mut Graph, nodes: &mut [Node], names: &FxHashMap<VarId, VarId>) {
    let renamed = |var: &mut VarId| *var = names.get(var).copied().unwrap_or(*var);
    let field = |f: &mut Field| f.parts.iter_mut().for_each(|p| renamed(&mut p.var));
    let view = |v: &mut View| v.parts.iter_mut().for_each(|p| renamed(&mut p.var));
    for node in nodes {
        match &mut node.kind {
            NodeKind::Execute(set) => {
                for &id in &graph.sets[*set].families {
                    graph.families[id].fields.iter_mut().for_each(field);
                }
            }
            NodeKind::Copy(copy) => {
                for family in &mut graph.copies[*copy].families {
                    field(&mut family.src);
                    field(&mut family.dst);
                }
            }
            NodeKind::Repeat { index, body, .. } => {
                index.iter_mut().for_each(|(var, ..)| renamed(var));
                rename(graph, &mut body.nodes, names);
            }
            NodeKind::While { before, cond, body } => {
                view(cond);
                [before, body].into_iter().for_each(|b| rename(graph, &mut b.nodes, names));
            }
            NodeKind::If { cond, then, els } => {
                view(cond);
                [then, els].into_iter().for_each(|b| rename(graph, &mut b.nodes, names));
            }
            NodeKind::Switch { on, cases, default } => {
                view(on);
                cases.iter_mut().map(|(_, b)| b).chain([default]).for_each(|b| rename(graph, &mut b.nodes, names));
            }
            NodeKind::Par(list) => list.iter_mut().for_each(|b| rename(graph, &mut b.nodes, names)),
            NodeKind::Effect(effect) => match effect {
                Effect::Print { value: v, .. }
                | Effect::Read { into: v, .. }
                | Effect::Write { from: v, .. }
                | Effect::Undef { what: v }
                | Effect::Seek { row: v, .. }
                | Effect::Abort { when: Some(v), .. } => view(v),
                Effect::Abort { when: None, .. } | Effect::PrintText { .. } | Effect::Sync => {}
            },
            NodeKind::Call(_) => {}
        }
    }
}
