//! `map` in columns: the elements and tiles of all turns of its loops at once.
//!
//! Invariant: the rows are those of the evaluation turn by turn; where turns were parted they come in another order.

use super::blocks::Block;
use super::nest::Nest;
use super::{Column, Found, Ints, Stop, point_count};
use crate::elaborator::Elaborator;
use crate::value::{Tensor, Value};
use girder_ir::ids::VarId;
use girder_ir::view::Run;
use girder_source::Result;
use girder_syntax::ast;

/// Turns of one `map`, which take room while they are evaluated.
const MAX_TURNS: usize = 1 << 22;

/// What a `map` puts on tiles, by variable.
#[derive(Debug, Default)]
pub struct Mapped {
    pub vars: Vec<(VarId, Vec<Block>)>,
    /// How many parts of the turns they come from.
    pub parts: usize,
}

impl Mapped {
    fn blocks_of(&mut self, var: VarId) -> &mut Vec<Block> {
        let known = self.vars.iter().position(|v| v.0 == var);
        let k = known.unwrap_or_else(|| {
            self.vars.push((var, vec![]));
            self.vars.len() - 1
        });
        &mut self.vars[k].1
    }
}

impl<'a> Elaborator<'a> {
    /// What a `map` maps; nothing if it is left.
    pub fn map_in_columns(
        &mut self,
        view: ast::ExprId,
        place: &ast::Place,
        family: &'a [ast::Binder],
    ) -> Result<Option<Mapped>> {
        self.attempt(|this| {
            let mut mapped = Mapped::default();
            let mut nest = Nest::new(this, MAX_TURNS);
            nest.parted(&mut |this| {
                this.under(family, &mut |this| this.parted(&mut |this| this.map(view, place, &mut mapped)))
            })?;
            Ok(mapped)
        })
    }
}

impl Nest<'_, '_> {
    fn map(&mut self, view: ast::ExprId, place: &ast::Place, out: &mut Mapped) -> Found<()> {
        let (like, shift) = match self.expr(view)? {
            Column::Known(Value::Tensor(t)) => (Tensor::clone(&t), Ints::constant(0)),
            Column::View { like, shift } => (like, shift),
            _ => return Err(Stop::Leave),
        };
        let tile = self.tile(place)?;
        out.parts += 1;
        let runs: Vec<Run> = like.view.runs().collect();
        let mut vars: Vec<VarId> = runs.iter().map(|r| r.var).collect();
        vars.sort();
        vars.dedup();
        for var in vars {
            let own = Block::of(&runs.iter().filter(|r| r.var == var).collect::<Vec<_>>());
            let blocks = out.blocks_of(var);
            blocks.reserve(own.len() * point_count(&self.lens));
            for (tile, shift) in tile.list(&self.lens).into_iter().zip(shift.list(&self.lens)) {
                blocks.extend(own.iter().map(|b| b.shifted(shift, tile as u32)));
            }
        }
        Ok(())
    }
}
