//! The points of the steps (see "The liveness order").
//!
//! Invariant: every step has a point, even if no program reaches it.

use crate::steps::{callers_first, children};
use cranelift_entity::SecondaryMap;
use girder_ir::graph::Graph;
use girder_ir::ids::{ProgramId, StepId};
use girder_ir::program::StepKind;
use std::ops::Range;

/// The liveness order of a graph.
#[derive(Clone, Debug, Default)]
pub struct LivenessOrder {
    /// The number of points.
    pub points: u32,
    /// The point of each step.
    point: SecondaryMap<StepId, u32>,
    /// The first point of each step and all steps inside it.
    first: SecondaryMap<StepId, u32>,
    /// One past the last such point.
    end: SecondaryMap<StepId, u32>,
    /// Programs, callers before the programs that they call.
    pub callers_first: Vec<ProgramId>,
}

/// A step that is still to be numbered.
enum Task {
    Enter(StepId),
    Point(StepId),
    Leave(StepId),
}

impl LivenessOrder {
    /// Numbers the steps of a graph.
    pub fn of(graph: &Graph) -> LivenessOrder {
        let mut order = LivenessOrder { callers_first: callers_first(graph), ..LivenessOrder::default() };
        let mut placed: SecondaryMap<ProgramId, bool> = SecondaryMap::new();
        let entries = graph.programs.iter().filter(|(_, p)| p.entry).map(|(id, _)| id);
        // What no entry reaches comes last, and callers first also there.
        for program in entries.chain(order.callers_first.clone()).collect::<Vec<_>>() {
            if !std::mem::replace(&mut placed[program], true) {
                order.number(graph, graph.programs[program].body, &mut placed);
            }
        }
        order
    }

    /// Returns the point of a step.
    pub fn point(&self, step: StepId) -> u32 {
        self.point[step]
    }

    /// Returns the interval of a step's own point.
    pub fn at(&self, step: StepId) -> Range<u32> {
        self.point[step]..self.point[step] + 1
    }

    /// Returns the points of a step and all steps inside it, including called programs whose first call is there.
    pub fn range(&self, step: StepId) -> Range<u32> {
        self.first[step]..self.end[step]
    }

    fn number(&mut self, graph: &Graph, root: StepId, placed: &mut SecondaryMap<ProgramId, bool>) {
        let mut tasks = vec![Task::Enter(root)];
        while let Some(task) = tasks.pop() {
            match task {
                Task::Point(step) => {
                    self.point[step] = self.points;
                    self.points += 1;
                }
                Task::Leave(step) => self.end[step] = self.points,
                Task::Enter(step) => {
                    self.first[step] = self.points;
                    tasks.push(Task::Leave(step));
                    let at = tasks.len();
                    let kind = &graph.steps[step].kind;
                    if !matches!(kind, StepKind::While { .. }) {
                        tasks.push(Task::Point(step));
                    }
                    children(kind, |c| tasks.push(Task::Enter(c)));
                    match kind {
                        StepKind::While { .. } => tasks.insert(at + 1, Task::Point(step)),
                        StepKind::Call(p) if !std::mem::replace(&mut placed[*p], true) => {
                            tasks.push(Task::Enter(graph.programs[*p].body));
                        }
                        _ => {}
                    }
                    tasks[at..].reverse();
                }
            }
        }
    }
}
