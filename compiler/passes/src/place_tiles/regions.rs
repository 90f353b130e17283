//! Regions: the open vertices and variables of a graph, by the tiles among which the text wants them.
//!
//! # Note: Regions
//! Everything inside one `on place { … }` is one region. So are vertices outside whose variables, apart from small
//! ones, are all in one region of whole processors: the step of an optimiser is on the processor of its parameter.
//! Everything else is the region of all tiles. Each region has a search of its own, during which the vertices of the
//! others stay. Small regions come first, because larger ones can adapt to them. A variable without a region of its own
//! takes part in the search of each region that uses it, so the parts of one that several processors share follow the
//! vertices of each.
//!
//! Invariants: each open vertex is in exactly one region, and each open variable in at least one. A graph without
//! `within` has one region.

use super::accesses::{Access, FamilyAccess, Item};
use super::given;
use cranelift_entity::SecondaryMap;
use girder_ir::family::{Family, TileMap};
use girder_ir::graph::{Graph, Var};
use girder_ir::ids::{ComputeSetId, FamilyId, VarId};
use girder_ir::placement::TileRange;
use girder_machine::Machine;
use std::collections::BTreeMap;

/// A variable of so many elements may travel between processors for each vertex that reads it.
const SMALL: u64 = 64;

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
    let mut users = users_in_places(graph, items);
    let adopted = adopted(graph, machine, items, &users);
    for (id, family) in graph.families.iter().filter(|f| f.1.tile.is_none()) {
        let region = found.region(family.within.or(adopted[id]).unwrap_or(all));
        region.families[id] = true;
        if region.sets.last() != Some(&family.set) {
            region.sets.push(family.set);
        }
    }
    for vertices in open_vertices(items).filter(|v| v.family.within.is_none()) {
        let tiles = adopted[vertices.id].unwrap_or(all);
        for part in vertices.fields.iter().flat_map(|f| &f.parts) {
            use_in(&mut users, graph, part.var, tiles);
        }
    }
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

/// The regions that use each variable without a region of its own.
type Users = SecondaryMap<VarId, Vec<TileRange>>;

fn open_vertices<'i, 'g>(items: &'i [Item<'g>]) -> impl Iterator<Item = &'i FamilyAccess<'g>> {
    let families = |item: &'i Item<'g>| if let Access::Set(_, families) = &item.what { &families[..] } else { &[] };
    items.iter().flat_map(families).filter(|v| v.family.tile.is_none())
}

fn use_in(users: &mut Users, graph: &Graph, var: VarId, tiles: TileRange) {
    if graph.vars[var].within.is_none() && !users[var].contains(&tiles) {
        users[var].push(tiles);
    }
}

/// Returns the regions of the vertices in places that use each variable, and of the variables in places that are copied
/// from it or to it.
fn users_in_places(graph: &Graph, items: &[Item]) -> Users {
    let mut users = Users::new();
    for vertices in open_vertices(items) {
        let Some(tiles) = vertices.family.within else { continue };
        for part in vertices.fields.iter().flat_map(|f| &f.parts) {
            use_in(&mut users, graph, part.var, tiles);
        }
    }
    for item in items {
        let Access::Copy(slices) = &item.what else { continue };
        for slice in slices {
            for (var, other) in [(slice.to.0, slice.from.0), (slice.from.0, slice.to.0)] {
                if let Some(tiles) = graph.vars[other].within {
                    use_in(&mut users, graph, var, tiles);
                }
            }
        }
    }
    users
}

/// Returns the region of each family outside of all places whose variables are all in one region of whole processors,
/// apart from small ones: the step of an optimiser belongs to the processor of its parameter.
fn adopted(
    graph: &Graph,
    machine: &Machine,
    items: &[Item],
    users: &Users,
) -> SecondaryMap<FamilyId, Option<TileRange>> {
    let mut adopted = SecondaryMap::new();
    let region = |var: VarId| match (graph.vars[var].within, &users[var][..]) {
        (Some(tiles), _) => Some(tiles),
        (None, &[tiles]) => Some(tiles),
        _ => None,
    };
    for vertices in open_vertices(items).filter(|v| v.family.within.is_none()) {
        let parts = vertices.fields.iter().flat_map(|f| &f.parts);
        let mut regions = vec![];
        for part in parts {
            let found = region(part.var);
            if found.is_some() || graph.vars[part.var].len() > SMALL {
                regions.push(found);
            }
        }
        if let [Some(first), others @ ..] = &regions[..]
            && others.iter().all(|other| *other == Some(*first))
            && first.count.is_multiple_of(machine.chip.tiles)
        {
            adopted[vertices.id] = Some(*first);
        }
    }
    adopted
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
