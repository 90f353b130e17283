//! The memory of tiles, summed from the layout.

use crate::profile::{Category, Memory, TileMemory};
use girder_ir::graph::Graph;
use girder_ir::layout::{Content, Layout, TileClass};
use girder_machine::Machine;
use std::cmp::Reverse;

/// The number of fullest tiles that are reported.
const TOLD: usize = 3;

/// Sums a layout.
pub(crate) fn summarise(graph: &Graph, layout: &Layout, machine: &Machine) -> Memory {
    let mut categories: Vec<Category> = Vec::new();
    let mut fullest: Vec<TileMemory> = Vec::new();
    let mut tiles_used = 0;
    for class in layout.classes() {
        for (name, bytes) in by_category(graph, class) {
            let known = categories.iter().position(|c| c.name == name).unwrap_or_else(|| {
                categories.push(Category { name, bytes: 0, worst: 0 });
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
    categories.sort_by_key(|c| (Reverse(c.bytes), c.name));
    fullest.sort_by_key(|t| (Reverse(t.bytes), t.tile));
    fullest.truncate(TOLD);
    Memory {
        usable_per_tile: machine.usable_bytes(),
        peak: layout.peak(),
        tiles_used: tiles_used as u32,
        categories,
        fullest,
    }
}

/// Returns the bytes on each tile of a class.
fn by_category(graph: &Graph, class: &TileClass) -> Vec<(&'static str, u32)> {
    let mut sums: Vec<(&'static str, u32)> = Vec::new();
    for block in &class.blocks {
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
