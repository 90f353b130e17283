//! The placement problem of a region: the steps whose time depends on open elements and vertices, the uses of
//! variables, and the possible owners.
//!
//! Invariant: it does not change during the search.

use super::accesses::{self, FamilyAccess, FieldAccess, Item, PartAccess, StepAccess, Users};
use super::code::Code;
use super::moments::Moments;
use super::owners::Owners;
use super::regions::Region;
use super::spread::OpenVertices;
use crate::context::MemoryEstimate;
use crate::sizes::state_bytes;
use crate::{PassContext, StepTimes};
use cranelift_entity::{PrimaryMap, SecondaryMap, entity_impl};
use girder_codelet::cost::TileCosts;
use girder_ir::codelet::Dir;
use girder_ir::family::Family;
use girder_ir::graph::Graph;
use girder_ir::ids::{ComputeSetId, FamilyId, VarId};
use girder_ir::placement::{Placement, TileRange};
use girder_machine::Machine;
use girder_source::par_map_slice;
use std::sync::{Arc, OnceLock};

/// Names a [`VertexGroup`] of a problem.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct GroupId(u32);
entity_impl!(GroupId, "group");

/// The open vertices of one operation of a compute set, which one rule places.
pub(super) struct VertexGroup {
    pub set: ComputeSetId,
    /// The item of the compute set, and the open families among its own.
    pub item: usize,
    pub families: Vec<usize>,
    pub sites: OpenVertices,
    /// Its number among the groups of its compute set.
    pub number: u32,
}

impl VertexGroup {
    /// Returns the inputs of which each vertex reads elements of its own, those with most bytes first, at most
    /// [`INPUTS`].
    pub(super) fn inputs(&self, problem: &PlacementProblem) -> Vec<usize> {
        let families = || self.families.iter().map(|&k| &problem.families(self.item)[k]);
        let Some(fields) = families().map(|v| v.fields.len()).min() else { return vec![] };
        let bytes = |v: &FamilyAccess, k: usize| -> u64 {
            let of_part = |p: &PartAccess| p.elements * u64::from(problem.graph.vars[p.var].ty.bytes());
            v.fields[k].parts.iter().map(of_part).sum()
        };
        // Elements that several vertices read travel in any case.
        let own = |v: &FamilyAccess, f: &FieldAccess| {
            let [part] = &f.parts[..] else { return false };
            f.dir == Dir::In && part.elements.saturating_mul(v.family.domain.count()) <= part.reach
        };
        let is_input = |&k: &usize| families().all(|v| own(v, &v.fields[k]));
        let mut inputs: Vec<usize> = (0..fields).filter(is_input).collect();
        inputs.sort_by_key(|&k| std::cmp::Reverse(families().map(|v| bytes(v, k)).sum::<u64>()));
        inputs.truncate(INPUTS);
        inputs
    }
}

/// The number of inputs of a compute set that its vertices may move to.
const INPUTS: usize = 2;

/// What all regions have in common: the accesses of all steps, and the code of codelets.
pub(super) struct Program<'a> {
    pub graph: &'a Graph,
    pub machine: &'a Machine,
    pub items: Vec<Item<'a>>,
    times: &'a StepTimes,
    estimate: MemoryEstimate,
    states: u64,
    code: Code,
    /// Found when they are first needed: most programs are small.
    moments: OnceLock<Moments>,
}

impl<'a> Program<'a> {
    pub(super) fn of(graph: &'a Graph, machine: &'a Machine, cx: &'a PassContext) -> Program<'a> {
        let (items, estimate) = (accesses::items(graph, machine), cx.estimate);
        let code = Code::of(graph, machine, estimate.room);
        let of_family = |f: &Family| f.domain.count().saturating_mul(state_bytes(&graph.codelets[f.codelet], f));
        let states = match estimate.is_full {
            true => graph.families.values().map(of_family).fold(0, u64::saturating_add),
            false => 0,
        };
        Program { graph, machine, items, times: &cx.step_times, estimate, states, code, moments: OnceLock::new() }
    }
}

/// The placement problem of one region.
pub(super) struct PlacementProblem<'a> {
    pub graph: &'a Graph,
    /// The steps whose time depends on open elements or vertices.
    pub items: Vec<&'a Item<'a>>,
    /// The placement before the search, which holds for everything that is not open.
    pub placement: &'a Placement,
    /// The tiles that open elements and vertices may use.
    pub region: TileRange,
    pub machine: &'a Machine,
    pub times: &'a StepTimes,
    pub estimate: MemoryEstimate,
    /// The bytes of all vertices, if they count.
    pub states: u64,
    pub costs: TileCosts,
    /// The uses of each variable.
    pub users: SecondaryMap<VarId, Users>,
    /// The variables and compute sets of the region that the text leaves open at least in part, and its open families.
    pub open_vars: Vec<VarId>,
    pub open_sets: Vec<ComputeSetId>,
    open_families: &'a SecondaryMap<FamilyId, bool>,
    /// The item of each compute set.
    pub item_of: SecondaryMap<ComputeSetId, Option<usize>>,
    /// The open vertices of all open sets, by operation.
    pub groups: PrimaryMap<GroupId, VertexGroup>,
    pub groups_of: SecondaryMap<ComputeSetId, Vec<GroupId>>,
    /// The owners of open variables by claims.
    pub owners: SecondaryMap<VarId, Option<Arc<Owners>>>,
    pub code: &'a Code,
    moments: &'a OnceLock<Moments>,
}

