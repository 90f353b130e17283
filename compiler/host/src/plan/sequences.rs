//! Neighbouring steps that an engine may cut into cache blocks.
//!
//! Invariant: a sequence is in one `Seq`, without a step between its groups; fused steps are one group.

use crate::fuse::FusedSteps;
use crate::products::SummedProducts;
use cranelift_entity::SecondaryMap;
use girder_ir::graph::Graph;
use girder_ir::ids::StepId;
use girder_ir::program::StepKind;

/// Neighbouring groups of steps, in program order.
pub type Sequence = Vec<StepGroup>;

/// A compute set, a copy, products with the step that adds them, or fused steps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StepGroup {
    /// The first step.
    pub first: StepId,
    /// The number of steps; more than one if they are fused.
    pub steps: usize,
}

/// Returns the runs of compute sets and copies of every `Seq`, in the order of steps.
pub(super) fn sequences(
    graph: &Graph,
    summed: &SecondaryMap<StepId, Option<SummedProducts>>,
    fused: &SecondaryMap<StepId, Option<FusedSteps>>,
) -> Vec<Sequence> {
    let length = |first: StepId| match (&summed[first], &fused[first]) {
        (Some(_), _) => SummedProducts::STEPS,
        (None, Some(fused)) => fused.steps,
        (None, None) => 1,
    };
    let is_superstep = |step: StepId| matches!(graph.steps[step].kind, StepKind::Execute(_) | StepKind::Copy(_));
    let mut all = Vec::new();
    for step in graph.steps.values() {
        let StepKind::Seq(steps) = &step.kind else { continue };
        let runs = steps.chunk_by(|a, b| is_superstep(*a) == is_superstep(*b));
        all.extend(runs.filter(|run| is_superstep(run[0])).map(|run| groups(length, run)));
    }
    all
}

fn groups(length: impl Fn(StepId) -> usize, mut run: &[StepId]) -> Sequence {
    let mut groups = Sequence::new();
    while let [first, ..] = run {
        let steps = length(*first);
        groups.push(StepGroup { first: *first, steps });
        run = &run[steps..];
    }
    groups
}
