//! A candidate: the rules that decide a placement, and the tiles that follow from them.
//!
//! Invariant: a candidate is a function of its rules and of their order.

use super::accesses::{FamilyAccess, PartAccess, StepAccess};
use super::homes::{ElementRun, Even, Home};
use super::linear;
use super::moments::{self, AtMoments, MOMENTS};
use super::owners::{Owner, Owners};
use super::problem::{GroupId, PlacementProblem, VertexGroup};
use super::regions;
use super::sample::{Sample, Tiles};
use super::spread::{SpreadTiles, VertexOrder};
use crate::sizes::state_bytes;
use cranelift_entity::SecondaryMap;
use girder_ir::family::Domain;
use girder_ir::graph::Graph;
use girder_ir::ids::{FamilyId, VarId};
use girder_ir::placement::{Mapping, Placement};
use girder_source::par_map;
use std::sync::Arc;

/// The number of tiles at which the lookup of a run stops being exact. A run over more tiles is sampled at this many
/// points.
const PIECES: usize = 24;

/// The number of vertices of a family that show where a field's elements are.
const SHOWN: u64 = 8;

/// A rule for the open vertices of an operation.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum GroupRule {
    /// Each vertex goes to the tile of the first element of its first output. That output follows no vertex.
    Beside,
    /// Each vertex goes to the tile that held the first element of an input when the rule was applied.
    With { field: usize },
    /// The vertices are spread over neighbouring tiles.
    Spread { order: VertexOrder, first: u32, tiles: u32 },
}

/// A rule for the open elements of a variable.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum VarRule {
    /// The elements are spread evenly over the first tiles, with at least `least` bytes on each.
    Spread { least: u64, tiles: u32 },
    /// The elements go with the vertices that use them. The claim of field `first` wins over all others.
    Follow { first: Option<usize> },
    /// The elements go with the elements at the other end of a copy.
    Partner { copy: usize },
}

/// The estimated cost of an item.
#[derive(Clone, Copy, Default)]
pub(super) struct ItemCost {
    /// Cycles of all executions.
    pub cycles: u128,
    /// The bytes of landing buffers on the tile that has most.
    pub buffers: u64,
    /// The bytes of exchange code on the tile that has most.
    pub code: u64,
}

/// A placement during the search: its rules, and the tiles that follow from them.
#[derive(Clone, Default)]
pub(super) struct Candidate<'a> {
    pub groups: SecondaryMap<GroupId, Option<GroupRule>>,
    pub vars: SecondaryMap<VarId, Option<VarRule>>,
    pub homes: SecondaryMap<VarId, Home>,
    pub tiles: SecondaryMap<FamilyId, Option<Arc<[u32]>>>,
    /// The graph, and the tiles of vertices that are not open.
    fixed: Option<(&'a Graph, &'a Placement)>,
    /// The number of tiles, from the first of the region on, that open elements and vertices may use.
    pub reach: u32,
    pub samples: Vec<Option<Arc<Sample>>>,
    pub costs: Vec<ItemCost>,
    /// The number of runs that were examined.
    pub work: u64,
}

