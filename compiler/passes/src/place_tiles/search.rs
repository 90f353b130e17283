//! The search for a placement: strategies for the whole graph first, then one compute set or variable after the other.
//!
//! The strategies, over several numbers of tiles, either order the vertices and let variables follow them, or spread
//! variables evenly and put vertices beside them. The best candidate is improved by changing the rules of single
//! compute sets and variables, beginning with the steps that take longest. If earlier placements lacked memory, the
//! orders of the vertices of all sets are tried too. Last, the vertices of each compute set move to what they read if
//! that saves time: an operator that is cut like the step before it then needs no exchange.
//!
//! # Note: Reach
//! The search first uses one processor, or as many as hold the variables, and then four times as many, as long as there
//! are more. Crossing between processors costs so much that few programs gain by it, and a placement on few processors
//! is also valid on many. If the further search uses no more processors than before, the earlier result is kept, so
//! that a program has the same placement on a larger machine as on a smaller one. A larger machine is thus no worse
//! than a smaller one, as far as estimates are right. If no step takes longer than a crossing, the search ends.
//!
//! Among placements of equal time, the one on fewer tiles is kept.
//!
//! Invariants: candidates are made in a fixed order, and the number of runs that they examine is bounded ([`BUDGET`]),
//! so the result is a function of the graph and the machine. A placement that does not seem to fit is taken only if
//! none does.

use super::accesses::StepAccess;
use super::candidate::{Candidate, GroupRule, VarRule};
use super::changes::Undo;
use super::finish::finish;
use super::problem::{GroupId, PlacementProblem, Program};
use super::regions::{all_tiles, regions};
use super::spread::{OpenVertices, VertexOrder};
use super::strategies::{Strategy, candidate_of, separate_groups};
use super::{linear, text_placement};
use crate::PassContext;
use girder_ir::graph::{Graph, Var};
use girder_ir::ids::VarId;
use girder_ir::placement::Placement;
use girder_machine::Machine;
use girder_source::{Cancel, par_map_slice};

/// The number of runs that all candidates of one reach may examine together; a vertex counts a sixteenth.
const BUDGET: u64 = 1 << 17;
/// The factor by which the number of processors grows.
const FURTHER: u32 = 4;
/// The number of strategies that are evaluated in parallel.
const AT_A_TIME: usize = 4;
/// The number of rounds of improvement.
const ROUNDS: usize = 2;
/// The memory of each change is checked if the variables that are live together fill more than one part in this many of
/// the room.
const TIGHT: u64 = 2;
/// The number of variables that are spread evenly at most, if a placement does not seem to fit.
const SPREAD_OUT: usize = 32;
/// A step that takes less than one part in this many of the total time is not improved.
const SMALL: u128 = 64;
/// The vertices of a step that takes less than one part in this many of the total time do not move to what they read.
const JOINED: u128 = 4096;
/// The budget for changes of orders, in multiples of [`BUDGET`].
const REORDERED: u64 = 256;
/// After this many such moves in a row without a gain, the search ends.
const IN_VAIN: u32 = 12;

/// Improves a placement of everything that the text leaves open, region by region.
pub(super) fn improve(graph: &Graph, mut placement: Placement, cx: &PassContext) -> Placement {
    let (machine, cancel) = (cx.machine, &cx.session.cancel);
    let open = graph.vars.values().any(text_placement::is_open) || graph.families.values().any(|f| f.tile.is_none());
    if !open || machine.tiles() == 1 {
        return placement;
    }
    let program = Program::of(graph, machine, cx);
    for region in regions(graph, machine, &program.items) {
        let problem = PlacementProblem::of(&program, &placement, &region);
        if problem.items.is_empty() {
            continue;
        }
        placement = improve_region(&problem, cancel);
    }
    placement
}

