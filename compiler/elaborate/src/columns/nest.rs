//! Loops of a compute set whose bodies are evaluated once for all turns.
//!
//! # Note: Two phases
//! First every statement is evaluated, which makes nothing; what is found waits. Then what waits is taken in the order
//! in which the first vertices of each would come turn by turn, so that codelets, constants and families are made in
//! that order.

use super::pick::{Pick, inside, inside_ints};
use super::{Column, Found, Ints, Lens, Named, Stop, point_count};
use crate::codelet::{Header, ModuleRef};
use crate::elaborator::Elaborator;
use crate::families::{Block, Families, Loops};
use crate::value::{Tensor, Value};
use girder_ir::codelet::{Dir, GenericArg};
use girder_ir::family::Const;
use girder_ir::ids::FieldId;
use girder_source::{Result, Span};
use girder_syntax::ast::{self, VertexItem};
use std::sync::Arc;

/// Parts of one loop that differ in shape or take other branches; beyond these, turns are evaluated one by one.
const MAX_PARTS: usize = 256;

/// The state of an evaluation in columns.
pub(super) struct Nest<'n, 'a> {
    pub base: &'n mut Elaborator<'a>,
    /// The box of turns that go on together.
    pub lens: Lens,
    /// Names of the loops and of `let`s inside them, innermost last; integers of statements that are alike.
    pub names: Vec<(Named, Column)>,
    /// The turn that each loop is in.
    pub counters: Vec<Ints>,
    /// The indices of the loops, for messages.
    indices: Vec<Ints>,
    extents: Vec<u32>,
    /// Where the statement is: numbers of items and turns of loops.
    pub path: Vec<Ints>,
    pub found: Vec<Statement<'a>>,
    limit: usize,
}

/// A vertex statement in all turns that it is evaluated for.
pub(super) struct Statement<'a> {
    vertex: &'a ast::Vertex,
    /// Where it stands; in no loop, where each of those that are alike stands.
    pub spans: Vec<Span>,
    pub path: Vec<Ints>,
    pub lens: Lens,
    counters: Vec<Ints>,
    indices: Vec<Ints>,
    extents: Vec<u32>,
    codelet: (ModuleRef, usize),
    header: Arc<Header>,
    generics: Vec<GenericArg>,
    /// One per field.
    fields: Vec<(Column, Span)>,
    tile: Option<Ints>,
}

/// Names, turns and path that a part of the turns goes on with.
struct Held {
    lens: Lens,
    names: Vec<(Named, Column)>,
    counters: Vec<Ints>,
    indices: Vec<Ints>,
    path: Vec<Ints>,
}

impl<'a> Elaborator<'a> {
    /// Evaluates a loop of a compute set in columns; `false` if it is left, and nothing was made.
    pub fn in_columns(&mut self, item: &'a VertexItem, loops: &Loops, out: &mut Families) -> Result<bool> {
        let limit = self.session.limits.instances.saturating_sub(out.count).min(u32::MAX as u64) as usize;
        let blocks = self.attempt(|this| {
            let mut nest = Nest::new(this, limit);
            nest.indices = nest.base.indices.iter().map(|&i| Ints::constant(i)).collect();
            nest.counters = loops.at.iter().map(|&i| Ints::constant(i as i64)).collect();
            nest.extents = loops.extents.clone();
            nest.item(item)?;
            let found = nest.found;
            if found.iter().map(|s| point_count(&s.lens)).sum::<usize>() > limit {
                return Err(Stop::Leave);
            }
            let blocks = this.settled(found)?;
            // Parts of one signature would have to be shuffled into the order of turns.
            if crate::families::all_differ(&blocks) { Ok(blocks) } else { Err(Stop::Leave) }
        })?;
        let Some(blocks) = blocks else { return Ok(false) };
        blocks.into_iter().for_each(|block| out.add_block(block));
        Ok(true)
    }

