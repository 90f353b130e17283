//! Multicasts that receivers join when they can. Whenever a sender begins to send, the receivers that are free and
//! still need the words receive them. The sender sends again for the others.
//!
//! # Note: Who decides
//! A whole multicast waits for all its receivers, and a part that is formed beforehand waits for all of its own,
//! although most receivers have time to spare. So receivers decide, those with the most remaining words first. A
//! receiver joins a transfer that a sender begins at the same cycle, if it needs it, and otherwise makes a free sender
//! begin. A sender with little to send may repeat its words as often as there are cycles, and receivers that are not
//! full fit in between.
//!
//! Invariant: every receiver gets each transfer once and one at a time, and a sender sends one at a time. Work is
//! bounded by [`LOOKS`].

use super::effort::{MANY, lags};
use super::ports::{Jobs, Ports};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The number of transfers that may be examined before the method gives up: a constant, and a number for each receiver
/// of a transfer.
const LOOKS: (usize, usize) = (1 << 22, 64);

/// Returns jobs for the receivers that come together, and their starts. Returns `None` if transfers move at the rate of
/// pairs, if the search takes too long, or if the schedule does not end before `limit`, or hardly can (`lags`).
pub(super) fn joining(jobs: &Jobs, ports: &Ports, limit: u64) -> Option<(Jobs, Vec<u64>)> {
    if jobs.list.iter().any(|job| job.paired) {
        return None;
    }
    let mut state = JoiningState::new(jobs, ports);
    state.cycle(0, limit)?;
    let all = state.left_to_receive;
    while let Some(now) = state.release() {
        if jobs.to.len() >= MANY && lags(now, limit, state.left_to_receive, all) {
            return None;
        }
        state.cycle(now, limit)?;
    }
    Some(state.finish())
}

/// The state of the simulation at one cycle; ports are numbered as in [`Ports`].
struct JoiningState<'a> {
    jobs: &'a Jobs,
    ports: &'a Ports,
    /// For each receiving port, the jobs that it still needs, and its position among their receivers.
    needs: Vec<Vec<(u32, u32)>>,
    /// For each port, the cycles left to receive; or to send, if nothing is sent twice.
    left: Vec<u64>,
    /// The cycles left to receive, in all.
    left_to_receive: u64,
    /// For each job, the number of receivers that still need it.
    waiting: Vec<u32>,
    /// For each sending port, the cycle from which it is free.
    free_at: Vec<u64>,
    /// For each sending port, the job that it began last.
    sends: Vec<u32>,
    /// The busy ports, by the cycle at which they become free.
    busy: BinaryHeap<Reverse<(u64, u32)>>,
    /// The receivers that are free and need something.
    free: Vec<u32>,
    /// The job, start and receiver (by position) of each receipt.
    receipts: Vec<(u32, u64, u32)>,
    looks: usize,
}

impl<'a> JoiningState<'a> {
    fn new(jobs: &'a Jobs, ports: &'a Ports) -> JoiningState<'a> {
        let n = ports.load.len();
        let mut state = JoiningState {
            jobs,
            ports,
            needs: vec![vec![]; n],
            left: ports.load.clone(),
            left_to_receive: ports.load.iter().zip(&ports.is_out).filter(|p| !p.1).map(|p| p.0).sum(),
            waiting: vec![],
            free_at: vec![0; n],
            sends: vec![u32::MAX; n],
            busy: BinaryHeap::new(),
            free: vec![],
            receipts: Vec::with_capacity(jobs.to.len()),
            looks: LOOKS.0 + LOOKS.1 * jobs.to.len(),
        };
        for job in 0..ports.len() {
            let into = &ports.holds(job)[1..];
            (0..).zip(into).for_each(|(k, &p)| state.needs[p as usize].push((job as u32, k)));
            state.waiting.push(into.len() as u32);
        }
        state.free.extend((0..n as u32).filter(|&p| !state.needs[p as usize].is_empty()));
        state
    }

    /// Returns the next cycle at which ports become free, after putting back the receivers among them.
    fn release(&mut self) -> Option<u64> {
        let now = self.busy.peek()?.0.0;
        while let Some(&Reverse((time, port))) = self.busy.peek()
            && time == now
        {
            self.busy.pop();
            if !self.needs[port as usize].is_empty() {
                self.free.push(port);
            }
        }
        Some(now)
    }

    /// Starts transfers at a cycle. Returns `None` if the search takes too long, or if a receiver cannot end before
    /// `limit`.
    fn cycle(&mut self, now: u64, limit: u64) -> Option<()> {
        let mut free = std::mem::take(&mut self.free);
        free.sort_unstable_by_key(|&p| (Reverse(self.left[p as usize]), p));
        if free.first().map_or(now, |&p| now + self.left[p as usize]) >= limit {
            return None;
        }
        for port in free {
            self.looks = self.looks.checked_sub(self.needs[port as usize].len())?;
            match self.choose(port, now) {
                Some(at) => self.receive(port, at, now),
                None => self.free.push(port),
            }
        }
        Some(())
    }

    /// Returns the position of the job that a receiver takes now, among those that it needs.
    fn choose(&self, port: u32, now: u64) -> Option<usize> {
        let mut best: Option<((bool, u64, u32), usize)> = None;
        for (at, &(job, _)) in self.needs[port as usize].iter().enumerate() {
            let out = self.ports.holds(job as usize)[0] as usize;
            let begins = self.sends[out] == job && self.free_at[out] == now + self.ports.cycles[job as usize];
            if begins || self.free_at[out] <= now {
                let key = (begins, self.left[out], self.waiting[job as usize]);
                if best.is_none_or(|b| key > b.0) {
                    best = Some((key, at));
                }
            }
        }
        best.map(|b| b.1)
    }

    fn receive(&mut self, port: u32, at: usize, now: u64) {
        let (job, receiver) = self.needs[port as usize].swap_remove(at);
        let (out, cycles) = (self.ports.holds(job as usize)[0], self.ports.cycles[job as usize]);
        let end = now + cycles;
        self.sends[out as usize] = job;
        self.free_at[out as usize] = end;
        self.left[port as usize] -= cycles;
        self.left_to_receive -= cycles;
        self.waiting[job as usize] -= 1;
        if self.waiting[job as usize] == 0 {
            self.left[out as usize] -= cycles;
        }
        self.busy.push(Reverse((end, port)));
        self.receipts.push((job, now, receiver));
    }

    fn finish(mut self) -> (Jobs, Vec<u64>) {
        self.receipts.sort_unstable();
        let (mut cut, mut starts) = (Jobs::default(), vec![]);
        for same in self.receipts.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            let (job, start, _) = same[0];
            let (own, receivers) = (&self.jobs.list[job as usize], self.jobs.receivers(job as usize));
            let to = same.iter().map(|r| receivers[r.2 as usize]);
            cut.add(own.transfer, own.first..own.first + own.words, self.jobs.from[job as usize], to);
            starts.push(start);
        }
        (cut, starts)
    }
}
