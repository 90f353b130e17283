//! Checks of a machine's values against each other.
//!
//! Invariant: no sum or product here can overflow: each value has passed the range that [`crate::read`] gives it, and
//! totals are computed in 64 bits.

use crate::Machine;
use crate::network::Topology;
use crate::table::{Result, Table};
use petgraph::algo::connected_components;

/// Maximal number of tiles of a machine: lists of one number per tile stay small, and tile numbers fit 32 bits with
/// room.
const MOST_TILES: u64 = 1 << 20;

/// Refuses a machine whose values contradict each other.
pub(crate) fn check(machine: &Machine, top: &Table<'_, '_>) -> Result<()> {
    layout(machine, top)?;
    memory(machine, top)?;
    regions(machine, top)?;
    rates(machine, top)?;
    topology(machine, top)
}

fn layout(machine: &Machine, top: &Table<'_, '_>) -> Result<()> {
    let chip = &machine.chip;
    let positions = chip.columns as u64 * chip.rows as u64;
    // Two factors of at most 2^20 fit; the third is compared by division.
    if !(chip.tiles as u64).is_multiple_of(positions) || chip.tiles as u64 / positions != chip.lanes as u64 {
        let (columns, rows, lanes) = (chip.columns, chip.rows, chip.lanes);
        let message = format!("{columns} columns of {rows} rows of {lanes} lanes are not {} tiles", chip.tiles);
        return top.fail(&["chip.tiles", "chip.columns", "chip.rows", "chip.lanes"], message);
    }
    let total = machine.ipus as u64 * chip.tiles as u64;
    if total > MOST_TILES {
        let message = format!("a machine has at most {MOST_TILES} tiles, not {total}");
        return top.fail(&["ipus", "chip.tiles"], message);
    }
    if machine.tile.worker_period < chip.workers {
        let (period, workers) = (machine.tile.worker_period, chip.workers);
        let message = format!("{workers} workers cannot take turns in a period of {period} cycles");
        return top.fail(&["tile.worker_period", "chip.workers"], message);
    }
    Ok(())
}

fn memory(machine: &Machine, top: &Table<'_, '_>) -> Result<()> {
    let memory = &machine.memory;
    if !memory.store_bytes.is_power_of_two() {
        return top.fail(&["memory.store_bytes"], "`memory.store_bytes` must be 1, 2, 4 or 8".to_string());
    }
    if !memory.bytes_per_tile.is_multiple_of(16) {
        let message = "`memory.bytes_per_tile` must be a multiple of 16".to_string();
        return top.fail(&["memory.bytes_per_tile"], message);
    }
    if memory.reserved_bytes >= memory.bytes_per_tile {
        let message = format!("{} reserved bytes leave none of {}", memory.reserved_bytes, memory.bytes_per_tile);
        return top.fail(&["memory.reserved_bytes", "memory.bytes_per_tile"], message);
    }
    if !machine.tile.vector_bytes.is_power_of_two() {
        return top.fail(&["tile.vector_bytes"], "`tile.vector_bytes` must be a power of two".to_string());
    }
    Ok(())
}

fn regions(machine: &Machine, top: &Table<'_, '_>) -> Result<()> {
    let (memory, key) = (&machine.memory, "memory.regions");
    let total: u64 = memory.regions.iter().map(|r| r.bytes as u64).sum();
    if total != memory.bytes_per_tile as u64 {
        let message = format!("the regions hold {total} bytes, but a tile has {}", memory.bytes_per_tile);
        return top.fail(&[key, "memory.bytes_per_tile"], message);
    }
    for region in &memory.regions {
        let unit = memory.element_bytes as u64 * if region.interleaved { 2 } else { 1 };
        if !(region.bytes as u64).is_multiple_of(unit) {
            let whole = if region.interleaved { "pairs of elements" } else { "elements" };
            let message =
                format!("a region of {} bytes is not whole {whole} of {}", region.bytes, memory.element_bytes);
            return top.fail(&[key, "memory.element_bytes"], message);
        }
    }
    if !memory.regions.iter().any(|r| r.executable) {
        return top.fail(&[key], "no region is executable".to_string());
    }
    Ok(())
}

fn rates(machine: &Machine, top: &Table<'_, '_>) -> Result<()> {
    let (one, pair) = (machine.exchange.bytes_per_cycle, machine.exchange.pair_bytes_per_cycle);
    if pair != one && pair != 2 * one {
        let message = format!("a pair receives {one} or {} bytes in a cycle, not {pair}", 2 * one);
        return top.fail(&["exchange.pair_bytes_per_cycle", "exchange.bytes_per_cycle"], message);
    }
    Ok(())
}

fn topology(machine: &Machine, top: &Table<'_, '_>) -> Result<()> {
    let (ipus, keys) = (machine.ipus, ["ipus", "links.topology"]);
    match machine.links.topology {
        _ if ipus == 1 => Ok(()),
        Topology::Ladder | Topology::Torus if !ipus.is_multiple_of(2) => {
            top.fail(&keys, format!("{ipus} ipus do not form rungs of two"))
        }
        // Every link group has one that leads back, so a single component means a route between any two processors.
        _ if connected_components(&machine.network()) > 1 => {
            top.fail(&keys, format!("{ipus} ipus with no links cannot work together"))
        }
        _ => Ok(()),
    }
}
