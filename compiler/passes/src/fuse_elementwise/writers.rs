//! The boxes in which each variable was last written, or first read if it is persistent.
//!
//! Invariant: the fields of a variable are all those of one compute set that access it in the same way.

use super::cut::FamilyField;
use cranelift_entity::SecondaryMap;
use girder_ir::codelet::{Codelet, Dir};
use girder_ir::family::{Family, Field};
use girder_ir::graph::Graph;
use girder_ir::ids::{ComputeSetId, StepId, VarId};
use girder_ir::program::StepKind;

/// The fields that have written each variable last.
pub(super) struct Writers(SecondaryMap<VarId, Vec<FamilyField>>);

impl Writers {
    /// Returns the state before the first step. A variable counts as written by its last writer in the text, which may
    /// come before the first step in a loop. A persistent variable counts as written by its first reader, where it is
    /// placed.
    pub fn of(graph: &Graph) -> Writers {
        let mut writers = Writers(SecondaryMap::new());
        for set in graph.sets.keys() {
            writers.add(families(graph, set), writes);
        }
        let persistent = |f: &Field| f.parts.iter().all(|p| graph.vars[p.var].is_persistent());
        for set in graph.sets.keys().rev() {
            writers.add(families(graph, set), |codelet, f| codelet.fields[f.field].dir == Dir::In && persistent(f));
        }
        writers
    }

    /// Returns the fields that have written a variable.
    pub fn get(&self, var: VarId) -> &[FamilyField] {
        &self.0[var]
    }

    /// Goes on after a step of a graph.
    pub fn step(&mut self, graph: &Graph, step: StepId) {
        match graph.steps[step].kind {
            StepKind::Execute(set) => self.add(families(graph, set), writes),
            StepKind::Copy(copy) => {
                let written = graph.copies[copy].families.iter().flat_map(|f| &f.dst.parts);
                written.for_each(|p| self.0[p.var].clear());
            }
            _ => {}
        }
    }

    /// Records the chosen fields of a compute set as the last writers of their variables.
    pub fn add<'f>(
        &mut self,
        families: impl IntoIterator<Item = (&'f Family, &'f Codelet)>,
        is_chosen: impl Fn(&Codelet, &Field) -> bool,
    ) {
        let mut chosen: Vec<FamilyField> = vec![];
        for (family, codelet) in families {
            let fields = family.fields.iter().filter(|f| is_chosen(codelet, f));
            chosen.extend(fields.map(|f| (family.domain.clone(), f.clone())));
        }
        for part in chosen.iter().flat_map(|f| &f.1.parts) {
            self.0[part.var].clear();
        }
        for field in chosen {
            let mut vars: Vec<VarId> = field.1.parts.iter().map(|p| p.var).collect();
            vars.dedup();
            vars.into_iter().for_each(|var| self.0[var].push(field.clone()));
        }
    }
}

/// Returns whether a codelet writes a field.
pub(super) fn writes(codelet: &Codelet, field: &Field) -> bool {
    codelet.fields[field.field].dir.writes()
}

fn families(graph: &Graph, set: ComputeSetId) -> impl Iterator<Item = (&Family, &Codelet)> {
    graph.sets[set].families.iter().map(|&f| (&graph.families[f], &graph.codelets[graph.families[f].codelet]))
}
