//! Stashes: the values of a loop's body that the reverse loop reads, a row for each iteration. They are on the tiles,
//! or beside them in a remote buffer if the loop, or one around it, has the attribute `offload`.
//!
//! # Note: Carried values
//! In `repeat n { h <- tanh(h @ w); }` the reverse iteration needs what `h` holds before and after the iteration, and
//! one is the other of the next iteration. One stash serves both: row k is `h` after iteration k, and a row behind them
//! is `h` before the loop.

use super::order::{Inside, Moment};
use super::state::ReverseWalk;
use super::tape::{Entry, EntryKind, each_write};
use crate::copies::CopyRow;
use crate::elaborator::{Elaborator, Node, NodeKind};
use crate::value::{Given, Tensor, Value};
use girder_ir::ids::{StreamId, VarId};
use girder_ir::program::{Effect, UntilWritten};
use girder_ir::view::View;
use girder_source::{Failed, OriginId, Result, Span};
use girder_syntax::ast::BinaryOp;
use smol_str::SmolStr;
use std::rc::Rc;

/// What is kept.
pub(super) struct Keeping<'p> {
    /// The name of its stash.
    pub name: SmolStr,
    /// The number of rows.
    pub rows: u64,
    /// The step that makes it.
    pub maker: OriginId,
    /// The body where a row is written.
    pub path: &'p [Inside],
    /// When.
    pub at: Moment,
    /// What needs it.
    pub span: Span,
    /// The variable that holds the value at the end of the iteration and is carried to the next.
    pub carrier: Option<Tensor>,
}

/// Where rows are.
enum Stash {
    Tiles(Box<Tensor>),
    Beside(StreamId),
}

