//! Transfers of one sender to the same receivers, coalesced to one job.
//!
//! # Note: Many small transfers
//! Windows of images, and other boxes whose rows land apart, are many transfers of a few words. Those of one sender to
//! the same receivers wait for the same ports, so little is lost if they follow one another without a gap. A job of
//! them is short compared with the load of the fullest port, so that other jobs find room.
//!
//! Invariant: a coalesced job takes the cycles of its transfers one after the other, at either rate.

use super::FoundSchedule;
use super::ports::{Jobs, Ports, cycles};
use girder_ir::schedule::{PhaseSchedule, Served, TransferSlice};
use girder_machine::Machine;
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A coalesced job takes at most one part in this many of the load of the fullest port.
const SHORT: u64 = 16;

/// The coalesced jobs of a phase, and the transfers of each.
pub(super) struct Coalesced {
    /// The jobs, each of which counts as a transfer.
    pub jobs: Arc<Jobs>,
    /// The transfers of all jobs, with their words, job after job.
    members: Vec<(u32, u32)>,
    /// The end of each job's members.
    end: Vec<u32>,
}

impl Coalesced {
    /// Coalesces whole transfers. Returns `None` if they have less than `many` receivers, if few are multicasts, or if
    /// there would not be much fewer jobs. Colouring fits many transfers to one receiver each better than few.
    pub fn of(jobs: &Jobs, machine: &Machine, many: usize) -> Option<Coalesced> {
        if jobs.to.len() < many || jobs.have_few_multicasts() {
            return None;
        }
        let most = Ports::new(jobs, machine).bound() / SHORT;
        let taken = |words: u32| cycles(words, false, machine);
        // At the rate of pairs, too, the next transfer begins in a cycle of its own.
        let is_even = |words: u32| 2 * cycles(words, true, machine) == cycles(2 * words, true, machine);
        let is_whole = |words: u32| 2 * taken(words) == taken(2 * words) && is_even(words);
        let key = |k: usize| {
            let mut hasher = FxHasher::default();
            jobs.receivers(k).hash(&mut hasher);
            (jobs.from[k], hasher.finish(), k)
        };
        let mut keys: Vec<(u32, u64, usize)> = (0..jobs.list.len()).map(key).collect();
        keys.sort_unstable();
        // The members of each coalesced job, the first one first.
        let mut all: Vec<Vec<u32>> = vec![];
        let mut cycles_of_last = 0;
        for &(_, _, k) in &keys {
            let words = jobs.list[k].words;
            let joins = |last: &&mut Vec<u32>| {
                let first = last[0] as usize;
                let alike = jobs.from[first] == jobs.from[k] && jobs.receivers(first) == jobs.receivers(k);
                alike && is_whole(words) && is_whole(jobs.list[first].words) && cycles_of_last + taken(words) <= most
            };
            match all.last_mut().filter(joins) {
                Some(last) => {
                    last.push(k as u32);
                    cycles_of_last += taken(words);
                }
                None => {
                    all.push(vec![k as u32]);
                    cycles_of_last = taken(words);
                }
            }
        }
        if 2 * all.len() > jobs.list.len() {
            return None;
        }
        all.sort_unstable();
        let receivers = all.iter().map(|own| jobs.receivers(own[0] as usize).len()).sum();
        let mut coalesced = Jobs::with_capacity(all.len(), receivers);
        let (mut members, mut end) = (Vec::with_capacity(jobs.list.len()), Vec::with_capacity(all.len()));
        for (n, own) in all.iter().enumerate() {
            let words = own.iter().map(|&k| jobs.list[k as usize].words).sum();
            let first = own[0] as usize;
            coalesced.add(n as u32, 0..words, jobs.from[first], jobs.receivers(first).iter().copied());
            members.extend(own.iter().map(|&k| (jobs.list[k as usize].transfer, jobs.list[k as usize].words)));
            end.push(members.len() as u32);
        }
        Some(Coalesced { jobs: Arc::new(coalesced), members, end })
    }

    /// Adds the slices of transfers of a schedule of coalesced jobs. Returns `false`, and adds nothing, if they would
    /// take longer than those of the jobs, because a job was cut in the middle of a cycle.
    pub fn write(&self, found: &FoundSchedule, machine: &Machine, result: &mut PhaseSchedule) -> bool {
        let mut of_jobs = PhaseSchedule::default();
        super::write(&self.jobs, found, machine, &mut of_jobs);
        let (slices, served) = (result.slices.len(), result.served.len());
        result.served.extend(&of_jobs.served);
        for slice in of_jobs.slices {
            let to = match slice.to {
                Served::Some { first, count } => Served::Some { first: first + served as u32, count },
                Served::All => Served::All,
            };
            let n = slice.transfer as usize;
            let members = n.checked_sub(1).map_or(0, |n| self.end[n]) as usize..self.end[n] as usize;
            let (mut at, mut start) = (0, slice.start);
            for &(transfer, words) in &self.members[members] {
                let (lo, hi) = (slice.first.max(at), (slice.first + slice.words).min(at + words));
                if lo < hi {
                    result.slices.push(TransferSlice { transfer, first: lo - at, words: hi - lo, start, to, ..slice });
                    start += cycles(hi - lo, slice.paired, machine) as u32;
                }
                at += words;
            }
            if u64::from(start - slice.start) > cycles(slice.words, slice.paired, machine) {
                result.slices.truncate(slices);
                result.served.truncate(served);
                return false;
            }
        }
        true
    }
}
