//! The passes in order, and how a compilation runs through them or resumes from text.
//!
//! ```text
//! Graph ─check-replicas→ Graph ─promote-temporaries→ Graph ─fold-constants→ Graph ─remove-dead-steps→ Graph
//!       ─fuse-elementwise→ Graph ─merge-compute-sets→ Graph ─merge-copies→ Graph ─place-tiles→ Placed
//!       ─check-races→ RaceFree ─plan-transfers→ Planned ─schedule-exchange→ Scheduled ─allocate-memory→ Allocated
//! ```
//!
//! [`PASSES`] is the only place that states the order. Lowering, resuming from text, `girder passes`, `--stage` and
//! `--time` all follow it.
//!
//! # Note: Memory
//! `place-tiles` estimates how much memory a placement needs. If a few tiles then lack memory, the graph is placed
//! again by a search that counts more and fills less, and so uses more tiles. Exchange whose code cannot fit with any
//! schedule is not scheduled.
//!
//! Invariant: with debug assertions, the verifier of a pass runs after it. A stage that was read from text is never
//! trusted: see [`resume`].

use crate::allocate_memory::AllocateMemory;
use crate::check_races::CheckRaces;
use crate::check_replicas::CheckReplicas;
use crate::context::ESTIMATES;
use crate::fold_constants::FoldConstants;
use crate::fuse_elementwise::FuseElementwise;
use crate::merge_compute_sets::MergeComputeSets;
use crate::merge_copies::MergeCopies;
use crate::pass::{Pass, PassEntry};
use crate::place_tiles::PlaceTiles;
use crate::plan_transfers::PlanTransfers;
use crate::progress::Progress;
use crate::promote_temporaries::PromoteTemporaries;
use crate::remove_dead_steps::RemoveDeadSteps;
use crate::schedule_exchange::ScheduleExchange;
use crate::{PassContext, allocate_memory, stage};
use girder_ir::graph::Graph;
use girder_source::{Failed, Result, beside};

pub use stage::{AnyStage, Stage, Tables};

/// Every pass, in order.
pub const PASSES: &[PassEntry] = &[
    PassEntry::of::<CheckReplicas>(),
    PassEntry::of::<PromoteTemporaries>(),
    PassEntry::of::<FoldConstants>(),
    PassEntry::of::<RemoveDeadSteps>(),
    PassEntry::of::<FuseElementwise>(),
    PassEntry::of::<MergeComputeSets>(),
    PassEntry::of::<MergeCopies>(),
    PassEntry::of::<PlaceTiles>(),
    PassEntry::of::<CheckRaces>(),
    PassEntry::of::<PlanTransfers>(),
    PassEntry::of::<ScheduleExchange>(),
    PassEntry::of::<AllocateMemory>(),
];

/// Bytes of stack for the passes on a thread of their own. Only touched pages take memory.
const STACK: usize = 64 << 20;

/// A point of the pipeline: the number of passes that have run. It is finer than a [`Stage`], because passes from graph
/// to graph count too.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct After(usize);

impl After {
    /// The point before the first pass: the graph as the front end makes it.
    pub const ELABORATE: After = After(0);

    /// Returns every point of a compilation, in order.
    pub fn all() -> impl Iterator<Item = After> {
        (0..=PASSES.len()).map(After)
    }

    /// Returns the point after the pass with the given name, or the first point for `elaborate`.
    pub fn named(name: &str) -> Option<After> {
        After::all().find(|after| after.name() == name)
    }

    /// Returns the name of the last pass that has run, or `elaborate` if none has.
    pub fn name(self) -> &'static str {
        self.last().map_or("elaborate", |pass| pass.name)
    }

    /// Returns the stage of a compilation at this point.
    pub fn stage(self) -> Stage {
        self.last().map_or(Stage::Graph, |pass| pass.to)
    }

    fn last(self) -> Option<&'static PassEntry> {
        PASSES[..self.0].last()
    }
}

impl From<Stage> for After {
    /// Returns the first point at which a compilation is at a stage.
    fn from(stage: Stage) -> After {
        After::all().find(|after| after.stage() == stage).expect("a pass makes each stage but the first")
    }
}

/// Lowers a stage that this compiler made to `target`. A stage that is already later is returned as it is.
///
/// # Errors
/// The errors of the passes.
pub fn lower_to(at: AnyStage, target: impl Into<After>, cx: &mut PassContext) -> Result<AnyStage> {
    let done = After::from(at.stage());
    run(at, done, target.into(), cx)
}

