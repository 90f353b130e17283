//! The transfers of each port, in one array. A list for each port would grow many times, and each time touch memory
//! that is new.
//!
//! Invariant: the list of a port begins with its most critical transfer that has not been dropped.

use super::super::ports::Ports;
use std::cell::Cell;
use std::cmp::Reverse;

/// For each port, the transfers that hold it: by the load of the fullest port on the other side, then by distance.
pub(super) struct Lists {
    entries: Vec<Entry>,
    /// The end of each port's entries.
    end: Vec<u32>,
    /// The first entry of each port that has not been dropped.
    first: Vec<u32>,
}

/// A transfer in the list of one of its ports, with another of its ports. That port is usually busy, and then no other
/// property of the transfer has to be examined.
#[derive(Clone, Default)]
pub(super) struct Entry {
    pub transfer: u32,
    pub other: u32,
    /// The port that was busy when the transfer was examined last, or `other`. It is often busy still.
    pub was_busy: Cell<u32>,
}

/// The load of the other side, the distance, the transfer, another of its ports.
type Keyed = (Reverse<u64>, u32, u32, u32);

impl Lists {
    /// Returns the lists of some transfers.
    pub fn new(ports: &Ports, is_listed: impl Fn(usize) -> bool) -> Lists {
        let n = ports.load.len();
        let mut first = vec![0u32; n + 1];
        let listed = || (0..ports.len()).filter(|&t| is_listed(t));
        listed().flat_map(|t| ports.holds(t)).for_each(|&p| first[p as usize + 1] += 1);
        (1..=n).for_each(|p| first[p] += first[p - 1]);
        let mut keyed: Vec<Keyed> = vec![(Reverse(0), 0, 0, 0); first[n] as usize];
        first.pop();
        let mut end = first.clone();
        for t in listed() {
            let holds = ports.holds(t);
            let others = holds[1..].iter().map(|&p| ports.load[p as usize]).max().unwrap_or(0);
            let load = ports.load[holds[0] as usize];
            for (k, &hold) in holds.iter().enumerate() {
                let (load, other) = if k == 0 { (others, holds[1]) } else { (load, holds[0]) };
                let at = &mut end[hold as usize];
                keyed[*at as usize] = (Reverse(load), ports.skew(t), t as u32, other);
                *at += 1;
            }
        }
        let mut lists = Lists { entries: vec![], end, first };
        (0..n as u32).for_each(|p| keyed[lists.range(p)].sort_unstable());
        lists.entries =
            keyed.into_iter().map(|k| Entry { transfer: k.2, other: k.3, was_busy: Cell::new(k.3) }).collect();
        lists
    }

    fn range(&self, port: u32) -> std::ops::Range<usize> {
        self.first[port as usize] as usize..self.end[port as usize] as usize
    }

    /// Returns what is left of a port's list.
    pub fn rest(&self, port: u32) -> &[Entry] {
        &self.entries[self.range(port)]
    }

    /// Drops started transfers at the front of a port's list, up to the first that has not started.
    pub fn drop_first(&mut self, port: u32, started: &[bool]) {
        let dropped = self.rest(port).iter().take_while(|e| started[e.transfer as usize]).count();
        self.first[port as usize] += dropped as u32;
    }

    /// Drops all started transfers among the first `looks` of a port's list: the others move back.
    pub fn drop_started(&mut self, port: u32, looks: usize, started: &[bool]) {
        let first = self.range(port).start;
        let mut end = first + looks;
        for at in (first..end).rev() {
            if !started[self.entries[at].transfer as usize] {
                end -= 1;
                self.entries.swap(end, at);
            }
        }
        self.first[port as usize] = end as u32;
    }
}