fn improve_region(problem: &PlacementProblem, cancel: &Cancel) -> Placement {
    let (graph, machine) = (problem.graph, problem.machine);
    let own = |id: &VarId| problem.region == all_tiles(machine) || problem.open_vars.binary_search(id).is_ok();
    let own = graph.vars.iter().filter(|(id, _)| own(id)).map(|(_, var)| var);
    let reach = least_reach(own, machine, problem.estimate.room).min(problem.region.count);
    let mut start = Candidate::start(problem, reach);
    start.measure_all(problem);
    let vertices: u64 = problem.groups.values().map(|g| g.sites.count()).sum();
    let left = (BUDGET + vertices).saturating_sub(start.work);
    let mut search = Search { left, best: start, problem, cancel, tried: 0, beyond: None };
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
    finish(graph, problem.placement, problem, &search.best)
}

/// Returns the number of tiles of the fewest processors that hold some variables in the share `room` of their memory.
pub(super) fn least_reach<'v>(vars: impl Iterator<Item = &'v Var>, machine: &Machine, room: f64) -> u32 {
    let bytes = vars.map(|v| v.bytes()).fold(0, u64::saturating_add);
    let room = (f64::from(machine.usable_bytes()) * room) as u64 * u64::from(machine.chip.tiles);
    bytes.div_ceil(room.max(1)).clamp(1, u64::from(machine.ipus)) as u32 * machine.chip.tiles
}

struct Search<'a> {
    problem: &'a PlacementProblem<'a>,
    best: Candidate<'a>,
    /// The number of runs that may still be examined.
    left: u64,
    cancel: &'a Cancel,
    /// The largest number of tiles that has been tried.
    tried: u32,
    /// The bytes by which the best candidate exceeds the room; `None` if variables take so little memory that single
    /// changes need no check.
    beyond: Option<u64>,
}

impl<'a> Search<'a> {
    fn ended(&self) -> bool {
        self.cancel.is_cancelled() || self.left == 0
    }

    /// Lets candidates use more processors. Returns `false` if there are none, or if it is not worthwhile.
    fn reach_further(&mut self) -> bool {
        let machine = self.problem.machine;
        let (reach, all) = (self.best.reach, self.problem.region.count);
        let once = |k: usize| self.best.costs[k].cycles / u128::from(self.problem.items[k].weight.max(1));
        let longest = (0..self.problem.items.len()).map(once).max().unwrap_or(0);
        let (used, further) = (self.best.used_tiles(), reach.saturating_mul(FURTHER).min(all));
        let crossing = u128::from(machine.sync_cycles([0, 1]) + u64::from(machine.links.fixed_cycles));
        // A program that does not fill the available tiles would not fill more.
        let gains = longest > crossing && u64::from(used) * 2 > u64::from(reach);
        let goes_on = reach < all && (gains || self.rank(&self.best).0 > 0);
        self.tried = reach;
        self.best.reach = further;
        goes_on
    }

    fn room(&self) -> u64 {
        (f64::from(self.problem.machine.usable_bytes()) * self.problem.estimate.room) as u64
    }

    /// Returns the bytes of all variables that live together.
    fn bytes(&self) -> u64 {
        let all = self.problem.graph.vars.values().map(|v| v.bytes()).fold(0, u64::saturating_add);
        if all <= self.room() { all } else { self.problem.moments().most_bytes(self.problem.graph) }
    }

    /// Returns the rank of a candidate (lower is better): bytes beyond the room (of code or of everything), cycles,
    /// tiles.
    fn rank(&self, candidate: &Candidate) -> (u64, u128, u64) {
        let total = self.bytes();
        let room = self.room();
        let bytes = if total + self.problem.states + candidate.buffers_and_code() <= room {
            0
        } else {
            candidate.bytes(self.problem)
        };
        (bytes.saturating_sub(room) + self.excess(candidate), candidate.cycles(), candidate.used())
    }

