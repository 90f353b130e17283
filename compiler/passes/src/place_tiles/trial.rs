//! One placement among several: the rules that made it, and what it takes.
//!
//! Invariant: a trial is a function of its rules; a change that is taken back leaves what was there before.

use super::accesses::What;
use super::bench::Bench;
use super::estimate::{self, Estimate};
use super::homes::{Even, Home};
use super::linear;
use super::owners::{Owner, Owners};
use super::sample::{Sample, Tiles};
use super::spread::Order;
use cranelift_entity::SecondaryMap;
use girder_ir::graph::Graph;
use girder_ir::ids::{ComputeSetId, FamilyId, VarId};
use girder_ir::placement::{Mapping, Placement};
use girder_source::par_map;
use std::sync::Arc;

/// Pieces of a run that are told apart; a run in more pieces is looked at in so many places.
const PIECES: usize = 24;

/// Where the open vertices of a compute set go.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum SetRule {
    /// Where their first output is, which follows no vertex.
    Beside,
    /// Over neighbouring tiles.
    Spread { order: Order, first: u32, tiles: u32 },
}

/// Where the open elements of a variable go.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum VarRule {
    /// Evenly over the first tiles, at least so many bytes on each.
    Spread { least: u64, tiles: u32 },
    /// To the vertices that use it; the claim of one field may go before all others.
    Follow { first: Option<usize> },
    /// To the other ends of a copy.
    Partner { copy: usize },
}

/// Neighbouring elements on one tile.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Run {
    pub start: u64,
    pub end: u64,
    pub tile: u32,
}

/// See the module.
#[derive(Clone, Default)]
pub(super) struct Trial<'a> {
    pub sets: SecondaryMap<ComputeSetId, Option<SetRule>>,
    pub vars: SecondaryMap<VarId, Option<VarRule>>,
    pub homes: SecondaryMap<VarId, Home>,
    tiles: SecondaryMap<FamilyId, Option<Arc<[u32]>>>,
    graph: Option<&'a Graph>,
    /// What is open lies on the first so many tiles.
    pub reach: u32,
    samples: Vec<Option<Arc<Sample>>>,
    /// Weighted cycles by item, and bytes of its buffers.
    pub times: Vec<(u128, u64)>,
    /// Runs that were looked at to make it.
    pub work: u64,
}

/// What a change has replaced.
pub(super) struct Undo {
    tiles: Vec<(FamilyId, Option<Arc<[u32]>>)>,
    set: Option<(ComputeSetId, Option<SetRule>)>,
    samples: Vec<(usize, Option<Arc<Sample>>)>,
    var: Option<(VarId, Option<VarRule>, Home)>,
    times: Vec<(usize, (u128, u64))>,
}

