//! An index of transfers by sender and receiver.
//!
//! Invariant: the transfers of a pair are in one range, the longest first. Started transfers at its front are skipped
//! only once.

use super::super::ports::Ports;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::ops::Range;

/// An index of all transfers by the output port of the sender and the input port of each receiver.
#[derive(Default)]
pub(super) struct Pairs {
    /// The rest of each pair's range in `order`.
    ranges: FxHashMap<(u32, u32), (u32, u32)>,
    order: Vec<u32>,
}

impl Pairs {
    pub fn new(ports: &Ports) -> Pairs {
        let mut keys: Vec<((u32, u32), Reverse<u64>, u32)> = vec![];
        for t in 0..ports.len() {
            let holds = ports.holds(t);
            let ins = holds.iter().filter(|&&p| !ports.is_out[p as usize]);
            keys.extend(ins.map(|&p| ((holds[0], p), Reverse(ports.cycles[t]), t as u32)));
        }
        keys.sort_unstable();
        let mut pairs = Pairs { order: keys.iter().map(|k| k.2).collect(), ..Pairs::default() };
        let mut at = 0;
        for same in keys.chunk_by(|a, b| a.0 == b.0) {
            pairs.ranges.insert(same[0].0, (at, at + same.len() as u32));
            at += same.len() as u32;
        }
        pairs
    }

    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Returns the range of a pair's waiting transfers, the first of which has not started.
    pub fn waiting(&mut self, out: u32, into: u32, started: &[bool]) -> Range<u32> {
        let Some(range) = self.ranges.get_mut(&(out, into)) else { return 0..0 };
        while range.0 < range.1 && started[self.order[range.0 as usize] as usize] {
            range.0 += 1;
        }
        range.0..range.1
    }

    /// Returns the transfer at a position of a range.
    pub fn transfer(&self, at: u32) -> u32 {
        self.order[at as usize]
    }
}
