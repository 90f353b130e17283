//! `check-races`: the race rule of the language, per element.
//!
//! Inside one compute set, an element that is written through one field is accessed through no other field, of the same
//! vertex or another; reads may overlap. Inside one copy no element is written twice, and none is both read and
//! written. Branches of `par` share no written element. Constants are never written, and a written view names no
//! element twice. A copy between replicas obeys the rule in each of them. Tiles and words are irrelevant. Workers of
//! one vertex that certainly write one element are found too (see `workers`); all other races of workers are left to
//! mode `interpret`. The accesses of a step and the conflicts among them are in `race_rule`.
//!
//! Invariant: silence is a proof, except for workers.

mod report;
mod workers;

use crate::pass::{Pass, Verdict};
use crate::race_rule::{Touch, Who};
use crate::stage::Stage;
use crate::{Part, PassContext, StepTimes, race_rule};
use girder_ir::graph::Graph;
use girder_ir::ids::StepId;
use girder_ir::placement::Placement;
use girder_ir::program::{Effect, StepKind};
use girder_ir::stage::{Placed, RaceFree};
use girder_machine::Machine;
use girder_source::{Cancel, Diagnostic, Result, par_map};
use report::Reporter;

/// The pass `check-races`.
pub struct CheckRaces;

impl Pass for CheckRaces {
    const NAME: &'static str = "check-races";
    const SENTENCE: &'static str =
        "proves that no element is written through one field and touched by another at one time";
    type From = Placed;
    type To = RaceFree;

    /// Proves a placed graph free of races, or reports the violations.
    fn run(input: Placed, cx: &mut PassContext) -> Result<RaceFree> {
        prove(&input, cx)?;
        Ok(RaceFree { placed: input })
    }

    /// Accepts every result: a proof has no table.
    fn verify(_: &RaceFree, _: &PassContext) -> Verdict {
        Ok(())
    }

    /// Proves the rule again.
    fn admit(read: &mut RaceFree, _: Stage, cx: &mut PassContext) -> Result<()> {
        prove(&read.placed, cx)
    }
}

/// Reports the violations of the rule.
///
/// # Errors
/// `Failed` if there is a violation.
fn prove(placed: &Placed, cx: &mut PassContext) -> Result<()> {
    let found = check(placed, &placed.placement, cx.machine, &cx.session.cancel, &cx.step_times);
    cx.poll()?;
    let any = !found.is_empty();
    cx.diagnostics.extend(found);
    if any { Err(girder_source::Failed) } else { Ok(()) }
}

/// Returns whether a graph is free of races, which does not depend on tiles; `false` if the search was stopped.
pub fn is_race_free(graph: &Graph, machine: &Machine, cancel: &Cancel) -> bool {
    check(graph, &Placement::default(), machine, cancel, &StepTimes::default()).is_empty() && !cancel.is_cancelled()
}

/// Returns all violations of the rule, at most a few for each step. Tiles appear only in messages.
pub fn check(
    graph: &Graph,
    placement: &Placement,
    machine: &Machine,
    cancel: &Cancel,
    times: &StepTimes,
) -> Vec<Diagnostic> {
    let pass = CheckRaces::NAME;
    let reporter = Reporter { graph, placement };
    let (sets, copies) = (graph.sets.keys().collect::<Vec<_>>(), graph.copies.keys().collect::<Vec<_>>());
    let steps: Vec<StepId> = graph.steps.keys().collect();
    let of_sets = par_map(sets.len(), |i| {
        times.of(pass, Part::Set(sets[i]), || {
            let touches = race_rule::of_set(graph, sets[i]);
            reporter.work(&graph.sets[sets[i]].name, &touches, cancel)
        })
    });
    let of_copies = par_map(copies.len(), |i| {
        times.of(pass, Part::Copy(copies[i]), || {
            let name = &graph.copies[copies[i]].name;
            match graph.copies[copies[i]].crosses() {
                true => {
                    let of_replicas = race_rule::of_copy_by_replica(graph, copies[i]);
                    let found = of_replicas.iter().map(|touches| reporter.work(name, touches, cancel));
                    found.into_iter().find(|found| !found.is_empty()).unwrap_or_default()
                }
                false => reporter.work(name, &race_rule::of_copy(graph, copies[i]), cancel),
            }
        })
    });
    let of_steps = par_map(steps.len(), |i| of_step(&reporter, steps[i], cancel));
    let of_workers = vec![workers::check(graph, machine.chip.workers)];
    [of_sets, of_copies, of_steps, of_workers].into_iter().flatten().flatten().collect()
}

fn of_step(reporter: &Reporter, step: StepId, cancel: &Cancel) -> Vec<Diagnostic> {
    let graph = reporter.graph;
    match &graph.steps[step].kind {
        StepKind::Effect(Effect::Read { into, .. } | Effect::Undef { what: into, .. }) => {
            let touches = Touch::all(Who::Read(step), true, crate::footprint::Footprint::of_view(into));
            reporter.work("", &touches, cancel)
        }
        StepKind::Par(branches) => reporter.branches(step, &race_rule::of_branches(graph, branches), cancel),
        _ => vec![],
    }
}

#[cfg(test)]
mod tests;
