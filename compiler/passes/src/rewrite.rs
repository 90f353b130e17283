//! Rewrites of the program: removes steps, replaces the families of compute sets, and drops what is then unused.
//!
//! Invariant: a graph that is not changed keeps every id. A changed one is numbered as its printed text is read: steps
//! in pre-order, the families of a compute set one after another, codelets and their items in the order of first use.

use cranelift_entity::{EntityRef, EntitySet, PrimaryMap, SecondaryMap};
use girder_codelet::facts::facts_on;
use girder_codelet::vertices::bind_family;
use girder_fusion::items::settle;
use girder_ir::family::{Family, Field};
use girder_ir::graph::{ComputeSet, Graph};
use girder_ir::ids::{ComputeSetId, CopyId, FamilyId, StepId, VarId};
use girder_ir::program::{Step, StepKind};
use girder_ir::view::View;
use rustc_hash::FxHashMap;

/// Changes that are collected before any is made.
#[derive(Default)]
pub(crate) struct Rewrite {
    /// Steps that leave.
    removed: EntitySet<StepId>,
    /// The new families of compute sets.
    families: FxHashMap<ComputeSetId, Vec<Family>>,
    /// The compute sets of which a compute set takes the families, in order.
    joined: FxHashMap<ComputeSetId, Vec<ComputeSetId>>,
}

impl Rewrite {
    /// Returns whether there is no change.
    pub(crate) fn is_empty(&self) -> bool {
        self.removed.is_empty() && self.families.is_empty()
    }

    /// Removes a leaf of the program.
    pub(crate) fn remove(&mut self, step: StepId) {
        self.removed.insert(step);
    }

    /// Replaces the families of a compute set. [`Rewrite::apply`] sets their `set`.
    pub(crate) fn replace(&mut self, set: ComputeSetId, families: Vec<Family>) {
        self.families.insert(set, families);
    }

    /// Removes a step and moves the families of its compute set, which no other step executes, to another compute set.
    pub(crate) fn join(&mut self, step: StepId, set: ComputeSetId, into: ComputeSetId) {
        self.remove(step);
        self.joined.entry(into).or_default().push(set);
    }

    /// Moves the leaf `other` of the program to the place of the leaf `at`, which it replaces.
    pub(crate) fn put(&mut self, graph: &mut Graph, at: StepId, other: StepId) {
        if at != other {
            graph.steps[at].kind = graph.steps[other].kind.clone();
            graph.steps[at].origin = graph.steps[other].origin;
            self.remove(other);
        }
    }

    /// Makes the changes.
    pub(crate) fn apply(mut self, graph: &mut Graph) {
        if self.is_empty() {
            return;
        }
        self.steps(graph);
        self.sets(graph);
        copies(graph);
        settle(graph);
        variables(graph);
    }

    fn steps(&self, graph: &mut Graph) {
        let mut new: SecondaryMap<StepId, Option<StepId>> = SecondaryMap::new();
        let mut steps: PrimaryMap<StepId, Step> = PrimaryMap::new();
        let mut old: SecondaryMap<StepId, Option<Step>> = SecondaryMap::new();
        for (id, mut step) in std::mem::take(&mut graph.steps) {
            if let StepKind::Seq(all) = &mut step.kind {
                all.retain(|&s| !self.removed.contains(s));
            }
            old[id] = Some(step);
        }
        for program in graph.programs.values() {
            let mut left = vec![program.body];
            while let Some(id) = left.pop() {
                let Some(step) = old[id].take() else { continue };
                left.extend(step.children().into_iter().rev());
                new[id] = Some(steps.push(step));
            }
        }
        let renamed = |id: &mut StepId| *id = new[*id].unwrap_or(*id);
        steps.values_mut().for_each(|step| step.children_mut().into_iter().for_each(renamed));
        graph.programs.values_mut().for_each(|p| renamed(&mut p.body));
        graph.steps = steps;
    }

    /// Keeps the compute sets that steps execute, with their families.
    fn sets(&mut self, graph: &mut Graph) {
        let mut used: EntitySet<ComputeSetId> = EntitySet::new();
        for step in graph.steps.values() {
            if let StepKind::Execute(set) = step.kind {
                used.insert(set);
            }
        }
        let mut of_set: SecondaryMap<ComputeSetId, Vec<FamilyId>> = SecondaryMap::new();
        graph.sets.iter().for_each(|(id, set)| of_set[id] = set.families.clone());
        let mut old: PrimaryMap<FamilyId, Option<Family>> = PrimaryMap::new();
        std::mem::take(&mut graph.families).into_iter().for_each(|(_, family)| {
            old.push(Some(family));
        });
        let mut indices = SecondaryMap::new();
        let mut new: SecondaryMap<ComputeSetId, Option<ComputeSetId>> = SecondaryMap::new();
        let mut sets: PrimaryMap<ComputeSetId, ComputeSet> = PrimaryMap::new();
        for (id, mut set) in std::mem::take(&mut graph.sets).into_iter().filter(|(id, _)| used.contains(*id)) {
            let of = sets.next_key();
            let mut kept = std::mem::take(&mut set.families);
            self.joined.remove(&id).iter().flatten().for_each(|other| kept.extend(&of_set[*other]));
            let families: Vec<(Family, Box<[_]>)> = match self.families.remove(&id) {
                Some(families) => families.into_iter().map(|f| (f, Box::default())).collect(),
                None => {
                    let taken = kept.into_iter().filter_map(|f| Some((old[f].take()?, graph.indices[f].clone())));
                    taken.collect()
                }
            };
            for (family, index) in families {
                let family = graph.families.push(Family { set: of, ..family });
                indices[family] = index;
                set.families.push(family);
            }
            new[id] = Some(sets.push(set));
        }
        for step in graph.steps.values_mut() {
            if let StepKind::Execute(set) = &mut step.kind {
                *set = new[*set].unwrap_or(*set);
            }
        }
        (graph.sets, graph.indices) = (sets, indices);
    }
}

