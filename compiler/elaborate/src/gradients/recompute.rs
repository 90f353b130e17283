//! `#[recompute]`: values that are computed again in the reverse program instead of being kept.
//!
//! The steps of the forward text are copied, with temporaries of their own for what they write, and the copy is
//! reversed.
//!
//! Invariant: a copied step computes the same bits as its original.

use super::order::{Inside, Moment};
use super::state::ReverseWalk;
use super::tape::{Entry, EntryKind, Tape, each_write, without_writes};
use super::versions::{Versions, renamed_tape};
use crate::elaborator::{Body, Elaborator, Node, NodeKind};
use crate::value::Tensor;
use girder_ir::codelet::Dir;
use girder_ir::ids::VarId;
use girder_ir::program::Effect;
use girder_ir::view::View;
use girder_source::{Diagnostic, Failed, OriginId, Result, Span};
use rustc_hash::FxHashSet;
use std::ops::Range;
use std::rc::Rc;

/// The variables that steps read and write.
#[derive(Default)]
pub(super) struct Accesses {
    pub(super) reads: FxHashSet<VarId>,
    pub(super) writes: FxHashSet<VarId>,
}

/// The older variables that a part changes for the steps after it.
#[derive(Default)]
struct Advances {
    /// The variables that it changes before it reads them and through which no gradient passes, such as the state of a
    /// random generator. Their new values are kept.
    first: FxHashSet<VarId>,
    /// The variables that it changes after it reads them and whose new values no adjoint reaches, such as counters and
    /// running statistics. Their old values are kept if they are read at all.
    last: FxHashSet<VarId>,
}

