//! The time of a candidate, and single changes to it that can be undone.
//!
//! Invariant: an undone change leaves the candidate as it was.

use super::candidate::{Candidate, GroupRule, ItemCost, VarRule};
use super::estimate::{self, Estimate};
use super::homes::Home;
use super::problem::{GroupId, PlacementProblem};
use super::sample::Sample;
use girder_ir::ids::{ComputeSetId, FamilyId, VarId};
use girder_source::par_map;
use std::sync::Arc;

/// The state that a change has replaced.
pub(super) struct Undo {
    tiles: Vec<(FamilyId, Option<Arc<[u32]>>)>,
    group: Option<(GroupId, Option<GroupRule>)>,
    samples: Vec<(usize, Option<Arc<Sample>>)>,
    var: Option<(VarId, Option<VarRule>, Home)>,
    costs: Vec<(usize, ItemCost)>,
}

impl Candidate<'_> {
    /// Returns whether a variable follows a vertex of a compute set.
    fn follows(&self, problem: &PlacementProblem, var: VarId, set: ComputeSetId) -> bool {
        match &self.homes[var] {
            Home::Owned(owners, _) => owners.families().iter().any(|f| problem.graph.families[*f].set == set),
            _ => false,
        }
    }

    /// Returns the items whose time changes when a compute set or a variable moves.
    fn moved(&self, problem: &PlacementProblem, set: Option<ComputeSetId>, var: Option<VarId>) -> Vec<usize> {
        let follows = |v: &VarId| set.is_some_and(|s| self.follows(problem, *v, s)) || var == Some(*v);
        let vars: Vec<VarId> = problem.open_vars.iter().copied().filter(follows).collect();
        let mut items: Vec<usize> = set.and_then(|s| problem.item_of[s]).into_iter().collect();
        items.extend(vars.iter().flat_map(|&v| problem.users[v].items.iter().copied()));
        for &id in &problem.open_vars {
            if let Some(VarRule::Partner { copy }) = self.vars[id]
                && vars.iter().any(|v| problem.users[*v].items.contains(&problem.users[id].copies[copy]))
            {
                items.extend(&problem.users[id].items);
            }
        }
        items.sort_unstable();
        items.dedup();
        items
    }

    /// Changes the rule of a group of vertices and measures the items that depend on it.
    pub(super) fn change_group(&mut self, problem: &PlacementProblem, id: GroupId, rule: GroupRule) -> Undo {
        let group = &problem.groups[id];
        let item = group.item;
        let families = group.families.iter().map(|&k| &problem.families(item)[k]);
        let tiles = families.map(|v| (v.id, self.tiles[v.id].clone())).collect();
        let items = self.moved(problem, Some(group.set), None);
        let costs = items.iter().map(|&k| (k, self.costs[k])).collect();
        let undo = Undo {
            tiles,
            group: Some((id, self.groups[id])),
            samples: vec![(item, self.samples[item].clone())],
            var: None,
            costs,
        };
        self.place_group(problem, id, rule);
        self.measure(problem, items);
        undo
    }

    pub(super) fn change_var(&mut self, problem: &PlacementProblem, var: VarId, rule: VarRule) -> Option<Undo> {
        let items = self.moved(problem, None, Some(var));
        let costs = items.iter().map(|&k| (k, self.costs[k])).collect();
        let undo = Undo {
            tiles: vec![],
            group: None,
            samples: vec![],
            var: Some((var, self.vars[var], self.homes[var].clone())),
            costs,
        };
        if !self.place_var(problem, var, rule) {
            return None;
        }
        self.measure(problem, items);
        Some(undo)
    }

    /// Undoes a change.
    pub(super) fn undo(&mut self, undo: Undo) {
        undo.tiles.into_iter().for_each(|(family, tiles)| self.tiles[family] = tiles);
        undo.samples.into_iter().for_each(|(item, sample)| self.samples[item] = sample);
        if let Some((group, rule)) = undo.group {
            self.groups[group] = rule;
        }
        if let Some((var, rule, home)) = undo.var {
            self.vars[var] = rule;
            self.homes[var] = home;
        }
        undo.costs.into_iter().for_each(|(k, cost)| self.costs[k] = cost);
    }

    /// Estimates the time of some items.
    fn measure(&mut self, problem: &PlacementProblem, items: impl IntoIterator<Item = usize>) {
        for k in items {
            let estimate = estimate::of(problem, problem.items[k], self, self.samples[k].as_deref());
            self.found(problem, k, estimate);
        }
    }

    /// Estimates the time of all items in parallel.
    pub(super) fn measure_all(&mut self, problem: &PlacementProblem) {
        let of = |k: usize| estimate::of(problem, problem.items[k], self, self.samples[k].as_deref());
        for (k, estimate) in par_map(problem.items.len(), of).into_iter().enumerate() {
            self.found(problem, k, estimate);
        }
    }

    fn found(&mut self, problem: &PlacementProblem, k: usize, estimate: Estimate) {
        self.work += 1 + estimate.work;
        let cycles = u128::from(estimate.cycles) * u128::from(problem.items[k].weight);
        self.costs[k] = ItemCost { cycles, buffers: estimate.buffers, code: estimate.code };
    }
}
