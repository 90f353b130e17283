//! What must hold of a layout, checked without the packer.
//!
//! Invariant: an accepted layout has room for everything that the stage needs, inside memory, and no two blocks of a
//! tile that are live at one point share a byte.

use super::inventory::{self, Need};
use crate::liveness::Liveness;
use girder_ir::layout::{Block, Content, Layout};
use girder_ir::stage::Scheduled;
use girder_machine::Machine;

/// Checks a layout against its stage and machine; the first thing that is wrong.
pub fn verify_layout(input: &Scheduled, layout: &Layout, machine: &Machine) -> Result<(), String> {
    let liveness = Liveness::of(input);
    if let Some(e) = liveness.exposed.first() {
        return Err(format!(
            "`{}` may be read before it is written, but is no persistent variable",
            input.vars[e.var].name
        ));
    }
    if layout.tiles.windows(2).any(|w| w[0].0 >= w[1].0) {
        return Err("tiles do not ascend".to_string());
    }
    let mut given = layout.tiles.iter().peekable();
    for (tile, needs) in inventory::of(input, &liveness, machine).iter().enumerate() {
        let empty = vec![];
        let blocks = given.next_if(|(t, _)| *t as usize == tile).map_or(&empty, |(_, b)| b);
        complete(needs, blocks).and_then(|()| inside(blocks, machine)).and_then(|()| apart(blocks)).map_err(|e| {
            let block = |b: &Block| format!("{:?} at {:#x}", b.content, b.address);
            let all: Vec<String> = blocks.iter().take(8).map(block).collect();
            format!("tile {tile}: {e} (blocks: {})", all.join(", "))
        })?;
    }
    match given.next() {
        Some((tile, _)) => Err(format!("the machine has no tile {tile}")),
        None => Ok(()),
    }
}

/// Every need has its block, of its size, live at least when it is needed; there are no others.
fn complete(needs: &[Need], blocks: &[Block]) -> Result<(), String> {
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

/// Aligned, in usable memory, and code where it can run.
fn inside(blocks: &[Block], machine: &Machine) -> Result<(), String> {
    for b in blocks {
        let (start, end) = (b.address as u64, b.address as u64 + b.bytes as u64);
        if start % 8 != 0 {
            return Err(format!("{:?} does not start at a multiple of 8", b.content));
        }
        if end > machine.usable_bytes() as u64 {
            return Err(format!("{:?} ends beyond usable memory", b.content));
        }
        let mut at = 0;
        let mut runs = |bytes: u32| {
            let region = at..at + bytes as u64;
            at = region.end;
            region
        };
        let barred = |r: std::ops::Range<u64>| start < r.end && r.start < end;
        let code = matches!(b.content, Content::Code(_));
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
