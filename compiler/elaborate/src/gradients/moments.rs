//! The log of writes: which elements of a variable were written when.
//!
//! Invariant: moments increase in the order of elaboration, which is that of the steps except for the iterations of
//! run-time loops.

use super::checks::{Carried, LateCheck};
use super::order::Moment;
use super::tape::LoopAttributes;
use crate::value::Place;
use girder_ir::codelet::Dir;
use girder_ir::family::{Domain, Field};
use girder_ir::graph::Graph;
use girder_ir::ids::{ComputeSetId, CopyId, StreamId, VarId};
use girder_ir::view::{View, ViewPart, overlap};
use girder_source::Span;
use rustc_hash::FxHashMap;
use smol_str::SmolStr;
use std::ops::Range;
use std::rc::Rc;

/// A write to a variable.
#[derive(Clone, Debug)]
pub struct Write {
    /// When.
    pub at: Moment,
    /// The least and the greatest element.
    pub hull: (i64, i64),
    /// The elements, if they are known.
    pub view: Option<View>,
    /// The statement.
    pub span: Span,
}

/// A write to a row of a remote buffer.
#[derive(Clone, Debug)]
pub struct RemoteWrite {
    /// The buffer.
    pub stream: StreamId,
    /// The elements that the row gets.
    pub view: View,
    /// When.
    pub at: Moment,
    /// The statement.
    pub span: Span,
}

/// The state of recording: everything but the tapes.
#[derive(Debug, Default)]
pub struct Recorder {
    on: bool,
    /// The number of open calls of `untaped`; nothing is recorded while it is not 0.
    pub paused: u32,
    clock: Moment,
    writes: FxHashMap<VarId, Vec<Write>>,
    /// All writes in their order.
    order: Vec<(Moment, VarId, Span)>,
    made: FxHashMap<VarId, Moment>,
    /// The attributes of the next `repeat`.
    pub next_loop: LoopAttributes,
    /// Checks that are due when loops close.
    pub late: Vec<LateCheck>,
    /// What gradients in loops read that the loops may carry.
    pub carried: Vec<Carried>,
    /// The moments of steps that are computed again, and of reverse programs. A value that they overwrite is copied
    /// where it is needed, because the user cannot keep it in the text.
    pub in_reverse: Vec<Range<Moment>>,
    /// What the program writes to rows of remote buffers.
    pub remote_writes: Vec<RemoteWrite>,
    /// Variables that are stashes.
    pub stashes: Vec<VarId>,
    /// Remote buffers that are stashes, each with what needs it.
    pub beside: Vec<(StreamId, Span)>,
    /// The variables of the text whose values are computed again in others.
    versions: FxHashMap<VarId, VarId>,
    last_path: Option<Rc<[SmolStr]>>,
    last_places: Option<Rc<[Place]>>,
}

impl Recorder {
    /// Creates a recorder; `on` if some module calls `grad`.
    pub fn new(on: bool) -> Recorder {
        Recorder { on, clock: 1, ..Recorder::default() }
    }

    /// Drops the checks that were due when a body closed. `depth` bodies are still open.
    pub fn leave_body(&mut self, depth: usize) {
        self.late.retain_mut(|c| {
            c.chain = c.chain.min(depth);
            c.root + 1 < c.chain
        });
        self.carried.retain(|c| c.depth < depth);
    }

    /// Notes that the variables of a view hold values of another variable that are computed again.
    pub fn note_versions(&mut self, view: &View, of: VarId) {
        let of = self.in_text(of);
        self.versions.extend(view.vars().into_iter().map(|var| (var, of)));
    }

    /// Returns the variable of the text whose values a variable holds.
    pub fn in_text(&self, var: VarId) -> VarId {
        self.versions.get(&var).copied().unwrap_or(var)
    }

    /// Returns whether the program has gradients.
    pub fn is_on(&self) -> bool {
        self.on
    }

    /// Returns the moment of the next write.
    pub fn now(&self) -> Moment {
        self.clock
    }

    /// Returns the moment of a step, and moves on.
    pub fn tick(&mut self) -> Moment {
        self.clock += u32::from(self.on);
        self.clock - u32::from(self.on)
    }

    /// Moves on by some moments at once; returns the first.
    pub fn skip(&mut self, count: u32) -> Moment {
        self.clock += count;
        self.clock - count
    }

    /// Returns the shared form of a path.
    pub fn path(&mut self, path: &[SmolStr]) -> Rc<[SmolStr]> {
        match &self.last_path {
            Some(last) if **last == *path => last.clone(),
            _ => self.last_path.insert(path.into()).clone(),
        }
    }

    /// Returns the shared form of a list of places.
    pub fn places(&mut self, places: &[Place]) -> Rc<[Place]> {
        match &self.last_places {
            Some(last) if **last == *places => last.clone(),
            _ => self.last_places.insert(places.into()).clone(),
        }
    }

    /// Notes that a variable is made.
    pub fn make(&mut self, var: VarId) {
        if self.on {
            let at = self.tick();
            self.made.insert(var, at);
        }
    }

