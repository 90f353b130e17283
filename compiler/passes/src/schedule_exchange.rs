//! `schedule-exchange`: a start cycle for every transfer, so that no tile sends or receives two at once.
//!
//! # Note: Open shop with multicast
//! A transfer inside a processor holds *ports* from its start: its sender's output port and the input port of each
//! receiver. Wire delay is the sum of a sender's and a receiver's part, so it shifts ports and is no part of the
//! problem. No schedule is shorter than the load of the fullest port ([`bound`]). The following methods are tried in
//! order until one is within `GOOD` of the bound. Otherwise the shortest result is kept (the first on a tie).
//!
//! 1. Rounds in closed form (`rounds`): halos, permutations, all-to-alls, gathers, broadcasts. With multicasts, also
//!    with each receiver served separately.
//! 2. Edge colouring (`colours`) of transfers to one receiver each, cut into a few pieces where that is exact.
//! 3. The critical-first greedy (`greedy`). It stays within twice the bound for transfers to one receiver each, and
//!    close to it where loads are irregular. With multicasts, also with each receiver served separately, and with
//!    multicasts first.
//! 4. Edge colouring of whole transfers, exact if each length is regular; then of many pieces, exact up to the length
//!    of a piece.
//! 5. Multicasts in parts (`parts`) of two receivers, then of one, as far as their senders have slack, by the methods
//!    above.
//! 6. Multicasts that begin for those receivers that are free, and are repeated for the others (`joining`).
//!
//! Many transfers of a few words each are coalesced to jobs of those with the same ports (`coalesced`).
//!
//! With many transfers (`MANY`) each method is tried once, on multicasts in parts (`at_scale`). Colouring, which also
//! takes a few multicasts, then comes before the greedy.
//!
//! Transfers to groups of receivers that many share are first scheduled in layers of disjoint groups, or in time slots
//! (`layers`). With many transfers the other methods are then tried only if the result is far from the bound.
//!
//! A transfer whose receivers are whole pairs of tiles may move at twice the rate (`pairs`).
//!
//! # Note: Processors
//! The exchange of each processor is a problem of its own. Words for other processors move in a common part (`links`),
//! and so do those for other replicas.
//!
//! Invariant: the result is a function of the phase and the machine alone. The time of scheduling grows with the number
//! of transfers and its logarithm, whatever the pattern, and not with the number of cycles.

mod coalesced;
mod code;
mod colours;
mod effort;
mod equivalence;
mod greedy;
mod joining;
mod layers;
mod links;
mod pairs;
mod parts;
mod ports;
mod rounds;
#[cfg(test)]
mod tests;
mod verify;

pub use code::{ExchangeCode, exchange_code_bytes, least_exchange_code_bytes};
pub use verify::verify;

use crate::pass::{Pass, Verdict};
use crate::replica_traffic::{PairLists, ReplicaTraffic};
use crate::{Part, PassContext};
use coalesced::Coalesced;
use effort::{COALESCED, FEW_PIECES, GAIN_OF_PAIRS, GOOD, GOOD_AT_SCALE, MANY, PAIRS_AT_SCALE};
use girder_ir::plan::{Phase, StepPlan};
use girder_ir::schedule::{PhaseSchedule, Schedule, Served, StepSchedule, TransferSlice};
use girder_ir::stage::{Planned, Scheduled};
use girder_machine::Machine;
use girder_source::{Diagnostic, Failed, OriginId, Result, par_map_slice, par_map_uneven};
use layers::Layered;
use ports::{Jobs, Ports};
use std::sync::Arc;

/// The pass `schedule-exchange`.
pub struct ScheduleExchange;

impl Pass for ScheduleExchange {
    const NAME: &'static str = "schedule-exchange";
    const SENTENCE: &'static str = "gives every transfer a start cycle, so that no tile sends or receives two at once";
    type From = Planned;
    type To = Scheduled;

