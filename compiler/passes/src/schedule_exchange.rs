//! `schedule-exchange : Planned → Scheduled`: a start cycle for every transfer, so that no tile sends or receives two
//! at once.
//!
//! # Note: Open shop with multicast
//! A transfer holds a set of *ports* from its start: its sender's out, the in of each receiver, and the link of every
//! other processor that it goes to. Wire delay is a sum of a sender's and a receiver's part, so it shifts ports and is
//! no part of the problem. No schedule is shorter than the load of the fullest port ([`bound`]). Two methods are
//! tried, and the shorter result is kept (the first on a tie):
//!
//! 1. the critical-first greedy (module `greedy`), within twice the bound for transfers to one receiver each, and close to
//!    it where loads are irregular; where it falls short and there are multicasts, again with multicasts first;
//! 2. rounds by edge colouring (module `rounds`), exact where transfers of one length are regular, where the greedy falls
//!    short and every transfer has one receiver.
//!
//! # Note: Links
//! Each ordered pair of processors has one link. A transfer of w words between them holds it for
//! `⌈4 · w / link_bytes_per_cycle⌉` cycles from its start, beside its tile ports, once for each processor that it goes
//! to. A link that is faster than a tile so carries the transfers of several tiles at overlapping times.
//!
//! Invariant: the result is a function of the phase and the machine alone; the time of scheduling grows with the number
//! of transfers, not with that of cycles.

mod greedy;
mod ports;
mod rounds;
#[cfg(test)]
mod tests;
mod verify;

pub use verify::verify;

use crate::context::PassContext;
use girder_ir::plan::{Phase, StepPlan};
use girder_ir::schedule::{PhaseSchedule, Schedule, StepSchedule};
use girder_ir::stage::{Planned, Scheduled};
use girder_machine::Machine;
use girder_source::{Diagnostic, Failed, OriginId, Result, par_map_slice};
use ports::Ports;

/// Its flag.
pub const NAME: &str = "schedule-exchange";
/// What it does.
pub const SENTENCE: &str = "gives every transfer a start cycle, so that no tile sends or receives two at once";

/// How far above the bound the first method may stay before the next is tried.
const GOOD: f64 = 1.02;

/// Schedules every phase of every compute set and copy.
///
/// # Errors
/// A phase of more cycles than a `u32` holds, or a stop by the user.
pub fn run(planned: Planned, cx: &mut PassContext) -> Result<Scheduled> {
    let machine = cx.machine;
    let sets: Vec<_> = planned.sets.keys().collect();
    let copies: Vec<_> = planned.copies.keys().collect();
    let of_sets = par_map_slice(&sets, |&s| step(&planned.plan.sets[s], machine));
    cx.poll()?;
    let of_copies = par_map_slice(&copies, |&c| step(&planned.plan.copies[c], machine));
    cx.poll()?;
    let mut schedule = Schedule::default();
    let mut complete = true;
    for (s, found) in sets.into_iter().zip(of_sets) {
        let set = &planned.sets[s];
        complete &= keep(found, &mut schedule.sets[s], cx, &planned, &set.name, set.origin);
    }
    for (c, found) in copies.into_iter().zip(of_copies) {
        let copy = &planned.copies[c];
        complete &= keep(found, &mut schedule.copies[c], cx, &planned, &copy.name, copy.origin);
    }
    if complete { Ok(Scheduled { planned, schedule }) } else { Err(Failed) }
}

/// Stores what was found, or reports that there is nothing.
fn keep(
    found: Option<StepSchedule>,
    place: &mut StepSchedule,
    cx: &mut PassContext,
    planned: &Planned,
    name: &str,
    origin: OriginId,
) -> bool {
    let complete = found.is_some();
    match found {
        Some(found) => *place = found,
        None => {
            let message = format!("the exchange of `{name}` takes more than {} cycles", u32::MAX);
            let help = "spread the data over more tiles, or move them in several steps";
            let span = planned.origins.span(origin);
            cx.diagnostics.push(Diagnostic::error("exchange::too_long", span, message).help(help));
        }
    }
    complete
}

fn step(plan: &StepPlan, machine: &Machine) -> Option<StepSchedule> {
    Some(StepSchedule { before: schedule(&plan.before, machine)?, after: schedule(&plan.after, machine)? })
}

/// The schedule of one phase; `None` if its cycles do not fit a `u32`.
pub fn schedule(phase: &Phase, machine: &Machine) -> Option<PhaseSchedule> {
    let ports = Ports::new(phase, machine);
    let good = (ports.bound() as f64 * GOOD) as u64;
    let mut best = greedy::greedy(&ports, false);
    let mut cycles = ports.end(&best);
    if cycles > good {
        let other = match ports.has_multicast() {
            true => Some(greedy::greedy(&ports, true)),
            false => rounds::rounds(&ports),
        };
        if let Some(other) = other.filter(|o| ports.end(o) < cycles) {
            cycles = ports.end(&other);
            best = other;
        }
    }
    let cycles = u32::try_from(cycles).ok()?;
    Some(PhaseSchedule { start: best.into_iter().map(|s| s as u32).collect(), cycles })
}

/// Cycles that no schedule of a phase can beat: the load of its fullest port.
pub fn bound(phase: &Phase, machine: &Machine) -> u64 {
    Ports::new(phase, machine).bound()
}

/// The cycles of a schedule over those that no schedule can beat; 1 for a phase without transfers.
pub fn achieved_over_bound(phase: &Phase, schedule: &PhaseSchedule, machine: &Machine) -> f64 {
    match bound(phase, machine) {
        0 => 1.0,
        bound => schedule.cycles as f64 / bound as f64,
    }
}