    /// The blocks of what was found, in the order of their first vertices.
    pub(super) fn settled(&mut self, mut found: Vec<Statement<'a>>) -> Result<Vec<Block>> {
        found.sort_by_cached_key(|s| s.path.iter().map(Ints::first).collect::<Vec<i64>>());
        let mut failed = false;
        let mut blocks = vec![];
        for statement in found {
            match self.settle(statement) {
                Ok(block) => blocks.push(block),
                Err(_) => failed = true,
            }
        }
        if failed { Err(girder_source::Failed) } else { Ok(blocks) }
    }

    /// Makes the codelet and the constants of a statement, and checks its sizes.
    fn settle(&mut self, s: Statement<'a>) -> Result<Block> {
        let (mut types, mut like, mut shifts, mut constants) = (vec![], vec![], vec![], vec![]);
        for (k, (field, (column, span))) in s.header.fields.iter().zip(s.fields).enumerate() {
            let id = FieldId::from_u32(k as u32);
            if field.dir == Dir::Const {
                constants.push((id, column, span));
                continue;
            }
            let (tensor, shift) = match column {
                Column::View { like, shift } => (like, shift),
                Column::Known(value) => (self.vertex_view(field, value, span)?, Ints::constant(0)),
                _ => return Err(girder_source::Failed),
            };
            types.push((id, tensor.ty));
            like.push(tensor.view);
            shifts.push(shift);
        }
        let (v, span) = (s.vertex, s.spans[0]);
        let args = self.with_scope(|_, d| crate::codelet::infer_args(&s.header, &s.generics, &types, span, d))?;
        let spec = self.specialised(s.codelet.0, s.codelet.1, &args, span)?;
        let mut consts = vec![];
        for (id, column, span) in constants {
            consts.push(self.const_column(column, self.graph.codelets[spec].fields[id].ty, &s.lens, span)?);
        }
        self.check_block(spec, &like, &consts, v, &s.header)?;
        let tiles = s.tile.map(|t| t.values(&s.lens).map(|t| t as u32).collect());
        let like = like.into_iter().map(girder_ir::view::View::canonical).collect();
        let (lens, extents, counters, indices) = (s.lens, s.extents, s.counters, s.indices);
        Ok(Block { spec, spans: s.spans, like, shifts, consts, tiles, lens, extents, counters, indices })
    }

    fn const_column(
        &mut self,
        column: Column,
        ty: girder_ir::types::ElemType,
        lens: &[u32],
        span: Span,
    ) -> Result<Const> {
        let values: Vec<Value> = match column {
            Column::Known(value) => return self.const_scalar(&value, ty, span).map(Const::Uniform),
            Column::Ints(ints) => ints.values(lens).map(Value::Int).collect(),
            Column::Bools(bools) => bools.values(lens).map(|b| Value::Bool(b != 0)).collect(),
            Column::Values(values) => values.to_vec(),
            _ => return Err(girder_source::Failed),
        };
        let scalars = values.iter().map(|v| self.const_scalar(v, ty, span)).collect::<Result<Vec<_>>>()?;
        Ok(Const::fit(&scalars))
    }
}

impl<'n, 'a> Nest<'n, 'a> {
    /// Outside of all loops, in which there may be so many turns.
    pub(super) fn new(base: &'n mut Elaborator<'a>, limit: usize) -> Nest<'n, 'a> {
        Nest {
            base,
            lens: Lens::new(),
            names: vec![],
            counters: vec![],
            indices: vec![],
            extents: vec![],
            path: vec![],
            found: vec![],
            limit,
        }
    }

