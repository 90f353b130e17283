//! `#[pipelined]`: the performance of a hand-written loop with one line of code per vector.
//!
//! # Note: Interval
//! Lines repeat without loop overhead, one 64-bit vector each. A line issues float instructions in parallel with memory
//! and integer instructions, one of either kind per bundle, so it takes the greater of the two counts. A product that
//! only a sum uses is fused into it.
//!
//! L loads and S stores take L + S bundles. They take ⌈L/2⌉ + S if two loads at a time are in different memory elements
//! or in interleaved memory, and max(⌈L/2⌉, S) if the stores are also in another element than the loads. Where
//! neighbouring iterations do not access neighbouring elements, each iteration has loads and stores of its own; two
//! neighbouring `f32` lanes written out in the body count as one of them.
//!
//! The first vector passes through the whole chain of operations; each further vector takes one interval.
//!
//! Invariant: an accepted loop has no branch and no inner loop, and carries only reductions.

use super::demand::{Demand, Pointer, store_slots};
use super::graph::{AccessAddress, Op, RegionId, Val};
use super::inputs::{FieldRequest, MemFacts};
use super::pairs::{follows, is_aligned};
use super::walk::{BodyWalk, Effect};
use cranelift_entity::SecondaryMap;
use girder_ir::codelet::{BinaryOp, Storage};
use girder_ir::ids::FieldId;
use girder_ir::types::ElemType;
use girder_source::Span;
use rustc_hash::{FxHashMap, FxHashSet};

/// One line of a pipeline.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Pipeline {
    /// Elements of a vector.
    pub width: u32,
    /// Float instructions.
    pub float: u32,
    /// Integer instructions.
    pub integer: u32,
    /// The storage that each load reads.
    pub loads: Vec<Storage>,
    /// The storage that each store writes.
    pub stores: Vec<Storage>,
    /// Bundles of a single vector.
    pub chain: u32,
}

/// The reason why a codelet cannot be pipelined.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// The loop, or the codelet if there is none.
    pub span: Span,
    /// Lower case, no full stop.
    pub reason: String,
}

impl Pipeline {
    /// Returns the interval between two vectors in bundles.
    pub fn interval(&self, facts: &MemFacts) -> u64 {
        let (loads, stores) = (self.pairs_of_loads(facts), self.stores.len() as u32);
        let in_different_elements =
            self.stores.iter().all(|s| self.loads.iter().all(|l| in_different_elements(facts, *s, *l)));
        let memory = if in_different_elements { loads.max(stores) } else { loads + stores };
        u64::from(self.float.max(memory + self.integer).max(1))
    }

    /// Returns the bundles of the first vector beyond the interval.
    pub fn fill(&self, facts: &MemFacts) -> u64 {
        u64::from(self.chain).saturating_sub(self.interval(facts))
    }

    /// Returns the bundles of the loads, two at a time where the facts allow it.
    fn pairs_of_loads(&self, facts: &MemFacts) -> u32 {
        let mut alone = self.loads.clone();
        let mut bundles = 0;
        while let Some(a) = alone.pop() {
            bundles += 1;
            let interleaved = |s: Storage| matches!(s, Storage::Field(f) if facts.is_interleaved(f));
            let partner = |b: &Storage| in_different_elements(facts, a, *b) || (interleaved(a) && interleaved(*b));
            if let Some(at) = alone.iter().position(partner) {
                alone.remove(at);
            }
        }
        bundles
    }

    /// Returns the placements in memory that would shorten the interval.
    pub fn requests(&self) -> Vec<FieldRequest> {
        let fields = |list: &[Storage]| -> Vec<FieldId> {
            list.iter().filter_map(|s| if let Storage::Field(f) = s { Some(*f) } else { None }).collect()
        };
        let (loads, stores) = (fields(&self.loads), fields(&self.stores));
        let mut requests = vec![];
        for (i, &a) in loads.iter().enumerate() {
            for &b in loads[i + 1..].iter().chain(&stores) {
                requests.push(if a == b {
                    FieldRequest::Interleaved(a)
                } else {
                    FieldRequest::DifferentElements(a.min(b), a.max(b))
                });
            }
        }
        // A field that is both read and written is in one memory element.
        requests.retain(|r| !matches!(r, FieldRequest::Interleaved(f) if loads.iter().filter(|&l| l == f).count() < 2));
        requests.sort();
        requests.dedup();
        let all = MemFacts::granting(&requests);
        if self.interval(&all) < self.interval(&MemFacts::default()) { requests } else { vec![] }
    }
}

