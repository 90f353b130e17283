//! The placement of the chosen candidate, in closed form where possible.
//!
//! Invariant: tiles are those of the candidate, except that narrow elements of one granule lie on one tile.

use super::candidate::Candidate;
use super::homes::Home;
use super::owners::Owners;
use super::problem::PlacementProblem;
use girder_ir::family::TileMap;
use girder_ir::graph::{Graph, Var};
use girder_ir::ids::VarId;
use girder_ir::placement::{Mapping, Placement, TileRun};
use girder_source::{par_map_slice, par_map_uneven};

/// Returns the placement of a candidate.
pub(super) fn finish(
    graph: &Graph,
    placement: &Placement,
    problem: &PlacementProblem,
    candidate: &Candidate,
) -> Placement {
    let mut placement = placement.clone();
    let open = graph.families.iter().filter(|(_, f)| f.tile.is_none()).map(|(id, _)| id);
    let moved: Vec<_> = open.filter_map(|id| Some((id, candidate.table(id)?))).collect();
    let maps = par_map_slice(&moved, |&(id, tiles)| TileMap::fit(&graph.families[id].domain, tiles));
    for ((id, _), map) in moved.into_iter().zip(maps) {
        placement.families[id] = Some(map);
    }
    let moved: Vec<VarId> = problem.open_vars.iter().copied().filter(|&v| candidate.vars[v].is_some()).collect();
    let mappings =
        par_map_uneven(&moved, |&id| graph.vars[id].len(), |&id| mapping(&graph.vars[id], id, candidate, &placement));
    for (id, mapping) in moved.into_iter().zip(mappings) {
        placement.vars[id] = Some(mapping);
    }
    placement
}

/// Returns the mapping of a variable in a candidate.
fn mapping(var: &Var, id: VarId, candidate: &Candidate, placement: &Placement) -> Mapping {
    if var.is_empty() {
        return Mapping::One(0);
    }
    match &candidate.homes[id] {
        Home::Even(even) => return even.mapping(),
        Home::Owned(owners, _) => {
            if let Owners::Closed(closed) = &**owners
                && owners.is_long()
                && closed.block * u64::from(var.ty.bytes()) % 4 == 0
                && let Some((domain, tiles)) = placement.families[closed.family].as_ref().and_then(|m| closed.tiles(m))
            {
                return Mapping::Separable { domain, tiles };
            }
        }
        _ => {}
    }
    let runs = candidate.all_runs(id, var.len());
    let runs: Vec<TileRun> = runs.into_iter().map(|r| (r.start, r.end, r.tile)).collect();
    Mapping::fit(&var.shape, whole_granules(var, runs))
}

/// Moves the ends of runs to whole words, so that narrow elements of one granule lie on one tile.
fn whole_granules(var: &Var, mut runs: Vec<TileRun>) -> Vec<TileRun> {
    let granule = (4 / u64::from(var.ty.bytes())).max(1);
    if granule > 1 && var.mapping.is_none() {
        let mut start = 0;
        for run in &mut runs {
            let end = run.1.next_multiple_of(granule).min(var.len());
            (run.0, run.1) = (std::mem::replace(&mut start, end), end);
        }
        runs.retain(|r| r.0 < r.1);
    }
    runs
}
