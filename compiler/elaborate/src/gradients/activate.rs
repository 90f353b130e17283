//! The walk that finds which variables are active.
//!
//! Invariant: what an entry computes from an active operand is active after it.

use super::active::Active;
use super::order::Moment;
use super::tape::{Entry, EntryKind, Tape, each_write};
use crate::elaborator::Elaborator;
use girder_ir::ids::{StreamId, VarId};
use girder_ir::view::View;
use std::ops::Range;

impl Elaborator<'_> {
    /// Makes active what the entries of a tape compute from active operands.
    pub(super) fn activate(&self, tape: &Tape, active: &mut Active) {
        tape.iter().for_each(|e| self.activate_entry(e, active));
    }

    /// Works like [`Elaborator::activate`] for the body of a loop: a carried variable is active from the first
    /// iteration on.
    pub(super) fn activate_loop(&self, body: &Tape, during: &Range<Moment>, active: &mut Active) {
        loop {
            self.activate(body, active);
            let mut again = false;
            each_write(body, &mut |v| {
                if active.since(v).is_some_and(|s| s > during.start && s < during.end) {
                    again |= active.insert(v, during.start);
                }
            });
            each_fill(body, &mut |dst, stream| {
                if self.holds_row(stream, during, active) {
                    again |= dst.vars().into_iter().any(|v| active.insert(v, during.start));
                }
            });
            if !again {
                break;
            }
        }
    }

    /// Returns whether an active value was written to a row of a remote buffer during some time.
    fn holds_row(&self, stream: StreamId, during: &Range<Moment>, active: &Active) -> bool {
        let writes = self.recorder.remote_writes.iter().filter(|w| w.stream == stream && during.contains(&w.at));
        writes.into_iter().any(|w| active.holds(&w.view, w.at))
    }

    fn activate_entry(&self, e: &Entry, active: &mut Active) {
        let float = |v: VarId| self.graph.vars[v].ty.is_float();
        match &e.kind {
            EntryKind::Opaque { reads, writes, .. } => {
                let reads = reads.iter().any(|v| active.has_at(*v, e.during.start));
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
                    reads |= others.iter().any(|v| active.has_at(*v, e.during.start));
                }
                if let EntryKind::Fill { stream: Some(stream), .. } = &e.kind {
                    reads |= self.holds_row(*stream, &(0..e.during.start), active);
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

/// Calls `f` with all elements that the entries of a tape read from streams.
fn each_fill(tape: &Tape, f: &mut dyn FnMut(&View, StreamId)) {
    for e in tape {
        if let EntryKind::Fill { dst, stream: Some(stream) } = &e.kind {
            f(dst, *stream);
        }
        e.bodies().iter().for_each(|t| each_fill(t, f));
    }
}
