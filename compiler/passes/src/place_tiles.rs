//! `place-tiles`: a tile for every element and every vertex that the text leaves open.
//!
//! The mappings of the text are kept. The first placement needs no search (`linear`). It spreads variables evenly, with
//! at least 128 bytes to a tile and whole granules of 8 bytes; variables that need few tiles follow one another around
//! the machine. A vertex goes to the tile of the first element of its first output. Then a search (`search`) compares
//! candidates and keeps the one that takes the least time.
//!
//! # Note: Time
//! The time of a placement is the sum over all steps of executions (`executions`) times an estimate (`estimate`). The
//! estimate has the parts of modelled time: syncs, the load of the fullest port and the latency of an exchange, on-tile
//! copies, and the worker contexts of the tile whose vertices take longest. Exchange code counts as a little time, so
//! that exchanges have few pieces where these take about as long. The estimate is computed from the runs of elements
//! that vertices, copies and packets access (`accesses`), without a plan or a schedule. The memory of tiles is checked
//! at the moments at which most bytes live together (`moments`), and so is their code (`code`).
//!
//! # Note: Cost
//! The pass should take a few milliseconds for any program. Steps whose placement the text decides completely are left
//! out. For the others an estimate samples some tiles that stand for all (`sample`). Variables follow vertices through
//! a table of owners that does not depend on tiles (`owners`), so a candidate is little more than the tiles of its
//! vertices. The search stops at a budget that depends on the size of the program.
//!
//! Invariant: the result depends on the graph and the machine only, and a second run changes nothing.

use crate::PassContext;
use crate::pass::{Pass, Verdict};
use girder_ir::graph::Graph;
use girder_ir::ids::FamilyId;
use girder_ir::placement::{Placement, TileRange};
use girder_ir::stage::Placed;
use girder_machine::Machine;
use girder_source::{Failed, Result, par_map_slice};
use rustc_hash::FxHashMap;

mod accesses;
mod problem;
mod changes;
mod code;
mod estimate;
mod finish;
mod text_placement;
mod homes;
mod linear;
mod moments;
mod executions;
mod owners;
mod regions;
mod sample;
mod search;
mod spread;
mod strategies;
mod traffic;
mod candidate;
mod vertex_runs;
mod verify;

pub use verify::verify_placement;

/// The pass `place-tiles`.
pub struct PlaceTiles;

impl Pass for PlaceTiles {
    const NAME: &'static str = "place-tiles";
    const SENTENCE: &'static str = "gives every element and every vertex a tile that the text leaves open";
    type From = Graph;
    type To = Placed;

    /// Places a graph.
    fn run(graph: Graph, cx: &mut PassContext) -> Result<Placed> {
        if !(text_placement::check(&graph, cx) && text_placement::fits(&graph, cx)) {
            return Err(Failed);
        }
        let placement = linear_placement(&graph, cx.machine, cx.estimate.room);
        let placement = search::improve(&graph, placement, cx);
        cx.poll()?;
        Ok(Placed { graph, placement: placement.into() })
    }

    fn verify(placed: &Placed, cx: &PassContext) -> Verdict {
        verify_placement(placed, &placed.placement, cx.machine)
    }
}

/// Returns the placement without a search. Elements and vertices that the text leaves open go to the tiles of their
/// `within`, or to the first tiles.
fn linear_placement(graph: &Graph, machine: &Machine, room: f64) -> Placement {
    let mut placement = Placement::default();
    let first = TileRange { first: 0, count: search::least_reach(graph.vars.values(), machine, room) };
    let mut next: FxHashMap<TileRange, linear::Cursor> = FxHashMap::default();
    for (id, var) in &graph.vars {
        let tiles = var.within.unwrap_or(first);
        let next = next.entry(tiles).or_insert_with(|| linear::Cursor::new(tiles));
        placement.vars[id] = Some(next.place(var));
    }
    let ids: Vec<FamilyId> = graph.families.keys().collect();
    let maps = par_map_slice(&ids, |&id| {
        let family = &graph.families[id];
        let beside = || linear::beside(graph, family, |v| placement.vars[v].as_ref());
        family.tile.clone().unwrap_or_else(|| regions::kept_within(beside(), family))
    });
    for (id, map) in ids.into_iter().zip(maps) {
        placement.families[id] = Some(map);
    }
    placement
}

#[cfg(test)]
mod tests;
