//! The check of a schedule, whoever made it: every port's holds, sorted by time, must not overlap.
//!
//! Invariant: shares no code with the scheduler; durations are computed anew from the machine.

use girder_ir::plan::{Phase, StepPlan};
use girder_ir::schedule::{PhaseSchedule, Schedule, StepSchedule};
use girder_ir::stage::Planned;
use girder_machine::Machine;

/// Whether a schedule fits its plan and the machine.
///
/// # Errors
/// The first thing that is wrong: in which exchange, on which port, at which cycles.
pub fn verify(planned: &Planned, machine: &Machine, schedule: &Schedule) -> Result<(), String> {
    for (s, set) in &planned.sets {
        step(&planned.plan.sets[s], machine, &schedule.sets[s])
            .map_err(|e| format!("in the exchange of `{}`, {e}", set.name))?;
    }
    for (c, copy) in &planned.copies {
        step(&planned.plan.copies[c], machine, &schedule.copies[c])
            .map_err(|e| format!("in the exchange of `{}`, {e}", copy.name))?;
    }
    Ok(())
}

fn step(plan: &StepPlan, machine: &Machine, schedule: &StepSchedule) -> Result<(), String> {
    phase(&plan.before, machine, &schedule.before).map_err(|e| format!("before it, {e}"))?;
    phase(&plan.after, machine, &schedule.after).map_err(|e| format!("after it, {e}"))
}

/// Whether a schedule fits its phase and the machine.
///
/// # Errors
/// As [`verify`].
pub(super) fn phase(phase: &Phase, machine: &Machine, schedule: &PhaseSchedule) -> Result<(), String> {
    if phase.transfers.len() != schedule.start.len() {
        return Err(format!("{} transfers have {} start cycles", phase.transfers.len(), schedule.start.len()));
    }
    // (kind, tile or processor, receiving processor, start, end): the first three name the port.
    let mut holds: Vec<(&str, u32, u32, u64, u64)> = vec![];
    let mut last = 0;
    for (transfer, &start) in phase.transfers.iter().zip(&schedule.start) {
        let (start, bits) = (start as u64, 32 * transfer.words as u64);
        let per_cycle = 8 * machine.exchange.bytes_per_cycle as u64;
        let end = start + bits / per_cycle + (bits % per_cycle != 0) as u64;
        holds.push(("the sends of tile", transfer.from.tile, 0, start, end));
        last = last.max(end);
        let here = transfer.from.tile / machine.chip.tiles;
        let mut away: Vec<u32> = vec![];
        for to in &transfer.to {
            holds.push(("the receipts of tile", to.tile, 0, start, end));
            away.push(to.tile / machine.chip.tiles);
        }
        away.retain(|&there| there != here);
        away.sort_unstable();
        away.dedup();
        for there in away {
            let cycles = (4.0 * transfer.words as f64 / machine.route_bytes_per_cycle(here, there)).ceil() as u64;
            holds.push(("the link of processor", here, there, start, start + cycles));
            last = last.max(start + cycles);
        }
    }
    if last != schedule.cycles as u64 {
        return Err(format!("the latest transfer ends at cycle {last}, not {}", schedule.cycles));
    }
    holds.sort_unstable();
    for pair in holds.windows(2) {
        let (kind, name, there, start, end) = pair[0];
        let next = pair[1];
        if (kind, name, there) == (next.0, next.1, next.2) && next.3 < end {
            return Err(format!("{kind} {name} at cycles {start}..{end} and {}..{} overlap", next.3, next.4));
        }
    }
    Ok(())
}
