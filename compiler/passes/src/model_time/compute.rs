//! The time of a compute set's vertices: the queue of each tile, and the part that depends on data.
//!
//! Invariant: a tile's queue is its vertices in the order of families and instances.

use crate::allocate_memory::HeldRequests;
use cranelift_entity::SecondaryMap;
use girder_codelet::cost::{
    Busy, Cost, CostInputs, Deciding, FieldRequest, MemFacts, TileCosts, cost_of, equal_vertices, known_counts,
    tile_cycles,
};
use girder_codelet::sizes::Sizes;
use girder_codelet::vertices::{bind_family, vertex_consts};
use girder_ir::family::{Family, TileMap};
use girder_ir::ids::{ComputeSetId, FamilyId, FieldId, SpecId};
use girder_ir::stage::Allocated;
use girder_ir::timing::ComputeTime;
use girder_ir::trace::{Counts, NoCounts};
use girder_machine::Machine;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::collections::hash_map::Entry;

/// The vertices of all compute sets with their costs.
pub struct Counted<'a> {
    allocated: &'a Allocated,
    machine: &'a Machine,
    costs: TileCosts,
    codelets: SecondaryMap<SpecId, Option<Cost>>,
    /// The constants that decide how often blocks of a codelet run; `None` if it counts no blocks, or if data decide
    /// too.
    deciding: SecondaryMap<SpecId, Option<Deciding>>,
    families: SecondaryMap<FamilyId, Option<FamilyCost>>,
}

/// The costs that all vertices of a family have in common.
#[derive(Clone)]
struct FamilyCost {
    sizes: Sizes,
    facts: MemFacts,
    /// The time of each vertex, if all are equal.
    equal: Option<Busy>,
    /// The counters of a vertex by its deciding constants, if they do not depend on data.
    known: Option<FxHashMap<Vec<u64>, Vec<u64>>>,
}

/// The statements that may be executed to find the counters of all families.
const ALLOWED: u64 = 5_000_000;

