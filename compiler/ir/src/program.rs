//! The control program: a tree of steps.
//!
//! # Note: Effects
//! `print`, `abort`, streams and the failure of a codelet are totally ordered: no engine or pass moves work across one.
//!
//! Invariants: a step's children come after it in [`Graph::steps`](crate::graph::Graph) (ids ascend in pre-order); the
//! branches of `Par` share no written element; calls do not recurse.

use crate::ids::{ComputeSetId, CopyId, ProgramId, StepId, StreamId, VarId};
use crate::view::View;
use girder_source::OriginId;
use smol_str::SmolStr;

/// A program, or a body that programs call.
#[derive(Clone, Debug)]
pub struct Program {
    /// Its name.
    pub name: SmolStr,
    /// Whether the host can run it; otherwise it is only called.
    pub entry: bool,
    /// The root of its steps.
    pub body: StepId,
    /// Its origin.
    pub origin: OriginId,
}

/// One step.
#[derive(Clone, Debug)]
pub struct Step {
    /// The form of the step.
    pub kind: StepKind,
    /// Its origin.
    pub origin: OriginId,
    /// Whether it is part of a reverse program: what such steps read of the others was kept for them.
    pub reverse: bool,
}

/// The forms of steps.
#[derive(Clone, Debug)]
pub enum StepKind {
    /// Steps in order.
    Seq(Vec<StepId>),
    /// One superstep.
    Execute(ComputeSetId),
    /// One exchange.
    Copy(CopyId),
    /// A body that runs `count` times; the index, if any, is `start`, `start + by`, … before each iteration.
    Repeat {
        /// The trip count.
        count: u64,
        /// The rank-0 `i32` temporary that holds the index, its first value and its step.
        index: Option<(VarId, i32, i32)>,
        /// The steps of an iteration.
        body: StepId,
    },
    /// A loop: `before` runs, `cond` is tested, `body` runs, and so on.
    While {
        /// The steps that compute the condition.
        before: StepId,
        /// A rank-0 `bool` view.
        cond: View,
        /// The steps of an iteration.
        body: StepId,
    },
    /// A branch.
    If {
        /// A rank-0 `bool` view.
        cond: View,
        /// The steps if the condition holds.
        then: StepId,
        /// The steps if it does not.
        els: StepId,
    },
    /// A choice: the first case whose keys contain the value, else the default.
    Switch {
        /// A rank-0 integer view.
        on: View,
        /// Inclusive ranges of keys, and the steps for them.
        cases: Vec<(Vec<(i64, i64)>, StepId)>,
        /// `_`
        default: StepId,
    },
    /// Shared code.
    Call(ProgramId),
    /// Branches on disjoint processors.
    Par(Vec<StepId>),
    /// An effect that is visible outside.
    Effect(Effect),
}

/// An effect that is visible outside; effects are ordered.
#[derive(Clone, Debug)]
pub enum Effect {
    /// `print(label, x);`
    Print {
        /// The text before the value.
        label: SmolStr,
        /// The value.
        value: View,
    },
    /// `print("text");`
    PrintText {
        /// The text.
        text: SmolStr,
    },
    /// `abort(message, when: c);`
    Abort {
        /// The message with which the run ends.
        message: SmolStr,
        /// A rank-0 `bool`; `None` means always.
        when: Option<View>,
    },
    /// `x <- read(stream);`
    Read {
        /// An `in` stream.
        stream: StreamId,
        /// A view of the shape of a packet; names no element twice.
        into: View,
    },
    /// `stream <- x;`
    Write {
        /// An `out` stream.
        stream: StreamId,
        /// A view of the shape of a packet.
        from: View,
    },
    /// `seek(remote, row);`: later packets of the remote buffer are this row. A run begins with row 0.
    Seek {
        /// A remote buffer.
        stream: StreamId,
        /// A rank-0 `i32`.
        row: View,
    },
    /// `sync();`
    Sync,
    /// `undef(x);`: the values of the elements are no longer needed. From here on they are zero, in every mode; the
    /// machine does nothing. The elements have one variable, and none is named twice.
    Undef {
        /// The elements.
        what: View,
        /// What is known about reads of them before they are written again.
        until_written: UntilWritten,
    },
    /// `agree(x);`: the elements are equal in all replicas, which `check-replicas` proves; then the step leaves.
    Agree {
        /// The elements.
        what: View,
    },
}

