//! Spreads the open vertices of a compute set over a number of tiles, each tile with its share of the work.
//!
//! # Note: Orders
//! Vertices that are neighbours in the order share a tile or have neighbouring tiles. `Rows` orders vertices by the
//! first elements of their outputs (as a share of the variable, so that outputs of equal shape get equal tiles).
//! `Blocks` cuts outputs of rank 2 and more into bands along one axis and goes through each band along another; the
//! number of bands makes the part of a tile nearly square, so that its edges are short. `Grid` arranges the tiles in
//! rows and columns if the outputs form a grid. All vertices of a row of the grid are then on its tiles alone: shared
//! inputs go to these tiles at once, and the inputs of rows and columns never meet. Some tiles may stay unused.
//!
//! Invariant: the spread is a function of the graph, the order and the number of tiles.

use super::accesses::FamilyAccess;
use super::linear::first_output;
use girder_codelet::cost::Busy;
use girder_ir::family::{Domain, FieldPart};
use girder_ir::graph::Graph;
use girder_ir::ids::FamilyId;
use std::sync::Arc;

/// The order of vertices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum VertexOrder {
    Rows,
    Blocks,
    Grid,
}

/// The tiles of some vertices, by family and instance.
pub(super) type SpreadTiles = Vec<(FamilyId, Arc<[u32]>)>;

/// The open vertices of a compute set, numbered through all families.
pub(super) struct OpenVertices {
    /// The families and their numbers of vertices.
    families: Vec<(FamilyId, u32)>,
    /// The vertices in the order of rows; `None` if that is the order of their numbers.
    rows: Option<Vec<u32>>,
    /// The positions of outputs along the two axes with the largest extents; `None` if they lie along one axis.
    points: Option<Points>,
    /// The cycles of worker contexts, by vertex; `None` if all are equal.
    weights: Option<Vec<u64>>,
}

struct Points {
    at: Vec<(u32, u32)>,
    /// The extent along each axis.
    extent: (u32, u32),
    /// The positions along each axis, ascending, if each pair of positions has a vertex.
    lines: Option<(Vec<u32>, Vec<u32>)>,
}

impl OpenVertices {
    pub(super) fn of(graph: &Graph, families: &[&FamilyAccess], workers: u64) -> OpenVertices {
        let counts: Vec<(FamilyId, u32)> = families.iter().map(|v| (v.id, v.family.domain.count() as u32)).collect();
        let rows = rows(graph, families);
        OpenVertices { families: counts, rows, points: points(graph, families), weights: weights(families, workers) }
    }

    /// Returns the number of vertices.
    pub(super) fn count(&self) -> u64 {
        self.families.iter().map(|f| u64::from(f.1)).sum()
    }

    /// Returns whether [`VertexOrder::Blocks`] differs from rows.
    pub(super) fn has_blocks(&self) -> bool {
        self.points.is_some()
    }

    /// Returns whether [`VertexOrder::Grid`] differs from blocks.
    pub(super) fn has_grid(&self) -> bool {
        self.points.as_ref().is_some_and(|p| p.lines.is_some())
    }

    /// Spreads the vertices over tiles from `first` on. Outputs without blocks or a grid are spread by rows.
    pub(super) fn spread(&self, order: VertexOrder, first: u32, tiles: u32) -> SpreadTiles {
        let points = self.points.as_ref().filter(|_| order != VertexOrder::Rows);
        let grid = points.filter(|_| order == VertexOrder::Grid).and_then(|p| p.grid(tiles));
        let mut found = match (points, &self.rows) {
            _ if grid.is_some() => grid.unwrap_or_default(),
            (Some(points), _) => self.even(self.banded(points, tiles).into_iter(), tiles),
            (None, Some(rows)) => self.even(rows.iter().copied(), tiles),
            (None, None) => self.even(0..self.count() as u32, tiles),
        };
        found.iter_mut().for_each(|tile| *tile += first);
        let mut at = 0;
        let mut next = |&(id, n): &(FamilyId, u32)| {
            let own = at..at + n as usize;
            at = own.end;
            (id, found[own].into())
        };
        self.families.iter().map(&mut next).collect()
    }

