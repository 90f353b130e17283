//! Narrow kernels: packed integers of 8 and 16 bits. Each 32-bit lane of a vector has the four bytes of one iteration.
//!
//! 8-bit elements take one vector. Where an iteration has four elements, 16-bit values take two vectors: one for even
//! elements, and one for odd elements. Conversions between the two forms stay within 32-bit lanes, so that loads,
//! stores and the mask of the last group are those of 32-bit lanes.
//!
//! Invariant: each lane has the exact bits of its operation.

use super::{Lowering, Regs};
use crate::ir::{Def, Lane, Op};
use crate::x86::inst::{Op as Machine, Reg};
use crate::x86::integers::repeated;
use crate::x86::pairs::{order, *};
use crate::x86::table::Code;
use smallvec::smallvec;

/// The low byte of each 16-bit lane.
const EVEN: u64 = 0x00ff_00ff;

impl Lowering<'_> {
    /// Returns the number of vectors of a value.
    fn vectors(&self, lane: Lane) -> usize {
        usize::from(self.kernel.per_iteration) * lane.bytes() as usize / 4
    }

    /// Computes the vectors of a value of a narrow kernel.
    pub(super) fn narrow(&mut self, def: &Def) -> Regs {
        let args: Vec<Regs> = def.args.iter().map(|&a| self.of(a)).collect();
        let lane = def.lane;
        match (def.op, args.as_slice()) {
            (Op::Constant { bits }, []) if lane.bytes() < 4 => {
                let reg = self.to.constant(repeated(bits, lane.bits()), 4);
                smallvec![reg; self.vectors(lane)]
            }
            (Op::Constant { bits }, []) => self.splat(lane, bits),
            (Op::Uniform { offset }, []) => {
                let reg = self.to.make(Machine::Uniform { offset, bytes: lane.bytes() as u8 }, &[]);
                smallvec![reg; self.vectors(lane).max(1)]
            }
            (Op::Not, [x]) if lane.is_mask() => self.each_mask(LONG_MASK_NOT, &[x]),
            (Op::And, [a, b]) if lane.is_mask() => self.each_mask(LONG_MASK_AND, &[a, b]),
            (Op::Or, [a, b]) if lane.is_mask() => self.each_mask(LONG_MASK_OR, &[a, b]),
            (Op::Compare(cond), [a, b]) => {
                let from = self.kernel.lane(def.args[0]);
                let pair = if from.is_signed() { NARROW_COMPARE } else { NARROW_UCOMPARE };
                let op = Machine::Compare { code: narrow(pair, from), immediate: Some(order::of_integers(cond)) };
                (0..a.len()).map(|n| self.to.make(op, &[a[n], b[n]])).collect()
            }
            (Op::Select, [mask, yes, no]) => {
                let op = Machine::Blend { code: narrow(NARROW_BLEND, lane) };
                (0..yes.len()).map(|n| self.to.make(op, &[mask[n], no[n], yes[n]])).collect()
            }
            (Op::Convert | Op::Bits, [x]) => self.narrow_converted(self.kernel.lane(def.args[0]), lane, x),
            (Op::SumNeighbours, [x]) => smallvec![self.narrow_sum(self.kernel.lane(def.args[0]), x)],
            (Op::DotNeighbours, [x, y]) => smallvec![self.narrow_dot(x, y)],
            (Op::Neg, [x]) => {
                let zero: Regs = smallvec![self.to.constant(0, 4); x.len()];
                self.each(narrow(NARROW_SUB, lane), None, &[&zero, x])
            }
            (Op::Not, [x]) => {
                let ones: Regs = smallvec![self.to.constant(u32::MAX.into(), 4); x.len()];
                self.each(XOR[0], None, &[x, &ones])
            }
            (Op::Abs, [x]) if lane.is_signed() => self.each(narrow(NARROW_ABS, lane), None, &[x]),
            (Op::Abs, [x]) => x.clone(),
            (Op::Shl { by }, [x]) => self.narrow_shift(lane, x, WORD_SHIFT, by, 0xffu8 << (by & 7)),
            (Op::Shr { by }, [x]) => {
                let code = if lane.is_signed() { WORD_SHIFT_RIGHT_SIGNED } else { WORD_SHIFT_RIGHT };
                assert!(lane.bits() == 16 || !lane.is_signed(), "signed lanes of 8 bits are not shifted right");
                self.narrow_shift(lane, x, code, by, 0xffu8 >> (by & 7))
            }
            (op, [a, b]) => self.each(narrow_code(op, lane), None, &[a, b]),
            _ => unreachable!("narrow kernels have no {:?}", def.op),
        }
    }

    fn each_mask(&mut self, code: Code, args: &[&Regs]) -> Regs {
        (0..args[0].len())
            .map(|n| {
                let args: Regs = args.iter().map(|a| a[n]).collect();
                self.mask(code, &args)
            })
            .collect()
    }

    /// Shifts lanes. There are no shifts of 8-bit lanes: bits from the neighbouring byte are masked out.
    fn narrow_shift(&mut self, lane: Lane, x: &Regs, code: Code, by: u8, kept: u8) -> Regs {
        x.iter()
            .map(|&reg| {
                let shifted = self.to.shift(code, by, reg);
                if lane.bits() == 16 {
                    return shifted;
                }
                let kept = self.to.constant(repeated(kept.into(), 8), 4);
                self.to.plain(AND[0], &[shifted, kept])
            })
            .collect()
    }

    fn narrow_converted(&mut self, from: Lane, to: Lane, x: &Regs) -> Regs {
        match (from.bits(), to.bits()) {
            (8, 16) => {
                let even = if from.is_signed() {
                    let up = self.to.shift(WORD_SHIFT, 8, x[0]);
                    self.to.shift(WORD_SHIFT_RIGHT_SIGNED, 8, up)
                } else {
                    self.to.with_number(AND, false, x[0], EVEN)
                };
                let code = if from.is_signed() { WORD_SHIFT_RIGHT_SIGNED } else { WORD_SHIFT_RIGHT };
                smallvec![even, self.to.shift(code, 8, x[0])]
            }
            (16, 8) => {
                let even = self.to.with_number(AND, false, x[0], EVEN);
                let odd = self.to.shift(WORD_SHIFT, 8, x[1]);
                smallvec![self.to.plain(OR[0], &[even, odd])]
            }
            (a, b) if a == b => x.clone(),
            _ => unreachable!("narrow kernels have lanes of 8 and 16 bits"),
        }
    }

    /// Sums the elements within each 32-bit lane: unsigned bytes, or 16-bit lanes below 2^15.
    fn narrow_sum(&mut self, from: Lane, x: &Regs) -> Reg {
        let ones = self.to.constant(repeated(1, 16), 4);
        if from.bits() == 8 {
            assert!(!from.is_signed(), "sums are of unsigned bytes");
            let bytes = self.to.constant(repeated(1, 8), 4);
            let pairs = self.to.plain(ADD_BYTE_PRODUCTS, &[x[0], bytes]);
            return self.to.plain(ADD_PRODUCTS, &[pairs, ones]);
        }
        self.narrow_dot(x, &smallvec![ones; x.len()])
    }

    /// Sums products of signed 16-bit lanes within each 32-bit lane.
    fn narrow_dot(&mut self, x: &Regs, y: &Regs) -> Reg {
        let sums = self.each(ADD_PRODUCTS, None, &[x, y]);
        match *sums {
            [even, odd] => self.to.plain(IADD[0], &[even, odd]),
            _ => sums[0],
        }
    }
}
