//! Copies of steps and of entries of the tape, with variables of their own for what they write.
//!
//! Invariant: a copy accesses the variables that stand for those of its original at the same moment.

use super::order::Moment;
use super::tape::{Entry, EntryKind, Tape, map_tensors};
use crate::elaborator::{Body, Elaborator, Node, NodeKind};
use crate::value::Tensor;
use girder_ir::codelet::Dir;
use girder_ir::graph::CopySet;
use girder_ir::ids::VarId;
use girder_ir::program::Effect;
use girder_ir::view::View;
use std::ops::Range;
use std::rc::Rc;

/// The variables of a copy. A variable that lives outside the part and is written as a whole has a new one from then
/// on, so that its earlier value stays.
#[derive(Default)]
pub(super) struct Versions(Vec<Version>);

/// A variable that stands for another from a moment on.
pub(super) struct Version {
    pub of: VarId,
    pub since: Moment,
    pub copy: VarId,
}

impl Versions {
    /// Adds a variable that stands for another from a moment on.
    pub(super) fn add(&mut self, of: VarId, since: Moment, copy: VarId) {
        self.0.push(Version { of, since, copy });
    }

    /// Returns all versions, in the order in which they were added.
    pub(super) fn list(&self) -> &[Version] {
        &self.0
    }

    /// Returns the variable that stands for another at a moment.
    pub(super) fn at(&self, var: VarId, at: Moment) -> VarId {
        self.0.iter().rev().find(|v| v.of == var && v.since <= at).map_or(var, |v| v.copy)
    }

    /// Returns the view with the variables that stand for its own at a moment.
    pub(super) fn view(&self, view: &View, at: Moment) -> View {
        let mut view = view.clone();
        view.parts.iter_mut().for_each(|p| p.var = self.at(p.var, at));
        view
    }
}

impl Elaborator<'_> {
    pub(super) fn renamed_body(&mut self, body: Body, versions: &Versions, during: &Range<Moment>, to: Moment) -> Body {
        let nodes = body.nodes.into_iter().map(|n| self.renamed_node(n, versions, during, to)).collect();
        Body { nodes, ..Body::default() }
    }

    /// Returns a copy of a node that accesses the variables of `versions`.
    pub(super) fn renamed_node(&mut self, node: Node, versions: &Versions, during: &Range<Moment>, to: Moment) -> Node {
        let at = node.at;
        let kind = match node.kind {
            NodeKind::Execute(set) => {
                let mut copy = self.graph.sets[set].clone();
                copy.name = self.entities.sets.unique(copy.name);
                let families = std::mem::take(&mut copy.families);
                let new = self.graph.sets.push(copy);
                for id in families {
                    let mut family = self.graph.families[id].clone();
                    family.set = new;
                    let fields = &self.graph.codelets[family.codelet].fields;
                    for f in &mut family.fields {
                        let at = if fields[f.field].dir == Dir::In { at } else { at + 1 };
                        f.parts.iter_mut().for_each(|p| p.var = versions.at(p.var, at));
                    }
                    let indices = self.graph.indices[id].clone();
                    let id = self.graph.families.push(family);
                    self.graph.indices[id] = indices;
                    self.graph.sets[new].families.push(id);
                }
                NodeKind::Execute(new)
            }
            NodeKind::Copy(copy) => {
                let CopySet { name, families, origin } = self.graph.copies[copy].clone();
                let name = self.entities.sets.unique(name);
                let mut families = families;
                for f in &mut families {
                    f.dst.parts.iter_mut().for_each(|p| p.var = versions.at(p.var, at + 1));
                    f.src.parts.iter_mut().for_each(|p| p.var = versions.at(p.var, at));
                }
                NodeKind::Copy(self.graph.copies.push(CopySet { name, families, origin }))
            }
            NodeKind::Repeat { count, index, body } => {
                let index = index.map(|(v, start, step)| (versions.at(v, at), start, step));
                NodeKind::Repeat { count, index, body: self.renamed_body(body, versions, during, to) }
            }
            NodeKind::If { cond, then, els } => NodeKind::If {
                cond: versions.view(&cond, at),
                then: self.renamed_body(then, versions, during, to),
                els: self.renamed_body(els, versions, during, to),
            },
            NodeKind::Switch { on, cases, default } => NodeKind::Switch {
                on: versions.view(&on, at),
                cases: cases.into_iter().map(|(k, b)| (k, self.renamed_body(b, versions, during, to))).collect(),
                default: self.renamed_body(default, versions, during, to),
            },
            NodeKind::Par(list) => {
                NodeKind::Par(list.into_iter().map(|b| self.renamed_body(b, versions, during, to)).collect())
            }
            NodeKind::Effect(Effect::Undef { what, until_written }) => {
                NodeKind::Effect(Effect::Undef { what: versions.view(&what, at), until_written })
            }
            NodeKind::Effect(Effect::Agree { what }) => {
                NodeKind::Effect(Effect::Agree { what: versions.view(&what, at) })
            }
            other => other,
        };
        Node { kind, origin: node.origin, at: to + (at - during.start), reverse: true, stage: node.stage }
    }
}

/// Returns the entries of a copy.
pub(super) fn renamed_tape(tape: &Tape, versions: &Versions, during: &Range<Moment>, to: Moment) -> Tape {
    let at = |m: Moment| to + m.saturating_sub(during.start);
    let copy = |e: &Rc<Entry>| {
        let mut e = Entry::clone(e);
        let (first, last) = (e.during.start, e.during.end);
        let read = |t: &mut Tensor| t.view = versions.view(&t.view, first);
        let made = |t: &mut Tensor| t.view = versions.view(&t.view, last);
        e.during = at(first)..at(last);
        let again = |t: &Rc<Tape>| Rc::new(renamed_tape(t, versions, during, to));
        match &mut e.kind {
            EntryKind::Each { operands, outs, .. } => {
                operands.iter_mut().for_each(|(v, _)| map_tensors(v, &mut |t| read(t)));
                outs.iter_mut().for_each(made);
            }
            EntryKind::Rule { bound, reads, out, .. } => {
                reads.iter_mut().for_each(|v| *v = versions.at(*v, first));
                bound.iter_mut().for_each(|(_, v)| map_tensors(v, &mut |t| read(t)));
                map_tensors(out, &mut |t| made(t));
            }
            EntryKind::Write { dst, src } => {
                *dst = versions.view(dst, last);
                read(src);
            }
            EntryKind::Fill { dst, .. } => *dst = versions.view(dst, last),
            EntryKind::Rows { put, x, at, value, .. } => {
                read(x);
                read(at);
                if *put { read(value) } else { made(value) }
            }
            EntryKind::ScatterAdd { x, index, value } => [x, index, value].into_iter().for_each(read),
            EntryKind::Opaque { reads, writes, .. } => {
                reads.iter_mut().for_each(|v| *v = versions.at(*v, first));
                writes.iter_mut().for_each(|v| *v = versions.at(*v, last));
            }
            EntryKind::Branch { on, arms, .. } => {
                read(on);
                arms.iter_mut().for_each(|t| *t = again(t));
            }
            EntryKind::Repeat { index, body, .. } => {
                *index = index.map(|(v, a, b)| (versions.at(v, first), a, b));
                *body = again(body);
            }
            EntryKind::Par(list) => list.iter_mut().for_each(|t| *t = again(t)),
            EntryKind::Segment(t) => *t = again(t),
        }
        Rc::new(e)
    };
    tape.iter().map(copy).collect()
}