    /// Gives each tile the vertices that begin in its share of the total number, unless shares of the total weight make
    /// the fullest tile less full. With shares of the number, steps that are cut equally get equal tiles even if the
    /// last part is shorter than the others.
    fn even(&self, order: impl Iterator<Item = u32> + Clone, tiles: u32) -> Vec<u32> {
        let n = self.count();
        let mut by_number = vec![0; n as usize];
        (order.clone().zip(0u64..)).for_each(|(site, k)| by_number[site as usize] = (k * u64::from(tiles) / n) as u32);
        let Some(weights) = &self.weights else { return by_number };
        let mut by_weight = vec![0; n as usize];
        let total = weights.iter().map(|&w| u128::from(w)).sum::<u128>().max(1);
        let mut before = 0u128;
        for site in order {
            by_weight[site as usize] = (before * u128::from(tiles) / total) as u32;
            before += u128::from(weights[site as usize]);
        }
        let fullest = |found: &[u32]| {
            let mut loads = vec![0u64; tiles as usize];
            let add = |(&tile, &weight): (&u32, &u64)| {
                let load = &mut loads[tile as usize];
                *load = load.saturating_add(weight);
            };
            found.iter().zip(weights).for_each(add);
            loads.into_iter().max()
        };
        if fullest(&by_number) <= fullest(&by_weight) { by_number } else { by_weight }
    }

    /// Returns the vertices band by band.
    fn banded(&self, points: &Points, tiles: u32) -> Vec<u32> {
        let (height, width) = (f64::from(points.extent.0) + 1.0, f64::from(points.extent.1) + 1.0);
        let bands = (f64::from(tiles) * height / width).sqrt().round().clamp(1.0, f64::from(tiles)) as u64;
        let key = |&site: &u32| {
            let (a, b) = points.at[site as usize];
            (u64::from(a) * bands / (u64::from(points.extent.0) + 1), b)
        };
        let mut order = self.rows.clone().unwrap_or_else(|| (0..self.count() as u32).collect());
        // The sort is stable, so vertices at one position along a band keep the order of rows.
        order.sort_by_key(key);
        order
    }
}

impl Points {
    /// Returns the tile of each vertex in a grid of at most `tiles` tiles. A tile gets as few vertices as possible, as
    /// nearly a square as possible.
    fn grid(&self, tiles: u32) -> Option<Vec<u32>> {
        let (rows, columns) = self.lines.as_ref()?;
        let (height, width) = (rows.len() as u64, columns.len() as u64);
        let (row_pitch, column_pitch) = (u64::from(self.extent.0) / height, u64::from(self.extent.1) / width);
        let fits = |a: u64, b: u64| height.div_ceil(a) * width.div_ceil(b) <= u64::from(tiles);
        let shapes =
            |each: u64| (1..=each.min(height)).filter(move |&a| each.is_multiple_of(a)).map(move |a| (a, each / a));
        let least = (height * width).div_ceil(u64::from(tiles));
        let best =
            |each: u64| shapes(each).filter(|s| fits(s.0, s.1)).min_by_key(|s| s.0 * row_pitch + s.1 * column_pitch);
        let (a, b) = (least..=height * width).find_map(best)?;
        let across = width.div_ceil(b) as u32;
        let line = |lines: &[u32], at: u32, each: u64| lines.partition_point(|&l| l < at) as u32 / each as u32;
        Some(self.at.iter().map(|p| line(rows, p.0, a) * across + line(columns, p.1, b)).collect())
    }
}

/// Returns the vertices ordered by the first elements of their outputs, or `None` if these already ascend.
fn rows(graph: &Graph, families: &[&FamilyAccess]) -> Option<Vec<u32>> {
    let parts: Vec<_> = families.iter().map(|v| first_output(graph, v.family)).collect();
    let alone = parts.windows(2).all(|p| p[0].map(|p| p.var) == p[1].map(|p| p.var));
    let mut keys: Vec<u64> = vec![];
    for (vertices, part) in families.iter().zip(parts) {
        let domain = &vertices.family.domain;
        let Some(part) = part else {
            keys.extend((0..domain.count()).map(|_| 0));
            continue;
        };
        let len = graph.vars[part.var].len().max(1);
        let share = |o: i64| if alone { o as u64 } else { ((o as u128) << 63).div_euclid(u128::from(len)) as u64 };
        keys.extend(part.offset.values(domain).map(share));
    }
    if keys.is_sorted() {
        return None;
    }
    let mut order: Vec<u32> = (0..keys.len() as u32).collect();
    order.sort_by_key(|&site| keys[site as usize]);
    Some(order)
}

