//! The values that are computed, and the instructions of each region.
//!
//! # Note: Instructions
//! An operation, a load, a store and a branch of at most 64 bits are one instruction each. In addition:
//! - A move between integer and float registers is one instruction, so a conversion takes two and `bits` one.
//! - Division, square root and operations in software take the slots that the machine states. An integer division by a
//!   known number takes a multiplication and a shift.
//! - A store narrower than a word takes a load, a merge and a store.
//! - The address of an access is the sum of a register and a constant. Advancing the register belongs to the loop;
//!   setting it before an inner loop takes one instruction. An index that was loaded or computed takes one more to
//!   scale it.
//! - A float constant is made once per vertex, and a `const` field is loaded once. The start of a field with its sizes
//!   takes what the machine states, once. So does everything that is computed from the worker's number and sizes before
//!   the first loop.
//!
//! # Note: Loops
//! An iteration of a counted loop takes an increment, a comparison and a branch. If the index is not needed and every
//! pointer has a single access of its own, accesses advance by themselves and one instruction remains: decrement and
//! branch. That needs the trip count. A loop whose step is not known before the codelet runs compares its index instead
//! of dividing, so it always pays for all three.
//!
//! Invariant: a value is charged once, to the region that is its home.

use super::TileCosts;
use super::graph::{AccessAddress, Op, RegionId, Val};
use super::pairs::Pairs;
use super::poly::Moving;
use super::quantity::Quantity;
use super::walk::{BodyWalk, Effect};
use girder_ir::codelet::{BinaryOp, Storage, UnaryOp};
use girder_ir::types::ElemType;
use rustc_hash::{FxHashMap, FxHashSet};

/// A register that advances through memory: a field or array, and the moving part of its address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Pointer {
    pub storage: Storage,
    pub moving: u32,
}

/// The instructions that a walked body demands.
pub(super) struct Demand<'w, 'c> {
    pub walk: &'w BodyWalk<'c>,
    pub costs: &'w TileCosts,
    /// Loops whose iterations are one line of a pipeline, by region.
    pub pipelined: FxHashMap<RegionId, u32>,
    pub instructions: FxHashMap<RegionId, u64>,
    /// Values that are computed, in the order of discovery.
    pub needed: Vec<Val>,
    seen: FxHashSet<Val>,
    open: Vec<Val>,
    scaled: FxHashSet<(Val, bool)>,
    /// Indices that loops advance by a step of their own.
    strided: FxHashSet<Val>,
    pointers: FxHashSet<Pointer>,
    fields: FxHashSet<Storage>,
    /// Accesses by the loop that moves them: pointer, constant offset, and whether the access is directly in the loop's
    /// body.
    accesses: FxHashMap<RegionId, FxHashMap<Pointer, FxHashSet<(i64, bool)>>>,
    index_needed: FxHashSet<RegionId>,
    /// Whether a value is computed from the worker's number.
    finds_share: bool,
}

/// Demands all values that the effects of a body need.
pub(super) fn demand<'w, 'c>(
    walk: &'w BodyWalk<'c>,
    costs: &'w TileCosts,
    pipelined: FxHashMap<RegionId, u32>,
) -> Demand<'w, 'c> {
    let mut demand = Demand {
        walk,
        costs,
        pipelined,
        instructions: FxHashMap::default(),
        needed: vec![],
        seen: FxHashSet::default(),
        open: vec![],
        scaled: FxHashSet::default(),
        strided: walk.loops.iter().filter_map(|l| l.strided).collect(),
        pointers: FxHashSet::default(),
        fields: FxHashSet::default(),
        accesses: FxHashMap::default(),
        index_needed: FxHashSet::default(),
        finds_share: false,
    };
    let pairs = Pairs::find(walk, costs, |r| demand.pipelined.contains_key(&r));
    demand.pairs(&pairs);
    demand.effects(&pairs);
    walk.products.iter().flat_map(|p| p.operands).for_each(|storage| demand.field(storage));
    demand.charge_loops();
    demand.charge(walk.graph.root(), costs.vertex_bundles.into());
    if demand.finds_share {
        demand.charge(walk.graph.root(), costs.share_bundles.into());
    }
    for &(region, n) in &walk.extra {
        demand.charge(region, n);
    }
    demand
}

impl Demand<'_, '_> {
    /// Adds instructions to each execution of a region.
    pub fn charge(&mut self, region: RegionId, instructions: u64) {
        *self.instructions.entry(region).or_default() += instructions;
    }

    fn pairs(&mut self, pairs: &Pairs) {
        self.seen.extend(pairs.lanes.iter().copied());
        for &(region, n) in &pairs.instructions {
            self.charge(region, n);
        }
        for &(access, region) in &pairs.accesses {
            self.access(access, region);
        }
        for &v in &pairs.operands {
            self.need(v);
        }
        self.drain();
    }

