//! Values that a loop around a `grad` carries from one iteration to the next.
//!
//! The tape of an open loop describes its first iteration: what a later one reads may be from the iteration before. A
//! loss may depend on such values, but not in a way that leads to the wanted tensors.
//!
//! Invariant: the tape of a loop's body is complete when the check is made.

use super::active::Active;
use super::checks::Carried;
use super::leaves::Leaf;
use super::order::Moment;
use super::tape::{Entry, EntryKind, Tape};
use crate::elaborator::{Body, Elaborator};
use girder_ir::graph::VarClass;
use girder_ir::ids::VarId;
use girder_ir::view::{View, overlap};
use girder_source::{Diagnostic, Result, Span};
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// The elements on which a loss depends at some moment, by variable, each with the regions that are written before it.
#[derive(Clone, Default)]
pub(super) struct Slice {
    vars: FxHashMap<VarId, Vec<(View, Vec<View>)>>,
    /// Elements whose contents are given from a moment on, such as those of wanted tensors.
    given: Rc<[(View, Moment)]>,
}

impl Slice {
    /// Returns what a loss depends on where it is used.
    pub(super) fn of(loss: &View, given: Rc<[(View, Moment)]>) -> Slice {
        let mut slice = Slice { vars: FxHashMap::default(), given };
        slice.read(loss, Moment::MAX);
        slice
    }

    /// Adds the elements of a view that is read at a moment, without those that are given.
    fn read(&mut self, view: &View, at: Moment) {
        for part in &view.parts {
            let mut one = view.clone();
            one.parts = std::iter::once(part.clone()).collect();
            let is_given = |(view, since): &(View, Moment)| *since <= at && covers(view, &one);
            if !self.given.iter().any(is_given) {
                self.insert(one);
            }
        }
    }

    /// Adds the elements of a view of one variable; returns whether they are new.
    fn insert(&mut self, view: View) -> bool {
        let Some(part) = view.parts.first() else { return false };
        let known = self.vars.entry(part.var).or_default();
        let new = !known.iter().any(|(v, _)| *v == view);
        if new {
            known.push((view, vec![]));
        }
        new
    }

    /// Adds the elements of another slice; returns whether some are new.
    fn join(&mut self, other: Slice) -> bool {
        other.vars.into_values().flatten().fold(false, |new, (view, _)| self.insert(view) || new)
    }

    /// Returns whether it contains an element of a view.
    pub(super) fn meets(&self, view: &View) -> bool {
        let known = |v: VarId| self.vars.get(&v).map(|l| &l[..]).unwrap_or_default();
        view.vars().into_iter().any(|v| known(v).iter().any(|(r, _)| overlap(r, view).is_some()))
    }

    /// Removes the elements of a view that is written in full, as far as regions show it.
    fn write(&mut self, view: &View, elements: impl Fn(VarId) -> u64) {
        let [part] = &view.parts[..] else { return };
        let Some(known) = self.vars.get_mut(&part.var) else { return };
        let whole = elements(part.var);
        if view.len() == whole && !view.has_aliases() {
            self.vars.remove(&part.var);
            return;
        }
        known.retain_mut(|(r, written)| {
            if r == view {
                return false;
            }
            if r.len() == whole && !view.has_aliases() && written.iter().all(|w| overlap(w, view).is_none()) {
                written.push(view.clone());
            }
            written.iter().map(View::len).sum::<u64>() < whole || r.len() != whole
        });
    }
}

/// Returns whether a view of one variable names at least the elements of another.
pub(super) fn covers(view: &View, part: &View) -> bool {
    view == part || {
        let [v] = &view.parts[..] else { return false };
        let all = || View::strided(v.var, 0, &[view.len()], &[1]);
        part.vars().as_slice() == [v.var] && !view.has_aliases() && v.offset.min(0) == 0 && inside(part, &all(), view)
    }
}

/// Returns whether a view is a permutation of the first elements of its variable, and a part lies within them.
fn inside(part: &View, first: &View, view: &View) -> bool {
    let hull = |v: &View| {
        v.parts.iter().fold((i64::MAX, i64::MIN), |(lo, hi), p| {
            let (least, greatest) = p.hull();
            (lo.min(least), hi.max(greatest))
        })
    };
    hull(view) == hull(first) && hull(part).0 >= 0 && hull(part).1 < first.len() as i64
}

