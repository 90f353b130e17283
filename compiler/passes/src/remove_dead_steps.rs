//! `remove-dead-steps`: compute sets and copies leave if nothing reads what they write.
//!
//! A step is dead if it writes temporaries only and none of them holds a value that is still needed after it. Steps
//! that only dead steps need are dead too. A loop of no iterations is dead with all that it holds.
//!
//! Invariant: no effect leaves. A compute set with a check that may fail stays, and so does a step that breaks the race
//! rule, because both end in a message.

use crate::PassContext;
use crate::footprint::Covers;
use crate::liveness::dead_steps;
use crate::pass::{Pass, Verdict};
use crate::race_rule::Touches;
use crate::rewrite::{Rewrite, cannot_fail};
use crate::stage::Stage;
use girder_ir::family::Family;
use girder_ir::graph::Graph;
use girder_ir::ids::{StepId, VarId};
use girder_ir::program::StepKind;
use girder_source::Result;

/// The pass `remove-dead-steps`.
pub struct RemoveDeadSteps;

impl Pass for RemoveDeadSteps {
    const NAME: &'static str = "remove-dead-steps";
    const SENTENCE: &'static str = "removes steps that write nothing but values that no step reads";
    const OPTIONAL: bool = true;
    type From = Graph;
    type To = Graph;

    /// Removes dead steps until there are none.
    fn run(mut graph: Graph, cx: &mut PassContext) -> Result<Graph> {
        let mut covers = cx.covers(&graph);
        loop {
            cx.poll()?;
            let dead = dead(&graph, &covers, cx);
            if dead.is_empty() {
                return Ok(graph);
            }
            let mut rewrite = Rewrite::default();
            dead.into_iter().for_each(|step| rewrite.remove(step));
            rewrite.apply(&mut graph);
            cx.forget_families();
            covers = cx.covers(&graph);
        }
    }

    /// Checks that no step is dead whose vertices cannot fail.
    fn verify(graph: &Graph, cx: &PassContext) -> Verdict {
        match dead(graph, &Covers::of(graph), cx).first() {
            Some(step) => Err(format!("{step} writes only what nothing reads")),
            None => Ok(()),
        }
    }

    /// Accepts the result: the pass has just found that no step is dead.
    fn verify_own(_: &Graph, _: &PassContext) -> Verdict {
        Ok(())
    }

    /// Accepts text with dead steps: it may have been printed without this pass, and they cost nothing but time.
    fn admit(_: &mut Graph, _: Stage, _: &mut PassContext) -> Result<()> {
        Ok(())
    }
}

fn dead(graph: &Graph, covers: &Covers, cx: &PassContext) -> Vec<StepId> {
    let never_runs = |step: &StepId| matches!(graph.steps[*step].kind, StepKind::Repeat { count: 0, .. });
    let in_order = graph.steps.values().flat_map(|step| match &step.kind {
        StepKind::Seq(all) => &all[..],
        _ => &[],
    });
    let loops: Vec<StepId> = in_order.copied().filter(never_runs).collect();
    if !loops.is_empty() {
        return loops;
    }
    let dead = dead_steps(graph, covers, |step| temporaries_written(graph, step));
    let may_leave =
        |&step: &StepId| Touches::of_step(graph, step).is_some_and(|t| t.obey_the_race_rule(graph, &cx.session.cancel));
    // A step that stays may need what another one writes, so then only those before it are in question again.
    match dead.iter().all(may_leave) {
        true => dead,
        false => {
            let stays: Vec<StepId> = dead.into_iter().filter(|step| !may_leave(step)).collect();
            let written = |step: StepId| temporaries_written(graph, step).filter(|_| !stays.contains(&step));
            dead_steps(graph, covers, written).into_iter().filter(may_leave).collect()
        }
    }
}

/// Returns the variables that a compute set or a copy writes, if they are temporaries and no vertex can fail.
fn temporaries_written(graph: &Graph, step: StepId) -> Option<Vec<VarId>> {
    let written: Vec<VarId> = match graph.steps[step].kind {
        StepKind::Execute(set) => {
            let families = || graph.sets[set].families.iter().map(|&f| &graph.families[f]);
            let fields = |family: &Family| {
                let codelet = &graph.codelets[family.codelet];
                let written = family.fields.iter().filter(|f| codelet.fields[f.field].dir.writes());
                written.flat_map(|f| &f.parts).map(|p| p.var).collect::<Vec<_>>()
            };
            let written: Vec<VarId> = families().flat_map(fields).collect();
            if !are_temporaries(graph, &written) || !families().all(|family| cannot_fail(graph, family)) {
                return None;
            }
            written
        }
        StepKind::Copy(copy) => graph.copies[copy].families.iter().flat_map(|f| &f.dst.parts).map(|p| p.var).collect(),
        _ => return None,
    };
    are_temporaries(graph, &written).then_some(written)
}

fn are_temporaries(graph: &Graph, vars: &[VarId]) -> bool {
    vars.iter().all(|&var| !graph.vars[var].is_persistent())
}
