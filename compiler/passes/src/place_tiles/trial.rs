//! One placement among several: the rules that made it, and what it takes.
//!
//! Invariant: a trial is a function of its rules; [`Trial::change`] gives what building it anew would give.

use super::accesses::{Accesses, Vertices, What};
use super::claims::{self, Users};
use super::estimate::Estimator;
use super::linear;
use super::spread::{Order, spread};
use cranelift_entity::SecondaryMap;
use girder_ir::graph::Graph;
use girder_ir::ids::{ComputeSetId, FamilyId, VarId};
use girder_ir::placement::{Mapping, Placement};
use girder_ir::plan::Homes;
use girder_source::par_map_slice;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Where the open vertices of a compute set go.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum SetRule {
    /// Where their first output is.
    Beside,
    /// Over the first tiles.
    Spread { order: Order, tiles: u32 },
}

/// Where the open elements of a variable go. `tiles` bounds what is spread.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum VarRule {
    /// Evenly, at least so many bytes on a tile.
    Spread { least: u64, tiles: u32 },
    /// To the vertices that use it; the claim of one field may go before all others.
    Follow { first: Option<u32>, tiles: u32 },
    /// To the other ends of a copy.
    Partner { copy: usize, tiles: u32 },
}

/// A variable with its homes.
struct Home {
    mapping: Mapping,
    homes: Homes,
}

/// See the module.
#[derive(Clone, Default)]
pub(super) struct Trial {
    pub sets: SecondaryMap<ComputeSetId, Option<SetRule>>,
    pub vars: SecondaryMap<VarId, Option<VarRule>>,
    homes: SecondaryMap<VarId, Option<Arc<Home>>>,
    tiles: SecondaryMap<FamilyId, Option<Arc<[u32]>>>,
    /// Weighted cycles by item, and bytes of its buffers.
    times: Vec<(u128, u64)>,
    /// Bytes of variables on the fullest tile.
    full: u64,
    /// Tiles that hold any of a variable.
    used: usize,
    /// Runs that were looked at to make it.
    pub work: u64,
}

/// What all trials of one graph have in common.
pub(super) struct Bench<'a> {
    pub graph: &'a Graph,
    pub accesses: &'a Accesses,
    pub estimator: Estimator<'a>,
    /// By variable.
    pub users: SecondaryMap<VarId, Users>,
    /// Variables and compute sets that the text leaves open.
    pub open_vars: Vec<VarId>,
    pub open_sets: Vec<ComputeSetId>,
    /// The variables of each item.
    pub touched: Vec<Vec<VarId>>,
    /// The item of a compute set.
    pub item_of: SecondaryMap<ComputeSetId, Option<usize>>,
}

impl Bench<'_> {
    pub(super) fn families(&self, set: ComputeSetId) -> &[Vertices] {
        match self.item_of[set].map(|i| &self.accesses.items[i].what) {
            Some(What::Set(_, families)) => families,
            _ => &[],
        }
    }

    fn open_families(&self, set: ComputeSetId) -> Vec<&Vertices> {
        self.families(set).iter().filter(|v| self.graph.families[v.family].tile.is_none()).collect()
    }
}

impl Trial {
    /// What the text says, and `placement` where it is silent.
    pub(super) fn start(bench: &Bench, placement: &Placement) -> Trial {
        let mut trial = Trial { times: vec![(0, 0); bench.accesses.items.len()], ..Trial::default() };
        for (id, var) in &bench.graph.vars {
            let mapping = placement.vars[id].clone().unwrap_or(Mapping::One(0));
            trial.homes[id] = Some(Arc::new(Home { homes: Homes::of(var, &mapping), mapping }));
        }
        for (id, family) in &bench.graph.families {
            let map = placement.families[id].as_ref();
            trial.tiles[id] = map.map(|m| m.iter(&family.domain).collect::<Vec<_>>().into());
        }
        bench.open_sets.iter().for_each(|&s| trial.sets[s] = Some(SetRule::Beside));
        trial.measure(bench, 0..bench.accesses.items.len(), None);
        trial
    }

    pub(super) fn homes(&self, var: VarId) -> &Homes {
        &self.homes[var].as_ref().expect("every variable of a trial is placed").homes
    }

    pub(super) fn mapping(&self, var: VarId) -> &Mapping {
        &self.homes[var].as_ref().expect("every variable of a trial is placed").mapping
    }

    pub(super) fn tiles(&self, family: FamilyId) -> &[u32] {
        self.tiles[family].as_deref().unwrap_or(&[])
    }

    pub(super) fn has_tiles(&self, family: FamilyId) -> bool {
        self.tiles[family].is_some()
    }

    /// Whether the tiles of a family do not depend on where variables are.
    pub(super) fn is_settled(&self, set: ComputeSetId, family: FamilyId) -> bool {
        self.sets[set] != Some(SetRule::Beside) && self.tiles[family].is_some()
    }

    /// All executions of all steps.
    pub(super) fn cycles(&self) -> u128 {
        self.times.iter().map(|t| t.0).sum()
    }

    pub(super) fn time_of(&self, item: usize) -> u128 {
        self.times[item].0
    }

    /// Bytes on the fullest tile, as if all variables were alive together.
    pub(super) fn bytes(&self) -> u64 {
        self.full + self.times.iter().map(|t| t.1).max().unwrap_or(0)
    }

    /// What makes it better than another is less: bytes beyond `room`, cycles, tiles.
    pub(super) fn rank(&self, room: u64) -> (u64, u128, usize) {
        (self.bytes().saturating_sub(room), self.cycles(), self.used)
    }

