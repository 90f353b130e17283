//! The points of the steps, and the other points at which a step's temporaries are live (see "The liveness order").
//!
//! Invariant: every step has a point, even if no program reaches it.

use crate::steps::{callers_first, children, steps_of};
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
    /// The points at which the temporaries of each step are live.
    occupied: SecondaryMap<StepId, (u32, u32)>,
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
        order.occupy(graph);
        order
    }

    /// Returns the point of a step.
    pub fn point(&self, step: StepId) -> u32 {
        self.point[step]
    }

    /// Returns the points of a step and all steps inside it, including called programs whose first call is there.
    pub fn range(&self, step: StepId) -> Range<u32> {
        self.first[step]..self.end[step]
    }

    /// Returns the points at which the temporaries of a step are live at least: its own point, and the calls of its
    /// program if there are several.
    pub fn occupied(&self, step: StepId) -> Range<u32> {
        let (lo, hi) = self.occupied[step];
        lo..hi
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

    /// Fills `occupied`, callers first.
    fn occupy(&mut self, graph: &Graph) {
        // The number of calls of each program, and the interval of points that they occupy.
        let mut calls: SecondaryMap<ProgramId, u32> = SecondaryMap::new();
        let mut sites: SecondaryMap<ProgramId, Option<(u32, u32)>> = SecondaryMap::new();
        for step in graph.steps.values() {
            if let StepKind::Call(p) = step.kind {
                calls[p] += 1;
            }
        }
        let hull = |a: Option<(u32, u32)>, b: (u32, u32)| a.map_or(b, |a| (a.0.min(b.0), a.1.max(b.1)));
        for program in self.callers_first.clone() {
            for step in steps_of(graph, graph.programs[program].body) {
                let own = (self.point[step], self.point[step] + 1);
                self.occupied[step] = hull(sites[program], own);
                if let StepKind::Call(callee) = graph.steps[step].kind {
                    // A program with one call is inside it, and the points between suffice.
                    let around = (calls[callee] > 1).then_some(own);
                    let all = [around, sites[program]];
                    sites[callee] = all.into_iter().flatten().fold(sites[callee], |a, b| Some(hull(a, b)));
                }
            }
        }
    }
}
