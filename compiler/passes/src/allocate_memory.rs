//! `allocate-memory`: an address for every block on every tile, and for every variable in the fast engine.
//!
//! On a tile stand code (where the machine can run it), then what is always live, then temporaries, landing buffers and
//! local arrays by live range. Tiles whose blocks agree in kind, size and live range form a class, and one tile per class is packed;
//! so equal tiles have equal addresses, and the cost grows with the classes.
//!
//! Live ranges are in points of the liveness order (see [`liveness`](crate::liveness)); a landing buffer is live at the
//! steps that execute its compute set or copy, and so are the local arrays of a compute set's workers.
//!
//! Invariant: [`verify_layout`] accepts the result.

mod host;
mod inventory;
mod pack;
mod report;
mod verify;

pub use host::pack_for_host;
pub use pack::{Item, Packing, largest_live_set, pack};
pub use verify::verify_layout;

use crate::PassContext;
use crate::liveness::Liveness;
use girder_ir::layout::{Block, Content, HostLayout, Layout};
use girder_ir::stage::{Allocated, Scheduled};
use girder_machine::Machine;
use girder_source::{Diagnostic, Failed, Result, par_map_slice};
use indexmap::IndexMap;
use inventory::Need;
use std::ops::Range;

/// Its flag.
pub const NAME: &str = "allocate-memory";
/// What it does.
pub const SENTENCE: &str = "gives every block an address on its tile; temporaries that never meet share memory";

/// Blocks start at multiples of this.
const ALIGN: u64 = 8;

/// Allocates, or reports the tiles that do not fit.
pub fn run(input: Scheduled, cx: &mut PassContext) -> Result<Allocated> {
    let liveness = Liveness::of(&input);
    let host = allocate_host(&input, &liveness, cx)?;
    let needs = inventory::of(&input, &liveness, cx.machine);
    cx.poll()?;
    let layout = allocate_tiles(&needs, cx.machine);
    let layout = match layout {
        Ok(layout) => layout,
        Err(over) => {
            cx.diagnostics.push(report::out_of_memory(&input, &liveness, cx.machine, &needs, &over));
            return Err(Failed);
        }
    };
    Ok(Allocated { scheduled: input, layout, host })
}

/// The fast engine's memory, within the limit.
///
/// # Errors
/// `memory::host_out_of_memory` if it exceeds `host_bytes`.
pub fn allocate_host(graph: &girder_ir::graph::Graph, liveness: &Liveness, cx: &mut PassContext) -> Result<HostLayout> {
    let limit = cx.session.limits.host_bytes;
    let host = pack_for_host(graph, liveness, limit);
    if host.bytes <= limit {
        return Ok(host);
    }
    let message =
        format!("the variables need {} bytes on the host, more than the limit `host_bytes` of {limit}", host.bytes);
    let largest = graph.vars.values().max_by_key(|v| v.bytes());
    let span = largest.map_or(girder_source::Span::NONE, |v| graph.origins.span(v.origin));
    let d = Diagnostic::error("memory::host_out_of_memory", span, message);
    let d = match largest {
        Some(v) => d.here(format!("`{}` alone has {} bytes", v.name, v.bytes())),
        None => d,
    };
    cx.diagnostics.push(d.help(format!("make the variables smaller, or pass `--limit host_bytes={}`", host.bytes)));
    Err(Failed)
}

/// Tiles that do not fit: each with the bytes that it would need.
type Over = Vec<(u32, u64)>;

/// What distinguishes tiles for packing: whether it is code, bytes, live range.
type Class = Vec<(bool, u64, Option<Range<u32>>)>;

