//! A vertex statement with its values in all iterations.
//!
//! Invariant: a statement holds no entity; entities are made from statements in the order of their first vertices.

use super::{Batch, Extents, Ints};
use girder_ir::codelet::GenericArg;
use girder_ir::placement::TileRange;
use girder_source::Span;
use girder_syntax::ast;
use girder_typing::{Header, ModuleRef};
use std::sync::Arc;

/// A vertex statement, evaluated.
pub(super) struct Statement<'a> {
    /// Its syntax.
    pub vertex: &'a ast::Vertex,
    /// The span; for repeated statements outside loops, the span of each.
    pub spans: Vec<Span>,
    /// Numbers of items and iterations of loops, from the outermost loop to the statement.
    pub path: Vec<Ints>,
    /// The box of its iterations.
    pub extents: Extents,
    /// The iteration of each loop.
    pub counters: Vec<Ints>,
    /// The indices of the loops, for messages.
    pub indices: Vec<Ints>,
    /// The extents of the loops in the text.
    pub loop_extents: Vec<u32>,
    /// The codelet's module and item.
    pub codelet: (ModuleRef, usize),
    /// The codelet's header.
    pub header: Arc<Header>,
    /// The generics that the statement states.
    pub generics: Vec<GenericArg>,
    /// The argument of each field, with its span.
    pub fields: Vec<(Batch, Span)>,
    /// The tile, if the statement gives one.
    pub tile: Option<Ints>,
    /// The tiles among which open vertices are placed; `None` means all.
    pub within: Option<TileRange>,
}
