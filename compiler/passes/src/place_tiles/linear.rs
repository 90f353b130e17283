//! The placement without a search: linear mappings, and vertices at their outputs.
//!
//! Invariant: whole granules of 8 bytes stay together, so no word of a spread variable lies on two tiles.

use super::text_placement;
use girder_ir::codelet::Dir;
use girder_ir::family::{Family, Field, FieldPart, TileMap};
use girder_ir::graph::{Graph, Var};
use girder_ir::ids::VarId;
use girder_ir::placement::{Mapping, TileRange, TileRun, UNPLACED};

/// The least number of bytes of a spread variable on a tile, by default.
pub(super) const BYTES_PER_TILE: u64 = 128;
/// The bytes that stay together, so that layouts keep their phase.
const GRAIN_BYTES: u32 = 8;

/// Returns the number of elements that stay together.
pub(super) fn grain(elem_bytes: u32) -> u32 {
    (GRAIN_BYTES / elem_bytes).max(1)
}

/// Returns the mapping of `len` elements over neighbouring tiles from `first` on.
pub(super) fn spread(len: u64, elem_bytes: u32, first: u32, tiles: u32) -> Mapping {
    let grain = grain(elem_bytes);
    let tiles = u64::from(tiles).min(len.div_ceil(u64::from(grain))) as u32;
    if tiles <= 1 { Mapping::One(first) } else { Mapping::Linear { first, tiles, grain } }
}

/// Returns the number of tiles that hold `len` elements if each holds at least `least` bytes.
pub(super) fn tiles_for(len: u64, elem_bytes: u32, least: u64, most: u32) -> u32 {
    (len * u64::from(elem_bytes) / least).clamp(1, u64::from(most)) as u32
}

/// The tile where the next variable that needs few tiles begins. Variables go around the machine.
pub(super) struct Cursor {
    /// Counted from the first of `tiles`.
    tile: u32,
    tiles: TileRange,
}

impl Cursor {
    pub(super) fn new(tiles: TileRange) -> Cursor {
        Cursor { tile: 0, tiles }
    }

    /// Returns the mapping of a variable: that of the text, completed with the next tiles.
    pub(super) fn place(&mut self, var: &Var) -> Mapping {
        match text_placement::mapping(var) {
            Some(mapping) if mapping.is_complete() => mapping.clone(),
            Some(mapping) if text_placement::few_are_open(mapping, var) => with_neighbours(mapping, var),
            Some(mapping) => {
                let spread = self.next(open_elements(mapping, var.len()), var.ty.bytes());
                fill(var, mapping, &spread)
            }
            None => self.next(var.len(), var.ty.bytes()),
        }
    }

    fn next(&mut self, len: u64, elem_bytes: u32) -> Mapping {
        if len == 0 {
            return Mapping::One(self.tiles.first);
        }
        let all = self.tiles.count;
        let tiles = tiles_for(len, elem_bytes, BYTES_PER_TILE, all);
        if self.tile + tiles > all {
            self.tile = 0;
        }
        let first = self.tiles.first + self.tile;
        self.tile = (self.tile + tiles) % all;
        spread(len, elem_bytes, first, tiles)
    }
}

/// Returns the number of elements without a tile.
pub(super) fn open_elements(mapping: &Mapping, len: u64) -> u64 {
    mapping.runs(len).filter(|r| r.2 == UNPLACED).map(|r| r.1 - r.0).sum()
}

/// Completes a mapping: open elements go with those before them, the first with those after.
fn with_neighbours(mapping: &Mapping, var: &Var) -> Mapping {
    let mut runs: Vec<TileRun> = mapping.runs(var.len()).collect();
    for k in 1..runs.len() {
        runs[k].2 = if runs[k].2 == UNPLACED { runs[k - 1].2 } else { runs[k].2 };
    }
    if let [first, second, ..] = &mut runs[..]
        && first.2 == UNPLACED
    {
        first.2 = second.2;
    }
    Mapping::fit(&var.shape, runs)
}

/// Completes a mapping: open elements are placed in order, as `spread` places a variable of that length.
pub(super) fn fill(var: &Var, mapping: &Mapping, spread: &Mapping) -> Mapping {
    let len = var.len();
    let mut rest = spread.runs(open_elements(mapping, len)).map(|r| (r.1 - r.0, r.2));
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
    Mapping::fit(&var.shape, runs)
}

/// Returns the part that holds the first element of a family's first output (or else `inout` field, or else input).
pub(super) fn first_output<'a>(graph: &Graph, family: &'a Family) -> Option<&'a FieldPart> {
    let codelet = &graph.codelets[family.codelet];
    let rank = |f: &&Field| match codelet.fields[f.field].dir {
        Dir::Out => 0,
        Dir::InOut => 1,
        Dir::In | Dir::Const => 2,
    };
    let field = family.fields.iter().filter(|f| !f.is_empty()).min_by_key(rank)?;
    // A field that is not empty has an element at digits (0, …, 0), and the part that holds it begins there.
    field.parts.iter().find(|p| p.lo.iter().all(|&lo| lo == 0))
}

/// Returns the tiles of the first elements of a family's first output.
pub(super) fn beside<'m>(graph: &Graph, family: &Family, mapping: impl Fn(VarId) -> Option<&'m Mapping>) -> TileMap {
    let Some(part) = first_output(graph, family) else { return TileMap::one(0) };
    let len = graph.vars[part.var].len();
    match mapping(part.var) {
        None => TileMap::one(0),
        Some(Mapping::One(tile)) => TileMap::one(*tile),
        Some(mapping) => {
            let first = part.offset.values(&family.domain);
            let tiles: Vec<u32> = first.map(|e| mapping.tile_of(len, e as u64)).collect();
            TileMap::fit(&family.domain, &tiles)
        }
    }
}
