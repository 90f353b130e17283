//! Translates kernels to programs for AVX-512.
//!
//! A value takes a 512-bit vector for each 64 bytes of a group's elements. Values with 64-bit lanes take two vectors:
//! one for the first eight iterations, and one for the last eight. Integers narrower than 32 bits have 32-bit lanes and
//! are wrapped to their range after each operation that may leave it; in narrow kernels they are packed (see `narrow`).
//! A mask is a mask register.
//!
//! - `arith`, `convert`, `narrow`: operations
//! - `masked`: selections, and operations under a mask
//! - `memory`: loads, stores and accumulators
//! - `emit`, `interleaved`: the machine code that only AVX-512 has
//!
//! Invariant: each lane has the result of its operation, where any NaN may stand for any other.

mod arith;
mod convert;
mod emit;
mod interleaved;
mod masked;
mod memory;
mod narrow;

use super::inst::{Op as Machine, Reg};
use super::pairs::*;
use super::program::{Lanes, Program, moving};
use super::table::Code;
use super::{Level, Options};
use crate::ir::{Item, Kernel, Lane, Value, any_nan, ranges};
use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};

/// The vectors of a value, or its mask.
type Regs = SmallVec<[Reg; 2]>;

/// The state of a lowering.
struct Lowering<'k> {
    kernel: &'k Kernel,
    options: &'k Options,
    to: Program,
    ranges: Vec<(f64, f64)>,
    /// Whether each value is the bits of a float, of which any NaN may do.
    any_nan: Vec<bool>,
    /// How many items of the kernel read each value.
    uses: Vec<u32>,
    /// The registers of each value.
    regs: Vec<Regs>,
    /// Maps a register wrapped to less than 32 bits to the register before the wrap.
    unwrapped: FxHashMap<Reg, Reg>,
    /// The vectors of each accumulator.
    accumulators: Vec<SmallVec<[(usize, Reg); 2]>>,
}

/// Translates a kernel.
pub(super) fn program(kernel: &Kernel, options: &Options) -> Program {
    let mut to = Program::new(Level::Avx512);
    to.pointers = moving(kernel, Level::Avx512);
    to.outer = kernel.outer;
    to.hoists = kernel.outer.is_some() && options.iterations.is_some_and(|n| n > 1);
    let mut lowering = Lowering {
        kernel,
        options,
        to,
        ranges: ranges(kernel),
        any_nan: any_nan(kernel),
        uses: kernel.uses(),
        regs: vec![Regs::new(); kernel.defs.len()],
        unwrapped: FxHashMap::default(),
        accumulators: Vec::new(),
    };
    lowering.begin_accumulators();
    lowering.note_phases();
    for item in &kernel.items {
        match item {
            Item::Make(value) => {
                let regs = lowering.made(*value);
                lowering.regs[value.0 as usize] = regs;
            }
            Item::Do(effect) => lowering.effect(effect),
        }
    }
    lowering.to.prune();
    lowering.to
}

impl Lowering<'_> {
    /// Returns the vectors of a value that has been computed.
    fn of(&self, value: Value) -> Regs {
        self.regs[value.0 as usize].clone()
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

    fn each(&mut self, code: Code, immediate: Option<u8>, values: &[&Regs]) -> Regs {
        let parts = values[0].len();
        (0..parts)
            .map(|n| {
                let args: SmallVec<[Reg; 2]> = values.iter().map(|v| v[n]).collect();
                self.to.make(Machine::Plain { code, immediate }, &args)
            })
            .collect()
    }

    fn mask(&mut self, code: Code, args: &[Reg]) -> Reg {
        self.to.make(Machine::Mask { code, immediate: None }, args)
    }

    /// Returns the mask for each vector of a lane type. With 64-bit lanes, the second mask has the last eight
    /// iterations in its low eight bits.
    fn masks(&mut self, lane: Lane, mask: Reg) -> Regs {
        if !lane.is_long() {
            return smallvec![mask];
        }
        let upper = self.to.make(Machine::Mask { code: MASK_SHIFT_RIGHT, immediate: Some(8) }, &[mask]);
        smallvec![mask, upper]
    }

    /// Joins the masks of each vector into one mask.
    fn one_mask(&mut self, masks: &[Reg]) -> Reg {
        match *masks {
            [lower, upper] => self.mask(MASK_JOIN, &[upper, lower]),
            _ => masks[0],
        }
    }

    /// Extracts the upper eight of sixteen 32-bit lanes.
    fn upper(&mut self, reg: Reg) -> Reg {
        self.to.make(Machine::Reversed { code: UPPER, immediate: Some(1) }, &[reg])
    }

    /// Joins two vectors of eight 32-bit lanes.
    fn joined(&mut self, halves: &[Reg]) -> Reg {
        self.to.with(JOIN, 1, halves)
    }

    /// Returns a value with the same bits in each element.
    fn splat(&mut self, lane: Lane, bits: u64) -> Regs {
        if lane.is_mask() {
            let zero = self.to.constant(0, 4);
            let code = if bits == 0 { MASK_XOR } else { MASK_EQUAL };
            let some = self.to.make(Machine::Compare { code: TEST[0], immediate: None }, &[zero, zero]);
            return smallvec![self.mask(code, &[some, some])];
        }
        if lane.is_long() {
            let reg = self.to.constant(bits, 8);
            return smallvec![reg; 2];
        }
        let bits = if lane.is_int() { lane.integer_value(bits) as u32 } else { bits as u32 };
        smallvec![self.to.constant(bits.into(), 4)]
    }

    /// Wraps an integer of less than 32 bits to its range.
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
            let low = self.to.constant((1 << bits) - 1, 4);
            self.to.plain(AND[0], &[x, low])
        };
        self.unwrapped.insert(reg, x);
        smallvec![reg]
    }

    /// Returns the place of the n-th vector of an accumulator in the record.
    fn lanes(&self, lane: Lane, offset: u32, n: usize) -> Lanes {
        Lanes { offset: offset + 64 * n as u32, long: lane.is_long(), upper: n == 1 }
    }
}
