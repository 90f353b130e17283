//! `place-tiles`: a tile for every element and every vertex that the text leaves open.
//!
//! What the text maps stays where it is. Elements of a variable that are open are spread linearly: at least 128 bytes
//! to a tile, whole granules of 8 bytes together, variables that need few tiles one after the other over the machine.
//! A vertex without a tile runs where the first element of its first output is.
//!
//! Invariant: the result depends on ids and the machine only, and a second run changes nothing.

use crate::PassContext;
use girder_ir::codelet::Dir;
use girder_ir::family::{Domain, Family, Field, TileMap};
use girder_ir::graph::{Graph, Var};
use girder_ir::ids::FamilyId;
use girder_ir::placement::{Mapping, Placement, TileRun, UNPLACED};
use girder_ir::stage::Placed;
use girder_machine::Machine;
use girder_source::{Diagnostic, OriginId, Result, par_map_slice};

mod verify;

pub use verify::verify_placement;

/// Its flag.
pub const NAME: &str = "place-tiles";
/// What it does.
pub const SENTENCE: &str = "gives every element and every vertex a tile that the text leaves open";

/// The least number of bytes of a spread variable on a tile.
const BYTES_PER_TILE: u64 = 128;
/// Bytes that stay together: the phase of a layout.
const GRAIN_BYTES: u32 = 8;

/// Places a graph.
pub fn run(graph: Graph, cx: &mut PassContext) -> Result<Placed> {
    let mut placement = Placement::default();
    let mut next = Cursor { tile: 0, tiles: cx.machine.tiles() };
    let mut fits = true;
    for (id, var) in &graph.vars {
        let given = var.mapping.as_ref().filter(|m| **m != Mapping::One(UNPLACED));
        if let Some(tile) = given.and_then(|m| mapping_outside(m, var.len(), cx.machine)) {
            fits &= no_such_tile(&graph, cx, &format!("`{}`", var.name), tile, var.origin);
        }
        placement.vars[id] = Some(match given {
            Some(mapping) if mapping.is_complete() => mapping.clone(),
            Some(mapping) => fill(var, mapping, &mut next),
            None => next.spread(var.len(), var.ty.bytes()),
        });
    }
    for family in graph.families.values() {
        if let Some(tile) = family.tile.as_ref().and_then(|m| tiles_outside(m, &family.domain, cx.machine)) {
            let what = format!("a vertex of `{}`", graph.codelets[family.codelet].name);
            fits &= no_such_tile(&graph, cx, &what, tile, family.origin);
        }
    }
    if !fits {
        return Err(girder_source::Failed);
    }
    let ids: Vec<FamilyId> = graph.families.keys().collect();
    let maps = par_map_slice(&ids, |&id| {
        let family = &graph.families[id];
        family.tile.clone().unwrap_or_else(|| beside_output(&graph, &placement, family))
    });
    for (id, map) in ids.into_iter().zip(maps) {
        placement.families[id] = Some(map);
    }
    Ok(Placed { graph, placement })
}

/// Where the next variable that needs few tiles begins.
struct Cursor {
    tile: u32,
    tiles: u32,
}

impl Cursor {
    /// A linear mapping of `len` elements.
    fn spread(&mut self, len: u64, elem_bytes: u32) -> Mapping {
        let tiles = (len * elem_bytes as u64 / BYTES_PER_TILE).clamp(1, self.tiles as u64) as u32;
        if len == 0 {
            return Mapping::One(0);
        }
        if self.tile + tiles > self.tiles {
            self.tile = 0;
        }
        let first = self.tile;
        self.tile = (first + tiles) % self.tiles;
        match tiles {
            1 => Mapping::One(first),
            _ => Mapping::Linear { first, tiles, grain: (GRAIN_BYTES / elem_bytes).max(1) },
        }
    }
}

