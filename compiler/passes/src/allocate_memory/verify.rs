//! What must hold of a layout, checked without the packer.
//!
//! Invariant: an accepted layout has room for everything that the stage needs, inside memory (unless the user allows
//! more), and no two blocks of a tile that are live at one point share a byte.

use super::estimate;
use super::inventory::{self, Need};
use crate::liveness::Liveness;
use girder_ir::layout::{Block, Content, Layout};
use girder_ir::stage::Scheduled;
use girder_machine::Machine;
use rustc_hash::FxHashSet;

/// Checks a layout against its stage and machine; the first thing that is wrong. With `over_memory` addresses may lie
/// behind the end of memory.
pub fn verify_layout(input: &Scheduled, layout: &Layout, machine: &Machine, over_memory: bool) -> Result<(), String> {
    let liveness = Liveness::of(input);
    if let Some(e) = liveness.exposed.first() {
        return Err(format!(
            "`{}` may be read before it is written, but is no persistent variable",
            input.vars[e.var].name
        ));
    }
    let on_tile = |tile: u32, blocks: &[Block]| {
        let block = |b: &Block| format!("{:?} at {:#x}", b.content, b.address);
        let all: Vec<String> = blocks.iter().take(8).map(block).collect();
        move |e: String| format!("tile {tile}: {e} (blocks: {})", all.join(", "))
    };
    for class in layout.classes() {
        let tile = class.tiles.first().unwrap_or(0);
        if class.tiles.end().is_some_and(|end| end > machine.tiles()) {
            return Err(format!("the machine has no tile {}", machine.tiles()));
        }
        let verdict = inside(&class.blocks, machine, over_memory).and_then(|()| apart(&class.blocks));
        verdict.map_err(on_tile(tile, &class.blocks))?;
    }
    complete(input, layout, &liveness, machine, on_tile)
}

/// Every tile has the blocks that it needs and no others.
fn complete<F: FnOnce(String) -> String>(
    input: &Scheduled,
    layout: &Layout,
    liveness: &Liveness,
    machine: &Machine,
    on_tile: impl Fn(u32, &[Block]) -> F,
) -> Result<(), String> {
    let mut left: FxHashSet<u32> = layout.tiles().collect();
    for class in inventory::of(input, liveness, machine, &estimate::costs(input, machine), &[]) {
        let mut seen = FxHashSet::default();
        for tile in class.tiles.iter() {
            left.remove(&tile);
            if seen.insert(layout.class_of(tile)) {
                let blocks = layout.blocks(tile);
                matches(&class.needs, blocks).map_err(on_tile(tile, blocks))?;
            }
        }
    }
    match left.into_iter().min() {
        Some(tile) => Err(format!("tile {tile} has blocks, but nothing is on it")),
        None => Ok(()),
    }
}

/// Every need has its block, of its size, live at least when it is needed; there are no others.
fn matches(needs: &[Need], blocks: &[Block]) -> Result<(), String> {
    if needs.len() != blocks.len() {
        return Err(format!("{} blocks where {} are needed", blocks.len(), needs.len()));
    }
    for (need, block) in needs.iter().zip(blocks) {
        let long_enough = match (&need.live, &block.live) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(n), Some(b)) => n.is_empty() || (b.start <= n.start && n.end <= b.end),
        };
        if need.content != block.content || need.bytes != block.bytes as u64 || !long_enough {
            return Err(format!("the block {block:?} is not the one that {need:?} needs"));
        }
    }
    Ok(())
}

/// Aligned, in usable memory, and code and local arrays where they can be.
fn inside(blocks: &[Block], machine: &Machine, over_memory: bool) -> Result<(), String> {
    for b in blocks {
        let (start, end) = (b.address as u64, b.address as u64 + b.bytes as u64);
        if start % 8 != 0 {
            return Err(format!("{:?} does not start at a multiple of 8", b.content));
        }
        if end > u32::MAX as u64 || (end > machine.usable_bytes() as u64 && !over_memory) {
            return Err(format!("{:?} ends beyond usable memory", b.content));
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
            return Err(format!("{:?} lies where code cannot run", b.content));
        }
    }
    Ok(())
}

/// No byte holds two things at one point.
fn apart(blocks: &[Block]) -> Result<(), String> {
    let always = 0..u32::MAX;
    let mut order: Vec<&Block> = blocks.iter().filter(|b| b.bytes > 0).collect();
    order.sort_by_key(|b| b.address);
    for (i, a) in order.iter().enumerate() {
        let end = a.address as u64 + a.bytes as u64;
        for b in order[i + 1..].iter().take_while(|b| (b.address as u64) < end) {
            let (x, y) = (a.live.as_ref().unwrap_or(&always), b.live.as_ref().unwrap_or(&always));
            if x.start.max(y.start) < x.end.min(y.end) {
                return Err(format!("{:?} and {:?} overlap", a.content, b.content));
            }
        }
    }
    Ok(())
}
