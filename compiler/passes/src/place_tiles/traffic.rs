//! What one phase moves, added up by tile instead of planned: the parts of modelled time that placement decides.
//!
//! # Note: Small pieces
//! `plan-transfers` makes many small pieces contiguous before they are sent, or sends them together and takes them apart
//! where they land. So from [`MANY`] pieces of fewer than [`SMALL`] bytes between two tiles on, a field of strided pieces
//! costs its sender a copy, and pieces that come one by one cost their receiver one.

use girder_ir::ids::VarId;
use girder_machine::Machine;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// As in `plan-transfers`.
const MANY: u64 = 4;
/// As in `plan-transfers`.
const SMALL: u64 = 32;
/// Pairs of tiles whose small pieces are told apart. Where there are more, the fullest port outweighs them.
const PAIRS: usize = 1 << 15;

/// Bytes that leave, enter and are copied on one tile.
#[derive(Clone, Copy, Default)]
struct Load {
    sent: u64,
    received: u64,
    before: u64,
    after: u64,
}

/// Small pieces from one tile to another.
#[derive(Clone, Copy, Default)]
struct Small {
    count: u64,
    bytes: u64,
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
    pub bytes: u64,
    pub from: u32,
    pub to: u32,
}

/// One phase.
#[derive(Default)]
pub(super) struct Traffic {
    /// By tile, as far as tiles take part.
    loads: Vec<Load>,
    small: FxHashMap<u64, Small>,
    /// What has been sent once: more receivers cost the sender nothing.
    sent: FxHashSet<(u64, u64)>,
    /// Bytes between processors.
    flows: BTreeMap<(u32, u32), u64>,
    /// Small pieces in a row from one tile, in the field at hand.
    streak: (u32, u64),
    any: bool,
}

impl Traffic {
    /// The next field, or vertex, begins.
    pub(super) fn next_field(&mut self) {
        self.streak = (u32::MAX, 0);
    }

    pub(super) fn copy(&mut self, tile: u32, bytes: u64) {
        self.load(tile).after += bytes;
    }

    fn load(&mut self, tile: u32) -> &mut Load {
        let tile = tile as usize;
        if tile >= self.loads.len() {
            self.loads.resize((tile + 1).next_power_of_two(), Load::default());
        }
        &mut self.loads[tile]
    }

    /// `gathers`: the source is a variable, so that strided pieces are made contiguous before they go.
    pub(super) fn send(&mut self, s: Sent, gathers: bool, machine: &Machine) {
        self.any = true;
        self.load(s.to).received += s.bytes;
        if !gathers || self.sent.insert((u64::from(s.var.as_u32()) << 32 | s.len, s.start)) {
            self.load(s.from).sent += s.bytes;
        }
        let (home, away) = (machine.ipu_of(s.from), machine.ipu_of(s.to));
        if home != away {
            *self.flows.entry((home, away)).or_default() += s.bytes;
        }
        if s.bytes < SMALL && self.small.len() < PAIRS {
            let small = self.small.entry(u64::from(s.from) << 32 | u64::from(s.to)).or_default();
            if small.end != Some((s.var, s.start)) {
                small.count += 1;
                self.streak = if self.streak.0 == s.from { (s.from, self.streak.1 + 1) } else { (s.from, 1) };
            }
            small.strided |= gathers && self.streak.1 >= MANY;
            small.bytes += s.bytes;
            small.end = Some((s.var, s.start + s.len));
        }
    }

    /// Cycles of the phase; `syncs` if it begins with a sync whatever moves.
    pub(super) fn cycles(mut self, machine: &Machine, syncs: bool) -> u64 {
        for (ends, small) in std::mem::take(&mut self.small) {
            if small.count >= MANY {
                let load = self.load(if small.strided { (ends >> 32) as u32 } else { ends as u32 });
                *if small.strided { &mut load.before } else { &mut load.after } += small.bytes;
            }
        }
        let (mut port, mut before, mut after) = (0, 0, 0);
        for load in &self.loads {
            port = port.max(load.sent.max(load.received));
            before = before.max(load.before);
            after = after.max(load.after);
        }
        let mut cycles = machine.arrange.before.cycles(before, 1) + machine.arrange.after.cycles(after, 1);
        if syncs || self.any {
            cycles += machine.sync_cycles(self.flows.keys().flat_map(|f| [f.0, f.1]));
        }
        if self.any {
            cycles += u64::from(machine.latency_bound()) + port.div_ceil(u64::from(machine.exchange.bytes_per_cycle));
        }
        let flow = |(&(a, b), &bytes): (&(u32, u32), &u64)| (bytes as f64 / machine.route_bytes_per_cycle(a, b)).ceil();
        let links = self.flows.iter().map(flow).fold(0.0, f64::max) as u64;
        if links > 0 { cycles + u64::from(machine.links.fixed_cycles) + links } else { cycles }
    }
}
