//! Packets that the host moves while tiles compute: those of streams with `ahead`.
//!
//! # Note: Packets ahead
//! Tiles have room for `ahead` packets of a stream, and the host moves one after another. Packet k of an `in` stream
//! has arrived at `max(arrived(k - 1), taken(k - ahead)) + host`, where `host` are the cycles that the host takes for
//! a packet, and the program takes it then or later. A program writes packet k of an `out` stream when packet
//! `k - ahead` has left, and it has left at `max(left(k - 1), written(k)) + host`. Both begin at time 0.
//!
//! Invariant: a queue depends on the times of the program's steps alone.

use girder_ir::ids::{StepId, StreamId};
use std::collections::VecDeque;

/// The packets of one stream. Times may lie before the start of a part of a run, and are negative there.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct PacketQueue {
    pub stream: StreamId,
    input: bool,
    /// The cycles that the host takes for a packet.
    each: i64,
    /// The time at which the host is free.
    host: i64,
    /// For each of the last packets, the time at which its memory on the tiles is free again; the oldest packet comes
    /// first.
    freed: VecDeque<i64>,
    /// The step of the last packet.
    pub last: Option<StepId>,
}

impl PacketQueue {
    /// Returns the queue of a stream at time 0. The host takes `each` cycles for a packet.
    pub fn new(stream: StreamId, input: bool, ahead: u32, each: u64) -> PacketQueue {
        let freed = VecDeque::from(vec![0; ahead as usize]);
        PacketQueue { stream, input, each: signed(each), host: 0, freed, last: None }
    }

    /// Moves a packet for which the program is ready at `start`, in `cost` cycles of its own. Returns the cycles for
    /// which the program waits.
    pub fn move_packet(&mut self, step: StepId, start: u64, cost: u64) -> u64 {
        let (start, cost) = (signed(start), signed(cost));
        self.last = Some(step);
        let free = self.freed.pop_front().unwrap_or(start);
        let begin = if self.input {
            self.host = self.host.max(free).saturating_add(self.each);
            start.max(self.host)
        } else {
            start.max(free)
        };
        let end = begin.saturating_add(cost);
        if !self.input {
            self.host = self.host.max(end).saturating_add(self.each);
        }
        self.freed.push_back(if self.input { end } else { self.host });
        (begin - start) as u64
    }

    /// Returns when the last packet that the program wrote has left.
    pub fn left(&self) -> u64 {
        if self.input || self.last.is_none() { 0 } else { self.host.max(0) as u64 }
    }

    /// Returns the queue with all times counted from `base`. Times that are too long ago to matter are equal.
    pub fn since(&self, base: u64) -> PacketQueue {
        let oldest = self.each.saturating_mul(-(self.freed.len() as i64 + 1));
        self.moved(|t| t.saturating_sub(signed(base)).max(oldest))
    }

    /// Returns the queue with all times later by `cycles`.
    pub fn later(&self, cycles: u64) -> PacketQueue {
        self.moved(|t| t.saturating_add(signed(cycles)))
    }

    fn moved(&self, to: impl Fn(i64) -> i64) -> PacketQueue {
        let freed = self.freed.iter().map(|&t| to(t)).collect();
        PacketQueue { host: to(self.host), freed, ..self.clone() }
    }
}

fn signed(cycles: u64) -> i64 {
    i64::try_from(cycles).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cranelift_entity::EntityRef;
    use proptest::prelude::*;

    /// The packets of one stream, by the formulas of the module: for each, the cycles for which the program waits, and
    /// when the last one has left.
    fn by_formula(input: bool, ahead: usize, host: u64, packets: &[(u64, u64)]) -> (Vec<u64>, u64) {
        let (mut waits, mut done, mut moved, mut now) = (vec![], vec![], vec![], 0);
        for (k, &(before, cost)) in packets.iter().enumerate() {
            let start = now + before;
            let of = |times: &[u64], at: Option<usize>| at.map_or(0, |at| times[at]);
            let previous = of(&moved, k.checked_sub(1));
            if input {
                let arrived = previous.max(of(&done, k.checked_sub(ahead))) + host;
                moved.push(arrived);
                waits.push(arrived.saturating_sub(start));
                now = start.max(arrived) + cost;
                done.push(now);
            } else {
                let room = of(&moved, k.checked_sub(ahead));
                waits.push(room.saturating_sub(start));
                now = start.max(room) + cost;
                moved.push(previous.max(now) + host);
            }
        }
        (waits, if input { 0 } else { of_last(&moved) })
    }

    fn of_last(times: &[u64]) -> u64 {
        times.last().copied().unwrap_or(0)
    }

    proptest! {
        #[test]
        fn packets_move_by_the_formulas(
            input: bool,
            ahead in 1..5usize,
            host in 1..60u64,
            packets in prop::collection::vec((0..90u64, 0..9u64), 0..30),
            rebased in 0..30usize,
        ) {
            let (expected, left) = by_formula(input, ahead, host, &packets);
            let mut queue = PacketQueue::new(StreamId::new(0), input, ahead as u32, host);
            let (mut now, mut waits, mut base) = (0, vec![], 0);
            for (k, &(before, cost)) in packets.iter().enumerate() {
                let start = now + before;
                if k == rebased {
                    // What a part of a run adds does not depend on when it begins.
                    queue = queue.since(start);
                    base = start;
                }
                let waited = queue.move_packet(StepId::new(0), start - base, cost);
                now = start + waited + cost;
                waits.push(waited);
            }
            prop_assert_eq!(waits, expected);
            prop_assert_eq!(queue.later(base).left(), left);
        }
    }

    #[test]
    fn a_slower_host_or_a_slower_program_decides() {
        for (work, input) in [(50u64, true), (50, false), (500, true), (500, false)] {
            let mut queue = PacketQueue::new(StreamId::new(0), input, 2, 200);
            let mut now = 0;
            for _ in 0..100 {
                now += work;
                now += queue.move_packet(StepId::new(0), now, 1) + 1;
            }
            let per_packet = now.max(queue.left()) / 100;
            assert!(per_packet.abs_diff((work + 1).max(200)) <= 5, "{work} {input}: {per_packet}");
        }
    }
}
