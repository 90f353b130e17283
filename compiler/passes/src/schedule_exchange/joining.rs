//! Multicasts whose receivers come as they can: whenever a sender begins to send, those of its receivers that are free and
//! still need the words take them; it sends again for the others.
//!
//! # Note: Who decides
//! A multicast as a whole waits for all its receivers, and parts that are made beforehand for all of theirs, though most
//! receivers have time to spare. So receivers choose, those with the most left to receive first: one joins what a sender
//! begins at the same cycle, if it needs that, else it makes a free sender begin. A sender that has little to send may repeat
//! its words as often as there are cycles, and receivers that are not full fit in between.
//!
//! Invariant: every receiver gets each transfer once and one at a time; a sender sends one at a time. Work is bounded by
//! [`LOOKS`].

use super::ports::{Jobs, Ports};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Looks at transfers, all together and for each receiver of a transfer, after which the method gives up.
const LOOKS: (usize, usize) = (1 << 22, 64);

/// Jobs for the receivers that come together, and their starts; `None` where transfers move at the rate of pairs, or if it
/// takes too long, or longer than `limit`.
pub(super) fn joining(jobs: &Jobs, ports: &Ports, limit: u64) -> Option<(Jobs, Vec<u64>)> {
    if jobs.list.iter().any(|job| job.paired) {
        return None;
    }
    let mut shop = Shop::new(jobs, ports);
    shop.cycle(0)?;
    while let Some(now) = shop.release() {
        if now >= limit {
            return None;
        }
        shop.cycle(now)?;
    }
    Some(shop.finish())
}

/// The state while cycles pass; ports are numbered as in [`Ports`].
struct Shop<'a> {
    jobs: &'a Jobs,
    ports: &'a Ports,
    /// Of each port that receives: jobs that it still needs, and its position among their receivers.
    needs: Vec<Vec<(u32, u32)>>,
    /// Of each port: cycles left to receive; or to send, if nothing is sent twice.
    left: Vec<u64>,
    /// Of each job: receivers that still need it.
    waiting: Vec<u32>,
    /// Of each port that sends: the cycle from which it is free.
    free_at: Vec<u64>,
    /// Of each port that sends: what it began last.
    sends: Vec<u32>,
    /// Busy ports by the cycle at which they become free.
    busy: BinaryHeap<Reverse<(u64, u32)>>,
    /// Receivers that are free and need something.
    free: Vec<u32>,
    /// Job, start and receiver by position, of each receipt.
    receipts: Vec<(u32, u64, u32)>,
    looks: usize,
}

impl<'a> Shop<'a> {
    fn new(jobs: &'a Jobs, ports: &'a Ports) -> Shop<'a> {
        let n = ports.load.len();
        let mut shop = Shop {
            jobs,
            ports,
            needs: vec![vec![]; n],
            left: ports.load.clone(),
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
            (0..).zip(into).for_each(|(k, &p)| shop.needs[p as usize].push((job as u32, k)));
            shop.waiting.push(into.len() as u32);
        }
        shop.free.extend((0..n as u32).filter(|&p| !shop.needs[p as usize].is_empty()));
        shop
    }

    /// The next cycle at which ports become free, with the receivers among them put back.
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

    /// What begins at a cycle; `None` if it takes too long to find.
    fn cycle(&mut self, now: u64) -> Option<()> {
        let mut free = std::mem::take(&mut self.free);
        free.sort_unstable_by_key(|&p| (Reverse(self.left[p as usize]), p));
        for port in free {
            self.looks = self.looks.checked_sub(self.needs[port as usize].len())?;
            match self.choose(port, now) {
                Some(at) => self.receive(port, at, now),
                None => self.free.push(port),
            }
        }
        Some(())
    }

    /// The position, among what a receiver needs, of what it takes now.
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
