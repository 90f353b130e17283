//! Step groups: the smallest groups of neighbouring steps whose tasks follow one another, without tasks of other
//! steps between.
//!
//! Invariant: the groups of a sequence follow one another, and the tasks of each are those of its steps.

use girder_ir::ids::StepId;

/// A task of one or more steps.
#[derive(Clone)]
pub(super) struct TimedTask {
    /// The step of each of its units.
    pub steps: Vec<StepId>,
    /// The task.
    pub task: usize,
}

/// Neighbouring steps whose tasks run together.
#[derive(Clone)]
pub(super) struct StepGroup {
    /// The steps, in the order of the program.
    pub steps: Vec<StepId>,
    /// Their tasks, in the order in which they run.
    pub tasks: Vec<TimedTask>,
}

impl StepGroup {
    /// Returns the first step.
    pub fn first(&self) -> Option<StepId> {
        self.steps.first().copied()
    }
}

/// Divides the tasks of neighbouring steps into groups.
pub(super) fn step_groups(steps: &[StepId], tasks: Vec<TimedTask>) -> Vec<StepGroup> {
    let position = |step: &StepId| steps.iter().position(|s| s == step).unwrap_or_default();
    let mut left = vec![0usize; steps.len()];
    tasks.iter().flat_map(|t| &t.steps).for_each(|step| left[position(step)] += 1);
    let mut all = Vec::new();
    let (mut from, mut to) = (0, 0);
    let mut open: Vec<TimedTask> = Vec::new();
    for task in tasks {
        for step in &task.steps {
            let at = position(step);
            left[at] -= 1;
            to = to.max(at + 1);
        }
        open.push(task);
        if left[..to].iter().all(|&n| n == 0) {
            all.push(StepGroup { steps: steps[from..to].to_vec(), tasks: std::mem::take(&mut open) });
            from = to;
        }
    }
    all
}