fn in_different_elements(facts: &MemFacts, a: Storage, b: Storage) -> bool {
    match (a, b) {
        (Storage::Field(a), Storage::Field(b)) => facts.in_different_elements(a, b),
        _ => false,
    }
}

/// Returns the innermost loops of a body, by region, or the reason why one cannot be pipelined.
pub(super) fn innermost(walk: &BodyWalk<'_>) -> Result<FxHashMap<RegionId, u32>, Refusal> {
    let refuse = |span, reason: &str| Err(Refusal { span, reason: reason.into() });
    if let Some(open) = walk.open.iter().find(|o| !o.has_inner) {
        return refuse(open.span, "only the data decide the trip count of a `while`");
    }
    let mut found = FxHashMap::default();
    for (n, l) in walk.loops.iter().enumerate().filter(|(_, l)| !l.has_inner) {
        found.insert(l.region, n as u32);
    }
    // The matrix unit is a pipeline of its own: the loops around an `amp` only start it.
    if found.is_empty() && walk.products.is_empty() {
        return refuse(walk.codelet.span, "there is no loop");
    }
    for region in walk.graph.regions.values() {
        if let Some(around) = region.parent.and_then(|p| inside_of(walk, &found, p)) {
            return refuse(walk.loops[around as usize].span, "there is a branch in the loop");
        }
    }
    for &(region, effect) in &walk.effects {
        if let (Effect::Branch(_), Some(&n)) = (effect, found.get(&region)) {
            return refuse(walk.loops[n as usize].span, "there is a branch in the loop");
        }
    }
    for (region, _) in &walk.extra {
        if let Some(&n) = found.get(region) {
            return refuse(walk.loops[n as usize].span, "the loop does more than operations on elements");
        }
    }
    for &n in found.values() {
        let l = &walk.loops[n as usize];
        if l.is_cut_short {
            return refuse(l.span, "the loop may end before its last iteration");
        }
    }
    Ok(found)
}

fn inside_of(walk: &BodyWalk<'_>, found: &FxHashMap<RegionId, u32>, mut at: RegionId) -> Option<u32> {
    loop {
        if let Some(&n) = found.get(&at) {
            return Some(n);
        }
        at = walk.graph.regions[at].parent?;
    }
}

/// Returns the lines of all pipelined loops, by loop number.
pub(super) fn pipelines(demand: &Demand<'_, '_>) -> Result<FxHashMap<u32, Pipeline>, Refusal> {
    let mut result = FxHashMap::default();
    let mut regions: Vec<(RegionId, u32)> = demand.pipelined.iter().map(|(&r, &n)| (r, n)).collect();
    regions.sort();
    for (region, n) in regions {
        let line = Line { demand, region };
        let pipeline = line
            .pipeline()
            .map_err(|reason| Refusal { span: demand.walk.loops[n as usize].span, reason: reason.into() })?;
        result.insert(n, pipeline);
    }
    Ok(result)
}

struct Line<'d, 'w, 'c> {
    demand: &'d Demand<'w, 'c>,
    region: RegionId,
}