    /// With other rules for some compute sets and variables. Times that `known` has for the same places are taken from it.
    pub(super) fn change(
        &self,
        bench: &Bench,
        sets: &[(ComputeSetId, SetRule)],
        vars: &[(VarId, VarRule)],
        known: &Trial,
    ) -> Trial {
        let mut trial = self.clone();
        let mut items: BTreeSet<usize> = BTreeSet::new();
        let mut again: BTreeSet<VarId> = vars.iter().map(|v| v.0).collect();
        vars.iter().for_each(|&(v, rule)| trial.vars[v] = Some(rule));
        for &(set, rule) in sets {
            trial.sets[set] = Some(rule);
            let open = bench.open_families(set);
            if let SetRule::Spread { order, tiles } = rule {
                let workers = u64::from(bench.estimator.costs.workers);
                for (family, tiles) in spread(bench.graph, &open, order, tiles, workers) {
                    trial.tiles[family] = Some(tiles);
                }
            }
            items.extend(bench.item_of[set]);
            let follows = |v: &VarId| matches!(trial.vars[*v], Some(VarRule::Follow { .. }));
            let touched = open.iter().flat_map(|f| &f.fields).flat_map(|f| &f.parts).map(|p| p.var);
            again.extend(touched.filter(follows));
        }
        let moved = trial.repaint(bench, again);
        let all = bench.graph.sets.keys().filter(|s| trial.sets[*s] == Some(SetRule::Beside));
        for set in all.collect::<Vec<_>>() {
            let fresh = sets.iter().any(|s| s.0 == set);
            trial.beside(bench, set, |v| fresh || moved.contains(&v), &mut items);
        }
        items.extend(moved.iter().flat_map(|&v| bench.users[v].items.iter().copied()));
        trial.measure(bench, items, Some(known));
        trial
    }

    /// Places variables anew, then those that follow them; what has moved.
    fn repaint(&mut self, bench: &Bench, mut again: BTreeSet<VarId>) -> BTreeSet<VarId> {
        let mut moved = BTreeSet::new();
        for partners in [false, true] {
            for &id in &bench.open_vars {
                let Some(rule) = self.vars[id] else { continue };
                if matches!(rule, VarRule::Partner { .. }) != partners || !again.contains(&id) {
                    continue;
                }
                let (var, users) = (&bench.graph.vars[id], &bench.users[id]);
                let mapping = claims::place(id, var, rule, users, bench.accesses, self);
                if mapping != *self.mapping(id) {
                    self.homes[id] = Some(Arc::new(Home { homes: Homes::of(var, &mapping), mapping }));
                    moved.insert(id);
                }
            }
            if !partners {
                let near = |id: &&VarId| matches!(self.vars[**id], Some(VarRule::Partner { .. }));
                let touches = |id: &VarId| {
                    bench.users[*id].copies.iter().any(|c| moved.iter().any(|m| bench.users[*m].copies.contains(c)))
                };
                again.extend(bench.open_vars.iter().filter(near).filter(|id| touches(id)));
            }
        }
        moved
    }

    /// Moves the vertices of a set to their outputs where those have moved.
    fn beside(&mut self, bench: &Bench, set: ComputeSetId, moved: impl Fn(VarId) -> bool, items: &mut BTreeSet<usize>) {
        for vertices in bench.open_families(set) {
            let family = &bench.graph.families[vertices.family];
            if linear::first_output(bench.graph, family).is_some_and(|p| moved(p.var)) {
                let map = linear::beside(bench.graph, family, |v| Some(self.mapping(v)));
                self.tiles[vertices.family] = Some(map.iter(&family.domain).collect::<Vec<_>>().into());
                items.extend(bench.item_of[set]);
            }
        }
    }

    fn measure(&mut self, bench: &Bench, items: impl IntoIterator<Item = usize>, known: Option<&Trial>) {
        let mut open = vec![];
        for k in items {
            match known.filter(|t| self.is_like(t, bench, k)) {
                Some(known) => self.times[k] = known.times[k],
                None => open.push(k),
            }
        }
        let found = par_map_slice(&open, |&k| bench.estimator.of(&bench.accesses.items[k], self));
        // Sums over all tiles count as a few runs.
        self.work = 1 + u64::from(bench.estimator.machine.tiles() / 64);
        for (k, estimate) in open.into_iter().zip(found) {
            let item = &bench.accesses.items[k];
            self.work += item.work;
            self.times[k] = (u128::from(estimate.cycles) * u128::from(item.weight), estimate.buffers);
        }
        let mut tiles = vec![0u64; bench.estimator.machine.tiles() as usize];
        for home in self.homes.values().flatten() {
            home.homes.blocks.iter().for_each(|&(tile, bytes)| tiles[tile as usize] += u64::from(bytes));
        }
        self.used = tiles.iter().filter(|&&bytes| bytes > 0).count();
        self.full = tiles.into_iter().max().unwrap_or(0);
    }

    /// Whether an item finds everything at the same places.
    fn is_like(&self, other: &Trial, bench: &Bench, item: usize) -> bool {
        let families = match &bench.accesses.items[item].what {
            What::Set(_, families) => families.as_slice(),
            _ => &[],
        };
        families.iter().all(|f| self.tiles(f.family) == other.tiles(f.family))
            && bench.touched[item].iter().all(|&v| self.mapping(v) == other.mapping(v))
    }
}