    /// Schedules every phase of every compute set and copy.
    ///
    /// # Errors
    /// A phase of more cycles than a `u32` holds, or a stop by the user.
    fn run(planned: Planned, cx: &mut PassContext) -> Result<Scheduled> {
        let (sets, copies) = (planned.sets.keys(), planned.copies.keys());
        let plans: Vec<&StepPlan> =
            sets.map(|s| &planned.plan.sets[s]).chain(copies.map(|c| &planned.plan.copies[c])).collect();
        let none = Phase::default();
        let mut phases: Vec<&Phase> = plans.iter().flat_map(|p| [&p.before, &p.after]).collect();
        // Words between replicas have no order, only a length.
        for (k, copy) in planned.copies.values().enumerate().filter(|(_, copy)| copy.crosses()) {
            phases[2 * (planned.sets.len() + k)] = &none;
            debug_assert!(copy.families.iter().all(|f| f.source.pairs().is_some()));
        }
        let classes = equivalence::classes(&phases);
        let weight = |&k: &usize| phases[k].transfers.len() as u64;
        let parts: Vec<Part> =
            planned.sets.keys().map(Part::Set).chain(planned.copies.keys().map(Part::Copy)).collect();
        let found = par_map_uneven(&classes.first, weight, |&k| {
            cx.step_times.of(Self::NAME, parts[k / 2], || schedule(phases[k], cx.machine).map(Arc::new))
        });
        cx.poll()?;
        let mut found = classes.of.chunks_exact(2).map(|pair| {
            let of = |class: usize| found[class].clone();
            Some(StepSchedule { before: of(pair[0])?, after: of(pair[1])? })
        });
        let mut schedule = Schedule::default();
        let mut complete = true;
        for (s, set) in &planned.sets {
            let found = found.next().flatten();
            complete &= keep(found, &mut schedule.sets[s], cx, &planned, &set.name, set.origin);
        }
        for (c, copy) in &planned.copies {
            let found = found.next().flatten().and_then(|found| match copy.crosses() {
                true => between_replicas(&planned.plan.copies[c], &copy.pair_lists(), cx.machine),
                false => Some(found),
            });
            complete &= keep(found, &mut schedule.copies[c], cx, &planned, &copy.name, copy.origin);
        }
        if complete { Ok(Scheduled { planned, schedule }) } else { Err(Failed) }
    }

    fn verify(scheduled: &Scheduled, cx: &PassContext) -> Verdict {
        verify(&scheduled.planned, cx.machine, &scheduled.schedule)
    }
}

/// Returns the schedule of a copy between replicas, or `None` if its cycles do not fit a `u32`.
fn between_replicas(plan: &StepPlan, lists: &PairLists, machine: &Machine) -> Option<StepSchedule> {
    let link_cycles = u32::try_from(ReplicaTraffic::of(plan, lists, machine).cycles).ok()?;
    let before = Arc::new(PhaseSchedule { link_cycles, ..PhaseSchedule::default() });
    Some(StepSchedule { before, ..StepSchedule::default() })
}

/// Stores a schedule, or reports that there is none. Returns whether there is one.
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

/// Returns the schedule of one phase, or `None` if its cycles do not fit a `u32`.
pub fn schedule(phase: &Phase, machine: &Machine) -> Option<PhaseSchedule> {
    schedule_coalesced(phase, machine, COALESCED)
}