    /// Returns the moment when a variable was made.
    pub fn made(&self, var: VarId) -> Option<Moment> {
        self.made.get(&var).copied()
    }

    /// Lets a variable count as made at a moment.
    pub fn set_made(&mut self, var: VarId, at: Moment) {
        if self.on {
            self.made.insert(var, at);
        }
    }

    /// Returns the first write, during some time, to a variable that is older.
    pub fn foreign_write(&self, first: usize, during: Range<Moment>) -> Option<(VarId, Span)> {
        let start = self.order.partition_point(|w| w.0 < during.start);
        let mut since = self.order[start..].iter().filter(|w| during.contains(&w.0));
        since.find(|w| (w.1.as_u32() as usize) < first).map(|w| (w.1, w.2))
    }

    fn log(&mut self, var: VarId, write: Write) {
        self.order.push((write.at, var, write.span));
        self.writes.entry(var).or_default().push(write);
    }

    /// Logs a write to a view.
    pub fn log_view(&mut self, view: &View, at: Moment, span: Span) {
        for part in &view.parts {
            self.log(part.var, Write { at, hull: part.hull(), view: Some(view.clone()), span });
        }
    }

    /// Logs a write to all of a variable.
    pub fn log_var(&mut self, var: VarId, at: Moment, span: Span) {
        self.log(var, Write { at, hull: (i64::MIN, i64::MAX), view: None, span });
    }

    /// Logs what a compute set writes.
    pub fn log_set(&mut self, graph: &Graph, set: ComputeSetId, at: Moment, span: Span) {
        self.log_families(graph, set, 0, at, span);
    }

    /// Logs what the families of a compute set write, from one on: those that have joined it.
    pub fn log_families(&mut self, graph: &Graph, set: ComputeSetId, first: usize, at: Moment, span: Span) {
        for &id in &graph.sets[set].families[first..] {
            let family = &graph.families[id];
            let fields = &graph.codelets[family.codelet].fields;
            for f in family.fields.iter().filter(|f| fields[f.field].dir != Dir::In) {
                self.log_field(f, &family.domain, at, span);
            }
        }
    }

    /// Logs what a copy writes.
    pub fn log_copy(&mut self, graph: &Graph, copy: CopyId, at: Moment, span: Span) {
        for family in &graph.copies[copy].families {
            self.log_field(&family.dst, &family.domain, at, span);
        }
    }

    fn log_field(&mut self, field: &Field, domain: &Domain, at: Moment, span: Span) {
        for part in &field.parts {
            let Some((lo, hi)) = part.offset.bounds(domain) else { continue };
            let hull = (part.hull_at(lo).0, part.hull_at(hi).1);
            self.log(part.var, Write { at, hull, view: None, span });
        }
    }

    /// Returns the first write during some time that meets a view.
    pub fn overwritten(&self, view: &View, during: Range<Moment>) -> Option<&Write> {
        self.overwritten_but(view, during, &|_| false)
    }

    /// Works like [`Recorder::overwritten`], without the writes at some moments.
    pub fn overwritten_but(
        &self,
        view: &View,
        during: Range<Moment>,
        apart: &dyn Fn(Moment) -> bool,
    ) -> Option<&Write> {
        let lost = |part: &ViewPart, w: &&Write| meets(w, part, view) && !apart(w.at);
        view.parts.iter().find_map(|part| self.writes_of(part.var, &during).find(|w| lost(part, w)))
    }

    /// Returns the writes to a variable during some time.
    pub fn writes_of(&self, var: VarId, during: &Range<Moment>) -> impl Iterator<Item = &Write> + use<'_> {
        let during = during.clone();
        let all = self.writes.get(&var).map(|w| &w[..]).unwrap_or_default();
        all.iter().filter(move |w| during.contains(&w.at))
    }

    /// Returns the moment after the last write to a variable before `now`; 0 if there is none.
    pub fn written_last(&self, view: &View, now: Moment) -> Moment {
        let last = |part: &ViewPart| {
            let before = 0..now;
            let writes = self.writes_of(part.var, &before);
            writes.filter(|w| meets(w, part, view)).map(|w| w.at + 1).max().unwrap_or(0)
        };
        view.parts.iter().map(last).max().unwrap_or(0)
    }

    /// Logs for one variable the writes to another during some time, moved to a later time.
    pub fn log_like(&mut self, var: VarId, like: VarId, during: Range<Moment>, to: Moment) {
        let writes: Vec<Write> = self.writes_of(like, &during).cloned().collect();
        for mut w in writes {
            w.at = to + (w.at - during.start);
            w.view.iter_mut().flat_map(|v| &mut v.parts).filter(|p| p.var == like).for_each(|p| p.var = var);
            self.log(var, w);
        }
    }
}

fn meets(write: &Write, part: &ViewPart, view: &View) -> bool {
    let (lo, hi) = part.hull();
    write.hull.0 <= hi && lo <= write.hull.1 && write.view.as_ref().is_none_or(|w| overlap(w, view).is_some())
}
