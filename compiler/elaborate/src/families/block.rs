//! Vertices that are being grouped into families: single ones and blocks of one signature, and the keys by which they
//! are grouped.
//!
//! Invariant: vertices of equal keys differ only in offsets, constants and tiles.

use crate::batched::{Extents, Ints, point_count};
use girder_ir::family::Const;
use girder_ir::ids::SpecId;
use girder_ir::placement::TileRange;
use girder_ir::types::Scalar;
use girder_ir::view::{Signature, View};
use girder_source::Span;
use rustc_hash::FxHashSet;

/// One vertex.
#[derive(Debug)]
pub struct Instance {
    /// Its codelet.
    pub spec: SpecId,
    /// Its statement.
    pub span: Span,
    /// One view per field that is not `const`.
    pub views: Vec<View>,
    /// One constant per `const` field.
    pub consts: Vec<Scalar>,
    /// Its tile, if the statement gives one.
    pub tile: Option<u32>,
    /// The tiles among which an open vertex is placed; `None` means all.
    pub within: Option<TileRange>,
    /// The indices of the enclosing loops, for messages.
    pub index: Vec<i64>,
}

/// The loops around a statement, outermost first, with their current iterations.
#[derive(Clone, Debug, Default)]
pub struct Loops {
    /// The extent of each loop.
    pub extents: Vec<u32>,
    /// The current iteration of each loop.
    pub at: Vec<u32>,
    /// Their current indices, for messages.
    pub indices: Vec<i64>,
}

/// Vertices of one signature that were evaluated at once.
#[derive(Debug)]
pub struct VertexBlock {
    /// Their codelet.
    pub spec: SpecId,
    /// The statement; outside loops, the statement of each vertex.
    pub spans: Vec<Span>,
    /// The views to which `shifts` are relative: those of the first vertex, or representative ones.
    pub like: Vec<View>,
    /// For each view, the offset of each vertex relative to `like`.
    pub shifts: Vec<Ints>,
    /// One list of constants per `const` field.
    pub consts: Vec<Const>,
    /// The tile of each vertex, if the statement gives one.
    pub tiles: Option<Vec<u32>>,
    /// The tiles among which open vertices are placed; `None` means all.
    pub within: Option<TileRange>,
    /// The box over which `shifts` and `counters` are defined.
    pub extents: Extents,
    /// The extents of the enclosing loops, in the text.
    pub loop_extents: Vec<u32>,
    /// The iteration of each loop.
    pub counters: Vec<Ints>,
    /// The indices of the loops, for messages.
    pub indices: Vec<Ints>,
}

/// The common properties of the vertices of one group.
#[derive(PartialEq, Eq, Hash, Debug)]
pub struct Key {
    /// Everything but the views.
    pub head: Head,
    /// The signatures of the views.
    pub fields: Vec<Signature>,
}

/// The part of a [`Key`] that is cheap to compare.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Head {
    /// The codelet.
    pub spec: SpecId,
    /// The statement; `None` outside loops.
    pub span: Option<Span>,
    /// Whether the statement gives tiles.
    pub placed: bool,
    /// The tiles among which open vertices are placed.
    pub within: Option<TileRange>,
}

impl Key {
    /// Returns the key of vertices with the signatures of some views.
    pub fn new(head: Head, views: &[View]) -> Key {
        Key { head, fields: views.iter().map(View::signature).collect() }
    }
}

impl VertexBlock {
    /// Returns the iteration of each loop for each vertex.
    pub fn iterations(&self) -> Vec<Vec<i64>> {
        let mut all = vec![vec![]; point_count(&self.extents)];
        for counter in &self.counters {
            all.iter_mut().zip(counter.values(&self.extents)).for_each(|(at, k)| at.push(k));
        }
        all
    }

    /// Returns the key of the vertices.
    pub fn key(&self) -> Key {
        let span = (!self.loop_extents.is_empty()).then_some(self.spans[0]);
        let placed = self.tiles.is_some();
        Key::new(Head { spec: self.spec, span, placed, within: self.within }, &self.like)
    }
}

/// Returns whether the keys of all blocks differ.
pub fn all_differ(blocks: &[VertexBlock]) -> bool {
    let mut keys = FxHashSet::default();
    blocks.iter().all(|b| keys.insert(b.key()))
}
