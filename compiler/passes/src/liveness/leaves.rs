//! The reads and the certain writes of the steps that do work, for temporaries.
//!
//! Invariant: inside one leaf all reads come before all writes.

use super::atoms::Atoms;
use crate::footprint::{Covers, Footprint};
use cranelift_entity::{EntityRef, SecondaryMap};
use girder_ir::codelet::Dir;
use girder_ir::graph::Graph;
use girder_ir::ids::{FamilyId, StepId, VarId};
use girder_ir::program::{Effect, StepKind};
use girder_ir::view::View;

/// The elements that a compute set, a copy or a single step accesses.
#[derive(Default)]
pub(super) struct Leaf {
    /// Elements whose old values may matter: `in`, `inout`, and `out` that may stay unwritten.
    pub reads: Vec<Footprint>,
    /// Elements that are certainly overwritten.
    pub writes: Vec<Footprint>,
}

/// The leaves of a graph.
pub(super) struct Leaves {
    pub list: Vec<Leaf>,
    of_step: SecondaryMap<StepId, Option<u32>>,
}

/// The effect of a leaf on atoms.
#[derive(Default, Clone)]
pub(super) struct AtomEffect {
    pub uses: Vec<u32>,
    pub kills: Vec<u32>,
    /// The atoms in `uses` and `kills`, and those that are written in part.
    pub touched: Vec<u32>,
}

/// The effects of leaves by step.
pub(super) struct Effects {
    list: Vec<AtomEffect>,
    of_step: SecondaryMap<StepId, Option<u32>>,
    none: AtomEffect,
}

impl Effects {
    /// Returns the effect of a step itself, without the steps inside it.
    pub fn of(&self, step: StepId) -> &AtomEffect {
        self.of_step[step].map_or(&self.none, |i| &self.list[i as usize])
    }
}

impl Leaves {
    pub fn of(graph: &Graph, covers: &Covers) -> Leaves {
        let mut leaves = Leaves { list: vec![], of_step: SecondaryMap::new() };
        for set in graph.sets.values() {
            let mut leaf = Leaf::default();
            for &family in &set.families {
                leaf.add_family(graph, family, covers);
            }
            leaves.list.push(leaf);
        }
        for copy in graph.copies.values() {
            let mut leaf = Leaf::default();
            for family in &copy.families {
                leaf.reads.extend(Footprint::of_field(&family.domain, &family.src));
                // Replicas that receive nothing keep their elements.
                if family.source.writes_all(graph.replicas) {
                    leaf.writes.extend(Footprint::of_field(&family.domain, &family.dst));
                }
            }
            leaves.list.push(leaf);
        }
        for (id, step) in graph.steps.iter() {
            let index = match &step.kind {
                StepKind::Execute(set) => Some(set.index()),
                StepKind::Copy(copy) => Some(graph.sets.len() + copy.index()),
                other => Leaf::of_step(other).map(|leaf| {
                    leaves.list.push(leaf);
                    leaves.list.len() - 1
                }),
            };
            leaves.of_step[id] = index.map(|i| i as u32);
        }
        for leaf in &mut leaves.list {
            leaf.reads.retain(|f| !graph.vars[f.var].is_persistent());
            leaf.writes.retain(|f| !graph.vars[f.var].is_persistent());
        }
        leaves
    }

    /// Returns the effects of the leaves on atoms.
    pub fn effects(&self, atoms: &Atoms) -> Effects {
        let list = self.list.iter().map(|l| atoms.effect(l)).collect();
        Effects { list, of_step: self.of_step.clone(), none: AtomEffect::default() }
    }

    /// Returns the first step after `step`, in the order of the text, that reads some of the elements of a temporary
    /// that `step` writes; the first of all if none follows.
    pub fn reader(&self, step: StepId, var: VarId) -> Option<StepId> {
        let leaf = |s: StepId| self.of_step[s].map(|i| &self.list[i as usize]);
        let written = leaf(step)?.writes.iter().filter(|f| f.var == var).collect::<Vec<_>>();
        let meets = |f: &Footprint| f.var == var && written.iter().any(|w| !f.surely_disjoint(w));
        let reads = |s: &StepId| leaf(*s).is_some_and(|leaf| leaf.reads.iter().any(meets));
        self.of_step.keys().filter(|s| *s > step).find(reads).or_else(|| self.of_step.keys().find(reads))
    }

    /// Returns whether some leaf overwrites a part of a temporary and not all.
    pub fn writes_partly(&self, graph: &Graph, var: VarId) -> bool {
        self.list.iter().any(|leaf| {
            let written: u64 = leaf.writes.iter().filter(|f| f.var == var).map(|f| f.count()).sum();
            written != 0 && written != graph.vars[var].len()
        })
    }
}

impl Leaf {
    fn of_step(kind: &StepKind) -> Option<Leaf> {
        let reads = |view: &View| Leaf { reads: Footprint::of_view(view), writes: vec![] };
        Some(match kind {
            StepKind::While { cond, .. } | StepKind::If { cond, .. } => reads(cond),
            StepKind::Switch { on, .. } => reads(on),
            StepKind::Repeat { count: 1.., index: Some((index, ..)), .. } => {
                Leaf { reads: vec![], writes: vec![Footprint::scalar(*index)] }
            }
            StepKind::Effect(Effect::Print { value, .. }) => reads(value),
            StepKind::Effect(Effect::Abort { when: Some(when), .. }) => reads(when),
            StepKind::Effect(Effect::Write { from, .. } | Effect::Seek { row: from, .. }) => reads(from),
            StepKind::Effect(Effect::Read { into, .. } | Effect::Undef { what: into, .. }) => {
                Leaf { reads: vec![], writes: Footprint::of_view(into) }
            }
            _ => return None,
        })
    }

    fn add_family(&mut self, graph: &Graph, id: FamilyId, covers: &Covers) {
        let family = &graph.families[id];
        let codelet = &graph.codelets[family.codelet];
        for field in &family.fields {
            let prints = Footprint::of_field(&family.domain, field);
            match codelet.fields[field.field].dir {
                Dir::In | Dir::InOut => self.reads.extend(prints),
                Dir::Out if covers.is_full(id, field.field) => self.writes.extend(prints),
                Dir::Out => self.reads.extend(prints),
                Dir::Const => {}
            }
        }
    }
}
