//! The search for a placement: whole-graph strategies first, then one compute set or variable after the other.
//!
//! Strategies, over several numbers of tiles: vertices in some order with variables following them, and variables spread
//! evenly with vertices beside them. The best is improved by giving single compute sets and variables another rule,
//! those of the steps that take longest first.
//!
//! # Note: Reach
//! All of this is done on one processor first, or on as many as hold the variables, and then on four times as many, as
//! long as there are more: to cross between processors costs so much that few programs gain by it, and what is found on
//! few is a placement on many. What then lies on no more processors than before stays as it was, so that it lies on a larger
//! machine as on a smaller one. So a larger machine is no worse than a smaller one, as far as estimates hold. Where no step
//! takes longer than crossing does, nothing more is tried.
//!
//! Of placements that take equally long the one on fewer tiles is kept.
//!
//! Invariants: trials are made in one order and bounded by what they look at ([`BUDGET`]), so the result is a function of
//! the graph and the machine; a placement that seems not to fit is taken only if none does.

use super::accesses::What;
use super::bench::Bench;
use super::homes::Home;
use super::owners::Owners;
use super::spread::{Order, Sites};
use super::trial::{SetRule, Trial, Undo, VarRule};
use super::{given, linear};
use girder_ir::family::TileMap;
use girder_ir::graph::{Graph, Var};
use girder_ir::ids::{ComputeSetId, VarId};
use girder_ir::placement::{Mapping, Placement, TileRun};
use girder_machine::Machine;
use girder_source::{Cancel, par_map_slice, par_map_uneven};

/// Runs that all trials of one reach together look at; vertices count a sixteenth.
const BUDGET: u64 = 1 << 16;
/// How many times as many processors are tried next.
const FURTHER: u32 = 4;
/// Strategies that are tried side by side.
const ABREAST: usize = 4;
/// Rounds of improvement.
const ROUNDS: usize = 2;
/// Steps that take less than this part of the whole are not improved.
const SMALL: u128 = 64;
/// Of a tile's memory, what variables and buffers may take in an estimate: the rest is for code and what they do not see.
pub(super) const ROOM: f64 = 0.75;

/// Improves on a placement of everything that the text leaves open.
pub(super) fn improve(graph: &Graph, placement: Placement, machine: &Machine, cancel: &Cancel) -> Placement {
    let open_vars: Vec<VarId> = graph.vars.iter().filter(|(_, v)| given::is_open(v)).map(|(id, _)| id).collect();
    let is_open = |s: &ComputeSetId| graph.sets[*s].families.iter().any(|&f| graph.families[f].tile.is_none());
    let open_sets: Vec<ComputeSetId> = graph.sets.keys().filter(is_open).collect();
    if (open_vars.is_empty() && open_sets.is_empty()) || machine.tiles() == 1 {
        return placement;
    }
    let bench = Bench::of(graph, machine, open_vars, open_sets);
    if bench.items.is_empty() {
        return placement;
    }
    let start = Trial::start(&bench, &placement, least_reach(graph, machine));
    let vertices: u64 = bench.open_sets.iter().filter_map(|s| bench.sites[*s].as_ref()).map(|s| s.count()).sum();
    let left = (BUDGET + vertices).saturating_sub(start.work);
    let mut search = Search { left, best: start, bench: &bench, placement: &placement, cancel, tried: 0 };
    search.strategies();
    search.improve();
    while !cancel.is_cancelled() && search.reach_further() {
        let before = search.best.clone();
        search.left = BUDGET + vertices;
        search.strategies();
        search.improve();
        if search.best.used_tiles() <= search.tried && search.rank(&before).0 == 0 {
            search.best = before;
        }
    }
    finish(graph, &placement, &bench, &search.best)
}

