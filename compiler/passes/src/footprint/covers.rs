//! The `out` fields of a family that every vertex writes in full.
//!
//! Invariant: the answer is that of [`girder_codelet::facts()`] for the sizes of the family's vertices. Where sizes do
//! not bind, nothing is certain.

use cranelift_entity::EntityRef;
use girder_codelet::Cover;
use girder_codelet::sizes::Shape;
use girder_ir::codelet::Dir;
use girder_ir::family::Family;
use girder_ir::graph::Graph;
use girder_ir::ids::{FieldId, SpecId};
use girder_ir::types::{ElemType, Scalar};
use rustc_hash::FxHashMap;
use smallvec::smallvec;

/// A cache of answers by codelet and shapes.
#[derive(Default)]
pub struct Covers {
    known: FxHashMap<(SpecId, Vec<Shape>), Vec<FieldId>>,
}

impl Covers {
    /// Returns whether every vertex of a family writes every element of an `out` field. If not, the field keeps its old
    /// elements.
    pub fn is_full(&mut self, graph: &Graph, family: &Family, field: FieldId) -> bool {
        let codelet = &graph.codelets[family.codelet];
        let mut shapes: Vec<Shape> = vec![smallvec![]; codelet.fields.len()];
        for f in &family.fields {
            shapes[f.field.index()] = f.shape().iter().copied().collect();
        }
        let full = self.known.entry((family.codelet, shapes)).or_insert_with_key(|(_, shapes)| {
            // Shapes fit the constants of every instance, so those of the first suffice to bind sizes.
            let mut consts = vec![Scalar::zero(ElemType::Bool); codelet.fields.len()];
            if family.domain.count() > 0 {
                family.consts.iter().for_each(|(f, c)| consts[f.index()] = c.at(0));
            }
            let Ok(sizes) = girder_codelet::bind_sizes(codelet, shapes, &consts) else {
                return vec![];
            };
            let facts = girder_codelet::facts(codelet, &sizes);
            let outs = codelet.edges().filter(|(_, d)| d.dir == Dir::Out).map(|(f, _)| f);
            outs.filter(|&f| facts.cover[f] == Cover::Full).collect()
        });
        full.contains(&field)
    }
}
