//! The verifier of a layout, which shares no code with the packer.
//!
//! Invariant: an accepted layout has room for everything that the stage needs, inside memory (unless the user allows
//! more), and no two blocks of a tile that are live at one point share a byte.

use super::inventory::{self, Need};
use crate::liveness::Liveness;
use crate::schedule_exchange::exchange_code_bytes;
use crate::sizes;
use girder_ir::codelet::GenericArg;
use girder_ir::graph::Graph;
use girder_ir::layout::{Content, Layout, MemoryBlock};
use girder_ir::stage::Scheduled;
use girder_machine::Machine;
use rustc_hash::FxHashSet;

/// Checks a layout against its stage and machine. With `over_memory` addresses may exceed memory.
///
/// # Errors
/// The first violation.
pub fn verify_layout(input: &Scheduled, layout: &Layout, machine: &Machine, over_memory: bool) -> Result<(), String> {
    let liveness = Liveness::of(input);
    if let Some(e) = liveness.exposed.first() {
        return Err(format!(
            "`{}` may be read before it is written, but is no persistent variable",
            input.vars[e.var].name
        ));
    }
    let on_tile = |tile: u32| move |e: String| format!("on tile {tile} {e}");
    for class in layout.classes() {
        let tile = class.tiles.first().unwrap_or(0);
        if class.tiles.end().is_some_and(|end| end > machine.tiles()) {
            return Err(format!("the machine has no tile {}", machine.tiles()));
        }
        let verdict =
            inside(input, &class.blocks, machine, over_memory).and_then(|()| no_overlap(input, &class.blocks));
        verdict.map_err(on_tile(tile))?;
    }
    complete(input, layout, &liveness, machine, on_tile)
}

/// Returns the content of a block as the text of a stage names it.
fn shown(graph: &Graph, content: Content) -> String {
    let (set, copy) = (|id| &graph.sets[id].name, |id| &graph.copies[id].name);
    match content {
        Content::Var(var) => format!("`{}`", graph.vars[var].name),
        Content::Code(spec) => {
            let codelet = &graph.codelets[spec];
            let arg = |a: &GenericArg| match a {
                GenericArg::Type(ty) => format!(", {ty}"),
                GenericArg::Int(n) => format!(", {n}"),
                GenericArg::Fn(name) => format!(", {name}"),
            };
            let args: Vec<String> = codelet.args.iter().map(arg).collect();
            format!("`code({}{})`", codelet.name, args.concat())
        }
        Content::SetExchange(id) => format!("`transfers({})`", set(id)),
        Content::CopyExchange(id) => format!("`transfers({})`", copy(id)),
        Content::VertexState(id) => format!("`state({})`", set(id)),
        Content::Stack(id) => format!("`stack({})`", set(id)),
        Content::SetBuffer(id, k) => format!("`buffer({}, {k})`", set(id)),
        Content::CopyBuffer(id, k) => format!("`buffer({}, {k})`", copy(id)),
        Content::Packets(id) => format!("`packets({})`", graph.streams[id].name),
    }
}

/// Checks that every tile has exactly the blocks that it needs.
fn complete<F: FnOnce(String) -> String>(
    input: &Scheduled,
    layout: &Layout,
    liveness: &Liveness,
    machine: &Machine,
    on_tile: impl Fn(u32) -> F,
) -> Result<(), String> {
    let mut left: FxHashSet<u32> = layout.tiles().collect();
    let exchange = exchange_code_bytes(input, &input.schedule, machine);
    for class in inventory::of(input, &exchange, liveness, machine, &sizes::costs(input, machine), &[]) {
        let mut seen = FxHashSet::default();
        for tile in class.tiles.iter() {
            left.remove(&tile);
            if seen.insert(layout.class_of(tile)) {
                matches(input, &class.needs, layout.blocks(tile)).map_err(on_tile(tile))?;
            }
        }
    }
    match left.into_iter().min() {
        Some(tile) => Err(format!("tile {tile} has blocks, but nothing is on it")),
        None => Ok(()),
    }
}

/// Checks that every need has one block of its size that is live when needed, and that there are no other blocks.
fn matches(graph: &Graph, needs: &[Need], blocks: &[MemoryBlock]) -> Result<(), String> {
    for need in needs {
        let what = shown(graph, need.content);
        let mut own = blocks.iter().filter(|b| b.content == need.content);
        let Some(block) = own.next() else { return Err(format!("there is no block for {what}")) };
        if own.next().is_some() {
            return Err(format!("there are two blocks for {what}"));
        }
        if need.bytes != block.bytes as u64 {
            return Err(format!("the block of {what} has {} bytes, but it needs {}", block.bytes, need.bytes));
        }
        match (&need.live, &block.live) {
            (_, None) => {}
            (None, Some(_)) => return Err(format!("the block of {what} says when it is live, but it always is")),
            (Some(n), Some(b)) if n.is_empty() || (b.start <= n.start && n.end <= b.end) => {}
            (Some(n), Some(b)) => {
                let (from, to, start, end) = (b.start, b.end, n.start, n.end);
                return Err(format!("the block of {what} is live at {from}..{to}, but it is used at {start}..{end}"));
            }
        }
    }
    match blocks.iter().find(|b| needs.iter().all(|n| n.content != b.content)) {
        Some(block) => Err(format!("nothing needs the block of {}", shown(graph, block.content))),
        None => Ok(()),
    }
}

/// Checks that blocks are aligned and in usable memory, and that code and local arrays are in executable memory.
fn inside(graph: &Graph, blocks: &[MemoryBlock], machine: &Machine, over_memory: bool) -> Result<(), String> {
    for b in blocks {
        let (start, end) = (b.address as u64, b.address as u64 + b.bytes as u64);
        let what = || format!("the block of {} at {start:#x}", shown(graph, b.content));
        if start % 8 != 0 {
            return Err(format!("{} does not start at a multiple of 8", what()));
        }
        if end > u32::MAX as u64 || (end > machine.usable_bytes() as u64 && !over_memory) {
            return Err(format!("{} ends at {end:#x}, beyond usable memory", what()));
        }
        let mut at = 0;
        let mut runs = |bytes: u32| {
            let region = at..at + bytes as u64;
            at = region.end;
            region
        };
        let barred = |r: std::ops::Range<u64>| start < r.end && r.start < end;
        let code = matches!(
            b.content,
            Content::Code(_) | Content::SetExchange(_) | Content::CopyExchange(_) | Content::Stack(_)
        );
        if code && machine.memory.regions.iter().any(|r| barred(runs(r.bytes)) && !r.executable) {
            return Err(format!("{} lies where code cannot run", what()));
        }
    }
    Ok(())
}

/// Checks that no byte holds two blocks at one point.
fn no_overlap(graph: &Graph, blocks: &[MemoryBlock]) -> Result<(), String> {
    let always = 0..u32::MAX;
    let mut order: Vec<&MemoryBlock> = blocks.iter().filter(|b| b.bytes > 0).collect();
    order.sort_by_key(|b| b.address);
    for (i, a) in order.iter().enumerate() {
        let end = a.address as u64 + a.bytes as u64;
        for b in order[i + 1..].iter().take_while(|b| (b.address as u64) < end) {
            let (x, y) = (a.live.as_ref().unwrap_or(&always), b.live.as_ref().unwrap_or(&always));
            if x.start.max(y.start) < x.end.min(y.end) {
                let [x, y] = [a, b].map(|b| format!("{} at {:#x}", shown(graph, b.content), b.address));
                return Err(format!("{x} and {y} overlap"));
            }
        }
    }
    Ok(())
}