/// What is known about reads of elements whose values have ended, before they are written again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UntilWritten {
    /// Nothing: some step may read the zeros.
    MayBeRead,
    /// The text states that no step reads them. If one does, it reads zeros.
    StatedUnread,
    /// This compilation has proven that no step reads them, so an engine need not write zeros. Printed text only states
    /// it.
    Unread,
}

impl Step {
    /// Returns the direct children, in order.
    pub fn children(&self) -> Vec<StepId> {
        match &self.kind {
            StepKind::Seq(all) | StepKind::Par(all) => all.clone(),
            StepKind::Repeat { body, .. } => vec![*body],
            StepKind::While { before, body, .. } => vec![*before, *body],
            StepKind::If { then, els, .. } => vec![*then, *els],
            StepKind::Switch { cases, default, .. } => {
                cases.iter().map(|c| c.1).chain(std::iter::once(*default)).collect()
            }
            StepKind::Execute(_) | StepKind::Copy(_) | StepKind::Call(_) | StepKind::Effect(_) => Vec::new(),
        }
    }

    /// Returns the elements that the step itself accesses, without a compute set, a copy or the index of a loop.
    pub fn view(&self) -> Option<&View> {
        match &self.kind {
            StepKind::While { cond: view, .. }
            | StepKind::If { cond: view, .. }
            | StepKind::Switch { on: view, .. }
            | StepKind::Effect(
                Effect::Print { value: view, .. }
                | Effect::Abort { when: Some(view), .. }
                | Effect::Read { into: view, .. }
                | Effect::Write { from: view, .. }
                | Effect::Seek { row: view, .. }
                | Effect::Undef { what: view, .. }
                | Effect::Agree { what: view },
            ) => Some(view),
            StepKind::Seq(_)
            | StepKind::Par(_)
            | StepKind::Execute(_)
            | StepKind::Copy(_)
            | StepKind::Repeat { .. }
            | StepKind::Call(_)
            | StepKind::Effect(Effect::Abort { when: None, .. } | Effect::PrintText { .. } | Effect::Sync) => None,
        }
    }

    /// Works like [`view`](Step::view), for replacing variables.
    pub fn view_mut(&mut self) -> Option<&mut View> {
        match &mut self.kind {
            StepKind::While { cond: view, .. }
            | StepKind::If { cond: view, .. }
            | StepKind::Switch { on: view, .. }
            | StepKind::Effect(
                Effect::Print { value: view, .. }
                | Effect::Abort { when: Some(view), .. }
                | Effect::Read { into: view, .. }
                | Effect::Write { from: view, .. }
                | Effect::Seek { row: view, .. }
                | Effect::Undef { what: view, .. }
                | Effect::Agree { what: view },
            ) => Some(view),
            _ => None,
        }
    }

    /// Works like [`children`](Step::children), for replacing ids.
    pub fn children_mut(&mut self) -> Vec<&mut StepId> {
        match &mut self.kind {
            StepKind::Seq(all) | StepKind::Par(all) => all.iter_mut().collect(),
            StepKind::Repeat { body, .. } => vec![body],
            StepKind::While { before, body, .. } => vec![before, body],
            StepKind::If { then, els, .. } => vec![then, els],
            StepKind::Switch { cases, default, .. } => {
                cases.iter_mut().map(|c| &mut c.1).chain(std::iter::once(default)).collect()
            }
            StepKind::Execute(_) | StepKind::Copy(_) | StepKind::Call(_) | StepKind::Effect(_) => Vec::new(),
        }
    }
}