impl<'a> PlacementProblem<'a> {
    /// Returns the moments at which memory is counted.
    pub(super) fn moments(&self) -> &Moments {
        self.moments.get_or_init(|| Moments::of(self.graph))
    }

    /// Returns the families of a compute set; none for other steps.
    pub(super) fn families(&self, item: usize) -> &[FamilyAccess<'a>] {
        match &self.items[item].what {
            StepAccess::Set(_, families) => families,
            _ => &[],
        }
    }

    /// Returns whether the search places the vertices of a family.
    pub(super) fn is_open(&self, family: FamilyId) -> bool {
        self.open_families[family]
    }

    /// Collects the accesses of the steps that a region has a part in, and the uses of variables.
    pub(super) fn of(program: &'a Program<'a>, placement: &'a Placement, region: &'a Region) -> PlacementProblem<'a> {
        let (graph, machine) = (program.graph, program.machine);
        let (open_vars, open_sets) = (region.vars.clone(), region.sets.clone());
        let costs = TileCosts::from(machine);
        let workers = u64::from(costs.workers);
        let mut items: Vec<&Item> = program.items.iter().collect();
        items.retain(|item| {
            let set =
                if let StepAccess::Set(set, _) = item.what { open_sets.binary_search(&set).is_ok() } else { false };
            set || item.vars().iter().any(|v| open_vars.binary_search(v).is_ok())
        });
        let mut problem = PlacementProblem {
            graph,
            items,
            placement,
            region: region.tiles,
            machine,
            times: program.times,
            estimate: program.estimate,
            states: program.states,
            costs,
            users: SecondaryMap::new(),
            open_vars,
            open_sets,
            open_families: &region.families,
            item_of: SecondaryMap::new(),
            groups: PrimaryMap::new(),
            groups_of: SecondaryMap::new(),
            owners: SecondaryMap::new(),
            code: &program.code,
            moments: &program.moments,
        };
        for (k, item) in problem.items.iter().enumerate() {
            match &item.what {
                StepAccess::Set(set, families) => {
                    problem.item_of[*set] = Some(k);
                    for (v, vertices) in families.iter().enumerate() {
                        for (f, field) in vertices.fields.iter().enumerate() {
                            let mut vars: Vec<VarId> = field.parts.iter().map(|p| p.var).collect();
                            vars.dedup();
                            vars.iter().for_each(|&var| problem.users[var].fields.push((k, v, f)));
                        }
                    }
                }
                StepAccess::Copy(_) => item.vars().iter().for_each(|&var| problem.users[var].copies.push(k)),
                StepAccess::Packet(_) => {}
            }
            item.vars().iter().for_each(|&var| problem.users[var].items.push(k));
        }
        // A variable that no step uses stays where it is: all placements are equally good.
        problem.open_vars.retain(|&v| !problem.users[v].items.is_empty());
        let mut open_sets = std::mem::take(&mut problem.open_sets);
        let has_vertices = |k: usize| problem.families(k).iter().any(|v| problem.is_open(v.id));
        open_sets.retain(|&s| problem.item_of[s].is_some_and(has_vertices));
        problem.open_sets = open_sets;
        let groups = par_map_slice(&problem.open_sets, |&set| problem.vertex_groups(set, workers));
        for group in groups.into_iter().flatten() {
            let set = group.set;
            problem.groups_of[set].push(problem.groups.push(group));
        }
        let owners = par_map_slice(&problem.open_vars, |&id| {
            let users = &problem.users[id];
            (!users.fields.is_empty())
                .then(|| Arc::new(Owners::by_claims(id, &graph.vars[id], None, users, &problem.items)))
        });
        problem.open_vars.iter().zip(owners).for_each(|(&var, owners)| problem.owners[var] = owners);
        problem
    }

    /// Returns the open vertices of a compute set by operation.
    fn vertex_groups(&self, set: ComputeSetId, workers: u64) -> Vec<VertexGroup> {
        let Some(item) = self.item_of[set] else { return vec![] };
        let all = self.families(item);
        let open = |families: &Vec<FamilyId>| -> Vec<usize> {
            (0..all.len()).filter(|&k| self.is_open(all[k].id) && families.contains(&all[k].id)).collect()
        };
        let operations = self.graph.operations(set);
        let groups = operations.iter().map(open).filter(|families| !families.is_empty());
        let group = |(families, number): (Vec<usize>, u32)| {
            let accesses: Vec<&FamilyAccess> = families.iter().map(|&k| &all[k]).collect();
            let sites = OpenVertices::of(self.graph, &accesses, workers);
            VertexGroup { set, item, families, sites, number }
        };
        groups.zip(0..).map(group).collect()
    }
}
