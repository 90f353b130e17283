//! The critical-first greedy: whenever ports become free, the one with the most remaining work chooses first, and
//! starts the transfer whose other ports have the most remaining work.
//!
//! # Note: Two searches
//! If ports have many transfers, a port finds those to one receiver among the free ports of the other side (`pairs`).
//! Otherwise, and for multicasts, it looks along the list of its transfers, the most critical first (`lists`).
//!
//! # Note: Patience
//! If few transfers can start, a port may search a long list many times without success. So all list entries that are
//! examined are counted, and after [`PATIENCE`] each port examines only a few. A transfer that it misses starts when
//! another of its ports searches. If no port is busy any more and transfers are left, all ports search again, and no
//! transfer to one receiver waits for multicasts any more: then the first transfer of every list can start.
//!
//! Invariant: every job starts. While patience lasts, a job waits only while one of its ports is busy (or, with
//! multicasts first, is needed by a multicast that has not started). So no schedule of transfers to one receiver each
//! is twice as long as the load of the fullest port. The time grows with the number of jobs and its logarithm.

mod lists;
mod pairs;

use super::effort::{MANY, lags};
use super::ports::Ports;
use lists::Lists;
use pairs::Pairs;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The number of startable transfers of its list that a port compares. The list begins with the most critical ones, so
/// more would cost much and gain little.
const CHOICES: usize = 8;
/// The number of entries of its list that a port looks at if one of them can start, or once patience has ended.
const LOOKS: usize = 64;
/// The number of looks while patience lasts: a constant, and a number for each port of each job.
const PATIENCE: (usize, usize) = (1 << 24, 16);

/// Returns the start cycles of all jobs, or `None` if the last one cannot end before `limit`, or hardly can (`lags`).
/// With `multicast_first`, no transfer to one receiver takes a port that a waiting multicast needs.
pub(super) fn greedy(ports: &Ports, multicast_first: bool, limit: u64) -> Option<Vec<u64>> {
    let held: usize = (0..ports.len()).map(|t| ports.holds(t).len()).sum();
    GreedyState::new(ports, multicast_first, PATIENCE.0 + PATIENCE.1 * held).run(limit)
}

/// The state of the simulation at one cycle.
struct GreedyState<'a> {
    ports: &'a Ports,
    multicast_first: bool,
    start: Vec<u64>,
    started: Vec<bool>,
    lists: Lists,
    /// The transfers to one receiver, if they are not in the lists.
    pairs: Option<Pairs>,
    /// The cycles of jobs that have not started, for each port.
    left: Vec<u64>,
    /// The sum of these cycles, and what it was at the beginning.
    left_in_all: u64,
    all: u64,
    /// The number of multicasts that have not started, for each port.
    multicasts: Vec<u32>,
    /// Whether each port can begin a transfer. A port without transfers left cannot.
    is_free: Vec<bool>,
    /// The transfers that are under way, by the cycle at which they end.
    under_way: BTreeMap<u64, Vec<u32>>,
    /// The number of looks until patience ends.
    patience: usize,
    /// Whether the pace is judged: that of much work, in which no transfers wait on purpose.
    is_paced: bool,
}

/// The criticality of a transfer: the cycles left at the fullest of its other ports, the number of its ports, how near
/// its receiver is, and its number.
type Key = (u64, usize, Reverse<u32>, Reverse<u32>);

/// The best transfer so far.
#[derive(Default)]
struct Best(Option<Key>);

/// Why a transfer cannot start now.
enum Waits {
    /// This port of it is busy.
    ForBusy(u32),
    /// Multicasts come first.
    ForMulticasts,
}

