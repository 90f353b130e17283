//! Wanted tensors that were last written inside a branch or a loop.
//!
//! The gradient is taken by the contents at the `grad`. If steps of the branch or loop read these contents after the
//! write, or if not all arms write, the gradient depends on the path of the run. It is refused if the loss depends on
//! such steps.
//!
//! Invariant: what a slice of the loss does not contain makes no difference to a gradient.

use super::carried::Slice;
use super::leaves::{Control, Leaf, Written, writes_to};
use super::tape::{Entry, EntryKind, Tape};
use crate::elaborator::Elaborator;
use girder_ir::view::{View, overlap};
use girder_source::{Diagnostic, Result, Span};
use std::rc::Rc;

impl Elaborator<'_> {
    /// Reports a wanted tensor whose gradient depends on the path of the run.
    pub(super) fn check_wanted(&mut self, chain: &[Tape], loss: &View, leaves: &[Leaf], taken: Span) -> Result<()> {
        for leaf in leaves {
            // Most leaves need no slice.
            let clear = |c: &Control| c.views.iter().all(|v| self.read_inside(&c.entry, v, &mut None).is_ok());
            if !leaf.perhaps && leaf.controls.iter().all(clear) {
                continue;
            }
            // A step that reads some of its elements may write others, unless all are written at once.
            let given = leaf.controls.iter().filter(|c| c.at_once && leaf.since == leaf.written);
            let given = given.flat_map(|c| c.views.iter().map(|v| (v.clone(), c.entry.during.end)));
            let slice = Slice::of(loss, given.collect());
            if let Err((e, read)) = self.path_of(chain, leaf, slice) {
                return Err(self.written_inside(leaf, &e, read, taken));
            }
        }
        Ok(())
    }

    /// Goes back to where a wanted tensor has its contents for certain. An error is the loop, branch or block by whose
    /// path the gradient depends, with what is read in it.
    fn path_of(&self, chain: &[Tape], leaf: &Leaf, slice: Slice) -> std::result::Result<(), (Rc<Entry>, Option<Span>)> {
        let mut slice = Some(slice);
        let mut controls = leaf.controls.iter().peekable();
        let mut last = None;
        for e in chain.iter().rev().flat_map(|tape| tape.iter().rev()) {
            if let Some(control) = controls.next_if(|c| c.entry.during == e.during) {
                for view in &control.views {
                    self.read_inside(e, view, &mut slice.clone()).map_err(|read| (e.clone(), Some(read)))?;
                }
                last = Some(e);
            } else if controls.peek().is_none()
                && let Some(last) = last
            {
                // What was there before the last control, if that wrote nothing.
                let before = self.read_in(std::slice::from_ref(e), &leaf.tensor.view, &mut slice.clone());
                if before.map_err(|_| (last.clone(), None))? {
                    return Ok(());
                }
            }
            if controls.peek().is_none() && !leaf.perhaps {
                return Ok(());
            }
            if let Some(slice) = &mut slice {
                self.slice_entry(e, slice);
            }
        }
        Ok(())
    }

    fn written_inside(&mut self, leaf: &Leaf, e: &Entry, read: Option<Span>, taken: Span) -> girder_source::Failed {
        let name = leaf.tensor.view.vars().first().map(|&v| self.graph.vars[v].name.clone()).unwrap_or_default();
        let what = match e.kind {
            EntryKind::Repeat { .. } => "loop",
            EntryKind::Branch { .. } => "branch",
            _ => "block",
        };
        let (message, at) = match (read, &e.kind) {
            (Some(span), _) => (format!("`{name}` is written in this {what}, and read there after"), span),
            (None, EntryKind::Branch { .. }) => {
                (format!("`{name}` is written in this {what}, but not in all arms"), e.span)
            }
            (None, _) => (format!("`{name}` is written in this {what}, but perhaps not in full"), e.span),
        };
        let d = Diagnostic::error("grad::written_inside", at, message).here(match read {
            Some(_) => "read here",
            None => "here",
        });
        let d = d.label(taken, "gradient by its last contents taken here");
        let own = name.rsplit('.').next().unwrap_or_default();
        let help =
            format!("take the gradient by a copy: `let last = copy({own});` after it, and use `last` from there");
        self.report(d.help(help))
    }

    /// Goes back in a step to the last write of a view, and returns whether there is one in each run. An error is a
    /// read after it, if the loss depends on what is read.
    fn read_inside(&self, e: &Entry, view: &View, slice: &mut Option<Slice>) -> std::result::Result<bool, Span> {
        match &e.kind {
            EntryKind::Branch { arms, .. } => {
                let found: std::result::Result<Vec<bool>, Span> =
                    arms.iter().map(|tape| self.read_in(tape, view, &mut slice.clone())).collect();
                Ok(!found?.contains(&false))
            }
            EntryKind::Repeat { body, .. } => {
                let mut inside = slice.clone();
                if let Some(slice) = &mut inside {
                    // What an iteration leaves for the next one counts too.
                    self.slice_entry(e, slice);
                }
                self.read_in(body, view, &mut inside)
            }
            EntryKind::Par(arms) => {
                let found: std::result::Result<Vec<bool>, Span> =
                    arms.iter().map(|tape| self.read_in(tape, view, &mut slice.clone())).collect();
                Ok(found?.contains(&true))
            }
            EntryKind::Segment(tape) => self.read_in(tape, view, &mut slice.clone()),
            _ => Ok(false),
        }
    }

    /// Goes back in a tape to the last write of a view, as [`Self::read_inside`] does in a step.
    fn read_in(&self, tape: &[Rc<Entry>], view: &View, slice: &mut Option<Slice>) -> std::result::Result<bool, Span> {
        for e in tape.iter().rev() {
            let meets = |v: &View| overlap(v, view).is_some();
            if !e.bodies().is_empty() {
                if self.read_inside(e, view, slice)? {
                    return Ok(true);
                }
            } else {
                if matches!(writes_to(e, view), Written::All) {
                    return Ok(true);
                }
                let (mut read, mut counts) = (false, slice.is_none());
                e.operands(&mut |v| read |= meets(v));
                e.results(&mut |v| counts |= slice.as_ref().is_some_and(|s| s.meets(v)));
                if let EntryKind::Opaque { reads, writes, .. } = &e.kind {
                    read = view.vars().iter().any(|v| reads.contains(v));
                    let whole = |v: &_| View::whole(*v, &self.graph.vars[*v].shape);
                    counts |= writes.iter().any(|v| slice.as_ref().is_some_and(|s| s.meets(&whole(v))));
                }
                if read && counts {
                    return Err(e.span);
                }
            }
            if let Some(slice) = slice {
                self.slice_entry(e, slice);
            }
        }
        Ok(false)
    }
}
