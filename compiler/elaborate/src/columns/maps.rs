//! `map` in columns: the elements and tiles of all turns of its loops at once.
//!
//! Invariant: the rows are those of the evaluation turn by turn; where turns were parted they come in another order.

use super::nest::Nest;
use super::{Column, Found, Ints, Stop};
use crate::elaborator::Elaborator;
use crate::places::VarRows;
use crate::value::{Tensor, Value};
use girder_ir::ids::VarId;
use girder_ir::placement::TileRun;
use girder_ir::view::Run;
use girder_source::{Failed, Result};
use girder_syntax::ast;

/// Turns of one `map`, which take room while they are evaluated.
const MAX_TURNS: usize = 1 << 22;

/// The rows of a `map`, by variable.
#[derive(Debug, Default)]
pub struct Mapped {
    pub vars: Vec<VarRows>,
    /// How many parts of the turns they come from.
    pub parts: usize,
}

impl Mapped {
    fn rows_of(&mut self, var: VarId) -> &mut Vec<TileRun> {
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
        let mut mapped = Mapped::default();
        let mut nest = Nest::new(self, MAX_TURNS);
        let done = nest.parted(&mut |this| {
            this.under(family, &mut |this| this.parted(&mut |this| this.map(view, place, &mut mapped)))
        });
        match done {
            Ok(()) => Ok(Some(mapped)),
            Err(Stop::Failed) => Err(Failed),
            Err(_) => Ok(None),
        }
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
            let own: Vec<&Run> = runs.iter().filter(|r| r.var == var).collect();
            let rows = out.rows_of(var);
            for (tile, shift) in tile.values(&self.lens).zip(shift.values(&self.lens)) {
                let row = |start: i64, len: u64| ((start + shift) as u64, (start + shift) as u64 + len, tile as u32);
                for run in &own {
                    match run.stride {
                        1 => rows.push(row(run.start as i64, run.len)),
                        _ => rows.extend(run.elements().map(|e| row(e as i64, 1))),
                    }
                }
            }
        }
        Ok(())
    }
}
