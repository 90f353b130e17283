//! The traffic of one phase, summed by tile instead of planned: the parts of modelled time that depend on placement.
//!
//! # Note: Samples
//! Elements are sent for some sampled receivers, which stand for all. The words that a sampled tile receives are exact,
//! and other tiles are assumed to receive as many. A sender sends at least the words that were seen, and on average the
//! words of all receivers divided by the tiles that hold the elements. Tiles are sampled in pairs: runs that both tiles
//! of a pair receive come at the rate of a pair.
//!
//! # Note: Small pieces
//! `plan-transfers` makes many small pieces contiguous before they are sent, or sends them together and separates them
//! where they land. So from [`MANY_PIECES`] pieces of fewer than `few_bytes` bytes between two tiles on, a field of
//! strided pieces costs its sender an on-tile copy, and pieces that come one by one cost their receiver one.

use crate::small_pieces::MANY_PIECES;
use crate::superstep::{self, Rate};
use girder_ir::ids::VarId;
use girder_machine::Machine;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// The bytes that leave, enter and are copied on one tile, and its exchange instructions.
#[derive(Clone, Copy, Default)]
struct Load {
    sent: f64,
    received: f64,
    /// Received together with the other tile of the pair.
    paired: f64,
    before: f64,
    after: f64,
    instructions: f64,
}

/// Small pieces from one tile to another.
#[derive(Clone, Copy, Default)]
struct Small {
    count: f64,
    bytes: f64,
    /// The end of the last piece.
    end: Option<(VarId, u64)>,
    strided: bool,
}

/// Elements that are sent from one tile to another.
#[derive(Clone, Copy)]
pub(super) struct Sent {
    pub var: VarId,
    pub start: u64,
    pub len: u64,
    pub bytes: f64,
    /// The number of runs that this one stands for.
    pub each: f64,
    pub from: u32,
    pub to: u32,
}

/// The traffic of one phase.
#[derive(Default)]
pub(super) struct Traffic {
    loads: FxHashMap<u32, Load>,
    small: FxHashMap<(u32, u32), Small>,
    /// The runs that have been sent. A further receiver costs the sender nothing.
    sent: FxHashSet<(VarId, u64, u64)>,
    /// The runs that only one tile of a pair has received so far, by pair, with that tile.
    halves: FxHashMap<(u32, VarId, u64, u64), u32>,
    /// The bytes between processors. An element crosses to a processor once, however many tiles there receive it.
    flows: BTreeMap<(u32, u32), f64>,
    crossed: FxHashSet<(VarId, u64, u64, u32)>,
    /// The number of consecutive small pieces from one tile in the current field.
    streak: (u32, u64),
    /// The average bytes that the tiles at the other ends send, receive and copy.
    average: Load,
    any: bool,
    /// The size in bytes from which on a piece is sent by itself.
    few_bytes: u32,
}

impl Traffic {
    /// Creates traffic in which pieces of at least `few_bytes` bytes are sent by themselves.
    pub(super) fn new(few_bytes: u32) -> Traffic {
        Traffic { few_bytes, ..Traffic::default() }
    }

    /// Creates the same with capacity for about `pieces` pieces; growing takes longer than adding.
    pub(super) fn with_room(few_bytes: u32, pieces: usize) -> Traffic {
        let mut traffic = Traffic::new(few_bytes);
        traffic.loads.reserve(pieces);
        traffic.small.reserve(pieces);
        traffic.sent.reserve(pieces);
        traffic
    }

    /// Begins the next field or vertex.
    pub(super) fn next_field(&mut self) {
        self.streak = (u32::MAX, 0);
    }

    /// Adds bytes that a tile copies after the exchange.
    pub(super) fn copy(&mut self, tile: u32, bytes: f64) {
        self.loads.entry(tile).or_default().after += bytes;
    }

    /// Adds elements that are sent. With `gathers` the source is a variable, so strided pieces are made contiguous
    /// before they go. Returns whether the elements have not been sent before, and whether they are strided.
    pub(super) fn send(&mut self, s: Sent, gathers: bool, machine: &Machine) -> (bool, bool) {
        self.any = true;
        self.receive(s, machine);
        let fresh = !gathers || self.sent.insert((s.var, s.start, s.len));
        if fresh {
            self.loads.entry(s.from).or_default().sent += s.bytes;
        }
        let (home, away) = (machine.ipu_of(s.from), machine.ipu_of(s.to));
        if home != away && (!gathers || self.crossed.insert((s.var, s.start, s.len, away))) {
            *self.flows.entry((home, away)).or_default() += s.bytes;
        }
        if s.bytes >= f64::from(self.few_bytes) {
            self.add_code(s.from, s.to, s.each, if fresh { s.bytes } else { 0.0 }, machine);
            return (fresh, false);
        }
        let small = self.small.entry((s.from, s.to)).or_default();
        if small.end != Some((s.var, s.start)) {
            small.count += 1.0;
            self.streak = if self.streak.0 == s.from { (s.from, self.streak.1 + 1) } else { (s.from, 1) };
        }
        let strided = gathers && self.streak.1 >= u64::from(MANY_PIECES);
        small.strided |= strided;
        small.bytes += s.bytes;
        small.end = Some((s.var, s.start + s.len));
        (fresh, strided)
    }

