//! Reading a machine from its file, table by table.
//!
//! Invariant: each value is in its range when it leaves this file; [`crate::check`] checks values against each other.

use crate::check::check;
use crate::costs::{Arrange, Bundles, Copying, HostCosts, IntegerBundles, MultiplyAdds, Streaming, Tile};
use crate::document::{self, Origin};
use crate::machine::{Chip, Exchange, Memory, MemoryRegion, Partition, Sync};
use crate::network::{Links, Topology};
use crate::partition::partition;
use crate::table::{Result, Table};
use crate::{Machine, MachineError};
use std::ops::RangeInclusive;

/// Counts.
const COUNT: RangeInclusive<u32> = 1..=1 << 20;
/// Cycles, bundles and instructions of one event: sums of a few hundred stay within 32 bits.
const CYCLES: RangeInclusive<u32> = 0..=10_000_000;
/// Cycles of a row: 2^20 rows stay within 32 bits.
const ROW_CYCLES: RangeInclusive<u32> = 0..=1000;
/// Bytes per cycle.
const BYTES: RangeInclusive<u32> = 1..=4096;
/// Rates of links and hosts, bytes per second.
const RATE: RangeInclusive<f64> = 1.0..=1e15;
/// Times in nanoseconds.
const NS: RangeInclusive<f64> = 0.0..=1e9;

impl Machine {
    /// Reads and checks a machine.
    ///
    /// # Errors
    /// The first error in the text, with its span if it has one.
    pub fn from_toml(text: &str) -> std::result::Result<Machine, MachineError> {
        let tree = document::read(text)?;
        let result = machine(&Table::top(&tree));
        result.map_err(|error| match tree.get("extends").map(|e| &e.origin) {
            // An inherited value is reported at the line that inherits it.
            Some(Origin::File(extends)) if error.span.is_none() => {
                MachineError { span: Some(extends.clone()), ..error }
            }
            _ => error,
        })
    }
}

fn machine(top: &Table<'_, '_>) -> Result<Machine> {
    top.only(&[
        "name",
        "description",
        "extends",
        "ipus",
        "partition",
        "chip",
        "memory",
        "tile",
        "exchange",
        "arrange",
        "sync",
        "links",
        "host",
        "streaming",
    ])?;
    let mut machine = Machine {
        name: name(top)?,
        description: if top.has("description") { top.text("description")?.to_string() } else { String::new() },
        ipus: top.int("ipus", COUNT)?,
        chip: chip(&top.table("chip")?)?,
        memory: memory(&top.table("memory")?)?,
        tile: tile(&top.table("tile")?)?,
        exchange: exchange(&top.table("exchange")?)?,
        arrange: arrange(&top.table("arrange")?)?,
        sync: sync(&top.table("sync")?)?,
        links: links(&top.table("links")?)?,
        host: host(&top.table("host")?)?,
        streaming: streaming(&top.table("streaming")?)?,
        partition: Partition { replicas: 1, topology: Topology::None },
    };
    machine.partition.topology = machine.links.topology;
    check(&machine, top)?;
    partition(machine, top)
}

/// Reads the name, which appears in the header of printed text and in tables.
fn name(top: &Table<'_, '_>) -> Result<String> {
    let name = top.text("name")?;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    match (1..=64).contains(&name.len()) && name.chars().all(plain) {
        true => Ok(name.to_string()),
        false => top.fail(&["name"], "`name` must be 1 to 64 letters, digits, `-`, `_` or `.`".to_string()),
    }
}

fn chip(t: &Table<'_, '_>) -> Result<Chip> {
    t.only(&["tiles", "columns", "rows", "lanes", "workers", "clock_hz"])?;
    Ok(Chip {
        tiles: t.int("tiles", COUNT)?,
        columns: t.int("columns", COUNT)?,
        rows: t.int("rows", COUNT)?,
        lanes: t.int("lanes", COUNT)?,
        workers: t.int("workers", 1..=64)?,
        clock_hz: t.real("clock_hz", 1e3..=1e12)?,
    })
}

