//! A graph with its layout in the host's memory: the input of a plan.
//!
//! Invariant: the layout is that of the graph's variables, by id.

use girder_ir::graph::Graph;
use girder_ir::ids::VarId;
use girder_ir::layout::HostLayout;
use girder_ir::stage::Allocated;
use std::ops::Deref;

/// A graph whose variables have addresses in the host's memory.
#[derive(Clone, Copy)]
pub struct HostedGraph<'g> {
    /// The graph.
    pub graph: &'g Graph,
    /// The addresses of its variables.
    pub layout: &'g HostLayout,
    /// The number of workers of a tile.
    pub workers: u32,
    /// The limit on iterations of a vertex. Vertices that may exceed it are compiled with their checks.
    pub total_iterations: u64,
}

impl<'g> HostedGraph<'g> {
    /// Returns the graph and layout of an allocated stage, for a machine with some workers on a tile, without a limit.
    pub fn of(allocated: &'g Allocated, workers: u32) -> HostedGraph<'g> {
        HostedGraph { graph: allocated, layout: &allocated.host, workers, total_iterations: u64::MAX }
    }

    /// Returns the byte of an element of a variable.
    pub fn byte(&self, var: VarId, element: i64) -> i64 {
        self.layout.offsets[var.as_u32() as usize] as i64 + element * i64::from(self.graph.vars[var].ty.bytes())
    }
}

impl Deref for HostedGraph<'_> {
    type Target = Graph;

    fn deref(&self) -> &Graph {
        self.graph
    }
}