impl<'a> GreedyState<'a> {
    fn new(ports: &'a Ports, multicast_first: bool, patience: usize) -> GreedyState<'a> {
        let n = ports.load.len();
        let mut lengths = vec![0; n];
        (0..ports.len()).flat_map(|t| ports.holds(t)).for_each(|&p| lengths[p as usize] += 1);
        let held: usize = lengths.iter().sum();
        let is_long = lengths.into_iter().max().is_some_and(|most| most > 2 * CHOICES);
        let pairs = if is_long { Pairs::new(ports) } else { None };
        let is_listed = |t: usize| pairs.is_none() || ports.is_multicast(t);
        let mut state = GreedyState {
            ports,
            multicast_first,
            start: vec![0; ports.len()],
            started: vec![false; ports.len()],
            lists: Lists::new(ports, is_listed),
            pairs,
            left: ports.load.clone(),
            left_in_all: ports.load.iter().sum(),
            all: ports.load.iter().sum(),
            multicasts: vec![0; n],
            is_free: vec![false; n],
            under_way: BTreeMap::new(),
            patience,
            is_paced: held - ports.len() >= MANY && !multicast_first,
        };
        (0..n as u32).for_each(|p| state.set_free(p, true));
        for t in (0..ports.len()).filter(|&t| ports.is_multicast(t)) {
            ports.holds(t).iter().for_each(|&p| state.multicasts[p as usize] += 1);
        }
        state
    }

    fn run(mut self, limit: u64) -> Option<Vec<u64>> {
        let mut freed: Vec<u32> = (0..self.left.len() as u32).collect();
        let mut now = 0;
        loop {
            if self.is_paced && lags(now, limit, self.left_in_all, self.all) {
                return None;
            }
            freed.sort_unstable_by_key(|&p| (Reverse(self.left[p as usize]), p));
            if freed.first().is_some_and(|&p| now + self.left[p as usize] >= limit) {
                return None;
            }
            for &port in &freed {
                if self.is_free[port as usize]
                    && let Some(transfer) = self.choose(port)
                {
                    self.begin(transfer, now);
                }
            }
            freed.clear();
            match self.under_way.pop_first() {
                Some((time, ended)) => {
                    now = time;
                    self.end(&ended, &mut freed);
                }
                // See the note on patience.
                None => {
                    freed.extend((0..self.left.len() as u32).filter(|&p| self.left[p as usize] > 0));
                    if freed.is_empty() {
                        return Some(self.start);
                    }
                    self.multicast_first = false;
                }
            }
        }
    }

    /// Ends transfers, and adds their ports that still have work to `freed`.
    fn end(&mut self, ended: &[u32], freed: &mut Vec<u32>) {
        for &transfer in ended {
            for &port in self.ports.holds(transfer as usize) {
                if self.left[port as usize] > 0 {
                    self.set_free(port, true);
                    freed.push(port);
                }
            }
        }
    }

    /// Returns the transfer that a free port starts now, or `None` if there is none.
    fn choose(&mut self, port: u32) -> Option<u32> {
        let mut best = Best::default();
        self.among_free(port, &mut best);
        self.lists.drop_first(port, &self.started);
        if !self.lists.rest(port).is_empty() {
            self.along_list(port, &mut best);
        }
        best.0.map(|k| k.3.0)
    }

    fn along_list(&mut self, port: u32, best: &mut Best) {
        let (mut found, mut stale, mut looks) = (0, 0, 0);
        for entry in self.lists.rest(port) {
            if found == CHOICES || (looks >= LOOKS && (found > 0 || looks >= self.patience)) {
                break;
            }
            looks += 1;
            if !self.is_free[entry.other as usize] {
                continue;
            }
            if self.started[entry.transfer as usize] {
                stale += 1;
            } else if self.is_free[entry.was_busy.get() as usize] {
                match self.consider(entry.transfer, port, best) {
                    Ok(()) => found += 1,
                    Err(Waits::ForBusy(busy)) => entry.was_busy.set(busy),
                    Err(Waits::ForMulticasts) => {}
                }
            }
        }
        self.patience = self.patience.saturating_sub(looks);
        if stale > LOOKS / 2 {
            self.lists.drop_started(port, looks, &self.started);
        }
    }

    /// Considers the transfers to one receiver that a port could start, if they are in pairs.
    fn among_free(&self, port: u32, best: &mut Best) {
        let Some(pairs) = &self.pairs else { return };
        let waits = |p: u32| self.multicast_first && self.multicasts[p as usize] > 0;
        if waits(port) {
            return;
        }
        let side = self.ports.is_out[port as usize] as usize;
        let pair = |other: u32| if side == 1 { (port, other) } else { (other, port) };
        // The distances of a port's partners differ.
        let (mut most, mut found) = (0, None);
        pairs.each_partner(side, port, |other| {
            let left = self.left[other as usize];
            if left >= most && !waits(other) {
                let (out, into) = pair(other);
                most = left;
                found = found.max(Some((left, Reverse(self.ports.distance(out, into)), other)));
            }
        });
        if let Some((left, distance, other)) = found {
            let (out, into) = pair(other);
            best.0 = best.0.max(Some((left, 2, distance, Reverse(pairs.first(out, into)))));
        }
    }

    /// Makes a waiting transfer the best one if it is better. Returns the reason if it cannot start now.
    fn consider(&self, transfer: u32, port: u32, best: &mut Best) -> Result<(), Waits> {
        let holds = self.ports.holds(transfer as usize);
        let alone = self.multicast_first && holds.len() == 2;
        let mut most = 0;
        for &hold in holds {
            let p = hold as usize;
            if !self.is_free[p] {
                return Err(Waits::ForBusy(hold));
            }
            if alone && self.multicasts[p] > 0 {
                return Err(Waits::ForMulticasts);
            }
            if hold != port {
                most = most.max(self.left[p]);
            }
        }
        let key = (most, holds.len(), Reverse(self.ports.skew(transfer as usize)), Reverse(transfer));
        best.0 = best.0.max(Some(key));
        Ok(())
    }

    fn begin(&mut self, transfer: u32, now: u64) {
        let t = transfer as usize;
        (self.start[t], self.started[t]) = (now, true);
        let is_multicast = self.ports.is_multicast(t);
        for &port in self.ports.holds(t) {
            self.set_free(port, false);
            self.left[port as usize] -= self.ports.cycles[t];
            self.left_in_all -= self.ports.cycles[t];
            self.multicasts[port as usize] -= is_multicast as u32;
        }
        if let Some(pairs) = self.pairs.as_mut().filter(|_| !is_multicast) {
            pairs.start(self.ports.holds(t));
        }
        self.under_way.entry(now + self.ports.cycles[t]).or_default().push(transfer);
    }

    fn set_free(&mut self, port: u32, is_free: bool) {
        self.is_free[port as usize] = is_free;
        if let Some(pairs) = &mut self.pairs {
            pairs.set_free(self.ports.is_out[port as usize] as usize, port, is_free);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ports::Jobs;
    use super::*;

    /// Returns jobs among a few tiles, so that each tile has a long list. Every third job is a multicast if asked.
    fn jobs(multicasts: bool) -> Ports {
        let mut jobs = Jobs::default();
        for k in 0..900u32 {
            let (from, to) = (k * 5 % 6, k / 6 % 6);
            let others = (1..6).map(|d| (from + d) % 6).filter(|&t| t == to || (multicasts && k % 3 == 0 && t != 2));
            let mut others: Vec<u32> = others.collect();
            others.sort_unstable();
            jobs.add(k, 0..1 + k % 7, from, (0..).zip(others));
        }
        Ports::new(&jobs, &girder_machine::builtin("small").unwrap().resized(1, 6))
    }

    #[test]
    fn every_job_starts_even_without_patience() {
        for (multicasts, multicast_first, patience) in
            [false, true].into_iter().flat_map(|m| [(m, false, 0), (m, true, 0), (m, true, 100), (m, false, 3000)])
        {
            let ports = jobs(multicasts);
            let start = GreedyState::new(&ports, multicast_first, patience).run(u64::MAX).unwrap();
            let mut busy: Vec<(u32, u64, u64)> = vec![];
            for (t, &start) in start.iter().enumerate() {
                busy.extend(ports.holds(t).iter().map(|&p| (p, start, start + ports.cycles[t])));
            }
            busy.sort_unstable();
            assert!(busy.windows(2).all(|w| w[0].0 != w[1].0 || w[0].2 <= w[1].1), "{multicasts} {multicast_first}");
        }
    }

    #[test]
    fn a_schedule_that_reaches_the_limit_is_given_up() {
        let ports = jobs(true);
        let end = ports.end(&greedy(&ports, false, u64::MAX).unwrap());
        assert_eq!(greedy(&ports, false, end + 1).map(|start| ports.end(&start)), Some(end));
        assert_eq!(greedy(&ports, false, ports.bound()), None);
    }
}
