//! Loads, stores and accumulators.
//!
//! Accesses with a stride of a few elements use whole vectors, if no iteration skips them.
//!
//! Invariant: a whole vector covers only accesses that every iteration performs unconditionally, so that their elements
//! exist.

use super::{Lowering, Regs};
use crate::ir::{AccumulatorId, Def, Effect, Item, Kernel, Lane, Memory, Op, Reduction, Value};
use crate::x86::inst::{Effect as Do, Elements, Op as Machine, Reg};
use crate::x86::pairs::*;
use crate::x86::program::Parallel;
use crate::x86::{interleaved_stride, phase};
use smallvec::SmallVec;

/// Returns the greatest number in an order.
fn last_number(order: u64) -> u64 {
    (0..16).map(|n| order >> (4 * n) & 15).max().unwrap_or(0)
}

/// Returns the elements of each vector for sixteen iterations.
fn parts(at: Elements, stride: i64) -> SmallVec<[Elements; 2]> {
    let upper = Elements { offset: at.offset + 8 * stride as i32, upper: true, ..at };
    if at.bytes == 8 { [at, upper].as_slice().into() } else { [at].as_slice().into() }
}

/// Returns the elements of an unconditional load and its stride in elements, if it may use whole vectors.
fn interleaved(kernel: &Kernel, value: Value) -> Option<(Memory, i64)> {
    let def = kernel.def(value);
    match def.op {
        Op::Load(from) if def.args.is_empty() => {
            interleaved_stride(def.lane, kernel.stride(from)).map(|steps| (from, steps))
        }
        _ => None,
    }
}

