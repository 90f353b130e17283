//! A sample of a compute set's tiles, and the time of the vertices on the slowest tile.
//!
//! Invariant: a set with few vertices or few tiles is sampled completely. Otherwise the sample contains the tile with
//! the most vertices.

use super::accesses::{FamilyAccess, VertexTimes};
use girder_codelet::cost::{Busy, TileCosts, TileQueue, equal_vertices};
use girder_ir::family::TileMap;
use rustc_hash::FxHashMap;

/// The number of vertices up to which all are sampled.
const FEW: u64 = 128;
/// The number of sampled tiles if there are more vertices: pairs, whose tiles may take a stream together.
const TILES: usize = 16;
/// The number of sampled vertices of a family on one tile.
const DEPTH: usize = 64;
/// The number of vertices from which on a tile map is inverted instead of evaluated for each vertex.
const MANY: u64 = 1 << 14;

/// The sampled tiles of one compute set.
pub(super) struct Sample {
    pub tiles: Vec<SampledTile>,
    /// The number of tiles that have vertices.
    pub used: u32,
    /// The number of tiles that each sampled tile stands for.
    pub ratio: f64,
    /// The cycles of the slowest tile; 0 if the text places all vertices, because the time is then always the same.
    pub cycles: u64,
    /// The number of vertices and tiles that were examined.
    pub work: u64,
}

/// The sampled vertices of one tile.
#[derive(Default)]
pub(super) struct SampledTile {
    pub tile: u32,
    /// The vertices, as (index of the family in the set, instance).
    pub vertices: Vec<(u32, u32)>,
    /// The number of vertices that each stands for.
    pub each: f64,
}

/// The tiles of a family's vertices.
#[derive(Clone, Copy)]
pub(super) enum Tiles<'a> {
    Map(&'a TileMap),
    Table(&'a [u32]),
}

impl Tiles<'_> {
    pub(super) fn at(self, vertices: &FamilyAccess, instance: u32) -> u32 {
        match self {
            Tiles::Map(map) => map.at(&vertices.family.domain, u64::from(instance)),
            Tiles::Table(tiles) => tiles[instance as usize],
        }
    }

    fn each(self, vertices: &FamilyAccess, mut f: impl FnMut(u32, u32)) {
        match self {
            Tiles::Map(map) => map.iter(&vertices.family.domain).zip(0..).for_each(|(t, i)| f(i, t)),
            Tiles::Table(tiles) => tiles.iter().zip(0..).for_each(|(&t, i)| f(i, t)),
        }
    }
}

/// Returns the positions of half of the sampled tiles in a list, from the first to the last.
fn spaced(length: usize) -> impl Iterator<Item = usize> {
    (0..TILES / 2).map(move |k| k * (length - 1) / (TILES / 2 - 1))
}

impl Sample {
    pub(super) fn of(families: &[FamilyAccess], tiles: &[Tiles], costs: &TileCosts) -> Sample {
        let total: u64 = families.iter().map(|v| v.family.domain.count()).sum();
        let given = tiles.iter().all(|t| matches!(t, Tiles::Map(_)));
        if given && total >= MANY && tiles.iter().all(|t| matches!(t, Tiles::Map(TileMap::Separable { .. }))) {
            return Sample::backwards(families, tiles);
        }
        // The list ends at the last tile in use, not at the last of the machine.
        let mut counts: Vec<u32> = vec![];
        for (vertices, tiles) in families.iter().zip(tiles) {
            tiles.each(vertices, |_, tile| {
                if tile as usize >= counts.len() {
                    counts.resize(tile as usize + 1, 0);
                }
                counts[tile as usize] += 1;
            });
        }
        let used: Vec<u32> = (0..counts.len() as u32).filter(|&t| counts[t as usize] > 0).collect();
        let fullest = used.iter().copied().max_by_key(|&t| (counts[t as usize], std::cmp::Reverse(t)));
        let all = total <= FEW || used.len() <= TILES;
        let mut chosen = match all {
            true => used.clone(),
            false => spaced(used.len()).map(|k| used[k]).collect(),
        };
        chosen.extend(fullest);
        let is_used = |tile: u32| counts.get(tile as usize).is_some_and(|&n| n > 0);
        chosen.extend_from_within(..);
        let partners = chosen.len() / 2;
        chosen[partners..].iter_mut().for_each(|tile| *tile ^= u32::from(is_used(*tile ^ 1)));
        chosen.sort_unstable();
        chosen.dedup();
        let place: FxHashMap<u32, usize> = chosen.iter().copied().zip(0..).collect();
        let looked = |&tile: &u32| SampledTile { tile, vertices: vec![], each: 1.0 };
        let mut found: Vec<SampledTile> = chosen.iter().map(looked).collect();
        // From here on, counts only mark the sampled tiles.
        let most = counts.iter().copied().max().unwrap_or(0);
        let mut wanted = vec![false; counts.len()];
        chosen.iter().for_each(|&t| wanted[t as usize] = true);
        for (f, (vertices, tiles)) in families.iter().zip(tiles).enumerate() {
            tiles.each(vertices, |instance, tile| {
                if wanted[tile as usize] {
                    found[place[&tile]].vertices.push((f as u32, instance));
                }
            });
        }
        for looked in &mut found {
            let n = looked.vertices.len();
            if n > 2 * DEPTH {
                looked.vertices.truncate(DEPTH);
                looked.each = n as f64 / DEPTH as f64;
            }
        }
        let cycles = if given { 0 } else { slowest_tile(families, tiles, u64::from(most), counts.len(), costs) };
        let ratio = if all { 1.0 } else { used.len() as f64 / found.len() as f64 };
        let work = (total + counts.len() as u64) / 16;
        Sample { tiles: found, used: used.len() as u32, ratio, cycles, work }
    }

