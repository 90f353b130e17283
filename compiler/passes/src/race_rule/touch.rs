//! Touches: the accesses of a step to the elements of variables.
//!
//! Invariant: touches are in the order of the text.

use crate::footprint::Footprint;
use crate::steps::steps_of;
use girder_ir::codelet::Dir;
use girder_ir::family::CopyFamily;
use girder_ir::graph::Graph;
use girder_ir::ids::{ComputeSetId, CopyId, FamilyId, FieldId, ProgramId, StepId};
use girder_ir::program::{Effect, StepKind};
use girder_ir::view::View;
use rustc_hash::FxHashSet;

/// The field, copy or step that accesses elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Who {
    /// A field of the vertices of a family.
    Vertex(FamilyId, FieldId),
    /// The destination of a copy set's family.
    CopyTo(CopyId, usize),
    /// The source of a copy set's family.
    CopyFrom(CopyId, usize),
    /// A step that reads a stream into a view.
    Read(StepId),
    /// Any other step.
    Step(StepId),
}

/// The accesses of one part of one field.
#[derive(Debug)]
pub(crate) struct Touch {
    /// The field, copy or step.
    pub who: Who,
    /// Whether elements may be written.
    pub written: bool,
    /// The elements.
    pub print: Footprint,
    /// The branch of the `par` that the touch is in; 0 elsewhere.
    pub branch: usize,
}

impl Touch {
    /// Returns one touch for each footprint.
    pub fn all(who: Who, written: bool, prints: Vec<Footprint>) -> Vec<Touch> {
        prints.into_iter().map(|print| Touch { who, written, print, branch: 0 }).collect()
    }
}

/// Returns the touches of a compute set.
pub(crate) fn of_set(graph: &Graph, set: ComputeSetId) -> Vec<Touch> {
    let mut touches = vec![];
    for &id in &graph.sets[set].families {
        let family = &graph.families[id];
        for field in &family.fields {
            let written = matches!(graph.codelets[family.codelet].fields[field.field].dir, Dir::Out | Dir::InOut);
            let prints = Footprint::of_field(&family.domain, field);
            touches.extend(Touch::all(Who::Vertex(id, field.field), written, prints));
        }
    }
    touches
}

/// Returns the touches of a copy.
pub(crate) fn of_copy(graph: &Graph, copy: CopyId) -> Vec<Touch> {
    let mut touches = vec![];
    for (i, family) in graph.copies[copy].families.iter().enumerate() {
        touches.extend(Touch::all(Who::CopyTo(copy, i), true, Footprint::of_field(&family.domain, &family.dst)));
        touches.extend(Touch::all(Who::CopyFrom(copy, i), false, Footprint::of_field(&family.domain, &family.src)));
    }
    touches
}

/// Returns the touches of a copy in each replica. Replicas that send and receive the same are listed once.
pub(crate) fn of_copy_by_replica(graph: &Graph, copy: CopyId) -> Vec<Vec<Touch>> {
    let families = &graph.copies[copy].families;
    let mut roles: Vec<Vec<(bool, bool)>> = vec![];
    for replica in 0..graph.replicas {
        let role = |f: &CopyFamily| {
            let pairs = f.source.pairs().map_or(&[][..], |pairs| pairs);
            (pairs.iter().any(|p| p.receiver == replica), pairs.iter().any(|p| p.sender == replica))
        };
        let of_replica = families.iter().map(role).collect();
        if !roles.contains(&of_replica) {
            roles.push(of_replica);
        }
    }
    let of_role = |role: Vec<(bool, bool)>| {
        let has_part = |touch: &Touch| match touch.who {
            Who::CopyTo(_, i) => role[i].0,
            Who::CopyFrom(_, i) => role[i].1,
            _ => false,
        };
        of_copy(graph, copy).into_iter().filter(has_part).collect()
    };
    roles.into_iter().map(of_role).collect()
}

/// Returns the touches of branches, including those of called programs.
pub(crate) fn of_branches(graph: &Graph, branches: &[StepId]) -> Vec<Touch> {
    let of = |(branch, &root): (usize, &StepId)| {
        let mut touches = of_tree(graph, root);
        touches.iter_mut().for_each(|t| t.branch = branch);
        touches
    };
    branches.iter().enumerate().flat_map(of).collect()
}

fn of_tree(graph: &Graph, root: StepId) -> Vec<Touch> {
    let mut touches = vec![];
    let mut called: FxHashSet<ProgramId> = FxHashSet::default();
    let mut roots = vec![root];
    while let Some(root) = roots.pop() {
        for step in steps_of(graph, root) {
            let mut view = |view: &View, written| {
                touches.extend(Touch::all(Who::Step(step), written, Footprint::of_view(view)));
            };
            match &graph.steps[step].kind {
                StepKind::Execute(set) => touches.extend(of_set(graph, *set)),
                StepKind::Copy(copy) => touches.extend(of_copy(graph, *copy)),
                StepKind::While { cond, .. } | StepKind::If { cond, .. } => view(cond, false),
                StepKind::Switch { on, .. } => view(on, false),
                StepKind::Effect(Effect::Read { into, .. } | Effect::Undef { what: into, .. }) => view(into, true),
                StepKind::Effect(Effect::Write { from, .. } | Effect::Seek { row: from, .. }) => view(from, false),
                StepKind::Effect(Effect::Print { value, .. }) => view(value, false),
                StepKind::Effect(Effect::Abort { when: Some(when), .. }) => view(when, false),
                StepKind::Repeat { index: Some((index, ..)), .. } => {
                    touches.extend(Touch::all(Who::Step(step), true, vec![Footprint::scalar(*index)]));
                }
                StepKind::Call(p) if called.insert(*p) => roots.push(graph.programs[*p].body),
                _ => {}
            }
        }
    }
    touches
}