impl Line<'_, '_, '_> {
    fn values(&self) -> Vec<Val> {
        let mut values: Vec<Val> = self
            .demand
            .needed
            .iter()
            .copied()
            .filter(|&v| self.demand.walk.graph.nodes[v].home == self.region)
            .collect();
        values.sort();
        values
    }

    /// Returns the addresses of stores with element types and values.
    fn stores(&self) -> Vec<(Pointer, i64, ElemType, Val)> {
        let of = |&(region, effect): &(RegionId, Effect)| match effect {
            Effect::Store { access, value, ty } if region == self.region => {
                Some((Pointer { storage: access.storage, moving: access.moving }, access.base, ty, value))
            }
            _ => None,
        };
        self.demand.walk.effects.iter().filter_map(of).collect()
    }

    fn pipeline(&self) -> Result<Pipeline, &'static str> {
        let (graph, costs) = (&self.demand.walk.graph, self.demand.costs);
        let (values, stores) = (self.values(), self.stores());
        self.check_memory(&values, &stores)?;
        let mut uses: SecondaryMap<Val, u32> = SecondaryMap::new();
        let mut users: SecondaryMap<Val, Option<Val>> = SecondaryMap::new();
        for &v in &values {
            for &a in &graph.nodes[v].args {
                uses[a] += 1;
                users[a] = Some(v);
            }
        }
        stores.iter().for_each(|s| uses[s.3] += 1);
        self.check_carried(&values, &uses)?;
        let width = self.width(&values, &stores);
        let mut line = Pipeline { width, float: 0, integer: 0, loads: vec![], stores: vec![], chain: 0 };
        let mut ends: SecondaryMap<Val, u32> = SecondaryMap::new();
        for &v in &values {
            let node = &graph.nodes[v];
            let ready = node.args.iter().map(|&a| ends[a]).max().unwrap_or(0);
            let own = match node.op {
                Op::Load(access) => {
                    let pointer = Pointer { storage: access.storage, moving: access.moving };
                    let each = match self.is_contiguous(pointer) {
                        true => 1,
                        false if self.is_second_lane(v, access, &values) => 0,
                        false => width,
                    };
                    line.loads.extend(std::iter::repeat_n(access.storage, each as usize));
                    line.integer += self.computed_index(pointer) * width;
                    1
                }
                Op::Binary(BinaryOp::Mul) if self.is_fused(v, &values, &uses, users[v]) => 0,
                _ => {
                    let slots = self.demand.slots(v);
                    let arg_is_float = node.args.first().is_some_and(|&a| graph.nodes[a].ty.is_float());
                    let is_vector =
                        slots == 1 && (node.ty == ElemType::F32 || (node.ty == ElemType::Bool && arg_is_float));
                    let all = if is_vector { (width * 4).div_ceil(costs.vector_bytes.max(4)) } else { slots * width };
                    *(if node.ty.is_float() || arg_is_float { &mut line.float } else { &mut line.integer }) += all;
                    all.max(slots)
                }
            };
            ends[v] = if node.op == Op::Phi { 0 } else { ready + own };
        }
        for &(pointer, _, ty, value) in &stores {
            let each = if self.is_contiguous(pointer) { 1 } else { width * store_slots(ty, costs) };
            line.stores.extend(std::iter::repeat_n(pointer.storage, each as usize));
            line.chain = line.chain.max(ends[value] + 1);
        }
        line.chain = values.iter().map(|&v| ends[v]).fold(line.chain, u32::max);
        Ok(line)
    }

    /// Returns whether a load is the second half of the 64-bit load of the element before it.
    fn is_second_lane(&self, v: Val, second: AccessAddress, values: &[Val]) -> bool {
        let walk = self.demand.walk;
        let nodes = &walk.graph.nodes;
        let is_first = |u: &Val| match nodes[*u].op {
            Op::Load(first) => {
                nodes[*u].ty == ElemType::F32
                    && first.version == second.version
                    && follows(first, second)
                    && is_aligned(walk, first)
            }
            _ => false,
        };
        nodes[v].ty == ElemType::F32 && self.demand.costs.vector_bytes >= 8 && values.iter().any(is_first)
    }

    /// Returns whether a value is a product of `f32` that one sum, its last user, uses as its multiply-add: the first
    /// product of the sum. The values ascend.
    fn is_fused(&self, v: Val, values: &[Val], uses: &SecondaryMap<Val, u32>, user: Option<Val>) -> bool {
        let nodes = &self.demand.walk.graph.nodes;
        let is_product = |&&a: &&Val| {
            let node = &nodes[a];
            matches!(node.op, Op::Binary(BinaryOp::Mul))
                && node.ty == ElemType::F32
                && uses[a] == 1
                && values.binary_search(&a).is_ok()
        };
        let takes = |u: Val| {
            matches!(nodes[u].op, Op::Binary(BinaryOp::Add | BinaryOp::Sub))
                && nodes[u].args.iter().find(is_product) == Some(&v)
        };
        is_product(&&v) && user.is_some_and(takes)
    }

    /// Returns the elements of a vector: the number of elements in 64 bits of the widest type in memory or operations.
    fn width(&self, values: &[Val], stores: &[(Pointer, i64, ElemType, Val)]) -> u32 {
        let nodes = &self.demand.walk.graph.nodes;
        let loaded = values.iter().filter(|&&v| matches!(nodes[v].op, Op::Load(_))).map(|&v| nodes[v].ty.bytes());
        let moved = loaded.chain(stores.iter().map(|s| s.2.bytes())).max();
        let widest =
            moved.or_else(|| values.iter().filter(|&&v| nodes[v].ty.is_float()).map(|&v| nodes[v].ty.bytes()).max());
        (self.demand.costs.vector_bytes / widest.unwrap_or(8)).max(1)
    }

    /// Returns whether neighbouring iterations access neighbouring elements.
    fn is_contiguous(&self, pointer: Pointer) -> bool {
        let graph = &self.demand.walk.graph;
        let mut step = 0;
        for (product, factor) in graph.moving(pointer.moving) {
            let here = product.iter().filter(|&&v| graph.nodes[v].home == self.region).count();
            match (here, &product[..]) {
                (0, _) => {}
                (1, [v]) if matches!(graph.nodes[*v].op, Op::Index(_)) => step += factor,
                _ => return false,
            }
        }
        let own = graph.regions[self.region].iteration_of.and_then(|n| self.demand.walk.loops.get(n as usize));
        own.is_some_and(|l| step.saturating_mul(l.step).abs() == 1)
    }

    /// Returns the instructions for an index that is computed in the line.
    fn computed_index(&self, pointer: Pointer) -> u32 {
        let graph = &self.demand.walk.graph;
        let products = graph.moving(pointer.moving).iter().flat_map(|(p, _)| p);
        let computed = |v: &&Val| graph.nodes[**v].home == self.region && !matches!(graph.nodes[**v].op, Op::Index(_));
        products.filter(computed).count() as u32
    }

    /// Checks that no iteration loads what another iteration stores.
    fn check_memory(&self, values: &[Val], stores: &[(Pointer, i64, ElemType, Val)]) -> Result<(), &'static str> {
        let nodes = &self.demand.walk.graph.nodes;
        for &v in values {
            let Op::Load(access) = nodes[v].op else { continue };
            for &(pointer, base, ..) in stores.iter().filter(|s| s.0.storage == access.storage) {
                let moves = self.is_contiguous(pointer) || self.moves(pointer);
                if pointer.moving != access.moving || base != access.base || !moves {
                    return Err("an iteration may read what another iteration writes");
                }
            }
        }
        Ok(())
    }

    fn moves(&self, pointer: Pointer) -> bool {
        let graph = &self.demand.walk.graph;
        let products = graph.moving(pointer.moving).iter().flat_map(|(p, _)| p);
        products.into_iter().any(|&v| graph.nodes[v].home == self.region && matches!(graph.nodes[v].op, Op::Index(_)))
    }

    /// Checks that all carried values are reductions.
    fn check_carried(&self, values: &[Val], uses: &SecondaryMap<Val, u32>) -> Result<(), &'static str> {
        let nodes = &self.demand.walk.graph.nodes;
        let carried: FxHashSet<Val> = values.iter().copied().filter(|&v| nodes[v].op == Op::Phi).collect();
        for &phi in &carried {
            let again = nodes[phi].args.last().copied().filter(|&v| v != phi && nodes[v].home == self.region);
            let Some(again) = again else { continue };
            let is_reduction = match nodes[again].op {
                Op::Binary(op) => {
                    use BinaryOp::*;
                    nodes[again].args.contains(&phi) && matches!(op, Add | Sub | Mul | Min | Max | And | Or | Xor)
                }
                Op::Fma => nodes[again].args[2] == phi,
                _ => false,
            };
            if !is_reduction || uses[phi] != 1 || uses[again] > 1 {
                return Err("an iteration needs a value of the iteration before it, and not as a reduction");
            }
        }
        Ok(())
    }
}
