//! Many values at once: what an expression is worth in every turn of the loops around it.
//!
//! # Note: Columns
//! The body of a loop in a compute set is evaluated once, for all its turns. An integer is an affine function of the
//! turns as long as it can be, else a table along the one index that it depends on or a sum of such, and else a list with
//! one value per turn; a view is one view and by how much it moves.
//! Where turns differ in more than that (in the length of a slice, in what a condition says) they are parted, and each
//! part goes on for itself. What cannot be evaluated so, or would be an error in some turn, is left to the evaluation
//! turn by turn (`vertices`), which gives the same graph and says the errors.
//!
//! Invariant: evaluation in columns says no error that belongs to one turn, emits no step and makes no entity.

mod alike;
mod blocks;
mod expr;
mod functions;
mod ints;
mod maps;
mod nest;
mod pick;
mod reductions;
mod views;

pub use blocks::{Block, Grid};
pub use ints::{Ints, Lens, On, point_count};
pub use maps::Mapped;

use crate::elaborator::Elaborator;
use crate::value::{Tensor, Value};
use girder_source::{Failed, Result};
use girder_syntax::ast::ExprId;
use smol_str::SmolStr;
use std::sync::Arc;

/// What an expression is worth in every turn.
#[derive(Clone, Debug)]
pub enum Column {
    /// The same in all.
    Known(Value),
    /// Integers.
    Ints(Ints),
    /// Booleans: 1 where it is true, else 0.
    Bools(Ints),
    /// Values of other kinds.
    Values(Arc<[Value]>),
    /// Ranges of one length.
    Range { start: Ints, count: u64, step: i64 },
    /// A view whose parts all move alike.
    View { like: Tensor, shift: Ints },
    /// A tile, by absolute number.
    Tile(Ints),
    /// Columns side by side, perhaps named.
    Tuple { names: Arc<[SmolStr]>, parts: Arc<[Column]> },
}

/// What has a value in each turn.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Named {
    /// A name.
    Name(SmolStr),
    /// An integer of the statement before others that are like it.
    Int(ExprId),
}

/// Why an evaluation ended.
#[derive(Debug)]
pub enum Stop {
    /// It cannot be done in columns.
    Leave,
    /// An error was said.
    Failed,
    /// Turns with different keys go on apart.
    Part(Ints),
}

/// What an evaluation in columns gives.
pub type Found<T> = std::result::Result<T, Stop>;

impl From<girder_source::Failed> for Stop {
    fn from(_: girder_source::Failed) -> Stop {
        Stop::Failed
    }
}

impl<'a> Elaborator<'a> {
    /// Runs an evaluation in columns; `None` if it cannot be done so, or the session does without. The steps of what is
    /// given up are not charged: those of the evaluation turn by turn, which follows, are.
    fn attempt<T>(&mut self, f: impl FnOnce(&mut Self) -> Found<T>) -> Result<Option<T>> {
        if !self.session.batched {
            return Ok(None);
        }
        let before = self.steps_left;
        match f(self) {
            Ok(value) => Ok(Some(value)),
            Err(Stop::Failed) => Err(Failed),
            Err(_) => {
                self.steps_left = before;
                Ok(None)
            }
        }
    }
}

impl Column {
    /// From one value per turn.
    fn of(values: Vec<Value>) -> Column {
        let ints: Option<Vec<i64>> =
            values.iter().map(|v| if let Value::Int(i) = v { Some(*i) } else { None }).collect();
        if let Some(ints) = ints {
            return Column::Ints(Ints::Each(ints.into()));
        }
        let bools: Option<Vec<i64>> =
            values.iter().map(|v| if let Value::Bool(b) = v { Some(*b as i64) } else { None }).collect();
        bools.map_or_else(|| Column::Values(values.into()), |b| Column::Bools(Ints::Each(b.into())))
    }

    /// As integers, if they are.
    fn ints(self) -> Found<Ints> {
        match self {
            Column::Known(Value::Int(i)) => Ok(Ints::constant(i)),
            Column::Ints(ints) => Ok(ints),
            _ => Err(Stop::Leave),
        }
    }
}
