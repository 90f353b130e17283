//! The critical-first greedy: whenever ports become free, the one with the most remaining work chooses first, and
//! starts the transfer whose other ports have the most remaining work.
//!
//! # Note: Two searches
//! A port finds a transfer to start either along the list of its own transfers, the most critical first, or among the
//! free ports on the other side. Most of the time nearly all ports are busy, so the second search is short. At the
//! start, and if a list is short, the first one is. The cheaper one is used.
//!
//! # Note: Patience
//! If few transfers can start, a port may search a long list in vain again and again. So all list entries that are
//! examined are counted, and after [`PATIENCE`] each port examines only a few. A transfer that it misses starts when
//! another of its ports searches.
//!
//! Invariant: while patience lasts, a job waits only while one of its ports is busy (or, with multicasts first, is
//! needed by a multicast that has not started). So no schedule of transfers to one receiver each is twice as long as
//! the load of the fullest port. The time grows with the number of jobs and its logarithm.

mod lists;
mod pairs;

use super::ports::Ports;
use lists::Lists;
use pairs::Pairs;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The number of startable transfers of its list that a port compares. The list begins with the most critical ones, so
/// more would cost much and gain little.
const CHOICES: usize = 8;
/// The number of entries of its list that a port looks at if one of them can start, or once patience has ended.
const LOOKS: usize = 64;
/// The number of looks while patience lasts: a constant, and a number for each port of each job.
const PATIENCE: (usize, usize) = (1 << 24, 16);

/// Returns the start cycles of all jobs. With `multicast_first`, no transfer to one receiver takes a port that a
/// waiting multicast needs.
pub(super) fn greedy(ports: &Ports, multicast_first: bool) -> Vec<u64> {
    let mut state = GreedyState::new(ports, multicast_first);
    let mut freed: Vec<u32> = (0..ports.load.len() as u32).collect();
    let mut now = 0;
    loop {
        freed.sort_unstable_by_key(|&p| (Reverse(state.left[p as usize]), p));
        for &port in &freed {
            if state.place[port as usize] != BUSY
                && let Some(transfer) = state.choose(port)
            {
                state.begin(transfer, now);
            }
        }
        freed.clear();
        let Some(&Reverse((time, _))) = state.busy.peek() else { return state.start };
        now = time;
        while let Some(&Reverse((time, port))) = state.busy.peek()
            && time == now
        {
            state.busy.pop();
            if state.left[port as usize] > 0 {
                state.release(port);
                freed.push(port);
            }
        }
    }
}

/// The position of a port that is not free, in [`GreedyState::place`].
const BUSY: u32 = u32::MAX;

/// The state of the simulation at one cycle.
struct GreedyState<'a> {
    ports: &'a Ports,
    multicast_first: bool,
    start: Vec<u64>,
    started: Vec<bool>,
    lists: Lists,
    pairs: Pairs,
    /// The cycles of jobs that have not started, for each port.
    left: Vec<u64>,
    /// The number of multicasts that have not started, for each port.
    multicasts: Vec<u32>,
    /// The free input and output ports, and the position of each port among them.
    free: [Vec<u32>; 2],
    /// The number of input and output ports.
    count: [usize; 2],
    place: Vec<u32>,
    /// The busy ports, by the cycle at which they become free.
    busy: BinaryHeap<Reverse<(u64, u32)>>,
    /// The number of looks until patience ends.
    patience: usize,
}

/// The criticality of a transfer: the cycles left at the fullest of its other ports, the number of its ports, how near
/// its receiver is, and its number.
type Key = (u64, usize, Reverse<u32>, Reverse<u32>);

/// The best transfer so far.
#[derive(Default)]
struct Best(Option<Key>);

