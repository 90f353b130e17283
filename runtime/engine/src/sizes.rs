//! The sizes of a family's vertices, where a mismatch is a fault of ours: elaboration has checked them.

use crate::error::EngineError;
use girder_codelet::sizes::Sizes;
use girder_codelet::vertices;
use girder_ir::family::Family;
use girder_ir::graph::Graph;

pub(crate) use girder_codelet::vertices::vertex_consts;

/// The sizes of a family's vertices; `None` if it has no vertex.
pub(crate) fn bind_family(graph: &Graph, family: &Family) -> Result<Option<Sizes>, EngineError> {
    vertices::bind_family(graph, family).map_err(|e| {
        EngineError::Internal(format!(
            "a vertex of `{}` in `{}` has a view of length {} where {} is wanted",
            graph.codelets[family.codelet].name, graph.sets[family.set].name, e.found, e.expected
        ))
    })
}
