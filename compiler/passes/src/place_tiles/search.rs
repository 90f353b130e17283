//! The search for a placement: whole-graph strategies first, then one compute set or variable after the other.
//!
//! Strategies, over several numbers of tiles: vertices in some order with variables following them, and variables spread
//! evenly with vertices beside them. The best is improved by giving single compute sets and variables another rule,
//! those of the steps that take longest first.
//!
//! Of placements that take equally long the one on fewer tiles is kept.
//!
//! Invariants: trials are made in one order and bounded by the runs that they look at ([`BUDGET`]), so the result is a
//! function of the graph and the machine; a placement that seems not to fit is taken only if none does.

use super::accesses::{Accesses, What};
use super::estimate::Estimator;
use super::spread::Order;
use super::trial::{Bench, SetRule, Trial, VarRule};
use super::{given, linear};
use cranelift_entity::SecondaryMap;
use girder_codelet::cost::TileCosts;
use girder_ir::family::TileMap;
use girder_ir::graph::Graph;
use girder_ir::ids::{ComputeSetId, VarId};
use girder_ir::placement::{Mapping, Placement};
use girder_machine::Machine;
use girder_source::{Cancel, par_map_slice};

/// Runs that all trials together look at.
const BUDGET: u64 = 1 << 21;
/// Strategies that are tried side by side, and so many in any case.
const LEAST: usize = 4;
/// Rounds of improvement.
const ROUNDS: usize = 3;
/// Of a tile's memory, what variables and buffers may take in an estimate: the rest is for code and what they do not see.
const ROOM: f64 = 0.75;

/// Improves on a placement of everything that the text leaves open.
pub(super) fn improve(graph: &Graph, placement: Placement, machine: &Machine, cancel: &Cancel) -> Placement {
    let open_vars: Vec<VarId> = graph.vars.iter().filter(|(_, v)| given::is_open(v)).map(|(id, _)| id).collect();
    let is_open = |s: &ComputeSetId| graph.sets[*s].families.iter().any(|&f| graph.families[f].tile.is_none());
    let open_sets: Vec<ComputeSetId> = graph.sets.keys().filter(is_open).collect();
    if (open_vars.is_empty() && open_sets.is_empty()) || machine.tiles() == 1 {
        return placement;
    }
    let Some(accesses) = Accesses::of(graph, machine) else { return placement };
    let mut bench = bench(graph, machine, &accesses, open_vars, open_sets);
    // What no step uses stays as it is: no place of it is better than another.
    bench.open_vars.retain(|&v| !bench.users[v].items.is_empty());
    bench.open_sets.retain(|&s| bench.item_of[s].is_some());
    let mut search = Search { left: BUDGET, made: 0, best: Trial::start(&bench, &placement), bench: &bench, cancel };
    search.strategies();
    search.rules();
    finish(graph, placement, &bench, &search.best)
}

fn bench<'a>(
    graph: &'a Graph,
    machine: &'a Machine,
    accesses: &'a Accesses,
    open_vars: Vec<VarId>,
    open_sets: Vec<ComputeSetId>,
) -> Bench<'a> {
    let estimator = Estimator { graph, machine, costs: TileCosts::from(machine) };
    let (users, item_of) = (SecondaryMap::new(), SecondaryMap::new());
    let mut bench = Bench { graph, accesses, estimator, users, open_vars, open_sets, touched: vec![], item_of };
    for (k, item) in accesses.items.iter().enumerate() {
        let mut touched = vec![];
        match &item.what {
            What::Set(set, families) => {
                bench.item_of[*set] = Some(k);
                for (v, vertices) in families.iter().enumerate() {
                    for (f, field) in vertices.fields.iter().enumerate() {
                        let mut vars: Vec<VarId> = field.parts.iter().map(|p| p.var).collect();
                        vars.dedup();
                        vars.iter().for_each(|&var| bench.users[var].fields.push((k, v, f)));
                        touched.extend(vars);
                    }
                }
            }
            What::Copy(pieces) => {
                touched.extend(pieces.iter().flat_map(|p| [p.to.0, p.from.0]));
                touched.sort_unstable();
                touched.dedup();
                touched.iter().for_each(|&var| bench.users[var].copies.push(k));
            }
            What::Packet(runs) => touched.extend(runs.iter().map(|r| r.0)),
        }
        touched.sort_unstable();
        touched.dedup();
        touched.iter().for_each(|&var| bench.users[var].items.push(k));
        bench.touched.push(touched);
    }
    bench
}