    /// Adds the instructions that send and receive some runs.
    fn add_code(&mut self, from: u32, to: u32, runs: f64, sent: f64, machine: &Machine) {
        let exchange = &machine.exchange;
        let words = sent / superstep::WORD_BYTES as f64;
        let sends = if sent > 0.0 { (words / f64::from(exchange.words_per_send.max(1))).max(runs) } else { 0.0 };
        self.loads.entry(from).or_default().instructions += sends;
        self.loads.entry(to).or_default().instructions += runs * f64::from(exchange.receive_instructions);
    }

    /// Returns the bytes of exchange code on the tile that has most.
    pub(super) fn code_bytes(&mut self, machine: &Machine) -> u64 {
        let small: Vec<_> = self.small.iter().map(|(&ends, &small)| (ends, small)).collect();
        for ((from, to), small) in small {
            // Many small pieces travel together.
            let runs = if small.count >= f64::from(MANY_PIECES) { 1.0 } else { small.count };
            self.add_code(from, to, runs, small.bytes, machine);
        }
        let most = self.loads.values().map(|l| l.instructions).fold(0.0, f64::max) + self.average.instructions;
        (most * f64::from(machine.exchange.instruction_bytes)) as u64
    }

    /// Adds elements to what a tile receives. If both tiles of a pair receive them, they come at the rate of a pair.
    fn receive(&mut self, s: Sent, machine: &Machine) {
        let exchange = &machine.exchange;
        let key = (s.to / 2, s.var, s.start, s.len);
        let has_pairs = exchange.pair_bytes_per_cycle > exchange.bytes_per_cycle;
        match self.halves.remove(&key).filter(|_| has_pairs) {
            Some(first) if first != s.to => {
                self.loads.entry(s.to).or_default().paired += s.bytes;
                let partner = self.loads.entry(first).or_default();
                partner.received -= s.bytes;
                partner.paired += s.bytes;
            }
            _ => {
                self.halves.insert(key, s.to);
                self.loads.entry(s.to).or_default().received += s.bytes;
            }
        }
    }

    /// Adds bytes that each tile at the other end sends, some of which it makes contiguous.
    pub(super) fn all_send(&mut self, sent: f64, strided: f64) {
        self.average.sent += sent;
        self.average.before += strided;
    }

    /// Adds bytes that every tile with data or vertices sends and receives, or copies if the sampled elements stay on
    /// their tile.
    pub(super) fn all_move(&mut self, s: Sent, sent: f64, received: f64, machine: &Machine) {
        if s.from == s.to {
            self.average.after += received;
        } else {
            self.any = true;
            self.average.sent += sent;
            self.average.received += received;
            let share = (sent + received) / s.bytes.max(1.0) / 2.0;
            self.average.instructions += share * f64::from(1 + machine.exchange.receive_instructions);
            let (home, away) = (machine.ipu_of(s.from), machine.ipu_of(s.to));
            if home != away {
                *self.flows.entry((home, away)).or_default() += s.bytes;
            }
        }
    }

    /// Adds bytes that each tile at the other end receives.
    pub(super) fn all_receive(&mut self, received: f64) {
        self.average.received += received;
    }

    /// Returns the cycles of the phase; with `syncs` it begins with a sync in any case. Words between processors are
    /// scaled by `ratio`.
    pub(super) fn cycles(mut self, machine: &Machine, syncs: bool, ratio: f64) -> u64 {
        for ((from, to), small) in std::mem::take(&mut self.small) {
            if small.count >= f64::from(MANY_PIECES) {
                let load = self.loads.entry(if small.strided { from } else { to }).or_default();
                *if small.strided { &mut load.before } else { &mut load.after } += small.bytes;
            }
        }
        let (mut port, mut before, mut after) =
            (self.average.sent.max(self.average.received), self.average.before, self.average.after);
        let exchange = &machine.exchange;
        // At the rate of a pair, bytes keep the port for a shorter time.
        let share = f64::from(exchange.bytes_per_cycle) / f64::from(exchange.pair_bytes_per_cycle.max(1));
        for load in self.loads.values() {
            port = port.max(load.sent).max(load.received + load.paired * share.min(1.0));
            before = before.max(load.before);
            after = after.max(load.after);
        }
        let arrange = &machine.arrange;
        let mut cycles = arrange.before.cycles(before as u64, 1) + arrange.after.cycles(after as u64, 1);
        if syncs || self.any {
            cycles += machine.sync_cycles(self.flows.keys().flat_map(|f| [f.0, f.1]));
        }
        if self.any {
            let words = superstep::port_cycles(machine, port.ceil() as u64, Rate::Tile);
            cycles += superstep::exchange_cycles(machine, words);
        }
        let flow = |(&(a, b), bytes): (&(u32, u32), &f64)| (a, b, (bytes * ratio).ceil() as u64);
        cycles + machine.link_phase_cycles(self.flows.iter().map(flow))
    }
}