/// Tiles of as many processors, from the first on, as hold all variables with room to spare.
pub(super) fn least_reach(graph: &Graph, machine: &Machine) -> u32 {
    let bytes = graph.vars.values().map(|v| v.bytes()).fold(0, u64::saturating_add);
    let room = (f64::from(machine.usable_bytes()) * ROOM) as u64 * u64::from(machine.chip.tiles);
    bytes.div_ceil(room.max(1)).clamp(1, u64::from(machine.ipus)) as u32 * machine.chip.tiles
}

/// A placement of everything that is open.
#[derive(Clone, Copy)]
enum Strategy {
    /// Vertices are spread, and variables follow them.
    Follow(Order, u32),
    /// Variables are spread, at least so many bytes to a tile, and vertices are beside them.
    Spread(u64, u32),
}

struct Search<'a> {
    bench: &'a Bench<'a>,
    placement: &'a Placement,
    best: Trial<'a>,
    /// Runs that may still be looked at.
    left: u64,
    cancel: &'a Cancel,
    /// More tiles than these have not been tried.
    tried: u32,
}

impl<'a> Search<'a> {
    fn ended(&self) -> bool {
        self.cancel.is_cancelled() || self.left == 0
    }

    /// Lets what is open lie on more processors; `false` if there are none, or if it is not worth while.
    fn reach_further(&mut self) -> bool {
        let machine = self.bench.machine;
        let (reach, all) = (self.best.reach, machine.tiles());
        let once = |k: usize| self.best.times[k].0 / u128::from(self.bench.items[k].weight.max(1));
        let longest = (0..self.bench.items.len()).map(once).max().unwrap_or(0);
        let (used, further) = (self.best.used_tiles(), reach.saturating_mul(FURTHER).min(all));
        let crossing = u128::from(machine.sync_cycles([0, 1]) + u64::from(machine.links.fixed_cycles));
        // What does not fill the tiles that it may use would not fill more.
        let gains = longest > crossing && u64::from(used) * 2 > u64::from(reach);
        let goes_on = reach < all && (gains || self.rank(&self.best).0 > 0);
        self.tried = reach;
        self.best.reach = further;
        goes_on
    }

    fn room(&self) -> u64 {
        (f64::from(self.bench.machine.usable_bytes()) * ROOM) as u64
    }

    /// Of all variables.
    fn bytes(&self) -> u64 {
        self.bench.graph.vars.values().map(|v| v.bytes()).fold(0, u64::saturating_add)
    }

    /// What makes a trial better than another is less: bytes beyond the room (code or all), cycles, tiles.
    fn rank(&self, trial: &Trial) -> (u64, u128, u64) {
        let total = self.bytes();
        let buffers = trial.times.iter().map(|t| t.1).max().unwrap_or(0);
        let room = self.room();
        let bytes = if total + buffers <= room { 0 } else { trial.bytes(self.bench, self.placement) };
        (bytes.saturating_sub(room) + self.excess(trial), trial.cycles(), trial.used())
    }

    /// Bytes of code beyond the room for it.
    fn excess(&self, trial: &Trial) -> u64 {
        self.bench.code.excess(self.bench, trial, self.placement)
    }

    /// As [`rank`](Search::rank), of changes that move little: variables are looked at in the end.
    fn standing(&self) -> (u64, u128, u64) {
        (self.excess(&self.best), self.best.cycles(), self.best.used())
    }

    /// Numbers of tiles worth trying for all compute sets at once, the likeliest first.
    fn sizes(&self) -> Vec<u32> {
        let all = self.best.reach;
        let mut sizes = vec![all];
        let mut sets: Vec<(u128, u64)> = vec![];
        for &set in &self.bench.open_sets {
            sets.extend(self.bench.item_of[set].map(|k| (self.best.times[k].0, self.vertices(set))));
        }
        sets.sort_by_key(|s| std::cmp::Reverse(s.0));
        for (_, count) in sets.into_iter().take(3) {
            sizes.extend(self.sizes_for(count));
        }
        sizes.extend(std::iter::successors(Some(4), |t| Some(t * 4)).take_while(|&t| t < all));
        sizes.push(1);
        // On fewer tiles than these even what is spread evenly does not fit.
        let least = (self.bytes() / self.room().max(1)).min(u64::from(all)) as u32;
        let mut seen = vec![];
        sizes.retain(|t| {
            (least.max(self.tried + 1)..=all).contains(t) && !seen.contains(t) && {
                seen.push(*t);
                true
            }
        });
        sizes
    }

