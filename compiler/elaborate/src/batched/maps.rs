//! Batched evaluation of `map` statements: the elements and tiles of all iterations at once.
//!
//! Invariant: the rows are those of evaluation one iteration at a time; splitting may change their order.

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

/// Maximal number of iterations of one `map`, which bounds the memory of its evaluation.
const MAX_ITERATIONS: usize = 1 << 22;

impl<'a> Elaborator<'a> {
    /// Evaluates the rows of a `map`; `None` if it cannot be batched.
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
