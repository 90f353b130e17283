//! Places: `tile(k)`, `ipu(k)`, `linear(…)`, `on place { … }`, `map`, and the tables of printed text.
//!
//! Invariant: every tile in a [`Mapping`] made here exists in the machine.

use crate::columns::{Block, Mapped, in_rows};
use crate::elaborator::Elaborator;
use crate::value::{Place, Tensor, Value};
use girder_ir::ids::VarId;
use girder_ir::placement::{Mapping, TileRun, UNPLACED};
use girder_ir::types::ElemType;
use girder_source::{Diagnostic, Result, Span};
use girder_syntax::ast;

/// Elements of a variable that a `map` puts on a tile.
type MapRow = (VarId, TileRun);
/// A variable and what is mapped of it.
pub type VarRows = (VarId, Vec<TileRun>);

/// Elements that a row of a table puts on a tile.
#[derive(Clone, Copy)]
struct TableRun {
    start: u64,
    end: u64,
    tile: u32,
    span: Span,
}

impl<'a> Elaborator<'a> {
    /// The tiles that `tile(0)` counts from here.
    pub fn current_place(&self) -> Place {
        self.places.last().copied().unwrap_or(Place { first: 0, count: self.machine.tiles(), grain: None })
    }

    /// What `on place { … }` says about a variable made inside; nothing outside of any.
    pub fn default_mapping(&self, shape: &[u64], ty: ElemType) -> Option<Mapping> {
        let place = self.places.last()?;
        Some(spread(*place, shape.iter().product(), ty))
    }

    /// Evaluates a place.
    pub fn place(&mut self, expr: ast::ExprId) -> Result<Place> {
        let span = self.tree().exprs[expr].span;
        match self.expr(expr)? {
            Value::Place(p) => Ok(p),
            Value::Error => Err(girder_source::Failed),
            other => {
                let message = format!("a place is needed here, but this is {}", other.describe());
                Err(self.error_help("place::not_a_place", span, message, "write `tile(k)`, `ipu(k)` or `linear()`"))
            }
        }
    }

    /// Evaluates the place of a vertex: one tile.
    pub fn one_tile(&mut self, place: &ast::Place) -> Result<u32> {
        let ast::Place::Expr(e) = place else {
            let span = place_span(place);
            return Err(self.error("place::not_one_tile", span, "a vertex runs on one tile"));
        };
        let place = self.place(*e)?;
        if place.count != 1 {
            let span = self.tree().exprs[*e].span;
            let message = format!("a vertex runs on one tile, but this place has {}", place.count);
            return Err(self.error("place::not_one_tile", span, message));
        }
        Ok(place.first)
    }

    /// `tile(k)` or `tile(a..b)`, counted from the current place.
    pub fn tile_place(&mut self, arg: &Value, span: Span) -> Result<Place> {
        let here = self.current_place();
        let (start, count) = match arg {
            Value::Int(k) => (*k, 1),
            Value::Range(r) if r.step == 1 && r.count >= 1 => (r.start, r.count),
            Value::Range(_) => {
                return Err(self.error("place::empty", span, "a place is an ascending range of at least one tile"));
            }
            other => {
                let message = format!("`tile` takes an integer or a range, not {}", other.describe());
                return Err(self.error("place::not_a_tile", span, message));
            }
        };
        let end = start as i128 + count as i128;
        if start < 0 || end > here.count as i128 {
            let last = end - 1;
            let missing = match count {
                1 => format!("there is no tile {start}"),
                _ => format!("there are no tiles {start} to {last}"),
            };
            let message = format!("{missing}: there are {} tiles here", here.count);
            let help = match self.places.len() {
                0 => format!("tiles of {} are 0 to {}; `--target` chooses another", self.machine.name, here.count - 1),
                _ => "inside `on` tiles are counted from the first of the place".to_string(),
            };
            return Err(self.error_help("place::no_such_tile", span, message, help));
        }
        Ok(Place { first: here.first + start as u32, count: count as u32, grain: None })
    }