fn memory(t: &Table<'_, '_>) -> Result<Memory> {
    t.only(&["bytes_per_tile", "reserved_bytes", "base_address", "element_bytes", "store_bytes", "regions"])?;
    Ok(Memory {
        bytes_per_tile: t.int("bytes_per_tile", 16..=1 << 30)?,
        reserved_bytes: t.int("reserved_bytes", 0..=1 << 30)?,
        base_address: t.int("base_address", 0..=1 << 30)?,
        element_bytes: t.int("element_bytes", 16..=1 << 30)?,
        store_bytes: t.int("store_bytes", 1..=8)?,
        regions: t.list("regions", region)?,
    })
}

fn region(t: &Table<'_, '_>) -> Result<MemoryRegion> {
    t.only(&["bytes", "executable", "interleaved"])?;
    Ok(MemoryRegion {
        bytes: t.int("bytes", 1..=1 << 30)?,
        executable: t.bool("executable")?,
        interleaved: t.bool("interleaved")?,
    })
}

fn tile(t: &Table<'_, '_>) -> Result<Tile> {
    t.only(&[
        "worker_period",
        "vector_bytes",
        "load_bytes",
        "store_bytes",
        "loop_bundles",
        "launch_cycles",
        "supervisor_cycles",
        "vertex_bundles",
        "field_bundles",
        "share_bundles",
        "emulated_bundles",
        "f32",
        "f16",
        "int",
        "multiply_adds",
    ])?;
    Ok(Tile {
        worker_period: t.int("worker_period", 1..=1024)?,
        vector_bytes: t.int("vector_bytes", 4..=64)?,
        load_bytes: t.int("load_bytes", BYTES)?,
        store_bytes: t.int("store_bytes", BYTES)?,
        loop_bundles: t.int("loop_bundles", CYCLES)?,
        launch_cycles: t.int("launch_cycles", CYCLES)?,
        supervisor_cycles: t.int("supervisor_cycles", CYCLES)?,
        vertex_bundles: t.int("vertex_bundles", CYCLES)?,
        field_bundles: t.int("field_bundles", CYCLES)?,
        share_bundles: t.int("share_bundles", CYCLES)?,
        emulated_bundles: t.int("emulated_bundles", CYCLES)?,
        f32: bundles(&t.table("f32")?)?,
        f16: bundles(&t.table("f16")?)?,
        int: integers(&t.table("int")?)?,
        multiply_adds: multiply_adds(&t.table("multiply_adds")?)?,
    })
}

fn bundles(t: &Table<'_, '_>) -> Result<Bundles> {
    t.only(&["elements", "div", "sqrt", "rsqrt", "exp", "log", "tanh", "sigmoid", "sin"])?;
    Ok(Bundles {
        elements: t.int("elements", 1..=64)?,
        div: t.int("div", CYCLES)?,
        sqrt: t.int("sqrt", CYCLES)?,
        rsqrt: t.int("rsqrt", CYCLES)?,
        exp: t.int("exp", CYCLES)?,
        log: t.int("log", CYCLES)?,
        tanh: t.int("tanh", CYCLES)?,
        sigmoid: t.int("sigmoid", CYCLES)?,
        sin: t.int("sin", CYCLES)?,
    })
}

fn integers(t: &Table<'_, '_>) -> Result<IntegerBundles> {
    t.only(&["mul", "div"])?;
    Ok(IntegerBundles { mul: t.int("mul", CYCLES)?, div: t.int("div", CYCLES)? })
}

fn multiply_adds(t: &Table<'_, '_>) -> Result<MultiplyAdds> {
    t.only(&["f16_f16", "f16_f32", "f32", "coefficient_bytes", "plain_coefficient_bytes"])?;
    Ok(MultiplyAdds {
        f16_f16: t.int("f16_f16", COUNT)?,
        f16_f32: t.int("f16_f32", COUNT)?,
        f32: t.int("f32", COUNT)?,
        coefficient_bytes: t.int("coefficient_bytes", BYTES)?,
        plain_coefficient_bytes: t.int("plain_coefficient_bytes", BYTES)?,
    })
}