impl Elaborator<'_> {
    /// Reverses a segment.
    pub(super) fn reverse_segment(&mut self, w: &mut ReverseWalk, e: &Entry, tape: &Rc<Tape>) -> Result<()> {
        let mut reached = false;
        each_write(tape, &mut |v| reached |= w.adjoints.has(v));
        if !reached {
            return Ok(());
        }
        let path = w.path.clone();
        self.reverse_recomputed(w, e, &path, e.during.clone(), tape)
    }

    /// Reverses an iteration of a loop of which only the values at its start are kept.
    pub(super) fn reverse_iteration(&mut self, w: &mut ReverseWalk, e: &Entry, tape: &Rc<Tape>) -> Result<()> {
        let path = w.path.clone();
        self.reverse_recomputed(w, e, &path, e.during.clone(), tape)
    }

    /// Computes the steps at some moments in a body again, then walks the copy.
    fn reverse_recomputed(
        &mut self,
        w: &mut ReverseWalk,
        e: &Entry,
        path: &[Inside],
        during: Range<Moment>,
        tape: &Rc<Tape>,
    ) -> Result<()> {
        let span = e.span;
        let Some(body) = self.emission.body_at(w.root, path) else { return Ok(()) };
        let inside = |n: &&Node| during.contains(&n.at);
        let mut nodes: Vec<Node> = body.nodes.iter().filter(inside).cloned().collect();
        nodes.retain(|n| !self.keeps(n));
        let is_iteration = w.loops.last().is_some_and(|l| l.during == during);
        let advances = if is_iteration { Advances::default() } else { self.take_advances(w, &mut nodes, &during) };
        let mut sides = Accesses::default();
        nodes.iter().for_each(|n| self.accesses(n, &mut sides));
        if let Some((what, origin)) = nodes.iter().find_map(effect_in) {
            let message = format!("{what} in a part with `#[recompute]` would happen again");
            let d = Diagnostic::error("grad::recompute", self.graph.origins.span(origin), message).here("here");
            let d = d.label(w.span, "gradient taken here");
            let help = "move `print`, streams, rows of remote buffers, `abort`, `call` and `while` out of the part";
            return Err(self.report(d.help(help)));
        }
        // Values at the start of the part, and variables of the copy's own. The index of a loop that is computed again
        // is that of the reverse loop.
        let index = w.loops.last().filter(|l| l.during == during).and_then(|l| l.index).map(|i| i.0);
        let mut versions = Versions::default();
        let begin = Rc::new(Entry { during: during.start..during.start, ..e.clone() });
        let mut vars: Vec<VarId> = sides.reads.union(&sides.writes).copied().collect();
        vars.sort_unstable();
        for var in vars {
            let v = self.graph.vars[var].clone();
            let whole = Tensor { view: View::whole(var, &v.shape), ty: v.ty };
            let written = sides.writes.contains(&var);
            let local = index != Some(var) && self.is_local(var, &during);
            if advances.first.contains(&var) {
                let kept = self.need(w, &whole, e, true)?;
                if let ([part], false) = (&kept.view.parts[..], kept.view == whole.view) {
                    versions.add(var, 0, part.var);
                }
                continue;
            }
            if written && !local && !is_iteration && w.active.has(var) {
                return Err(self.written_outside(var, e, w));
            }
            if local {
                let t = self.again(var, span)?;
                t.view.vars().iter().for_each(|&t| versions.add(var, 0, t));
                continue;
            }
            // A kept value of a part may be read for another part too, that of an iteration is read here alone.
            let changes = !is_iteration && (written || advances.last.contains(&var));
            let now = match changes {
                true => self.need_or_copy(w, &whole, &begin)?,
                false => self.need(w, &whole, &begin, false)?,
            };
            let own = written && (changes || now.view == whole.view);
            let now = if own { self.copy_of(&now, span)? } else { now };
            if own {
                self.recorder.note_versions(&now.view, var);
            }
            match (&now.view.parts[..], now.view == whole.view) {
                (_, true) => {}
                ([part], false) => versions.add(var, 0, part.var),
                _ => return Err(Failed),
            }
        }
        for node in &nodes {
            for var in self.overwritten_by(node).into_iter().filter(|&v| !self.is_local(v, &during)).collect::<Vec<_>>()
            {
                let t = self.again(var, span)?;
                t.view.vars().iter().for_each(|&t| versions.add(var, node.at + 1, t));
            }
        }
        // What the last steps wrote is no part of the copy: it is on the tape once, where they ran.
        let tape = &without_writes(tape, &advances.last);
        // The steps that the reverse needs, at moments of their own.
        let mut needed = FxHashSet::default();
        self.needs_of(w, tape, &mut needed);
        let length = during.end - during.start;
        let to = self.recorder.skip(length + 1);
        let keep = self.live_nodes(&nodes, needed);
        for (node, _) in nodes.into_iter().zip(keep).filter(|(_, keep)| *keep) {
            let node = self.renamed_node(node, &versions, &during, to);
            if let Some(body) = self.emission.body_mut() {
                body.nodes.push(node);
            }
        }
        for (k, v) in versions.list().iter().enumerate().filter(|(_, v)| Some(v.of) != index) {
            w.active.copy(v.of, v.copy);
            // What stands for the value of an older variable, or for a new value that is kept, is older than the copy,
            // also if the part is the first to name the variable, as it may be with a state.
            let local = self.is_local(v.of, &during) && !advances.first.contains(&v.of);
            if local && let Some(at) = self.recorder.made(v.of) {
                self.recorder.set_made(v.copy, to + (at - during.start));
            }
            if !local && !sides.writes.contains(&v.of) {
                continue;
            }
            let next = versions.list()[k + 1..].iter().find(|n| n.of == v.of).map_or(during.end, |n| n.since - 1);
            let first = during.start.max(v.since.saturating_sub(1));
            self.recorder.log_like(v.copy, v.of, first..next, to + (first - during.start));
        }
        let copy = renamed_tape(tape, &versions, &during, to);
        if self.is_taping()
            && let Some(body) = self.emission.body_mut()
        {
            body.tape.extend(copy.iter().cloned());
        }
        let mut pairs: Vec<(VarId, VarId, VarId)> = vec![];
        for v in versions.list() {
            match pairs.iter_mut().find(|p| p.0 == v.of) {
                Some(p) => p.2 = v.copy,
                None => pairs.push((v.of, v.copy, v.copy)),
            }
        }
        for &(var, _, last) in &pairs {
            w.adjoints.rename(var, last);
        }
        // What the copy computes is that of the current iteration of the loops around.
        let (root, outer, loops) = (w.root, std::mem::take(&mut w.path), std::mem::take(&mut w.loops));
        w.root = self.emission.depth() - 1;
        self.recorder.in_reverse.push(to..to + length + 1);
        self.walk(w, &copy)?;
        (w.root, w.path, w.loops) = (root, outer, loops);
        for &(var, first, last) in &pairs {
            if self.is_local(var, &during) {
                w.adjoints.forget(last);
                continue;
            }
            let at_start = match first == last {
                true => None,
                false => {
                    let t = Tensor {
                        view: View::whole(first, &self.graph.vars[first].shape),
                        ty: self.graph.vars[first].ty,
                    };
                    let d = self.adjoint_of(&mut w.adjoints, &t, span)?;
                    w.adjoints.forget(first);
                    d
                }
            };
            w.adjoints.rename(last, var);
            if let Some(d) = at_start {
                let shape = self.graph.vars[var].shape.clone();
                let d = Tensor { view: d.view.reshape(&shape), ty: d.ty };
                self.add_adjoint(&mut w.adjoints, &View::whole(var, &shape), &d, span)?;
            }
        }
        Ok(())
    }

    /// Removes the steps that change older variables for the steps after the part; these changes must not happen twice.
    fn take_advances(&self, w: &ReverseWalk, nodes: &mut Vec<Node>, during: &Range<Moment>) -> Advances {
        let sides = |node: &Node| {
            let mut a = Accesses::default();
            self.accesses(node, &mut a);
            a
        };
        let all: Vec<Accesses> = nodes.iter().map(sides).collect();
        let touches = |k: usize, var: VarId| all[k].reads.contains(&var) || all[k].writes.contains(&var);
        let is_step = |k: usize| matches!(nodes[k].kind, NodeKind::Execute(_) | NodeKind::Copy(_));
        let is_older = |var: VarId| !self.is_local(var, during);
        let wanted = |var: VarId| w.leaves.iter().any(|l| l.found.is_none() && l.tensor.view.vars().contains(&var));
        let mut taken = vec![false; nodes.len()];
        for k in (0..nodes.len()).rev() {
            let is_last = |v: VarId| !(k + 1..nodes.len()).any(|later| !taken[later] && touches(later, v));
            let writes = &all[k].writes;
            taken[k] = is_step(k)
                && !writes.is_empty()
                && writes.iter().all(|&v| is_older(v) && !w.adjoints.has(v) && !wanted(v) && is_last(v));
        }
        let written = |steps: &[usize]| steps.iter().flat_map(|&k| &all[k].writes).copied().collect();
        let last: Vec<usize> = (0..nodes.len()).filter(|&k| taken[k]).collect();
        let is_first = |k: usize| {
            let writes = &all[k].writes;
            is_step(k)
                && writes.iter().any(|&v| is_older(v))
                && writes.iter().all(|&v| {
                    let later = all[k + 1..].iter().any(|a| a.writes.contains(&v));
                    !w.active.has(v) && !later && !(0..k).any(|earlier| touches(earlier, v))
                })
        };
        let first: Vec<usize> = (0..nodes.len()).filter(|&k| !taken[k] && is_first(k)).collect();
        first.iter().for_each(|&k| taken[k] = true);
        let mut taken = taken.iter();
        nodes.retain(|_| !taken.next().is_some_and(|t| *t));
        Advances { first: written(&first), last: written(&last) }
    }

    /// Returns the variables of which a step writes every element.
    fn overwritten_by(&self, node: &Node) -> Vec<VarId> {
        let mut counts: Vec<(VarId, u64)> = vec![];
        let mut kept: FxHashSet<VarId> = FxHashSet::default();
        let mut count = |var: VarId, n: u64| match counts.iter_mut().find(|c| c.0 == var) {
            Some(c) => c.1 += n,
            None => counts.push((var, n)),
        };
        match &node.kind {
            NodeKind::Execute(set) => {
                for &f in &self.graph.sets[*set].families {
                    let family = &self.graph.families[f];
                    let fields = &self.graph.codelets[family.codelet].fields;
                    for f in &family.fields {
                        for p in &f.parts {
                            match fields[f.field].dir {
                                Dir::Out => {
                                    let each: u64 = p.len.iter().map(|&n| n as u64).product();
                                    count(p.var, each * family.domain.count());
                                }
                                Dir::In => {}
                                _ => _ = kept.insert(p.var),
                            }
                        }
                    }
                }
            }
            NodeKind::Copy(copy) => {
                for f in &self.graph.copies[*copy].families {
                    for p in &f.dst.parts {
                        let each: u64 = p.len.iter().map(|&n| n as u64).product();
                        count(p.var, each * f.domain.count());
                    }
                }
            }
            _ => {}
        }
        let whole = |&(var, n): &(VarId, u64)| n == self.graph.vars[var].shape.iter().product::<u64>();
        counts.into_iter().filter(|c| whole(c) && !kept.contains(&c.0)).map(|c| c.0).collect()
    }

    /// Returns whether a step of a part keeps a value for another reverse program, which is no part of it.
    fn keeps(&self, node: &Node) -> bool {
        match &node.kind {
            NodeKind::Repeat { .. } | NodeKind::If { .. } | NodeKind::Switch { .. } => false,
            NodeKind::Effect(Effect::Seek { stream, .. } | Effect::Write { stream, .. }) => {
                self.recorder.beside.iter().any(|(s, _)| s == stream)
            }
            _ => {
                let mut a = Accesses::default();
                self.accesses(node, &mut a);
                a.writes.iter().any(|v| self.recorder.stashes.contains(v))
            }
        }
    }

    /// Returns a variable for the values of another one when they are computed again.
    fn again(&mut self, var: VarId, span: Span) -> Result<Tensor> {
        let v = self.graph.vars[var].clone();
        let t = self.temporary("again", v.ty, &v.shape, span)?;
        self.recorder.note_versions(&t.view, var);
        Ok(t)
    }

    fn written_outside(&mut self, var: VarId, e: &Entry, w: &ReverseWalk) -> Failed {
        let name = self.name_in_text(var);
        let message = format!("this part writes `{name}`, which is older, so it cannot be computed again");
        let made = self.graph.origins.span(self.graph.vars[self.recorder.in_text(var)].origin);
        let d = Diagnostic::error("grad::recompute", e.span, message).label(made, "made here");
        let d = d.label(w.span, "gradient taken here");
        self.report(d.help("let the part make new values, or take `#[recompute]` away"))
    }

    /// Collects the variables whose values the reverse of a tape may need.
    fn needs_of(&self, w: &ReverseWalk, tape: &Tape, all: &mut FxHashSet<VarId>) {
        for e in tape {
            let mut active = false;
            e.operands(&mut |v| active |= v.parts.iter().any(|p| w.active.has(p.var)));
            if !active && e.bodies().is_empty() {
                continue;
            }
            match &e.kind {
                EntryKind::Write { .. } | EntryKind::Fill { .. } => {}
                EntryKind::Rows { at, .. } => all.extend(at.view.vars()),
                EntryKind::Branch { on, .. } => all.extend(on.view.vars()),
                _ => {
                    e.operands(&mut |v| all.extend(v.vars()));
                    e.results(&mut |v| all.extend(v.vars()));
                }
            }
            e.bodies().iter().for_each(|t| self.needs_of(w, t, all));
        }
    }

    /// Returns for each step whether a needed variable depends on it.
    fn live_nodes(&self, nodes: &[Node], mut needed: FxHashSet<VarId>) -> Vec<bool> {
        let mut keep = vec![false; nodes.len()];
        for (k, node) in nodes.iter().enumerate().rev() {
            let mut a = Accesses::default();
            self.accesses(node, &mut a);
            keep[k] = a.writes.iter().any(|v| needed.contains(v));
            if keep[k] {
                needed.extend(a.reads);
            }
        }
        keep
    }

    pub(super) fn accesses(&self, node: &Node, out: &mut Accesses) {
        let view = |v: &View, set: &mut FxHashSet<VarId>| set.extend(v.vars());
        match &node.kind {
            NodeKind::Execute(set) => {
                for &f in &self.graph.sets[*set].families {
                    let family = &self.graph.families[f];
                    let fields = &self.graph.codelets[family.codelet].fields;
                    for f in &family.fields {
                        let vars = f.parts.iter().map(|p| p.var);
                        match fields[f.field].dir {
                            Dir::In => out.reads.extend(vars),
                            Dir::Out => out.writes.extend(vars),
                            _ => {
                                out.reads.extend(vars.clone());
                                out.writes.extend(vars);
                            }
                        }
                    }
                }
            }
            NodeKind::Copy(copy) => {
                for f in &self.graph.copies[*copy].families {
                    out.reads.extend(f.src.parts.iter().map(|p| p.var));
                    out.writes.extend(f.dst.parts.iter().map(|p| p.var));
                }
            }
            NodeKind::Repeat { index, body, .. } => {
                out.writes.extend(index.map(|(v, ..)| v));
                body.nodes.iter().for_each(|n| self.accesses(n, out));
            }
            NodeKind::If { cond, then, els } => {
                view(cond, &mut out.reads);
                then.nodes.iter().chain(&els.nodes).for_each(|n| self.accesses(n, out));
            }
            NodeKind::Switch { on, cases, default } => {
                view(on, &mut out.reads);
                cases.iter().flat_map(|(_, b)| &b.nodes).chain(&default.nodes).for_each(|n| self.accesses(n, out));
            }
            NodeKind::Par(list) => list.iter().flat_map(|b| &b.nodes).for_each(|n| self.accesses(n, out)),
            NodeKind::Effect(Effect::Undef { what, .. }) => view(what, &mut out.writes),
            NodeKind::Effect(Effect::Agree { what }) => view(what, &mut out.reads),
            NodeKind::While { .. } | NodeKind::Call(_) | NodeKind::Effect(_) => {}
        }
    }

    /// Records that the steps since a moment are computed again in a reverse program.
    pub fn record_segment(&mut self, begin: Moment, count: usize, span: girder_source::Span) {
        if !self.is_taping() {
            return;
        }
        let Some(body) = self.emission.body_mut() else { return };
        let tape: Tape = body.tape.split_off(count.min(body.tape.len()));
        let Some(first) = tape.first().cloned() else { return };
        let alone = first.stage.is_some() && tape.iter().all(|e| e.stage == first.stage);
        self.record(begin, EntryKind::Segment(Rc::new(tape)), span);
        // What a stage computes again belongs to it.
        if alone && let Some(segment) = self.emission.body_mut().and_then(|b| b.tape.last_mut()).map(Rc::make_mut) {
            (segment.stage, segment.places) = (first.stage, first.places.clone());
        }
    }
}