    /// Samples tile maps that the text gives in closed form: some vertices give tiles, and the inverse maps give the
    /// vertices on these tiles.
    fn backwards(families: &[FamilyAccess], tiles: &[Tiles]) -> Sample {
        let mut chosen: Vec<u32> = vec![];
        for (vertices, tiles) in families.iter().zip(tiles) {
            let last = vertices.family.domain.count() - 1;
            let some = (TILES / 2 / families.len()).max(2) as u64;
            chosen.extend((0..some).map(|k| tiles.at(vertices, (k * last / (some - 1)) as u32)));
        }
        let partners: Vec<u32> = chosen.iter().map(|tile| tile ^ 1).collect();
        chosen.extend(partners);
        chosen.sort_unstable();
        chosen.dedup();
        let on = |&tile: &u32| {
            let mut looked = SampledTile { tile, vertices: vec![], each: 1.0 };
            let (mut all, mut some) = (0, 0);
            for (f, (vertices, tiles)) in families.iter().zip(tiles).enumerate() {
                let Tiles::Map(map) = tiles else { continue };
                let instances = map.instances_on(&vertices.family.domain, tile);
                all += instances.len();
                some += instances.len().min(DEPTH);
                looked.vertices.extend(instances.iter().take(DEPTH).map(|&i| (f as u32, i as u32)));
            }
            looked.each = all as f64 / some.max(1) as f64;
            looked
        };
        let total: u64 = families.iter().map(|v| v.family.domain.count()).sum();
        let found: Vec<SampledTile> = chosen.iter().map(on).filter(|tile| !tile.vertices.is_empty()).collect();
        let seen: f64 = found.iter().map(|l| l.vertices.len() as f64 * l.each).sum();
        let used = (total as f64 / seen * found.len() as f64).round().clamp(1.0, total.max(1) as f64);
        Sample { ratio: used / found.len() as f64, used: used as u32, tiles: found, cycles: 0, work: DEPTH as u64 }
    }
}

/// Returns the cycles of the slowest of the first `count` tiles; the fullest tile has `most` vertices.
fn slowest_tile(families: &[FamilyAccess], tiles: &[Tiles], most: u64, count: usize, costs: &TileCosts) -> u64 {
    let mut kinds = families.iter().map(|v| match &v.busy {
        VertexTimes::Equal(busy) => Some(busy),
        VertexTimes::Each(_) => None,
    });
    if let Some(Some(first)) = kinds.next()
        && kinds.all(|k| k == Some(first))
    {
        return equal_vertices(most, first, costs);
    }
    let mut queues = Queues::new(count, costs);
    for (vertices, tiles) in families.iter().zip(tiles) {
        tiles.each(vertices, |instance, tile| queues.start(tile, vertices.busy.of(instance)));
    }
    queues.cycles(costs)
}

/// The queues of all tiles.
struct Queues {
    workers: usize,
    tiles: Vec<TileQueue>,
    /// The time at which each context of each tile becomes free.
    ends: Vec<u64>,
}

impl Queues {
    fn new(tiles: usize, costs: &TileCosts) -> Queues {
        let workers = costs.workers.max(1) as usize;
        Queues { workers, tiles: vec![TileQueue::default(); tiles], ends: vec![0; tiles * workers] }
    }

    /// Starts the next vertex of a tile.
    fn start(&mut self, tile: u32, vertex: &Busy) {
        let at = tile as usize;
        self.tiles[at].start(vertex, &mut self.ends[at * self.workers..(at + 1) * self.workers]);
    }

    /// Returns the cycles of the tile that takes longest.
    fn cycles(&self, costs: &TileCosts) -> u64 {
        let tiles = self.tiles.iter().zip(self.ends.chunks(self.workers));
        tiles.map(|(queue, ends)| queue.cycles(ends, costs)).max().unwrap_or(0)
    }
}
