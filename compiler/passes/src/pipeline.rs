//! The passes in their order, and how a compilation runs through them or goes on from text.
//!
//! ```text
//! Graph ─promote-temporaries→ Graph ─merge-copies→ Graph ─place-tiles→ Placed ─check-races→ RaceFree
//!       ─plan-transfers→ Planned ─schedule-exchange→ Scheduled ─allocate-memory→ Allocated
//! ```
//!
//! [`PASSES`] is the one place that states the order: lowering, reading text back, `girder passes`, `--stage` and the
//! rows of `--time` follow it.
//!
//! Invariant: with debug assertions, the verifier of a pass runs after it; a stage that was read from text is never
//! trusted ([`resume`]).

use crate::allocate_memory::AllocateMemory;
use crate::check_races::CheckRaces;
use crate::merge_copies::MergeCopies;
use crate::pass::PassEntry;
use crate::place_tiles::PlaceTiles;
use crate::plan_transfers::PlanTransfers;
use crate::promote_temporaries::PromoteTemporaries;
use crate::schedule_exchange::ScheduleExchange;
use crate::{PassContext, stage};
use girder_ir::graph::Graph;
use girder_source::{Result, par_both};

pub use stage::{AnyStage, Stage, Tables};

/// Every pass, in order.
pub const PASSES: &[PassEntry] = &[
    PassEntry::of::<PromoteTemporaries>(),
    PassEntry::of::<MergeCopies>(),
    PassEntry::of::<PlaceTiles>(),
    PassEntry::of::<CheckRaces>(),
    PassEntry::of::<PlanTransfers>(),
    PassEntry::of::<ScheduleExchange>(),
    PassEntry::of::<AllocateMemory>(),
];

/// How far a compilation has come: the number of passes that have run. Passes from graph to graph count too, which a
/// [`Stage`] does not tell.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct After(usize);

impl After {
    /// What the front end makes: no pass has run.
    pub const ELABORATE: After = After(0);

    /// Returns every point of a compilation, in order.
    pub fn all() -> impl Iterator<Item = After> {
        (0..=PASSES.len()).map(After)
    }

    /// Returns the point after the pass of a name, or after `elaborate`.
    pub fn named(name: &str) -> Option<After> {
        After::all().find(|after| after.name() == name)
    }

    /// Returns the name of the pass that has run last; `elaborate` if none has.
    pub fn name(self) -> &'static str {
        self.last().map_or("elaborate", |pass| pass.name)
    }

    /// Returns the stage that the compilation is at.
    pub fn stage(self) -> Stage {
        self.last().map_or(Stage::Graph, |pass| pass.to)
    }

    fn last(self) -> Option<&'static PassEntry> {
        PASSES[..self.0].last()
    }
}

impl From<Stage> for After {
    /// The first point at which a compilation is at a stage.
    fn from(stage: Stage) -> After {
        After::all().find(|after| after.stage() == stage).expect("a pass makes each stage but the first")
    }
}

/// Runs the passes from a stage that this compiler made to `target`; a stage that is already further stays as it is.
///
/// # Errors
/// Those of the passes.
pub fn lower_to(at: AnyStage, target: impl Into<After>, cx: &mut PassContext) -> Result<AnyStage> {
    let done = After::from(at.stage());
    run(at, done, target.into(), cx)
}

/// Lowers a graph as [`lower_to`] does, while `beside` makes what depends on the graph alone: the passes that change
/// the graph run first. Returns what `beside` made whether the other passes succeed or not.
pub fn lower_beside<T: Send>(
    graph: Graph,
    target: Stage,
    cx: &mut PassContext,
    beside: impl FnOnce(&Graph) -> T + Send,
) -> (Result<AnyStage>, Option<T>) {
    let last = After::all().filter(|after| after.stage() == Stage::Graph).last().unwrap_or(After::ELABORATE);
    let at = match run(AnyStage::Graph(graph), After::ELABORATE, last, cx) {
        Ok(at) => at,
        Err(failed) => return (Err(failed), None),
    };
    let graph = at.graph().clone();
    let (lowered, made) = par_both(|| run(at, last, target.into(), cx), || beside(&graph));
    (lowered, Some(made))
}

/// Continues from a stage that was read from text: admits the tables of the passes that have run, and runs those that
/// are left.
///
/// # Errors
/// The first table that does not hold, and errors of the passes.
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

/// Runs the passes between two points.
fn run(mut at: AnyStage, done: After, target: After, cx: &mut PassContext) -> Result<AnyStage> {
    for pass in PASSES.get(done.0..target.0).unwrap_or_default() {
        at = pass.run(at, cx)?;
    }
    Ok(at)
}

/// The stages of neighbouring passes fit together; else this does not compile.
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
