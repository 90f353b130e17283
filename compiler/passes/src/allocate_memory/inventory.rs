//! The inventory: the blocks that tiles need, their sizes and live ranges, as one list for each class of equivalent
//! tiles.
//!
//! Live ranges are in points of the liveness order (see [`liveness`](crate::liveness)). A landing buffer is live at the
//! steps that execute its compute set or copy, and so are the local arrays of a compute set's workers. Contents of
//! steps that no program reaches are live at no point.
//!
//! Invariant: the needs of a class ascend by content, and each content occurs once.

use super::classes::{EquivalentTiles, Patterns};
use super::requests::BlockRequest;
use super::spread::{Spread, sweep};
use crate::liveness::Liveness;
use crate::schedule_exchange::ExchangeCode;
use crate::sizes::{Costs, Stacks, bytes_by_tile, code_bytes, stack_bytes, state_bytes};
use cranelift_entity::{EntityRef, SecondaryMap};
use girder_ir::family::{Domain, TileMap};
use girder_ir::graph::Graph;
use girder_ir::ids::{ComputeSetId, CopyId, FamilyId, SpecId, StepId, StreamId, VarId};
use girder_ir::layout::{Content, TileSet};
use girder_ir::placement::Mapping;
use girder_ir::plan::StepPlan;
use girder_ir::program::{Effect, StepKind};
use girder_ir::stage::Planned;
use girder_machine::Machine;
use girder_source::par_map_slice;
use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// A block that a tile needs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Need {
    pub content: Content,
    pub bytes: u64,
    /// The live range; `None` means always.
    pub live: Option<Range<u32>>,
}

/// A class of tiles with equal needs and requests.
#[derive(Clone, Debug)]
pub(super) struct Class {
    pub tiles: TileSet,
    pub needs: Vec<Need>,
    pub requests: Vec<BlockRequest>,
}

/// A block or a request.
#[derive(Clone)]
enum Feature {
    /// A block, and its live range.
    Block(Content, Option<Range<u32>>),
    Request(BlockRequest),
}

/// Returns the classes of all tiles that need anything, ascending by their first tiles.
pub(super) fn of(
    input: &Planned,
    exchange: &ExchangeCode,
    liveness: &Liveness,
    machine: &Machine,
    costs: &Costs,
    requests: &[(BlockRequest, Spread)],
) -> Vec<Class> {
    let mut list = List { input, machine, costs, features: vec![] };
    let instances = list.instances();
    list.code(&instances);
    list.exchange_code(exchange);
    list.states(&instances);
    list.variables(liveness);
    list.steps(liveness, &instances);
    list.packets();
    for (request, spread) in requests {
        list.push(Feature::Request(*request), Arc::new(spread.clone()));
    }
    let (features, spreads): (Vec<Feature>, Vec<Arc<Spread>>) = list.features.into_iter().unzip();
    let patterns = Patterns::of(&spreads);
    let class = |equivalent: &EquivalentTiles| {
        let mut class = Class { tiles: equivalent.tiles.clone(), needs: vec![], requests: vec![] };
        class.needs.reserve_exact(patterns.features(equivalent).count());
        for (k, bytes) in patterns.features(equivalent) {
            match features[k as usize].clone() {
                Feature::Block(content, live) => class.needs.push(Need { content, bytes, live }),
                Feature::Request(request) => class.requests.push(request),
            }
        }
        class.needs.sort_unstable_by_key(|n| n.content);
        class
    };
    par_map_slice(&patterns.classes(), class)
}

/// The number of vertices of each family on each tile.
type Instances = SecondaryMap<FamilyId, Arc<Spread>>;

/// The inventory under construction.
struct List<'a> {
    input: &'a Planned,
    machine: &'a Machine,
    costs: &'a Costs,
    features: Vec<(Feature, Arc<Spread>)>,
}

impl<'a> List<'a> {
    fn add(&mut self, content: Content, live: Option<Range<u32>>, spread: Spread) {
        self.push(Feature::Block(content, live), Arc::new(spread));
    }

    fn push(&mut self, feature: Feature, spread: Arc<Spread>) {
        if !spread.runs().is_empty() {
            self.features.push((feature, spread));
        }
    }

