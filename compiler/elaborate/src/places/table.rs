//! The rows of a table that puts the elements of a variable on tiles, such as
//! `on { 0: 0..16; i: 16 * i..16 * i + 16 for i in 1..8; [9, 7, 9]: 128..176 by 16; }`.
//!
//! Invariant: every tile exists in the machine, and every element in the variable. Rows of plain numbers give the same
//! as their evaluation.

use crate::elaborator::Elaborator;
use crate::integers;
use crate::value::Value;
use girder_source::{Diagnostic, Result, Span};
use girder_syntax::ast::{self, ExprId, ExprKind};

/// Elements that a row of a table puts on a tile.
#[derive(Clone, Copy)]
pub(super) struct TableRun {
    pub start: u64,
    pub end: u64,
    pub tile: u32,
    span: Span,
}

/// The rows that take as long as one step of static evaluation, where nothing but numbers is evaluated.
const ROWS_OF_A_STEP: u64 = 4;

/// What the numbers of a row depend on.
#[derive(Default)]
struct Instance<'t> {
    /// The indices, the outermost first, and their values.
    indices: Vec<(&'t str, i64)>,
    /// The row, if it repeats the one that is evaluated.
    repeated: Option<(&'t ast::RepeatedStatements, usize)>,
}

impl<'a> Elaborator<'a> {
    /// Evaluates `tile: start..end for …;`.
    pub(super) fn mapping_rows(
        &mut self,
        rows: &[ast::TableRow],
        table: Span,
        len: u64,
        out: &mut Vec<TableRun>,
    ) -> Result<()> {
        for row in rows {
            let known = out.len();
            let done = match row {
                ast::TableRow::Repeated(id) => self.plain_rows(*id, len, out)?,
                row => self.plain_family(row, len, out)?,
            };
            if done {
                continue;
            }
            out.truncate(known);
            match row {
                ast::TableRow::Repeated(id) => {
                    let exprs = &self.tree().exprs;
                    let all = exprs.repeated(*id);
                    let nodes = all.count() * (all.expr_count() + 1);
                    self.charge_bytes((nodes * size_of::<ast::Expr>()) as u64, all.span(0))?;
                    let rows = exprs.other_rows(*id);
                    rows.iter().try_for_each(|row| self.mapping_row(row, table, len, out))?;
                }
                row => self.mapping_row(row, table, len, out)?,
            }
        }
        Ok(())
    }

    /// Evaluates a row for each of its instances.
    fn mapping_row(&mut self, row: &ast::TableRow, table: Span, len: u64, out: &mut Vec<TableRun>) -> Result<()> {
        let ast::TableRow::Row { key, values, to: None, family, span } = row else {
            return Err(self.error("place::row", table, "a row of a mapping is `tile: elements;`"));
        };
        let (key, span) = (*key, *span);
        let values: Vec<ExprId> = values.iter().map(|a| a.value).collect();
        self.each_binding(family, &mut |this: &mut Self| {
            let tile = this.expr(key)?;
            if let Value::List(tiles) = tile {
                return values.iter().try_for_each(|&value| this.blocks(&tiles, value, (span, len), out));
            }
            let tile = this.row_tile(&tile, span)?;
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
        })
    }

    /// Returns the tile that a row names.
    fn row_tile(&mut self, tile: &Value, span: Span) -> Result<u32> {
        match tile {
            Value::Int(_) => Ok(self.tile_place(tile, span)?.first),
            Value::Error => Err(girder_source::Failed),
            other => {
                let message = format!("a row needs the number of a tile, or a list of them, not {}", other.describe());
                let help = "write `3: 0..4;`, or for blocks of elements `[3, 5]: 0..8 by 4;`";
                Err(self.error_help("place::row", span, message, help))
            }
        }
    }

    /// Adds the runs of a row `[tile, tile, …]: start..end by block`: the blocks are on the tiles in order, and the
    /// last one may be shorter.
    fn blocks(
        &mut self,
        tiles: &[Value],
        elements: ExprId,
        (span, len): (Span, u64),
        out: &mut Vec<TableRun>,
    ) -> Result<()> {
        let ExprKind::Range { start, end, closed, by: Some(by) } = self.tree().exprs[elements].kind else {
            let message = "a list of tiles needs the number of elements of a block";
            let help = "write it behind the range: `[3, 5]: 0..8 by 4;` puts four elements on each tile";
            return Err(self.error_help("place::row", span, message, help));
        };
        let (start, end, by) = (self.int(start)?, self.int(end)?, self.int(by)?);
        let end = end.saturating_add(i64::from(closed));
        let bounds = u64::try_from(start).ok().zip(u64::try_from(end).ok()).filter(|(a, b)| a <= b && *b <= len);
        let (Some((start, end)), Some(block)) = (bounds, u64::try_from(by).ok().filter(|&by| by > 0)) else {
            let message = format!("elements {start}..{end} by {by} are no blocks of the variable's 0..{len}");
            return Err(self.error("place::row", span, message));
        };
        let count = (end - start).div_ceil(block);
        if count != tiles.len() as u64 {
            let message = format!("{start}..{end} by {block} are {count} blocks, but the list has {}", tiles.len());
            return Err(self.error_help("place::row", span, message, "write one tile for each block"));
        }
        self.charge_rows(count, span)?;
        for (first, tile) in (start..end).step_by(block as usize).zip(tiles) {
            let tile = self.row_tile(tile, span)?;
            out.push(TableRun { start: first, end: (first + block).min(end), tile, span });
        }
        Ok(())
    }

    /// Adds the runs of rows that repeat one of literals. Returns `false` for others, and if one would be an error.
    fn plain_rows(&mut self, id: ast::RepeatedId, len: u64, out: &mut Vec<TableRun>) -> Result<bool> {
        let all = self.tree().exprs.repeated(id);
        let Some(row) = all.row() else { return Ok(false) };
        self.charge_rows(all.count() as u64, all.span(0))?;
        Ok((0..all.count()).all(|k| {
            let instance = Instance { repeated: Some((all, k)), ..Instance::default() };
            let run = self.plain_run(row, &instance, all.span(k), len);
            out.extend(run);
            run.is_some()
        }))
    }

    /// Adds the runs of a row whose numbers depend on nothing but its indices. Returns `false` for other rows, and if
    /// one of them would be an error.
    fn plain_family(&mut self, row: &ast::TableRow, len: u64, out: &mut Vec<TableRun>) -> Result<bool> {
        let ast::TableRow::Row { family, span, .. } = row else { return Ok(false) };
        let Some((bounds, mut instance)) = self.plain_indices(family) else { return Ok(false) };
        let count = bounds.iter().fold(1u64, |n, (start, end)| n.saturating_mul(end.abs_diff(*start)));
        if count > len || self.plain_run(row, &instance, *span, len).is_none() {
            return Ok(false);
        }
        self.charge_rows(count, *span)?;
        loop {
            let Some(run) = self.plain_run(row, &instance, *span, len) else { return Ok(false) };
            out.push(run);
            // The last index runs fastest.
            let open = (0..bounds.len()).rev().find(|&k| instance.indices[k].1 + 1 < bounds[k].1);
            let Some(open) = open else { return Ok(true) };
            instance.indices[open].1 += 1;
            for (index, bound) in instance.indices.iter_mut().zip(&bounds).skip(open + 1) {
                index.1 = bound.0;
            }
        }
    }

    /// Charges rows that are about to be added.
    fn charge_rows(&mut self, count: u64, span: Span) -> Result<()> {
        self.charge_bytes(count.saturating_mul(size_of::<TableRun>() as u64), span)?;
        self.charge_many(count / ROWS_OF_A_STEP, span)
    }

    /// Returns the bounds of indices that run over ranges of numbers, none of them empty, and their first instance.
    fn plain_indices<'t>(&self, family: &'t [ast::Binder]) -> Option<(Vec<(i64, i64)>, Instance<'t>)> {
        let (mut bounds, mut first) = (vec![], Instance::default());
        for binder in family {
            let ast::Pattern::Name(name) = &binder.pattern else { return None };
            let (start, end) = self.plain_range(binder.range, &Instance::default()).filter(|(a, b)| a < b)?;
            bounds.push((start, end));
            first.indices.push((&name.name, start));
        }
        Some((bounds, first))
    }

    /// Returns the run of one instance of a row `tile: start..end`.
    fn plain_run(&self, row: &ast::TableRow, instance: &Instance, span: Span, len: u64) -> Option<TableRun> {
        let ast::TableRow::Row { key, values, to: None, .. } = row else { return None };
        let [ast::Arg { name: None, value }] = values[..] else { return None };
        let here = self.current_place();
        let tile = u32::try_from(self.plain(*key, instance)?).ok().filter(|&tile| tile < here.count)?;
        let (start, end) = self.plain_range(value, instance)?;
        let (start, end) = (u64::try_from(start).ok()?, u64::try_from(end).ok()?);
        (start < end && end <= len).then_some(TableRun { start, end, tile: here.first + tile, span })
    }

    /// Returns the bounds of a range of numbers.
    fn plain_range(&self, e: ExprId, instance: &Instance) -> Option<(i64, i64)> {
        match self.tree().exprs[e].kind {
            ExprKind::Range { start, end, closed: false, by: None } => {
                Some((self.plain(start, instance)?, self.plain(end, instance)?))
            }
            _ => None,
        }
    }

    /// Returns a number that is written with literals and indices.
    fn plain(&self, e: ExprId, instance: &Instance) -> Option<i64> {
        match &self.tree().exprs[e].kind {
            ExprKind::Int { value, .. } => match instance.repeated.and_then(|(all, k)| all.value(e, k)) {
                Some(own) => Some(own),
                None => i64::try_from(*value).ok(),
            },
            ExprKind::Name(name) => instance.indices.iter().rev().find(|i| i.0 == name.as_str()).map(|i| i.1),
            ExprKind::Paren(inner) => self.plain(*inner, instance),
            ExprKind::Binary { op, left, right } => {
                integers::arithmetic(*op, self.plain(*left, instance)?, self.plain(*right, instance)?)?.ok()
            }
            _ => None,
        }
    }

    /// Reports an element that one table puts on two tiles.
    pub(super) fn placed_once(&mut self, rows: &mut [TableRun]) -> Result<()> {
        rows.sort_by_key(|r| (r.start, r.end));
        let mut reach: Option<TableRun> = None;
        for &r in rows.iter() {
            if let Some(before) = reach.filter(|b| r.start < b.end && r.tile != b.tile) {
                let message = format!("element {} lies on tile {} and on tile {}", r.start, before.tile, r.tile);
                let (first, second) = if before.span.lo <= r.span.lo { (before, r) } else { (r, before) };
                let d = Diagnostic::error("place::twice", second.span, message).here("placed again here");
                let d = if first.span == second.span { d } else { d.label(first.span, "first placed here") };
                return Err(self.report(d.help("an element lies on one tile; let the rows share none")));
            }
            if reach.is_none_or(|b| r.end > b.end) {
                reach = Some(r);
            }
        }
        Ok(())
    }
}
