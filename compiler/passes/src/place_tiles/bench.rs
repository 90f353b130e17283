//! What all trials of one graph have in common: the steps whose time depends on what is open, who uses what, and whom
//! open elements and vertices may follow.
//!
//! Invariant: it does not change while trials are made.

use super::accesses::{self, Item, Vertices, What};
use super::code::Code;
use super::owners::Owners;
use super::spread::Sites;
use cranelift_entity::SecondaryMap;
use girder_codelet::cost::TileCosts;
use girder_ir::graph::Graph;
use girder_ir::ids::{ComputeSetId, VarId};
use girder_machine::Machine;
use girder_source::par_map_slice;
use std::sync::Arc;

/// See the module.
pub(super) struct Bench<'a> {
    pub graph: &'a Graph,
    /// The steps whose time depends on what is open.
    pub items: Vec<Item<'a>>,
    pub machine: &'a Machine,
    pub costs: TileCosts,
    /// By variable.
    pub users: SecondaryMap<VarId, Users>,
    /// Variables and compute sets that the text leaves open.
    pub open_vars: Vec<VarId>,
    pub open_sets: Vec<ComputeSetId>,
    /// The item of a compute set, and its open vertices.
    pub item_of: SecondaryMap<ComputeSetId, Option<usize>>,
    pub sites: SecondaryMap<ComputeSetId, Option<Arc<Sites>>>,
    /// Who owns the elements of open variables by their claims.
    pub owners: SecondaryMap<VarId, Option<Arc<Owners>>>,
    pub code: Code,
}

/// Who uses a variable, by index into [`Bench::items`].
#[derive(Default, Clone)]
pub(super) struct Users {
    /// Item, family in it, field.
    pub fields: Vec<(usize, usize, usize)>,
    /// Copies between it and another variable.
    pub copies: Vec<usize>,
    /// All items that touch it.
    pub items: Vec<usize>,
}

impl<'a> Bench<'a> {
    pub(super) fn families(&self, item: usize) -> &[Vertices<'a>] {
        match &self.items[item].what {
            What::Set(_, families) => families,
            _ => &[],
        }
    }

    /// Lists what the steps touch, and who uses what.
    pub(super) fn of(
        graph: &'a Graph,
        machine: &'a Machine,
        open_vars: Vec<VarId>,
        open_sets: Vec<ComputeSetId>,
    ) -> Bench<'a> {
        let costs = TileCosts::from(machine);
        let workers = u64::from(costs.workers);
        let mut items = accesses::items(graph, machine);
        items.retain(|item| {
            let set = if let What::Set(set, _) = item.what { open_sets.contains(&set) } else { false };
            set || item.vars().iter().any(|v| open_vars.binary_search(v).is_ok())
        });
        let mut bench = Bench {
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
        for (k, item) in bench.items.iter().enumerate() {
            match &item.what {
                What::Set(set, families) => {
                    bench.item_of[*set] = Some(k);
                    for (v, vertices) in families.iter().enumerate() {
                        for (f, field) in vertices.fields.iter().enumerate() {
                            let mut vars: Vec<VarId> = field.parts.iter().map(|p| p.var).collect();
                            vars.dedup();
                            vars.iter().for_each(|&var| bench.users[var].fields.push((k, v, f)));
                        }
                    }
                }
                What::Copy(_) => item.vars().iter().for_each(|&var| bench.users[var].copies.push(k)),
                What::Packet(_) => {}
            }
            item.vars().iter().for_each(|&var| bench.users[var].items.push(k));
        }
        // What no step uses stays as it is: no place of it is better than another.
        bench.open_vars.retain(|&v| !bench.users[v].items.is_empty());
        let mut open_sets = std::mem::take(&mut bench.open_sets);
        open_sets.retain(|&s| bench.item_of[s].is_some_and(|k| !bench.families(k).is_empty()));
        bench.open_sets = open_sets;
        let sites = par_map_slice(&bench.open_sets, |&set| {
            let open = bench.item_of[set].map_or(&[][..], |k| bench.families(k)).iter();
            Sites::of(graph, &open.filter(|v| v.family.tile.is_none()).collect::<Vec<_>>(), workers)
        });
        bench.open_sets.iter().zip(sites).for_each(|(&set, sites)| bench.sites[set] = Some(Arc::new(sites)));
        let owners = par_map_slice(&bench.open_vars, |&id| {
            let users = &bench.users[id];
            (!users.fields.is_empty())
                .then(|| Arc::new(Owners::by_claims(id, &graph.vars[id], None, users, &bench.items)))
        });
        bench.open_vars.iter().zip(owners).for_each(|(&var, owners)| bench.owners[var] = owners);
        bench
    }
}