impl<'a> Counted<'a> {
    pub(super) fn new(allocated: &'a Allocated, machine: &'a Machine) -> Counted<'a> {
        let costs = TileCosts::from(machine);
        let (mut codelets, mut deciding) = (SecondaryMap::<SpecId, Option<Cost>>::new(), SecondaryMap::new());
        for (id, codelet) in &allocated.codelets {
            // A codelet that cannot be pipelined has been rejected before.
            codelets[id] = cost_of(codelet, &costs).ok();
            let has_points = codelets[id].as_ref().is_some_and(|cost| !cost.points().is_empty());
            deciding[id] = has_points.then(|| Deciding::of(codelet)).flatten();
        }
        let families = SecondaryMap::new();
        let mut counted = Counted { allocated, machine, costs, codelets, deciding, families };
        let mut held = HeldRequests::new(allocated, machine);
        let mut allowed = ALLOWED;
        for (id, family) in &allocated.families {
            counted.families[id] = counted.vertices(family, |requests| held.of(id, requests), &mut allowed);
        }
        counted
    }

    fn vertices(
        &self,
        family: &Family,
        facts: impl FnOnce(&[FieldRequest]) -> MemFacts,
        allowed: &mut u64,
    ) -> Option<FamilyCost> {
        let cost = self.codelets[family.codelet].as_ref()?;
        let sizes = bind_family(self.allocated, family).ok()??;
        let facts = facts(cost.requests());
        let mut vertices = FamilyCost { sizes, facts, equal: None, known: None };
        if !cost.points().is_empty() {
            vertices.known = self.known(family, cost, &vertices.sizes, allowed);
        }
        let counters = match &vertices.known {
            Some(known) if known.len() == 1 => known.values().next().map(Vec::as_slice),
            _ => cost.points().is_empty().then_some(&[][..]),
        };
        if let Some(counters) = counters.filter(|_| !cost.reads_constants()) {
            vertices.equal = Some(self.busy(family, cost, &vertices, 0, counters));
        }
        Some(vertices)
    }

    /// Returns the counters of a family's vertices, by their deciding constants, if they are known.
    fn known(
        &self,
        family: &Family,
        cost: &Cost,
        sizes: &Sizes,
        allowed: &mut u64,
    ) -> Option<FxHashMap<Vec<u64>, Vec<u64>>> {
        let deciding = self.deciding[family.codelet].as_ref()?;
        let codelet = &self.allocated.codelets[family.codelet];
        let mut known = FxHashMap::default();
        for instance in 0..family.domain.count() {
            if let Entry::Vacant(entry) = known.entry(consts_of(deciding, family, instance)) {
                let consts = vertex_consts(codelet, family, instance);
                entry.insert(known_counts(codelet, cost.points(), sizes, &consts, self.costs.workers, allowed)?);
            }
            if deciding.fields().is_empty() {
                break;
            }
        }
        Some(known)
    }

    fn busy(&self, family: &Family, cost: &Cost, vertices: &FamilyCost, instance: u64, counters: &[u64]) -> Busy {
        let consts = vertex_consts(&self.allocated.codelets[family.codelet], family, instance);
        cost.busy(&CostInputs {
            sizes: &vertices.sizes,
            consts: &consts,
            worker: 0,
            workers: self.costs.workers,
            counters,
            facts: &vertices.facts,
        })
    }

    /// Returns whether the time of a set depends on data.
    fn is_counted(&self, set: ComputeSetId) -> bool {
        let depends = |f: &FamilyId| {
            let has_points = |cost: &Cost| !cost.points().is_empty();
            self.codelets[self.allocated.families[*f].codelet].as_ref().is_some_and(has_points)
                && self.families[*f].as_ref().is_some_and(|vertices| vertices.known.is_none())
        };
        self.allocated.sets[set].families.iter().any(depends)
    }

    /// Returns the time of a set's vertices by IPU from counted blocks, or `None` if it does not depend on counts.
    pub fn compute(&self, set: ComputeSetId, counts: &dyn Counts) -> Option<Vec<(u32, ComputeTime)>> {
        self.is_counted(set).then(|| self.by_ipu(set, counts))
    }

    /// Returns the time of a set's vertices by IPU as if every counted block ran as often as it can by
    /// the sizes of its vertex, or zero times if only the data decide.
    pub(super) fn without_counts(&self, set: ComputeSetId) -> Vec<(u32, ComputeTime)> {
        self.by_ipu(set, &NoCounts)
    }

    fn by_ipu(&self, set: ComputeSetId, counts: &dyn Counts) -> Vec<(u32, ComputeTime)> {
        let families: Vec<FamilyId> = self.allocated.sets[set].families.clone();
        let mut ipus: BTreeMap<u32, ComputeTime> = BTreeMap::new();
        let mut add = |tile: u32, cycles: u64| ipus.entry(self.machine.ipu_of(tile)).or_default().add(tile, cycles);
        match self.equal_everywhere(&families) {
            Some((count, busy)) => {
                count.into_iter().for_each(|(tile, n)| add(tile, equal_vertices(n, &busy, &self.costs)));
            }
            None => {
                for (tile, queue) in self.queues(&families) {
                    let vertices = queue.into_iter().map(|(f, i)| self.vertex(families[f as usize], i, counts));
                    add(tile, tile_cycles(vertices, &self.costs));
                }
            }
        }
        ipus.into_iter().collect()
    }

    /// Returns the number of vertices on each tile and their time, or `None` if times differ.
    fn equal_everywhere(&self, families: &[FamilyId]) -> Option<(BTreeMap<u32, u64>, Busy)> {
        let equal = |f: &FamilyId| self.families[*f].as_ref().map(|v| v.equal.clone());
        let mut kinds = families.iter().filter_map(equal);
        let first = kinds.next()??;
        if !kinds.all(|k| k.as_ref() == Some(&first)) {
            return None;
        }
        let mut count: BTreeMap<u32, u64> = BTreeMap::new();
        for &id in families {
            let Some(map) = self.tiles(id) else { continue };
            map.iter(&self.allocated.families[id].domain).for_each(|tile| *count.entry(tile).or_default() += 1);
        }
        Some((count, first))
    }

    /// Returns each tile's vertices, as (position of the family, instance).
    fn queues(&self, families: &[FamilyId]) -> BTreeMap<u32, Vec<(u32, u64)>> {
        let mut queues: BTreeMap<u32, Vec<(u32, u64)>> = BTreeMap::new();
        for (f, &id) in families.iter().enumerate() {
            let Some(map) = self.tiles(id) else { continue };
            for (instance, tile) in map.iter(&self.allocated.families[id].domain).enumerate() {
                queues.entry(tile).or_default().push((f as u32, instance as u64));
            }
        }
        queues
    }

    fn tiles(&self, family: FamilyId) -> Option<&TileMap> {
        self.allocated.placement.families[family].as_ref()
    }

    fn vertex(&self, id: FamilyId, instance: u64, counts: &dyn Counts) -> Busy {
        let family = &self.allocated.families[id];
        let (Some(vertices), Some(cost)) = (&self.families[id], &self.codelets[family.codelet]) else {
            return Busy::One(0);
        };
        if let Some(equal) = &vertices.equal {
            return equal.clone();
        }
        if let Some(known) = &vertices.known
            && let Some(deciding) = &self.deciding[family.codelet]
        {
            let own = known.get(&consts_of(deciding, family, instance)).map_or(&[][..], Vec::as_slice);
            return self.busy(family, cost, vertices, instance, own);
        }
        let workers = if cost.is_multi() { self.costs.workers as usize } else { 1 };
        let row = cost.points().len() * workers;
        let own = counts.of(id).get(instance as usize * row..(instance as usize + 1) * row).unwrap_or(&[]);
        self.busy(family, cost, vertices, instance, own)
    }
}

/// Returns the constants of a vertex that decide about its counters.
fn consts_of(deciding: &Deciding, family: &Family, instance: u64) -> Vec<u64> {
    let of = |field: &FieldId| family.consts.iter().find(|(f, _)| f == field);
    deciding.fields().iter().map(|field| of(field).map_or(0, |(_, value)| value.at(instance).bits)).collect()
}
