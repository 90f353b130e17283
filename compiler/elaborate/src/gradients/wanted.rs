//! Wanted tensors that were last written inside a branch or a loop.
//!
//! The gradient is taken with respect to the contents at the `grad`. If steps of the branch or loop read these contents
//! after the write, or if only some arms write, the gradient depends on the path of the run, and is refused.
//!
//! Invariant: outside branches and loops the walk reads a gradient out where its tensor was written last.

use super::state::ReverseWalk;
use super::tape::{Entry, EntryKind, Tape, each_write};
use crate::elaborator::Elaborator;
use girder_ir::view::{View, overlap};
use girder_source::{Diagnostic, Result, Span};

/// Why a tensor has no gradient by its contents after a step.
enum Fault {
    ReadAfter(Span),
    SomeArms,
}

impl Elaborator<'_> {
    /// Reports a wanted tensor that is written last inside a step, and read there after.
    pub(super) fn check_wanted_inside(&mut self, w: &ReverseWalk, e: &Entry) -> Result<()> {
        if e.bodies().is_empty() {
            return Ok(());
        }
        let inside = |written| e.during.start < written && written <= e.during.end;
        for leaf in w.leaves.iter().filter(|l| l.found.is_none() && inside(l.written)) {
            let view = &leaf.tensor.view;
            let Some(fault) = fault_inside(e, view) else { continue };
            let name = view.vars().first().map(|&v| self.graph.vars[v].name.clone()).unwrap_or_default();
            let what = match e.kind {
                EntryKind::Repeat { .. } => "loop",
                EntryKind::Segment(_) => "block",
                _ => "branch",
            };
            let (message, at) = match fault {
                Fault::ReadAfter(span) => (format!("`{name}` is written in this {what}, and read there after"), span),
                Fault::SomeArms => (format!("`{name}` is written in this {what}, but not in all arms"), e.span),
            };
            let d = Diagnostic::error("grad::written_inside", at, message).here(match at == e.span {
                true => "here",
                false => "read here",
            });
            let d = d.label(w.span, "gradient by its last contents taken here");
            let own = name.rsplit('.').next().unwrap_or_default();
            let help =
                format!("take the gradient by a copy: `let last = copy({own});` after it, and use `last` from there");
            return Err(self.report(d.help(help)));
        }
        Ok(())
    }
}

fn fault_inside(e: &Entry, view: &View) -> Option<Fault> {
    let is_branch = matches!(e.kind, EntryKind::Branch { .. });
    e.bodies().iter().find_map(|tape| match fault_in(tape, view) {
        Ok(false) if is_branch => Some(Fault::SomeArms),
        Ok(_) => None,
        Err(fault) => Some(fault),
    })
}

/// Goes back to the last write of a view; `false` if there is none.
fn fault_in(tape: &Tape, view: &View) -> std::result::Result<bool, Fault> {
    for e in tape.iter().rev() {
        let meets = |v: &View| overlap(v, view).is_some();
        if e.bodies().is_empty() {
            let (mut writes, mut read) = (false, false);
            e.results(&mut |v| writes |= meets(v));
            if let EntryKind::Opaque { writes: all, .. } = &e.kind {
                writes |= view.vars().iter().any(|v| all.contains(v));
            }
            if writes {
                return Ok(true);
            }
            e.operands(&mut |v| read |= meets(v));
            if read {
                return Err(Fault::ReadAfter(e.span));
            }
            continue;
        }
        let mut written = false;
        e.bodies().iter().for_each(|t| each_write(t, &mut |v| written |= view.vars().contains(&v)));
        if written {
            return fault_inside(e, view).map_or(Ok(true), Err);
        }
        for tape in e.bodies() {
            fault_in(tape, view)?;
        }
    }
    Ok(false)
}
