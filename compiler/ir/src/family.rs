//! Families: many vertices or many copies as one entity, with fields of one shape, and offsets and tiles as functions
//! of the instance.
//!
//! # Note: Three forms
//! A value per instance is a closed form ([`Affine`], [`TileMap::Separable`]) where the text is regular, and a table
//! otherwise; instances of one signature always share a family. An irregular instance never becomes a family of its
//! own.
//!
//! Invariants: every table has one row per instance; every instance's elements lie inside their variables.

mod canonical;
mod fit;
mod queries;
#[cfg(test)]
mod tests;
mod tiles;

pub use canonical::{BoxNode, BoxTree};
pub use fit::fit_affine;
pub use tiles::{ByTile, TileIter};

use crate::affine::Affine;
use crate::ids::{ComputeSetId, FieldId, SpecId, VarId};
use crate::placement::TileRange;
use crate::types::Scalar;
use crate::view::{Digits, View, ViewPart};
use girder_source::{OriginId, Origins, Span};
use smallvec::SmallVec;
use std::sync::Arc;

/// The box of a family's indices; instances are numbered row-major. Rank 0 is one instance.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Domain(pub SmallVec<[u32; 4]>);

/// Vertices of one codelet specialisation that differ only in offsets, constants and tiles.
#[derive(Clone, Debug)]
pub struct Family {
    /// The compute set it belongs to.
    pub set: ComputeSetId,
    /// The codelet that they run.
    pub codelet: SpecId,
    /// The box of their indices.
    pub domain: Domain,
    /// One per field of the codelet that is not `const`, in the codelet's order.
    pub fields: SmallVec<[Field; 4]>,
    /// One per `const` field, in the codelet's order.
    pub consts: SmallVec<[(FieldId, Const); 1]>,
    /// Their tiles as given in the text; `None` leaves them to `place-tiles`.
    pub tile: Option<TileMap>,
    /// The tiles on which the text wants vertices that it leaves open; `None` means all tiles.
    pub within: Option<TileRange>,
    /// Their origin.
    pub origin: OriginId,
    /// The statement of each instance, if the instances come from several; their calls are those of `origin`.
    pub statements: Option<Arc<[Span]>>,
}

/// The view of one field for all instances of a family: one shape, whose parts move with the instance.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Field {
    /// The codelet's field.
    pub field: FieldId,
    /// As in [`View`].
    pub digits: Digits,
    /// As in [`View`].
    pub axes: SmallVec<[u8; 4]>,
    /// As in [`View`], each with its offset as a function of the instance.
    pub parts: SmallVec<[FieldPart; 1]>,
}

/// A part of a field.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct FieldPart {
    /// First point.
    pub lo: Digits,
    /// Extent.
    pub len: Digits,
    /// The variable.
    pub var: VarId,
    /// Flat element at `lo`, by instance.
    pub offset: Offset,
    /// As in [`ViewPart`].
    pub stride: SmallVec<[i64; 4]>,
}

/// A flat element as a function of the instance.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Offset {
    /// Closed form.
    Affine(Affine),
    /// One per instance.
    Table(Arc<[u32]>),
}

/// A vertex's constant as a function of the instance.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Const {
    /// The same for all.
    Uniform(Scalar),
    /// One per instance, all of one type.
    Table(Arc<[Scalar]>),
}

/// A tile as a function of the instance.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum TileMap {
    /// `base + Σ stride · function(i[dim])`; each term reads one index, and no index is read twice.
    Separable {
        /// The tile where all functions are 0.
        base: u32,
        /// The terms.
        terms: SmallVec<[Term; 2]>,
    },
    /// One per point, row-major.
    Table(Arc<[u32]>),
}

/// One term of a separable tile map.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Term {
    /// The index that it reads.
    pub dim: u8,
    /// The function of the index.
    pub function: IndexFn,
    /// Tiles from one value to the next.
    pub stride: i32,
}

/// A function of one index i of 0..n. All parameters are at least 1.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum IndexFn {
    /// i
    Identity,
    /// i / b
    Block(u32),
    /// i · p / n
    Balanced(u32),
    /// i % p
    Cyclic(u32),
    /// i / b % p
    BlockCyclic(u32, u32),
}

/// Copies of one shape: in each instance the elements of `src` are assigned to those of `dst` in row-major order. All
/// reads of a copy set come before all its writes.
#[derive(Clone, Debug)]
pub struct CopyFamily {
    /// The indices.
    pub domain: Domain,
    /// The elements written; none is written twice.
    pub dst: Field,
    /// The elements read, of the shape of `dst`.
    pub src: Field,
    /// The replica of the elements read.
    pub source: CopySource,
    /// Its origin.
    pub origin: OriginId,
}

/// The replica whose elements a copy reads.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub enum CopySource {
    /// The one that writes.
    #[default]
    Own,
    /// The one that writes; the program promises that the elements are equal in all replicas.
    Uniform,
    /// Another one. Replicas that are no receiver keep their elements.
    Replicas(Arc<[ReplicaPair]>),
}

