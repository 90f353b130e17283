//! The time of the steps between supersteps: packets of streams, the scalars that control tests, and `sync();`.
//!
//! Invariant: the formulas are those of [`superstep`].

use crate::sizes::bytes_by_tile;
use crate::superstep;
use girder_ir::graph::Graph;
use girder_ir::placement::Placement;
use girder_ir::timing::{IpuTime, StepTime};
use girder_ir::view::View;
use girder_machine::Machine;
use std::collections::BTreeMap;

/// Returns the time of a packet that is read into, or written from, a view. The host's part is left out if the stream
/// holds packets `ahead`.
pub(super) fn packet_time(
    machine: &Machine,
    graph: &Graph,
    placement: &Placement,
    view: &View,
    ahead: bool,
) -> StepTime {
    let tiles = bytes_by_tile(graph, placement, view);
    let total: u64 = tiles.values().sum();
    let mut fullest: BTreeMap<u32, u64> = BTreeMap::new();
    for (tile, bytes) in &tiles {
        let most = fullest.entry(machine.ipu_of(*tile)).or_default();
        *most = (*most).max(*bytes);
    }
    let host = if ahead { 0 } else { superstep::packet_host_cycles(machine, total) };
    let sync = superstep::packet_sync_cycles(machine, fullest.keys().copied());
    let time = |(ipu, bytes): (u32, u64)| {
        let exchange = superstep::packet_exchange_cycles(machine, bytes);
        (ipu, IpuTime { sync, exchange, host, ..IpuTime::default() })
    };
    let ipus: Vec<_> = fullest.into_iter().map(time).collect();
    StepTime { joined: ipus.len() > 1, ipus, ..StepTime::default() }
}

/// Returns the time of a row of a remote buffer that is read into, or written from, a view. Its words take a sync and
/// an exchange on the tiles; each processor moves its own to or from its memory beside the tiles.
pub(super) fn row_time(machine: &Machine, graph: &Graph, placement: &Placement, view: &View) -> StepTime {
    let mut ipus: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for (tile, bytes) in bytes_by_tile(graph, placement, view) {
        let (fullest, all) = ipus.entry(machine.ipu_of(tile)).or_default();
        (*fullest, *all) = ((*fullest).max(bytes), *all + bytes);
    }
    let sync = machine.sync_cycles(ipus.keys().copied());
    let time = |(ipu, (fullest, all)): (u32, (u64, u64))| {
        let exchange = superstep::row_exchange_cycles(machine, fullest);
        let host = superstep::streaming_cycles(machine, all);
        (ipu, IpuTime { sync, exchange, host, ..IpuTime::default() })
    };
    let ipus: Vec<_> = ipus.into_iter().map(time).collect();
    StepTime { joined: ipus.len() > 1, ipus, ..StepTime::default() }
}

/// Returns the cycles that the host takes for a packet of a view.
pub(super) fn packet_host_cycles(machine: &Machine, graph: &Graph, placement: &Placement, view: &View) -> u64 {
    superstep::packet_host_cycles(machine, bytes_by_tile(graph, placement, view).values().sum())
}

/// Returns the time of a scalar's broadcast to the tiles of some IPUs.
pub(super) fn predicate_time(machine: &Machine, ipus: &[u32]) -> StepTime {
    on_ipus(ipus.iter().copied(), superstep::predicate_time(machine, ipus))
}

/// Returns the time of a `sync();`: a sync whose zone is all IPUs.
pub(super) fn sync_time(machine: &Machine) -> StepTime {
    on_ipus(0..machine.ipus, superstep::sync_time(machine, 0..machine.ipus))
}

fn on_ipus(ipus: impl Iterator<Item = u32>, time: IpuTime) -> StepTime {
    let ipus: Vec<(u32, IpuTime)> = ipus.map(|ipu| (ipu, time)).collect();
    StepTime { joined: ipus.len() > 1, ipus, ..StepTime::default() }
}