    /// `ipu(k)`
    pub fn ipu_place(&mut self, arg: &Value, span: Span) -> Result<Place> {
        let (start, count) = match arg {
            Value::Int(k) => (*k, 1),
            Value::Range(r) if r.step == 1 && r.count >= 1 => (r.start, r.count),
            other => {
                let message = format!("`ipu` takes an integer or a range, not {}", other.describe());
                return Err(self.error("place::not_a_tile", span, message));
            }
        };
        let end = start as i128 + count as i128;
        if start < 0 || end > self.machine.ipus as i128 {
            let missing = if start < 0 { start as i128 } else { end - 1 };
            let message = format!("there is no ipu {missing}: {} has {}", self.machine.name, self.machine.ipus);
            return Err(self.error("place::no_such_tile", span, message));
        }
        let per = self.machine.chip.tiles;
        Ok(Place { first: start as u32 * per, count: count as u32 * per, grain: None })
    }

    /// The mapping that an `on …` after a declaration gives its variable.
    pub fn mapping(&mut self, place: &ast::Place, shape: &[u64], ty: ElemType) -> Result<Mapping> {
        // A variable of more elements is refused when it is made.
        let len = shape.iter().fold(1u64, |n, &d| n.saturating_mul(d)).min(u64::from(u32::MAX));
        match place {
            ast::Place::Expr(e) => Ok(spread(self.place(*e)?, len, ty)),
            ast::Place::Table(table) => {
                let mut runs = Vec::new();
                self.mapping_rows(table, len, &mut runs)?;
                self.placed_once(&mut runs)?;
                let runs: Vec<_> = runs.into_iter().map(|r| (r.start, r.end, r.tile)).collect();
                Ok(Mapping::fit(shape, &overlay_all(len, runs)))
            }
        }
    }

    /// Says an element that one table puts on two tiles.
    fn placed_once(&mut self, rows: &mut [TableRun]) -> Result<()> {
        rows.sort_by_key(|r| (r.start, r.end));
        let mut reach: Option<TableRun> = None;
        for &r in rows.iter() {
            if let Some(before) = reach.filter(|b| r.start < b.end && r.tile != b.tile) {
                let message = format!("element {} lies on tile {} and on tile {}", r.start, before.tile, r.tile);
                let (first, second) = if before.span.lo <= r.span.lo { (before, r) } else { (r, before) };
                let d = Diagnostic::error("place::twice", second.span, message).here("placed again here");
                let d = if first.span == second.span { d } else { d.label(first.span, "first placed here") };
                return Err(self.say(d.help("an element lies on one tile; let the rows share none")));
            }
            if reach.is_none_or(|b| r.end > b.end) {
                reach = Some(r);
            }
        }
        Ok(())
    }

