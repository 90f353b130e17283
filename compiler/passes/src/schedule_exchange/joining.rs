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
    /// For each receiving port, what it still needs.
    needs: Vec<Vec<Need>>,
    /// For each receiving port, a cycle before which no sender of what it needs is free.
    asleep_until: Vec<u64>,
    /// For each port, the cycles left to receive; or to send, if nothing is sent twice.
    left: Vec<u64>,
    /// The cycles left to receive, in all.
    left_to_receive: u64,
    /// For each job, the number of receivers that still need it.
    waiting: Vec<u32>,
    /// For each sending port, the cycle from which it is free.
    free_at: Vec<u64>,
    /// For each sending port, the job that it began last, and the cycle at which it did.
    sends: Vec<u32>,
    began_at: Vec<u64>,
    /// The busy ports, by the cycle at which they become free.
    busy: BinaryHeap<Reverse<(u64, u32)>>,
    /// The receivers that are free and need something.
    free: Vec<u32>,
    /// The job, start and receiver (by position) of each receipt.
    receipts: Vec<(u32, u64, u32)>,
    looks: usize,
}

/// A job that a receiver needs.
#[derive(Clone, Copy)]
struct Need {
    job: u32,
    /// The receiver's position among those of the job.
    receiver: u32,
    /// The port of the job's sender.
    out: u32,
}

impl<'a> JoiningState<'a> {
    fn new(jobs: &'a Jobs, ports: &'a Ports) -> JoiningState<'a> {
        let n = ports.load.len();
        let mut state = JoiningState {
            jobs,
            ports,
            needs: vec![vec![]; n],
            asleep_until: vec![0; n],
            left: ports.load.clone(),
            left_to_receive: ports.load.iter().zip(&ports.is_out).filter(|p| !p.1).map(|p| p.0).sum(),
            waiting: vec![],
            free_at: vec![0; n],
            sends: vec![u32::MAX; n],
            began_at: vec![u64::MAX; n],
            busy: BinaryHeap::new(),
            free: vec![],
            receipts: Vec::with_capacity(jobs.to.len()),
            looks: LOOKS.0 + LOOKS.1 * jobs.to.len(),
        };
        for job in 0..ports.len() {
            let (out, into) = (ports.holds(job)[0], &ports.holds(job)[1..]);
            let need = |receiver| Need { job: job as u32, receiver, out };
            (0..).zip(into).for_each(|(k, &p)| state.needs[p as usize].push(need(k)));
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
        let mut waiting = 0;
        for k in 0..free.len() {
            let port = free[k];
            self.looks = self.looks.checked_sub(self.needs[port as usize].len())?;
            let found = if self.asleep_until[port as usize] <= now { self.choose(port, now) } else { None };
            match found {
                Some(at) => self.receive(port, at, now),
                None => {
                    free[waiting] = port;
                    waiting += 1;
                }
            }
        }
        free.truncate(waiting);
        self.free = free;
        Some(())
    }

    /// Returns the position of the job that a receiver takes now, among those that it needs. If there is none, the
    /// receiver sleeps until one of the senders is free: only a free sender begins something.
    fn choose(&mut self, port: u32, now: u64) -> Option<usize> {
        let mut best: Option<((bool, u64, u32), usize)> = None;
        let mut next = u64::MAX;
        for (at, need) in self.needs[port as usize].iter().enumerate() {
            let out = need.out as usize;
            let begins = self.began_at[out] == now && self.sends[out] == need.job;
            if begins || self.free_at[out] <= now {
                let key = (begins, self.left[out], self.waiting[need.job as usize]);
                if best.is_none_or(|b| key > b.0) {
                    best = Some((key, at));
                }
            } else {
                next = next.min(self.free_at[out]);
            }
        }
        if best.is_none() {
            self.asleep_until[port as usize] = next;
        }
        best.map(|b| b.1)
    }

    fn receive(&mut self, port: u32, at: usize, now: u64) {
        let Need { job, receiver, out } = self.needs[port as usize].swap_remove(at);
        let cycles = self.ports.cycles[job as usize];
        let end = now + cycles;
        (self.sends[out as usize], self.began_at[out as usize]) = (job, now);
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
