//! Batched evaluation of the items of compute sets: vertices, branches, and `let`s.
//!
//! Invariant: no entity is made here; evaluated statements are collected.

use super::evaluator::Evaluator;
use super::statement::Statement;
use super::subset::Subset;
use super::{Batch, Found, Ints, Stop};
use crate::binding::bind;
use crate::value::Value;
use girder_ir::codelet::Dir;
use girder_ir::view::View;
use girder_source::Span;
use girder_syntax::ast::{self, VertexItem};

impl<'a> Evaluator<'_, 'a> {
    /// Evaluates an item in all iterations, in parts if they must be split.
    pub(super) fn item(&mut self, item: &'a VertexItem) -> Found<()> {
        self.split(&mut |this| match item {
            VertexItem::For { binders, body, .. } => this.under(binders, &mut |this| this.items(body)),
            // The iterations of the statement's own loops are split inside those loops.
            VertexItem::Vertex(v) => this.under(&v.family, &mut |this| this.split(&mut |this| this.vertex(v))),
            VertexItem::If { cond, then, els, .. } => this.branches(*cond, then, els.as_deref()),
            VertexItem::Repeated(id) => this.items(this.base.tree().exprs.others(*id)),
            VertexItem::Let(_) => Err(Stop::Leave),
        })
    }

    fn items(&mut self, items: &'a [VertexItem]) -> Found<()> {
        let mark = self.names.len();
        let done = self.items_from(items, 0);
        self.names.truncate(mark);
        done
    }

    /// Evaluates items; a `let` that splits the iterations splits all later items too.
    fn items_from(&mut self, items: &'a [VertexItem], from: usize) -> Found<()> {
        let mut failed = false;
        for (k, item) in items.iter().enumerate().skip(from) {
            let done = match item {
                VertexItem::Let(l) => match self.expr(l.value) {
                    Ok(value) if !l.mutable => self.bind(&l.pattern, value),
                    Ok(_) => Err(Stop::Leave),
                    Err(Stop::Split(keys)) => {
                        return self.split_by(&keys, &mut |this| this.items_from(items, k));
                    }
                    Err(stop) => Err(stop),
                },
                _ => {
                    self.path.push(Ints::constant(k as i64));
                    let done = self.item(item);
                    self.path.pop();
                    done
                }
            };
            match done {
                Ok(()) => {}
                // The other items may have errors of their own, so they are still evaluated.
                Err(Stop::Failed) if !matches!(item, VertexItem::Let(_)) => failed = true,
                Err(stop) => return Err(stop),
            }
        }
        if failed { Err(Stop::Failed) } else { Ok(()) }
    }

    fn branches(&mut self, cond: ast::ExprId, then: &'a [VertexItem], els: Option<&'a [VertexItem]>) -> Found<()> {
        let els = els.unwrap_or_default();
        match self.expr(cond)? {
            Batch::Uniform(Value::Bool(b)) => self.items(if b { then } else { els }),
            Batch::Bools(bools) => {
                let parts = Subset::by_key(&bools, &self.extents, 2).ok_or(Stop::Leave)?;
                for (wanted, items) in [(1, then), (0, els)] {
                    let part = parts.iter().find(|p| p.0 == wanted);
                    if let Some((_, subset)) = part.filter(|_| !items.is_empty()) {
                        self.within(subset, &mut |this| this.items(items))?;
                    }
                }
                Ok(())
            }
            _ => Err(Stop::Leave),
        }
    }

    /// Evaluates a vertex statement.
    pub(super) fn vertex(&mut self, v: &'a ast::Vertex) -> Found<()> {
        if !v.attrs.is_empty() {
            return Err(Stop::Leave);
        }
        let codelet = self.base.find_codelet(&v.codelet)?;
        let header = self.base.header(codelet.0, codelet.1)?;
        let position = |name: &str| header.fields.iter().position(|f| f.name == name);
        let slots = bind(&v.args, header.fields.len(), position).map_err(|_| Stop::Leave)?;
        let vars = self.base.graph.vars.len();
        let mut fields: Vec<(Batch, Span)> = vec![];
        for slot in slots {
            let value = slot.ok_or(Stop::Leave)?.value;
            fields.push((self.expr(value)?, self.base.tree().exprs[value].span));
        }
        for (field, (batch, _)) in header.fields.iter().zip(&fields) {
            let is_view = |view: &View| {
                let is_lost = field.dir != Dir::In && self.base.is_lost(view, vars);
                let fits = field.dir != Dir::Const && view.rank() == field.rank;
                fits && !is_lost && !self.base.writes_copy_of_rows(field.dir, view)
            };
            let fits = match batch {
                Batch::View { like, .. } => is_view(&like.view),
                Batch::Uniform(Value::Tensor(like)) => is_view(&like.view),
                Batch::Uniform(Value::Int(_) | Value::Float(_) | Value::Bool(_)) => {
                    field.dir == Dir::Const || field.dir == Dir::In && field.rank == 0
                }
                Batch::Ints(_) | Batch::Bools(_) | Batch::Values(_) => field.dir == Dir::Const,
                _ => false,
            };
            if !fits {
                return Err(Stop::Leave);
            }
        }
        let mut generics = vec![];
        for &g in &v.generics {
            generics.push(match self.expr(g)? {
                Batch::Uniform(value) => {
                    let span = self.base.tree().exprs[g].span;
                    self.base.generic_value(value, span)?
                }
                _ => return Err(Stop::Leave),
            });
        }
        let tile = v.place.as_ref().map(|p| self.tile(p)).transpose()?;
        let within = match (v.within, &tile) {
            (Some(_), Some(_)) => return Err(Stop::Leave),
            (Some(place), None) => match self.expr(place)? {
                Batch::Uniform(Value::Place(place)) => self.base.some_tiles(place),
                _ => return Err(Stop::Leave),
            },
            (None, Some(_)) => None,
            (None, None) => self.base.within_here(),
        };
        let (path, extents, counters, loop_extents) =
            (self.path.clone(), self.extents.clone(), self.counters.clone(), self.loop_extents.clone());
        let indices = self.indices.clone();
        self.found.push(Statement {
            vertex: v,
            spans: vec![v.span],
            path,
            extents,
            counters,
            indices,
            loop_extents,
            codelet,
            header,
            generics,
            fields,
            tile,
            within,
        });
        Ok(())
    }

    /// Evaluates the tile of a vertex.
    pub(super) fn tile(&mut self, place: &ast::Place) -> Found<Ints> {
        let ast::Place::Expr(e) = place else { return Err(Stop::Leave) };
        match self.expr(*e)? {
            Batch::Tile(tile) => Ok(tile),
            Batch::Uniform(Value::Place(p)) if p.count == 1 => Ok(Ints::constant(p.first as i64)),
            _ => Err(Stop::Leave),
        }
    }
}
