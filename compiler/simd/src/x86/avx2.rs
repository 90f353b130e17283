//! From kernels to programs for AVX2.
//!
//! # Note: Halves
//! A group's elements of 32 bits take two vectors: one for the first eight iterations, and one for the last eight.
//! Those of 64 bits take two for each half. A mask is a vector of ones and zeros, with lanes of 32 bits or of 64; each
//! form is made when it is asked for. Nothing goes from iterations of one half to those of the other, so that the whole
//! body is made for the first half and then for the second, which needs half the registers; a body that needs few is
//! made for both at once, which shares what is the same in both. The last group has a body of its own, where everything
//! that touches memory or an accumulator is under the mask of active iterations.
//!
//! - `arith`, `convert`, `narrow`: operations
//! - `masks`: masks as vectors
//! - `memory`, `interleaved`: loads, stores and accumulators
//! - `emit`: the machine code of what only this level has
//!
//! Invariant: each result is that of the operation in every lane; any NaN is as good as any other; elements are touched
//! in the same order for each iteration.

mod arith;
mod convert;
mod emit;
mod interleaved;
mod masks;
mod memory;
mod narrow;

use super::inst::Reg;
use super::pairs::*;
use super::program::{Lanes, Program};
use super::table::Code;
use super::{Level, Options, moving};
use crate::ir::{Effect, Item, Kernel, Lane, Op, Value, ranges};
use interleaved::Phases;
use masks::Mask;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// Values of a body that are live together up to which both halves are made at once.
const FEW: usize = 5;
/// Steps in a row from which both halves are made at once however many values are live: while one half waits for its
/// step before, a processor finds those of the other half.
const DEEP: u32 = 12;
/// Steps that a division or a square root takes as long as.
const SLOW: u32 = 3;

/// The vectors of a value for one half of the iterations.
type Regs = SmallVec<[Reg; 2]>;

/// The vectors of an accumulator for one half, by number and register.
type Accumulators = SmallVec<[(usize, Reg); 2]>;

/// A lowering under way.
struct Lowering<'k> {
    kernel: &'k Kernel,
    options: &'k Options,
    to: Program,
    ranges: Vec<(f64, f64)>,
    /// By value and half.
    vectors: FxHashMap<(Value, u8), Regs>,
    masks: FxHashMap<(Value, u8), Mask>,
    /// Of integers that were brought back into their range, what they were before.
    unwrapped: FxHashMap<Reg, Reg>,
    /// Of each accumulator the vectors of both halves.
    accumulators: Vec<[Accumulators; 2]>,
    phases: Phases,
    /// The body of the last group is made.
    tail: bool,
}

/// Translates a kernel.
pub(super) fn program(kernel: &Kernel, options: &Options) -> Program {
    let mut to = Program::new(Level::Avx2);
    to.pointers = moving(kernel);
    let mut lowering = Lowering {
        kernel,
        options,
        to,
        ranges: ranges(kernel),
        vectors: FxHashMap::default(),
        masks: FxHashMap::default(),
        unwrapped: FxHashMap::default(),
        accumulators: Vec::new(),
        phases: interleaved::phases(kernel, options),
        tail: false,
    };
    lowering.begin_accumulators();
    lowering.whole();
    let body = lowering.to.begin_tail();
    let stays = |value: Value| kernel.is_fixed(value) || matches!(kernel.def(value).op, Op::Index { .. });
    lowering.vectors.retain(|&(value, _), _| stays(value));
    lowering.masks.retain(|&(value, _), _| stays(value));
    lowering.tail = true;
    lowering.whole();
    lowering.to.tail = std::mem::replace(&mut lowering.to.body, body);
    lowering.to.prune();
    lowering.to
}