/// Returns the positions of the outputs along the two axes with the largest extents.
fn points(graph: &Graph, families: &[&FamilyAccess]) -> Option<Points> {
    let parts: Vec<_> = families.iter().map(|v| first_output(graph, v.family)).collect::<Option<_>>()?;
    let shape = &graph.vars[parts.first()?.var].shape;
    if shape.len() < 2 || parts.iter().any(|p| graph.vars[p.var].shape != *shape) {
        return None;
    }
    let strides: Vec<u64> = (0..shape.len()).map(|k| shape[k + 1..].iter().product::<u64>().max(1)).collect();
    let index = |offset: u64, axis: usize| (offset / strides[axis] % shape[axis].max(1)) as u32;
    let offsets = || families.iter().zip(&parts).flat_map(|(v, p)| p.offset.values(&v.family.domain));
    let mut reach = vec![(u32::MAX, 0); shape.len()];
    for offset in offsets() {
        for (axis, reach) in reach.iter_mut().enumerate() {
            let at = index(offset as u64, axis);
            *reach = (reach.0.min(at), reach.1.max(at));
        }
    }
    let mut axes: Vec<usize> = (0..shape.len()).collect();
    axes.sort_by_key(|&k| std::cmp::Reverse(reach[k].1 - reach[k].0));
    let (a, b) = (axes[0].min(axes[1]), axes[0].max(axes[1]));
    let extent = (reach[a].1 - reach[a].0, reach[b].1 - reach[b].0);
    if extent.0 == 0 || extent.1 == 0 {
        return None;
    }
    let line = strides[b] * shape[b];
    if families.iter().zip(&parts).any(|(v, part)| goes_round(part, &v.family.domain, line)) {
        return None;
    }
    let at: Vec<(u32, u32)> =
        offsets().map(|o| (index(o as u64, a) - reach[a].0, index(o as u64, b) - reach[b].0)).collect();
    let lines = |mut all: Vec<u32>| {
        all.sort_unstable();
        all.dedup();
        all
    };
    let lines = (lines(at.iter().map(|p| p.0).collect()), lines(at.iter().map(|p| p.1).collect()));
    let full = lines.0.len() * lines.1.len() == at.len();
    Some(Points { at, extent, lines: full.then_some(lines) })
}

/// Returns whether an output begins in one line of an axis and goes on in the next one, so that it is no block. A line
/// has `line` elements.
fn goes_round(part: &FieldPart, domain: &Domain, line: u64) -> bool {
    let inside = part.len.iter().zip(&part.stride).filter(|(_, stride)| stride.unsigned_abs() < line);
    let (mut back, mut on) = (0, 0);
    for (&len, &stride) in inside {
        let reach = (len as i64 - 1) * stride;
        (back, on) = (back + reach.min(0), on + reach.max(0));
    }
    let is_outside = |start: i64| start + back < 0 || start + on >= line as i64;
    part.offset.values(domain).any(|offset| is_outside(offset % line as i64))
}

fn weights(families: &[&FamilyAccess], workers: u64) -> Option<Vec<u64>> {
    let weight = |busy: &Busy| match busy {
        Busy::One(cycles) => (*cycles).max(1),
        Busy::Unit { code, unit } => unit.saturating_mul(workers).saturating_add(*code).max(1),
        Busy::All(cycles) => cycles.saturating_mul(workers).max(1),
    };
    let of = |v: &&FamilyAccess| (0..v.family.domain.count() as u32).map(|i| weight(v.busy.of(i))).collect::<Vec<_>>();
    let weights: Vec<u64> = families.iter().flat_map(of).collect();
    weights.windows(2).any(|w| w[0] != w[1]).then_some(weights)
}