    fn effects(&mut self, pairs: &Pairs) {
        for (n, &(region, effect)) in self.walk.effects.iter().enumerate() {
            match effect {
                Effect::Store { .. } if pairs.stores.contains(&n) => {}
                Effect::Store { access, value, ty } => {
                    if !self.pipelined.contains_key(&region) {
                        self.charge(region, u64::from(store_slots(ty, self.costs)));
                    }
                    self.access(access, region);
                    self.need(value);
                }
                Effect::Branch(cond) => {
                    self.charge(region, 1);
                    self.need(cond);
                }
                Effect::Use(v) => self.need(v),
            }
        }
    }

    /// Demands a value and its operands.
    pub fn need(&mut self, v: Val) {
        self.open.push(v);
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(v) = self.open.pop() {
            if !self.seen.insert(v) {
                continue;
            }
            self.needed.push(v);
            let node = &self.walk.graph.nodes[v];
            if self.strided.contains(&v) {
                continue;
            }
            if let Op::Load(access) = node.op {
                self.access(access, node.home);
            } else {
                self.open.extend(node.args.iter().copied());
            }
            if let Op::Index(_) = node.op {
                self.index_needed.insert(node.home);
            }
            let of_worker = |q: &Quantity| q.any(&mut |p| *p == Quantity::Worker);
            if node.home == self.walk.graph.root() && node.quantity.as_ref().is_some_and(of_worker) {
                self.finds_share = true;
            } else if !self.pipelined.contains_key(&node.home) {
                self.charge(node.home, u64::from(self.slots(v)));
            }
        }
    }

    /// Charges the start of a field, once.
    fn field(&mut self, storage: Storage) {
        if self.fields.insert(storage) && matches!(storage, Storage::Field(_)) {
            self.charge(self.walk.graph.root(), self.costs.field_bundles.into());
        }
    }

    /// Charges the address of an access and pushes the values that it needs.
    fn access(&mut self, access: AccessAddress, region: RegionId) {
        let graph = &self.walk.graph;
        self.field(access.storage);
        let moving: Moving = graph.moving(access.moving).clone();
        if moving.is_empty() {
            return;
        }
        let pointer = Pointer { storage: access.storage, moving: access.moving };
        let is_first = self.pointers.insert(pointer);
        let mut deepest = graph.root();
        let mut terms = 0;
        for (product, _) in &moving {
            let mut scaling = 0;
            for &v in product {
                let node = &graph.nodes[v];
                if graph.regions[node.home].depth > graph.regions[deepest].depth {
                    deepest = node.home;
                }
                match node.op {
                    Op::Index(_) => {}
                    _ => self.open.push(v),
                }
                let is_computed = !matches!(node.op, Op::Index(_) | Op::Phi) && node.home != graph.root();
                scaling += u64::from(is_computed);
            }
            terms += 1;
            let last = product.last().copied().filter(|_| scaling > 0);
            if let Some(v) = last
                && self.scaled.insert((v, self.bytes(access.storage) > 1))
                && !self.pipelined.contains_key(&graph.nodes[v].home)
            {
                let own = u64::from(self.bytes(access.storage) > 1) + product.len() as u64 - 1;
                self.charge(graph.nodes[v].home, own);
            }
        }
        let moves = moving
            .iter()
            .flat_map(|(p, _)| p)
            .any(|&v| graph.nodes[v].home == deepest && matches!(graph.nodes[v].op, Op::Index(_) | Op::Phi));
        let iteration = graph.regions[deepest].iteration_of.is_some();
        if iteration && moves {
            let own = region == deepest;
            self.accesses.entry(deepest).or_default().entry(pointer).or_default().insert((access.base, own));
            if is_first && let Some(around) = graph.regions[deepest].parent {
                self.charge(around, 1);
            }
        } else if is_first {
            // An access adds up one register fewer than this.
            self.charge(deepest, terms - u64::from(deepest != graph.root()));
        }
    }

    fn bytes(&self, storage: Storage) -> u32 {
        match storage {
            Storage::Field(f) => self.walk.codelet.fields[f].ty.bytes(),
            Storage::Local(l) => self.walk.codelet.locals[l].ty.bytes(),
        }
    }

    /// Charges the overhead of counted loops.
    fn charge_loops(&mut self) {
        for l in &self.walk.loops {
            if self.pipelined.contains_key(&l.region) {
                // The repeat count of the line.
                self.charge(l.around, 1);
                continue;
            }
            self.charge(l.around, l.setup);
            let pointers = self.accesses.get(&l.region);
            let alone = |p: &FxHashSet<(i64, bool)>| p.len() == 1 && p.iter().all(|a| a.1);
            let steps_alone = pointers.is_none_or(|p| p.values().all(alone));
            let is_short = l.strided.is_none() && !l.has_inner && !self.index_needed.contains(&l.region) && steps_alone;
            let own = if is_short { 1 } else { u64::from(self.costs.loop_bundles) + self.strides(l.region) };
            self.charge(l.region, own);
        }
    }