impl<'a> GreedyState<'a> {
    fn new(ports: &'a Ports, multicast_first: bool) -> GreedyState<'a> {
        let n = ports.load.len();
        let mut state = GreedyState {
            ports,
            multicast_first,
            start: vec![0; ports.len()],
            started: vec![false; ports.len()],
            lists: Lists::new(ports),
            pairs: Pairs::default(),
            left: ports.load.clone(),
            multicasts: vec![0; n],
            free: Default::default(),
            count: [false, true].map(|out| ports.is_out.iter().filter(|&&o| o == out).count()),
            place: vec![BUSY; n],
            busy: BinaryHeap::new(),
            patience: PATIENCE.0 + PATIENCE.1 * (0..ports.len()).map(|t| ports.holds(t).len()).sum::<usize>(),
        };
        (0..n as u32).for_each(|p| state.release(p));
        for t in (0..ports.len()).filter(|&t| ports.is_multicast(t)) {
            ports.holds(t).iter().for_each(|&p| state.multicasts[p as usize] += 1);
        }
        // A multicast would be met once for every free receiver, so lists are better.
        if !ports.has_multicast() && state.lists.longest() > 2 * CHOICES {
            state.pairs = Pairs::new(ports);
        }
        state
    }

    /// Returns the transfer that a free port starts now, or `None` if there is none.
    fn choose(&mut self, port: u32) -> Option<u32> {
        let length = self.lists.drop_first(port, &self.started);
        let side = !self.ports.is_out[port as usize] as usize;
        let free = self.free[side].len();
        let along_list = length.min(CHOICES * self.count[side] / free.max(1));
        if !self.pairs.is_empty() && 2 * free < along_list && self.patience > 0 {
            // A lookup of a pair takes about as long as two entries of a list.
            self.patience = self.patience.saturating_sub(2 * free);
            self.among_free(port, side)
        } else {
            self.along_list(port)
        }
    }

    fn along_list(&mut self, port: u32) -> Option<u32> {
        let (mut best, mut found, mut stale, mut looks) = (Best::default(), 0, 0, 0);
        for entry in self.lists.rest(port) {
            if found == CHOICES || (looks >= LOOKS && (found > 0 || looks >= self.patience)) {
                break;
            }
            looks += 1;
            if self.place[entry.other as usize] == BUSY {
                continue;
            }
            match self.started[entry.transfer as usize] {
                true => stale += 1,
                false => found += self.consider(entry.transfer, port, &mut best) as usize,
            }
        }
        self.patience = self.patience.saturating_sub(looks);
        if stale > LOOKS / 2 {
            self.lists.drop_started(port, looks, &self.started);
        }
        best.0.map(|k| k.3.0)
    }

    fn among_free(&mut self, port: u32, side: usize) -> Option<u32> {
        let mut best = Best::default();
        for k in 0..self.free[side].len() {
            let other = self.free[side][k];
            let (out, into) = if side == 0 { (port, other) } else { (other, port) };
            let range = self.pairs.waiting(out, into, &self.started);
            for at in range {
                let t = self.pairs.transfer(at);
                // The first transfers of a pair are the longest; one that can start is enough.
                if !self.started[t as usize] && self.consider(t, port, &mut best) {
                    break;
                }
            }
        }
        best.0.map(|k| k.3.0)
    }

    /// Makes a waiting transfer the best one if it is better. Returns `false` if it cannot start now.
    fn consider(&self, transfer: u32, port: u32, best: &mut Best) -> bool {
        let holds = self.ports.holds(transfer as usize);
        let alone = self.multicast_first && holds.len() == 2;
        let mut most = 0;
        for &hold in holds {
            let p = hold as usize;
            if self.place[p] == BUSY || (alone && self.multicasts[p] > 0) {
                return false;
            }
            if hold != port {
                most = most.max(self.left[p]);
            }
        }
        let key = (most, holds.len(), Reverse(self.ports.skew[transfer as usize]), Reverse(transfer));
        best.0 = best.0.max(Some(key));
        true
    }

    fn begin(&mut self, transfer: u32, now: u64) {
        let t = transfer as usize;
        (self.start[t], self.started[t]) = (now, true);
        for &port in self.ports.holds(t) {
            let p = port as usize;
            let free = &mut self.free[self.ports.is_out[p] as usize];
            free.swap_remove(self.place[p] as usize);
            if let Some(&moved) = free.get(self.place[p] as usize) {
                self.place[moved as usize] = self.place[p];
            }
            self.place[p] = BUSY;
            self.left[p] -= self.ports.cycles[t];
            self.multicasts[p] -= self.ports.is_multicast(t) as u32;
            self.busy.push(Reverse((now + self.ports.cycles[t], port)));
        }
    }

    fn release(&mut self, port: u32) {
        let free = &mut self.free[self.ports.is_out[port as usize] as usize];
        self.place[port as usize] = free.len() as u32;
        free.push(port);
    }
}