/// Works like [`schedule`], but coalesces transfers only if they have `many` receivers or more in all.
fn schedule_coalesced(phase: &Phase, machine: &Machine, many: usize) -> Option<PhaseSchedule> {
    let layered = layers::layers(phase, machine);
    let is_found = |ipu: usize| layered[ipu].as_ref().is_some_and(|l| l.is_good);
    let jobs: Vec<Arc<Jobs>> = Jobs::of(phase, machine, |ipu| !is_found(ipu)).into_iter().map(Arc::new).collect();
    // A schedule in layers that is as short as others is not kept.
    let limits = layered.iter().map(|l| l.as_ref().map_or(u64::MAX, |l| l.end + 1));
    let limited: Vec<(&Arc<Jobs>, u64)> = jobs.iter().zip(limits).collect();
    let found = par_map_slice(&limited, |&(jobs, limit)| match Coalesced::of(jobs, machine, many) {
        Some(coalesced) => (best(coalesced.jobs.clone(), limit, machine), Some(coalesced)),
        None => (best(jobs.clone(), limit, machine), None),
    });
    let count = |(jobs, layered): (&(FoundSchedule, _), &Option<Layered>)| {
        jobs.0.start.len().max(layered.as_ref().map_or(0, Layered::len))
    };
    let slices = Vec::with_capacity(found.iter().zip(&layered).map(count).sum());
    let mut result = PhaseSchedule { slices, link_cycles: links::cycles(phase, machine)?, ..PhaseSchedule::default() };
    for (ipu, (whole, (found, coalesced))) in (0..).zip(jobs.iter().zip(&found)) {
        let layered = layered[ipu as usize].as_ref();
        match layered.filter(|l| found.start.is_empty() || l.end < found.end) {
            Some(layered) => {
                result.cycles.push((ipu, u32::try_from(layered.end).ok()?));
                layered.write(&mut result);
            }
            None if !found.start.is_empty() => {
                let end = u32::try_from(found.end).ok()?;
                let end = match coalesced {
                    Some(coalesced) if coalesced.write(found, machine, &mut result) => end,
                    // If coalesced jobs cannot be split into their transfers, the transfers themselves are scheduled.
                    Some(_) => {
                        let found = best(whole.clone(), u64::MAX, machine);
                        write(whole, &found, machine, &mut result);
                        u32::try_from(found.end).ok()?
                    }
                    None => {
                        write(whole, found, machine, &mut result);
                        end
                    }
                };
                result.cycles.push((ipu, end));
            }
            None => {}
        }
    }
    result.slices.shrink_to_fit();
    // Slices are found by processor and receiver, and listed by transfer and time. A sender sends one at a time, so no
    // two are equal.
    result.slices.sort_unstable_by_key(|p| (p.transfer, p.start));
    let found = std::mem::take(&mut result.served);
    for piece in &mut result.slices {
        if let Served::Some { first, count } = &mut piece.to {
            let list = &found[*first as usize..(*first + *count) as usize];
            *first = result.served.len() as u32;
            result.served.extend_from_slice(list);
        }
    }
    Some(result)
}

/// A schedule: jobs, which several methods may share, and their starts.
struct FoundSchedule {
    jobs: Arc<Jobs>,
    start: Vec<u64>,
    end: u64,
}

/// Returns the shortest schedule that the methods find, with jobs at the rate of pairs where that helps. A schedule
/// that does not end before `limit` need not be the shortest.
fn best(jobs: Arc<Jobs>, limit: u64, machine: &Machine) -> FoundSchedule {
    if jobs.list.is_empty() {
        return FoundSchedule { jobs, start: vec![], end: 0 };
    }
    let of = if jobs.to.len() < MANY { of_widths } else { at_scale };
    let paired = pairs::widen(&jobs, machine).filter(|paired| jobs.to.len() < MANY || !is_mostly_narrow(paired));
    let Some(paired) = paired.map(Arc::new) else { return of(jobs, limit, machine) };
    let [least, bound] = [&paired, &jobs].map(|jobs| Ports::new(jobs, machine).bound());
    // Many jobs that hold two tiles fit one another less well.
    let (factor, enough) = if jobs.to.len() < MANY { (GOOD, GOOD) } else { (GAIN_OF_PAIRS, PAIRS_AT_SCALE) };
    let within = |factor: f64| (least as f64 * factor) as u64;
    // The first variant may be good enough.
    if bound <= within(factor) {
        let first = of(jobs, limit, machine);
        return shortest(first, within(enough), limit, &[&|limit| Some(of(paired.clone(), limit, machine))]);
    }
    let first = of(paired, limit, machine);
    let good = within(GOOD).max((bound as f64 * GOOD) as u64);
    shortest(first, good, limit, &[&|limit| Some(of(jobs.clone(), limit, machine))])
}

/// Returns whether the rate of pairs would change little.
fn is_mostly_narrow(jobs: &Jobs) -> bool {
    let words = |paired: bool| jobs.list.iter().filter(|j| !paired || j.paired).map(|j| j.words as u64).sum::<u64>();
    64 * words(true) < words(false)
}

