//! The exchange of one processor in one phase as a scheduling problem: the ports that each job holds, and for how long.
//!
//! Invariant: the first port of a job is its sender's output port, followed by the input ports of its receivers and by
//! ports that are lent to it. A job holds all its ports for the same cycles.

use crate::superstep::{self, Rate, WORD_BYTES};
use girder_ir::plan::Phase;
use girder_machine::Machine;
use std::ops::Range;

/// A job: words of a transfer, for some of its receivers on the sender's processor.
#[derive(Clone, Debug)]
pub(super) struct Job {
    /// The transfer, by position in its phase.
    pub transfer: u32,
    /// The first word of the transfer.
    pub first: u32,
    /// The number of words, at least 1.
    pub words: u32,
    /// The receivers, in [`Jobs::to`].
    pub to: Range<u32>,
    /// Whether it moves at the rate of a pair of tiles.
    pub paired: bool,
}

/// Returns the cycles that words take.
pub(super) fn cycles(words: u32, paired: bool, machine: &Machine) -> u64 {
    superstep::port_cycles(machine, WORD_BYTES * words as u64, if paired { Rate::Pair } else { Rate::Tile })
}

/// Jobs that are scheduled together.
#[derive(Clone, Debug, Default)]
pub(super) struct Jobs {
    /// The jobs, in the order of the phase.
    pub list: Vec<Job>,
    /// The receivers: position in the transfer's list, and tile.
    pub to: Vec<(u32, u32)>,
    /// The sender of each job.
    pub from: Vec<u32>,
}

impl Jobs {
    /// Returns the jobs of each processor for which `asked` holds: one per transfer with receivers on it.
    pub fn of(phase: &Phase, machine: &Machine, asked: impl Fn(usize) -> bool) -> Vec<Jobs> {
        let mut counts = vec![(0, 0); machine.ipus as usize];
        for transfer in &phase.transfers {
            let (jobs, receivers) = &mut counts[machine.ipu_of(transfer.from.tile) as usize];
            (*jobs, *receivers) = (*jobs + 1, *receivers + phase.receivers(transfer).len());
        }
        let room =
            |(ipu, (jobs, receivers))| if asked(ipu) { Jobs::with_capacity(jobs, receivers) } else { Jobs::default() };
        let mut jobs: Vec<Jobs> = counts.into_iter().enumerate().map(room).collect();
        for (t, transfer) in phase.transfers.iter().enumerate() {
            let ipu = machine.ipu_of(transfer.from.tile);
            if !asked(ipu as usize) {
                continue;
            }
            let here = phase.receivers(transfer).enumerate().filter(|(_, to)| machine.ipu_of(to.tile) == ipu);
            let receivers = here.map(|(k, to)| (k as u32, to.tile));
            jobs[ipu as usize].add(t as u32, 0..transfer.words, transfer.from.tile, receivers);
        }
        jobs
    }

    /// Creates an empty list with capacity for some jobs and receivers.
    pub fn with_capacity(jobs: usize, receivers: usize) -> Jobs {
        Jobs { list: Vec::with_capacity(jobs), to: Vec::with_capacity(receivers), from: Vec::with_capacity(jobs) }
    }

    /// Adds a job, unless it has no receivers.
    pub fn add(&mut self, transfer: u32, words: Range<u32>, from: u32, to: impl IntoIterator<Item = (u32, u32)>) {
        let start = self.to.len() as u32;
        self.to.extend(to);
        let to = start..self.to.len() as u32;
        if !to.is_empty() {
            self.list.push(Job { transfer, first: words.start, words: words.end - words.start, to, paired: false });
            self.from.push(from);
        }
    }

    /// Adds a part of a job of `of`: some of its words, for some of its receivers by position.
    pub fn add_part(&mut self, of: &Jobs, job: usize, words: Range<u32>, to: Range<usize>) {
        let whole = &of.list[job];
        self.add(whole.transfer, words, of.from[job], of.receivers(job)[to].iter().copied());
        if let Some(part) = self.list.last_mut() {
            part.paired = whole.paired;
        }
    }