    /// One vertex to a tile, or one to a worker.
    fn sizes_for(&self, count: u64) -> [u32; 2] {
        let machine = self.bench.machine;
        let fit = |n: u64| n.clamp(1, u64::from(self.best.reach)) as u32;
        [fit(count.div_ceil(u64::from(machine.chip.workers))), fit(count)]
    }

    fn vertices(&self, set: ComputeSetId) -> u64 {
        self.bench.sites[set].as_ref().map_or(0, |s| s.count())
    }

    fn strategies(&mut self) {
        let bench = self.bench;
        let bytes = linear::BYTES_PER_TILE;
        let any =
            |f: fn(&Sites) -> bool| bench.open_sets.iter().any(|s| bench.sites[*s].as_ref().is_some_and(|s| f(s)));
        let (blocks, grid) = (any(Sites::has_blocks), any(Sites::has_grid));
        let mut all: Vec<Strategy> = vec![];
        for (k, tiles) in self.sizes().into_iter().enumerate() {
            // Without open vertices their number of tiles makes no difference.
            if k > 0 && bench.open_sets.is_empty() {
                break;
            }
            all.push(Strategy::Follow(Order::Rows, tiles));
            all.extend((blocks && tiles > 1).then_some(Strategy::Follow(Order::Blocks, tiles)));
            all.extend((grid && tiles > 1).then_some(Strategy::Follow(Order::Grid, tiles)));
            if k == 0 {
                all.extend([Strategy::Spread(bytes, tiles), Strategy::Spread(8 * bytes, tiles)]);
            }
        }
        let start = self.best.clone();
        let mut rank = self.rank(&start);
        // What is left then is for single compute sets and variables.
        let keep = self.left / 2;
        for (k, some) in all.chunks(ABREAST).enumerate() {
            // The likeliest are tried even where to look at the first placement has taken all that there was.
            if self.cancel.is_cancelled() || (k > 0 && self.left <= keep) {
                return;
            }
            let trials = par_map_slice(some, |&strategy| {
                let trial = tried(bench, &start, strategy);
                // To add up bytes takes longer than all else; what fits is beaten by what is faster alone.
                let slower = rank.0 == 0 && (trial.cycles(), trial.used()) >= (rank.1, rank.2);
                ((!slower).then(|| self.rank(&trial)), trial)
            });
            for (found, trial) in trials {
                self.left = self.left.saturating_sub(trial.work);
                if let Some(found) = found
                    && found < rank
                {
                    (rank, self.best) = (found, trial);
                }
            }
        }
        if !bench.code.fits() {
            let groups = bench.code.groups(bench);
            for order in [Order::Rows, Order::Blocks] {
                let trial = apart(bench, &start, &groups, order);
                let found = self.rank(&trial);
                if found < rank {
                    (rank, self.best) = (found, trial);
                }
            }
        }
    }

    /// Gives single compute sets and variables other rules. What then seems not to fit is taken back altogether.
    fn improve(&mut self) {
        let (before, standing) = (self.best.clone(), self.standing());
        for _ in 0..ROUNDS {
            let cycles = self.best.cycles();
            self.round();
            if self.best.cycles() == cycles || self.ended() {
                break;
            }
        }
        if self.standing() != standing && self.rank(&self.best).0 > self.rank(&before).0 {
            self.best = before;
        }
    }

