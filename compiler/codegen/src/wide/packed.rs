//! Integers of 8 and 16 bits side by side: each lane of 32 bits holds four bytes of memory, whatever elements those are.
//!
//! Elements of 8 bits are one vector as they are. In lanes of 16 bits they take two: the even ones, and the odd ones. What
//! moves them apart and together again stays in its lane, so that loads, stores and masks of what is left are those of
//! lanes of 32 bits.
//!
//! Invariant: an operation gives the low bits of its result in each lane, as many as the lane has.

use super::arith::order;
use super::codes::*;
use super::encode::Code;
use super::inst::{Op, Reg};
use super::program::Program;
use girder_ir::codelet::BinaryOp;
use smallvec::{SmallVec, smallvec};

/// Four bytes of elements in each lane of 32 bits, in lanes of 8 or 16.
#[derive(Clone, Debug)]
pub(crate) struct Packed {
    pub bits: u8,
    pub regs: SmallVec<[Reg; 2]>,
}

/// The low byte of each 16 bits.
const EVEN: u64 = 0x00ff_00ff;

/// Of a pair, the instruction on lanes of some bits.
fn of(pair: Pair, bits: u8) -> Code {
    pair[usize::from(bits == 16)]
}

/// A number in all lanes of 32 bits.
pub(crate) fn repeated(number: i128, bits: u8) -> u64 {
    match bits {
        8 => u64::from(number as u8) * 0x0101_0101,
        _ => u64::from(number as u16) * 0x0001_0001,
    }
}

impl Program {
    /// A register for each of `like`, with the same number in every lane.
    pub fn packed_number(&mut self, number: i128, bits: u8, count: usize) -> Packed {
        let reg = self.constant(repeated(number, bits), 4);
        Packed { bits, regs: smallvec![reg; count] }
    }

    /// An instruction on each vector.
    pub fn packed(&mut self, pair: Pair, x: &Packed, y: &Packed) -> Packed {
        let code = of(pair, x.bits);
        let regs = x.regs.iter().zip(&y.regs).map(|(&a, &b)| self.plain(code, &[a, b])).collect();
        Packed { bits: x.bits, regs }
    }

    /// The absolute value of signed lanes.
    pub fn packed_abs(&mut self, x: &Packed) -> Packed {
        let code = of(NARROW_ABS, x.bits);
        Packed { bits: x.bits, regs: x.regs.iter().map(|&a| self.plain(code, &[a])).collect() }
    }

    /// The low bits of a product of lanes of 16 bits.
    pub fn packed_product(&mut self, x: &Packed, y: &Packed) -> Packed {
        let regs = x.regs.iter().zip(&y.regs).map(|(&a, &b)| self.plain(WORD_MUL, &[a, b])).collect();
        Packed { bits: 16, regs }
    }

    fn words(&mut self, code: Code, by: u8, reg: Reg) -> Reg {
        let digit = match code {
            WORD_SHIFT => 6,
            WORD_SHIFT_RIGHT => 2,
            _ => 4,
        };
        self.make(Op::Shift { code, digit, by }, &[reg])
    }

    /// `x << by`, where `by` is less than the bits of a lane.
    pub fn packed_left(&mut self, x: &Packed, by: u8) -> Packed {
        self.packed_shift(x, WORD_SHIFT, by, i128::from(0xffu8 << (by & 7)))
    }

    /// `x >> by`, where `by` is less than the bits of a lane; signed ones have 16 bits.
    pub fn packed_right(&mut self, x: &Packed, by: u8, signed: bool) -> Packed {
        let code = if signed { WORD_SHIFT_RIGHT_SIGNED } else { WORD_SHIFT_RIGHT };
        self.packed_shift(x, code, by, i128::from(0xffu8 >> (by & 7)))
    }

    /// There are no shifts of lanes of 8 bits: what comes from the neighbour is cut off.
    fn packed_shift(&mut self, x: &Packed, code: Code, by: u8, kept: i128) -> Packed {
        let shifted = |p: &mut Self, reg: Reg| {
            let shifted = p.words(code, by, reg);
            if x.bits == 16 {
                return shifted;
            }
            let kept = p.constant(repeated(kept, 8), 4);
            p.plain(AND[0], &[shifted, kept])
        };
        Packed { bits: x.bits, regs: x.regs.iter().map(|&reg| shifted(self, reg)).collect() }
    }

    /// Lanes of 8 bits as twice as many of 16.
    pub fn packed_wider(&mut self, x: &Packed, signed: bool) -> Packed {
        let x = x.regs[0];
        let even = if signed {
            let up = self.words(WORD_SHIFT, 8, x);
            self.words(WORD_SHIFT_RIGHT_SIGNED, 8, up)
        } else {
            let even = self.constant(EVEN, 4);
            self.plain(AND[0], &[x, even])
        };
        let odd = self.words(if signed { WORD_SHIFT_RIGHT_SIGNED } else { WORD_SHIFT_RIGHT }, 8, x);
        Packed { bits: 16, regs: smallvec![even, odd] }
    }

    /// The low 8 bits of lanes of 16.
    pub fn packed_narrower(&mut self, x: &Packed) -> Packed {
        let even = self.constant(EVEN, 4);
        let even = self.plain(AND[0], &[x.regs[0], even]);
        let odd = self.words(WORD_SHIFT, 8, x.regs[1]);
        Packed { bits: 8, regs: smallvec![self.plain(OR[0], &[even, odd])] }
    }

    /// The masks of the lanes where a comparison holds.
    pub fn packed_compare(&mut self, op: BinaryOp, x: &Packed, y: &Packed, signed: bool) -> SmallVec<[Reg; 2]> {
        let code = of(if signed { NARROW_COMPARE } else { NARROW_UCOMPARE }, x.bits);
        let op = Op::Compare { code, immediate: Some(order::of_integers(op)) };
        x.regs.iter().zip(&y.regs).map(|(&a, &b)| self.make(op, &[a, b])).collect()
    }

    /// `mask ? yes : no`
    pub fn packed_select(&mut self, masks: &[Reg], yes: &Packed, no: &Packed) -> Packed {
        let op = Op::Blend { code: of(NARROW_BLEND, yes.bits) };
        let regs = (0..yes.regs.len()).map(|n| self.make(op, &[masks[n], no.regs[n], yes.regs[n]])).collect();
        Packed { bits: yes.bits, regs }
    }

    /// In each lane of 32 bits the sum of what it holds: unsigned bytes, or signed lanes of 16 bits.
    pub fn packed_sum(&mut self, x: &Packed) -> Reg {
        let ones = self.constant(repeated(1, 16), 4);
        if x.bits == 8 {
            let bytes = self.constant(repeated(1, 8), 4);
            let pairs = self.plain(ADD_BYTE_PRODUCTS, &[x.regs[0], bytes]);
            return self.plain(ADD_PRODUCTS, &[pairs, ones]);
        }
        let ones = Packed { bits: 16, regs: smallvec![ones; x.regs.len()] };
        self.packed_sum_of_products(x, &ones)
    }

    /// In each lane of 32 bits the sum of products of what it holds: signed lanes of 16 bits.
    pub fn packed_sum_of_products(&mut self, x: &Packed, y: &Packed) -> Reg {
        let sums: SmallVec<[Reg; 2]> =
            x.regs.iter().zip(&y.regs).map(|(&a, &b)| self.plain(ADD_PRODUCTS, &[a, b])).collect();
        match *sums {
            [even, odd] => self.plain(IADD[0], &[even, odd]),
            _ => sums[0],
        }
    }
}