    /// Evaluates an item in all turns of `lens`, in parts where they must be parted.
    fn item(&mut self, item: &'a VertexItem) -> Found<()> {
        self.parted(&mut |this| match item {
            VertexItem::For { binders, body, .. } => this.under(binders, &mut |this| this.items(body)),
            // The turns of its own loops are parted inside them.
            VertexItem::Vertex(v) => this.under(&v.family, &mut |this| this.parted(&mut |this| this.vertex(v))),
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

    /// A `let` that parts the turns parts all that comes after it.
    fn items_from(&mut self, items: &'a [VertexItem], from: usize) -> Found<()> {
        let mut failed = false;
        for (k, item) in items.iter().enumerate().skip(from) {
            let done = match item {
                VertexItem::Let(l) => match self.expr(l.value) {
                    Ok(value) if !l.mutable => self.bind(&l.pattern, value),
                    Ok(_) => Err(Stop::Leave),
                    Err(Stop::Part(keys)) => {
                        return self.apart(&keys, &mut |this| this.items_from(items, k));
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
                // The other items may have errors of their own.
                Err(Stop::Failed) if !matches!(item, VertexItem::Let(_)) => failed = true,
                Err(stop) => return Err(stop),
            }
        }
        if failed { Err(Stop::Failed) } else { Ok(()) }
    }

    /// Runs `f`, and where it asks for it, again for each part of the turns.
    pub(super) fn parted(&mut self, f: &mut dyn FnMut(&mut Self) -> Found<()>) -> Found<()> {
        match f(self) {
            Err(Stop::Part(keys)) => self.apart(&keys, &mut |this| this.parted(f)),
            done => done,
        }
    }

    /// Runs `f` for the turns of each key.
    fn apart(&mut self, keys: &Ints, f: &mut dyn FnMut(&mut Self) -> Found<()>) -> Found<()> {
        let parts = Pick::by_key(keys, &self.lens, MAX_PARTS).ok_or(Stop::Leave)?;
        let mut failed = false;
        for (_, pick) in parts {
            match self.within(&pick, f) {
                Ok(()) => {}
                Err(Stop::Failed) => failed = true,
                Err(stop) => return Err(stop),
            }
        }
        if failed { Err(Stop::Failed) } else { Ok(()) }
    }

    /// Runs `f` for some turns, at least one.
    pub(super) fn within(&mut self, pick: &Pick, f: &mut dyn FnMut(&mut Self) -> Found<()>) -> Found<()> {
        let lens = &self.lens;
        let part = Held {
            lens: pick.lens(),
            names: self.names.iter().map(|(n, c)| (n.clone(), pick.column(c, lens))).collect(),
            counters: self.counters.iter().map(|c| pick.ints(c, lens)).collect(),
            indices: self.indices.iter().map(|c| pick.ints(c, lens)).collect(),
            path: self.path.iter().map(|c| pick.ints(c, lens)).collect(),
        };
        let all = self.swap(part);
        let done = f(self);
        self.swap(all);
        done
    }

    fn swap(&mut self, held: Held) -> Held {
        Held {
            lens: std::mem::replace(&mut self.lens, held.lens),
            names: std::mem::replace(&mut self.names, held.names),
            counters: std::mem::replace(&mut self.counters, held.counters),
            indices: std::mem::replace(&mut self.indices, held.indices),
            path: std::mem::replace(&mut self.path, held.path),
        }
    }

    /// Runs `f` inside loops.
    pub(super) fn under(&mut self, binders: &'a [ast::Binder], f: &mut dyn FnMut(&mut Self) -> Found<()>) -> Found<()> {
        let Some((first, rest)) = binders.split_first() else { return f(self) };
        self.parted(&mut |this| {
            let span = this.base.tree().exprs[first.range].span;
            let range = this.expr(first.range)?;
            let count = this.turns(&range)?;
            this.base.charge_many(count, span)?;
            if count == 0 {
                return Ok(());
            }
            let total = point_count(&this.lens) as u64 * count;
            if total > this.limit as u64 {
                return Err(Stop::Leave);
            }
            let n = count as u32;
            let dim = this.lens.len();
            let mut held = Held {
                lens: this.lens.iter().copied().chain([n]).collect(),
                names: this.names.iter().map(|(name, c)| (name.clone(), inside(c, n))).collect(),
                counters: this.counters.iter().map(|c| inside_ints(c, n)).collect(),
                indices: this.indices.iter().map(|c| inside_ints(c, n)).collect(),
                path: this.path.iter().map(|c| inside_ints(c, n)).collect(),
            };
            held.counters.push(Ints::index(dim));
            held.path.push(Ints::index(dim));
            let outer = this.swap(held);
            this.extents.push(n);
            let done = this.nth(range, &outer.lens, n).and_then(|item| {
                let index = if let Column::Ints(ints) = &item { ints.clone() } else { Ints::index(dim) };
                this.indices.push(index);
                this.bind(&first.pattern, item)?;
                this.under(rest, f)
            });
            this.extents.pop();
            this.swap(outer);
            done
        })
    }

    /// How many turns a `for` over a column takes in each turn.
    fn turns(&mut self, range: &Column) -> Found<u64> {
        match range {
            Column::Range { count, .. } => Ok(*count),
            Column::Known(Value::Range(r)) => Ok(r.count),
            Column::Known(Value::List(l)) => Ok(l.len() as u64),
            _ => Err(Stop::Leave),
        }
    }

    /// What the name of a loop over `range` is worth in its turns, which are inside those of `outer`.
    fn nth(&mut self, range: Column, outer: &Lens, n: u32) -> Found<Column> {
        let turn = Ints::index(outer.len());
        match range {
            Column::Known(Value::Range(r)) => {
                self.nth(Column::Range { start: Ints::constant(r.start), count: r.count, step: r.step }, outer, n)
            }
            Column::Range { start, step, .. } => {
                let start = inside_ints(&start, n);
                Ok(Column::Ints(turn.scale(step, &self.lens)?.add(&start, &self.lens)?))
            }
            Column::Known(Value::List(l)) => {
                if l.iter().any(|v| matches!(v, Value::Tensor(_) | Value::Array(_))) {
                    return Err(Stop::Leave);
                }
                let int = |k: i64| if let Value::Int(i) = l[k as usize] { Some(i) } else { None };
                if let Ok(ints) = turn.map(&self.lens, int) {
                    return Ok(Column::Ints(ints));
                }
                let all = turn.values(&self.lens).map(|k| l[k as usize].clone()).collect();
                Ok(Column::of(all))
            }
            _ => Err(Stop::Leave),
        }
    }

    pub(super) fn bind(&mut self, pattern: &ast::Pattern, value: Column) -> Found<()> {
        match pattern {
            ast::Pattern::Name(name) => self.names.push((Named::Name(name.name.clone()), value)),
            ast::Pattern::Wildcard(_) => {}
            ast::Pattern::Tuple(parts, _) => {
                for (k, part) in parts.iter().enumerate() {
                    let member = self.member_of(&value, k, parts.len())?;
                    self.bind(part, member)?;
                }
            }
        }
        Ok(())
    }

    /// The k-th of so many values side by side.
    fn member_of(&self, value: &Column, k: usize, count: usize) -> Found<Column> {
        let member = |v: &Value| match v {
            Value::Tuple(t) if t.values.len() == count => Some(t.values[k].clone()),
            Value::List(l) if l.len() == count => Some(l[k].clone()),
            _ => None,
        };
        match value {
            Column::Known(v) => member(v).map(Column::Known).ok_or(Stop::Leave),
            Column::Tuple { parts, .. } if parts.len() == count => Ok(parts[k].clone()),
            Column::Values(all) => {
                all.iter().map(member).collect::<Option<Vec<_>>>().map(Column::of).ok_or(Stop::Leave)
            }
            _ => Err(Stop::Leave),
        }
    }

    fn branches(&mut self, cond: ast::ExprId, then: &'a [VertexItem], els: Option<&'a [VertexItem]>) -> Found<()> {
        let els = els.unwrap_or_default();
        match self.expr(cond)? {
            Column::Known(Value::Bool(b)) => self.items(if b { then } else { els }),
            Column::Bools(bools) => {
                let parts = Pick::by_key(&bools, &self.lens, 2).ok_or(Stop::Leave)?;
                for (wanted, items) in [(1, then), (0, els)] {
                    let part = parts.iter().find(|p| p.0 == wanted);
                    if let Some((_, pick)) = part.filter(|_| !items.is_empty()) {
                        self.within(pick, &mut |this| this.items(items))?;
                    }
                }
                Ok(())
            }
            _ => Err(Stop::Leave),
        }
    }

    pub(super) fn vertex(&mut self, v: &'a ast::Vertex) -> Found<()> {
        let codelet = self.base.find_codelet(&v.codelet)?;
        let header = self.base.header(codelet.0, codelet.1)?;
        let mut slots: Vec<Option<(Column, Span)>> = vec![None; header.fields.len()];
        let mut next = 0;
        for a in &v.args {
            let slot = match &a.name {
                None => {
                    next += 1;
                    Some(next - 1)
                }
                Some(n) => header.fields.iter().position(|f| f.name == n.name),
            };
            let value = self.expr(a.value)?;
            match slot.and_then(|s| slots.get_mut(s)) {
                Some(s @ None) => *s = Some((value, self.base.tree().exprs[a.value].span)),
                _ => return Err(Stop::Leave),
            }
        }
        let fields: Vec<(Column, Span)> = slots.into_iter().collect::<Option<_>>().ok_or(Stop::Leave)?;
        for (field, (column, _)) in header.fields.iter().zip(&fields) {
            let fits = match column {
                Column::View { like, .. } => {
                    field.dir != Dir::Const && like.view.rank() == field.rank && like.view.parts.len() == 1
                }
                Column::Known(Value::Tensor(like)) => field.dir != Dir::Const && like.view.rank() == field.rank,
                Column::Known(Value::Int(_) | Value::Float(_) | Value::Bool(_)) => {
                    field.dir == Dir::Const || field.dir == Dir::In && field.rank == 0
                }
                Column::Ints(_) | Column::Bools(_) | Column::Values(_) => field.dir == Dir::Const,
                _ => false,
            };
            if !fits {
                return Err(Stop::Leave);
            }
        }
        let mut generics = vec![];
        for &g in &v.generics {
            generics.push(match self.expr(g)? {
                Column::Known(Value::Type(t)) => GenericArg::Type(t),
                Column::Known(Value::Int(i)) => GenericArg::Int(i),
                _ => return Err(Stop::Leave),
            });
        }
        let tile = v.place.as_ref().map(|p| self.tile(p)).transpose()?;
        let (path, lens, counters, extents) =
            (self.path.clone(), self.lens.clone(), self.counters.clone(), self.extents.clone());
        let indices = self.indices.clone();
        self.found.push(Statement {
            vertex: v,
            spans: vec![v.span],
            path,
            lens,
            counters,
            indices,
            extents,
            codelet,
            header,
            generics,
            fields,
            tile,
        });
        Ok(())
    }

    pub(super) fn tile(&mut self, place: &ast::Place) -> Found<Ints> {
        let ast::Place::Expr(e) = place else { return Err(Stop::Leave) };
        match self.expr(*e)? {
            Column::Tile(tile) => Ok(tile),
            Column::Known(Value::Place(p)) if p.count == 1 => Ok(Ints::constant(p.first as i64)),
            _ => Err(Stop::Leave),
        }
    }
}

/// A view that is the same in all turns, or moves with them.
pub(super) fn moving(like: Tensor, shift: Ints) -> Column {
    match shift.as_constant() {
        Some(0) => Column::Known(like.into()),
        _ => Column::View { like, shift },
    }
}