impl Elaborator<'_> {
    /// Keeps a value of the body of a loop, and returns the row of the reverse iteration.
    pub(super) fn stashed(
        &mut self,
        w: &mut ReverseWalk,
        k: usize,
        t: &Tensor,
        keeping: Keeping<'_>,
    ) -> Result<Tensor> {
        let span = keeping.span;
        let beside = w.loops[..=k].iter().any(|l| l.offload);
        let carrier = keeping.carrier.clone().filter(|_| !beside);
        let stash = match beside {
            true => self.stash_beside(t, &keeping)?,
            false => self.stash_on_tiles(t, keeping.rows + u64::from(carrier.is_some()), &keeping)?,
        };
        let number = self.forward_number(w, k, span)?;
        let around = self.emission.replace_path(vec![keeping.name]);
        let origin = self.emission.replace_origin(Some(keeping.maker));
        let nodes = self.aside(|this| this.put_in(&stash, number, t, span));
        let first = self.aside(|this| match (&stash, &carrier) {
            (Stash::Tiles(stash), Some(carrier)) => this.put_first(stash, carrier, span),
            _ => Ok(Value::Unit),
        });
        self.emission.replace_origin(origin);
        self.emission.replace_path(around);
        self.splice(w.root, keeping.path, keeping.at, nodes?);
        if let Stash::Tiles(stash) = &stash {
            self.give_up_stash(w, stash, first?, span);
            w.loops[k].carried.extend(carrier.map(|carrier| (carrier.view, Tensor::clone(stash))));
        }
        let number = self.reverse_number(w, k, span)?;
        let row = self.hoisted(w.loops[k].depth, |this| this.untaped(|this| this.row_from(&stash, number, span)))?;
        let Value::Tensor(row) = row else { return Err(Failed) };
        if let Stash::Tiles(stash) = &stash {
            self.recorder.stashes.extend(stash.view.vars());
        }
        Ok(Tensor::clone(&row))
    }

    /// Returns the variable, carried by a loop, that holds a value of its body at the end of an iteration: the value is
    /// what it was made for, or is copied to it.
    pub(super) fn carrier(&self, w: &ReverseWalk, k: usize, t: &Tensor, version: Moment) -> Option<Tensor> {
        let during = &w.loops[k].during;
        let whole = |view: &View| match view.vars()[..] {
            [var] => *view == View::whole(var, &self.graph.vars[var].shape) && !self.is_local(var, during),
            _ => false,
        };
        let last = |view: &View| self.recorder.written_last(view, during.end);
        if k > 0 || version <= during.start {
            return None;
        }
        if whole(&t.view) {
            return (last(&t.view) == version).then(|| t.clone());
        }
        let copied = w.loops[k].body.iter().rev().find_map(|e| match &e.kind {
            EntryKind::Write { dst, src } if src.view == t.view && dst.shape() == t.view.shape() && whole(dst) => {
                Some((dst, e.during.start))
            }
            _ => None,
        });
        let (dst, at) = copied?;
        let is_alone = self.recorder.writes_of(dst.vars()[0], during).all(|write| at <= write.at);
        let is_last = !w.loops[k].body.iter().any(|e| e.during.start > at && writes(e, dst.vars()[0]));
        let is_same = self.recorder.written_last(&t.view, at) == version;
        (is_alone && is_last && is_same).then(|| Tensor { view: dst.clone(), ty: t.ty })
    }

    /// Returns what a carried variable held before an iteration, if a stash keeps what it holds after each of them.
    pub(super) fn row_of_last_iteration(
        &mut self,
        w: &mut ReverseWalk,
        k: usize,
        t: &Tensor,
        since: Moment,
        span: Span,
    ) -> Result<Option<Tensor>> {
        let during = w.loops[k].during.start..since;
        if self.recorder.overwritten(&t.view, during).is_some() {
            return Ok(None);
        }
        let Some((_, stash)) = w.loops[k].carried.iter().find(|c| c.0 == t.view).cloned() else { return Ok(None) };
        let count = w.loops[k].count as i64;
        let number = self.reverse_number(w, k, span)?;
        let row = self.hoisted(w.loops[k].depth, |this| {
            this.untaped(|this| {
                let next = this.binary(BinaryOp::Add, number.into(), Value::Int(count), span)?;
                let Value::Tensor(last) = this.binary(BinaryOp::Rem, next, Value::Int(count + 1), span)? else {
                    return Err(Failed);
                };
                this.row_from(&Stash::Tiles(Box::new(stash)), Tensor::clone(&last), span)
            })
        })?;
        match row {
            Value::Tensor(row) => Ok(Some(Tensor::clone(&row))),
            _ => Err(Failed),
        }
    }

    /// Emits the step that writes what a carried variable holds before the loop to the last row of a stash.
    fn put_first(&mut self, stash: &Tensor, carrier: &Tensor, span: Span) -> Result<Value> {
        let last = stash.view.shape()[0] - 1;
        self.push_copy("put_row", vec![CopyRow::single(stash.view.index(0, last), carrier.view.clone(), span)], span)?;
        Ok(Value::Unit)
    }

    fn stash_on_tiles(&mut self, t: &Tensor, rows: u64, keeping: &Keeping<'_>) -> Result<Stash> {
        let mut shape = vec![rows];
        shape.extend(t.view.shape());
        let around = self.emission.replace_path(vec![]);
        let stash = self.temporary(&keeping.name, t.ty, &shape, keeping.span);
        self.emission.replace_path(around);
        stash.map(|stash| Stash::Tiles(Box::new(stash)))
    }

    fn stash_beside(&mut self, t: &Tensor, keeping: &Keeping<'_>) -> Result<Stash> {
        let name = self.entities.vars.unique(keeping.name.clone());
        let stream = self.remote_buffer(name, t.ty, keeping.rows, &t.view.shape(), keeping.span)?;
        self.graph.streams[stream].offloaded = true;
        self.recorder.beside.push((stream, keeping.span));
        Ok(Stash::Beside(stream))
    }

    /// Emits the steps that write a row.
    fn put_in(&mut self, stash: &Stash, number: Tensor, t: &Tensor, span: Span) -> Result<Value> {
        match stash {
            Stash::Tiles(stash) => {
                let put = [Tensor::clone(stash), number, t.clone()].map(|t| given(t, span));
                self.prelude_given("put_row", put.into(), span)
            }
            Stash::Beside(buffer) => {
                self.seek(*buffer, &number, span)?;
                self.write_stream(*buffer, t.clone().into(), span)?;
                Ok(Value::Unit)
            }
        }
    }

    /// Emits the steps that read a row back.
    fn row_from(&mut self, stash: &Stash, number: Tensor, span: Span) -> Result<Value> {
        match stash {
            Stash::Tiles(stash) => {
                self.prelude_given("row", [Tensor::clone(stash), number].map(|t| given(t, span)).into(), span)
            }
            Stash::Beside(buffer) => {
                self.seek(*buffer, &number, span)?;
                self.packet(*buffer, span).map(Value::from)
            }
        }
    }

    /// Gives up the contents of a stash before the outermost loop, and runs the steps that write its first values. The
    /// reverse program reads the rows that are written.
    fn give_up_stash(&mut self, w: &ReverseWalk, stash: &Tensor, first: Vec<Node>, span: Span) {
        let (outer, before) = (&w.loops[0].path, w.loops[0].during.start);
        let what = stash.view.clone().canonical();
        let origin = self.origin_at(span);
        let (kind, stage) =
            (NodeKind::Effect(Effect::Undef { what, until_written: UntilWritten::Unread }), self.emission.stage());
        let give_up = Node { kind, origin, at: before, reverse: true, stage };
        self.splice(w.root, &outer[..outer.len() - 1], before, [vec![give_up], first].concat());
    }
}

/// Returns whether an entry writes a variable.
fn writes(e: &Rc<Entry>, var: VarId) -> bool {
    let mut found = false;
    each_write(&vec![e.clone()], &mut |v| found |= v == var);
    found
}

fn given(t: Tensor, span: Span) -> Given {
    Given { name: SmolStr::default(), value: t.into(), span }
}
