//! Activity: which variables depend on a wanted tensor, and from which moment on.
//!
//! Invariant: a variable that depends on a wanted tensor is active; others may be, by variable and not by element.

use super::moments::Moment;
use super::tape::{Entry, EntryKind, Tape};
use crate::elaborator::Elaborator;
use girder_ir::ids::VarId;
use girder_ir::view::View;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// The active variables, each with the moment from which on it is.
#[derive(Clone, Debug, Default)]
pub struct Active(FxHashMap<VarId, Moment>);

impl Active {
    /// Makes a variable active from a moment on.
    pub fn insert(&mut self, var: VarId, since: Moment) -> bool {
        let old = self.0.entry(var).or_insert(Moment::MAX);
        let earlier = since < *old;
        *old = since.min(*old);
        earlier
    }

    /// Returns whether a view of a float is active at a moment.
    pub fn holds(&self, view: &View, at: Moment) -> bool {
        view.parts.iter().any(|p| self.0.get(&p.var).is_some_and(|&since| since <= at))
    }

    /// Returns whether a variable is active at any moment.
    pub fn has(&self, var: VarId) -> bool {
        self.0.contains_key(&var)
    }

    /// Lets a copy of a variable be as active as the variable.
    pub fn copy(&mut self, from: VarId, to: VarId) {
        if self.0.contains_key(&from) {
            self.0.insert(to, 0);
        }
    }
}

impl Elaborator<'_> {
    /// Makes active what the entries of a tape compute from active operands.
    pub(super) fn activate(&self, tape: &Tape, active: &mut Active) {
        tape.iter().for_each(|e| self.activate_entry(e, active));
    }

    /// The same for the body of a loop: a carried variable is active from the first iteration on.
    pub(super) fn activate_loop(&self, body: &Tape, during: &Range<Moment>, active: &mut Active) {
        loop {
            self.activate(body, active);
            let mut again = false;
            each_write(body, &mut |v| {
                if active.0.get(&v).is_some_and(|&s| s > during.start && s < during.end) {
                    again |= active.insert(v, during.start);
                }
            });
            if !again {
                break;
            }
        }
    }

    fn activate_entry(&self, e: &Entry, active: &mut Active) {
        let float = |v: VarId| self.graph.vars[v].ty.is_float();
        match &e.kind {
            EntryKind::Opaque { reads, writes, .. } => {
                let reads = reads.iter().any(|v| active.0.get(v).is_some_and(|&s| s <= e.during.start));
                for &v in writes.iter().filter(|v| reads && float(**v)) {
                    active.insert(v, e.during.start);
                }
            }
            EntryKind::Repeat { body, .. } => self.activate_loop(body, &e.during, active),
            EntryKind::Branch { arms, .. } | EntryKind::Par(arms) => arms.iter().for_each(|t| self.activate(t, active)),
            EntryKind::Segment(tape) => self.activate(tape, active),
            _ => {
                let mut reads = false;
                e.operands(&mut |v| reads |= active.holds(v, e.during.start));
                if let EntryKind::Rule { reads: others, .. } = &e.kind {
                    reads |= others.iter().any(|v| active.0.get(v).is_some_and(|&s| s <= e.during.start));
                }
                if reads {
                    let mut all = vec![];
                    e.results(&mut |v| all.extend(v.vars()));
                    for v in all.into_iter().filter(|v| float(*v)) {
                        active.insert(v, e.during.start);
                    }
                }
            }
        }
    }
}

/// Calls `f` with every variable that the entries of a tape write.
pub fn each_write(tape: &Tape, f: &mut dyn FnMut(VarId)) {
    for e in tape {
        e.results(&mut |view| view.parts.iter().for_each(|p| f(p.var)));
        if let EntryKind::Opaque { writes, .. } = &e.kind {
            writes.iter().for_each(|&v| f(v));
        }
        e.bodies().iter().for_each(|t| each_write(t, f));
    }
}

/// Calls `f` with every variable that the entries of a tape read or write.
pub fn each_touched(tape: &Tape, f: &mut dyn FnMut(VarId)) {
    for e in tape {
        e.results(&mut |view| view.parts.iter().for_each(|p| f(p.var)));
        e.operands(&mut |view| view.parts.iter().for_each(|p| f(p.var)));
        if let EntryKind::Opaque { reads, writes, .. } = &e.kind {
            reads.iter().chain(writes).for_each(|&v| f(v));
        }
        e.bodies().iter().for_each(|t| each_touched(t, f));
    }
}
