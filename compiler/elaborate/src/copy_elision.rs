//! Copy elision: lets the step that computes a temporary write another variable instead, so that `a <- e` needs no
//! copy.

use girder_ir::family::Field;
use girder_ir::graph::Graph;
use girder_ir::ids::{ComputeSetId, VarId};
use girder_ir::view::{View, overlap};

/// Replaces `temp`, which only the one family of `set` writes, by `dst` in that family. Returns `false` and changes
/// nothing if the family reads an element of `dst`, or if its parts of `temp` are not boxes of `dst`.
pub fn elide_copy(graph: &mut Graph, set: ComputeSetId, temp: VarId, dst: &View) -> bool {
    let shape = graph.vars[temp].shape.clone();
    let flat = dst.flatten();
    let Some(line) = flat.single() else { return false };
    if line.strides.first().is_some_and(|&s| s != 1) || shape.iter().product::<u64>() != flat.len() {
        return false;
    }
    let ids = graph.sets[set].families.clone();
    let mut changed = Vec::new();
    for &id in &ids {
        let family = &graph.families[id];
        for (k, field) in family.fields.iter().enumerate() {
            let writes = field.parts.iter().any(|p| p.var == temp);
            if !writes && field.parts.iter().all(|p| p.var != line.var) {
                continue;
            }
            if !writes {
                let met = (0..family.domain.count()).any(|i| overlap(&field.view(&family.domain, i), dst).is_some());
                if met {
                    return false;
                }
                continue;
            }
            let views: Option<Vec<View>> = (0..family.domain.count())
                .map(|i| {
                    let mut v = field.view(&family.domain, i);
                    v.parts.iter_mut().for_each(|p| (p.var, p.offset) = (line.var, p.offset + line.offset));
                    Some(v.canonical())
                })
                .collect();
            let Some(moved) = views.and_then(|v| Field::from_views(field.field, &family.domain, &v)) else {
                return false;
            };
            changed.push((id, k, moved));
        }
    }
    for (id, k, field) in changed {
        graph.families[id].fields[k] = field;
    }
    true
}