    fn instances(&self) -> Instances {
        let mut known: FxHashMap<(&TileMap, &Domain), Arc<Spread>> = FxHashMap::default();
        let mut instances = SecondaryMap::new();
        for (id, family) in &self.input.families {
            let Some(map) = &self.input.placement.families[id] else { continue };
            let spread = known.entry((map, &family.domain));
            instances[id] = spread.or_insert_with(|| Arc::new(Spread::of_instances(map, &family.domain))).clone();
        }
        instances
    }

    fn code(&mut self, instances: &Instances) {
        let mut by_code: BTreeMap<SpecId, Vec<FamilyId>> = BTreeMap::new();
        self.input.families.iter().for_each(|(id, f)| by_code.entry(f.codelet).or_default().push(id));
        for (spec, families) in by_code {
            let codelet = &self.input.codelets[spec];
            let bytes = code_bytes(codelet, self.costs[spec].as_ref());
            let runs = families.iter().flat_map(|&f| instances[f].runs().iter().map(|(tiles, _)| (tiles.clone(), ())));
            let runs: Vec<_> = runs.collect();
            let count = |n: &mut u64, _: &(), enters: bool| if enters { *n += 1 } else { *n -= 1 };
            let spread = sweep(&runs, 0, count, |&n| if n > 0 { bytes } else { 0 });
            self.add(Content::Code(spec), None, spread);
        }
    }

    fn exchange_code(&mut self, code: &ExchangeCode) {
        let spread = |tiles: &[(u32, u32)]| Spread::of_tiles(tiles.iter().map(|&(t, n)| (t, n as u64)).collect());
        for set in self.input.sets.keys() {
            self.add(Content::SetExchange(set), None, spread(&code.sets[set]));
        }
        for copy in self.input.copies.keys() {
            self.add(Content::CopyExchange(copy), None, spread(&code.copies[copy]));
        }
    }

    fn states(&mut self, instances: &Instances) {
        for (set, s) in &self.input.sets {
            let mut runs = vec![];
            for &id in &s.families {
                let family = &self.input.families[id];
                let each = state_bytes(&self.input.codelets[family.codelet], family);
                runs.extend(instances[id].runs().iter().map(|(tiles, count)| (tiles.clone(), count * each)));
            }
            let add = |sum: &mut u64, bytes: &u64, enters: bool| if enters { *sum += bytes } else { *sum -= bytes };
            let spread = sweep(&runs, 0, add, |&sum| sum);
            self.add(Content::VertexState(set), None, spread);
        }
    }

    fn variables(&mut self, liveness: &Liveness) {
        let carried = self.carried(liveness);
        // Many variables have equal mappings.
        let mut known: IndexSet<(&Mapping, u64, u64), FxBuildHasher> = IndexSet::default();
        let placed =
            self.input.vars.iter().filter_map(|(id, var)| Some((id, var, self.input.placement.vars[id].as_ref()?)));
        let vars = placed.map(|(id, var, mapping)| {
            let live = (!var.is_persistent()).then(|| {
                let own = liveness.ranges[id.index()].clone();
                own.into_iter().chain(carried.get(&id).cloned()).reduce(hull).unwrap_or(0..0)
            });
            let (like, _) = known.insert_full((mapping, var.len(), u64::from(var.ty.bytes())));
            (Feature::Block(Content::Var(id), live), like)
        });
        let vars: Vec<_> = vars.collect();
        let known: Vec<_> = known.into_iter().collect();
        let spread = |&(mapping, len, bytes): &(&Mapping, u64, u64)| {
            Arc::new(Spread::of_mapping(mapping, len, bytes, self.machine.tiles()))
        };
        let spreads = par_map_slice(&known, spread);
        vars.into_iter().for_each(|(feature, like)| self.push(feature, spreads[like].clone()));
    }

    /// Returns, for each variable that a carried copy reads or writes, the live range of the compute sets that carry
    /// the copy.
    fn carried(&self, liveness: &Liveness) -> FxHashMap<VarId, Range<u32>> {
        let steps = steps_by_work(self.input);
        let mut carried: FxHashMap<VarId, Range<u32>> = FxHashMap::default();
        for set in self.input.sets.keys() {
            let Some(copy) = self.input.plan.sets[set].carries else { continue };
            let Some(live) = liveness.hull(steps.sets[set].iter().copied()) else { continue };
            let views = self.input.copies[copy].families.iter().flat_map(|f| [&f.dst, &f.src]);
            for var in views.flat_map(|field| &field.parts).map(|part| part.var) {
                let range = carried.entry(var).or_insert_with(|| live.clone());
                *range = hull(range.clone(), live.clone());
            }
        }
        carried
    }