    /// Returns the bytes of code beyond the room for it.
    fn excess(&self, candidate: &Candidate) -> u64 {
        let (problem, table) = (self.problem, |family| candidate.table(family));
        let exchanges = if problem.estimate.is_full { candidate.exchange_code() } else { 0 };
        problem.code.excess(problem.graph, table, problem.placement, problem.machine.tiles(), exchanges)
    }

    /// Returns the rank of the best candidate without its variables, which single changes hardly move.
    fn standing(&self) -> (u64, u128, u64) {
        (self.excess(&self.best), self.best.cycles(), self.best.used())
    }

    /// Returns the numbers of tiles worth trying for all compute sets at once, the likeliest first.
    fn sizes(&self) -> Vec<u32> {
        let all = self.best.reach;
        let mut sizes = vec![all];
        let mut sets: Vec<(u128, u64)> = vec![];
        for group in self.problem.groups.values() {
            sets.push((self.best.costs[group.item].cycles, group.sites.count()));
        }
        sets.sort_by_key(|s| std::cmp::Reverse(s.0));
        for (_, count) in sets.into_iter().take(3) {
            sizes.extend(self.sizes_for(count));
        }
        sizes.extend(std::iter::successors(Some(4), |t| Some(t * 4)).take_while(|&t| t < all));
        sizes.push(1);
        // On fewer tiles even an even spread does not fit.
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

    /// Returns the numbers of tiles that give a vertex to each worker, or one to each tile.
    fn sizes_for(&self, count: u64) -> [u32; 2] {
        let machine = self.problem.machine;
        let fit = |n: u64| n.clamp(1, u64::from(self.best.reach)) as u32;
        [fit(count.div_ceil(u64::from(machine.chip.workers))), fit(count)]
    }

    fn strategies(&mut self) {
        let problem = self.problem;
        let bytes = linear::BYTES_PER_TILE;
        let any = |f: fn(&OpenVertices) -> bool| problem.groups.values().any(|g| f(&g.sites));
        let (blocks, grid) = (any(OpenVertices::has_blocks), any(OpenVertices::has_grid));
        let mut all: Vec<Strategy> = vec![];
        for (k, tiles) in self.sizes().into_iter().enumerate() {
            // Without open vertices the number of their tiles makes no difference.
            if k > 0 && problem.open_sets.is_empty() {
                break;
            }
            all.push(Strategy::Follow(VertexOrder::Rows, tiles));
            all.extend((blocks && tiles > 1).then_some(Strategy::Follow(VertexOrder::Blocks, tiles)));
            all.extend((grid && tiles > 1).then_some(Strategy::Follow(VertexOrder::Grid, tiles)));
            if k == 0 {
                all.extend([Strategy::Spread(bytes, tiles), Strategy::Spread(8 * bytes, tiles)]);
            }
        }
        let start = self.best.clone();
        let mut rank = self.rank(&start);
        // The rest of the budget is reserved for single compute sets and variables.
        let keep = self.left / 2;
        for (k, some) in all.chunks(AT_A_TIME).enumerate() {
            // The likeliest strategies are tried even if the first placement used up the budget.
            if self.cancel.is_cancelled() || (k > 0 && self.left <= keep) {
                return;
            }
            let candidates = par_map_slice(some, |&strategy| {
                let candidate = candidate_of(problem, &start, strategy);
                // The sum of bytes takes longer than everything else. A candidate that fits loses only to a faster one.
                let slower = rank.0 == 0 && (candidate.cycles(), candidate.used()) >= (rank.1, rank.2);
                ((!slower).then(|| self.rank(&candidate)), candidate)
            });
            for (found, candidate) in candidates {
                self.left = self.left.saturating_sub(candidate.work);
                if let Some(found) = found
                    && found < rank
                {
                    (rank, self.best) = (found, candidate);
                }
            }
        }
        if !problem.code.fits() {
            let groups = problem.code.groups(problem.graph, &problem.open_sets);
            for order in [VertexOrder::Rows, VertexOrder::Blocks] {
                let candidate = separate_groups(problem, &start, &groups, order);
                let found = self.rank(&candidate);
                if found < rank {
                    (rank, self.best) = (found, candidate);
                }
            }
        }
    }

    /// Changes the rules of single compute sets and variables. If the result seems not to fit, all changes are undone.
    fn improve(&mut self) {
        let (before, standing) = (self.best.clone(), self.standing());
        let is_tight = self.bytes() > u64::from(self.best.reach).saturating_mul(self.room()) / TIGHT;
        self.beyond = is_tight.then(|| self.rank(&self.best).0);
        for _ in 0..ROUNDS {
            let cycles = self.best.cycles();
            self.round();
            if self.best.cycles() == cycles || self.ended() {
                break;
            }
        }
        if self.problem.estimate.reorders {
            self.reorder();
        }
        self.join_inputs();
        if self.standing() != standing && self.rank(&self.best).0 > self.rank(&before).0 {
            self.best = before;
        }
        self.spread_out();
    }

    /// Spreads variables evenly, those with most bytes on a tile first, until everything fits.
    fn spread_out(&mut self) {
        let problem = self.problem;
        let mut beyond = self.rank(&self.best).0;
        if beyond == 0 {
            return;
        }
        let rule = VarRule::Spread { least: linear::BYTES_PER_TILE, tiles: self.best.reach };
        let mut vars: Vec<(u64, VarId)> = (problem.open_vars.iter())
            .filter(|&&id| self.best.vars[id].is_some_and(|now| now != rule))
            .map(|&id| (self.best.bytes_of(problem, id), id))
            .collect();
        vars.sort_by_key(|&(bytes, id)| (std::cmp::Reverse(bytes), id));
        for (_, id) in vars.into_iter().take(SPREAD_OUT) {
            let Some(undo) = self.best.change_var(problem, id, rule) else { continue };
            let now = self.rank(&self.best).0;
            if now >= beyond {
                self.best.undo(undo);
                continue;
            }
            beyond = now;
            if beyond == 0 {
                return;
            }
        }
    }

    fn round(&mut self) {
        let problem = self.problem;
        let mut items: Vec<usize> = (0..problem.items.len()).collect();
        items.sort_by_key(|&k| std::cmp::Reverse(self.best.costs[k].cycles));
        let total = self.best.cycles();
        items.retain(|&k| self.best.costs[k].cycles >= total / SMALL);
        let mut seen: Vec<VarId> = vec![];
        for k in items {
            if let StepAccess::Set(set, _) = problem.items[k].what {
                problem.groups_of[set].iter().for_each(|&group| self.group_rules(group));
            }
            for &var in problem.open_vars.iter().filter(|&&v| problem.users[v].items.contains(&k)) {
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

    /// Changes the orders of the vertices of compute sets, beginning with those of most exchange code: where a tile has
    /// neighbours along other axes, the pieces that it sends are longer.
    fn reorder(&mut self) {
        let problem = self.problem;
        self.left = self.left.max(REORDERED * BUDGET);
        let mut groups: Vec<GroupId> = problem.groups.keys().collect();
        groups.sort_by_key(|&id| std::cmp::Reverse(self.best.costs[problem.groups[id].item].code));
        for id in groups {
            let Some(GroupRule::Spread { order: now, first, tiles }) = self.best.groups[id] else { continue };
            for &order in orders(&problem.groups[id].sites).iter().filter(|&&order| order != now) {
                if self.ended() {
                    return;
                }
                let before = self.standing();
                let undo = self.best.change_group(problem, id, GroupRule::Spread { order, first, tiles });
                self.keep_if_better(before, Some(undo));
            }
        }
    }

    /// Moves the vertices of compute sets to what they read, beginning with the steps that take longest.
    fn join_inputs(&mut self) {
        let problem = self.problem;
        self.left = self.left.max(2 * BUDGET);
        let least = self.best.cycles() / JOINED;
        let cycles = |search: &Self, id: GroupId| search.best.costs[problem.groups[id].item].cycles;
        let mut groups: Vec<GroupId> = problem.groups.keys().filter(|&id| cycles(self, id) > least).collect();
        groups.sort_by_key(|&id| std::cmp::Reverse(cycles(self, id)));
        let mut in_vain = 0;
        for id in groups {
            for field in problem.groups[id].inputs(problem) {
                let rule = GroupRule::With { field };
                if self.ended() || in_vain == IN_VAIN {
                    return;
                }
                if self.best.is_together(problem, id, field) && self.best.would_move(problem, id, rule) {
                    let before = self.standing();
                    let undo = self.best.change_group(problem, id, rule);
                    self.keep_if_better(before, Some(undo));
                    in_vain = if self.standing() < before { 0 } else { in_vain + 1 };
                }
            }
        }
    }

    /// Keeps a change if the candidate gets better.
    fn keep_if_better(&mut self, before: (u64, u128, u64), undo: Option<Undo>) {
        let Some(undo) = undo else { return };
        // A change costs at least the search for the affected items.
        let listed = (self.problem.open_vars.len() + self.problem.items.len()) as u64 / 16;
        self.left = self.left.saturating_sub(std::mem::take(&mut self.best.work) + listed);
        if self.standing() >= before {
            return self.best.undo(undo);
        }
        if let Some(beyond) = self.beyond {
            let now = self.rank(&self.best).0;
            if now > beyond {
                return self.best.undo(undo);
            }
            self.beyond = Some(now);
        }
    }

    fn group_rules(&mut self, id: GroupId) {
        let Some(GroupRule::Spread { first, tiles: now, .. }) = self.best.groups[id] else { return };
        let sites = &self.problem.groups[id].sites;
        let mut sizes = self.sizes_for(sites.count()).to_vec();
        let all = self.best.reach - (first - self.problem.region.first);
        sizes.extend([now, now / 2, now.saturating_mul(2), 1, all]);
        sizes.retain(|t| (1..=all).contains(t));
        sizes.sort_unstable();
        sizes.dedup();
        let orders = orders(sites);
        let rule = |tiles: u32| orders.iter().map(move |&order| GroupRule::Spread { order, first, tiles });
        for rule in sizes.into_iter().flat_map(rule) {
            if self.ended() {
                return;
            }
            if self.best.groups[id] != Some(rule) {
                let before = self.standing();
                let undo = self.best.change_group(self.problem, id, rule);
                self.keep_if_better(before, Some(undo));
            }
        }
    }

    fn var_rules(&mut self, id: VarId) {
        let (var, users) = (&self.problem.graph.vars[id], &self.problem.users[id]);
        // Vertices beside a variable would not see that it moves.
        if self.best.vars[id].is_none() || self.best.groups.values().any(|g| *g == Some(GroupRule::Beside)) {
            return;
        }
        let all = self.best.reach;
        let mut rules = vec![VarRule::Follow { first: None }];
        // Owners with many runs cost more to find than everything else.
        let short = self.problem.owners[id].as_ref().is_some_and(|o| !o.is_long());
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
                let undo = self.best.change_var(self.problem, id, rule);
                match undo {
                    // No tile has room for so much of it.
                    Some(undo) if var.bytes() > self.room() && self.best.bytes_of(self.problem, id) > self.room() => {
                        self.best.undo(undo);
                    }
                    undo => self.keep_if_better(before, undo),
                }
            }
        }
    }
}

/// Returns the orders in which some vertices can be spread.
fn orders(sites: &OpenVertices) -> &'static [VertexOrder] {
    match (sites.has_blocks(), sites.has_grid()) {
        (_, true) => &[VertexOrder::Rows, VertexOrder::Blocks, VertexOrder::Grid],
        (true, false) => &[VertexOrder::Rows, VertexOrder::Blocks],
        _ => &[VertexOrder::Rows],
    }
}
