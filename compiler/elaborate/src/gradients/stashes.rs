//! Stashes: the values of a loop's body that the reverse loop reads, a row for each iteration. They are on the tiles,
//! or beside them in a remote buffer if the loop, or one around it, has the attribute `offload`.
//!
//! # Note: Carried values
//! In `repeat n { h <- tanh(h @ w); }` the reverse iteration needs what `h` holds before and after the iteration. What
//! it holds after one is what it holds before the next, which is reversed first. So only the value before each
//! iteration is kept, and the reverse loop carries it to the iteration before.

use super::order::{Inside, Moment};
use super::state::ReverseWalk;
use super::tape::{Entry, EntryKind};
use crate::copies::CopyRow;
use crate::elaborator::{Elaborator, Node, NodeKind};
use crate::value::{Given, Tensor, Value};
use girder_ir::ids::StreamId;
use girder_ir::program::{Effect, UntilWritten};
use girder_ir::view::View;
use girder_source::{Failed, OriginId, Result, Span};
use smol_str::SmolStr;

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
        let stash = match w.loops[..=k].iter().any(|l| l.offload) {
            true => self.stash_beside(t, &keeping)?,
            false => self.stash_on_tiles(t, &keeping)?,
        };
        let number = self.forward_number(w, k, span)?;
        let around = self.emission.replace_path(vec![keeping.name]);
        let origin = self.emission.replace_origin(Some(keeping.maker));
        let nodes = self.aside(|this| this.put_in(&stash, number, t, span));
        self.emission.replace_origin(origin);
        self.emission.replace_path(around);
        self.splice(w.root, keeping.path, keeping.at, nodes?);
        if let Stash::Tiles(stash) = &stash {
            self.give_up_stash(w, stash, span);
        }
        let number = self.reverse_number(w, k, span)?;
        let row = self.hoisted(w.loops[k].depth, |this| this.untaped(|this| this.row_from(&stash, number, span)))?;
        let Value::Tensor(row) = row else { return Err(Failed) };
        if let Stash::Tiles(stash) = &stash {
            self.recorder.stashes.extend(stash.view.vars());
        }
        Ok(Tensor::clone(&row))
    }

    fn stash_on_tiles(&mut self, t: &Tensor, keeping: &Keeping<'_>) -> Result<Stash> {
        let mut shape = vec![keeping.rows];
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

    /// Returns the variable, carried by a loop, that holds a result of an entry at the end of an iteration, and what it
    /// held before only: the result is written to it or copied to it, and nothing else in the loop writes it.
    fn carrier(&self, w: &ReverseWalk, k: usize, t: &Tensor, e: &Entry) -> Option<Tensor> {
        let during = &w.loops[k].during;
        let version = self.recorder.written_last(&t.view, e.during.end);
        let is_carrier = |view: &View| match view.vars()[..] {
            [var] => {
                let writes = || self.recorder.writes_of(var, during);
                view.shape() == t.view.shape()
                    && *view == View::whole(var, &self.graph.vars[var].shape)
                    && !self.is_local(var, during)
                    && writes().all(|write| e.during.start <= write.at)
            }
            _ => false,
        };
        if version <= during.start {
            return None;
        }
        if is_carrier(&t.view) {
            return (self.recorder.written_last(&t.view, during.end) == version).then(|| t.clone());
        }
        let (copy, dst) = w.loops[k].body.iter().rev().find_map(|copy| match &copy.kind {
            EntryKind::Write { dst, src } if src.view == t.view && is_carrier(dst) => Some((copy, dst)),
            _ => None,
        })?;
        let is_same = self.recorder.written_last(&t.view, copy.during.end) == version;
        let is_alone = self.recorder.writes_of(dst.vars()[0], during).all(|write| copy.during.contains(&write.at));
        (is_same && is_alone).then(|| Tensor { view: dst.clone(), ty: t.ty })
    }

    /// Returns a result of an entry in the body of a loop, if a variable carries it to the next iteration: what the
    /// reverse loop found there before that iteration.
    pub(super) fn carried_back(
        &mut self,
        w: &mut ReverseWalk,
        k: usize,
        t: &Tensor,
        e: &Entry,
    ) -> Result<Option<Tensor>> {
        let Some(carrier) = self.carrier(w, k, t, e).filter(|_| k == 0 && w.path == w.loops[k].path) else {
            return Ok(None);
        };
        if self.lost(w, &carrier.view, w.loops[k].during.end).is_some() {
            return Ok(None);
        }
        let before = self.kept(w, k, &carrier, e, e.during.start, false)?;
        let outside = w.loops[k].depth - 1;
        let after = self.hoisted(outside, |this| this.untaped(|this| this.copy_of(&carrier, e.span)))?;
        self.note_use(w, &carrier.view, e);
        self.give_up_before(w, &carrier.view, e)?;
        w.loops[k].carried.push((after.clone(), before));
        Ok(Some(after))
    }

    /// Emits the steps at the end of a reverse iteration that carry values to the iteration before.
    pub(super) fn carry_back(&mut self, w: &ReverseWalk, span: Span) -> Result<()> {
        let carried = w.loops.last().map(|l| l.carried.clone()).unwrap_or_default();
        carried.into_iter().try_for_each(|(to, from)| {
            let row = CopyRow::single(to.view, from.view, span);
            self.untaped(|this| this.push_copy("copy", vec![row], span))
        })
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

    /// Gives up the contents of a stash before the outermost loop. The reverse program reads the rows that are written.
    fn give_up_stash(&mut self, w: &ReverseWalk, stash: &Tensor, span: Span) {
        let (outer, before) = (&w.loops[0].path, w.loops[0].during.start);
        let what = stash.view.clone().canonical();
        let origin = self.origin_at(span);
        let (kind, stage) =
            (NodeKind::Effect(Effect::Undef { what, until_written: UntilWritten::Unread }), self.emission.stage());
        let give_up = Node { kind, origin, at: before, reverse: true, stage };
        self.splice(w.root, &outer[..outer.len() - 1], before, vec![give_up]);
    }
}

fn given(t: Tensor, span: Span) -> Given {
    Given { name: SmolStr::default(), value: t.into(), span }
}
