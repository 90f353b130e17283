//! A graph with the fast engine's memory: all that the code of mode fast depends on.
//!
//! Invariant: the memory is that of the graph's variables, by id.

use girder_ir::graph::Graph;
use girder_ir::layout::HostLayout;
use girder_ir::stage::Allocated;
use std::ops::Deref;

/// See the module.
#[derive(Clone, Copy)]
pub(crate) struct Hosted<'g> {
    pub graph: &'g Graph,
    pub host: &'g HostLayout,
}

impl<'g> Hosted<'g> {
    /// Of an allocated stage, which has both.
    pub fn of(allocated: &'g Allocated) -> Hosted<'g> {
        Hosted { graph: allocated, host: &allocated.host }
    }
}

impl Deref for Hosted<'_> {
    type Target = Graph;

    fn deref(&self) -> &Graph {
        self.graph
    }
}
