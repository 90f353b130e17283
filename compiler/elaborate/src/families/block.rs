//! Vertices on their way to a family: one by one, or as blocks of one signature, and what tells signatures apart.
//!
//! Invariant: vertices of equal keys differ in offsets, constants and tiles only.

use crate::batched::{Extents, Ints};
use girder_ir::family::Const;
use girder_ir::ids::SpecId;
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
    /// The indices of the loops around it, for messages.
    pub index: Vec<i64>,
}

/// The loops around a statement, outermost first, and where they are.
#[derive(Clone, Debug, Default)]
pub struct Loops {
    /// How many iterations each has.
    pub extents: Vec<u32>,
    /// The number of the iteration each is in.
    pub at: Vec<u32>,
    /// Their indices, for messages.
    pub indices: Vec<i64>,
}

/// Vertices of one signature that were evaluated at once.
#[derive(Debug)]
pub struct VertexBlock {
    /// Their codelet.
    pub spec: SpecId,
    /// The statement; outside loops that of each vertex.
    pub spans: Vec<Span>,
    /// The views of the first vertex, or of one beside it from which `shifts` count.
    pub like: Vec<View>,
    /// By how much the offsets of each view of each vertex exceed those of `like`.
    pub shifts: Vec<Ints>,
    /// One column of constants per `const` field.
    pub consts: Vec<Const>,
    /// The tile of each vertex, if the statement gives one.
    pub tiles: Option<Vec<u32>>,
    /// The box over which `shifts` and `counters` are given.
    pub extents: Extents,
    /// The extents of the loops around, in the text.
    pub loop_extents: Vec<u32>,
    /// The iteration that each loop is in.
    pub counters: Vec<Ints>,
    /// The indices of the loops, for messages.
    pub indices: Vec<Ints>,
}

/// What vertices of one group have in common.
#[derive(PartialEq, Eq, Hash, Debug)]
pub struct Key {
    /// All but the views.
    pub head: Head,
    /// The signatures of the views.
    pub fields: Vec<Signature>,
}

/// The part of a [`Key`] that is cheap to compare.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Head {
    /// The codelet.
    pub spec: SpecId,
    /// The statement; none outside loops.
    pub span: Option<Span>,
    /// Whether the statement gives tiles.
    pub placed: bool,
}

impl Key {
    /// Returns the key of vertices with the signatures of some views.
    pub fn new(head: Head, views: &[View]) -> Key {
        Key { head, fields: views.iter().map(View::signature).collect() }
    }
}

impl VertexBlock {
    /// Returns the key of the vertices.
    pub fn key(&self) -> Key {
        let span = (!self.loop_extents.is_empty()).then_some(self.spans[0]);
        Key::new(Head { spec: self.spec, span, placed: self.tiles.is_some() }, &self.like)
    }
}

/// Returns whether no two blocks have one key.
pub fn all_differ(blocks: &[VertexBlock]) -> bool {
    let mut keys = FxHashSet::default();
    blocks.iter().all(|b| keys.insert(b.key()))
}
