//! Offsets and constants of a group's vertices, as closed forms or lists.
//!
//! Invariant: a list has one value per vertex, in their order.

use crate::batched::{Extents, Ints};
use girder_ir::affine::Affine;
use girder_ir::family::{Const, Domain, Offset};
use girder_ir::types::Scalar;
use smallvec::SmallVec;

/// The offset of one part of one view in each vertex.
#[derive(Debug)]
pub enum Offsets {
    /// An affine function over the box that the vertices fill.
    Closed(Affine),
    /// One offset per vertex.
    Listed(Vec<u32>),
}

impl Offsets {
    /// Converts a closed form to a list, so that vertices can be added.
    pub fn open(&mut self, extents: &Extents) {
        if let Offsets::Closed(affine) = self {
            *self = Offsets::Listed(listed(affine, extents));
        }
    }

    /// Puts the vertices in another order. Precondition: the offsets are listed.
    pub fn reorder(&mut self, order: &[usize]) {
        if let Offsets::Listed(values) = self {
            *values = order.iter().map(|&k| values[k]).collect();
        }
    }

    /// Adds a vertex. Precondition: the offsets are listed.
    pub fn push(&mut self, offset: i64) {
        if let Offsets::Listed(values) = self {
            values.push(offset as u32);
        }
    }

    /// Adds the vertices of another group. Precondition: both are listed.
    pub fn append(&mut self, more: Offsets) {
        if let (Offsets::Listed(values), Offsets::Listed(more)) = (self, more) {
            values.extend(more);
        }
    }

    /// Returns the offsets over a domain; `dims` gives the loop of each of its indices, if they are loops. `extents` is
    /// the box of the loops.
    pub fn over(&self, domain: &Domain, dims: Option<&[usize]>, extents: &Extents) -> Offset {
        match (self, dims) {
            (Offsets::Closed(a), Some(dims)) => {
                let coef = |(&k, &n): (&usize, &u32)| if n > 1 { a.coef.get(k).copied().unwrap_or(0) } else { 0 };
                let coef: SmallVec<[i64; 4]> = dims.iter().zip(&domain.0).map(coef).collect();
                Offset::Affine(Affine::new(a.base, &coef))
            }
            (Offsets::Closed(a), None) => Offset::fit(domain, &listed(a, extents)),
            (Offsets::Listed(values), _) => Offset::fit(domain, values),
        }
    }
}

/// Lists an affine function over a box.
fn listed(affine: &Affine, extents: &Extents) -> Vec<u32> {
    Ints::affine(affine.clone()).values(extents).map(|v| v as u32).collect()
}

/// One constant for each vertex.
#[derive(Debug)]
pub enum Constants {
    /// One constant for all vertices.
    Same(Scalar),
    /// One per vertex.
    Listed(Vec<Scalar>),
}

impl Constants {
    /// Appends the constant of a vertex, after which there are `count`.
    pub fn push(&mut self, value: Scalar, count: usize) {
        match self {
            Constants::Same(s) if *s == value => {}
            Constants::Same(s) => {
                let mut values = vec![*s; count - 1];
                values.push(value);
                *self = Constants::Listed(values);
            }
            Constants::Listed(values) => values.push(value),
        }
    }

    /// Puts the vertices in another order.
    pub fn reorder(&mut self, order: &[usize]) {
        if let Constants::Listed(values) = self {
            *values = order.iter().map(|&k| values[k]).collect();
        }
    }

    /// Returns the constant of one vertex.
    pub fn at(&self, k: usize) -> Scalar {
        match self {
            Constants::Same(s) => *s,
            Constants::Listed(values) => values[k],
        }
    }

    /// Returns the constants in the form that a family stores.
    pub fn fit(&self) -> Const {
        match self {
            Constants::Same(s) => Const::Uniform(*s),
            Constants::Listed(values) => Const::fit(values),
        }
    }
}

impl From<Const> for Constants {
    fn from(constants: Const) -> Constants {
        match constants {
            Const::Uniform(s) => Constants::Same(s),
            Const::Table(t) => Constants::Listed(t.to_vec()),
        }
    }
}
