//! Copies that move in the exchange before the compute set that follows them.
//!
//! # Note: One sync for two
//! A compute set syncs and exchanges before its vertices run. A copy right before it does the same once more. If the
//! two are independent, they need only one sync and one latency: they must obey the race rule as one step, so neither
//! accesses what the other writes. The set's plan then moves for both, and the copy's plan is empty, so the program
//! keeps both steps. A copy on other IPUs than the set gains nothing, and its IPUs would wait for the set's words.
//!
//! Invariant: a copy is carried by at most one set, and a set carries at most one copy; each occurs in one step only.

use super::scene::Scene;
use crate::race_rule::are_independent;
use crate::steps::sequences;
use cranelift_entity::SecondaryMap;
use girder_ir::family::{Domain, Field};
use girder_ir::ids::{ComputeSetId, CopyId};
use girder_ir::program::StepKind;
use std::collections::BTreeSet;

/// Returns the copy that each compute set carries.
pub(super) fn carried(scene: &Scene) -> SecondaryMap<ComputeSetId, Option<CopyId>> {
    let graph = scene.graph;
    let (mut sets, mut copies) = (SecondaryMap::<_, u32>::new(), SecondaryMap::<_, u32>::new());
    for step in graph.steps.values() {
        match step.kind {
            StepKind::Execute(set) => sets[set] += 1,
            StepKind::Copy(copy) => copies[copy] += 1,
            _ => {}
        }
    }
    let mut carried = SecondaryMap::new();
    for seq in sequences(graph) {
        for pair in seq.windows(2) {
            if let (&StepKind::Copy(copy), &StepKind::Execute(set)) =
                (&graph.steps[pair[0]].kind, &graph.steps[pair[1]].kind)
                && (copies[copy], sets[set]) == (1, 1)
                && !graph.copies[copy].crosses()
                && are_independent(graph, copy, set, scene.cancel)
                && share_an_ipu(scene, copy, set)
            {
                carried[set] = Some(copy);
            }
        }
    }
    carried
}

fn share_an_ipu(scene: &Scene, copy: CopyId, set: ComputeSetId) -> bool {
    let machine = scene.machine;
    if machine.ipus == 1 {
        return true;
    }
    let mut ipus = BTreeSet::new();
    for family in &scene.graph.copies[copy].families {
        for field in [&family.dst, &family.src] {
            ipus_of(scene, field, &family.domain, &mut ipus);
        }
    }
    scene.graph.sets[set].families.iter().any(|&id| {
        let domain = &scene.graph.families[id].domain;
        let tiles = scene.placement.families[id].iter().flat_map(|map| map.iter(domain));
        tiles.map(|tile| machine.ipu_of(tile)).any(|ipu| ipus.contains(&ipu))
    })
}

/// Adds the IPUs that hold the elements between the least and the greatest of a field.
fn ipus_of(scene: &Scene, field: &Field, domain: &Domain, ipus: &mut BTreeSet<u32>) {
    for part in &field.parts {
        let Some((lo, hi)) = part.offset.bounds(domain) else { continue };
        let hull = part.region_at(0).hull();
        let (start, end) = ((lo + hull.0) as u64, (hi + hull.1) as u64);
        let runs = &scene.homes[part.var].runs;
        let first = runs.partition_point(|run| u64::from(run.end) <= start);
        let inside = runs[first..].iter().take_while(|run| u64::from(run.start) <= end);
        ipus.extend(inside.map(|run| scene.machine.ipu_of(run.tile)));
    }
}