    /// Returns whether few receipts belong to multicasts, so that letting receivers join multicasts would gain little.
    pub fn have_few_multicasts(&self) -> bool {
        let several = (0..self.list.len()).map(|k| self.receivers(k).len()).filter(|&n| n > 1);
        8 * several.sum::<usize>() < self.to.len()
    }

    /// Returns the first tile of the processor.
    pub fn base(&self, machine: &Machine) -> u32 {
        self.from.first().map_or(0, |&t| machine.ipu_of(t) * machine.chip.tiles)
    }

    /// Returns the receivers of a job.
    pub fn receivers(&self, job: usize) -> &[(u32, u32)] {
        let to = &self.list[job].to;
        &self.to[to.start as usize..to.end as usize]
    }
}

/// Jobs as an open-shop problem.
pub(super) struct Ports {
    /// The ports of all jobs, job after job.
    holds: Vec<u32>,
    /// The end of each job's ports.
    end: Vec<u32>,
    /// The cycles of each job.
    pub cycles: Vec<u64>,
    /// The rank of each port's tile among those that take part, and the number of ranks.
    rank: Vec<u32>,
    ranks: u32,
    /// The sum of the cycles of each port's jobs.
    pub load: Vec<u64>,
    /// Whether each port sends; the others receive.
    pub is_out: Vec<bool>,
}

const NONE: u32 = u32::MAX;

impl Ports {
    /// Returns the problem of some jobs of one processor.
    pub fn new(jobs: &Jobs, machine: &Machine) -> Ports {
        let n = jobs.list.len();
        let base = jobs.base(machine);
        let mut ports = Ports {
            holds: Vec::with_capacity(n + jobs.to.len()),
            end: Vec::with_capacity(n),
            cycles: Vec::with_capacity(n),
            rank: vec![],
            ranks: 0,
            load: vec![],
            is_out: vec![],
        };
        // The port numbers of each tile: output and input.
        let mut numbers = vec![[NONE; 2]; machine.chip.tiles as usize];
        for (k, job) in jobs.list.iter().enumerate() {
            let cycles = cycles(job.words, job.paired, machine);
            let from = (jobs.from[k] - base) as usize;
            ports.hold(&mut numbers[from][0], true, cycles);
            for &(_, tile) in jobs.receivers(k) {
                ports.hold(&mut numbers[(tile - base) as usize][1], false, cycles);
            }
            if job.paired {
                ports.hold(&mut numbers[from ^ 1][0], true, cycles);
                if jobs.receivers(k).iter().any(|r| (r.1 - base) as usize == from ^ 1) {
                    ports.hold(&mut numbers[from][1], false, cycles);
                }
            }
            ports.cycles.push(cycles);
            ports.end.push(ports.holds.len() as u32);
        }
        ports.rank = vec![0; ports.load.len()];
        for own in numbers.iter().filter(|own| **own != [NONE; 2]) {
            own.iter().filter(|&&port| port != NONE).for_each(|&port| ports.rank[port as usize] = ports.ranks);
            ports.ranks += 1;
        }
        ports
    }

    /// Returns the problem of transfers from one sender to one receiver each: senders, receivers (both with their own
    /// numbers) and cycles.
    pub fn between(edges: impl Iterator<Item = (u32, u32, u64)> + Clone, senders: u32, receivers: u32) -> Ports {
        let mut ranks = [vec![NONE; senders as usize], vec![NONE; receivers as usize]];
        for (sender, receiver, _) in edges.clone() {
            (ranks[0][sender as usize], ranks[1][receiver as usize]) = (0, 0);
        }
        // The ports of both sides by number; receivers come after senders.
        let mut counts = [0, 0];
        for (ranks, count) in ranks.iter_mut().zip(&mut counts) {
            for rank in ranks.iter_mut().filter(|r| **r != NONE) {
                (*rank, *count) = (*count, *count + 1);
            }
        }
        let [outs, ins] = counts;
        let mut is_out = vec![true; outs as usize];
        is_out.resize((outs + ins) as usize, false);
        let (mut load, mut holds, mut cycles) = (vec![0; is_out.len()], vec![], vec![]);
        for (sender, receiver, time) in edges {
            let (out, into) = (ranks[0][sender as usize], ranks[1][receiver as usize]);
            holds.extend([out, outs + into]);
            load[out as usize] += time;
            load[(outs + into) as usize] += time;
            cycles.push(time);
        }
        let end = (1..=cycles.len() as u32).map(|k| 2 * k).collect();
        Ports { holds, end, cycles, rank: (0..outs).chain(0..ins).collect(), ranks: outs.max(ins), load, is_out }
    }