/// Lowers a graph as [`lower_to`] does. The passes from graph to graph run first. The others then run on a thread of
/// their own, while `own` runs on this one, with the graph that they take and their progress. If a pass fails, it sets
/// the session's stop flag, so that `own` ends; its result is returned all the same.
///
/// # Errors
/// The host cannot start a thread.
pub fn lower_beside<T>(
    graph: Graph,
    target: Stage,
    cx: &mut PassContext,
    own: impl FnOnce(&Graph, &Progress) -> T,
) -> std::io::Result<(Result<AnyStage>, Option<T>)> {
    let last = After::all().filter(|after| after.stage() == Stage::Graph).last().unwrap_or(After::ELABORATE);
    let at = match run(AnyStage::Graph(graph), After::ELABORATE, last, cx) {
        Ok(at) => at,
        Err(failed) => return Ok((Err(failed), None)),
    };
    let (graph, progress) = (at.graph().clone(), Progress::default());
    let cancel = &cx.session.cancel;
    let passes = || {
        let mut end = progress.end();
        let lowered = run_noting(at, last, target.into(), cx, |at| progress.reached(at));
        end.succeeded = lowered.is_ok();
        let stops = lowered.is_err() && !cancel.is_cancelled();
        if stops {
            cancel.cancel();
        }
        (lowered, stops)
    };
    let ((lowered, stops), made) = beside(STACK, passes, || own(&graph, &progress))?;
    if stops {
        cancel.withdraw();
    }
    Ok((lowered, Some(made)))
}

/// Resumes from a stage that was read from text: checks the tables of the passes that have run, and runs the other
/// passes.
///
/// # Errors
/// The first table that does not hold, or the errors of the passes.
pub fn resume(
    mut read: AnyStage,
    done: impl Into<After>,
    target: impl Into<After>,
    cx: &mut PassContext,
) -> Result<AnyStage> {
    let done = done.into();
    for pass in &PASSES[..done.0] {
        pass.admit(&mut read, cx)?;
    }
    run(read, done, target.into(), cx)
}

/// Runs the passes between two points of the pipeline, but for those that the session leaves out.
fn run(at: AnyStage, done: After, target: After, cx: &mut PassContext) -> Result<AnyStage> {
    run_noting(at, done, target, cx, |_| ())
}

/// Works like [`run`], and calls `note` with what each pass has made.
fn run_noting(
    mut at: AnyStage,
    done: After,
    target: After,
    cx: &mut PassContext,
    note: impl Fn(&AnyStage),
) -> Result<AnyStage> {
    let each = |passes: &[PassEntry], mut at: AnyStage, cx: &mut PassContext| {
        for pass in passes.iter().filter(|pass| !pass.optional || !cx.session.without.contains(&pass.name)) {
            at = pass.run(at, cx)?;
            note(&at);
        }
        Ok(at)
    };
    let passes = PASSES.get(done.0..target.0).unwrap_or_default();
    let [placing, planning] =
        [PlaceTiles::NAME, PlanTransfers::NAME].map(|name| passes.iter().position(|pass| pass.name == name));
    let (Some(placing), Some(planning), Stage::Allocated) = (placing, planning, target.stage()) else {
        return each(passes, at, cx);
    };
    at = each(&passes[..placing], at, cx)?;
    let before = cx.diagnostics.len();
    let (mut refused, mut tried) = (None, vec![]);
    for estimate in ESTIMATES {
        cx.estimate = estimate;
        let placed = each(&passes[placing..=placing], at.clone(), cx);
        if let Ok(AnyStage::Placed(placed)) = &placed {
            let plan = (placed.placement.clone(), estimate.small);
            if tried.contains(&plan) {
                cx.diagnostics.split_off(before);
                continue;
            }
            tried.push(plan);
        }
        let placed = placed.and_then(|placed| {
            let planned = each(&passes[placing + 1..=planning], placed, cx)?;
            // A plan that cannot fit is not scheduled.
            if let AnyStage::Planned(planned) = &planned {
                allocate_memory::refuse_plan(planned, cx)?;
            }
            each(&passes[planning + 1..], planned, cx)
        });
        let goes_on = std::mem::take(&mut cx.may_fit);
        let is_final = placed.is_ok() || cx.session.cancel.is_cancelled();
        if is_final || (refused.is_none() && !goes_on) {
            return placed;
        }
        // If no placement fits, the report of the first one is shown.
        let report = cx.diagnostics.split_off(before);
        refused.get_or_insert(report);
        if !goes_on {
            break;
        }
    }
    cx.diagnostics.extend(refused.into_iter().flatten());
    Err(Failed)
}

/// Checks at compile time that each pass takes the stage that the pass before it makes.
const _: () = {
    assert!(matches!(PASSES[0].from, Stage::Graph));
    let mut k = 1;
    while k < PASSES.len() {
        assert!(PASSES[k - 1].to as u8 == PASSES[k].from as u8);
        k += 1;
    }
};

#[cfg(test)]
mod tests;