/// Returns the shortest schedule of many jobs. Each method is tried once: rounds, then the others with multicasts
/// served one receiver at a time as far as their senders have slack. A schedule that does not end before `limit` need
/// not be the shortest.
fn at_scale(jobs: Arc<Jobs>, limit: u64, machine: &Machine) -> FoundSchedule {
    let together = (&jobs, &Ports::new(&jobs, machine));
    let good = (together.1.bound() as f64 * GOOD) as u64;
    let whole = FoundSchedule::new(&jobs, together.1, rounds::rounds(together.1));
    if whole.end <= good {
        return whole;
    }
    let single = parts::singles(&jobs, together.1, together.1.bound()).map(Arc::new);
    let (jobs, ports) = match &single {
        Some(single) => (single, &Ports::new(single, machine)),
        None => together,
    };
    let colours: Method = match colours::whole_rounds(ports) <= good {
        true => &|_| Some(FoundSchedule::new(jobs, ports, colours::whole(ports))),
        false => &|_| pieces(jobs, ports, colours::MANY_EDGES, good, machine),
    };
    let found = shortest(whole, good, limit, &[colours]);
    let enough = (ports.bound() as f64 * GOOD_AT_SCALE) as u64;
    // Lengths of blocks of nearly one size are nearly regular: one fills the gaps of another.
    let fills = found.end > enough && colours::whole_rounds(ports) < found.end;
    let whole: Method = &|_| fills.then(|| FoundSchedule::new(jobs, ports, colours::whole(ports)));
    let found = shortest(found, enough, limit, &[whole]);
    let greedy: Method = &|limit| Some(FoundSchedule::new(jobs, ports, greedy::greedy(ports, false, limit)?));
    shortest(found, enough, limit, &[greedy, &|limit| joined(together, limit, machine)])
}

/// Returns the schedule of `joining`, if there are multicasts and it is shorter than a limit.
fn joined((jobs, ports): (&Arc<Jobs>, &Ports), limit: u64, machine: &Machine) -> Option<FoundSchedule> {
    if !ports.has_multicast() || (jobs.to.len() >= MANY && jobs.have_few_multicasts()) {
        return None;
    }
    let (cut, start) = joining::joining(jobs, ports, limit)?;
    let end = Ports::new(&cut, machine).end(&start);
    Some(FoundSchedule { jobs: Arc::new(cut), start, end })
}

/// Returns the shortest schedule that the methods find for jobs of given widths. A schedule that does not end before
/// `limit` need not be the shortest.
fn of_widths(jobs: Arc<Jobs>, limit: u64, machine: &Machine) -> FoundSchedule {
    let ports = Ports::new(&jobs, machine);
    let good = (ports.bound() as f64 * GOOD) as u64;
    let mut best = one_by_one(&jobs, &ports, good, limit, machine);
    for size in [2, 1] {
        if best.end <= good {
            break;
        }
        let Some(parts) = parts::parts(&jobs, &ports, size).map(Arc::new) else { break };
        let of_parts = Ports::new(&parts, machine);
        let found = one_by_one(&parts, &of_parts, good, limit.min(best.end), machine);
        if found.end < best.end {
            best = found;
        }
    }
    shortest(best, good, limit, &[&|limit| joined((&jobs, &ports), limit, machine)])
}

/// Returns the shortest schedule of jobs whose receivers are served together. A schedule that does not end before
/// `limit` need not be the shortest.
fn one_by_one(jobs: &Arc<Jobs>, ports: &Ports, good: u64, limit: u64, machine: &Machine) -> FoundSchedule {
    let found = |start| FoundSchedule::new(jobs, ports, start);
    let rounds = found(rounds::rounds(ports));
    let greedy: Method = &|limit| greedy::greedy(ports, false, limit).map(found);
    match ports.has_multicast() {
        true => {
            let (unicast_rounds, unicast, first): (Method, Method, Method) = (
                &|_| {
                    unicasts(jobs, ports, good, machine)
                        .map(|(jobs, ports)| FoundSchedule::new(&jobs, &ports, rounds::rounds(&ports)))
                },
                &|limit| {
                    unicasts(jobs, ports, good, machine)
                        .map(|(jobs, ports)| one_by_one(&jobs, &ports, good, limit, machine))
                },
                &|limit| greedy::greedy(ports, true, limit).map(found),
            );
            shortest(rounds, good, limit, &[unicast_rounds, greedy, unicast, first])
        }
        false => {
            let (few, whole, many): (Method, Method, Method) = (
                &|_| pieces(jobs, ports, FEW_PIECES * ports.len(), good, machine),
                &|_| Some(found(colours::whole(ports))),
                &|_| pieces(jobs, ports, colours::MANY_EDGES, u64::MAX, machine),
            );
            shortest(rounds, good, limit, &[few, greedy, whole, many])
        }
    }
}

