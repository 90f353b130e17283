//! Decides which jobs move at the rate of a pair of tiles.
//!
//! # Note: Where the pair rule holds
//! The receivers must be whole pairs, except for the sender's partner, which may take the stream without the sender.
//! The sender's partner must lend its wires, so its own sends wait. A job is paired only if the partner's sends
//! together with it stay within the bound of the whole.
//!
//! Invariant: the load of no port exceeds the bound of the original jobs.

use super::ports::{Jobs, Ports, cycles};
use girder_machine::Machine;

/// Returns the jobs with the pair rate where it is allowed, or `None` if there are none.
pub(super) fn widen(jobs: &Jobs, machine: &Machine) -> Option<Jobs> {
    if machine.exchange.pair_bytes_per_cycle <= machine.exchange.bytes_per_cycle {
        return None;
    }
    let base = jobs.base(machine);
    let fits = |k: usize| {
        let from = jobs.from[k] - base;
        (from ^ 1) < machine.chip.tiles && are_pairs(jobs.receivers(k), base, from)
    };
    let candidates: Vec<usize> = (0..jobs.list.len()).filter(|&k| fits(k)).collect();
    if candidates.is_empty() {
        return None;
    }
    let bound = Ports::new(jobs, machine).bound();
    let mut sends = vec![0; machine.chip.tiles as usize];
    for (job, &from) in jobs.list.iter().zip(&jobs.from) {
        sends[(from - base) as usize] += cycles(job.words, false, machine);
    }
    let mut result = jobs.clone();
    let mut any = false;
    for k in candidates {
        let (from, words) = ((jobs.from[k] - base) as usize, jobs.list[k].words);
        let (narrow, paired) = (cycles(words, false, machine), cycles(words, true, machine));
        if sends[from ^ 1] + paired <= bound {
            sends[from ^ 1] += paired;
            sends[from] -= narrow - paired;
            result.list[k].paired = true;
            any = true;
        }
    }
    any.then_some(result)
}

/// Returns whether receivers, by ascending tile, are one or more whole pairs, possibly with the sender's partner.
fn are_pairs(receivers: &[(u32, u32)], base: u32, from: u32) -> bool {
    let (mut rest, mut any) = (receivers, false);
    while let Some(&(_, first)) = rest.first() {
        let first = first - base;
        if first == from ^ 1 {
            rest = &rest[1..];
        } else if first.is_multiple_of(2) && rest.get(1).is_some_and(|r| r.1 - base == first + 1) {
            (rest, any) = (&rest[2..], true);
        } else {
            return false;
        }
    }
    any
}