    /// Adds blocks that are needed only while a step runs.
    fn steps(&mut self, liveness: &Liveness, instances: &Instances) {
        let steps = steps_by_work(self.input);
        let sets: Vec<ComputeSetId> = self.input.sets.keys().collect();
        let needs = par_map_slice(&sets, |&set| {
            (self.stacks(set, instances), buffers(&self.input.plan.sets[set], self.machine))
        });
        for (set, (stack, buffers)) in sets.into_iter().zip(needs) {
            let live = liveness.hull(steps.sets[set].iter().copied()).unwrap_or(0..0);
            self.add(Content::Stack(set), Some(live.clone()), stack);
            for (n, spread) in (0..).zip(buffers) {
                self.add(Content::SetBuffer(set, n), Some(live.clone()), spread);
            }
        }
        for copy in self.input.copies.keys() {
            let live = liveness.hull(steps.copies[copy].iter().copied()).unwrap_or(0..0);
            for (n, spread) in (0..).zip(buffers(&self.input.plan.copies[copy], self.machine)) {
                self.add(Content::CopyBuffer(copy, n), Some(live.clone()), spread);
            }
        }
    }

    /// Adds the packets that streams hold ahead, on the tiles of the largest packet of each stream's steps.
    fn packets(&mut self) {
        let mut streams: BTreeMap<StreamId, BTreeMap<u32, u64>> = BTreeMap::new();
        for step in self.input.steps.values() {
            let StepKind::Effect(Effect::Read { stream, into: view } | Effect::Write { stream, from: view }) =
                &step.kind
            else {
                continue;
            };
            let ahead = u64::from(self.input.streams[*stream].ahead);
            if ahead == 0 {
                continue;
            }
            let of_stream = streams.entry(*stream).or_default();
            for (tile, bytes) in bytes_by_tile(self.input, &self.input.placement, view) {
                let held = of_stream.entry(tile).or_default();
                *held = (*held).max(ahead * bytes);
            }
        }
        for (stream, tiles) in streams {
            self.add(Content::Packets(stream), None, Spread::of_tiles(tiles.into_iter().collect()));
        }
    }

    /// Returns the bytes of local arrays on each tile while a compute set runs.
    fn stacks(&self, set: ComputeSetId, instances: &Instances) -> Spread {
        let mut runs = vec![];
        for &id in &self.input.sets[set].families {
            let codelet = &self.input.codelets[self.input.families[id].codelet];
            if stack_bytes(codelet) > 0 {
                runs.extend(instances[id].runs().iter().map(|(tiles, count)| (tiles.clone(), (codelet, *count))));
            }
        }
        let stacks = Stacks::new(self.machine.chip.workers);
        sweep(&runs, stacks, |s, (codelet, count), enters| s.change(codelet, *count, enters), Stacks::bytes)
    }
}

fn hull(a: Range<u32>, b: Range<u32>) -> Range<u32> {
    a.start.min(b.start)..a.end.max(b.end)
}

/// Returns the bytes of each tile's first, second, … buffer of a step.
fn buffers(plan: &StepPlan, machine: &Machine) -> Vec<Spread> {
    let mut by_rank: Vec<Vec<(u32, u64)>> = vec![];
    for (buffer, rank) in plan.buffers.iter().zip(plan.buffer_ranks(machine.tiles())) {
        if by_rank.len() <= rank as usize {
            by_rank.push(vec![]);
        }
        by_rank[rank as usize].push((buffer.tile % machine.tiles(), buffer.bytes as u64));
    }
    by_rank.into_iter().map(Spread::of_tiles).collect()
}

/// The steps that execute each compute set and each copy.
struct StepsByWork {
    sets: SecondaryMap<ComputeSetId, Vec<StepId>>,
    copies: SecondaryMap<CopyId, Vec<StepId>>,
}

fn steps_by_work(graph: &Graph) -> StepsByWork {
    let mut steps = StepsByWork { sets: SecondaryMap::new(), copies: SecondaryMap::new() };
    for (id, step) in &graph.steps {
        match step.kind {
            StepKind::Execute(set) => steps.sets[set].push(id),
            StepKind::Copy(copy) => steps.copies[copy].push(id),
            _ => {}
        }
    }
    steps
}
