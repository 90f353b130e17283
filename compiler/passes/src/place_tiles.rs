//! `place-tiles`: a tile for every element and every vertex that the text leaves open.
//!
//! What the text maps stays where it is. First everything is placed as costs nothing to decide (module `linear`):
//! variables evenly, at least 128 bytes to a tile, whole granules of 8 bytes together, those that need few tiles one after
//! the other over the machine; a vertex where the first element of its first output is. Then other placements are tried,
//! and the one that takes the least time is kept (module `search`).
//!
//! # Note: Time
//! The time of a placement is the sum over steps of executions (`often`) times an estimate (`estimate`) that has the
//! parts of modelled time: syncs, the load of the fullest port and the latency of an exchange, on-tile copies, and the
//! contexts of the tile whose vertices take longest. It is summed from the runs of elements that vertices, copies and
//! packets touch (`accesses`), without a plan or a schedule. Tiles' memory is checked as if all variables were alive
//! together, and their code (`code`).
//!
//! # Note: Cost
//! The pass is to take a few milliseconds, whatever the program. Steps that the text places altogether are left out. Of
//! the others an estimate looks at some tiles that stand for all (`sample`). Variables follow vertices by a table of
//! owners that does not depend on places (`owners`), so that a placement to try is little more than the tiles of its
//! vertices. And the search stops when it has looked at as much as the program's size allows.
//!
//! Invariant: the result depends on the graph and the machine only, and a second run changes nothing.

use crate::PassContext;
use crate::pass::{Pass, Verdict};
use girder_ir::graph::Graph;
use girder_ir::ids::FamilyId;
use girder_ir::placement::Placement;
use girder_ir::stage::Placed;
use girder_source::{Failed, Result, par_map_slice};

mod accesses;
mod bench;
mod code;
mod estimate;
mod given;
mod homes;
mod linear;
mod often;
mod owners;
mod sample;
mod search;
mod spread;
mod traffic;
mod trial;
mod verify;

pub use verify::verify_placement;

/// See the module.
pub struct PlaceTiles;

impl Pass for PlaceTiles {
    const NAME: &'static str = "place-tiles";
    const SENTENCE: &'static str = "gives every element and every vertex a tile that the text leaves open";
    type From = Graph;
    type To = Placed;

    /// Places a graph.
    fn run(graph: Graph, cx: &mut PassContext) -> Result<Placed> {
        if !(given::check(&graph, cx) && given::fits(&graph, cx)) {
            return Err(Failed);
        }
        let placement = linear_placement(&graph, search::least_reach(&graph, cx.machine));
        let placement = search::improve(&graph, placement, cx.machine, &cx.session.cancel);
        cx.poll()?;
        Ok(Placed { graph, placement })
    }

    fn verify(placed: &Placed, cx: &PassContext) -> Verdict {
        verify_placement(placed, &placed.placement, cx.machine)
    }
}

/// The placement that costs nothing to decide, of what the text leaves open on the first `tiles`.
fn linear_placement(graph: &Graph, tiles: u32) -> Placement {
    let mut placement = Placement::default();
    let mut next = linear::Cursor::new(tiles);
    for (id, var) in &graph.vars {
        placement.vars[id] = Some(next.place(var));
    }
    let ids: Vec<FamilyId> = graph.families.keys().collect();
    let maps = par_map_slice(&ids, |&id| {
        let family = &graph.families[id];
        let beside = || linear::beside(graph, family, |v| placement.vars[v].as_ref());
        family.tile.clone().unwrap_or_else(beside)
    });
    for (id, map) in ids.into_iter().zip(maps) {
        placement.families[id] = Some(map);
    }
    placement
}

#[cfg(test)]
mod tests;
