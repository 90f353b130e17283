//! Detects workers of a `multi codelet` that certainly race because each of them writes the same element.
//!
//! Invariant: there is no false alarm. Possible races are left to mode `interpret`, which watches all accesses.

use cranelift_entity::EntityRef;
use girder_codelet::sizes::Shape;
use girder_ir::codelet::{Codelet, Stmt};
use girder_ir::family::Family;
use girder_ir::graph::Graph;
use girder_ir::ids::{FamilyId, FieldId, SpecId};
use girder_ir::types::{ElemType, Scalar};
use girder_source::{Diagnostic, Span};
use rustc_hash::FxHashSet;
use smallvec::smallvec;

/// Returns one error for each codelet, shapes and field, for a machine with some number of workers on a tile.
pub(super) fn check(graph: &Graph, workers: u32) -> Vec<Diagnostic> {
    let mut seen: FxHashSet<(SpecId, Vec<Shape>)> = FxHashSet::default();
    let mut found = vec![];
    for (id, family) in &graph.families {
        let codelet = &graph.codelets[family.codelet];
        if !codelet.multi || workers < 2 || family.domain.count() == 0 {
            continue;
        }
        let mut shapes: Vec<Shape> = vec![smallvec![]; codelet.fields.len()];
        family.fields.iter().for_each(|f| shapes[f.field.index()] = f.shape());
        if seen.insert((family.codelet, shapes.clone())) {
            found.extend(of_family(graph, id, family, &shapes));
        }
    }
    found
}

fn of_family(graph: &Graph, id: FamilyId, family: &Family, shapes: &[Shape]) -> Vec<Diagnostic> {
    let codelet = &graph.codelets[family.codelet];
    let mut consts = vec![Scalar::zero(ElemType::Bool); codelet.fields.len()];
    family.consts.iter().for_each(|(f, c)| consts[f.index()] = c.at(0));
    let Ok(sizes) = girder_codelet::bind_sizes(codelet, shapes, &consts) else { return vec![] };
    let facts = girder_codelet::facts(codelet, &sizes);
    let raced = |(field, _)| Some((field, facts.shared[field].as_ref()?));
    codelet.edges().filter_map(raced).map(|(field, index)| report(graph, id, codelet, field, index)).collect()
}

fn report(graph: &Graph, id: FamilyId, codelet: &Codelet, field: FieldId, index: &[i64]) -> Diagnostic {
    let (decl, vertex) = (&codelet.fields[field], graph.origins.span(graph.families[id].origin));
    let element = match index {
        [] => decl.name.to_string(),
        _ => format!("{}{index:?}", decl.name),
    };
    let message = format!("all workers of `{}` write `{element}`", codelet.name);
    let mut stores = vec![];
    gather(codelet, &codelet.body, field, &mut stores);
    let (main, role) = match stores[..] {
        [store] if !store.is_none() => (store, "each worker comes here"),
        _ => (decl.span, "this field"),
    };
    let main = if main.is_none() { vertex } else { main };
    let d = Diagnostic::error("race::workers", main, message).here(role);
    let d = if main == vertex { d } else { d.label(vertex, "the vertex") };
    d.help("let each worker write elements of its own: `for i in worker * n / workers..(worker + 1) * n / workers`")
}

/// Collects the spans of all stores to a field.
fn gather(codelet: &Codelet, block: &[Stmt], field: FieldId, out: &mut Vec<Span>) {
    for stmt in block {
        match stmt {
            Stmt::Store { field: f, site, .. } if *f == field => out.push(codelet.sites[*site].span),
            _ => stmt.blocks().for_each(|inner| gather(codelet, inner, field, out)),
        }
    }
}
