//! Masks as vectors.
//!
//! Invariant: each lane of a mask is all ones or all zeros.

use super::{Lowering, Regs};
use crate::ir::{Cond, GROUP, Lane, Op, Value};
use crate::x86::inst::{Op as Machine, Reg};
use crate::x86::pairs::{order, *};
use crate::x86::table::Code;

/// A mask for eight iterations, in one or both of its forms.
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

/// An operation on two masks.
#[derive(Clone, Copy)]
enum Both {
    And,
    AndNot,
    Or,
    Xor,
}

impl Lowering<'_> {
    /// Returns the mask of one half of the iterations.
    pub(super) fn mask(&mut self, value: Value, half: u8) -> Mask {
        if let Some(&known) = self.masks.get(&(value, half)) {
            return known;
        }
        let mask = self.made_mask(value, half);
        self.masks.insert((value, half), mask);
        mask
    }

    fn made_mask(&mut self, value: Value, half: u8) -> Mask {
        let kernel = self.kernel;
        let def = kernel.def(value);
        let of = |s: &mut Self, n: usize| s.mask(def.args[n], half);
        match def.op {
            Op::Constant { bits } => Mask::narrow(self.splat(Lane::Mask, bits)[0]),
            Op::Compare(cond) if kernel.lane(def.args[0]).is_mask() => {
                let (a, b) = (of(self, 0), of(self, 1));
                self.compare_masks(cond, a, b)
            }
            Op::Compare(cond) => {
                let lane = kernel.lane(def.args[0]);
                let (a, b) = (self.vectors(def.args[0], half), self.vectors(def.args[1], half));
                self.compare(lane, cond, &a, &b)
            }
            Op::Convert => {
                let lane = kernel.lane(def.args[0]);
                let (x, zero) = (self.vectors(def.args[0], half), self.splat(lane, 0));
                self.compare(lane, Cond::Ne, &x, &zero)
            }
            Op::Not => {
                let mask = of(self, 0);
                self.inverted(mask)
            }
            Op::Select => {
                let (mask, yes, no) = (of(self, 0), of(self, 1), of(self, 2));
                let yes = self.both(Both::And, mask, yes);
                let no = self.both(Both::AndNot, mask, no);
                self.both(Both::Or, yes, no)
            }
            op => {
                let (a, b) = (of(self, 0), of(self, 1));
                let op = match op {
                    Op::And => Both::And,
                    Op::Or => Both::Or,
                    Op::Xor => Both::Xor,
                    op => unreachable!("{op:?} makes no mask"),
                };
                self.both(op, a, b)
            }
        }
    }

    fn compare_masks(&mut self, cond: Cond, a: Mask, b: Mask) -> Mask {
        let (op, a, b, inverted) = match cond {
            Cond::Eq => (Both::Xor, a, b, true),
            Cond::Ne => (Both::Xor, a, b, false),
            Cond::Lt => (Both::AndNot, a, b, false),
            Cond::Gt => (Both::AndNot, b, a, false),
            Cond::Le => (Both::AndNot, b, a, true),
            Cond::Ge => (Both::AndNot, a, b, true),
        };
        let mask = self.both(op, a, b);
        if inverted { self.inverted(mask) } else { mask }
    }

    fn both(&mut self, op: Both, a: Mask, b: Mask) -> Mask {
        let code = match op {
            Both::And => AND[0],
            Both::AndNot => AND_NOT,
            Both::Or => OR[0],
            Both::Xor => XOR[0],
        };
        if let (Some(x), Some(y), true) = (a.long, b.long, a.narrow.is_none() || b.narrow.is_none()) {
            let long = [0, 1].map(|q| self.to.plain(code, &[x[q], y[q]]));
            return Mask { narrow: None, long: Some(long) };
        }
        let (x, y) = (self.narrow_form(a), self.narrow_form(b));
        Mask::narrow(self.to.plain(code, &[x, y]))
    }

    fn inverted(&mut self, mask: Mask) -> Mask {
        match (mask.narrow, mask.long) {
            (None, Some(long)) => Mask { narrow: None, long: Some(long.map(|reg| self.inverted_lanes(reg))) },
            _ => {
                let narrow = self.narrow_form(mask);
                Mask::narrow(self.inverted_lanes(narrow))
            }
        }
    }

    pub(super) fn inverted_lanes(&mut self, mask: Reg) -> Reg {
        self.to.with_number(XOR, false, mask, u64::MAX)
    }

    /// Returns the form of a mask with 32-bit lanes.
    pub(super) fn narrow_form(&mut self, mask: Mask) -> Reg {
        match (mask.narrow, mask.long) {
            (Some(narrow), _) => narrow,
            (None, Some([lower, upper])) => self.narrowed(lower, upper),
            (None, None) => unreachable!("a mask has a form"),
        }
    }

    /// Returns a mask in the form for 32-bit lanes, or for the 64-bit lanes of a quarter of the iterations.
    pub(super) fn form(&mut self, mask: Mask, long: bool, quarter: usize) -> Reg {
        match (mask.long, mask.narrow) {
            _ if !long => self.narrow_form(mask),
            (Some(long), _) => long[quarter],
            (None, Some(narrow)) => self.widened(LONG_OF_INT[0], narrow, quarter),
            (None, None) => unreachable!("a mask has a form"),
        }
    }

    /// Joins the lower halves of the 64-bit lanes of two vectors, in order.
    pub(super) fn narrowed(&mut self, lower: Reg, upper: Reg) -> Reg {
        let mixed = self.to.with(SHUFFLE, 0b10_00_10_00, &[lower, upper]);
        self.to.with(QUARTERS, 0b11_01_10_00, &[mixed])
    }

    /// Returns the number of active iterations of a half in the last group, if it is known.
    pub(super) fn active_count(&self, half: u8) -> Option<u8> {
        let last = (self.options.iterations.filter(|_| self.tail)? % GROUP) as u8;
        Some(last.saturating_sub(8 * half).min(8))
    }

    /// Returns the mask of active iterations of a half, if some may be inactive.
    pub(super) fn active(&mut self, half: u8) -> Option<Mask> {
        let some = self.tail && self.active_count(half) != Some(8);
        some.then(|| Mask::narrow(self.to.make(Machine::Active { half }, &[])))
    }

    /// Returns the mask of all iterations.
    pub(super) fn all(&mut self) -> Mask {
        Mask::narrow(self.constant(u32::MAX.into(), false))
    }

    /// Returns the active iterations of a half for which a mask is set; `None` if that is all of them.
    pub(super) fn under(&mut self, half: u8, mask: Option<Value>) -> Option<Mask> {
        let mask = mask.map(|mask| self.mask(mask, half));
        match (self.active(half), mask) {
            (Some(active), Some(mask)) => Some(self.both(Both::And, active, mask)),
            (active, mask) => active.or(mask),
        }
    }

    /// Emits `mask ? yes : no` for vectors of a lane type.
    pub(super) fn blend(&mut self, lane: Lane, mask: Mask, yes: &Regs, no: &Regs) -> Regs {
        (0..yes.len())
            .map(|n| {
                let mask = self.form(mask, lane.is_long(), n);
                self.blend_one(lane.is_long(), mask, yes[n], no[n])
            })
            .collect()
    }

    /// Emits `mask ? yes : no` for one vector. A selection from zeros is one logical instruction; one between ones and
    /// zeros is the mask itself.
    fn blend_one(&mut self, long: bool, mask: Reg, yes: Reg, no: Reg) -> Reg {
        let ones = if long { u64::MAX } else { u32::MAX.into() };
        match (self.to.constant_of(yes), self.to.constant_of(no)) {
            (Some(bits), Some(0)) if bits == ones => mask,
            (_, Some(0)) => self.to.plain(AND[0], &[mask, yes]),
            (Some(0), _) => self.to.plain(AND_NOT, &[mask, no]),
            _ => self.to.make(Machine::BlendBy { code: BLEND_BY[usize::from(long)] }, &[mask, no, yes]),
        }
    }

    fn compare(&mut self, lane: Lane, cond: Cond, a: &Regs, b: &Regs) -> Mask {
        let lanes: Regs = a.iter().zip(b).map(|(&a, &b)| self.compared(lane, cond, a, b)).collect();
        match *lanes {
            [lower, upper] => Mask { narrow: None, long: Some([lower, upper]) },
            _ => Mask::narrow(lanes[0]),
        }
    }

    /// Compares floats by the immediate of the instruction.
    pub(super) fn ordered(&mut self, lane: Lane, how: u8, a: &Regs, b: &Regs) -> Mask {
        let code = COMPARE[usize::from(lane.is_long())];
        let lanes: Regs = a.iter().zip(b).map(|(&a, &b)| self.to.with(code, how, &[a, b])).collect();
        match *lanes {
            [lower, upper] => Mask { narrow: None, long: Some([lower, upper]) },
            _ => Mask::narrow(lanes[0]),
        }
    }

    fn compared(&mut self, lane: Lane, cond: Cond, a: Reg, b: Reg) -> Reg {
        let long = usize::from(lane.is_long());
        if lane.is_float() {
            return self.to.with(COMPARE[long], order::of_floats(cond), &[a, b]);
        }
        let unsigned = !lane.is_signed() && lane.bytes() >= 4 && !matches!(cond, Cond::Eq | Cond::Ne);
        let (a, b) = if unsigned { (self.flipped(a, long == 1), self.flipped(b, long == 1)) } else { (a, b) };
        self.compared_signed((EQUAL[long], GREATER[long]), cond, a, b)
    }

    pub(super) fn compared_signed(&mut self, (equal, greater): (Code, Code), cond: Cond, a: Reg, b: Reg) -> Reg {
        let (code, a, b, inverted) = match cond {
            Cond::Eq => (equal, a, b, false),
            Cond::Lt => (greater, b, a, false),
            Cond::Gt => (greater, a, b, false),
            Cond::Le => (greater, a, b, true),
            Cond::Ne => (equal, a, b, true),
            Cond::Ge => (greater, b, a, true),
        };
        let mask = self.to.plain(code, &[a, b]);
        if inverted { self.inverted_lanes(mask) } else { mask }
    }

    /// Flips the top bit of an unsigned integer, so that a signed comparison gives its order.
    pub(super) fn flipped(&mut self, x: Reg, long: bool) -> Reg {
        self.to.with_number(XOR, long, x, if long { 1 << 63 } else { 1 << 31 })
    }
}