struct Search<'a> {
    bench: &'a Bench<'a>,
    best: Trial,
    /// Runs that may still be looked at.
    left: u64,
    made: usize,
    cancel: &'a Cancel,
}

impl Search<'_> {
    fn ended(&self) -> bool {
        self.cancel.is_cancelled() || (self.left == 0 && self.made >= LEAST)
    }

    /// Takes a trial if it is better than the best so far.
    fn offer(&mut self, trial: Trial) {
        self.left = self.left.saturating_sub(trial.work);
        self.made += 1;
        let room = (f64::from(self.bench.estimator.machine.usable_bytes()) * ROOM) as u64;
        if trial.rank(room) < self.best.rank(room) {
            self.best = trial;
        }
    }

    /// Numbers of tiles worth trying for all compute sets at once, the likeliest first.
    fn sizes(&self) -> Vec<u32> {
        let machine = self.bench.estimator.machine;
        let all = machine.tiles();
        let mut sizes = vec![all, machine.chip.tiles, 1];
        let mut sets: Vec<(u128, u64)> = vec![];
        for &set in &self.bench.open_sets {
            let count = self.vertices(set);
            sets.extend(self.bench.item_of[set].map(|k| (self.best.time_of(k), count)));
        }
        sets.sort_by_key(|s| std::cmp::Reverse(s.0));
        for (_, count) in sets.into_iter().take(3) {
            sizes.extend(self.sizes_for(count));
        }
        sizes.extend(std::iter::successors(Some(2), |t| Some(t * 2)).take_while(|&t| t < all));
        let mut seen = vec![];
        sizes.retain(|t| {
            (1..=all).contains(t) && !seen.contains(t) && {
                seen.push(*t);
                true
            }
        });
        sizes
    }

    /// One vertex to a tile, or one to a worker.
    fn sizes_for(&self, count: u64) -> [u32; 2] {
        let machine = self.bench.estimator.machine;
        let fit = |n: u64| n.clamp(1, u64::from(machine.tiles())) as u32;
        [fit(count.div_ceil(u64::from(machine.chip.workers))), fit(count)]
    }

    fn vertices(&self, set: ComputeSetId) -> u64 {
        self.bench.graph.sets[set].families.iter().map(|&f| self.bench.graph.families[f].domain.count()).sum()
    }

    fn strategies(&mut self) {
        let bench = self.bench;
        let start = self.best.clone();
        let mut all: Vec<(SetRule, bool, u64, u32)> = vec![];
        for tiles in self.sizes() {
            let bytes = linear::BYTES_PER_TILE;
            let spread = |order| (SetRule::Spread { order, tiles }, true, bytes, tiles);
            all.extend([Order::Rows, Order::Text, Order::Blocks].map(spread));
            all.extend([bytes, 8 * bytes].map(|least| (SetRule::Beside, false, least, tiles)));
        }
        let rules = |&(rule, follow, least, tiles): &(SetRule, bool, u64, u32)| {
            let sets: Vec<_> = bench.open_sets.iter().map(|&s| (s, rule)).collect();
            let of = |&var: &VarId| {
                let users = &bench.users[var];
                let rule = match follow {
                    true if !users.fields.is_empty() => VarRule::Follow { first: None, tiles },
                    true if !users.copies.is_empty() => VarRule::Partner { copy: 0, tiles },
                    _ => VarRule::Spread { least, tiles },
                };
                (var, rule)
            };
            let vars: Vec<_> = bench.open_vars.iter().map(of).collect();
            (sets, vars)
        };
        for some in all.chunks(LEAST) {
            if self.ended() {
                return;
            }
            let trials = par_map_slice(some, |strategy| {
                let (sets, vars) = rules(strategy);
                start.change(bench, &sets, &vars, &self.best)
            });
            trials.into_iter().for_each(|t| self.offer(t));
        }
    }

    /// Gives single compute sets and variables other rules.
    fn rules(&mut self) {
        let bench = self.bench;
        for _ in 0..ROUNDS {
            let before = self.best.cycles();
            let mut items: Vec<usize> = (0..bench.accesses.items.len()).collect();
            items.sort_by_key(|&k| std::cmp::Reverse(self.best.time_of(k)));
            let mut seen: Vec<VarId> = vec![];
            for k in items {
                if let What::Set(set, _) = bench.accesses.items[k].what {
                    self.set_rules(set);
                }
                for &var in bench.open_vars.iter().filter(|&&v| bench.users[v].items.contains(&k)) {
                    if !seen.contains(&var) {
                        seen.push(var);
                        self.var_rules(var);
                    }
                }
                if self.ended() {
                    return;
                }
            }
            if self.best.cycles() == before {
                return;
            }
        }
    }

    fn set_rules(&mut self, set: ComputeSetId) {
        let Some(now) = self.best.sets[set] else { return };
        let mut sizes = self.sizes_for(self.vertices(set)).to_vec();
        if let SetRule::Spread { tiles, .. } = now {
            sizes.extend([tiles, tiles / 2, tiles * 2]);
        }
        let all = self.bench.estimator.machine.tiles();
        sizes.extend([1, all]);
        sizes.retain(|t| (1..=all).contains(t));
        sizes.sort_unstable();
        sizes.dedup();
        let orders = [Order::Rows, Order::Blocks, Order::Text];
        let spreads = sizes.iter().flat_map(|&tiles| orders.map(|order| SetRule::Spread { order, tiles }));
        for rule in [SetRule::Beside].into_iter().chain(spreads) {
            if self.ended() {
                return;
            }
            if self.best.sets[set] != Some(rule) {
                self.offer(self.best.change(self.bench, &[(set, rule)], &[], &self.best));
            }
        }
    }

    fn var_rules(&mut self, var: VarId) {
        let users = &self.bench.users[var];
        let all = self.bench.estimator.machine.tiles();
        let tiles = match self.best.vars[var] {
            Some(VarRule::Spread { tiles, .. } | VarRule::Follow { tiles, .. } | VarRule::Partner { tiles, .. }) => {
                tiles
            }
            None => all,
        };
        let mut rules = vec![VarRule::Follow { first: None, tiles }];
        rules.extend((0..users.fields.len().min(6) as u32).map(|k| VarRule::Follow { first: Some(k), tiles }));
        rules.extend((0..users.copies.len().min(3)).map(|copy| VarRule::Partner { copy, tiles }));
        let spread = |least, tiles| VarRule::Spread { least, tiles };
        let bytes = linear::BYTES_PER_TILE;
        rules.extend([
            spread(1, tiles),
            spread(bytes, tiles),
            spread(bytes, all),
            spread(8 * bytes, all),
            spread(1, 1),
        ]);
        for rule in rules {
            if self.ended() {
                return;
            }
            if self.best.vars[var] != Some(rule) {
                self.offer(self.best.change(self.bench, &[], &[(var, rule)], &self.best));
            }
        }
    }
}

/// The placement of a trial, in closed forms where there are any.
fn finish(graph: &Graph, mut placement: Placement, bench: &Bench, trial: &Trial) -> Placement {
    let fit = |&id: &VarId| {
        let var = &graph.vars[id];
        match trial.mapping(id) {
            Mapping::Runs { .. } => Mapping::fit(&var.shape, &trial.mapping(id).runs(var.len()).collect::<Vec<_>>()),
            closed => closed.clone(),
        }
    };
    for (&id, mapping) in bench.open_vars.iter().zip(par_map_slice(&bench.open_vars, fit)) {
        placement.vars[id] = Some(mapping);
    }
    for (id, family) in graph.families.iter().filter(|(_, f)| f.tile.is_none()) {
        if trial.has_tiles(id) {
            placement.families[id] = Some(TileMap::fit(&family.domain, trial.tiles(id)));
        }
    }
    placement
}