/// Two replicas, of which one sends to the other.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ReplicaPair {
    /// The one that writes the elements.
    pub receiver: u32,
    /// The one that reads them.
    pub sender: u32,
}

impl CopySource {
    /// Returns the pairs of replicas between which elements travel; `None` if they stay in their replica.
    pub fn pairs(&self) -> Option<&Arc<[ReplicaPair]>> {
        match self {
            CopySource::Own | CopySource::Uniform => None,
            CopySource::Replicas(pairs) => Some(pairs),
        }
    }

    /// Returns whether each of some replicas writes the elements.
    pub fn writes_all(&self, replicas: u32) -> bool {
        self.pairs().is_none_or(|pairs| {
            let mut receivers: Vec<u32> = pairs.iter().map(|p| p.receiver).collect();
            receivers.sort_unstable();
            receivers.dedup();
            receivers.len() == replicas as usize
        })
    }
}

impl Domain {
    /// Returns the domain of one index.
    pub fn line(count: u32) -> Domain {
        Domain(SmallVec::from_slice(&[count]))
    }

    /// Returns the number of instances.
    pub fn count(&self) -> u64 {
        self.0.iter().map(|&n| n as u64).product()
    }

    /// Returns the point of an instance.
    pub fn point(&self, mut instance: u64) -> SmallVec<[u32; 4]> {
        let mut point: SmallVec<[u32; 4]> = SmallVec::from_elem(0, self.0.len());
        for (p, &n) in point.iter_mut().zip(&self.0).rev() {
            *p = (instance % n as u64) as u32;
            instance /= n as u64;
        }
        point
    }
}

impl Family {
    /// Returns the statement of an instance.
    pub fn span(&self, origins: &Origins, instance: u64) -> Span {
        let own = self.statements.as_ref().map(|s| s[instance as usize]).filter(|&s| !s.in_library());
        own.unwrap_or_else(|| origins.span(self.origin))
    }
}

impl Offset {
    /// Returns the offset of an instance.
    pub fn at(&self, domain: &Domain, instance: u64) -> i64 {
        match self {
            Offset::Affine(a) if a.coef.is_empty() => a.base,
            Offset::Affine(a) if domain.0.len() == 1 => a.base + a.coef[0] * instance as i64,
            Offset::Affine(a) => a.at(&domain.point(instance)),
            Offset::Table(t) => t[instance as usize] as i64,
        }
    }
}

impl Const {
    /// Returns the value of an instance.
    pub fn at(&self, instance: u64) -> Scalar {
        match self {
            Const::Uniform(s) => *s,
            Const::Table(t) => t[instance as usize],
        }
    }
}

impl IndexFn {
    /// Returns the value at index `i` of `0..n`.
    pub fn at(self, i: u32, n: u32) -> u32 {
        match self {
            IndexFn::Identity => i,
            IndexFn::Block(b) => i / b,
            IndexFn::Balanced(p) => (i as u64 * p as u64 / n as u64) as u32,
            IndexFn::Cyclic(p) => i % p,
            IndexFn::BlockCyclic(b, p) => i / b % p,
        }
    }
}

impl TileMap {
    /// Returns the map of all instances to one tile.
    pub fn one(tile: u32) -> TileMap {
        TileMap::Separable { base: tile, terms: SmallVec::new() }
    }

    /// Returns the tile of an instance.
    pub fn at(&self, domain: &Domain, instance: u64) -> u32 {
        match self {
            TileMap::Separable { base, terms } if terms.is_empty() => *base,
            TileMap::Separable { base, terms } => {
                let point = domain.point(instance);
                let shift = |t: &Term| {
                    let d = t.dim as usize;
                    t.stride as i64 * t.function.at(point[d], domain.0[d]) as i64
                };
                (*base as i64 + terms.iter().map(shift).sum::<i64>()) as u32
            }
            TileMap::Table(t) => t[instance as usize],
        }
    }
}

impl Field {
    /// Returns the view of the field for one instance.
    pub fn view(&self, domain: &Domain, instance: u64) -> View {
        let part = |p: &FieldPart| ViewPart {
            lo: p.lo.clone(),
            len: p.len.clone(),
            var: p.var,
            offset: p.offset.at(domain, instance),
            stride: p.stride.clone(),
        };
        View { digits: self.digits.clone(), axes: self.axes.clone(), parts: self.parts.iter().map(part).collect() }
    }

    /// Returns whether the offset of every part is a closed form.
    pub fn is_closed(&self) -> bool {
        self.parts.iter().all(|p| matches!(p.offset, Offset::Affine(_)))
    }

    /// Returns the lengths of its axes.
    pub fn shape(&self) -> SmallVec<[u64; 3]> {
        let mut digits = self.digits.iter();
        let axis = |&n: &u8| digits.by_ref().take(n as usize).map(|&d| d as u64).product();
        self.axes.iter().map(axis).collect()
    }

    /// Returns the number of its elements.
    pub fn len(&self) -> u64 {
        self.digits.iter().map(|&d| d as u64).product()
    }

    /// Returns whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