impl Lowering<'_> {
    fn elements(&self, lane: Lane, at: Memory) -> Elements {
        let bytes = lane.bytes() as u8 * self.kernel.per_iteration;
        Elements { pointer: at.pointer, offset: at.offset, bytes, upper: false }
    }

    /// Finds the phases of all interleaved loads, so that the extent of each vector is known before it is loaded.
    pub(super) fn note_phases(&mut self) {
        for item in &self.kernel.items {
            if let Item::Make(value) = *item
                && let Some((from, steps)) = interleaved(self.kernel, value).filter(|_| self.options.whole_vectors)
            {
                let lane = self.kernel.lane(value);
                let at = self.elements(lane, from);
                let (offset, phase) = phase(at.offset, lane.bytes(), steps);
                for from in parts(Elements { offset, ..at }, self.kernel.stride(from)) {
                    self.to.interleaved_access(from, steps, phase, false);
                }
            }
        }
    }

    /// Loads elements.
    pub(super) fn load(&mut self, def: &Def, from: Memory) -> Regs {
        let (lane, stride) = (def.lane, self.kernel.stride(from));
        let at = self.elements(lane, from);
        if def.args.is_empty() && self.kernel.is_still(lane, from) {
            let element = self.to.make(Machine::Broadcast { from: at }, &[]);
            return SmallVec::from_elem(element, parts(at, stride).len());
        }
        let contiguous = self.kernel.is_contiguous(lane, from);
        let steps = interleaved_stride(lane, stride).filter(|_| def.args.is_empty() && self.options.whole_vectors);
        if let Some(steps) = steps.filter(|_| !contiguous) {
            return self.load_whole(at, lane, (stride, steps));
        }
        let masks: SmallVec<[Option<Reg>; 2]> = match def.args.first() {
            Some(&mask) => {
                let mask = self.of(mask)[0];
                self.masks(lane, mask).into_iter().map(Some).collect()
            }
            None => SmallVec::from_elem(None, 2),
        };
        let offsets = (!contiguous).then(|| self.offsets(stride));
        let op = |from| match offsets {
            Some(_) => Machine::Gather { code: pick(GATHER, lane), from },
            None if self.kernel.per_iteration > 1 => Machine::Load { code: LOAD[0], from },
            None => Machine::Load { code: load_code(lane), from },
        };
        let loads: SmallVec<[(Machine, Option<Reg>); 2]> =
            parts(at, stride).into_iter().zip(masks).map(|(from, mask)| (op(from), mask)).collect();
        loads
            .into_iter()
            .map(|(op, mask)| {
                let args: SmallVec<[Reg; 2]> = offsets.into_iter().chain(mask).collect();
                self.to.make(op, &args)
            })
            .collect()
    }

    /// Loads the elements from the first to the last one that is used, and permutes them. Loads at one pointer use one
    /// vector if their elements lie in it: what is between them is in the same array.
    pub(super) fn load_permuted(&mut self, lane: Lane, from: Memory, order: u64) -> Reg {
        let own = (from.offset, from.offset + 4 * last_number(order) as i32);
        let (first, last) = self.permuted_span(from).unwrap_or(own);
        let some = (u32::MAX >> (31 - (last - first) / 4)) as u16;
        let ahead = (from.offset - first) as u64 / 4;
        let order = (0..16).fold(0, |sum, n| sum | ((order >> (4 * n) & 15) + ahead) << (4 * n));
        let from = self.elements(lane, Memory { offset: first, ..from });
        let some = self.to.make(Machine::MaskBits { bits: some }, &[]);
        let elements = self.to.make(Machine::Load { code: load_code(lane), from }, &[some]);
        let order = self.to.make(Machine::Lanes { bits: order }, &[]);
        self.to.plain(PERMUTE[0], &[order, elements])
    }

    /// Returns the least and the greatest offset of all elements of permuted loads at the pointer of one of them, if
    /// they are in one vector.
    fn permuted_span(&self, of: Memory) -> Option<(i32, i32)> {
        let loads = self.kernel.defs.iter().filter_map(|def| match def.op {
            Op::LoadPermuted { from, order } if from.pointer == of.pointer => Some((from.offset, order)),
            _ => None,
        });
        let spans = loads.map(|(offset, order)| (offset, offset + 4 * last_number(order) as i32));
        let (first, last) = spans.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))?;
        ((last - first) < 64 && (of.offset - first) % 4 == 0).then_some((first, last))
    }

    /// Returns the offsets of strided elements.
    fn offsets(&mut self, stride: i64) -> Reg {
        self.to.make(Machine::Ramp { start: 0, step: stride, bytes: 4 }, &[])
    }

    /// Loads a phase of an interleaved access.
    fn load_whole(&mut self, at: Elements, lane: Lane, (stride, steps): (i64, i64)) -> Regs {
        let (offset, phase) = phase(at.offset, lane.bytes(), steps);
        let (code, long) = (load_code(lane), usize::from(lane.is_long()));
        parts(Elements { offset, ..at }, stride)
            .into_iter()
            .map(|from| {
                let interleaved = self.to.interleaved_access(from, steps, phase, false);
                if self.to.interleaved[interleaved as usize].is_short() {
                    return self.short(interleaved, phase, lane, steps);
                }
                let program = &mut self.to;
                let vectors: SmallVec<[Reg; 4]> = (0..steps.max(1) as u8)
                    .map(|nth| program.make(Machine::Whole { code, interleaved, nth }, &[]))
                    .collect();
                let order = |round| Machine::Order { interleaved, phase, round, stored: false };
                if steps < 0 {
                    let order = program.make(order(0), &[]);
                    return program.plain(PERMUTE[long], &[order, vectors[0]]);
                }
                let mut lanes = vectors[0];
                for (round, &next) in vectors[1..].iter().enumerate() {
                    let order = program.make(order(round as u8), &[]);
                    lanes = program.make(Machine::Permute { code: PERMUTE_TWO[long] }, &[lanes, order, next]);
                }
                lanes
            })
            .collect()
    }

    /// Loads a phase of a short access: a shuffle moves its bytes to their lanes.
    fn short(&mut self, interleaved: u32, phase: u8, lane: Lane, steps: i64) -> Reg {
        let signed = lane.is_signed();
        let mut bytes = self.to.make(Machine::Bytes { interleaved }, &[]);
        if steps * i64::from(lane.bytes()) < 4 {
            let quarters = self.to.make(Machine::Quarters { interleaved }, &[]);
            bytes = self.to.plain(PERMUTE[0], &[quarters, bytes]);
        }
        let picked = self.to.make(Machine::Picked { interleaved, phase, upper: signed }, &[]);
        let lanes = self.to.plain(SHUFFLE_BYTES, &[bytes, picked]);
        match signed {
            true => self.to.shift(SHIFT_RIGHT_SIGNED[0], 32 - lane.bits() as u8, lanes),
            false => lanes,
        }
    }

    /// Emits an effect.
    pub(super) fn effect(&mut self, effect: &Effect) {
        match effect {
            Effect::Store { to, value, mask } => self.store(*to, *value, *mask),
            Effect::StoreInterleaved { to, values } => self.store_interleaved(*to, values),
            Effect::Accumulate { accumulator, op, value, mask } => self.accumulate(*accumulator, *op, *value, *mask),
            Effect::AccumulateProduct { accumulator, factors: [a, b], mask } => {
                let lane = self.kernel.lane(*a);
                let (x, y) = (self.of(*a), self.of(*b));
                let masks = self.masks_of(lane, *mask);
                for n in 0..x.len() {
                    let accumulator = self.accumulators[accumulator.0 as usize][n].0;
                    let (a, b, mask) = (x[n], y[n], masks[n]);
                    self.to.effect(Do::AccumulateFma { accumulator, long: lane.is_long(), a, b, mask });
                }
            }
        }
    }

    fn masks_of(&mut self, lane: Lane, mask: Option<Value>) -> SmallVec<[Option<Reg>; 2]> {
        let Some(mask) = mask else { return SmallVec::from_elem(None, 2) };
        let mask = self.of(mask)[0];
        self.masks(lane, mask).into_iter().map(Some).collect()
    }

    fn store(&mut self, to: Memory, value: Value, mask: Option<Value>) {
        let lane = self.kernel.lane(value);
        let (stride, at) = (self.kernel.stride(to), self.elements(lane, to));
        let masks = self.masks_of(lane, mask);
        let values = self.of(value);
        let contiguous = self.kernel.is_contiguous(lane, to);
        for ((to, value), mask) in parts(at, stride).into_iter().zip(values).zip(masks) {
            let effect = if contiguous {
                let code = match lane.bytes() {
                    _ if self.kernel.per_iteration > 1 => STORE[0],
                    1 => STORE_8,
                    2 => STORE_16,
                    _ => pick(STORE, lane),
                };
                // A store of narrow elements itself truncates lanes.
                let unwrapped = self.unwrapped.get(&value).filter(|_| lane.bytes() < 4);
                let value = unwrapped.copied().unwrap_or(value);
                Do::Store { code, to, value, mask }
            } else {
                Do::Scatter { code: pick(SCATTER, lane), to, offsets: self.offsets(stride), value, mask }
            };
            self.to.effect(effect);
        }
    }

    fn store_interleaved(&mut self, to: Memory, values: &[(u8, Value)]) {
        let lane = self.kernel.lane(values[0].1);
        let (stride, at) = (self.kernel.stride(to), self.elements(lane, to));
        let steps = interleaved_stride(lane, stride).expect("interleaved stores are a few elements apart");
        if !self.options.whole_vectors {
            for &(phase, value) in values {
                self.store(Memory { offset: to.offset + i32::from(phase) * lane.bytes() as i32, ..to }, value, None);
            }
            return;
        }
        for (part, from) in parts(at, stride).into_iter().enumerate() {
            let interleaved = self.to.interleaved_access(from, steps, 0, true);
            for nth in 0..steps.max(1) as u8 {
                let value = self.arranged(lane, values, (part, interleaved), nth);
                let mask = self.stored_lanes(values, interleaved, nth);
                self.to.effect(Do::StoreWhole { code: pick(STORE, lane), interleaved, nth, value, mask });
            }
        }
    }

    /// Permutes the values of all phases to the n-th vector.
    fn arranged(&mut self, lane: Lane, values: &[(u8, Value)], (part, interleaved): (usize, u32), nth: u8) -> Reg {
        let long = usize::from(lane.is_long());
        let order = |phase| Machine::Order { interleaved, phase, round: nth, stored: true };
        let (first, mut rest) = (values[0], &values[1..]);
        let mut lanes = self.of(first.1)[part];
        // Phase 1 takes the lanes of phase 0 without a permutation of their own.
        if first.0 != 0 || rest.first().is_none_or(|second| second.0 != 1) {
            let by = self.to.make(order(first.0), &[]);
            lanes = self.to.plain(PERMUTE[long], &[by, lanes]);
        }
        while let Some((next, after)) = rest.split_first() {
            let by = self.to.make(order(next.0), &[]);
            let value = self.of(next.1)[part];
            lanes = self.to.make(Machine::Permute { code: PERMUTE_TWO[long] }, &[lanes, by, value]);
            rest = after;
        }
        lanes
    }

    /// Returns the mask of the lanes of the n-th vector that are stored, if not all are.
    fn stored_lanes(&mut self, values: &[(u8, Value)], interleaved: u32, nth: u8) -> Option<Reg> {
        let access = self.to.interleaved[interleaved as usize];
        if values.len() as i64 == access.vectors() {
            return None;
        }
        let is_stored = |lane: i64| {
            let phase = (access.start(nth) + lane) % access.steps;
            values.iter().any(|v| i64::from(v.0) == phase)
        };
        let bits = (0..access.lanes()).filter(|&lane| is_stored(lane)).fold(0, |bits, lane| bits | 1 << lane);
        Some(self.to.make(Machine::MaskBits { bits }, &[]))
    }

    /// Allocates the vectors of each accumulator.
    pub(super) fn begin_accumulators(&mut self) {
        for accumulator in &self.kernel.accumulators {
            let lane = accumulator.lane;
            let start = accumulator.start.map(|bits| self.splat(lane, bits)[0]);
            let vectors = (0..1 + usize::from(lane.is_long())).map(|n| {
                let at = self.lanes(lane, accumulator.offset, n);
                self.to.accumulator(at, start)
            });
            let vectors = vectors.collect();
            self.accumulators.push(vectors);
        }
    }

    fn accumulate(&mut self, id: AccumulatorId, op: Reduction, value: Value, mask: Option<Value>) {
        let accumulator = self.kernel.accumulators[id.0 as usize];
        let lane = accumulator.lane;
        let mut values = self.of(value);
        if let Some((x, y)) = self.kernel.summed_bytes(id, op, value).filter(|_| mask.is_none()) {
            let (x, y) = (self.of(x)[0], y.map(|y| self.of(y)[0]));
            values[0] = self.to.byte_sums(x, y);
        }
        let extremum = lane.is_float() && matches!(op, Reduction::Min | Reduction::Max);
        let mut masks = self.masks_of(lane, mask);
        // Masked-out lanes of parallel accumulators and of multi-instruction reductions accumulate the identity.
        if let Some(mask) = mask.filter(|_| accumulator.any_order || extremum) {
            let (mask, identity) = (self.of(mask), self.splat(lane, op.identity(lane)));
            values = self.select(lane, &mask, &values, &identity);
            masks = SmallVec::from_elem(None, 2);
        }
        if mask.is_none()
            && let Some((mask, one)) = self.counted_mask(lane, op, value)
        {
            (values, masks) = (one, self.masks(lane, mask).into_iter().map(Some).collect());
        }
        let updates = self.kernel.items.iter().filter(|item| match item {
            Item::Do(effect) => effect.accumulator() == Some(id),
            Item::Make(_) => false,
        });
        let parallel = accumulator.any_order && updates.count() == 1;
        for (n, &value) in values.iter().enumerate() {
            let (accumulator, reg) = self.accumulators[id.0 as usize][n];
            let from = self.to.body.len();
            if extremum {
                let is_min = op == Reduction::Min;
                let number = self.to.constant_of(value).map(|bits| lane.float_value(bits));
                let (old, value) = ([reg].as_slice().into(), [value].as_slice().into());
                let new = self.extremum(lane, is_min, (None, &old), (number, &value))[0];
                self.to.effect(Do::Assign { accumulator, value: new });
            } else {
                let code = accumulating_code(op, lane);
                self.to.effect(Do::Accumulate { accumulator, code, value, mask: masks[n] });
            }
            if parallel && !self.to.is_fixed(value) {
                let start = self.splat(lane, op.identity(lane))[0];
                let items = from..self.to.body.len();
                self.to.set_parallel(accumulator, Parallel { start, value, items });
            }
        }
    }
}

