//! The formulas of a superstep's time.
//!
//! `place-tiles` evaluates them for estimates, [`model_time`](crate::model_time) for a plan and its schedule. The queue
//! of a tile's vertices is modelled by [`girder_codelet::cost`]; syncs and links are modelled by [`Machine`].
//!
//! # Note: Superstep
//! A compute set syncs once, exchanges the inputs of its vertices and runs them. It exchanges again, with another sync,
//! only if results have to travel. A copy syncs only if words travel. On one IPU an exchange lasts from the release of
//! the sync until the last word has landed: the greatest latency of a tile plus the length of the schedule. Words
//! between IPUs follow those inside an IPU, after a fixed time. On-tile copies run before and after the words. Each
//! kind costs its fixed part on every tile that copies anything.
//!
//! # Note: Packet
//! A packet takes two syncs and two exchanges: the first asks the host, the second moves each tile's words between it
//! and the host. The host's own time is added. A profile of a matrix-vector product with three streams shows the two
//! exchanges (Graphcore, tutorial 6: 8,697 cycles of exchange, of which 6,985 are words).
//!
//! # Note: Row
//! A row of a remote buffer takes one sync and one exchange, and the time of the memory beside the tiles: its latency,
//! and the bytes at its rate. No host answers.
//!
//! Invariant: every function depends on the machine and its arguments only.

use girder_ir::timing::IpuTime;
use girder_machine::Machine;

/// Bytes of an exchange word.
pub(crate) const WORD_BYTES: u64 = 4;

/// The rate at which a port sends or receives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rate {
    /// The rate of a single tile.
    Tile,
    /// The rate of a pair of tiles, or of a single tile if pairs are no faster on this machine.
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

/// Returns the cycles until the first word of an exchange has landed: the latency and, if words cross between IPUs, the
/// cycles of such a phase beyond its bytes.
pub fn first_word_cycles(machine: &Machine, crosses: bool) -> u64 {
    exchange_cycles(machine, 0) + if crosses { u64::from(machine.links.fixed_cycles) } else { 0 }
}

/// Returns the cycles until the first vertex of a compute set begins its work.
pub fn first_vertex_cycles(machine: &Machine) -> u64 {
    let tile = &machine.tile;
    let start = u64::from(tile.vertex_bundles) * u64::from(tile.worker_period);
    u64::from(tile.launch_cycles) + u64::from(tile.supervisor_cycles) + start
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

/// Returns the cycles of the exchange of a row of a remote buffer on one IPU whose fullest tile has `bytes` of it.
pub(crate) fn row_exchange_cycles(machine: &Machine, bytes: u64) -> u64 {
    exchange_cycles(machine, port_cycles(machine, bytes, Rate::Tile))
}

/// Returns the cycles that the memory beside the tiles of an IPU takes to read or write some bytes.
pub(crate) fn streaming_cycles(machine: &Machine, bytes: u64) -> u64 {
    let moved = (bytes as f64 / machine.streaming.bytes_per_second * machine.chip.clock_hz).ceil() as u64;
    u64::from(machine.streaming.latency_cycles) + moved
}

/// Returns the time of a scalar's broadcast to the tiles of some IPUs, on each of them.
pub(crate) fn predicate_time(machine: &Machine, ipus: &[u32]) -> IpuTime {
    let link = if ipus.len() > 1 { u64::from(machine.links.fixed_cycles) } else { 0 };
    IpuTime { exchange: exchange_cycles(machine, 1) + link, ..sync_time(machine, ipus.iter().copied()) }
}

/// Returns the time of a sync of some IPUs, on each of them.
pub(crate) fn sync_time(machine: &Machine, ipus: impl Iterator<Item = u32>) -> IpuTime {
    IpuTime { sync: machine.sync_cycles(ipus), ..IpuTime::default() }
}
