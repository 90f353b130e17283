//! Rows of elements that `map` statements put on tiles, and the resulting mapping of a variable.
//!
//! Invariant: if several statements map an element, the last one takes precedence; a mapping does not depend on how its
//! rows were found.

use super::blocks::{ElementBlock, Grid};
use girder_ir::graph::Var;
use girder_ir::ids::VarId;
use girder_ir::placement::{Mapping, TileRun, UNPLACED};

/// Elements of a variable that a `map` puts on a tile.
pub type MapRow = (VarId, TileRun);
/// A variable and the rows of it that one statement maps.
pub type VarRows = (VarId, Rows);

/// The rows of a variable that one statement maps.
#[derive(Debug)]
pub enum Rows {
    /// Rows in order; later ones take precedence.
    Listed(Vec<TileRun>),
    /// Disjoint rows.
    Grid(Grid),
}

impl Rows {
    /// Counts the rows.
    pub fn count(&self) -> usize {
        match self {
            Rows::Listed(rows) => rows.len(),
            Rows::Grid(grid) => grid.count(),
        }
    }

    fn add_to(&self, all: &mut Vec<TileRun>) {
        match self {
            Rows::Listed(rows) => all.extend_from_slice(rows),
            Rows::Grid(grid) => all.extend(grid.runs()),
        }
    }
}

/// The rows of a `map`, by variable.
#[derive(Debug, Default)]
pub struct Mapped {
    /// The blocks of each variable.
    pub vars: Vec<(VarId, Vec<ElementBlock>)>,
    /// The number of parts that the iterations were split into.
    pub parts: usize,
}

impl Mapped {
    /// Returns the blocks of a variable, to add more.
    pub fn blocks_of(&mut self, var: VarId) -> &mut Vec<ElementBlock> {
        let known = self.vars.iter().position(|v| v.0 == var);
        let k = known.unwrap_or_else(|| {
            self.vars.push((var, vec![]));
            self.vars.len() - 1
        });
        &mut self.vars[k].1
    }
}

/// Returns the mapping of a variable from the rows of statements, in their order.
pub fn mapping_of(var: &Var, rows: &[Rows]) -> Mapping {
    let len = var.len();
    if let ([Rows::Grid(grid)], None) = (rows, &var.mapping)
        && grid.covers(len)
    {
        return Mapping::fit(&var.shape, grid.runs());
    }
    let mut all: Vec<TileRun> = var.mapping.iter().flat_map(|m| m.runs(len)).collect();
    rows.iter().for_each(|r| r.add_to(&mut all));
    Mapping::fit(&var.shape, overlay_all(len, all))
}

/// Sorts rows by variable, ascending.
pub fn by_var(rows: Vec<MapRow>) -> Vec<VarRows> {
    let mut vars: Vec<VarId> = rows.iter().map(|r| r.0).collect();
    vars.dedup();
    vars.sort();
    vars.dedup();
    match vars[..] {
        [var] => vec![(var, Rows::Listed(rows.into_iter().map(|r| r.1).collect()))],
        _ => {
            let of = |var: VarId| rows.iter().filter(move |r| r.0 == var).map(|r| r.1).collect();
            vars.iter().map(|&var| (var, Rows::Listed(of(var)))).collect()
        }
    }
}

/// Returns the rows of each variable in an order in which later ones take precedence. The blocks of split iterations
/// have lost their order: any order is valid if they are disjoint; otherwise the result is `None`.
pub fn in_order(mapped: Mapped) -> Option<Vec<VarRows>> {
    let (mut vars, split) = (mapped.vars, mapped.parts > 1);
    vars.sort_by_key(|v| v.0);
    let rows = |blocks: Vec<ElementBlock>| {
        Grid::of(&blocks).map(Rows::Grid).or_else(|| {
            let mut rows: Vec<TileRun> = Vec::with_capacity(blocks.iter().map(ElementBlock::count).sum());
            rows.extend(blocks.into_iter().flat_map(ElementBlock::runs));
            if split {
                sort_by_start(&mut rows);
            }
            (!split || ascend(&rows)).then_some(Rows::Listed(rows))
        })
    };
    vars.into_iter().map(|(var, blocks)| Some((var, rows(blocks)?))).collect()
}

/// Returns whether rows are ascending and disjoint.
fn ascend(rows: &[TileRun]) -> bool {
    rows.windows(2).all(|w| w[0].1 <= w[1].0)
}

/// Sorts rows by their first elements with a radix sort: rows of blocks are far from their sorted positions, so a
/// comparison sort would be slower.
fn sort_by_start(rows: &mut [TileRun]) {
    radsort::sort_by_key(rows, |r| r.0);
}

/// Overlays rows, later ones on top, and puts [`UNPLACED`] in the gaps.
pub fn overlay_all(len: u64, mut rows: Vec<TileRun>) -> Vec<TileRun> {
    // Rows are usually disjoint; otherwise they are painted one after the other.
    if !ascend(&rows) {
        let mut sorted = rows.clone();
        sort_by_start(&mut sorted);
        rows = if ascend(&sorted) { sorted } else { paint(&rows) };
    }
    let is_tight = |w: &[TileRun]| w[0].1 == w[1].0 && w[0].2 != w[1].2;
    if rows.first().is_some_and(|r| r.0 == 0)
        && rows.last().is_some_and(|r| r.1 == len)
        && rows.windows(2).all(is_tight)
    {
        return rows;
    }
    let mut out: Vec<TileRun> = Vec::with_capacity(rows.len());
    let mut at = 0;
    let mut put = |start: u64, end: u64, tile: u32| match out.last_mut() {
        Some(last) if last.2 == tile && last.1 == start => last.1 = end,
        _ => out.push((start, end, tile)),
    };
    for (start, end, tile) in rows {
        if at < start {
            put(at, start, UNPLACED);
        }
        put(start, end, tile);
        at = end;
    }
    if at < len {
        put(at, len, UNPLACED);
    }
    out
}

/// Makes rows disjoint and ascending: between two neighbouring boundaries, the latest row takes precedence.
fn paint(rows: &[TileRun]) -> Vec<TileRun> {
    let mut events: Vec<(u64, bool, usize)> = Vec::with_capacity(rows.len() * 2);
    for (i, &(start, end, _)) in rows.iter().enumerate() {
        events.push((start, true, i));
        events.push((end, false, i));
    }
    events.sort();
    let mut open = std::collections::BTreeSet::new();
    let mut out = Vec::new();
    let mut at = 0;
    for (position, opens, i) in events {
        if let Some(&top) = open.last()
            && at < position
        {
            let row: &TileRun = &rows[top];
            out.push((at, position, row.2));
        }
        at = position;
        if opens {
            open.insert(i);
        } else {
            open.remove(&i);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_row_wins_and_gaps_stay_open() {
        let rows = [(0, 8, 1), (2, 4, 2), (10, 12, 3)];
        let expected = [(0, 2, 1), (2, 4, 2), (4, 8, 1), (8, 10, UNPLACED), (10, 12, 3)];
        assert_eq!(overlay_all(12, rows.to_vec()), expected);
    }
}
