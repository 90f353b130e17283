//! The placement problem of a graph: the steps whose time depends on open elements and vertices, the uses of variables,
//! and the possible owners.
//!
//! Invariant: it does not change during the search.

use super::accesses::{self, Access, FamilyAccess, Item, Users};
use super::code::Code;
use super::owners::Owners;
use super::spread::OpenVertices;
use cranelift_entity::SecondaryMap;
use girder_codelet::cost::TileCosts;
use girder_ir::graph::Graph;
use girder_ir::ids::{ComputeSetId, VarId};
use girder_machine::Machine;
use girder_source::par_map_slice;
use std::sync::Arc;

/// See the module.
pub(super) struct PlacementProblem<'a> {
    pub graph: &'a Graph,
    /// The steps whose time depends on open elements or vertices.
    pub items: Vec<Item<'a>>,
    pub machine: &'a Machine,
    pub costs: TileCosts,
    /// The uses of each variable.
    pub users: SecondaryMap<VarId, Users>,
    /// The variables and compute sets that the text leaves open at least in part.
    pub open_vars: Vec<VarId>,
    pub open_sets: Vec<ComputeSetId>,
    /// The item of each compute set, and its open vertices.
    pub item_of: SecondaryMap<ComputeSetId, Option<usize>>,
    pub sites: SecondaryMap<ComputeSetId, Option<Arc<OpenVertices>>>,
    /// The owners of open variables by claims.
    pub owners: SecondaryMap<VarId, Option<Arc<Owners>>>,
    pub code: Code,
}

impl<'a> PlacementProblem<'a> {
    pub(super) fn families(&self, item: usize) -> &[FamilyAccess<'a>] {
        match &self.items[item].what {
            Access::Set(_, families) => families,
            _ => &[],
        }
    }

    /// Collects the accesses of all steps and the uses of all variables.
    pub(super) fn of(
        graph: &'a Graph,
        machine: &'a Machine,
        open_vars: Vec<VarId>,
        open_sets: Vec<ComputeSetId>,
    ) -> PlacementProblem<'a> {
        let costs = TileCosts::from(machine);
        let workers = u64::from(costs.workers);
        let mut items = accesses::items(graph, machine);
        items.retain(|item| {
            let set = if let Access::Set(set, _) = item.what { open_sets.contains(&set) } else { false };
            set || item.vars().iter().any(|v| open_vars.binary_search(v).is_ok())
        });
        let mut problem = PlacementProblem {
            graph,
            items,
            machine,
            costs,
            users: SecondaryMap::new(),
            open_vars,
            open_sets,
            item_of: SecondaryMap::new(),
            sites: SecondaryMap::new(),
            owners: SecondaryMap::new(),
            code: Code::of(graph, machine),
        };
        for (k, item) in problem.items.iter().enumerate() {
            match &item.what {
                Access::Set(set, families) => {
                    problem.item_of[*set] = Some(k);
                    for (v, vertices) in families.iter().enumerate() {
                        for (f, field) in vertices.fields.iter().enumerate() {
                            let mut vars: Vec<VarId> = field.parts.iter().map(|p| p.var).collect();
                            vars.dedup();
                            vars.iter().for_each(|&var| problem.users[var].fields.push((k, v, f)));
                        }
                    }
                }
                Access::Copy(_) => item.vars().iter().for_each(|&var| problem.users[var].copies.push(k)),
                Access::Packet(_) => {}
            }
            item.vars().iter().for_each(|&var| problem.users[var].items.push(k));
        }
        // A variable that no step uses stays where it is: all placements are equally good.
        problem.open_vars.retain(|&v| !problem.users[v].items.is_empty());
        let mut open_sets = std::mem::take(&mut problem.open_sets);
        open_sets.retain(|&s| problem.item_of[s].is_some_and(|k| !problem.families(k).is_empty()));
        problem.open_sets = open_sets;
        let sites = par_map_slice(&problem.open_sets, |&set| {
            let open = problem.item_of[set].map_or(&[][..], |k| problem.families(k)).iter();
            OpenVertices::of(graph, &open.filter(|v| v.family.tile.is_none()).collect::<Vec<_>>(), workers)
        });
        problem.open_sets.iter().zip(sites).for_each(|(&set, sites)| problem.sites[set] = Some(Arc::new(sites)));
        let owners = par_map_slice(&problem.open_vars, |&id| {
            let users = &problem.users[id];
            (!users.fields.is_empty())
                .then(|| Arc::new(Owners::by_claims(id, &graph.vars[id], None, users, &problem.items)))
        });
        problem.open_vars.iter().zip(owners).for_each(|(&var, owners)| problem.owners[var] = owners);
        problem
    }
}
