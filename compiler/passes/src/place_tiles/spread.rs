//! The open vertices of a compute set over a number of tiles, each tile with its share of the work.
//!
//! # Note: Orders
//! Vertices that are neighbours in the order share a tile or have neighbouring tiles. `Text` is the order of the text,
//! `Rows` that of the first elements of their outputs (as a share of the variable, so that outputs of equal shape are
//! laid out alike), and `Blocks` cuts the outputs of rank 2 and more in two where they are longest, and the tiles with
//! them, until a part has one tile: the parts are nearly square, so their edges are short.
//!
//! Invariant: the spread is a function of the graph, the order and the number of tiles.

use super::accesses::Vertices;
use super::linear::first_output;
use girder_codelet::cost::Busy;
use girder_ir::graph::Graph;
use girder_ir::ids::FamilyId;
use smallvec::SmallVec;
use std::sync::Arc;

/// How vertices follow each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Order {
    Text,
    Rows,
    Blocks,
}

/// A vertex to be placed.
struct Site {
    /// Index of its family among those to be spread.
    family: usize,
    instance: usize,
    /// Cycles of a tile's contexts.
    weight: u64,
    /// Position of its first output.
    point: SmallVec<[u32; 4]>,
}

/// The tiles of the vertices of some families, by family and instance.
pub(super) type Spread = Vec<(FamilyId, Arc<[u32]>)>;

/// Spreads vertices over `0..tiles`. Where outputs have no blocks, rows take their place.
pub(super) fn spread(graph: &Graph, families: &[&Vertices], order: Order, tiles: u32, workers: u64) -> Spread {
    let flat = |v: &&Vertices| {
        first_output(graph, &graph.families[v.family]).is_none_or(|p| graph.vars[p.var].shape.len() < 2)
    };
    let order = if order == Order::Blocks && families.iter().any(flat) { Order::Rows } else { order };
    let mut sites = sites(graph, families, order, workers);
    let mut found: Vec<Vec<u32>> =
        families.iter().map(|v| vec![0; graph.families[v.family].domain.count() as usize]).collect();
    match order {
        Order::Blocks => bisect(&mut sites, 0, tiles, &mut found),
        Order::Text | Order::Rows => even(&sites, tiles, &mut found),
    }
    families.iter().zip(found).map(|(v, tiles)| (v.family, tiles.into())).collect()
}

fn sites(graph: &Graph, families: &[&Vertices], order: Order, workers: u64) -> Vec<Site> {
    let mut sites = vec![];
    let mut keys = vec![];
    for (f, vertices) in families.iter().enumerate() {
        let family = &graph.families[vertices.family];
        let part = first_output(graph, family);
        let shape = part.map_or(&[][..], |p| &graph.vars[p.var].shape);
        let len: u64 = shape.iter().product::<u64>().max(1);
        let mut offsets = part.map(|p| p.offset.values(&family.domain));
        for instance in 0..family.domain.count() as usize {
            let offset = offsets.as_mut().and_then(Iterator::next).unwrap_or(0) as u64;
            let weight = match vertices.busy.of(instance) {
                Busy::One(cycles) => *cycles,
                Busy::All(cycles) => cycles.saturating_mul(workers),
            };
            let point = if order == Order::Blocks { point(shape, offset) } else { SmallVec::new() };
            keys.push((u128::from(offset) << 64) / u128::from(len));
            sites.push(Site { family: f, instance, weight: weight.max(1), point });
        }
    }
    if order != Order::Text {
        let mut keyed: Vec<(u128, Site)> = keys.into_iter().zip(sites).collect();
        keyed.sort_by_key(|k| k.0);
        sites = keyed.into_iter().map(|k| k.1).collect();
    }
    sites
}

/// The index of a flat element along each axis.
fn point(shape: &[u64], mut element: u64) -> SmallVec<[u32; 4]> {
    let mut point: SmallVec<[u32; 4]> = SmallVec::from_elem(0, shape.len());
    for (at, &n) in point.iter_mut().zip(shape).rev() {
        *at = (element % n) as u32;
        element /= n;
    }
    point
}

/// Each tile takes the vertices that begin in its share of the weight.
fn even(sites: &[Site], tiles: u32, found: &mut [Vec<u32>]) {
    let total: u128 = sites.iter().map(|s| u128::from(s.weight)).sum();
    let mut before = 0u128;
    for site in sites {
        found[site.family][site.instance] = (before * u128::from(tiles) / total.max(1)) as u32;
        before += u128::from(site.weight);
    }
}

/// Cuts vertices and tiles in two, see the note.
fn bisect(sites: &mut [Site], first: u32, tiles: u32, found: &mut [Vec<u32>]) {
    if tiles <= 1 || sites.len() <= 1 {
        sites.iter().for_each(|s| found[s.family][s.instance] = first);
        return;
    }
    let rank = sites[0].point.len();
    let extent = |k: usize| {
        let of = sites.iter().map(|s| s.point.get(k).copied().unwrap_or(0));
        of.clone().max().unwrap_or(0) - of.min().unwrap_or(0)
    };
    // The first of the longest: `max_by_key` would take the last.
    let axis = (0..rank).min_by_key(|&k| std::cmp::Reverse(extent(k))).unwrap_or(0);
    // Stable, so that what is equal along this axis keeps its order along the others.
    sites.sort_by_key(|s| s.point.get(axis).copied().unwrap_or(0));
    let half = tiles / 2;
    let total: u128 = sites.iter().map(|s| u128::from(s.weight)).sum();
    let share = total * u128::from(half) / u128::from(tiles);
    let mut before = 0u128;
    let cut = sites.iter().take_while(|s| {
        let below = before + u128::from(s.weight) / 2 < share;
        before += u128::from(s.weight);
        below
    });
    let cut = cut.count();
    let (low, high) = sites.split_at_mut(cut);
    bisect(low, first, half, found);
    bisect(high, first + half, tiles - half, found);
}
