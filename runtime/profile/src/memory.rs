//! The memory of tiles, summed from the layout.

use crate::profile::{Category, KeptForReverse, MemoryUse, RemoteMemory, TileMemory};
use girder_ir::graph::{Graph, Stream};
use girder_ir::layout::{Content, Layout, MemoryBlock};
use girder_ir::placement::Placement;
use girder_machine::Machine;
use girder_passes::allocate_memory::remote_bytes;
use std::cmp::Reverse;

/// The number of fullest tiles that are reported.
const TOLD: usize = 3;

/// Sums a layout, of which some is kept for reverse programs.
pub(crate) fn summarise(
    graph: &Graph,
    placement: &Placement,
    layout: &Layout,
    machine: &Machine,
    kept: KeptForReverse,
) -> MemoryUse {
    let mut categories: Vec<Category> = Vec::new();
    let mut fullest: Vec<TileMemory> = Vec::new();
    let mut tiles_used = 0;
    for class in layout.classes() {
        for (name, bytes) in by_category(graph, &class.blocks.iter().collect::<Vec<_>>()) {
            let known = categories.iter().position(|c| c.name == name).unwrap_or_else(|| {
                categories.push(Category { name, bytes: 0, worst: 0, at_peak: 0 });
                categories.len() - 1
            });
            let category = &mut categories[known];
            category.bytes += u64::from(bytes) * class.tiles.count();
            category.worst = category.worst.max(bytes);
        }
        tiles_used += class.tiles.count();
        let bytes = class.peak();
        fullest.extend(class.tiles.iter().take(TOLD).map(|tile| TileMemory { tile, bytes }));
    }
    let fullest_class = layout.classes().iter().max_by_key(|c| (c.peak(), Reverse(c.tiles.first())));
    for (name, bytes) in fullest_class.map_or(vec![], |c| by_category(graph, &fullest_moment(&c.blocks))) {
        categories.iter_mut().filter(|c| c.name == name).for_each(|c| c.at_peak = bytes);
    }
    categories.sort_by_key(|c| (Reverse(c.bytes), c.name));
    fullest.sort_by_key(|t| (Reverse(t.bytes), t.tile));
    fullest.truncate(TOLD);
    MemoryUse {
        usable_per_tile: machine.usable_bytes(),
        peak: layout.peak(),
        tiles_used: tiles_used as u32,
        categories,
        fullest,
        kept,
        remote: graph.streams.values().map(Stream::remote_bytes).fold(0, u64::saturating_add),
        beside: machine.streaming.bytes.saturating_mul(u64::from(machine.ipus)),
        remote_fullest: remote_fullest(graph, placement, machine),
    }
}

fn remote_fullest(graph: &Graph, placement: &Placement, machine: &Machine) -> Option<RemoteMemory> {
    let all = remote_bytes(graph, placement, machine).into_iter().enumerate();
    let fullest = all.filter(|(_, bytes)| *bytes > 0).max_by_key(|&(ipu, bytes)| (bytes, Reverse(ipu)))?;
    Some(RemoteMemory { ipu: fullest.0 as u32, bytes: fullest.1 })
}

/// Returns the most bytes of some blocks of a tile that are live at one time, and the first such point.
pub(crate) fn most_at_once(blocks: &[&MemoryBlock]) -> (u32, u32) {
    let always: i64 = blocks.iter().filter(|b| b.live.is_none()).map(|b| i64::from(b.bytes)).sum();
    let mut changes: Vec<(u32, i64)> = vec![];
    for (live, bytes) in blocks.iter().filter_map(|b| Some((b.live.as_ref()?, i64::from(b.bytes)))) {
        changes.extend([(live.start, bytes), (live.end, -bytes)]);
    }
    // At one point, blocks end before others begin.
    changes.sort_unstable();
    let (mut now, mut most) = (always, (always, 0));
    for (point, change) in changes {
        now += change;
        if now > most.0 {
            most = (now, point);
        }
    }
    (u32::try_from(most.0).unwrap_or(u32::MAX), most.1)
}

/// Returns those blocks of a tile that are live at the first moment when most bytes are.
fn fullest_moment(blocks: &[MemoryBlock]) -> Vec<&MemoryBlock> {
    let all: Vec<&MemoryBlock> = blocks.iter().collect();
    let (_, moment) = most_at_once(&all);
    all.into_iter().filter(|b| b.live.as_ref().is_none_or(|l| l.contains(&moment))).collect()
}

/// Returns the bytes of blocks by what they are for.
fn by_category(graph: &Graph, blocks: &[&MemoryBlock]) -> Vec<(&'static str, u32)> {
    let mut sums: Vec<(&'static str, u32)> = Vec::new();
    for block in blocks {
        let name = category(graph, block.content);
        match sums.iter_mut().find(|s| s.0 == name) {
            Some(sum) => sum.1 += block.bytes,
            None => sums.push((name, block.bytes)),
        }
    }
    sums
}

fn category(graph: &Graph, content: Content) -> &'static str {
    match content {
        Content::Var(v) if graph.vars[v].is_persistent() => "variables",
        Content::Var(_) => "temporaries",
        Content::Code(_) => "code",
        Content::SetExchange(_) | Content::CopyExchange(_) => "code of exchanges",
        Content::VertexState(_) => "vertex state",
        Content::Stack(_) => "local arrays",
        Content::SetBuffer(..) | Content::CopyBuffer(..) => "landing buffers",
        Content::Packets(_) => "packets of streams",
    }
}
