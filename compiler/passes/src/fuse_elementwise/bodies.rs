//! The codelets of families as nests of loops over elements, each analysed once for its shapes.
//!
//! Invariant: an answer depends on codelet and shapes only.

use girder_codelet::elementwise::Elementwise;
use girder_codelet::facts::facts_on;
use girder_codelet::sizes::Shape;
use girder_codelet::vertices::bind_family;
use girder_ir::family::Family;
use girder_ir::graph::Graph;
use girder_ir::ids::SpecId;
use rustc_hash::FxHashMap;

/// The codelets that have been analysed so far, by their shapes.
pub(super) struct Bodies<'g> {
    graph: &'g Graph,
    known: FxHashMap<(SpecId, Vec<Shape>), Option<Elementwise<'g>>>,
}

impl<'g> Bodies<'g> {
    /// Creates an empty table.
    pub fn new(graph: &'g Graph) -> Bodies<'g> {
        Bodies { graph, known: FxHashMap::default() }
    }

    /// Returns the codelet of a family as a nest of loops, if it is elementwise.
    pub fn of(&mut self, family: &Family) -> Option<Elementwise<'g>> {
        let key = (family.codelet, family.fields.iter().map(|f| f.shape()).collect());
        let graph = self.graph;
        let body = || {
            let sizes = bind_family(graph, family).ok()??;
            let codelet = &graph.codelets[family.codelet];
            Elementwise::of(codelet, &sizes, &facts_on(codelet, &sizes, graph.workers))
        };
        self.known.entry(key).or_insert_with(body).clone()
    }
}
