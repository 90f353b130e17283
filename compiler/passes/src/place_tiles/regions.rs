//! Regions: the open vertices and variables of a graph, by the tiles among which the text wants them.
//!
//! # Note: Regions
//! Everything inside one `on place { … }` is one region. So are vertices outside that write persistent variables of one
//! region of whole processors, or else read only variables of one, apart from small ones: the step of an optimiser is
//! on the processor of its parameter. What such vertices write belongs to the region too, so that they can follow one
//! another, and the slots of the optimiser are beside the parameter. Everything else is the region of all tiles. Each
//! region has a search of its own, during which the vertices of the others stay. Small regions come first, because
//! larger ones can adapt to them. A variable without a region of its own takes part in the search of each region that
//! uses it, so the parts of one that several processors share follow the vertices of each.
//!
//! Invariants: each open vertex is in exactly one region, and each open variable in at least one. A graph without
//! `within` has one region.

use super::accesses::{FamilyAccess, Item, StepAccess};
use super::text_placement;
use cranelift_entity::SecondaryMap;
use girder_ir::codelet::Dir;
use girder_ir::family::{Family, TileMap};
use girder_ir::graph::{Graph, Var};
use girder_ir::ids::{ComputeSetId, FamilyId, VarId};
use girder_ir::placement::TileRange;
use girder_machine::Machine;
use std::collections::BTreeMap;

/// A vertex that reads a variable without a region joins a region only if the variable has at most this many elements.
const SMALL: u64 = 64;

/// The length of the longest chain of steps that is followed from a region.
const ROUNDS: usize = 16;

/// Tiles, and the open vertices and variables that the text wants among them.
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
    let mut found = FoundRegions::default();
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
    for (id, var) in graph.vars.iter().filter(|v| text_placement::is_open(v.1)) {
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
struct FoundRegions(BTreeMap<(u32, u32), Region>);

impl FoundRegions {
    fn region(&mut self, tiles: TileRange) -> &mut Region {
        let new = || Region { tiles, vars: vec![], sets: vec![], families: SecondaryMap::new() };
        self.0.entry((tiles.count, tiles.first)).or_insert_with(new)
    }
}

/// The regions that use each variable without a region of its own.
type Users = SecondaryMap<VarId, Vec<TileRange>>;

fn open_vertices<'i, 'g>(items: &'i [Item<'g>]) -> impl Iterator<Item = &'i FamilyAccess<'g>> {
    let families = |item: &'i Item<'g>| if let StepAccess::Set(_, families) = &item.what { &families[..] } else { &[] };
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
        let StepAccess::Copy(slices) = &item.what else { continue };
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

/// The region of each family outside all places that belongs to a region of whole processors.
type Adopted = SecondaryMap<FamilyId, Option<TileRange>>;

/// Returns the region of each family outside all places that belongs to a region of whole processors. An example is the
/// step of an optimiser, which belongs to the processor of its parameter. See the note on regions.
fn adopted(graph: &Graph, machine: &Machine, items: &[Item], users: &Users) -> Adopted {
    let mut adopted = Adopted::new();
    // The regions of variables that only steps outside of all places use, by the steps that write them.
    let mut written: SecondaryMap<VarId, Vec<TileRange>> = SecondaryMap::new();
    for _ in 0..ROUNDS {
        let region = |var: VarId| match (graph.vars[var].within, &users[var][..], &written[var][..]) {
            (Some(tiles), ..) | (None, &[tiles], _) | (None, [], &[tiles]) => Some(tiles),
            _ => None,
        };
        let open = open_vertices(items).filter(|v| v.family.within.is_none() && adopted[v.id].is_none());
        let whole = |tiles: &TileRange| tiles.count.is_multiple_of(machine.chip.tiles);
        let found: Vec<(&FamilyAccess, TileRange)> =
            open.filter_map(|v| Some((v, region_of(graph, v, region).filter(whole)?))).collect();
        if found.is_empty() {
            break;
        }
        for (vertices, tiles) in found {
            adopted[vertices.id] = Some(tiles);
            for part in vertices.fields.iter().filter(|f| f.dir != Dir::In).flat_map(|f| &f.parts) {
                if users[part.var].is_empty() && !written[part.var].contains(&tiles) {
                    written[part.var].push(tiles);
                }
            }
        }
    }
    adopted
}

/// Returns the region of a family: that of the persistent variables that it writes, or else that of all of its
/// variables that are not small. What it writes may have none.
fn region_of(graph: &Graph, vertices: &FamilyAccess, region: impl Fn(VarId) -> Option<TileRange>) -> Option<TileRange> {
    let all = || vertices.fields.iter().flat_map(|f| f.parts.iter().map(move |p| (f.dir != Dir::In, p.var)));
    let same = |regions: Vec<Option<TileRange>>| match &regions[..] {
        [Some(first), others @ ..] if others.iter().all(|other| *other == Some(*first)) => Some(*first),
        _ => None,
    };
    let is_kept = |var: VarId| graph.vars[var].is_persistent() && region(var).is_some();
    let kept: Vec<_> = all().filter(|&(writes, var)| writes && is_kept(var)).map(|(_, var)| region(var)).collect();
    if !kept.is_empty() {
        return same(kept);
    }
    let counts = |&(writes, var): &(bool, VarId)| region(var).is_some() || (!writes && graph.vars[var].len() > SMALL);
    same(all().filter(counts).map(|(_, var)| region(var)).collect())
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
    match (text_placement::mapping(var), var.within) {
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