impl Lowering<'_> {
    /// The body for all iterations.
    fn whole(&mut self) {
        if self.active_count(1) == Some(0) {
            return self.body(&[0]);
        }
        if pressure(self.kernel) <= FEW || depth(self.kernel) >= DEEP {
            return self.body(&[0, 1]);
        }
        self.body(&[0]);
        self.body(&[1]);
    }

    /// The body for the first half of the iterations, the second, or both.
    fn body(&mut self, halves: &[u8]) {
        let kernel = self.kernel;
        for item in &kernel.items {
            match item {
                // What is the same in all groups, or counts them, waits until it is asked for.
                Item::Make(value) if kernel.is_fixed(*value) => {}
                Item::Make(value) if matches!(kernel.def(*value).op, Op::Index { .. }) => {}
                Item::Make(value) if kernel.lane(*value) == Lane::Mask => {
                    for &half in halves {
                        self.mask(*value, half);
                    }
                }
                Item::Make(value) => {
                    for &half in halves {
                        self.vectors(*value, half);
                    }
                }
                Item::Do(effect) => halves.iter().for_each(|&half| self.effect(effect, half)),
            }
        }
    }

    /// The vectors of a value for one half.
    fn vectors(&mut self, value: Value, half: u8) -> Regs {
        if let Some(known) = self.vectors.get(&(value, half)) {
            return known.clone();
        }
        let regs = self.made(value, half);
        self.vectors.insert((value, half), regs.clone());
        regs
    }

    /// The range of a float.
    fn range(&self, value: Value) -> (f64, f64) {
        self.ranges[value.0 as usize]
    }

    /// The value of a float that is a constant.
    fn number(&self, value: Value) -> Option<f64> {
        let bits = self.kernel.constant_bits(value)?;
        Some(self.kernel.lane(value).float_value(bits))
    }

    fn each(&mut self, code: Code, x: &Regs) -> Regs {
        x.iter().map(|&x| self.to.plain(code, &[x])).collect()
    }

    fn each_pair(&mut self, code: Code, a: &Regs, b: &Regs) -> Regs {
        a.iter().zip(b).map(|(&a, &b)| self.to.plain(code, &[a, b])).collect()
    }

    /// The upper 128 bits.
    fn upper_128(&mut self, reg: Reg) -> Reg {
        self.to.make(super::inst::Op::Reversed { code: UPPER_128, immediate: Some(1) }, &[reg])
    }

    /// A number in lanes of 32 or 64 bits.
    fn constant(&mut self, bits: u64, long: bool) -> Reg {
        self.to.constant(bits, if long { 8 } else { 4 })
    }

    /// The same bits in each element.
    fn splat(&mut self, lane: Lane, bits: u64) -> Regs {
        let reg = match lane {
            _ if lane.is_mask() => self.constant(if bits == 0 { 0 } else { u32::MAX.into() }, false),
            _ if lane.is_long() => self.constant(bits, true),
            _ if lane.is_int() => self.constant(u64::from(lane.integer_value(bits) as u32), false),
            _ => self.constant(bits & 0xffff_ffff, false),
        };
        SmallVec::from_elem(reg, if lane.is_long() { 2 } else { 1 })
    }

    /// Brings integers of less than 32 bits back into their range.
    fn in_range(&mut self, lane: Lane, regs: Regs) -> Regs {
        let bits = lane.bits() as u8;
        if !lane.is_int() || bits >= 32 {
            return regs;
        }
        let x = regs[0];
        let reg = if lane.is_signed() {
            let up = self.to.shift(SHIFT_LEFT[0], 32 - bits, x);
            self.to.shift(SHIFT_RIGHT_SIGNED[0], 32 - bits, up)
        } else {
            self.to.with_number(AND, false, x, (1 << bits) - 1)
        };
        self.unwrapped.insert(reg, x);
        [reg].as_slice().into()
    }

    /// Gives each accumulator its vectors.
    fn begin_accumulators(&mut self) {
        for accumulator in &self.kernel.accumulators {
            let lane = accumulator.lane;
            let start = accumulator.start.map(|bits| self.splat(lane, bits)[0]);
            let long = lane.is_long();
            let halves = [0u32, 1].map(|half| {
                let quarters = 0..1 + u32::from(long);
                let vector = |quarter| {
                    let offset = accumulator.offset + if long { 64 * half + 32 * quarter } else { 32 * half };
                    self.to.accumulator(Lanes { offset, long, upper: half == 1 }, start)
                };
                quarters.map(vector).collect()
            });
            self.accumulators.push(halves);
        }
    }
}

/// The most steps of a group that wait for each other.
fn depth(kernel: &Kernel) -> u32 {
    let mut depths: FxHashMap<Value, u32> = FxHashMap::default();
    for item in &kernel.items {
        let Item::Make(value) = *item else { continue };
        let def = kernel.def(value);
        let steps = match def.op {
            _ if kernel.is_fixed(value) => continue,
            Op::Load(_) | Op::Index { .. } => 0,
            Op::Div | Op::Sqrt => SLOW,
            _ => 1,
        };
        let before = def.args.iter().filter_map(|arg| depths.get(arg)).max();
        depths.insert(value, before.unwrap_or(&0) + steps);
    }
    depths.into_values().max().unwrap_or(0)
}

/// How many vectors of a half are live together at most, of what each group makes.
fn pressure(kernel: &Kernel) -> usize {
    let mut last: FxHashMap<Value, usize> = FxHashMap::default();
    let reads = |item: &Item| -> SmallVec<[Value; 4]> {
        match item {
            Item::Make(value) => kernel.def(*value).args.iter().copied().collect(),
            Item::Do(effect) => Effect::reads(effect),
        }
    };
    for (at, item) in kernel.items.iter().enumerate() {
        last.extend(reads(item).into_iter().map(|value| (value, at)));
    }
    let weight = |value: Value| match kernel.lane(value) {
        lane if lane.is_mask() || kernel.is_fixed(value) => 0,
        lane if lane.is_long() => 2,
        _ => 1,
    };
    let (mut live, mut most) = (0usize, 0);
    for (at, item) in kernel.items.iter().enumerate() {
        if let Item::Make(value) = item {
            live += weight(*value);
            most = most.max(live);
        }
        let mut seen: SmallVec<[Value; 4]> = SmallVec::new();
        for value in reads(item) {
            if last[&value] == at && !seen.contains(&value) {
                live -= weight(value);
                seen.push(value);
            }
        }
    }
    most
}
