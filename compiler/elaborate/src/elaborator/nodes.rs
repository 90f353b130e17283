//! Steps of a program under construction, and their conversion to the graph's tree of steps.
//!
//! Invariant: a sequence is never a direct child of a sequence, so that printed text reads back to the same tree.

use super::rows_set::{RowWrite, RowsSet};
use crate::gradients::order::Moment;
use crate::gradients::tape::Tape;
use crate::pipelines::stages::StageNumber;
use girder_ir::graph::Graph;
use girder_ir::ids::{ComputeSetId, CopyId, ProgramId, StepId, VarId};
use girder_ir::program::{Effect, Step, StepKind};
use girder_ir::view::View;
use girder_source::OriginId;

/// A sequence of steps.
#[derive(Clone, Debug, Default)]
pub struct Body {
    /// The steps, in order.
    pub nodes: Vec<Node>,
    /// Steps that read rows at run time.
    pub rows: Vec<RowsSet>,
    /// Steps that write elements of a temporary at indices that are known only at run time.
    pub row_writes: Vec<RowWrite>,
    /// What is recorded of the steps, in a program with gradients.
    pub tape: Tape,
}

impl Body {
    /// Inserts steps before a position.
    pub fn insert(&mut self, position: usize, nodes: Vec<Node>) {
        self.rows.iter_mut().for_each(|r| r.shift(position, nodes.len()));
        self.row_writes.iter_mut().for_each(|w| w.shift(position, nodes.len()));
        self.nodes.splice(position..position, nodes);
    }
}

/// A step and its origin.
#[derive(Clone, Debug)]
pub struct Node {
    /// The operation.
    pub kind: NodeKind,
    /// The origin.
    pub origin: OriginId,
    /// When it was emitted, in a program with gradients.
    pub at: Moment,
    /// Whether it is part of a reverse program, as are all steps inside it then.
    pub reverse: bool,
    /// The stage of the pipeline around to which it belongs.
    pub stage: Option<StageNumber>,
}

/// The kinds of [`StepKind`], with their children inline.
#[derive(Clone, Debug)]
pub enum NodeKind {
    /// Runs a compute set.
    Execute(ComputeSetId),
    /// Runs a copy.
    Copy(CopyId),
    /// Runs a body `count` times; the index is a variable, its first value and its step.
    Repeat { count: u64, index: Option<(VarId, i32, i32)>, body: Body },
    /// Runs `before`, and while `cond` then holds, `body` and `before` again.
    While { before: Body, cond: View, body: Body },
    /// Runs one of two bodies.
    If { cond: View, then: Body, els: Body },
    /// Runs the body of the case that has the key, else `default`.
    Switch { on: View, cases: Vec<Case>, default: Body },
    /// Runs a program.
    Call(ProgramId),
    /// Runs bodies that do not depend on one another.
    Par(Vec<Body>),
    /// Performs an effect that the host observes.
    Effect(Effect),
}

/// Inclusive ranges of keys, and the body that they select.
pub type Case = (Vec<(i64, i64)>, Body);

impl NodeKind {
    /// Returns the bytes of the texts that it holds.
    pub fn texts(&self) -> u64 {
        let text = match self {
            NodeKind::Effect(Effect::Print { label: text, .. })
            | NodeKind::Effect(Effect::PrintText { text })
            | NodeKind::Effect(Effect::Abort { message: text, .. }) => text,
            _ => return 0,
        };
        2 * text.len() as u64
    }

    /// Converts the views of a step to the form that reading printed text gives.
    pub fn canonicalise(&mut self) {
        let view = match self {
            NodeKind::While { cond: view, .. }
            | NodeKind::If { cond: view, .. }
            | NodeKind::Switch { on: view, .. } => view,
            NodeKind::Effect(effect) => match effect {
                Effect::Print { value: view, .. }
                | Effect::Read { into: view, .. }
                | Effect::Undef { what: view, .. }
                | Effect::Agree { what: view }
                | Effect::Seek { row: view, .. }
                | Effect::Write { from: view, .. } => view,
                Effect::Abort { when: Some(view), .. } => view,
                Effect::Abort { when: None, .. } | Effect::PrintText { .. } | Effect::Sync => return,
            },
            _ => return,
        };
        *view = view.clone().canonical();
    }
}

/// Adds a body to the graph's steps, in pre-order.
pub fn add_body(graph: &mut Graph, body: Body, origin: OriginId) -> StepId {
    add_sequence(graph, body, origin, false)
}

fn add_sequence(graph: &mut Graph, body: Body, origin: OriginId, reverse: bool) -> StepId {
    let seq = graph.steps.push(Step { kind: StepKind::Seq(vec![]), origin, reverse });
    let children = body.nodes.into_iter().map(|n| add(graph, n, reverse)).collect();
    graph.steps[seq].kind = StepKind::Seq(children);
    seq
}

fn add(graph: &mut Graph, node: Node, reverse: bool) -> StepId {
    let origin = node.origin;
    let reverse = reverse || node.reverse;
    // Reserves the id, so that children follow their parent.
    let id = graph.steps.push(Step { kind: StepKind::Seq(vec![]), origin, reverse });
    let inside = |graph: &mut Graph, body: Body| add_sequence(graph, body, origin, reverse);
    let kind = match node.kind {
        NodeKind::Execute(s) => StepKind::Execute(s),
        NodeKind::Copy(c) => StepKind::Copy(c),
        NodeKind::Repeat { count, index, body } => StepKind::Repeat { count, index, body: inside(graph, body) },
        NodeKind::While { before, cond, body } => {
            let before = inside(graph, before);
            StepKind::While { before, cond, body: inside(graph, body) }
        }
        NodeKind::If { cond, then, els } => {
            let then = inside(graph, then);
            StepKind::If { cond, then, els: inside(graph, els) }
        }
        NodeKind::Switch { on, cases, default } => {
            let cases = cases.into_iter().map(|(keys, body)| (keys, inside(graph, body))).collect();
            StepKind::Switch { on, cases, default: inside(graph, default) }
        }
        NodeKind::Call(p) => StepKind::Call(p),
        NodeKind::Par(branches) => StepKind::Par(branches.into_iter().map(|b| inside(graph, b)).collect()),
        NodeKind::Effect(e) => StepKind::Effect(e),
    };
    graph.steps[id].kind = kind;
    id
}