/// Returns what cannot happen twice first in a step or in its bodies, and its origin.
fn effect_in(node: &Node) -> Option<(&'static str, OriginId)> {
    let inside = |b: &Body| b.nodes.iter().find_map(effect_in);
    let what = match &node.kind {
        NodeKind::Execute(_) | NodeKind::Copy(_) => return None,
        NodeKind::Effect(Effect::Undef { .. } | Effect::Agree { .. }) => return None,
        NodeKind::Repeat { body, .. } => return inside(body),
        NodeKind::If { then, els, .. } => return inside(then).or_else(|| inside(els)),
        NodeKind::Switch { cases, default, .. } => {
            return cases.iter().find_map(|(_, b)| inside(b)).or_else(|| inside(default));
        }
        NodeKind::Par(list) => return list.iter().find_map(inside),
        NodeKind::While { .. } => "a `while`",
        NodeKind::Call(_) => "a `call`",
        NodeKind::Effect(effect) => match effect {
            Effect::Seek { .. } => "a row of a remote buffer",
            Effect::Read { .. } => "a read of a stream",
            Effect::Write { .. } => "a write to a stream",
            Effect::Print { .. } | Effect::PrintText { .. } => "a `print`",
            Effect::Abort { .. } => "an `abort`",
            Effect::Sync | Effect::Undef { .. } | Effect::Agree { .. } => "a `sync`",
        },
    };
    Some((what, node.origin))
}
