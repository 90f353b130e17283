//! The passes in their order, and how a compilation runs through them or goes on from text.
//!
//! ```text
//! Graph ─promote-temporaries→ Graph ─merge-copies→ Graph ─place-tiles→ Placed ─check-races→ RaceFree
//!       ─plan-transfers→ Planned ─schedule-exchange→ Scheduled ─allocate-memory→ Allocated
//! ```
//!
//! Invariant: with debug assertions, the verifier of a stage runs after every pass that makes it; a stage that was read
//! from text is never trusted ([`resume`]).

use crate::{
    PassContext, allocate_memory, check_races, merge_copies, place_tiles, plan_transfers, promote_temporaries,
};
use crate::{liveness::Liveness, schedule_exchange};
use girder_ir::graph::Graph;
use girder_ir::stage::{Allocated, Placed, Planned, RaceFree, Scheduled};
use girder_source::{Failed, Result, par_both};

/// The stages, in order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[allow(missing_docs)]
pub enum Stage {
    Graph,
    Placed,
    RaceFree,
    Planned,
    Scheduled,
    Allocated,
}

impl Stage {
    /// Every stage, in order.
    pub const ALL: [Stage; 6] =
        [Stage::Graph, Stage::Placed, Stage::RaceFree, Stage::Planned, Stage::Scheduled, Stage::Allocated];

    /// As `--emit` takes it.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Graph => "graph",
            Stage::Placed => "placed",
            Stage::RaceFree => "race-free",
            Stage::Planned => "planned",
            Stage::Scheduled => "scheduled",
            Stage::Allocated => "allocated",
        }
    }

    /// The stage of a name.
    pub fn from_name(name: &str) -> Option<Stage> {
        Stage::ALL.into_iter().find(|s| s.name() == name)
    }

    /// The stage that a pass makes, as the header of a printed stage names it.
    pub fn after(pass: &str) -> Option<Stage> {
        PASSES.iter().find(|p| p.name == pass).map(|p| p.to)
    }

    /// The pass whose result the stage is; `None` for the graph, which the front end makes.
    pub fn made_by(self) -> Option<&'static str> {
        PASSES.iter().find(|p| p.to == self && p.from != self).map(|p| p.name)
    }
}

/// A pass, for listings.
#[derive(Clone, Copy, Debug)]
pub struct PassInfo {
    /// Its flag, test folder and row of timings.
    pub name: &'static str,
    /// What it does.
    pub sentence: &'static str,
    /// What it takes.
    pub from: Stage,
    /// What it makes.
    pub to: Stage,
}

/// A plan that moves more bytes than this is not replayed after it was made (what is read from text always is).
const REPLAYED_BYTES: u64 = 1 << 24;

/// Every pass in order.
pub const PASSES: [PassInfo; 7] = [
    info(promote_temporaries::NAME, promote_temporaries::SENTENCE, Stage::Graph, Stage::Graph),
    info(merge_copies::NAME, merge_copies::SENTENCE, Stage::Graph, Stage::Graph),
    info(place_tiles::NAME, place_tiles::SENTENCE, Stage::Graph, Stage::Placed),
    info(check_races::NAME, check_races::SENTENCE, Stage::Placed, Stage::RaceFree),
    info(plan_transfers::NAME, plan_transfers::SENTENCE, Stage::RaceFree, Stage::Planned),
    info(schedule_exchange::NAME, schedule_exchange::SENTENCE, Stage::Planned, Stage::Scheduled),
    info(allocate_memory::NAME, allocate_memory::SENTENCE, Stage::Scheduled, Stage::Allocated),
];

const fn info(name: &'static str, sentence: &'static str, from: Stage, to: Stage) -> PassInfo {
    PassInfo { name, sentence, from, to }
}

/// A compilation at any stage: what reading a stage's text gives.
#[derive(Clone, Debug)]
#[allow(missing_docs, clippy::large_enum_variant)]
pub enum AnyStage {
    Graph(Graph),
    Placed(Placed),
    RaceFree(RaceFree),
    Planned(Planned),
    Scheduled(Scheduled),
    Allocated(Allocated),
}

impl AnyStage {
    /// Which stage it is.
    pub fn stage(&self) -> Stage {
        match self {
            AnyStage::Graph(_) => Stage::Graph,
            AnyStage::Placed(_) => Stage::Placed,
            AnyStage::RaceFree(_) => Stage::RaceFree,
            AnyStage::Planned(_) => Stage::Planned,
            AnyStage::Scheduled(_) => Stage::Scheduled,
            AnyStage::Allocated(_) => Stage::Allocated,
        }
    }