/// Completes a mapping: what is open is spread as if it were a variable of its own.
fn fill(var: &Var, mapping: &Mapping, next: &mut Cursor) -> Mapping {
    let len = var.len();
    let open: u64 = mapping.runs(len).filter(|r| r.2 == UNPLACED).map(|r| r.1 - r.0).sum();
    let spread = next.spread(open, var.ty.bytes());
    let mut rest = spread.runs(open).map(|r| (r.1 - r.0, r.2));
    let mut at: Option<(u64, u32)> = rest.next();
    let mut runs: Vec<TileRun> = vec![];
    for (mut start, end, tile) in mapping.runs(len) {
        if tile != UNPLACED {
            runs.push((start, end, tile));
            continue;
        }
        while let (true, Some((left, tile))) = (start < end, at) {
            let taken = left.min(end - start);
            runs.push((start, start + taken, tile));
            start += taken;
            at = if taken < left { Some((left - taken, tile)) } else { rest.next() };
        }
    }
    Mapping::fit(&var.shape, &runs)
}

/// The tiles where the first elements of a family's first output are.
fn beside_output(graph: &Graph, placement: &Placement, family: &Family) -> TileMap {
    let codelet = &graph.codelets[family.codelet];
    let rank = |f: &&Field| match codelet.fields[f.field].dir {
        Dir::Out => 0,
        Dir::InOut => 1,
        Dir::In | Dir::Const => 2,
    };
    let Some(field) = family.fields.iter().filter(|f| !f.is_empty()).min_by_key(rank) else {
        return TileMap::one(0);
    };
    // A field that is not empty has an element at digits (0, …, 0), and the part that holds it begins there.
    let Some(part) = field.parts.iter().find(|p| p.lo.iter().all(|&lo| lo == 0)) else {
        return TileMap::one(0);
    };
    let len = graph.vars[part.var].len();
    match placement.vars[part.var].as_ref() {
        None => TileMap::one(0),
        Some(Mapping::One(tile)) => TileMap::one(*tile),
        Some(mapping) => {
            let first = part.offset.values(&family.domain);
            let tiles: Vec<u32> = first.map(|e| mapping.tile_of(len, e as u64)).collect();
            TileMap::fit(&family.domain, &tiles)
        }
    }
}

/// Reports a tile that the machine does not have; `false`.
fn no_such_tile(graph: &Graph, cx: &mut PassContext, what: &str, tile: i64, origin: OriginId) -> bool {
    let (name, tiles) = (&cx.machine.name, cx.machine.tiles());
    let message = format!("{what} is placed on tile {tile}, but `{name}` has {tiles} tiles");
    let help = format!("use tiles 0 to {}, or take a larger `--target`", tiles - 1);
    cx.diagnostics.push(Diagnostic::error("place::no_such_tile", graph.origins.span(origin), message).help(help));
    false
}

/// A tile of a mapping that the machine does not have.
fn mapping_outside(mapping: &Mapping, len: u64, machine: &Machine) -> Option<i64> {
    if let Mapping::Separable { domain, tiles } = mapping {
        return tiles_outside(tiles, domain, machine);
    }
    mapping.max_tile(len).filter(|&t| t >= machine.tiles()).map(|t| t as i64)
}

/// A tile of a map over a domain that the machine does not have.
fn tiles_outside(map: &TileMap, domain: &Domain, machine: &Machine) -> Option<i64> {
    if domain.count() == 0 {
        return None;
    }
    let (lo, hi) = match map {
        TileMap::Table(t) => {
            let placed = || t.iter().copied().filter(|&t| t != UNPLACED);
            (placed().min()? as i64, placed().max()? as i64)
        }
        TileMap::Separable { base, terms } => {
            let last = terms.iter().map(|t| t.stride as i64 * (t.part.count(domain.0[t.dim as usize]) as i64 - 1));
            let base = *base as i64;
            last.fold((base, base), |(lo, hi), l| (lo + l.min(0), hi + l.max(0)))
        }
    };
    if lo < 0 {
        return Some(lo);
    }
    Some(hi).filter(|&t| t >= machine.tiles() as i64)
}

#[cfg(test)]
mod tests;