    /// Returns the registers beyond the index that an iteration advances: one per further distance, unless accesses
    /// advance them.
    fn strides(&self, region: RegionId) -> u64 {
        let graph = &self.walk.graph;
        let mut distances: FxHashSet<Vec<(Vec<Val>, i64)>> = FxHashSet::default();
        for (pointer, accesses) in self.accesses.get(&region).into_iter().flatten() {
            if accesses.len() == 1 {
                continue;
            }
            let bytes = i64::from(self.bytes(pointer.storage));
            let moving = graph.moving(pointer.moving).iter();
            let of_index = moving.filter(|(p, _)| p.iter().any(|&v| graph.nodes[v].home == region));
            distances.insert(of_index.map(|(p, f)| (p.to_vec(), f.saturating_mul(bytes))).collect());
        }
        distances.len().saturating_sub(1) as u64
    }

    /// Returns the instructions of one value without its operands.
    pub fn slots(&self, v: Val) -> u32 {
        let node = &self.walk.graph.nodes[v];
        let arg = |n: usize| &self.walk.graph.nodes[node.args[n]];
        match node.op {
            Op::Const(c) => u32::from(c.ty.is_float() && c.bits != 0),
            Op::Field(_) | Op::Worker | Op::Load(_) => 1,
            // Sizes come with the fields.
            Op::Size(_) | Op::Workers | Op::Index(_) | Op::Join => 0,
            // The register is initialised before the loop.
            Op::Phi => 0,
            Op::Unary(op) => unary_slots(op, node.ty, self.costs),
            Op::Binary(op) => {
                let by_known = matches!(arg(1).op, Op::Const(_) | Op::Workers);
                let power = self.walk.graph.const_of(node.args[1]).is_some_and(|c| c.bits.is_power_of_two());
                binary_slots(op, arg(0).ty, (by_known, power), self.costs)
            }
            Op::Select => width(node.ty),
            Op::Fma if node.ty == ElemType::F64 => self.costs.emulated,
            Op::Fma => 1,
            Op::Convert => convert_slots(arg(0).ty, node.ty, self.costs),
            Op::Elementary(f) => self.costs.elementary(f),
            Op::Bits => u32::from(arg(0).ty.is_float() != node.ty.is_float()),
        }
    }
}

/// Returns the registers of a value that is only moved.
fn width(ty: ElemType) -> u32 {
    if ty == ElemType::F64 { 2 } else { 1 }
}

/// Returns the instructions of a store.
pub(super) fn store_slots(ty: ElemType, costs: &TileCosts) -> u32 {
    if ty.bytes() < costs.narrowest_store { 3 } else { 1 }
}

fn unary_slots(op: UnaryOp, ty: ElemType, costs: &TileCosts) -> u32 {
    match (op, ty) {
        (UnaryOp::Neg | UnaryOp::Abs, ElemType::F64) => 1,
        (_, ElemType::F64) => costs.emulated,
        (UnaryOp::Sqrt, _) => costs.sqrt_f32,
        _ => 1,
    }
}

fn binary_slots(op: BinaryOp, ty: ElemType, (by_known, power): (bool, bool), costs: &TileCosts) -> u32 {
    match (op, ty) {
        (_, ElemType::F64) => costs.emulated,
        (BinaryOp::Mul | BinaryOp::Div | BinaryOp::Rem, ElemType::U64) if !power => costs.emulated,
        (_, ElemType::U64) => 2,
        (BinaryOp::Div, ty) if ty.is_float() => costs.div_f32,
        (BinaryOp::Rem, ty) if ty.is_float() => costs.div_f32 + 3,
        (BinaryOp::Div | BinaryOp::Rem, _) if power => 1,
        (BinaryOp::Div, _) if by_known => 1 + costs.mul_int,
        (BinaryOp::Rem, _) if by_known => 2 + 2 * costs.mul_int,
        (BinaryOp::Mul, ty) if ty.is_int() => costs.mul_int,
        (BinaryOp::Div, _) => costs.div_int,
        (BinaryOp::Rem, _) => costs.div_int + 2,
        _ => 1,
    }
}

fn convert_slots(from: ElemType, to: ElemType, costs: &TileCosts) -> u32 {
    match (from.is_float(), to.is_float()) {
        _ if from == ElemType::F64 || to == ElemType::F64 => costs.emulated,
        (true, true) => 1,
        // A move between the register files.
        (true, false) | (false, true) => 2,
        (false, false) if to == ElemType::Bool && from != ElemType::Bool => 1,
        (false, false) => u32::from(to.bytes() < from.bytes().min(4)),
    }
}