fn allocate_tiles(needs: &[Vec<Need>], machine: &Machine) -> std::result::Result<Layout, Over> {
    let mut classes: IndexMap<Class, Vec<u32>, rustc_hash::FxBuildHasher> = IndexMap::default();
    for (tile, needs) in needs.iter().enumerate().filter(|(_, n)| !n.is_empty()) {
        let class = needs.iter().map(|n| (matches!(n.content, Content::Code(_)), n.bytes, n.live.clone()));
        classes.entry(class.collect()).or_default().push(tile as u32);
    }
    let keys: Vec<&Class> = classes.keys().collect();
    let packed = par_map_slice(&keys, |class| pack_class(class, machine));
    let (mut layout, mut over) = (Layout::default(), Over::new());
    for ((_, tiles), (addresses, peak)) in classes.iter().zip(&packed) {
        if *peak > machine.usable_bytes() as u64 {
            over.extend(tiles.iter().map(|&t| (t, *peak)));
            continue;
        }
        for &tile in tiles {
            let block = |(n, &address): (&Need, &u64)| Block {
                content: n.content,
                address: address as u32,
                bytes: n.bytes as u32,
                live: n.live.clone(),
            };
            layout.tiles.push((tile, needs[tile as usize].iter().zip(addresses).map(block).collect()));
        }
    }
    if over.is_empty() {
        layout.tiles.sort_unstable_by_key(|t| t.0);
        return Ok(layout);
    }
    over.sort_unstable();
    Err(over)
}

/// An address per block, and one past the highest byte.
fn pack_class(class: &Class, machine: &Machine) -> (Vec<u64>, u64) {
    let mut addresses = vec![0; class.len()];
    let mut taken = place_code(class, machine, &mut addresses);
    let mut peak = taken.iter().map(|t| t.end).max().unwrap_or(0);
    // Always-live blocks clear everything, so they come first and are never moved again.
    for always in [true, false] {
        let chosen: Vec<usize> = (0..class.len()).filter(|&i| !class[i].0 && class[i].2.is_none() == always).collect();
        let item = |&i: &usize| Item { bytes: class[i].1, live: class[i].2.clone().unwrap_or(0..u32::MAX) };
        let items: Vec<Item> = chosen.iter().map(item).collect();
        let packing = pack(&items, &taken, ALIGN, machine.usable_bytes() as u64);
        peak = peak.max(packing.peak);
        for (&i, &address) in chosen.iter().zip(&packing.address) {
            addresses[i] = address;
            if always {
                taken.push(address..address + class[i].1.next_multiple_of(ALIGN));
            }
        }
        taken = merged(taken);
    }
    (addresses, peak)
}

/// Addresses of the code of a class, and the ranges that it takes. Code that fits in no executable region is put above
/// all memory, so that the peak tells.
fn place_code(class: &Class, machine: &Machine, addresses: &mut [u64]) -> Vec<Range<u64>> {
    let mut regions = executable(machine);
    let mut above = machine.memory.bytes_per_tile as u64;
    let mut taken = vec![];
    for (i, (_, bytes, _)) in class.iter().enumerate().filter(|(_, c)| c.0) {
        let bytes = bytes.next_multiple_of(ALIGN);
        let start = match regions.iter_mut().find(|r| r.end - r.start >= bytes) {
            Some(region) => &mut region.start,
            None => &mut above,
        };
        addresses[i] = *start;
        taken.push(*start..*start + bytes);
        *start += bytes;
    }
    merged(taken)
}

/// Ranges in order, with neighbours joined.
fn merged(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.sort_unstable_by_key(|r| r.start);
    let mut joined: Vec<Range<u64>> = vec![];
    for r in ranges {
        match joined.last_mut() {
            Some(last) if last.end >= r.start => last.end = last.end.max(r.end),
            _ => joined.push(r),
        }
    }
    joined
}

/// The addresses that code can run from, ascending; neighbouring regions are one.
fn executable(machine: &Machine) -> Vec<Range<u64>> {
    let (mut at, mut ranges) = (0, vec![]);
    for region in &machine.memory.regions {
        let end = at + region.bytes as u64;
        if region.executable {
            ranges.push(at..end.min(machine.usable_bytes() as u64));
        }
        at = end;
    }
    ranges.retain(|r| r.start < r.end);
    merged(ranges)
}

#[cfg(test)]
mod tests;