    /// Its graph.
    pub fn graph(&self) -> &Graph {
        match self {
            AnyStage::Graph(s) => s,
            AnyStage::Placed(s) => s,
            AnyStage::RaceFree(s) => s,
            AnyStage::Planned(s) => s,
            AnyStage::Scheduled(s) => s,
            AnyStage::Allocated(s) => s,
        }
    }

    /// Its tables, as far as it has them.
    pub fn tables(&self) -> Tables<'_> {
        let (placed, planned, scheduled, allocated) = match self {
            AnyStage::Graph(_) => (None, None, None, None),
            AnyStage::Placed(s) => (Some(s), None, None, None),
            AnyStage::RaceFree(s) => (Some(&s.placed), None, None, None),
            AnyStage::Planned(s) => (Some(&s.race_free.placed), Some(s), None, None),
            AnyStage::Scheduled(s) => (Some(&s.planned.race_free.placed), Some(&s.planned), Some(s), None),
            AnyStage::Allocated(s) => {
                let planned = &s.scheduled.planned;
                (Some(&planned.race_free.placed), Some(planned), Some(&s.scheduled), Some(s))
            }
        };
        Tables { placed, planned, scheduled, allocated }
    }
}

/// The stages inside a stage that have tables of their own.
#[derive(Clone, Copy, Debug)]
pub struct Tables<'a> {
    /// With a placement.
    pub placed: Option<&'a Placed>,
    /// With a plan.
    pub planned: Option<&'a Planned>,
    /// With a schedule.
    pub scheduled: Option<&'a Scheduled>,
    /// With a layout.
    pub allocated: Option<&'a Allocated>,
}

/// Runs the passes from a stage that this compiler made to `target`; a stage that is already further stays as it is.
pub fn lower_to(mut at: AnyStage, target: Stage, cx: &mut PassContext) -> Result<AnyStage> {
    while at.stage() < target {
        at = match at {
            AnyStage::Graph(graph) => AnyStage::Placed(place(graph, cx)?),
            AnyStage::Placed(placed) => AnyStage::RaceFree(check(placed, cx)?),
            AnyStage::RaceFree(race_free) => AnyStage::Planned(plan(race_free, cx)?),
            AnyStage::Planned(planned) => AnyStage::Scheduled(schedule(planned, cx)?),
            AnyStage::Scheduled(scheduled) => AnyStage::Allocated(allocate(scheduled, cx)?),
            AnyStage::Allocated(allocated) => return Ok(AnyStage::Allocated(allocated)),
        };
    }
    Ok(at)
}

/// As [`lower_to`] from a graph, while `beside` makes what depends on the graph alone: no pass from `place-tiles` on
/// changes it. What it makes is there whether the passes succeed or not, unless the first ones fail.
pub fn lower_beside<T: Send>(
    graph: Graph,
    target: Stage,
    cx: &mut PassContext,
    beside: impl FnOnce(&Graph) -> T + Send,
) -> (Result<AnyStage>, Option<T>) {
    let settled = match settle(graph, cx) {
        Ok(graph) => graph,
        Err(failed) => return (Err(failed), None),
    };
    let graph = settled.clone();
    let passes = || place_settled(settled, cx).and_then(|placed| lower_to(AnyStage::Placed(placed), target, cx));
    let (lowered, made) = par_both(passes, || beside(&graph));
    (lowered, Some(made))
}

/// Goes on from a stage that was read from text: checks every table that it has, races anew, and runs the passes that
/// are left. The fast engine's memory is no part of the text and is laid out here.
pub fn resume(from: AnyStage, target: Stage, cx: &mut PassContext) -> Result<AnyStage> {
    let from = admit(from, cx)?;
    lower_to(from, target, cx)
}

