//! What one phase moves, added up by tile instead of planned: the parts of modelled time that placement decides.
//!
//! # Note: Samples
//! Elements are sent for some receivers, which stand for all. What a tile that was looked at receives is exact; what the
//! others receive is like it. What a sender sends is at least what was seen, and on average what all receivers take
//! together, over the tiles that hold it.
//!
//! # Note: Small pieces
//! `plan-transfers` makes many small pieces contiguous before they are sent, or sends them together and takes them apart
//! where they land. So from [`MANY_PIECES`] pieces of fewer than [`FEW_BYTES`] bytes between two tiles on, a field of strided pieces
//! costs its sender a copy, and pieces that come one by one cost their receiver one.

use crate::plan_transfers::{FEW_BYTES, MANY_PIECES};
use crate::superstep::{self, Rate};
use girder_ir::ids::VarId;
use girder_machine::Machine;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// Bytes that leave, enter and are copied on one tile.
#[derive(Clone, Copy, Default)]
struct Load {
    sent: f64,
    received: f64,
    before: f64,
    after: f64,
}

/// Small pieces from one tile to another.
#[derive(Clone, Copy, Default)]
struct Small {
    count: f64,
    bytes: f64,
    /// Where the last one ends.
    end: Option<(VarId, u64)>,
    strided: bool,
}

/// Elements on their way.
#[derive(Clone, Copy)]
pub(super) struct Sent {
    pub var: VarId,
    pub start: u64,
    pub len: u64,
    pub bytes: f64,
    pub from: u32,
    pub to: u32,
}

/// One phase.
#[derive(Default)]
pub(super) struct Traffic {
    loads: FxHashMap<u32, Load>,
    small: FxHashMap<(u32, u32), Small>,
    /// What has been sent once: more receivers cost the sender nothing.
    sent: FxHashSet<(VarId, u64, u64)>,
    /// Bytes between processors. To one of them the same elements cross once.
    flows: BTreeMap<(u32, u32), f64>,
    crossed: FxHashSet<(VarId, u64, u64, u32)>,
    /// Small pieces in a row from one tile, in the field at hand.
    streak: (u32, u64),
    /// Bytes that the tiles at the other ends send, receive and copy on average.
    average: Load,
    any: bool,
}

impl Traffic {
    /// With room for about so many pieces: to grow takes longer than to add.
    pub(super) fn with_room(pieces: usize) -> Traffic {
        let mut traffic = Traffic::default();
        traffic.loads.reserve(pieces);
        traffic.small.reserve(pieces);
        traffic.sent.reserve(pieces);
        traffic
    }

    /// The next field, or vertex, begins.
    pub(super) fn next_field(&mut self) {
        self.streak = (u32::MAX, 0);
    }

    pub(super) fn copy(&mut self, tile: u32, bytes: f64) {
        self.loads.entry(tile).or_default().after += bytes;
    }

    /// `gathers`: the source is a variable, so that strided pieces are made contiguous before they go. Whether the
    /// elements have not been sent before, and whether they are strided.
    pub(super) fn send(&mut self, s: Sent, gathers: bool, machine: &Machine) -> (bool, bool) {
        self.any = true;
        self.loads.entry(s.to).or_default().received += s.bytes;
        let fresh = !gathers || self.sent.insert((s.var, s.start, s.len));
        if fresh {
            self.loads.entry(s.from).or_default().sent += s.bytes;
        }
        let (home, away) = (machine.ipu_of(s.from), machine.ipu_of(s.to));
        if home != away && (!gathers || self.crossed.insert((s.var, s.start, s.len, away))) {
            *self.flows.entry((home, away)).or_default() += s.bytes;
        }
        if s.bytes >= f64::from(FEW_BYTES) {
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

    /// The tiles at the other ends send so many bytes each, and make so many of them contiguous.
    pub(super) fn all_send(&mut self, sent: f64, strided: f64) {
        self.average.sent += sent;
        self.average.before += strided;
    }

    /// All tiles that hold something send and receive so many bytes, or copy them if what stands for all stays.
    pub(super) fn all_move(&mut self, s: Sent, sent: f64, received: f64, machine: &Machine) {
        if s.from == s.to {
            self.average.after += received;
        } else {
            self.any = true;
            self.average.sent += sent;
            self.average.received += received;
            let (home, away) = (machine.ipu_of(s.from), machine.ipu_of(s.to));
            if home != away {
                *self.flows.entry((home, away)).or_default() += s.bytes;
            }
        }
    }

    /// The tiles at the other ends receive so many bytes each.
    pub(super) fn all_receive(&mut self, received: f64) {
        self.average.received += received;
    }

    /// Cycles of the phase; `syncs` if it begins with a sync whatever moves. What was seen crossing between processors
    /// stands for `ratio` times as much.
    pub(super) fn cycles(mut self, machine: &Machine, syncs: bool, ratio: f64) -> u64 {
        for ((from, to), small) in std::mem::take(&mut self.small) {
            if small.count >= f64::from(MANY_PIECES) {
                let load = self.loads.entry(if small.strided { from } else { to }).or_default();
                *if small.strided { &mut load.before } else { &mut load.after } += small.bytes;
            }
        }
        let (mut port, mut before, mut after) =
            (self.average.sent.max(self.average.received), self.average.before, self.average.after);
        for load in self.loads.values() {
            port = port.max(load.sent).max(load.received);
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