impl Lowering<'_> {
    /// Returns a mask and a constant if a value is the constant where the mask is set, and changes nothing elsewhere.
    fn counted_mask(&mut self, lane: Lane, op: Reduction, value: Value) -> Option<(Reg, Regs)> {
        let def = self.kernel.def(value);
        let (mask, bits) = match (def.op, op) {
            (Op::Convert, Reduction::Or | Reduction::Sum) if lane.is_int() => (def.args[0], 1),
            (Op::Select, _) if self.kernel.constant_bits(def.args[2]) == Some(op.identity(lane)) => {
                (def.args[0], self.kernel.constant_bits(def.args[1])?)
            }
            _ => return None,
        };
        (self.kernel.lane(mask) == Lane::Mask).then(|| (self.of(mask)[0], self.splat(lane, bits)))
    }
}

/// Returns the instruction that accumulates a vector.
fn accumulating_code(op: Reduction, lane: Lane) -> crate::x86::table::Code {
    let (float, signed) = (lane.is_float(), lane.is_signed());
    let pair = match op {
        Reduction::Sum if float => ADD,
        Reduction::Sum => IADD,
        Reduction::Product if float => MUL,
        Reduction::Product => IMUL,
        Reduction::Min if signed => SMIN,
        Reduction::Min => UMIN,
        Reduction::Max if signed => SMAX,
        Reduction::Max => UMAX,
        Reduction::And => AND,
        Reduction::Or => OR,
    };
    pick(pair, lane)
}
