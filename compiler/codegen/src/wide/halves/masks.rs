//! Masks as vectors.
//!
//! Invariant: a lane of a mask is all ones or all zeros.

use super::Halves;
use crate::wide::codes::*;
use crate::wide::encode::Code;
use crate::wide::inst::{Op, Reg};

/// A mask for eight places, in one or both of its forms.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mask {
    /// Lanes of 32 bits.
    pub narrow: Option<Reg>,
    /// Lanes of 64 bits.
    pub long: Option<[Reg; 2]>,
}

impl Mask {
    fn narrow(reg: Reg) -> Mask {
        Mask { narrow: Some(reg), long: None }
    }
}

impl Halves<'_> {
    /// The mask that a register holds for some eight places.
    pub(super) fn mask(&mut self, reg: Reg, part: u8) -> Mask {
        if let Some(&known) = self.masks.get(&(reg, part)) {
            return known;
        }
        let from = self.from;
        let inst = from.made[reg.0 as usize].as_ref().expect("masks are not carried");
        let args = &inst.args;
        let mask = match inst.op {
            Op::Compare { code, immediate } => {
                let how = immediate.unwrap_or(0);
                if code.w == 1 {
                    let long = [0, 1].map(|q| {
                        let (a, b) = (self.vector(args[0], q), self.vector(args[1], q));
                        self.compared(code, how, a, b)
                    });
                    Mask { narrow: None, long: Some(long) }
                } else {
                    let (a, b) = (self.vector(args[0], part), self.vector(args[1], part));
                    Mask::narrow(self.compared(code, how, a, b))
                }
            }
            Op::Mask { code: MASK_SHIFT_RIGHT, .. } => self.mask(args[0], 1),
            Op::Mask { code: MASK_JOIN, .. } => self.mask(args[1 - usize::from(part)], 0),
            Op::Mask { code, .. } => {
                let masks = [args[0], args[args.len() - 1]].map(|a| self.mask(a, part));
                self.combined(code, masks)
            }
            op => unreachable!("{op:?} makes no mask"),
        };
        self.masks.insert((reg, part), mask);
        mask
    }

    fn combined(&mut self, code: Code, [a, b]: [Mask; 2]) -> Mask {
        if let (Some(x), Some(y), true) = (a.long, b.long, a.narrow.is_none() || b.narrow.is_none()) {
            let long = [0, 1].map(|q| self.of_masks(code, x[q], y[q]));
            return Mask { narrow: None, long: Some(long) };
        }
        let (x, y) = (self.narrow(a), self.narrow(b));
        Mask::narrow(self.of_masks(code, x, y))
    }

    fn of_masks(&mut self, code: Code, a: Reg, b: Reg) -> Reg {
        match code {
            MASK_AND => self.plain(AND[0], &[a, b]),
            MASK_AND_NOT => self.plain(AND_NOT, &[a, b]),
            MASK_OR => self.plain(OR[0], &[a, b]),
            MASK_XOR => self.plain(XOR[0], &[a, b]),
            MASK_NOT => self.inverted(a),
            MASK_EQUAL => {
                let differ = self.plain(XOR[0], &[a, b]);
                self.inverted(differ)
            }
            _ => unreachable!("{} is no operation on masks", code.name),
        }
    }

    pub(super) fn inverted(&mut self, mask: Reg) -> Reg {
        let ones = self.constant(0xffff_ffff, false);
        self.plain(XOR[0], &[mask, ones])
    }

    /// The lanes of 32 bits of a mask.
    pub(super) fn narrow(&mut self, mask: Mask) -> Reg {
        match (mask.narrow, mask.long) {
            (Some(narrow), _) => narrow,
            (None, Some([lower, upper])) => self.narrowed(lower, upper),
            (None, None) => unreachable!("a mask has a form"),
        }
    }

    /// The lanes of 64 bits of a mask: those of four places.
    pub(super) fn long(&mut self, mask: Mask, quarter: u8) -> Reg {
        match (mask.long, mask.narrow) {
            (Some(long), _) => long[usize::from(quarter)],
            (None, Some(narrow)) => self.widened(LONG_OF_INT[0], narrow, quarter),
            (None, None) => unreachable!("a mask has a form"),
        }
    }

    /// The lower halves of the lanes of two vectors, in order.
    pub(super) fn narrowed(&mut self, lower: Reg, upper: Reg) -> Reg {
        let mixed = self.with(SHUFFLE, 0b10_00_10_00, &[lower, upper]);
        self.with(QUARTERS, 0b11_01_10_00, &[mixed])
    }

    /// The places that there are, of eight.
    pub(super) fn there(&mut self, half: u8) -> Option<Mask> {
        self.tail.then(|| Mask::narrow(self.to.make(Op::There { half }, &[])))
    }

    /// The places of eight that are under a mask and there, if not all are.
    pub(super) fn under(&mut self, half: u8, mask: Option<Mask>) -> Option<Mask> {
        match (self.there(half), mask) {
            (Some(there), Some(mask)) => Some(self.combined(MASK_AND, [there, mask])),
            (there, mask) => there.or(mask),
        }
    }

    /// A comparison of vectors, by the immediate of the instruction that gives a mask.
    pub(super) fn compared(&mut self, code: Code, how: u8, a: Reg, b: Reg) -> Reg {
        let long = usize::from(code.w);
        if code == COMPARE[long] {
            return self.with(code, how, &[a, b]);
        }
        if code == TEST[long] {
            let both = self.plain(AND[0], &[a, b]);
            let zero = self.constant(0, long == 1);
            let none = self.plain(EQUAL[long], &[both, zero]);
            return self.inverted(none);
        }
        let (mut a, mut b) = (a, b);
        if code == UCOMPARE[long] && !matches!(how, 0 | 4) {
            (a, b) = (self.flipped(a, long), self.flipped(b, long));
        }
        let (greater, equal) = (GREATER[long], EQUAL[long]);
        match how {
            0 => self.plain(equal, &[a, b]),
            1 => self.plain(greater, &[b, a]),
            6 => self.plain(greater, &[a, b]),
            2 | 4 | 5 => {
                let not = match how {
                    2 => self.plain(greater, &[a, b]),
                    4 => self.plain(equal, &[a, b]),
                    _ => self.plain(greater, &[b, a]),
                };
                self.inverted(not)
            }
            _ => unreachable!("no comparison of integers has the number {how}"),
        }
    }

    /// An unsigned integer as the signed one that is ordered alike.
    pub(super) fn flipped(&mut self, x: Reg, long: usize) -> Reg {
        let sign = self.constant(if long == 1 { 1 << 63 } else { 1 << 31 }, long == 1);
        self.plain(XOR[0], &[x, sign])
    }
}
