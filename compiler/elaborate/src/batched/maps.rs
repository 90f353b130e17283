//! `map` statements, batched: the elements and tiles of all iterations of their loops at once.
//!
//! Invariant: the rows are those of evaluation one iteration at a time; where iterations were split they come in
//! another order.

use super::evaluator::Evaluator;
use super::{Batch, Found, Ints, Stop, point_count};
use crate::elaborator::Elaborator;
use crate::maps::blocks::ElementBlock;
use crate::maps::rows::Mapped;
use crate::value::{Tensor, Value};
use girder_ir::ids::VarId;
use girder_ir::view::Run;
use girder_source::Result;
use girder_syntax::ast;

/// Iterations of one `map`, which take room while they are evaluated.
const MAX_ITERATIONS: usize = 1 << 22;

impl<'a> Elaborator<'a> {
    /// Evaluates what a `map` puts on tiles; `None` if it is left.
    pub fn map_batched(
        &mut self,
        view: ast::ExprId,
        place: &ast::Place,
        family: &'a [ast::Binder],
    ) -> Result<Option<Mapped>> {
        self.attempt(|this| {
            let mut mapped = Mapped::default();
            let mut evaluator = Evaluator::new(this, MAX_ITERATIONS);
            evaluator.split(&mut |this| {
                this.under(family, &mut |this| this.split(&mut |this| this.map(view, place, &mut mapped)))
            })?;
            Ok(mapped)
        })
    }
}

impl Evaluator<'_, '_> {
    fn map(&mut self, view: ast::ExprId, place: &ast::Place, out: &mut Mapped) -> Found<()> {
        let (like, shift) = match self.expr(view)? {
            Batch::Uniform(Value::Tensor(t)) => (Tensor::clone(&t), Ints::constant(0)),
            Batch::View { like, shift } => (like, shift),
            _ => return Err(Stop::Leave),
        };
        let tile = self.tile(place)?;
        out.parts += 1;
        let runs: Vec<Run> = like.view.runs().collect();
        let mut vars: Vec<VarId> = runs.iter().map(|r| r.var).collect();
        vars.sort();
        vars.dedup();
        for var in vars {
            let own = ElementBlock::of(&runs.iter().filter(|r| r.var == var).collect::<Vec<_>>());
            let blocks = out.blocks_of(var);
            blocks.reserve(own.len() * point_count(&self.extents));
            for (tile, shift) in tile.list(&self.extents).into_iter().zip(shift.list(&self.extents)) {
                blocks.extend(own.iter().map(|b| b.shifted(shift, tile as u32)));
            }
        }
        Ok(())
    }
}
