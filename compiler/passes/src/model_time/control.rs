//! What the steps between supersteps take: packets of streams, the scalars that control looks at, and `sync();`.
//!
//! # Note: Packet
//! The host is asked, and the words travel: two syncs and two exchanges, of which the second moves each tile's words
//! between it and the host. Beyond them the host takes its time. The two exchanges are what a profile of a matrix-vector
//! product with three streams shows (Graphcore, tutorial 6: 8,697 cycles of exchange, of which 6,985 are words).

use girder_ir::graph::Graph;
use girder_ir::ids::VarId;
use girder_ir::placement::{Placement, TileRun};
use girder_ir::timing::{IpuTime, StepTime};
use girder_ir::view::View;
use girder_machine::Machine;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// The time of a packet that comes to, or from, the elements of a view.
pub(super) fn packet_time(machine: &Machine, graph: &Graph, placement: &Placement, view: &View) -> StepTime {
    let tiles = bytes_by_tile(graph, placement, view);
    let total: u64 = tiles.values().sum();
    let mut fullest: BTreeMap<u32, u64> = BTreeMap::new();
    for (tile, bytes) in &tiles {
        let most = fullest.entry(machine.ipu_of(*tile)).or_default();
        *most = (*most).max(*bytes);
    }
    let host = &machine.host;
    let moved = (total as f64 / host.bytes_per_second * machine.chip.clock_hz).ceil() as u64;
    let answers = u64::from(host.begin_cycles) + u64::from(host.copy_cycles) + u64::from(host.end_cycles);
    let sync = 2 * machine.sync_cycles(fullest.keys().copied());
    let words = |bytes: u64| bytes.div_ceil(u64::from(machine.exchange.bytes_per_cycle));
    let time = |(ipu, bytes): (u32, u64)| {
        let exchange = 2 * u64::from(machine.latency_bound()) + words(bytes);
        (ipu, IpuTime { sync, exchange, host: answers + moved, ..IpuTime::default() })
    };
    let ipus: Vec<_> = fullest.into_iter().map(time).collect();
    StepTime { joined: ipus.len() > 1, ipus, ..StepTime::default() }
}

/// Bytes of a view on each tile.
fn bytes_by_tile(graph: &Graph, placement: &Placement, view: &View) -> FxHashMap<u32, u64> {
    let mut tiles: FxHashMap<u32, u64> = FxHashMap::default();
    let mut homes: FxHashMap<VarId, Vec<TileRun>> = FxHashMap::default();
    for run in view.runs() {
        let (var, Some(mapping)) = (&graph.vars[run.var], &placement.vars[run.var]) else { continue };
        let homes = homes.entry(run.var).or_insert_with(|| mapping.runs(var.len()).collect());
        let size = u64::from(var.ty.bytes());
        // A run of any stride is a few stretches of neighbours, or single elements.
        let stretches = if run.stride.unsigned_abs() == 1 { 1 } else { run.len };
        let length = run.len / stretches;
        for k in 0..stretches {
            let at = run.start as i64 + k as i64 * run.stride;
            let start = if run.stride == -1 { at + 1 - length as i64 } else { at } as u64;
            let end = start + length;
            let first = homes.partition_point(|h| h.1 <= start);
            for (from, to, tile) in homes[first..].iter().take_while(|h| h.0 < end) {
                *tiles.entry(*tile).or_default() += (to.min(&end) - from.max(&start)) * size;
            }
        }
    }
    tiles
}

/// The time of a scalar's broadcast to the tiles of all IPUs.
pub(super) fn predicate_time(machine: &Machine) -> StepTime {
    let sync = machine.sync_cycles(0..machine.ipus);
    let link = if machine.ipus > 1 { u64::from(machine.links.fixed_cycles) } else { 0 };
    let exchange = u64::from(machine.latency_bound()) + 1 + link;
    let time = IpuTime { sync, exchange, ..IpuTime::default() };
    StepTime { ipus: (0..machine.ipus).map(|i| (i, time)).collect(), joined: machine.ipus > 1, ..StepTime::default() }
}

/// The time of a `sync();`: a sync whose zone is all IPUs.
pub(super) fn sync_time(machine: &Machine) -> StepTime {
    let time = IpuTime { sync: machine.sync_cycles(0..machine.ipus), ..IpuTime::default() };
    StepTime { ipus: (0..machine.ipus).map(|i| (i, time)).collect(), joined: machine.ipus > 1, ..StepTime::default() }
}
