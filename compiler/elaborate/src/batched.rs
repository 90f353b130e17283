//! Batched evaluation: computes the value of an expression in every iteration of the enclosing loops at once.
//!
//! # Note: Batches
//! The body of a loop in a compute set is evaluated once, for all its iterations. An integer is an affine function of
//! the iteration as long as it can be; otherwise it is a table along the one index that it depends on, or a sum of such
//! tables; otherwise it is a list with one value per iteration. A view is the view of the first iteration and a shift
//! for each iteration.
//!
//! Iterations that differ in more than that (in the length of a slice, or in the value of a condition) are split, and
//! each part is evaluated separately. An expression that cannot be batched, or that would be an error in some
//! iteration, is left to evaluation one iteration at a time (`vertices`), which makes the same graph and reports the
//! errors.
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
mod cycles;
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
    /// One value for all iterations.
    Uniform(Value),
    /// Integers.
    Ints(Ints),
    /// Booleans: 1 for true, 0 for false.
    Bools(Ints),
    /// Values of other kinds, one per iteration.
    Values(Arc<[Value]>),
    /// Ranges of one length and step.
    Range { start: Ints, count: u64, step: i64 },
    /// A view all of whose parts move by the same distance.
    View { like: Tensor, shift: Ints },
    /// A tile, by absolute number.
    Tile(Ints),
    /// A tuple of batches, perhaps with names.
    Tuple { names: Arc<[SmolStr]>, parts: Arc<[Batch]> },
}

/// The owner of a batch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Named {
    /// A name.
    Name(SmolStr),
    /// An integer of the first of several repeated statements.
    Int(ExprId),
}

/// The reason why batched evaluation ended.
#[derive(Debug)]
pub enum Stop {
    /// The expression cannot be batched.
    Leave,
    /// An error was reported.
    Failed,
    /// Iterations with different keys must be evaluated separately.
    Split(Ints),
}

/// The result of batched evaluation.
pub type Found<T> = std::result::Result<T, Stop>;

impl From<Failed> for Stop {
    fn from(_: Failed) -> Stop {
        Stop::Failed
    }
}

impl<'a> Elaborator<'a> {
    /// Runs a batched evaluation; `None` if it is impossible or the session turns it off. The steps of an abandoned
    /// attempt are not charged; those of the evaluation one iteration at a time that follows it are.
    fn attempt<T>(&mut self, f: impl FnOnce(&mut Self) -> Found<T>) -> Result<Option<T>> {
        if !self.session.batched {
            return Ok(None);
        }
        let (steps_left, bytes) = (self.budget.left(), self.session.memory.used());
        let found = f(self);
        // The tables of the evaluation end with it; what it leaves in the graph is charged there.
        if !self.budget.has_stopped() {
            self.session.memory.set_back(bytes);
        }
        match found {
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

    /// Returns the bytes of its tables.
    fn bytes(&self) -> u64 {
        match self {
            Batch::Uniform(_) => 0,
            Batch::Ints(ints) | Batch::Bools(ints) | Batch::Tile(ints) => ints.bytes(),
            Batch::Values(values) => std::mem::size_of_val(&values[..]) as u64,
            Batch::Range { start, .. } => start.bytes(),
            Batch::View { shift, .. } => shift.bytes(),
            Batch::Tuple { parts, .. } => parts.iter().map(Batch::bytes).sum(),
        }
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
