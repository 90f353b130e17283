//! Batched evaluation: what an expression is worth in every iteration of the loops around it, computed once.
//!
//! # Note: Batches
//! The body of a loop in a compute set is evaluated once, for all its iterations. An integer is an affine function of
//! the iteration as long as it can be, else a table along the one index that it depends on or a sum of such, and else a
//! list with one value per iteration. A view is one view and by how much it moves.
//!
//! Where iterations differ in more than that (in the length of a slice, in what a condition gives) they are split, and
//! each part is evaluated for itself. What cannot be evaluated so, or would be an error in some iteration, is left to
//! evaluation one iteration at a time (`vertices`), which gives the same graph and reports the errors.
//!
//! Invariant: batched evaluation reports no error that belongs to one iteration, emits no step and makes no entity.

mod ints;
mod subset;
mod statement;
mod evaluator;
mod expr;
mod functions;
mod views;
mod vertices;
mod blocks;
mod repeated;
mod reductions;
mod maps;

pub use ints::{Extents, Ints, point_count};

use crate::elaborator::Elaborator;
use crate::value::{Tensor, Value};
use girder_source::{Failed, Result};
use girder_syntax::ast::ExprId;
use smol_str::SmolStr;
use std::sync::Arc;

/// The value of an expression in every iteration.
#[derive(Clone, Debug)]
pub enum Batch {
    /// One value for all.
    Uniform(Value),
    /// Integers.
    Ints(Ints),
    /// Booleans: 1 where it is true, else 0.
    Bools(Ints),
    /// Values of other kinds, by iteration.
    Values(Arc<[Value]>),
    /// Ranges of one length and step.
    Range { start: Ints, count: u64, step: i64 },
    /// A view whose parts all move by one distance.
    View { like: Tensor, shift: Ints },
    /// A tile, by absolute number.
    Tile(Ints),
    /// Batches side by side, perhaps named.
    Tuple { names: Arc<[SmolStr]>, parts: Arc<[Batch]> },
}

/// What a batch is the value of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Named {
    /// A name.
    Name(SmolStr),
    /// An integer of the first of repeated statements.
    Int(ExprId),
}

/// Why an evaluation ended.
#[derive(Debug)]
pub enum Stop {
    /// It cannot be batched.
    Leave,
    /// An error was reported.
    Failed,
    /// Iterations with different keys must be evaluated apart.
    Split(Ints),
}

/// What batched evaluation gives.
pub type Found<T> = std::result::Result<T, Stop>;

impl From<Failed> for Stop {
    fn from(_: Failed) -> Stop {
        Stop::Failed
    }
}

impl<'a> Elaborator<'a> {
    /// Runs a batched evaluation; `None` if it cannot be done, or the session turns it off. The steps of what is given
    /// up are not charged: those of the evaluation one iteration at a time, which follows, are.
    fn attempt<T>(&mut self, f: impl FnOnce(&mut Self) -> Found<T>) -> Result<Option<T>> {
        if !self.session.batched {
            return Ok(None);
        }
        let steps_left = self.budget.left();
        match f(self) {
            Ok(value) => Ok(Some(value)),
            Err(Stop::Failed) => Err(Failed),
            Err(_) => {
                self.budget.set_left(steps_left);
                Ok(None)
            }
        }
    }
}

impl Batch {
    /// Makes a batch of one value per iteration.
    fn of(values: Vec<Value>) -> Batch {
        let ints: Option<Vec<i64>> =
            values.iter().map(|v| if let Value::Int(i) = v { Some(*i) } else { None }).collect();
        if let Some(ints) = ints {
            return Batch::Ints(Ints::Each(ints.into()));
        }
        let bools: Option<Vec<i64>> =
            values.iter().map(|v| if let Value::Bool(b) = v { Some(*b as i64) } else { None }).collect();
        bools.map_or_else(|| Batch::Values(values.into()), |b| Batch::Bools(Ints::Each(b.into())))
    }

    /// Returns the integers, if all values are.
    fn ints(self) -> Found<Ints> {
        match self {
            Batch::Uniform(Value::Int(i)) => Ok(Ints::constant(i)),
            Batch::Ints(ints) => Ok(ints),
            _ => Err(Stop::Leave),
        }
    }
}