/// Returns the jobs with all multicasts served one receiver at a time, if their senders have slack, or nearly so. A few
/// repetitions cost little compared with waiting for several receivers.
fn unicasts(jobs: &Jobs, ports: &Ports, good: u64, machine: &Machine) -> Option<(Arc<Jobs>, Ports)> {
    let single = Arc::new(parts::singles(jobs, ports, good)?);
    let ports = Ports::new(&single, machine);
    (!ports.has_multicast()).then_some((single, ports))
}

/// One way to find a schedule. It may give up if the schedule cannot end before the given cycle.
type Method<'a> = &'a (dyn Fn(u64) -> Option<FoundSchedule> + Sync);

/// Returns the first good enough among a schedule and the results of some methods, or else the shortest. A schedule
/// that does not end before `limit` need not be the shortest.
fn shortest(first: FoundSchedule, good: u64, limit: u64, methods: &[Method]) -> FoundSchedule {
    let mut best = first;
    for method in methods {
        if best.end > good
            && let Some(found) = method(limit.min(best.end))
            && found.end < best.end
        {
            best = found;
        }
    }
    best
}

fn pieces(jobs: &Jobs, ports: &Ports, count: usize, limit: u64, machine: &Machine) -> Option<FoundSchedule> {
    let (cut, start, end) = colours::pieces(jobs, ports, count, limit, machine)?;
    Some(FoundSchedule { jobs: Arc::new(cut), start, end })
}

impl FoundSchedule {
    fn new(jobs: &Arc<Jobs>, ports: &Ports, start: Vec<u64>) -> FoundSchedule {
        FoundSchedule { jobs: jobs.clone(), end: ports.end(&start), start }
    }
}

/// Adds the slices of one processor. `whole` are its transfers, which determine the slices that serve only some
/// receivers.
fn write(whole: &Jobs, found: &FoundSchedule, machine: &Machine, result: &mut PhaseSchedule) {
    let jobs = &found.jobs;
    // Sorted by transfer, receivers and time; the jobs of a transfer are neighbours already.
    let mut order: Vec<usize> = (0..jobs.list.len()).collect();
    let key = |j: usize| (jobs.list[j].transfer, jobs.receivers(j)[0].0, found.start[j]);
    order.sort_unstable_by_key(|&j| key(j));
    let mut transfers = whole.list.iter().peekable();
    let mut last: Option<(usize, u64)> = None;
    for j in order {
        let job = &jobs.list[j];
        let end = found.start[j] + ports::cycles(job.words, job.paired, machine);
        if let Some((before, free_at)) = last.replace((j, end))
            && free_at == found.start[j]
            && let Some(piece) = result.slices.last_mut()
            && (piece.transfer, piece.first + piece.words) == (job.transfer, job.first)
            && piece.paired == job.paired
            && jobs.receivers(before) == jobs.receivers(j)
        {
            piece.words += job.words;
            continue;
        }
        while transfers.next_if(|t| t.transfer < job.transfer).is_some() {}
        let all = transfers.peek().is_some_and(|t| t.to.len() == job.to.len());
        let to = match all {
            true => Served::All,
            false => {
                let first = result.served.len() as u32;
                result.served.extend(jobs.receivers(j).iter().map(|r| r.0));
                Served::Some { first, count: job.to.len() as u32 }
            }
        };
        let start = found.start[j] as u32;
        let (transfer, first) = (job.transfer, job.first);
        result.slices.push(TransferSlice { transfer, first, words: job.words, start, to, paired: job.paired });
    }
}

/// Returns the least cycles of any schedule of a phase on each processor: the load of its fullest port, with transfers
/// at the rate of pairs where the machine allows it and the sender's partner has room.
pub fn bound(phase: &Phase, machine: &Machine) -> Vec<u64> {
    let of = |jobs: Jobs| Ports::new(pairs::widen(&jobs, machine).as_ref().unwrap_or(&jobs), machine).bound();
    Jobs::of(phase, machine, |_| true).into_iter().map(of).collect()
}

/// Returns the cycles of a schedule over the least cycles of any schedule, on the processor where this is worst; 1 for
/// a phase without transfers.
pub fn achieved_over_bound(phase: &Phase, schedule: &PhaseSchedule, machine: &Machine) -> f64 {
    let bound = bound(phase, machine);
    let ratio = |&(ipu, cycles): &(u32, u32)| match bound.get(ipu as usize) {
        Some(&bound) if bound > 0 => cycles as f64 / bound as f64,
        _ => 1.0,
    };
    schedule.cycles.iter().map(ratio).fold(1.0, f64::max)
}
