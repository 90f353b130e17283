//! `map` statements: the tiles that they give to elements, and the resulting mappings of variables.
//!
//! # Note: When
//! A statement gives tiles to rows of elements; if several statements map an element, the last one takes precedence.
//! Mappings are made from all rows of a variable after all statements are elaborated, so that a variable that many
//! statements map is laid out once, and variables are laid out in parallel.
//!
//! Invariant: a mapping does not depend on how its rows were found.

pub mod blocks;
pub mod rows;

use crate::elaborator::Elaborator;
use crate::value::{Place, Tensor};
use girder_ir::ids::VarId;
use girder_source::{Result, Span, par_map_uneven};
use girder_syntax::ast;
use indexmap::IndexMap;
use rows::{MapRow, Rows, by_var, in_order, mapping_of};
use rustc_hash::FxBuildHasher;

impl<'a> Elaborator<'a> {
    /// Elaborates `map view on place for …;`.
    pub fn map_statement(
        &mut self,
        view: ast::ExprId,
        place: &ast::Place,
        family: &'a [ast::Binder],
        span: Span,
    ) -> Result<()> {
        let rows = match self.map_batched(view, place, family)?.and_then(in_order) {
            Some(rows) => rows,
            None => by_var(self.map_one_by_one(view, place, family, span)?),
        };
        self.mapped.extend(rows);
        Ok(())
    }

    /// Makes the mappings of all mapped variables, at the end: elaboration itself does not query them.
    pub fn make_mappings(&mut self) {
        let mut by_var: IndexMap<VarId, Vec<Rows>, FxBuildHasher> = IndexMap::default();
        for (var, rows) in std::mem::take(&mut self.mapped) {
            by_var.entry(var).or_default().push(rows);
        }
        let by_var: Vec<(VarId, Vec<Rows>)> = by_var.into_iter().collect();
        let count = |v: &(VarId, Vec<Rows>)| v.1.iter().map(|r| r.count() as u64).sum();
        let mappings = par_map_uneven(&by_var, count, |(var, rows)| mapping_of(&self.graph.vars[*var], rows));
        for ((var, _), mapping) in by_var.iter().zip(mappings) {
            self.graph.vars[*var].mapping = Some(mapping);
        }
    }

    fn map_one_by_one(
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

    /// Adds the rows of one view on one place, spread in the order of the view.
    fn map_rows(&self, tensor: &Tensor, place: Place, rows: &mut Vec<MapRow>) {
        let len = tensor.view.len();
        let spread = place.spread(len, tensor.ty);
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