/// Accepts a stage that was read from text, or reports the first table that does not hold.
fn admit(mut from: AnyStage, cx: &mut PassContext) -> Result<AnyStage> {
    let machine = cx.machine;
    let tables = from.tables();
    if let Some(placed) = tables.placed {
        cx.accepted(place_tiles::NAME, place_tiles::verify_placement(placed, &placed.placement, machine))?;
    }
    if let Some(placed) = tables.placed.filter(|_| from.stage() > Stage::Placed) {
        let found = check_races::check(placed, &placed.placement, machine, &cx.session.cancel);
        cx.poll()?;
        let any = !found.is_empty();
        cx.diagnostics.extend(found);
        if any {
            return Err(Failed);
        }
    }
    if let Some(planned) = tables.planned {
        cx.accepted(
            plan_transfers::NAME,
            plan_transfers::verify_within(&planned.race_free, machine, cx.block_limit(), &planned.plan),
        )?;
    }
    if let Some(scheduled) = tables.scheduled {
        let verdict = schedule_exchange::verify(&scheduled.planned, machine, &scheduled.schedule);
        cx.accepted(schedule_exchange::NAME, verdict)?;
    }
    if let Some(allocated) = tables.allocated {
        let verdict = allocate_memory::verify_layout(
            &allocated.scheduled,
            &allocated.layout,
            machine,
            cx.session.allow_over_memory,
        );
        cx.accepted(allocate_memory::NAME, verdict)?;
    }
    match &mut from {
        AnyStage::Graph(_) => {}
        AnyStage::Placed(s) => promote(&mut s.graph, cx)?,
        AnyStage::RaceFree(s) => promote(&mut s.placed.graph, cx)?,
        AnyStage::Planned(s) => promote(&mut s.race_free.placed.graph, cx)?,
        AnyStage::Scheduled(s) => promote(&mut s.planned.race_free.placed.graph, cx)?,
        AnyStage::Allocated(s) => {
            s.host = allocate_memory::allocate_host(&s.scheduled, &Liveness::of(&s.scheduled), cx)?
        }
    }
    Ok(from)
}

/// Promotion changes storage classes only, so it may come late: no table but the layout depends on them.
fn promote(graph: &mut Graph, cx: &mut PassContext) -> Result<()> {
    let taken = std::mem::take(graph);
    *graph = cx.time(promote_temporaries::NAME, |cx| promote_temporaries::run(taken, cx))?;
    Ok(())
}

fn place(graph: Graph, cx: &mut PassContext) -> Result<Placed> {
    let settled = settle(graph, cx)?;
    place_settled(settled, cx)
}

/// The passes that change the graph.
fn settle(mut graph: Graph, cx: &mut PassContext) -> Result<Graph> {
    promote(&mut graph, cx)?;
    if cfg!(debug_assertions) {
        cx.verified(promote_temporaries::NAME, promote_temporaries::verify(&graph))?;
    }
    let graph = cx.time(merge_copies::NAME, |cx| merge_copies::run(graph, cx))?;
    if cfg!(debug_assertions) {
        cx.verified(merge_copies::NAME, merge_copies::verify(&graph))?;
    }
    Ok(graph)
}

fn place_settled(graph: Graph, cx: &mut PassContext) -> Result<Placed> {
    let placed = cx.time(place_tiles::NAME, |cx| place_tiles::run(graph, cx))?;
    if cfg!(debug_assertions) {
        let verdict = place_tiles::verify_placement(&placed, &placed.placement, cx.machine);
        cx.verified(place_tiles::NAME, verdict)?;
    }
    Ok(placed)
}

/// A proof has no table, and nothing to verify.
fn check(placed: Placed, cx: &mut PassContext) -> Result<RaceFree> {
    cx.time(check_races::NAME, |cx| check_races::run(placed, cx))
}

fn plan(race_free: RaceFree, cx: &mut PassContext) -> Result<Planned> {
    let planned = cx.time(plan_transfers::NAME, |cx| plan_transfers::run(race_free, cx))?;
    // The replay follows every byte; large programs of a debug build would wait for it.
    if cfg!(debug_assertions) && plan_transfers::verify_cost(&planned) < REPLAYED_BYTES {
        let verdict = plan_transfers::verify_within(&planned.race_free, cx.machine, cx.block_limit(), &planned.plan);
        cx.verified(plan_transfers::NAME, verdict)?;
    }
    Ok(planned)
}

fn schedule(planned: Planned, cx: &mut PassContext) -> Result<Scheduled> {
    let scheduled = cx.time(schedule_exchange::NAME, |cx| schedule_exchange::run(planned, cx))?;
    if cfg!(debug_assertions) {
        let verdict = schedule_exchange::verify(&scheduled.planned, cx.machine, &scheduled.schedule);
        cx.verified(schedule_exchange::NAME, verdict)?;
    }
    Ok(scheduled)
}

fn allocate(scheduled: Scheduled, cx: &mut PassContext) -> Result<Allocated> {
    let allocated = cx.time(allocate_memory::NAME, |cx| allocate_memory::run(scheduled, cx))?;
    if cfg!(debug_assertions) {
        let verdict = allocate_memory::verify_layout(
            &allocated.scheduled,
            &allocated.layout,
            cx.machine,
            cx.session.allow_over_memory,
        );
        cx.verified(allocate_memory::NAME, verdict)?;
    }
    Ok(allocated)
}

#[cfg(test)]
mod tests;
