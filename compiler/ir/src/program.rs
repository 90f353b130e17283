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
    /// Whether the host can run it (else it is only called).
    pub entry: bool,
    /// What it does.
    pub body: StepId,
    /// Where it comes from.
    pub origin: OriginId,
}

/// One step.
#[derive(Clone, Debug)]
pub struct Step {
    /// Which.
    pub kind: StepKind,
    /// Where it comes from.
    pub origin: OriginId,
}

/// The forms of steps.
#[derive(Clone, Debug)]
pub enum StepKind {
    /// In order.
    Seq(Vec<StepId>),
    /// One superstep.
    Execute(ComputeSetId),
    /// One exchange.
    Copy(CopyId),
    /// `count` times; the index, if any, is `start`, `start + by`, … before each turn.
    Repeat {
        /// How often.
        count: u64,
        /// The rank-0 `i32` temporary that holds the index, its first value and its step.
        index: Option<(VarId, i32, i32)>,
        /// Each turn.
        body: StepId,
    },
    /// `before` runs, `cond` is tested, `body` runs, and again.
    While {
        /// What the condition needs.
        before: StepId,
        /// A rank-0 `bool` view.
        cond: View,
        /// Each turn.
        body: StepId,
    },
    /// `if`
    If {
        /// A rank-0 `bool` view.
        cond: View,
        /// If so.
        then: StepId,
        /// If not.
        els: StepId,
    },
    /// The first case whose keys hold the value; else the default.
    Switch {
        /// A rank-0 integer view.
        on: View,
        /// Inclusive ranges of keys, and what they do.
        cases: Vec<(Vec<(i64, i64)>, StepId)>,
        /// `_`
        default: StepId,
    },
    /// Shared code.
    Call(ProgramId),
    /// Branches on disjoint processors.
    Par(Vec<StepId>),
    /// What the outside sees.
    Effect(Effect),
}

/// What the outside sees, in order.
#[derive(Clone, Debug)]
pub enum Effect {
    /// `print(label, x);`
    Print {
        /// What stands before the value.
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
        /// What the run ends with.
        message: SmolStr,
        /// A rank-0 `bool`; `None` is always.
        when: Option<View>,
    },
    /// `x <- read(stream);`
    Read {
        /// An `in` stream.
        stream: StreamId,
        /// Shape of a packet; names no element twice.
        into: View,
    },
    /// `stream <- x;`
    Write {
        /// An `out` stream.
        stream: StreamId,
        /// Shape of a packet.
        from: View,
    },
    /// `sync();`
    Sync,
}

impl Step {
    /// Returns the steps directly inside, in order.
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

    /// As [`children`](Step::children), to give them other ids.
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