    fn hold(&mut self, number: &mut u32, is_out: bool, cycles: u64) {
        if *number == NONE {
            *number = self.load.len() as u32;
            self.load.push(0);
            self.is_out.push(is_out);
        }
        self.load[*number as usize] += cycles;
        self.holds.push(*number);
    }

    /// Returns the number of jobs.
    pub fn len(&self) -> usize {
        self.end.len()
    }

    /// Returns the ports of a job.
    pub fn holds(&self, job: usize) -> &[u32] {
        let start = if job == 0 { 0 } else { self.end[job - 1] };
        &self.holds[start as usize..self.end[job] as usize]
    }

    /// Returns the distance of a receiver from a sender, cyclically over the tiles that take part.
    pub fn distance(&self, out: u32, into: u32) -> u32 {
        let [out, into] = [out, into].map(|port| self.rank[port as usize]);
        if into >= out { into - out } else { into + self.ranks - out }
    }

    /// Returns the distance of a job's first receiver from its sender. If every tile serves its receivers by ascending
    /// distance, an all-to-all falls into rounds without conflicts.
    pub fn skew(&self, job: usize) -> u32 {
        let holds = self.holds(job);
        self.distance(holds[0], holds[1])
    }

    /// Returns whether a job holds more than the ports of one sender and one receiver.
    pub fn is_multicast(&self, job: usize) -> bool {
        self.holds(job).len() > 2
    }

    /// Returns whether some job is a multicast.
    pub fn has_multicast(&self) -> bool {
        self.holds.len() > 2 * self.len()
    }

    /// Returns the load of the fullest port.
    pub fn bound(&self) -> u64 {
        self.load.iter().copied().max().unwrap_or(0)
    }

    /// Returns the end of the latest job.
    pub fn end(&self, start: &[u64]) -> u64 {
        start.iter().zip(&self.cycles).map(|(s, c)| s + c).max().unwrap_or(0)
    }

    /// Returns the starts of all jobs, each as early as its ports are free of those before it in an order.
    pub fn append(&self, order: impl IntoIterator<Item = u32>) -> Vec<u64> {
        self.append_each(self.len(), order, |job| job, |job| self.cycles[job])
    }

    /// Returns the starts of jobs in parts, each given by its job and its cycles.
    pub fn append_parts(&self, of: &[u32], cycles: &[u64], order: impl IntoIterator<Item = u32>) -> Vec<u64> {
        self.append_each(of.len(), order, |part| of[part] as usize, |part| cycles[part])
    }

    fn append_each(
        &self,
        count: usize,
        order: impl IntoIterator<Item = u32>,
        job: impl Fn(usize) -> usize,
        cycles: impl Fn(usize) -> u64,
    ) -> Vec<u64> {
        let (mut start, mut free_at) = (vec![0; count], vec![0; self.load.len()]);
        for k in order.into_iter().map(|k| k as usize) {
            let holds = self.holds(job(k));
            let begin = holds.iter().map(|&p| free_at[p as usize]).max().unwrap_or(0);
            start[k] = begin;
            let end = begin + cycles(k);
            holds.iter().for_each(|&p| free_at[p as usize] = end);
        }
        start
    }
}
