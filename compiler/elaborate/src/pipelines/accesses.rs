//! What the steps of a phase touch, and steps that touch other variables instead.
//!
//! Invariant: whatever a step may read or write is found; what is found may be more.

use crate::elaborator::{Body, Node, NodeKind};
use girder_ir::codelet::Dir;
use girder_ir::family::{Domain, Field};
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
        each_touch(graph, node, false, &mut |touch| match touch {
            Touch::Field { field, reads, writes, .. } => {
                for part in &field.parts {
                    if reads {
                        self.reads.entry(part.var).or_insert(at);
                    }
                    if writes {
                        self.writes.entry(part.var).or_insert(at);
                    }
                }
            }
            Touch::View { view, writes } => {
                let into = if writes { &mut self.writes } else { &mut self.reads };
                view.parts.iter().for_each(|p| _ = into.entry(p.var).or_insert(at));
            }
            Touch::Index(var) => _ = self.writes.entry(var).or_insert(at),
            Touch::Stream(stream) => _ = self.streams.entry(stream).or_insert(at),
            Touch::Ordered(what) => self.ordered.push((what, at)),
        });
    }
}

/// What a step touches.
pub enum Touch<'g> {
    /// A field of vertices, or a side of copies.
    Field {
        /// The elements of each instance.
        field: &'g Field,
        /// The instances.
        domain: &'g Domain,
        reads: bool,
        writes: bool,
    },
    /// A view that an effect or a condition reads, or an effect writes.
    View {
        view: &'g View,
        writes: bool,
    },
    /// The index of a loop, which the loop writes.
    Index(VarId),
    Stream(StreamId),
    /// An effect that the host observes in the order of all steps.
    Ordered(&'static str),
}

/// Calls `f` with what a step touches; if `certain`, only with what it touches whenever it runs, and not with the steps
/// of called programs.
pub fn each_touch<'g>(graph: &'g Graph, node: &'g Node, certain: bool, f: &mut dyn FnMut(Touch<'g>)) {
    let inside = |body: &'g Body, f: &mut dyn FnMut(Touch<'g>)| {
        body.nodes.iter().for_each(|n| each_touch(graph, n, certain, f));
    };
    let read = |view| Touch::View { view, writes: false };
    match &node.kind {
        NodeKind::Execute(set) => each_field(graph, *set, f),
        NodeKind::Copy(copy) => each_side(graph, *copy, f),
        NodeKind::Repeat { count: 0, .. } if certain => {}
        NodeKind::Repeat { index, body, .. } => {
            inside(body, f);
            index.iter().for_each(|(var, ..)| f(Touch::Index(*var)));
        }
        NodeKind::While { .. } | NodeKind::If { .. } | NodeKind::Switch { .. } | NodeKind::Call(_) if certain => {}
        NodeKind::While { before, cond, body } => {
            [before, body].into_iter().for_each(|b| inside(b, f));
            f(read(cond));
        }
        NodeKind::If { cond, then, els } => {
            [then, els].into_iter().for_each(|b| inside(b, f));
            f(read(cond));
        }
        NodeKind::Switch { on, cases, default } => {
            cases.iter().map(|(_, body)| body).chain([default]).for_each(|b| inside(b, f));
            f(read(on));
        }
        NodeKind::Par(branches) => branches.iter().for_each(|b| inside(b, f)),
        NodeKind::Call(program) => each_step(graph, graph.programs[*program].body, f),
        NodeKind::Effect(effect) => each_of_effect(effect, f),
    }
}

/// Calls `f` with what the steps of a called program touch.
fn each_step<'g>(graph: &'g Graph, root: StepId, f: &mut dyn FnMut(Touch<'g>)) {
    let mut left = vec![root];
    while let Some(step) = left.pop() {
        let step = &graph.steps[step];
        match &step.kind {
            StepKind::Execute(set) => each_field(graph, *set, f),
            StepKind::Copy(copy) => each_side(graph, *copy, f),
            StepKind::Repeat { index, .. } => index.iter().for_each(|(var, ..)| f(Touch::Index(*var))),
            StepKind::While { cond: view, .. }
            | StepKind::If { cond: view, .. }
            | StepKind::Switch { on: view, .. } => {
                f(Touch::View { view, writes: false });
            }
            StepKind::Call(program) => left.push(graph.programs[*program].body),
            StepKind::Effect(effect) => each_of_effect(effect, f),
            StepKind::Seq(_) | StepKind::Par(_) => {}
        }
        left.extend(step.children());
    }
}

fn each_field<'g>(graph: &'g Graph, set: ComputeSetId, f: &mut dyn FnMut(Touch<'g>)) {
    for &id in &graph.sets[set].families {
        let family = &graph.families[id];
        let fields = &graph.codelets[family.codelet].fields;
        for field in &family.fields {
            let dir = fields[field.field].dir;
            let (reads, writes) = (dir != Dir::Out, dir != Dir::In);
            f(Touch::Field { field, domain: &family.domain, reads, writes });
        }
    }
}

fn each_side<'g>(graph: &'g Graph, copy: CopyId, f: &mut dyn FnMut(Touch<'g>)) {
    for family in &graph.copies[copy].families {
        let domain = &family.domain;
        f(Touch::Field { field: &family.src, domain, reads: true, writes: false });
        f(Touch::Field { field: &family.dst, domain, reads: false, writes: true });
    }
}

fn each_of_effect<'g>(effect: &'g Effect, f: &mut dyn FnMut(Touch<'g>)) {
    let (read, write) = (|view| Touch::View { view, writes: false }, |view| Touch::View { view, writes: true });
    match effect {
        Effect::Read { stream, into } => {
            f(Touch::Stream(*stream));
            f(write(into));
        }
        Effect::Write { stream, from } => {
            f(Touch::Stream(*stream));
            f(read(from));
        }
        Effect::Seek { stream, row } => {
            f(Touch::Stream(*stream));
            f(read(row));
        }
        Effect::Undef { what, .. } => f(write(what)),
        Effect::Agree { what } => f(read(what)),
        Effect::Print { value, .. } => {
            f(read(value));
            f(Touch::Ordered("print"));
        }
        Effect::PrintText { .. } => f(Touch::Ordered("print")),
        Effect::Abort { when, .. } => {
            when.iter().for_each(|view| f(read(view)));
            f(Touch::Ordered("abort"));
        }
        Effect::Sync => f(Touch::Ordered("sync")),
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
                | Effect::Undef { what: v, .. }
                | Effect::Agree { what: v }
                | Effect::Seek { row: v, .. }
                | Effect::Abort { when: Some(v), .. } => view(v),
                Effect::Abort { when: None, .. } | Effect::PrintText { .. } | Effect::Sync => {}
            },
            NodeKind::Call(_) => {}
        }
    }
}
