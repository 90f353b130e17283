//! Shapes and constants of a family's vertices, in the form that costs, interpreter and engines take.
//!
//! Invariant: all vertices of a family have the same shapes, so sizes are bound once per family.

use crate::sizes::{Shape, SizeMismatch, Sizes, bind_sizes};
use cranelift_entity::EntityRef;
use girder_ir::codelet::Codelet;
use girder_ir::family::Family;
use girder_ir::graph::Graph;
use girder_ir::types::Scalar;

/// Returns the sizes of a family's vertices; `None` if it has no vertex.
pub fn bind_family(graph: &Graph, family: &Family) -> Result<Option<Sizes>, SizeMismatch> {
    bind_vertices(&graph.codelets[family.codelet], family)
}

/// Works like [`bind_family`] for vertices of a codelet that is not in the graph yet.
pub fn bind_vertices(codelet: &Codelet, family: &Family) -> Result<Option<Sizes>, SizeMismatch> {
    if family.domain.count() == 0 {
        return Ok(None);
    }
    let mut shapes = vec![Shape::new(); codelet.fields.len()];
    for field in &family.fields {
        shapes[field.field.index()] = field.shape();
    }
    let mut consts: Vec<Scalar> = codelet.fields.values().map(|f| Scalar::zero(f.ty)).collect();
    for (field, value) in &family.consts {
        consts[field.index()] = value.at(0);
    }
    bind_sizes(codelet, &shapes, &consts).map(Some)
}

/// Returns the bits of a vertex's constants, indexed by field; 0 for other fields.
pub fn vertex_consts(codelet: &Codelet, family: &Family, instance: u64) -> Vec<u64> {
    let mut consts = vec![0; codelet.fields.len()];
    for (field, value) in &family.consts {
        consts[field.index()] = value.at(instance).bits;
    }
    consts
}
