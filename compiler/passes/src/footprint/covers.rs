//! The `out` fields of families that every vertex writes in full.
//!
//! Invariant: the answer is that of [`girder_codelet::facts_on()`] for the sizes of the family's vertices and the
//! workers of the graph's machine. Where sizes do not bind, nothing is certain.

use cranelift_entity::{EntityRef, SecondaryMap};
use girder_codelet::Cover;
use girder_codelet::sizes::Shape;
use girder_codelet::vertices::bind_family;
use girder_ir::codelet::Dir;
use girder_ir::family::Family;
use girder_ir::graph::Graph;
use girder_ir::ids::{FamilyId, FieldId, SpecId};
use rustc_hash::FxHashMap;

/// The answers for all families of a graph, each found once for a codelet with some shapes.
pub struct Covers {
    /// The fields that are written in full, of codelets with shapes.
    lists: Vec<Vec<FieldId>>,
    /// Positions in `lists`.
    of_family: SecondaryMap<FamilyId, u32>,
}

impl Covers {
    /// Analyses all families of a graph.
    pub fn of(graph: &Graph) -> Covers {
        let mut covers = Covers { lists: vec![vec![]], of_family: SecondaryMap::new() };
        let mut known: FxHashMap<(SpecId, Vec<Shape>), u32> = FxHashMap::default();
        for (id, family) in &graph.families {
            let codelet = &graph.codelets[family.codelet];
            if family.domain.count() == 0 || !codelet.edges().any(|(_, d)| d.dir == Dir::Out) {
                continue;
            }
            let mut shapes = vec![Shape::new(); codelet.fields.len()];
            family.fields.iter().for_each(|f| shapes[f.field.index()] = f.shape());
            covers.of_family[id] = *known.entry((family.codelet, shapes)).or_insert_with(|| {
                covers.lists.push(fully_written(graph, family));
                covers.lists.len() as u32 - 1
            });
        }
        covers
    }

    /// Returns whether every vertex of a family writes every element of an `out` field. If not, the field keeps its old
    /// elements.
    pub fn is_full(&self, family: FamilyId, field: FieldId) -> bool {
        self.lists[self.of_family[family] as usize].contains(&field)
    }
}

/// Returns the `out` fields that every vertex of a family certainly writes in full.
fn fully_written(graph: &Graph, family: &Family) -> Vec<FieldId> {
    let codelet = &graph.codelets[family.codelet];
    let Ok(Some(sizes)) = bind_family(graph, family) else { return vec![] };
    let facts = girder_codelet::facts_on(codelet, &sizes, graph.workers);
    let outs = codelet.edges().filter(|(_, d)| d.dir == Dir::Out).map(|(f, _)| f);
    outs.filter(|&f| facts.cover[f] == Cover::Full).collect()
}