    fn round(&mut self) {
        let bench = self.bench;
        let mut items: Vec<usize> = (0..bench.items.len()).collect();
        items.sort_by_key(|&k| std::cmp::Reverse(self.best.times[k].0));
        let total = self.best.cycles();
        items.retain(|&k| self.best.times[k].0 >= total / SMALL);
        let mut seen: Vec<VarId> = vec![];
        for k in items {
            if let What::Set(set, _) = bench.items[k].what {
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
    }

    /// Keeps a change if it is one for the better.
    fn settle(&mut self, before: (u64, u128, u64), undo: Option<Undo>) {
        let Some(undo) = undo else { return };
        // A change costs at least what it looks through to find what it moves.
        let listed = (self.bench.open_vars.len() + self.bench.items.len()) as u64 / 16;
        self.left = self.left.saturating_sub(std::mem::take(&mut self.best.work) + listed);
        if self.standing() >= before {
            self.best.undo(undo);
        }
    }

    fn set_rules(&mut self, set: ComputeSetId) {
        let Some(SetRule::Spread { first, tiles: now, .. }) = self.best.sets[set] else { return };
        let mut sizes = self.sizes_for(self.vertices(set)).to_vec();
        let all = self.best.reach - first;
        sizes.extend([now, now / 2, now.saturating_mul(2), 1, all]);
        sizes.retain(|t| (1..=all).contains(t));
        sizes.sort_unstable();
        sizes.dedup();
        let is = |f: fn(&Sites) -> bool| self.bench.sites[set].as_deref().is_some_and(f);
        let orders = match (is(Sites::has_blocks), is(Sites::has_grid)) {
            (_, true) => &[Order::Rows, Order::Blocks, Order::Grid][..],
            (true, false) => &[Order::Rows, Order::Blocks],
            _ => &[Order::Rows],
        };
        let rule = |tiles: u32| orders.iter().map(move |&order| SetRule::Spread { order, first, tiles });
        for rule in sizes.into_iter().flat_map(rule) {
            if self.ended() {
                return;
            }
            if self.best.sets[set] != Some(rule) {
                let before = self.standing();
                let undo = self.best.change_set(self.bench, set, rule);
                self.settle(before, undo);
            }
        }
    }

    fn var_rules(&mut self, id: VarId) {
        let (var, users) = (&self.bench.graph.vars[id], &self.bench.users[id]);
        // Vertices beside a variable do not see that it moves.
        if self.best.vars[id].is_none() || self.best.sets.values().any(|s| *s == Some(SetRule::Beside)) {
            return;
        }
        let all = self.best.reach;
        let mut rules = vec![VarRule::Follow { first: None }];
        // Owners of many runs cost more to find than all else.
        let short = self.bench.owners[id].as_ref().is_some_and(|o| !o.is_long());
        let fields = if short { users.fields.len().min(4) } else { 0 };
        rules.extend((0..fields).map(|k| VarRule::Follow { first: Some(k) }));
        rules.extend((0..users.copies.len().min(2)).map(|copy| VarRule::Partner { copy }));
        let bytes = linear::BYTES_PER_TILE;
        rules.extend([(1, all), (bytes, all), (8 * bytes, all)].map(|(least, tiles)| VarRule::Spread { least, tiles }));
        if var.bytes() <= self.room() / 4 {
            rules.push(VarRule::Spread { least: 1, tiles: 1 });
        }
        for rule in rules {
            if self.ended() {
                return;
            }
            if self.best.vars[id] != Some(rule) {
                let before = self.standing();
                let undo = self.best.change_var(self.bench, id, rule);
                self.settle(before, undo);
            }
        }
    }
}

/// A strategy, measured.
fn tried<'a>(bench: &Bench<'a>, start: &Trial<'a>, strategy: Strategy) -> Trial<'a> {
    let mut trial = start.clone();
    trial.work = 0;
    match strategy {
        Strategy::Follow(order, tiles) => {
            let rule = SetRule::Spread { order, first: 0, tiles };
            bench.open_sets.iter().for_each(|&s| trial.place_set(bench, s, rule));
            follow(bench, &mut trial, tiles);
        }
        Strategy::Spread(least, tiles) => {
            for &var in &bench.open_vars {
                trial.place_var(bench, var, VarRule::Spread { least, tiles });
            }
            bench.open_sets.iter().for_each(|&s| trial.place_set(bench, s, SetRule::Beside));
        }
    }
    trial.measure_all(bench);
    trial
}

/// Groups of compute sets on tiles of their own, as many of them as there are groups allow.
fn apart<'a>(bench: &Bench<'a>, start: &Trial<'a>, groups: &[Vec<ComputeSetId>], order: Order) -> Trial<'a> {
    let mut trial = start.clone();
    let (count, reach) = (groups.len() as u64, u64::from(start.reach));
    for (k, group) in (0u64..).zip(groups) {
        let edge = |k: u64| (k * reach / count) as u32;
        let (first, tiles) = (edge(k), (edge(k + 1) - edge(k)).max(1));
        group.iter().for_each(|&set| trial.place_set(bench, set, SetRule::Spread { order, first, tiles }));
    }
    follow(bench, &mut trial, start.reach);
    trial.measure_all(bench);
    trial
}

/// Lets variables follow vertices, or the other ends of copies; what follows neither is spread over so many tiles.
fn follow(bench: &Bench, trial: &mut Trial, tiles: u32) {
    for &var in &bench.open_vars {
        let rules = [VarRule::Follow { first: None }, VarRule::Partner { copy: 0 }];
        if !rules.into_iter().any(|rule| trial.place_var(bench, var, rule)) {
            trial.place_var(bench, var, VarRule::Spread { least: linear::BYTES_PER_TILE, tiles });
        }
    }
}

/// The placement of a trial, in closed forms where there are any.
fn finish(graph: &Graph, placement: &Placement, bench: &Bench, trial: &Trial) -> Placement {
    let mut placement = placement.clone();
    let open = graph.families.iter().filter(|(_, f)| f.tile.is_none()).map(|(id, _)| id);
    let moved: Vec<_> = open.filter_map(|id| Some((id, trial.table(id)?))).collect();
    let maps = par_map_slice(&moved, |&(id, tiles)| TileMap::fit(&graph.families[id].domain, tiles));
    for ((id, _), map) in moved.into_iter().zip(maps) {
        placement.families[id] = Some(map);
    }
    let moved: Vec<VarId> = bench.open_vars.iter().copied().filter(|&v| trial.vars[v].is_some()).collect();
    let mappings =
        par_map_uneven(&moved, |&id| graph.vars[id].len(), |&id| mapping(&graph.vars[id], id, trial, &placement));
    for (id, mapping) in moved.into_iter().zip(mappings) {
        placement.vars[id] = Some(mapping);
    }
    placement
}

/// The mapping of a variable in a trial.
fn mapping(var: &Var, id: VarId, trial: &Trial, placement: &Placement) -> Mapping {
    if var.is_empty() {
        return Mapping::One(0);
    }
    match &trial.homes[id] {
        Home::Even(even) => return even.mapping(),
        Home::Owned(owners, _) => {
            if let Owners::Closed(closed) = &**owners
                && owners.is_long()
                && closed.block * u64::from(var.ty.bytes()) % 4 == 0
                && let Some((domain, tiles)) = placement.families[closed.family].as_ref().and_then(|m| closed.tiles(m))
            {
                return Mapping::Separable { domain, tiles };
            }
        }
        _ => {}
    }
    let runs = trial.all_runs(id, var.len());
    let runs: Vec<TileRun> = runs.into_iter().map(|r| (r.start, r.end, r.tile)).collect();
    Mapping::fit(&var.shape, whole_granules(var, runs))
}

/// Moves the ends of runs to whole words: narrow elements of one granule lie on one tile.
fn whole_granules(var: &Var, mut runs: Vec<TileRun>) -> Vec<TileRun> {
    let granule = (4 / u64::from(var.ty.bytes())).max(1);
    if granule > 1 && var.mapping.is_none() {
        let mut start = 0;
        for run in &mut runs {
            let end = run.1.next_multiple_of(granule).min(var.len());
            (run.0, run.1) = (std::mem::replace(&mut start, end), end);
        }
        runs.retain(|r| r.0 < r.1);
    }
    runs
}
