//! Narrow kernels: packed integers of 8 and 16 bits. Each 32-bit lane of a vector has the four bytes of one iteration.
//!
//! For each half, 8-bit elements take one vector. Where an iteration has four elements, 16-bit values take two vectors:
//! one for even elements, and one for odd elements. A mask is a vector whose lanes have the width of the compared
//! values.
//!
//! Invariant: each lane has the exact bits of its operation.

use super::{Lowering, Regs};
use crate::ir::{Cond, Def, Lane, Op};
use crate::x86::inst::{Op as Machine, Reg};
use crate::x86::integers::repeated;
use crate::x86::pairs::*;
use crate::x86::table::Code;
use smallvec::smallvec;

/// The low byte of each 16-bit lane.
const EVEN: u64 = 0x00ff_00ff;

impl Lowering<'_> {
    /// Returns the number of vectors that a value takes for one half.
    fn narrow_vectors(&self, lane: Lane) -> usize {
        (usize::from(self.kernel.per_iteration) * lane.bytes() as usize / 4).max(1)
    }

    /// Computes the vectors of a value or a mask of a narrow kernel.
    pub(super) fn narrow(&mut self, def: &Def, half: u8) -> Regs {
        let args: Vec<Regs> = def.args.iter().map(|&a| self.vectors(a, half)).collect();
        let lane = def.lane;
        match (def.op, args.as_slice()) {
            (Op::Constant { bits }, []) if lane.bytes() < 4 => {
                let reg = self.constant(repeated(bits, lane.bits()), false);
                smallvec![reg; self.narrow_vectors(lane)]
            }
            (Op::Constant { bits }, []) => self.splat(lane, bits),
            (Op::Uniform { offset }, []) => {
                let reg = self.to.make(Machine::Uniform { offset, bytes: lane.bytes() as u8 }, &[]);
                smallvec![reg; self.narrow_vectors(lane)]
            }
            (Op::Compare(cond), [a, b]) => {
                let lane = self.kernel.lane(def.args[0]);
                a.iter().zip(b).map(|(&a, &b)| self.narrow_compared(lane, cond, a, b)).collect()
            }
            (Op::Select, [mask, yes, no]) => {
                let op = Machine::BlendBy { code: BLEND_BYTES_BY };
                (0..yes.len()).map(|n| self.to.make(op, &[mask[n], no[n], yes[n]])).collect()
            }
            (Op::Convert | Op::Bits, [x]) => self.narrow_converted(self.kernel.lane(def.args[0]), lane, x),
            (Op::SumNeighbours, [x]) => smallvec![self.narrow_sum(self.kernel.lane(def.args[0]), x)],
            (Op::DotNeighbours, [x, y]) => smallvec![self.narrow_dot(x, y)],
            (Op::Neg, [x]) => {
                let zero = self.constant(0, false);
                self.each_pair(narrow(NARROW_SUB, lane), &smallvec![zero; x.len()], x)
            }
            (Op::Not, [x]) => x.iter().map(|&x| self.inverted_lanes(x)).collect(),
            (Op::Abs, [x]) if lane.is_signed() => self.each(narrow(NARROW_ABS, lane), x),
            (Op::Abs, [x]) => x.clone(),
            (Op::Shl { by }, [x]) => self.narrow_shift(lane, x, WORD_SHIFT, by, 0xffu8 << (by & 7)),
            (Op::Shr { by }, [x]) => {
                let code = if lane.is_signed() { WORD_SHIFT_RIGHT_SIGNED } else { WORD_SHIFT_RIGHT };
                assert!(lane.bits() == 16 || !lane.is_signed(), "signed lanes of 8 bits are not shifted right");
                self.narrow_shift(lane, x, code, by, 0xffu8 >> (by & 7))
            }
            (Op::And, [a, b]) => self.each_pair(AND[0], a, b),
            (Op::Or, [a, b]) => self.each_pair(OR[0], a, b),
            (op, [a, b]) => self.each_pair(narrow_code(op, lane), a, b),
            _ => unreachable!("narrow kernels have no {:?}", def.op),
        }
    }

    /// Compares lanes. There are no comparisons of unsigned lanes: `a <= b` is `min(a, b) == a`.
    fn narrow_compared(&mut self, lane: Lane, cond: Cond, a: Reg, b: Reg) -> Reg {
        let (equal, greater) = (narrow(NARROW_EQUAL, lane), narrow(NARROW_GREATER, lane));
        if lane.is_signed() || matches!(cond, Cond::Eq | Cond::Ne) {
            return self.compared_signed((equal, greater), cond, a, b);
        }
        let pair = if matches!(cond, Cond::Le | Cond::Gt) { NARROW_UMIN } else { NARROW_UMAX };
        let first = self.to.plain(narrow(pair, lane), &[a, b]);
        let mask = self.to.plain(equal, &[first, a]);
        if matches!(cond, Cond::Lt | Cond::Gt) { self.inverted_lanes(mask) } else { mask }
    }

    /// Shifts lanes. There are no shifts of 8-bit lanes: bits from the neighbouring byte are masked out.
    fn narrow_shift(&mut self, lane: Lane, x: &Regs, code: Code, by: u8, kept: u8) -> Regs {
        x.iter()
            .map(|&reg| {
                let shifted = self.to.shift(code, by, reg);
                if lane.bits() == 16 {
                    return shifted;
                }
                self.to.with_number(AND, false, shifted, repeated(kept.into(), 8))
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
        let ones = self.constant(repeated(1, 16), false);
        if from.bits() == 8 {
            assert!(!from.is_signed(), "sums are of unsigned bytes");
            let bytes = self.constant(repeated(1, 8), false);
            let pairs = self.to.plain(ADD_BYTE_PRODUCTS, &[x[0], bytes]);
            return self.to.plain(ADD_PRODUCTS, &[pairs, ones]);
        }
        self.narrow_dot(x, &smallvec![ones; x.len()])
    }

    /// Sums products of signed 16-bit lanes within each 32-bit lane.
    fn narrow_dot(&mut self, x: &Regs, y: &Regs) -> Reg {
        let sums = self.each_pair(ADD_PRODUCTS, x, y);
        match *sums {
            [even, odd] => self.to.plain(IADD[0], &[even, odd]),
            _ => sums[0],
        }
    }
}
