//! A vertex statement in all iterations that it was evaluated for.
//!
//! Invariant: it holds no entity; those are made from statements in the order of their first vertices.

use super::{Batch, Extents, Ints};
use girder_ir::codelet::GenericArg;
use girder_source::Span;
use girder_syntax::ast;
use girder_typing::{Header, ModuleRef};
use std::sync::Arc;

/// A vertex statement, evaluated.
pub(super) struct Statement<'a> {
    /// Its syntax.
    pub vertex: &'a ast::Vertex,
    /// Where it stands; outside loops, where each of repeated statements stands.
    pub spans: Vec<Span>,
    /// Numbers of items, and iterations of loops, from the outermost loop to it.
    pub path: Vec<Ints>,
    /// The box of its iterations.
    pub extents: Extents,
    /// The iteration that each loop is in.
    pub counters: Vec<Ints>,
    /// The indices of the loops, for messages.
    pub indices: Vec<Ints>,
    /// The extents of the loops in the text.
    pub loop_extents: Vec<u32>,
    /// The codelet's module and item.
    pub codelet: (ModuleRef, usize),
    /// The codelet's header.
    pub header: Arc<Header>,
    /// Generics that the statement gives.
    pub generics: Vec<GenericArg>,
    /// What each field is connected to, and where that stands.
    pub fields: Vec<(Batch, Span)>,
    /// The tile, if the statement gives one.
    pub tile: Option<Ints>,
}
