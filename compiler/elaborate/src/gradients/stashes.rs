//! Stashes: the values of a loop's body that the reverse loop reads, a row for each iteration. They are on the tiles,
//! or beside them in a remote buffer if the loop, or one around it, has the attribute `offload`.

use super::order::{Inside, Moment};
use super::state::ReverseWalk;
use crate::elaborator::{Elaborator, Node, NodeKind};
use crate::value::{Given, Tensor, Value};
use girder_ir::ids::StreamId;
use girder_ir::program::{Effect, UntilWritten};
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
