//! Regions: the open vertices and variables of a graph, by the tiles among which the text wants them.
//!
//! # Note: Regions
//! Everything inside one `on place { … }` is one region, and everything outside is the region of all tiles. Each region
//! has a search of its own, during which the vertices of the others stay. Small regions come first, because larger ones
//! can adapt to them. A variable without a region of its own takes part in the search of each region that uses it, so
//! the parts of one that several processors share follow the vertices of each.
//!
//! Invariants: each open vertex is in exactly one region, and each open variable in at least one. A graph without
//! `within` has one region.

use super::accesses::{Access, Item};
use super::given;
use cranelift_entity::SecondaryMap;
use girder_ir::family::{Family, TileMap};
use girder_ir::graph::{Graph, Var};
use girder_ir::ids::{ComputeSetId, FamilyId, VarId};
use girder_ir::placement::TileRange;
use girder_machine::Machine;
use std::collections::BTreeMap;

/// See the module.
pub(super) struct Region {
    pub tiles: TileRange,
    /// The variables that are open at least in part, ascending.
    pub vars: Vec<VarId>,
    /// The compute sets with open vertices, ascending.
    pub sets: Vec<ComputeSetId>,
    /// The families of the open vertices.
    pub families: SecondaryMap<FamilyId, bool>,
}

/// Returns all tiles of a machine.
pub(super) fn all_tiles(machine: &Machine) -> TileRange {
    TileRange { first: 0, count: machine.tiles() }
}

/// Returns the regions in the order in which they are searched.
pub(super) fn regions(graph: &Graph, machine: &Machine, items: &[Item]) -> Vec<Region> {
    let all = all_tiles(machine);
    let mut found = Found::default();
    for (id, family) in graph.families.iter().filter(|f| f.1.tile.is_none()) {
        let region = found.region(family.within.unwrap_or(all));
        region.families[id] = true;
        if region.sets.last() != Some(&family.set) {
            region.sets.push(family.set);
        }
    }
    let users = users(graph, items, all);
    for (id, var) in graph.vars.iter().filter(|v| given::is_open(v.1)) {
        match (var.within, &users[id][..]) {
            (Some(tiles), _) => found.region(tiles).vars.push(id),
            (None, []) => found.region(all).vars.push(id),
            (None, users) => users.iter().for_each(|&tiles| found.region(tiles).vars.push(id)),
        }
    }
    found.0.into_values().collect()
}

/// Regions by size and first tile.
#[derive(Default)]
struct Found(BTreeMap<(u32, u32), Region>);

impl Found {
    fn region(&mut self, tiles: TileRange) -> &mut Region {
        let new = || Region { tiles, vars: vec![], sets: vec![], families: SecondaryMap::new() };
        self.0.entry((tiles.count, tiles.first)).or_insert_with(new)
    }
}

/// Returns the regions whose open vertices use each variable.
fn users(graph: &Graph, items: &[Item], all: TileRange) -> SecondaryMap<VarId, Vec<TileRange>> {
    let mut users: SecondaryMap<VarId, Vec<TileRange>> = SecondaryMap::new();
    for item in items {
        let Access::Set(_, families) = &item.what else { continue };
        for vertices in families.iter().filter(|v| v.family.tile.is_none()) {
            let tiles = vertices.family.within.unwrap_or(all);
            for part in vertices.fields.iter().flat_map(|f| &f.parts) {
                if graph.vars[part.var].within.is_none() && !users[part.var].contains(&tiles) {
                    users[part.var].push(tiles);
                }
            }
        }
    }
    users
}

/// Returns whether the vertices of a family stay among some tiles in every placement.
pub(super) fn vertices_stay(family: &Family, tiles: TileRange) -> bool {
    match &family.tile {
        Some(map) => map.iter(&family.domain).all(|tile| tiles.contains(tile)),
        None => family.within.is_some_and(|within| tiles.includes(within)),
    }
}

/// Returns whether the elements of a variable stay among some tiles in every placement.
pub(super) fn elements_stay(var: &Var, tiles: TileRange) -> bool {
    match (given::mapping(var), var.within) {
        (_, Some(within)) => tiles.includes(within),
        (Some(mapping), None) => mapping.runs(var.len()).all(|run| tiles.contains(run.2)),
        (None, None) => false,
    }
}

/// Returns the tile map if all its tiles are among some; otherwise, the vertices spread evenly over these.
pub(super) fn kept_within(map: TileMap, family: &Family) -> TileMap {
    let Some(within) = family.within else { return map };
    if map.iter(&family.domain).all(|tile| within.contains(tile)) {
        return map;
    }
    let count = family.domain.count();
    let tiles: Vec<u32> = (0..count).map(|k| spread_tile(within, k, count)).collect();
    TileMap::fit(&family.domain, &tiles)
}

/// Returns the tile of the `k`-th of `count` vertices that are spread evenly.
pub(super) fn spread_tile(tiles: TileRange, k: u64, count: u64) -> u32 {
    tiles.first + (k * u64::from(tiles.count).min(count) / count.max(1)) as u32
}
