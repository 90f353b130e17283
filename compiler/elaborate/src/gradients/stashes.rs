//! Stashes: the values of a loop's body that the reverse loop reads, a row for each iteration. They are on the tiles,
//! or beside them in a remote buffer if the loop, or one around it, has the attribute `offload`.

use super::order::{Inside, Moment};
use super::state::ReverseWalk;
use crate::elaborator::{Elaborator, Node, NodeKind};
use crate::value::{Given, Tensor, Value};
use girder_ir::program::Effect;
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

impl Elaborator<'_> {
    /// Returns whether the values of a loop are kept beside the tiles.
    pub(super) fn is_offloaded(&self, w: &ReverseWalk, k: usize) -> bool {
        w.loops[..=k].iter().any(|l| self.recorder.offloaded.iter().any(|r| r.contains(&l.during.start)))
    }

    /// Keeps a value on the tiles, and returns the row of the reverse iteration.
    pub(super) fn kept_on_tiles(
        &mut self,
        w: &mut ReverseWalk,
        k: usize,
        t: &Tensor,
        keeping: Keeping<'_>,
    ) -> Result<Tensor> {
        let span = keeping.span;
        let mut shape = vec![keeping.rows];
        shape.extend(t.view.shape());
        let around = self.emission.replace_path(vec![]);
        let stash = self.temporary(&keeping.name, t.ty, &shape, span);
        self.emission.replace_path(around);
        let stash = stash?;
        self.recorder.stashes.extend(stash.view.vars());
        let number = self.forward_number(w, k, span)?;
        let given = |value: Value| Given { name: SmolStr::default(), value, span };
        let put = vec![given(stash.clone().into()), given(number.into()), given(t.clone().into())];
        self.keep(w, &keeping, |this| this.prelude_given("put_row", put, span))?;
        let outer = w.loops[0].path.clone();
        let before = w.loops[0].during.start;
        let what = stash.view.clone().canonical();
        let origin = self.origin_at(span);
        let (kind, stage) = (NodeKind::Effect(Effect::Undef { what }), self.emission.stage());
        let give_up = Node { kind, origin, at: before, reverse: true, stage };
        self.splice(w.root, &outer[..outer.len() - 1], before, vec![give_up]);
        let number = self.reverse_number(w, k, span)?;
        let read = vec![given(stash.into()), given(number.into())];
        self.read_back(w, k, |this| this.prelude_given("row", read, span))
    }

    /// Keeps a value beside the tiles, and returns the row of the reverse iteration.
    pub(super) fn kept_beside(
        &mut self,
        w: &mut ReverseWalk,
        k: usize,
        t: &Tensor,
        keeping: Keeping<'_>,
    ) -> Result<Tensor> {
        let span = keeping.span;
        if self.emission.stage().is_some() {
            let message = "a loop in a stage cannot keep its values beside the tiles: those of other micro-batches \
                           would overwrite them";
            let help = "write `#[recompute]` before the `let` of the stage instead, which keeps only what goes into it";
            return Err(self.error_help("pipeline::stream", span, message, help));
        }
        let name = self.entities.vars.unique(keeping.name.clone());
        let buffer = self.remote_buffer(name, t.ty, keeping.rows, &t.view.shape(), span)?;
        let number = self.forward_number(w, k, span)?;
        self.keep(w, &keeping, |this| {
            this.seek(buffer, &number, span)?;
            this.write_stream(buffer, t.clone().into(), span)?;
            Ok(Value::Unit)
        })?;
        let number = self.reverse_number(w, k, span)?;
        let row = self.read_back(w, k, |this| {
            this.seek(buffer, &number, span)?;
            this.packet(buffer, span).map(Value::from)
        })?;
        self.recorder.stashes.extend(row.view.vars());
        Ok(row)
    }

    /// Emits the steps that keep a value where it is there.
    fn keep(
        &mut self,
        w: &ReverseWalk,
        keeping: &Keeping<'_>,
        steps: impl FnOnce(&mut Self) -> Result<Value>,
    ) -> Result<()> {
        let around = self.emission.replace_path(vec![keeping.name.clone()]);
        let origin = self.emission.replace_origin(Some(keeping.maker));
        let nodes = self.aside(steps);
        self.emission.replace_origin(origin);
        self.emission.replace_path(around);
        self.splice(w.root, keeping.path, keeping.at, nodes?);
        Ok(())
    }

    /// Emits the steps that read a value back, before those of the reverse iteration that need it.
    fn read_back(
        &mut self,
        w: &ReverseWalk,
        k: usize,
        steps: impl FnOnce(&mut Self) -> Result<Value>,
    ) -> Result<Tensor> {
        let row = self.hoisted(w.loops[k].depth, |this| this.untaped(steps))?;
        let Value::Tensor(row) = row else { return Err(Failed) };
        Ok(Tensor::clone(&row))
    }
}
