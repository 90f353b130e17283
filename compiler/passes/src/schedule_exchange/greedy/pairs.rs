//! The waiting transfers to one receiver, as a matrix of bits with a row for each port.
//!
//! # Note: Rows of bits
//! Most of the time few ports are free. The bits of a port's row, of the ports with which a transfer waits, and those
//! of the free ports of the other side have the possible partners in common. So a search takes a few words, however
//! many transfers wait.
//!
//! Invariant: a bit is set iff a transfer of its pair waits. The transfers of a pair start in order, the longest first.

use super::super::ports::Ports;
use std::cmp::Reverse;

/// The largest number of bits of a matrix.
const MOST_BITS: usize = 1 << 26;

/// The waiting transfers to one receiver, by port. Sides are receivers (0) and senders (1).
pub(super) struct Pairs {
    /// The number of each port among those of its side.
    number: Vec<u32>,
    /// The ports of each side, by number.
    ports: [Vec<u32>; 2],
    /// For the ports of each side, their rows of bits, one for each port of the other side.
    waiting: [Vec<u64>; 2],
    /// The free ports of each side.
    free: [Vec<u64>; 2],
    /// The rows of senders before any transfer has started, and the number of bits before each word.
    all: Vec<u64>,
    before: Vec<u32>,
    /// The rest of each pair's range in `order`, by the number of its bit.
    ranges: Vec<(u32, u32)>,
    order: Vec<u32>,
}

impl Pairs {
    /// Returns the index of the transfers to one receiver, or `None` if it would be too large.
    pub fn new(ports: &Ports) -> Option<Pairs> {
        let mut pairs = Pairs {
            number: vec![],
            ports: [vec![], vec![]],
            waiting: [vec![], vec![]],
            free: [vec![], vec![]],
            all: vec![],
            before: vec![],
            ranges: vec![],
            order: vec![],
        };
        for (port, &is_out) in (0..).zip(&ports.is_out) {
            let own = &mut pairs.ports[is_out as usize];
            pairs.number.push(own.len() as u32);
            own.push(port);
        }
        let [receivers, senders] = [0, 1].map(|side| pairs.ports[side].len());
        if senders.saturating_mul(receivers) > MOST_BITS {
            return None;
        }
        pairs.free = [0, 1].map(|side| vec![0; pairs.ports[side].len().div_ceil(64)]);
        pairs.waiting = [receivers * senders.div_ceil(64), senders * receivers.div_ceil(64)].map(|n| vec![0; n]);
        let unicasts = || (0..ports.len()).filter(|&t| !ports.is_multicast(t));
        for t in unicasts() {
            pairs.set_waiting(ports.holds(t), true);
        }
        pairs.all = pairs.waiting[1].clone();
        let mut count = 0;
        for bits in &pairs.all {
            pairs.before.push(count);
            count += bits.count_ones();
        }
        pairs.fill(ports, unicasts, count as usize);
        Some(pairs)
    }

    /// Sorts the transfers by their pairs, those of one pair by length.
    fn fill<I: Iterator<Item = usize>>(&mut self, ports: &Ports, unicasts: impl Fn() -> I, pairs: usize) {
        self.ranges = vec![(0, 0); pairs];
        for t in unicasts() {
            let pair = self.pair(ports.holds(t));
            self.ranges[pair].1 += 1;
        }
        let mut at = 0;
        for range in &mut self.ranges {
            at += range.1;
            *range = (at - range.1, at - range.1);
        }
        self.order = vec![0; at as usize];
        for t in unicasts() {
            let pair = self.pair(ports.holds(t));
            let end = &mut self.ranges[pair].1;
            self.order[*end as usize] = t as u32;
            *end += 1;
        }
        for range in self.ranges.iter().filter(|r| r.1 - r.0 > 1) {
            self.order[range.0 as usize..range.1 as usize]
                .sort_unstable_by_key(|&t| (Reverse(ports.cycles[t as usize]), t));
        }
    }

    /// Sets the two bits of a pair of a sender and a receiver.
    fn set_waiting(&mut self, pair: &[u32], waits: bool) {
        let [out, into] = [pair[0], pair[1]].map(|p| self.number[p as usize] as usize);
        for (side, row, column) in [(1, out, into), (0, into, out)] {
            let word = &mut self.waiting[side][row * self.free[1 - side].len() + column / 64];
            set(word, column, waits);
        }
    }

    /// Returns the number of a pair of a sender and a receiver.
    fn pair(&self, pair: &[u32]) -> usize {
        let [out, into] = [pair[0], pair[1]].map(|p| self.number[p as usize] as usize);
        let word = out * self.free[0].len() + into / 64;
        let lower = self.all[word] & ((1 << (into % 64)) - 1);
        (self.before[word] + lower.count_ones()) as usize
    }

    /// Returns the first waiting transfer of a pair of a sender and a receiver; there is one.
    pub fn first(&self, out: u32, into: u32) -> u32 {
        self.order[self.ranges[self.pair(&[out, into])].0 as usize]
    }

    /// Removes the first waiting transfer of a pair.
    pub fn start(&mut self, pair: &[u32]) {
        let number = self.pair(pair);
        let range = &mut self.ranges[number];
        range.0 += 1;
        if range.0 == range.1 {
            self.set_waiting(pair, false);
        }
    }

    /// Makes a port of a side free, or busy.
    pub fn set_free(&mut self, side: usize, port: u32, is_free: bool) {
        let number = self.number[port as usize] as usize;
        set(&mut self.free[side][number / 64], number, is_free);
    }

    /// Calls `f` with each free port with which a transfer of a port of a side waits.
    pub fn each_partner(&self, side: usize, port: u32, mut f: impl FnMut(u32)) {
        let (free, ports) = (&self.free[1 - side], &self.ports[1 - side]);
        let row = self.number[port as usize] as usize * free.len();
        for (k, (waiting, free)) in self.waiting[side][row..row + free.len()].iter().zip(free).enumerate() {
            let mut both = waiting & free;
            while both != 0 {
                f(ports[64 * k + both.trailing_zeros() as usize]);
                both &= both - 1;
            }
        }
    }
}

/// Sets the bit of a number in the word that holds it.
fn set(word: &mut u64, number: usize, value: bool) {
    let bit = 1 << (number % 64);
    if value { *word |= bit } else { *word &= !bit }
}
