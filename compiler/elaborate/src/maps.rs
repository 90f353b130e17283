//! `map`: what its statements put on tiles, and the mappings that come of that.
//!
//! # Note: When
//! A statement says which rows of elements go where; where several say it of one element, the last one does. Mappings are made
//! of all rows of a variable when all is elaborated, so that a variable that many statements map is laid out once, and variables
//! on all threads.
//!
//! Invariant: a mapping is the same however its rows were found.

use crate::columns::{Block, Grid, Mapped};
use crate::elaborator::Elaborator;
use crate::places::spread;
use crate::value::{Place, Tensor};
use girder_ir::graph::Var;
use girder_ir::ids::VarId;
use girder_ir::placement::{Mapping, TileRun, UNPLACED};
use girder_source::{Result, Span, par_map_uneven};
use girder_syntax::ast;
use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;

/// Elements of a variable that a `map` puts on a tile.
type MapRow = (VarId, TileRun);
/// A variable and what is mapped of it.
pub type VarRows = (VarId, Rows);

/// What one statement maps of a variable.
#[derive(Debug)]
pub enum Rows {
    /// Of which later ones win.
    Listed(Vec<TileRun>),
    /// Of which no two share an element.
    Grid(Grid),
}

impl Rows {
    /// How many they are.
    fn count(&self) -> usize {
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

/// The mapping of a variable under what statements say of it, in their order.
fn mapping_of(var: &Var, rows: &[Rows]) -> Mapping {
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

impl<'a> Elaborator<'a> {
    /// `map view on place for …;`
    pub fn map_statement(
        &mut self,
        view: ast::ExprId,
        place: &ast::Place,
        family: &'a [ast::Binder],
        span: Span,
    ) -> Result<()> {
        let rows = match self.map_in_columns(view, place, family)?.and_then(in_order) {
            Some(rows) => rows,
            None => by_var(self.map_turn_by_turn(view, place, family, span)?),
        };
        self.mapped.extend(rows);
        Ok(())
    }

    /// Makes the mappings of what `map` statements put on tiles. Nothing asks for one before all is elaborated.
    pub fn settle_maps(&mut self) {
        let mut by_var: IndexMap<VarId, Vec<Rows>, FxBuildHasher> = IndexMap::default();
        for (var, rows) in std::mem::take(&mut self.mapped) {
            by_var.entry(var).or_default().push(rows);
        }
        let by_var: Vec<(VarId, Vec<Rows>)> = by_var.into_iter().collect();
        let count = |v: &(VarId, Vec<Rows>)| v.1.iter().map(|r| r.count() as u64).sum();
        let found = par_map_uneven(&by_var, count, |(var, rows)| mapping_of(&self.graph.vars[*var], rows));
        for ((var, _), mapping) in by_var.iter().zip(found) {
            self.graph.vars[*var].mapping = Some(mapping);
        }
    }

    fn map_turn_by_turn(
        &mut self,
        view: ast::ExprId,
        place: &ast::Place,
        family: &[ast::Binder],
        span: Span,
    ) -> Result<Vec<MapRow>> {
        let mut rows = Vec::new();
        self.each_binding(family, &mut |this: &mut Self| {
            let tensor = this.tensor(view)?;
            let ast::Place::Expr(e) = place else {
                return Err(this.error("place::row", span, "`map` takes a place, not a table"));
            };
            let place = this.place(*e)?;
            this.map_rows(&tensor, place, &mut rows);
            Ok(())
        })?;
        Ok(rows)
    }

    /// The rows of one view on one place: spread in the view's order.
    fn map_rows(&self, tensor: &Tensor, place: Place, rows: &mut Vec<MapRow>) {
        let len = tensor.view.len();
        let spread = spread(place, len, tensor.ty);
        let mut targets = spread.runs(len).peekable();
        let mut at = 0;
        for run in tensor.view.runs() {
            let mut done = 0;
            while done < run.len {
                let Some(&(_, end, tile)) = targets.peek() else { return };
                let count = (end - at).min(run.len - done);
                let first = run.start as i64 + done as i64 * run.stride;
                match run.stride {
                    1 => rows.push((run.var, (first as u64, first as u64 + count, tile))),
                    s => rows.extend((0..count).map(|k| {
                        let e = (first + k as i64 * s) as u64;
                        (run.var, (e, e + 1, tile))
                    })),
                }
                (done, at) = (done + count, at + count);
                if at == end {
                    targets.next();
                }
            }
        }
    }
}

/// The rows of each variable, ascending by variable.
fn by_var(rows: Vec<MapRow>) -> Vec<VarRows> {
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

/// The rows of each variable in an order in which later ones win. Blocks of turns that were parted have lost theirs: it is
/// any where they share no element, and unknown else.
fn in_order(mapped: Mapped) -> Option<Vec<VarRows>> {
    let (mut vars, parted) = (mapped.vars, mapped.parts > 1);
    vars.sort_by_key(|v| v.0);
    let rows = |blocks: Vec<Block>| {
        Grid::of(&blocks).map(Rows::Grid).or_else(|| {
            let mut rows: Vec<TileRun> = Vec::with_capacity(blocks.iter().map(Block::count).sum());
            rows.extend(blocks.into_iter().flat_map(Block::runs));
            if parted {
                sort_by_start(&mut rows);
            }
            (!parted || ascend(&rows)).then_some(Rows::Listed(rows))
        })
    };
    vars.into_iter().map(|(var, blocks)| Some((var, rows(blocks)?))).collect()
}

/// Whether rows ascend and share no element.
fn ascend(rows: &[TileRun]) -> bool {
    rows.windows(2).all(|w| w[0].1 <= w[1].0)
}

/// Sorts rows by their first elements, digit by digit: rows of blocks are far from their neighbours, and comparing them takes
/// longer.
fn sort_by_start(rows: &mut [TileRun]) {
    radsort::sort_by_key(rows, |r| r.0);
}

/// Runs where later ones win, with [`UNPLACED`] where there is none.
pub fn overlay_all(len: u64, mut rows: Vec<TileRun>) -> Vec<TileRun> {
    // In the common case rows are disjoint; else they are painted one after the other.
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

/// Disjoint ascending rows: a sweep over all boundaries in which the latest row that covers a stretch wins.
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