impl<'a> Trial<'a> {
    /// What the text says, and `placement` where it is silent.
    pub(super) fn start(bench: &Bench<'a>, placement: &Placement, reach: u32) -> Trial<'a> {
        let items = bench.items.len();
        let mut trial = Trial { times: vec![(0, 0); items], samples: vec![None; items], reach, ..Trial::default() };
        trial.graph = Some(bench.graph);
        for item in &bench.items {
            item.vars().into_iter().for_each(|id| {
                let var = &bench.graph.vars[id];
                let mapping = placement.vars[id].as_ref().unwrap_or(&Mapping::One(0));
                if matches!(trial.homes[id], Home::Nowhere) {
                    trial.homes[id] = Home::of(var, mapping);
                }
            });
        }
        for &set in &bench.open_sets {
            for &id in &bench.graph.sets[set].families {
                let family = &bench.graph.families[id];
                if let (None, Some(map)) = (&family.tile, &placement.families[id]) {
                    trial.tiles[id] = Some(map.iter(&family.domain).collect::<Vec<_>>().into());
                }
            }
        }
        for (k, sample) in par_map(items, |k| trial.sampled(bench, k)).into_iter().enumerate() {
            trial.look_at(k, sample);
        }
        trial.measure_all(bench);
        trial
    }

    pub(super) fn table(&self, family: FamilyId) -> Option<&[u32]> {
        self.tiles[family].as_deref()
    }

    /// About how many tiles hold a variable.
    pub(super) fn tiles_of(&self, bench: &Bench, var: VarId) -> u32 {
        match &self.homes[var] {
            Home::Nowhere => 1,
            Home::Even(even) => even.tiles,
            Home::Runs(_, tiles) => *tiles,
            Home::Owned(owners, even) if owners.families().is_empty() => even.tiles,
            Home::Owned(owners, _) => {
                let item = |f: &FamilyId| bench.item_of[bench.graph.families[*f].set];
                let used = |f: &FamilyId| item(f).and_then(|k| self.samples[k].as_ref()).map_or(1, |s| s.used);
                owners.families().iter().map(used).fold(1, u32::max)
            }
        }
    }

    /// The tile of a vertex.
    fn vertex(&self, family: FamilyId, instance: u32) -> u32 {
        match (&self.tiles[family], self.graph) {
            (Some(tiles), _) => tiles[instance as usize],
            (None, Some(graph)) => {
                let family = &graph.families[family];
                family.tile.as_ref().map_or(0, |t| t.at(&family.domain, u64::from(instance)))
            }
            (None, None) => 0,
        }
    }

    /// The homes of neighbouring elements, neighbours on one tile together. What lies in many pieces is looked at in some
    /// places, each of which stands for the elements around it; `false` then.
    pub(super) fn runs(&self, var: VarId, start: u64, end: u64, out: &mut Vec<Run>) -> bool {
        out.clear();
        if self.each_run(var, start, end, &mut |run| push(out, run, PIECES)) {
            return true;
        }
        out.clear();
        let (len, places) = (end - start, PIECES as u64);
        for k in 0..places {
            let (from, to) = (start + k * len / places, start + (k + 1) * len / places);
            if from < to {
                let middle = (from + to) / 2;
                self.each_run(var, middle, middle + 1, &mut |run| {
                    push(out, Run { start: from, end: to, tile: run.tile }, usize::MAX)
                });
            }
        }
        false
    }

    /// As [`runs`](Trial::runs), to the end, however many there are.
    pub(super) fn all_runs(&self, var: VarId, len: u64) -> Vec<Run> {
        let mut runs = vec![];
        self.each_run(var, 0, len, &mut |run| push(&mut runs, run, usize::MAX));
        runs
    }

    /// `false` if `each` has said that it is enough.
    fn each_run(&self, var: VarId, start: u64, end: u64, each: &mut dyn FnMut(Run) -> bool) -> bool {
        match &self.homes[var] {
            Home::Nowhere => each(Run { start, end, tile: 0 }),
            Home::Even(even) => even.each_run(start, end, each),
            Home::Runs(runs, _) => {
                let first = runs.partition_point(|r| r.end <= start);
                let inside = runs[first..].iter().take_while(|r| r.start < end);
                inside.map(|r| Run { start: r.start.max(start), end: r.end.min(end), tile: r.tile }).all(each)
            }
            Home::Owned(owners, even) => {
                let mut on = true;
                owners.walk(start, end, |start, end, owner| {
                    on = match owner {
                        Owner::Tile(tile) => each(Run { start, end, tile }),
                        Owner::Vertex(family, i) => each(Run { start, end, tile: self.vertex(family, i) }),
                        Owner::Even => even.each_run(start, end, each),
                        Owner::Element(other, first) => {
                            let back = |at: u64| at - first + start;
                            self.each_run(other, first, first + (end - start), &mut |r| {
                                each(Run { start: back(r.start), end: back(r.end), tile: r.tile })
                            })
                        }
                    };
                    on
                });
                on
            }
        }
    }

    pub(super) fn cycles(&self) -> u128 {
        self.times.iter().map(|t| t.0).sum()
    }

    /// Tiles that are used, over all compute sets.
    pub(super) fn used(&self) -> u64 {
        self.samples.iter().flatten().map(|s| u64::from(s.used)).sum()
    }

    /// Tiles of the compute set that uses most.
    pub(super) fn used_tiles(&self) -> u32 {
        self.samples.iter().flatten().map(|s| s.used).max().unwrap_or(0)
    }

    /// Bytes of all variables and of the greatest buffers on the fullest tile, as if all were alive together.
    pub(super) fn bytes(&self, bench: &Bench, placement: &Placement) -> u64 {
        let mut tiles = vec![0u64; bench.machine.tiles() as usize];
        let mut everywhere = 0;
        for (id, var) in &bench.graph.vars {
            let size = u64::from(var.ty.bytes());
            match &self.homes[id] {
                Home::Owned(owners, _) if owners.is_long() && owners.is_closed() => {
                    everywhere += var.bytes() / u64::from(self.tiles_of(bench, id));
                }
                Home::Nowhere => {
                    let mapping = placement.vars[id].as_ref();
                    mapping.into_iter().flat_map(|m| m.runs(var.len())).for_each(|(start, end, tile)| {
                        tiles[tile as usize] += (end - start) * size;
                    });
                }
                _ => {
                    self.each_run(id, 0, var.len(), &mut |run| {
                        tiles[run.tile as usize] += (run.end - run.start) * size;
                        true
                    });
                }
            }
        }
        let buffers = self.times.iter().map(|t| t.1).max().unwrap_or(0);
        everywhere + tiles.into_iter().max().unwrap_or(0) + buffers
    }

    /// Gives the open vertices of a compute set other tiles, without measuring anything.
    pub(super) fn place_set(&mut self, bench: &Bench, set: ComputeSetId, rule: SetRule) {
        let (Some(item), Some(sites)) = (bench.item_of[set], &bench.sites[set]) else { return };
        match rule {
            SetRule::Spread { order, first, tiles } => {
                sites
                    .spread(order, first, tiles)
                    .into_iter()
                    .for_each(|(family, tiles)| self.tiles[family] = Some(tiles));
            }
            SetRule::Beside => {
                for vertices in bench.families(item).iter().filter(|v| v.family.tile.is_none()) {
                    let part = linear::first_output(bench.graph, vertices.family);
                    let mut tile = 0;
                    let tiles = match part {
                        None => vec![0; vertices.family.domain.count() as usize],
                        Some(part) => {
                            let firsts = part.offset.values(&vertices.family.domain);
                            let home = |at: i64| {
                                self.each_run(part.var, at as u64, at as u64 + 1, &mut |run| {
                                    tile = run.tile;
                                    true
                                });
                                tile
                            };
                            firsts.map(home).collect()
                        }
                    };
                    self.tiles[vertices.id] = Some(tiles.into());
                }
            }
        }
        self.sets[set] = Some(rule);
        self.look_at(item, self.sampled(bench, item));
    }

    /// Gives the open elements of a variable another home, without measuring anything. `false` if the rule does not apply.
    pub(super) fn place_var(&mut self, bench: &Bench, id: VarId, rule: VarRule) -> bool {
        let (var, users) = (&bench.graph.vars[id], &bench.users[id]);
        let all = self.reach;
        let even = |least, tiles| Even::of(var, 0, linear::tiles_for(var.len(), var.ty.bytes(), least, tiles));
        let rest = even(linear::BYTES_PER_TILE, all);
        let owners = match rule {
            VarRule::Spread { least, tiles } if super::given::mapping(var).is_none() => {
                self.homes[id] = Home::Even(even(least, tiles));
                self.vars[id] = Some(rule);
                return true;
            }
            // Of what the text places in part the rest is spread.
            VarRule::Spread { .. } => Arc::new(Owners::by_copy(id, var, &[])),
            VarRule::Follow { first: None } => match &bench.owners[id] {
                Some(owners) => owners.clone(),
                None => return false,
            },
            VarRule::Follow { first } => Arc::new(Owners::by_claims(id, var, first, users, &bench.items)),
            VarRule::Partner { copy } => {
                let Some(What::Copy(pieces)) = users.copies.get(copy).map(|&i| &bench.items[i].what) else {
                    return false;
                };
                let partner = |v: VarId| v != id && matches!(self.vars[v], Some(VarRule::Partner { .. }));
                // Of two that follow each other neither would have a home; and a copy of samples does not tell all.
                if pieces.iter().any(|p| partner(p.to.0) || partner(p.from.0) || p.each > 1.0) {
                    return false;
                }
                Arc::new(Owners::by_copy(id, var, pieces))
            }
        };
        let even = if let VarRule::Spread { least, tiles } = rule { even(least, tiles) } else { rest };
        self.homes[id] = Home::Owned(owners, even);
        self.vars[id] = Some(rule);
        true
    }

    /// Whether a variable follows a vertex of a compute set.
    fn follows(&self, bench: &Bench, var: VarId, set: ComputeSetId) -> bool {
        match &self.homes[var] {
            Home::Owned(owners, _) => owners.families().iter().any(|f| bench.graph.families[*f].set == set),
            _ => false,
        }
    }

    /// The items that are not what they were when a compute set or a variable moves.
    fn moved(&self, bench: &Bench, set: Option<ComputeSetId>, var: Option<VarId>) -> Vec<usize> {
        let follows = |v: &VarId| set.is_some_and(|s| self.follows(bench, *v, s)) || var == Some(*v);
        let vars: Vec<VarId> = bench.open_vars.iter().copied().filter(follows).collect();
        let mut items: Vec<usize> = set.and_then(|s| bench.item_of[s]).into_iter().collect();
        items.extend(vars.iter().flat_map(|&v| bench.users[v].items.iter().copied()));
        for &id in &bench.open_vars {
            if let Some(VarRule::Partner { copy }) = self.vars[id]
                && vars.iter().any(|v| bench.users[*v].items.contains(&bench.users[id].copies[copy]))
            {
                items.extend(&bench.users[id].items);
            }
        }
        items.sort_unstable();
        items.dedup();
        items
    }

    /// Moves a compute set, or a variable, and measures what that changes.
    pub(super) fn change_set(&mut self, bench: &Bench, set: ComputeSetId, rule: SetRule) -> Option<Undo> {
        let item = bench.item_of[set]?;
        let families = bench.families(item).iter().filter(|v| v.family.tile.is_none());
        let tiles = families.map(|v| (v.id, self.tiles[v.id].clone())).collect();
        let items = self.moved(bench, Some(set), None);
        let times = items.iter().map(|&k| (k, self.times[k])).collect();
        let undo = Undo {
            tiles,
            set: Some((set, self.sets[set])),
            samples: vec![(item, self.samples[item].clone())],
            var: None,
            times,
        };
        self.place_set(bench, set, rule);
        self.measure(bench, items);
        Some(undo)
    }

    pub(super) fn change_var(&mut self, bench: &Bench, var: VarId, rule: VarRule) -> Option<Undo> {
        let items = self.moved(bench, None, Some(var));
        let times = items.iter().map(|&k| (k, self.times[k])).collect();
        let undo = Undo {
            tiles: vec![],
            set: None,
            samples: vec![],
            var: Some((var, self.vars[var], self.homes[var].clone())),
            times,
        };
        if !self.place_var(bench, var, rule) {
            return None;
        }
        self.measure(bench, items);
        Some(undo)
    }

    /// Takes a change back.
    pub(super) fn undo(&mut self, undo: Undo) {
        undo.tiles.into_iter().for_each(|(family, tiles)| self.tiles[family] = tiles);
        undo.samples.into_iter().for_each(|(item, sample)| self.samples[item] = sample);
        if let Some((set, rule)) = undo.set {
            self.sets[set] = rule;
        }
        if let Some((var, rule, home)) = undo.var {
            self.vars[var] = rule;
            self.homes[var] = home;
        }
        undo.times.into_iter().for_each(|(k, time)| self.times[k] = time);
    }

    /// The tiles of a compute set that are looked at.
    fn sampled(&self, bench: &Bench, item: usize) -> Option<Sample> {
        let families = bench.families(item);
        let each = families.iter().map(|v| match (&v.family.tile, &self.tiles[v.id]) {
            (Some(map), _) => Tiles::Map(map),
            (None, tiles) => Tiles::Table(tiles.as_deref().unwrap_or(&[])),
        });
        let tiles: Vec<Tiles> = each.collect();
        (!families.is_empty()).then(|| Sample::of(families, &tiles, &bench.costs))
    }

    fn look_at(&mut self, item: usize, sample: Option<Sample>) {
        let Some(sample) = sample else { return };
        self.work += sample.work;
        self.samples[item] = Some(Arc::new(sample));
    }

    /// Estimates items anew.
    fn measure(&mut self, bench: &Bench, items: impl IntoIterator<Item = usize>) {
        for k in items {
            let estimate = estimate::of(bench, &bench.items[k], self, self.samples[k].as_deref());
            self.found(bench, k, estimate);
        }
    }

    /// As [`measure`](Trial::measure), of all items, on the host's threads.
    pub(super) fn measure_all(&mut self, bench: &Bench) {
        let of = |k: usize| estimate::of(bench, &bench.items[k], self, self.samples[k].as_deref());
        for (k, estimate) in par_map(bench.items.len(), of).into_iter().enumerate() {
            self.found(bench, k, estimate);
        }
    }

    fn found(&mut self, bench: &Bench, k: usize, estimate: Estimate) {
        self.work += 1 + estimate.work;
        self.times[k] = (u128::from(estimate.cycles) * u128::from(bench.items[k].weight), estimate.buffers);
    }
}

/// Adds a run to others; `false` if there are too many.
fn push(out: &mut Vec<Run>, run: Run, most: usize) -> bool {
    match out.last_mut().filter(|last| last.tile == run.tile && last.end == run.start) {
        Some(last) => last.end = run.end,
        None => out.push(run),
    }
    out.len() <= most
}