impl Elaborator<'_> {
    /// Records what a loss reads that had its value before the open bodies began.
    pub(super) fn note_carried(&mut self, chain: &[Tape], loss: &View, leaves: &[Leaf], active: &Active, taken: Span) {
        if chain.len() < 2 {
            return;
        }
        let active = Rc::new(active.clone());
        let given = leaves.iter().map(|l| (l.tensor.view.clone(), l.written)).collect();
        let mut slice = Slice::of(loss, given);
        for (depth, tape) in chain.iter().enumerate().skip(1).rev() {
            self.slice(tape, &mut slice);
            let mut vars: Vec<VarId> = slice.vars.keys().copied().collect();
            vars.sort_unstable();
            let views: Vec<View> = vars.iter().flat_map(|v| slice.vars[v].iter().map(|(r, _)| r.clone())).collect();
            if !views.is_empty() {
                let leaves = leaves.iter().map(|l| (l.tensor.view.clone(), l.written)).collect();
                self.recorder.carried.push(Carried { depth, views, leaves, active: active.clone(), taken });
            }
        }
    }

    /// Goes back to the beginning of a tape.
    fn slice(&self, tape: &Tape, slice: &mut Slice) {
        tape.iter().rev().for_each(|e| self.slice_entry(e, slice));
    }

    /// Goes back to the beginning of an entry.
    pub(super) fn slice_entry(&self, e: &Entry, slice: &mut Slice) {
        let at = e.during.start;
        match &e.kind {
            EntryKind::Opaque { reads, writes, .. } => {
                if writes.iter().any(|v| slice.vars.contains_key(v)) {
                    let float = reads.iter().map(|&v| (v, &self.graph.vars[v])).filter(|(_, var)| var.ty.is_float());
                    float.for_each(|(v, var)| slice.read(&View::whole(v, &var.shape), at));
                }
            }
            EntryKind::Repeat { body, .. } => loop {
                let mut before = slice.clone();
                self.slice(body, &mut before);
                if !slice.join(before) {
                    break;
                }
            },
            EntryKind::Branch { arms, .. } => {
                // What one arm writes is still needed if another runs.
                let after = slice.clone();
                for arm in arms {
                    let mut before = after.clone();
                    self.slice(arm, &mut before);
                    slice.join(before);
                }
            }
            EntryKind::Par(arms) => arms.iter().rev().for_each(|t| self.slice(t, slice)),
            EntryKind::Segment(tape) => self.slice(tape, slice),
            _ => {
                let mut reached = false;
                e.results(&mut |v| reached |= slice.meets(v));
                if !reached {
                    return;
                }
                let keeps = matches!(e.kind, EntryKind::Rows { put: true, .. } | EntryKind::ScatterAdd { .. });
                if !keeps {
                    e.results(&mut |v| slice.write(v, |var| self.graph.vars[var].shape.iter().product()));
                }
                e.operands(&mut |v| {
                    if v.vars().iter().all(|&v| self.graph.vars[v].ty.is_float()) {
                        slice.read(v, at);
                    }
                });
            }
        }
    }

    /// Reports a loss in a loop, which closes now, that depends on wanted tensors by way of an earlier iteration.
    pub fn check_carried(&mut self, begin: Moment, body: &Body) -> Result<()> {
        let depth = self.emission.depth();
        let during = begin..self.moment();
        let due: Vec<Carried> = self.recorder.carried.iter().filter(|c| c.depth == depth).cloned().collect();
        for c in due {
            let overwritten = |view: &View| self.recorder.overwritten(view, during.clone()).cloned();
            // A wanted tensor that the loop writes is another one in each iteration.
            let mut later = Active::default();
            let lasting = c.leaves.iter().filter(|(v, written)| *written <= during.start && overwritten(v).is_none());
            lasting.for_each(|(v, written)| v.vars().iter().for_each(|&var| _ = later.insert(var, *written)));
            self.activate_loop(&body.tape, &during, &mut later);
            let old = |view: &View| c.active.holds(view, during.start);
            for view in c.views.iter().filter(|v| !v.vars().iter().any(|&var| self.is_local(var, &during))) {
                let is_leaf = |(l, _): &(View, Moment)| overlap(l, view).is_some();
                let var = view.vars().first().copied().unwrap_or(VarId::from_u32(0));
                let entry = &self.graph.vars[var];
                let name = entry.name.clone();
                let is_own = matches!(entry.class, VarClass::Var | VarClass::Temp);
                if let Some(write) = overwritten(view)
                    && (old(view) || is_own && later.holds(view, during.start))
                    && !c.leaves.iter().any(is_leaf)
                {
                    let message = format!("the gradient passes through `{name}`, which the iteration before wrote");
                    let d = Diagnostic::error("grad::carried", write.span, message).here("written here");
                    let d = d.label(c.taken, "gradient taken here, in the loop");
                    let depth = self.emission.run_time_depth();
                    let is_pipeline = self.emission.pipeline().is_some_and(|p| p.depth > depth);
                    let help = match is_pipeline {
                        false => {
                            "read it as `stopped(…)`, for the gradient of one iteration alone, or take the gradient \
                             after the loop"
                        }
                        true => "read it as `stopped(…)`, for the gradient of one micro-batch alone",
                    };
                    return Err(self.report(d.help(help)));
                }
            }
        }
        Ok(())
    }
}