fn exchange(t: &Table<'_, '_>) -> Result<Exchange> {
    t.only(&[
        "bytes_per_cycle",
        "pair_bytes_per_cycle",
        "latency_cycles",
        "sender_row_cycles",
        "receiver_row_cycles",
        "switch_cycles",
        "words_per_send",
        "receive_instructions",
        "instruction_bytes",
    ])?;
    Ok(Exchange {
        bytes_per_cycle: t.int("bytes_per_cycle", BYTES)?,
        pair_bytes_per_cycle: t.int("pair_bytes_per_cycle", BYTES)?,
        latency_cycles: t.int("latency_cycles", CYCLES)?,
        sender_row_cycles: t.int("sender_row_cycles", ROW_CYCLES)?,
        receiver_row_cycles: t.int("receiver_row_cycles", ROW_CYCLES)?,
        switch_cycles: t.int("switch_cycles", ROW_CYCLES)?,
        words_per_send: t.int("words_per_send", COUNT)?,
        receive_instructions: t.int("receive_instructions", 0..=64)?,
        instruction_bytes: t.int("instruction_bytes", 1..=64)?,
    })
}

fn arrange(t: &Table<'_, '_>) -> Result<Arrange> {
    t.only(&["before", "after"])?;
    Ok(Arrange { before: copying(&t.table("before")?)?, after: copying(&t.table("after")?)? })
}

fn copying(t: &Table<'_, '_>) -> Result<Copying> {
    t.only(&["fixed_cycles", "run_cycles", "bytes_per_cycle"])?;
    Ok(Copying {
        fixed_cycles: t.int("fixed_cycles", CYCLES)?,
        run_cycles: t.int("run_cycles", CYCLES)?,
        bytes_per_cycle: t.real("bytes_per_cycle", 1e-3..=4096.0)?,
    })
}

fn sync(t: &Table<'_, '_>) -> Result<Sync> {
    t.only(&["internal_cycles", "external_ns", "hop_ns"])?;
    Ok(Sync {
        internal_cycles: t.int("internal_cycles", CYCLES)?,
        external_ns: t.real("external_ns", NS)?,
        hop_ns: t.real("hop_ns", NS)?,
    })
}

fn links(t: &Table<'_, '_>) -> Result<Links> {
    t.only(&["topology", "bytes_per_second", "efficiency", "direct", "cross", "up", "down", "fixed_cycles"])?;
    let topology = match t.text("topology")? {
        "none" => Topology::None,
        "ladder" => Topology::Ladder,
        "torus" => Topology::Torus,
        other => return t.fail(&["topology"], format!("there is no topology `{other}`: it is none, ladder or torus")),
    };
    Ok(Links {
        topology,
        bytes_per_second: t.real("bytes_per_second", RATE)?,
        efficiency: t.real("efficiency", 1e-6..=1.0)?,
        direct: t.int("direct", 1..=1024)?,
        cross: t.int("cross", 1..=1024)?,
        up: t.int("up", 1..=1024)?,
        down: t.int("down", 1..=1024)?,
        fixed_cycles: t.int("fixed_cycles", CYCLES)?,
    })
}

fn host(t: &Table<'_, '_>) -> Result<HostCosts> {
    t.only(&["begin_cycles", "copy_cycles", "end_cycles", "bytes_per_second"])?;
    Ok(HostCosts {
        begin_cycles: t.int("begin_cycles", CYCLES)?,
        copy_cycles: t.int("copy_cycles", CYCLES)?,
        end_cycles: t.int("end_cycles", CYCLES)?,
        bytes_per_second: t.real("bytes_per_second", RATE)?,
    })
}

fn streaming(t: &Table<'_, '_>) -> Result<Streaming> {
    t.only(&["bytes", "bytes_per_second", "latency_cycles"])?;
    Ok(Streaming {
        bytes: t.real("bytes", 0.0..=1e15)? as u64,
        bytes_per_second: t.real("bytes_per_second", RATE)?,
        latency_cycles: t.int("latency_cycles", CYCLES)?,
    })
}

#[cfg(test)]
mod tests;
