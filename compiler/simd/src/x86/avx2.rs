//! Translates kernels to programs for AVX2.
//!
//! # Note: Halves
//! A group has sixteen iterations. A value with 32-bit lanes takes two vectors: one for the first eight iterations (the
//! first half), and one for the last eight (the second half). A value with 64-bit lanes takes two vectors for each
//! half. A mask is a vector whose lanes are all ones or all zeros. It has a form with 32-bit lanes and one with 64-bit
//! lanes, and each form is computed when an instruction needs it. No value passes from an iteration of one half to one
//! of the other. The lowering therefore emits the whole body for the first half and then for the second, which takes
//! half as many registers. A body with few live values is emitted for both halves at once, so that they share common
//! values. The last group has a body of its own, in which the mask of active iterations guards each access to memory
//! and each accumulation.
//!
//! - `arith`, `convert`, `narrow`: operations
//! - `masks`: masks as vectors
//! - `memory`, `interleaved`: loads, stores and accumulators
//! - `emit`: the machine code that only AVX2 has
//!
//! Invariant: each lane has the result of its operation, where any NaN may stand for any other; each iteration accesses
//! its elements in the order of the kernel.

mod arith;
mod convert;
mod emit;
mod interleaved;
mod masks;
mod memory;
mod narrow;

use super::inst::Reg;
use super::pairs::*;
use super::program::{Lanes, Program, moving};
use super::table::Code;
use super::{Level, Options};
use crate::ir::{Effect, Item, Kernel, Lane, Op, Value, any_nan, ranges};
use interleaved::Phases;
use masks::Mask;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The most live values of a body for which both halves are emitted at once.
const FEW: usize = 5;
/// The length of a dependence chain from which both halves are emitted at once, however many values are live. The
/// processor executes one half while the other waits for a result.
const DEEP: u32 = 12;
/// The length of a division or a square root in a dependence chain.
const SLOW: u32 = 3;

/// The vectors of a value for one half of the iterations.
type Regs = SmallVec<[Reg; 2]>;

/// The vectors of an accumulator for one half: its number in the program, and its register.
type Accumulators = SmallVec<[(usize, Reg); 2]>;

/// The state of a lowering.
struct Lowering<'k> {
    kernel: &'k Kernel,
    options: &'k Options,
    to: Program,
    ranges: Vec<(f64, f64)>,
    /// Whether each value is the bits of a float, of which any NaN may do.
    any_nan: Vec<bool>,
    /// The vectors of each value for each half.
    vectors: FxHashMap<(Value, u8), Regs>,
    masks: FxHashMap<(Value, u8), Mask>,
    /// Maps a register wrapped to less than 32 bits to the register before the wrap.
    unwrapped: FxHashMap<Reg, Reg>,
    /// The vectors of each accumulator, for both halves.
    accumulators: Vec<[Accumulators; 2]>,
    phases: Phases,
    /// Whether this is the body of the last group.
    tail: bool,
}

/// Translates a kernel.
pub(super) fn program(kernel: &Kernel, options: &Options) -> Program {
    let mut to = Program::new(Level::Avx2);
    to.pointers = moving(kernel, Level::Avx2);
    to.outer = kernel.outer;
    to.hoists = kernel.outer.is_some() && options.iterations.is_some_and(|n| n > 1);
    let mut lowering = Lowering {
        kernel,
        options,
        to,
        ranges: ranges(kernel),
        any_nan: any_nan(kernel),
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
    /// Emits the body for all iterations.
    fn whole(&mut self) {
        if self.active_count(1) == Some(0) {
            return self.body(&[0]);
        }
        if pressure(self.kernel) <= FEW || self.options.interleave && depth(self.kernel) >= DEEP {
            return self.body(&[0, 1]);
        }
        self.body(&[0]);
        self.body(&[1]);
    }

    /// Emits the body for the first half of the iterations, the second, or both.
    fn body(&mut self, halves: &[u8]) {
        let kernel = self.kernel;
        for item in &kernel.items {
            match item {
                // Loop invariants and iteration numbers are computed when they are first used.
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

    /// Returns the vectors of a value for one half.
    fn vectors(&mut self, value: Value, half: u8) -> Regs {
        if let Some(known) = self.vectors.get(&(value, half)) {
            return known.clone();
        }
        let regs = self.made(value, half);
        self.vectors.insert((value, half), regs.clone());
        regs
    }

    /// Returns the range of a float.
    fn range(&self, value: Value) -> (f64, f64) {
        self.ranges[value.0 as usize]
    }

    /// Returns the value of a constant float.
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

    /// Extracts the upper 128 bits.
    fn upper_128(&mut self, reg: Reg) -> Reg {
        self.to.make(super::inst::Op::Reversed { code: UPPER_128, immediate: Some(1) }, &[reg])
    }

    /// Returns a vector with a number in each lane of 32 or 64 bits.
    fn constant(&mut self, bits: u64, long: bool) -> Reg {
        self.to.constant(bits, if long { 8 } else { 4 })
    }

    /// Returns a value with the same bits in each element.
    fn splat(&mut self, lane: Lane, bits: u64) -> Regs {
        let reg = match lane {
            _ if lane.is_mask() => self.constant(if bits == 0 { 0 } else { u32::MAX.into() }, false),
            _ if lane.is_long() => self.constant(bits, true),
            _ if lane.is_int() => self.constant(u64::from(lane.integer_value(bits) as u32), false),
            _ => self.constant(bits & 0xffff_ffff, false),
        };
        SmallVec::from_elem(reg, if lane.is_long() { 2 } else { 1 })
    }

    /// Wraps integers of less than 32 bits to their range.
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

    /// Allocates the vectors of each accumulator.
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

/// Returns the length of the longest dependence chain in a group.
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

/// Returns the most vectors of a half that are live at once, not counting loop invariants.
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