/// Keeps the copies that steps make.
fn copies(graph: &mut Graph) {
    let mut used: EntitySet<CopyId> = EntitySet::new();
    for step in graph.steps.values() {
        if let StepKind::Copy(copy) = step.kind {
            used.insert(copy);
        }
    }
    let mut new: SecondaryMap<CopyId, Option<CopyId>> = SecondaryMap::new();
    let mut copies = PrimaryMap::new();
    for (id, copy) in std::mem::take(&mut graph.copies).into_iter().filter(|(id, _)| used.contains(*id)) {
        new[id] = Some(copies.push(copy));
    }
    for step in graph.steps.values_mut() {
        if let StepKind::Copy(copy) = &mut step.kind {
            *copy = new[*copy].unwrap_or(*copy);
        }
    }
    graph.copies = copies;
}

/// Drops temporaries that nothing accesses.
fn variables(graph: &mut Graph) {
    let mut used: EntitySet<VarId> = EntitySet::new();
    each_var(graph, &mut |var| {
        used.insert(*var);
    });
    let mut new: SecondaryMap<VarId, Option<VarId>> = SecondaryMap::new();
    let mut vars = PrimaryMap::new();
    for (id, var) in std::mem::take(&mut graph.vars) {
        if var.is_persistent() || used.contains(id) {
            new[id] = Some(vars.push(var));
        }
    }
    graph.vars = vars;
    each_var(graph, &mut |var| *var = new[*var].unwrap_or(*var));
}

/// Calls `f` for every use of a variable.
fn each_var(graph: &mut Graph, f: &mut impl FnMut(&mut VarId)) {
    let of_field = |field: &mut Field, f: &mut dyn FnMut(&mut VarId)| {
        field.parts.iter_mut().for_each(|p| f(&mut p.var));
    };
    for family in graph.families.values_mut() {
        family.fields.iter_mut().for_each(|field| of_field(field, f));
    }
    for copy in graph.copies.values_mut().flat_map(|c| &mut c.families) {
        of_field(&mut copy.dst, f);
        of_field(&mut copy.src, f);
    }
    for step in graph.steps.values_mut() {
        if let StepKind::Repeat { index: Some((var, ..)), .. } = &mut step.kind {
            f(var);
        }
        let of_view = |view: &mut View| view.parts.iter_mut().for_each(|p| f(&mut p.var));
        step.view_mut().map(of_view);
    }
}

/// Returns the variables that a step itself accesses, with repetitions.
pub(crate) fn vars_of(graph: &Graph, step: StepId) -> Vec<VarId> {
    let of_field = |field: &Field| field.parts.iter().map(|p| p.var).collect::<Vec<_>>();
    match &graph.steps[step].kind {
        StepKind::Execute(set) => {
            let fields = graph.sets[*set].families.iter().flat_map(|&f| &graph.families[f].fields);
            fields.flat_map(of_field).collect()
        }
        StepKind::Copy(copy) => {
            graph.copies[*copy].families.iter().flat_map(|f| [&f.dst, &f.src]).flat_map(of_field).collect()
        }
        StepKind::Repeat { index, .. } => index.iter().map(|i| i.0).collect(),
        _ => graph.steps[step].view().map_or_else(Vec::new, |v| v.parts.iter().map(|p| p.var).collect()),
    }
}

/// Returns the number of steps that execute each compute set, or make each copy.
pub(crate) fn executions(graph: &Graph) -> (Vec<u32>, Vec<u32>) {
    let (mut sets, mut copies) = (vec![0; graph.sets.len()], vec![0; graph.copies.len()]);
    for step in graph.steps.values() {
        match step.kind {
            StepKind::Execute(set) => sets[set.index()] += 1,
            StepKind::Copy(copy) => copies[copy.index()] += 1,
            _ => {}
        }
    }
    (sets, copies)
}

/// Returns whether no check of a family's vertices may fail.
pub(crate) fn cannot_fail(graph: &Graph, family: &Family) -> bool {
    let codelet = &graph.codelets[family.codelet];
    match bind_family(graph, family) {
        Ok(Some(sizes)) => {
            let facts = facts_on(codelet, &sizes, graph.workers);
            codelet.sites.keys().all(|site| facts.proven.contains(site))
        }
        Ok(None) => true,
        Err(_) => false,
    }
}