    /// `tile: start..end for …;`
    fn mapping_rows(&mut self, table: &ast::Table, len: u64, out: &mut Vec<TableRun>) -> Result<()> {
        for row in &table.rows {
            let ast::TableRow::Row { key, values, to: None, family, span } = row else {
                return Err(self.error("place::row", table.span, "a row of a mapping is `tile: elements;`"));
            };
            let (key, span) = (*key, *span);
            let values: Vec<ast::ExprId> = values.iter().map(|a| a.value).collect();
            self.each_binding(family, &mut |this: &mut Self| {
                let tile = this.int(key)?;
                let tile = this.tile_place(&Value::Int(tile), span)?.first;
                for &value in &values {
                    let (start, end) = match this.expr(value)? {
                        Value::Range(r) if r.step == 1 => (r.start as i128, r.start as i128 + r.count as i128),
                        Value::Int(i) => (i as i128, i as i128 + 1),
                        other => {
                            let message = format!("flat elements are a range, not {}", other.describe());
                            return Err(this.error("place::row", span, message));
                        }
                    };
                    if start < 0 || end > len as i128 {
                        let message = format!("elements {start}..{end} are outside the variable's 0..{len}");
                        return Err(this.error("place::row", span, message));
                    }
                    if start < end {
                        out.push(TableRun { start: start as u64, end: end as u64, tile, span });
                    }
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// `map view on place for …;`
    pub fn map_statement(
        &mut self,
        view: ast::ExprId,
        place: &ast::Place,
        family: &'a [ast::Binder],
        span: Span,
    ) -> Result<()> {
        let by_var = match self.map_in_columns(view, place, family)?.and_then(in_order) {
            Some(rows) => rows,
            None => by_var(self.map_turn_by_turn(view, place, family, span)?),
        };
        for (var, rows) in by_var {
            let v = &self.graph.vars[var];
            let len = v.len();
            let all = match &v.mapping {
                Some(m) => m.runs(len).chain(rows).collect(),
                None => rows,
            };
            let shape = v.shape.clone();
            self.graph.vars[var].mapping = Some(Mapping::fit(&shape, &overlay_all(len, all)));
        }
        Ok(())
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

/// How `len` elements are spread over a place: linear, in grains that keep at least 8 bytes, and 128 bytes a tile where
/// nothing else is asked for.
pub fn spread(place: Place, len: u64, ty: ElemType) -> Mapping {
    if place.count == 1 || len <= 1 {
        return Mapping::One(place.first);
    }
    let least = match place.grain {
        Some(_) => 1,
        None => (128 / ty.bytes()) as u64,
    };
    let grain = place.grain.unwrap_or((8 / ty.bytes()).max(1)) as u64;
    let grain = if least > grain && len / least < place.count as u64 { least } else { grain };
    let grains = len.div_ceil(grain);
    match grains.min(place.count as u64) {
        1 => Mapping::One(place.first),
        tiles => Mapping::Linear { first: place.first, tiles: tiles as u32, grain: grain as u32 },
    }
}

/// The rows of each variable, ascending by variable.
fn by_var(rows: Vec<MapRow>) -> Vec<VarRows> {
    let mut vars: Vec<VarId> = rows.iter().map(|r| r.0).collect();
    vars.dedup();
    vars.sort();
    vars.dedup();
    match vars[..] {
        [var] => vec![(var, rows.into_iter().map(|r| r.1).collect())],
        _ => {
            let of = |var: VarId| rows.iter().filter(move |r| r.0 == var).map(|r| r.1).collect();
            vars.iter().map(|&var| (var, of(var))).collect()
        }
    }
}

/// The rows of each variable in an order in which later ones win. Blocks of turns that were parted have lost theirs: it is
/// any where they share no element, and unknown else.
fn in_order(mapped: Mapped) -> Option<Vec<VarRows>> {
    let (mut vars, parted) = (mapped.vars, mapped.parts > 1);
    vars.sort_by_key(|v| v.0);
    let rows = |blocks: Vec<Block>| {
        in_rows(&blocks).or_else(|| {
            let mut rows: Vec<TileRun> = blocks.into_iter().flat_map(Block::runs).collect();
            if parted {
                sort_by_start(&mut rows);
            }
            (!parted || ascend(&rows)).then_some(rows)
        })
    };
    vars.into_iter().map(|(var, blocks)| Some((var, rows(blocks)?))).collect()
}

/// Whether rows ascend and share no element.
fn ascend(rows: &[TileRun]) -> bool {
    rows.windows(2).all(|w| w[0].1 <= w[1].0)
}

/// Sorts rows by their first elements, digit by digit where there are many: rows of blocks are far from their neighbours,
/// and comparing them takes longer.
fn sort_by_start(rows: &mut Vec<TileRun>) {
    const BITS: u32 = 11;
    if rows.len() < 1 << BITS {
        return rows.sort_by_key(|r| r.0);
    }
    let most = rows.iter().map(|r| r.0).max().unwrap_or(0);
    let mut other = vec![(0, 0, 0); rows.len()];
    for shift in (0..u64::BITS).step_by(BITS as usize).take_while(|&s| most >> s > 0) {
        let digit = |r: &TileRun| (r.0 >> shift) as usize & ((1 << BITS) - 1);
        let mut at = [0u32; (1 << BITS) + 1];
        rows.iter().for_each(|r| at[digit(r) + 1] += 1);
        (1..at.len()).for_each(|k| at[k] += at[k - 1]);
        for row in rows.iter() {
            let place = &mut at[digit(row)];
            other[*place as usize] = *row;
            *place += 1;
        }
        std::mem::swap(rows, &mut other);
    }
}

/// Runs where later ones win, with [`UNPLACED`] where there is none.
fn overlay_all(len: u64, mut rows: Vec<TileRun>) -> Vec<TileRun> {
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

fn place_span(place: &ast::Place) -> Span {
    match place {
        ast::Place::Table(t) => t.span,
        ast::Place::Expr(_) => Span::NONE,
    }
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

    #[test]
    fn many_rows_are_sorted_as_few_are() {
        let row = |k: u64| (k * 0x9e37_79b9 % 5_000_011, k, k as u32 % 7);
        for count in [100, 5_000, 70_000] {
            let mut rows: Vec<TileRun> = (0..count).map(row).collect();
            let mut expected = rows.clone();
            expected.sort_by_key(|r| r.0);
            sort_by_start(&mut rows);
            assert_eq!(rows, expected, "{count} rows");
        }
    }
}
