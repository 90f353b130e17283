//! The formulas of a superstep's time. `place-tiles` evaluates them for estimates, [`model_time`](crate::model_time) for
//! a plan and its schedule; the queues of vertices are those of [`girder_codelet::cost`], syncs and links those of
//! [`Machine`].
//!
//! # Note: Superstep
//! A compute set syncs once, exchanges what its vertices need, runs them, and exchanges again (with another sync) only if
//! results have to travel. A copy syncs only if words travel. On one IPU an exchange lasts from the release of the sync
//! to the last word landed: the greatest latency of a tile, then the schedule. Words between IPUs follow those inside,
//! after a fixed time. On-tile copies run before and after the words; each costs its fixed part on every tile that copies
//! anything.
//!
//! # Note: Packet
//! The host is asked, and the words travel: two syncs and two exchanges, of which the second moves each tile's words
//! between it and the host. Beyond them the host takes its time. The two exchanges are what a profile of a matrix-vector
//! product with three streams shows (Graphcore, tutorial 6: 8,697 cycles of exchange, of which 6,985 are words).
//!
//! Invariant: every function depends on the machine and its arguments only.

use girder_ir::timing::IpuTime;
use girder_machine::Machine;

/// Bytes of an exchange word.
pub(crate) const WORD_BYTES: u64 = 4;

/// The rate at which a port sends or receives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rate {
    /// One tile's.
    Tile,
    /// That of a pair of tiles, or one tile's where the machine's pairs are no faster.
    Pair,
}

impl Rate {
    fn bytes_per_cycle(self, machine: &Machine) -> u64 {
        let exchange = &machine.exchange;
        let bytes = match self {
            Rate::Tile => exchange.bytes_per_cycle,
            Rate::Pair => exchange.pair_bytes_per_cycle.max(exchange.bytes_per_cycle),
        };
        u64::from(bytes)
    }
}

/// Returns the cycles that a port takes to send or receive a number of bytes.
pub(crate) fn port_cycles(machine: &Machine, bytes: u64, rate: Rate) -> u64 {
    bytes.div_ceil(rate.bytes_per_cycle(machine))
}

/// Returns the cycles that two tiles of a pair take to send a number of bytes together, each over its own port.
pub(crate) fn two_port_cycles(machine: &Machine, bytes: u64) -> u64 {
    bytes.div_ceil(2 * Rate::Tile.bytes_per_cycle(machine))
}

/// Returns the cycles of an exchange on one IPU whose schedule, or fullest port, takes `words` cycles.
pub(crate) fn exchange_cycles(machine: &Machine, words: u64) -> u64 {
    u64::from(machine.latency_bound()) + words
}

/// Returns the cycles of the two syncs of a packet whose tiles are on some IPUs.
pub(crate) fn packet_sync_cycles(machine: &Machine, ipus: impl IntoIterator<Item = u32>) -> u64 {
    2 * machine.sync_cycles(ipus)
}

/// Returns the cycles of the two exchanges of a packet on one IPU whose fullest tile has `bytes` of it.
pub(crate) fn packet_exchange_cycles(machine: &Machine, bytes: u64) -> u64 {
    exchange_cycles(machine, 0) + exchange_cycles(machine, port_cycles(machine, bytes, Rate::Tile))
}

/// Returns the cycles that the host takes to serve a packet of some bytes.
pub(crate) fn packet_host_cycles(machine: &Machine, bytes: u64) -> u64 {
    let host = &machine.host;
    let moved = (bytes as f64 / host.bytes_per_second * machine.chip.clock_hz).ceil() as u64;
    u64::from(host.begin_cycles) + u64::from(host.copy_cycles) + u64::from(host.end_cycles) + moved
}

/// Returns the time of a scalar's broadcast to the tiles of all IPUs, on each of them.
pub(crate) fn predicate_time(machine: &Machine) -> IpuTime {
    let link = if machine.ipus > 1 { u64::from(machine.links.fixed_cycles) } else { 0 };
    IpuTime { exchange: exchange_cycles(machine, 1) + link, ..sync_time(machine) }
}

/// Returns the time of a sync of all IPUs, on each of them.
pub(crate) fn sync_time(machine: &Machine) -> IpuTime {
    IpuTime { sync: machine.sync_cycles(0..machine.ipus), ..IpuTime::default() }
}