impl<'a> Candidate<'a> {
    /// Creates the candidate that follows the text, and `placement` where the text is silent.
    pub(super) fn start(problem: &PlacementProblem<'a>, reach: u32) -> Candidate<'a> {
        let (items, placement) = (problem.items.len(), problem.placement);
        let mut candidate = Candidate {
            costs: vec![ItemCost::default(); items],
            samples: vec![None; items],
            reach,
            ..Candidate::default()
        };
        candidate.fixed = Some((problem.graph, placement));
        for item in &problem.items {
            item.vars().into_iter().for_each(|id| {
                let var = &problem.graph.vars[id];
                let mapping = placement.vars[id].as_ref().unwrap_or(&Mapping::One(0));
                if matches!(candidate.homes[id], Home::Nowhere) {
                    candidate.homes[id] = Home::of(var, mapping);
                }
            });
        }
        for &set in &problem.open_sets {
            for &id in &problem.graph.sets[set].families {
                let family = &problem.graph.families[id];
                if let (true, Some(map)) = (problem.is_open(id), &placement.families[id]) {
                    candidate.tiles[id] = Some(map.iter(&family.domain).collect::<Vec<_>>().into());
                }
            }
        }
        for (k, sample) in par_map(items, |k| candidate.sampled(problem, k)).into_iter().enumerate() {
            candidate.look_at(k, sample);
        }
        candidate
    }

    pub(super) fn table(&self, family: FamilyId) -> Option<&[u32]> {
        self.tiles[family].as_deref()
    }

    /// Returns about how many tiles hold a variable.
    pub(super) fn tiles_of(&self, problem: &PlacementProblem, var: VarId) -> u32 {
        match &self.homes[var] {
            Home::Nowhere => 1,
            Home::Even(even) => even.tiles,
            Home::Runs(_, tiles) => *tiles,
            Home::Owned(owners, _) if !owners.spread().is_empty() => {
                owners.spread().iter().map(|even| even.tiles).sum()
            }
            Home::Owned(owners, even) if owners.families().is_empty() => even.tiles,
            Home::Owned(owners, _) => {
                let item = |f: &FamilyId| problem.item_of[problem.graph.families[*f].set];
                let used = |f: &FamilyId| item(f).and_then(|k| self.samples[k].as_ref()).map_or(1, |s| s.used);
                owners.families().iter().map(used).fold(1, u32::max)
            }
        }
    }

    /// Returns the tile of a vertex.
    fn vertex(&self, family: FamilyId, instance: u32) -> u32 {
        match (&self.tiles[family], self.fixed) {
            (Some(tiles), _) => tiles[instance as usize],
            (None, Some((graph, placement))) => {
                let domain = &graph.families[family].domain;
                placement.families[family].as_ref().map_or(0, |t| t.at(domain, u64::from(instance)))
            }
            (None, None) => 0,
        }
    }

    /// Lists the tiles of a range of elements; neighbours on one tile are one run. A list that would become too long is
    /// sampled instead: each entry then stands for the elements around it, and the result is `false`.
    pub(super) fn runs(&self, var: VarId, start: u64, end: u64, out: &mut Vec<ElementRun>) -> bool {
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
                    push(out, ElementRun { start: from, end: to, tile: run.tile }, usize::MAX)
                });
            }
        }
        false
    }

    /// Returns all runs of a variable, however many there are.
    pub(super) fn all_runs(&self, var: VarId, len: u64) -> Vec<ElementRun> {
        let mut runs = vec![];
        self.each_run(var, 0, len, &mut |run| push(&mut runs, run, usize::MAX));
        runs
    }

    /// Calls `each` for the runs of `start..end`. Returns `false` if `each` stopped it.
    fn each_run(&self, var: VarId, start: u64, end: u64, each: &mut dyn FnMut(ElementRun) -> bool) -> bool {
        match &self.homes[var] {
            Home::Nowhere => each(ElementRun { start, end, tile: 0 }),
            Home::Even(even) => even.each_run(start, end, each),
            Home::Runs(runs, _) => {
                let first = runs.partition_point(|r| r.end <= start);
                let inside = runs[first..].iter().take_while(|r| r.start < end);
                inside.map(|r| ElementRun { start: r.start.max(start), end: r.end.min(end), tile: r.tile }).all(each)
            }
            Home::Owned(owners, even) => {
                let mut on = true;
                owners.each_owner(start, end, |start, end, owner| {
                    on = match owner {
                        Owner::Tile(tile) => each(ElementRun { start, end, tile }),
                        Owner::Vertex(family, i) => each(ElementRun { start, end, tile: self.vertex(family, i) }),
                        Owner::Even => even.each_run(start, end, each),
                        Owner::Spread(range, first) => {
                            let first = u64::from(first);
                            owners.spread()[range as usize].each_run(first, first + (end - start), &mut |r| {
                                each(ElementRun {
                                    start: r.start - first + start,
                                    end: r.end - first + start,
                                    tile: r.tile,
                                })
                            })
                        }
                        Owner::Element(other, first) => {
                            let first = u64::from(first);
                            let back = |at: u64| at - first + start;
                            self.each_run(other, first, first + (end - start), &mut |r| {
                                each(ElementRun { start: back(r.start), end: back(r.end), tile: r.tile })
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
        self.costs.iter().map(|c| c.cycles).sum()
    }

    /// Returns the number of used tiles, summed over all compute sets.
    pub(super) fn used(&self) -> u64 {
        self.samples.iter().flatten().map(|s| u64::from(s.used)).sum()
    }

    /// Returns the number of tiles of the compute set that uses most.
    pub(super) fn used_tiles(&self) -> u32 {
        self.samples.iter().flatten().map(|s| s.used).max().unwrap_or(0)
    }

    /// Returns the bytes of the largest landing buffers and of the exchange code, as if one tile had the most of each.
    pub(super) fn buffers_and_code(&self) -> u64 {
        let buffers = self.costs.iter().map(|c| c.buffers).max().unwrap_or(0);
        buffers + self.exchange_code()
    }

    /// Returns the bytes of exchange code, as if one tile had most of that of each item.
    pub(super) fn exchange_code(&self) -> u64 {
        self.costs.iter().map(|c| c.code).sum()
    }

    /// Returns the bytes of vertices if they count, of the variables that live together, of the largest buffers and of
    /// exchange code, on the fullest tile.
    pub(super) fn bytes(&self, problem: &PlacementProblem) -> u64 {
        let mut tiles = vec![AtMoments::default(); problem.machine.tiles() as usize];
        let mut everywhere = AtMoments::default();
        for id in problem.graph.vars.keys() {
            let live = problem.moments().of_var(id);
            let even =
                self.each_share(problem, id, &mut |tile, bytes| moments::add(&live, bytes, &mut tiles[tile as usize]));
            if let Some(share) = even {
                moments::add(&live, share, &mut everywhere);
            }
        }
        let counted = problem.graph.families.iter().filter(|_| problem.estimate.is_full);
        for (id, family) in counted {
            let bytes = state_bytes(&problem.graph.codelets[family.codelet], family);
            let mut add = |tile: u32| tiles[tile as usize].iter_mut().for_each(|sum| *sum += bytes);
            match (self.table(id), &family.tile, &problem.placement.families[id]) {
                (Some(tiles), ..) => tiles.iter().for_each(|&tile| add(tile)),
                (_, Some(map), _) | (_, _, Some(map)) => map.iter(&family.domain).for_each(add),
                _ => {}
            }
        }
        let most = |moment: usize| everywhere[moment] + tiles.iter().map(|t| t[moment]).max().unwrap_or(0);
        (0..MOMENTS).map(most).max().unwrap_or(0) + self.buffers_and_code()
    }

    /// Returns the bytes of a variable on the tile that has most of it.
    pub(super) fn bytes_of(&self, problem: &PlacementProblem, id: VarId) -> u64 {
        let mut tiles = vec![0u64; problem.machine.tiles() as usize];
        let even = self.each_share(problem, id, &mut |tile, bytes| tiles[tile as usize] += bytes);
        even.unwrap_or_else(|| tiles.into_iter().max().unwrap_or(0))
    }

    /// Calls `each` with the bytes of each run of a variable and its tile. Instead returns the bytes on each tile if
    /// that is known without the runs.
    fn each_share(&self, problem: &PlacementProblem, id: VarId, each: &mut dyn FnMut(u32, u64)) -> Option<u64> {
        let var = &problem.graph.vars[id];
        let size = u64::from(var.ty.bytes());
        match &self.homes[id] {
            Home::Owned(owners, _) if owners.is_long() && owners.is_closed() => {
                return Some(var.bytes() / u64::from(self.tiles_of(problem, id)));
            }
            Home::Nowhere => {
                let mapping = problem.placement.vars[id].as_ref();
                let runs = mapping.into_iter().flat_map(|m| m.runs(var.len()));
                runs.for_each(|(start, end, tile)| each(tile, (end - start) * size));
            }
            _ => {
                self.each_run(id, 0, var.len(), &mut |run| {
                    each(run.tile, (run.end - run.start) * size);
                    true
                });
            }
        }
        None
    }

    /// Applies a rule to a group of vertices without measuring the candidate.
    pub(super) fn place_group(&mut self, problem: &PlacementProblem, id: GroupId, rule: GroupRule) {
        for (family, tiles) in self.ruled(problem, id, rule) {
            self.tiles[family] = Some(tiles);
        }
        self.groups[id] = Some(rule);
        let item = problem.groups[id].item;
        self.look_at(item, self.sampled(problem, item));
    }

    /// Returns whether all elements that a vertex reads through a field are on one tile, for a few vertices of a group.
    pub(super) fn is_together(&self, problem: &PlacementProblem, id: GroupId, field: usize) -> bool {
        let VertexGroup { item, families, .. } = &problem.groups[id];
        let mut runs = vec![];
        let mut on_one_tile = |domain: &Domain, part: &PartAccess, instance: u64| {
            let first = part.first(domain, instance);
            let mut tile = None;
            part.runs.iter().all(|&(start, len)| {
                self.runs(part.var, first + start, first + start + len, &mut runs);
                runs.iter().all(|run| *tile.get_or_insert(run.tile) == run.tile)
            })
        };
        families.iter().map(|&k| &problem.families(*item)[k]).all(|vertices| {
            let (domain, count) = (&vertices.family.domain, vertices.family.domain.count());
            let some = (0..SHOWN).map(|k| k * count / SHOWN);
            vertices.fields[field].parts.iter().all(|part| some.clone().all(|k| on_one_tile(domain, part, k)))
        })
    }

    /// Returns whether a rule would move vertices of a group.
    pub(super) fn would_move(&self, problem: &PlacementProblem, id: GroupId, rule: GroupRule) -> bool {
        self.ruled(problem, id, rule).iter().any(|(family, tiles)| self.table(*family) != Some(tiles))
    }

    /// Returns the tiles that a rule gives to the vertices of a group.
    fn ruled(&self, problem: &PlacementProblem, id: GroupId, rule: GroupRule) -> SpreadTiles {
        let VertexGroup { item, families, sites, .. } = &problem.groups[id];
        let input = match rule {
            GroupRule::Spread { order, first, tiles } => return sites.spread(order, first, tiles),
            GroupRule::Beside => None,
            GroupRule::With { field } => Some(field),
        };
        let families = families.iter().map(|&k| &problem.families(*item)[k]);
        let at = |vertices: &FamilyAccess| {
            let (mut tile, count) = (0, vertices.family.domain.count());
            let part = match input {
                Some(field) => vertices.fields[field].parts.first().map(|p| p.part),
                None => linear::first_output(problem.graph, vertices.family),
            };
            let tiles = match part {
                None => vec![problem.region.first; count as usize],
                Some(part) => {
                    let firsts = part.offset.values(&vertices.family.domain);
                    let home = |(at, k): (i64, u64)| {
                        self.each_run(part.var, at as u64, at as u64 + 1, &mut |run| {
                            tile = run.tile;
                            true
                        });
                        let stays = problem.region.contains(tile);
                        if stays { tile } else { regions::spread_tile(problem.region, k, count) }
                    };
                    firsts.zip(0..).map(home).collect()
                }
            };
            (vertices.id, tiles.into())
        };
        families.map(at).collect()
    }

    /// Applies a rule to a variable without measuring the candidate. Returns `false` if the rule does not apply.
    pub(super) fn place_var(&mut self, problem: &PlacementProblem, id: VarId, rule: VarRule) -> bool {
        let (var, users) = (&problem.graph.vars[id], &problem.users[id]);
        let (first_tile, all) = (problem.region.first, self.reach);
        let even = |least, tiles| Even::of(var, first_tile, linear::tiles_for(var.len(), var.ty.bytes(), least, tiles));
        let rest = even(linear::BYTES_PER_TILE, all);
        let owners = match rule {
            VarRule::Spread { least, tiles } if super::text_placement::mapping(var).is_none() => {
                self.homes[id] = Home::Even(even(least, tiles));
                self.vars[id] = Some(rule);
                return true;
            }
            // The open rest of a partly placed variable is spread.
            VarRule::Spread { .. } => Arc::new(Owners::by_copy(id, &problem.graph.vars, &[])),
            VarRule::Follow { first: None } => match &problem.owners[id] {
                Some(owners) => owners.clone(),
                None => return false,
            },
            VarRule::Follow { first } => Arc::new(Owners::by_claims(id, var, first, users, &problem.items)),
            VarRule::Partner { copy } => {
                let Some(StepAccess::Copy(pieces)) = users.copies.get(copy).map(|&i| &problem.items[i].what) else {
                    return false;
                };
                let partner = |v: VarId| v != id && matches!(self.vars[v], Some(VarRule::Partner { .. }));
                // Two variables that follow each other would have no home, and a sampled copy does not list all
                // elements.
                if pieces.iter().any(|p| partner(p.to.0) || partner(p.from.0) || p.each > 1.0) {
                    return false;
                }
                Arc::new(Owners::by_copy(id, &problem.graph.vars, pieces))
            }
        };
        let even = if let VarRule::Spread { least, tiles } = rule { even(least, tiles) } else { rest };
        self.homes[id] = Home::Owned(owners, even);
        self.vars[id] = Some(rule);
        true
    }

    /// Samples the tiles of a compute set.
    fn sampled(&self, problem: &PlacementProblem, item: usize) -> Option<Sample> {
        let families = problem.families(item);
        let each = families.iter().map(|v| match (&self.tiles[v.id], &problem.placement.families[v.id]) {
            (None, Some(map)) => Tiles::Map(map),
            (tiles, _) => Tiles::Table(tiles.as_deref().unwrap_or(&[])),
        });
        let tiles: Vec<Tiles> = each.collect();
        (!families.is_empty()).then(|| Sample::of(families, &tiles, &problem.costs))
    }

    fn look_at(&mut self, item: usize, sample: Option<Sample>) {
        let Some(sample) = sample else { return };
        self.work += sample.work;
        self.samples[item] = Some(Arc::new(sample));
    }
}

/// Appends a run. Returns `false` if there are too many.
fn push(out: &mut Vec<ElementRun>, run: ElementRun, most: usize) -> bool {
    match out.last_mut().filter(|last| last.tile == run.tile && last.end == run.start) {
        Some(last) => last.end = run.end,
        None => out.push(run),
    }
    out.len() <= most
}
