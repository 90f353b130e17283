//! Comparisons, selections, and operations under a mask.
//!
//! An instruction of AVX-512 can leave lanes unchanged, or make them zero, so that an operation whose result is only
//! selected needs no instruction for the selection.
//!
//! Invariant: a mask applies to lanes of the width for which it was made.

use super::{Lowering, Regs};
use crate::ir::{Cond, Def, Lane, Op, Value};
use crate::x86::inst::{Inst, Op as Machine, Reg};
use crate::x86::pairs::{order, *};
use crate::x86::table::Code;
use smallvec::smallvec;

/// The bit of a comparison's immediate that inverts the condition. A comparison of floats then holds for NaN where the
/// original did not.
const INVERSE: u8 = 4;

impl Lowering<'_> {
    /// Emits a comparison of two vectors, or its inverse.
    pub(super) fn compare(&mut self, def: &Def, inverse: bool) -> Reg {
        let Op::Compare(cond) = def.op else { unreachable!("it is a comparison") };
        let (a, b) = (def.args[0], def.args[1]);
        let lane = self.kernel.lane(a);
        if let Some((code, x, y)) = self.common_bits(cond, (a, b), inverse) {
            let op = Machine::Compare { code, immediate: None };
            let masks: Regs = x.iter().zip(&y).map(|(&x, &y)| self.to.make(op, &[x, y])).collect();
            return self.one_mask(&masks);
        }
        let (code, immediate) = match lane.is_float() {
            true => (pick(COMPARE, lane), order::of_floats(cond)),
            false => {
                let signed = lane.is_signed() || lane.bytes() < 4;
                (pick(if signed { ICOMPARE } else { UCOMPARE }, lane), order::of_integers(cond))
            }
        };
        let (a, b) = (self.of(a), self.of(b));
        self.compared(code, if inverse { immediate ^ INVERSE } else { immediate }, &a, &b)[0]
    }

    /// Returns the instruction of `(x & y) == 0` or `!= 0`, and both operands.
    fn common_bits(&self, cond: Cond, (a, b): (Value, Value), inverse: bool) -> Option<(Code, Regs, Regs)> {
        let (lane, and) = (self.kernel.lane(a), self.kernel.def(a));
        if and.op != Op::And || self.kernel.constant_bits(b) != Some(0) {
            return None;
        }
        let pair = match (cond, inverse) {
            (Cond::Eq, false) | (Cond::Ne, true) => TEST_NONE,
            (Cond::Ne, false) | (Cond::Eq, true) => TEST,
            _ => return None,
        };
        Some((pick(pair, lane), self.of(and.args[0]), self.of(and.args[1])))
    }

    pub(super) fn compared(&mut self, code: Code, immediate: u8, a: &Regs, b: &Regs) -> Regs {
        let op = Machine::Compare { code, immediate: Some(immediate) };
        let masks: Regs = a.iter().zip(b).map(|(&x, &y)| self.to.make(op, &[x, y])).collect();
        smallvec![self.one_mask(&masks)]
    }

    /// Returns the inverse of a mask that one item reads.
    pub(super) fn inverse(&mut self, mask: Value) -> Reg {
        self.inverse_of_comparison(mask).unwrap_or_else(|| {
            let mask = self.of(mask)[0];
            self.mask(MASK_NOT, &[mask])
        })
    }

    /// Emits the inverse of a comparison of vectors, if nothing else needs the comparison.
    fn inverse_of_comparison(&mut self, mask: Value) -> Option<Reg> {
        let kernel = self.kernel;
        let def = kernel.def(mask);
        let vectors = matches!(def.op, Op::Compare(_)) && !kernel.lane(def.args[0]).is_mask();
        (vectors && self.uses[mask.0 as usize] == 1).then(|| self.compare(def, true))
    }

    /// Emits a selection. An operand that nothing else needs is computed under the mask.
    pub(super) fn selected(&mut self, def: &Def) -> Regs {
        let [mask, yes, no] = *def.args else { unreachable!("a selection has three operands") };
        let lane = def.lane;
        if self.has_masked_form(lane, yes, no) {
            let mask = self.of(mask)[0];
            return self.under_mask(lane, mask, yes, no);
        }
        if self.has_masked_form(lane, no, yes)
            && let Some(inverse) = self.inverse_of_comparison(mask)
        {
            return self.under_mask(lane, inverse, no, yes);
        }
        let [mask, yes, no] = [mask, yes, no].map(|v| self.of(v));
        self.select(lane, &mask, &yes, &no)
    }

    /// Returns whether one instruction can compute a value where a mask is set, with another value in the other lanes.
    /// The mask of a shuffle of bytes has a bit for each byte, not for each lane.
    fn has_masked_form(&self, lane: Lane, value: Value, other: Value) -> bool {
        let alone = self.uses[value.0 as usize] == 1 && !self.kernel.is_fixed(value);
        let zero = self.kernel.constant_bits(other) == Some(0);
        let width = u8::from(lane.is_long());
        alone
            && !lane.is_mask()
            && self.of(value).iter().all(|reg| {
                match self.to.made[reg.0 as usize].as_ref().map(|i| (i.op, i.args.len())) {
                    Some((Machine::Plain { code, immediate: None }, 2)) => {
                        code.facts().w == width && code.facts().masked && code != SHUFFLE_BYTES
                    }
                    Some((Machine::Fma { .. }, _)) => zero,
                    _ => false,
                }
            })
    }

    /// Emits a value where a mask is set, and `other` in the other lanes.
    fn under_mask(&mut self, lane: Lane, mask: Reg, value: Value, other: Value) -> Regs {
        let zero = self.kernel.constant_bits(other) == Some(0);
        let (masks, values, others) = (self.masks(lane, mask), self.of(value), self.of(other));
        (0..values.len())
            .map(|n| {
                let Inst { op, args } = self.to.made[values[n].0 as usize].clone().expect("it is computed");
                match (op, args.as_slice()) {
                    (Machine::Plain { code, .. }, &[a, b]) if zero => {
                        self.to.make(Machine::Zeroed { code }, &[masks[n], a, b])
                    }
                    (Machine::Plain { code, .. }, &[a, b]) => {
                        self.to.make(Machine::Merge { code }, &[masks[n], others[n], a, b])
                    }
                    (Machine::Fma { long, negated }, &[a, b, c]) => {
                        self.to.make(Machine::ZeroedFma { long, negated }, &[masks[n], a, b, c])
                    }
                    _ => unreachable!("{op:?} has no masked form"),
                }
            })
            .collect()
    }

    /// Emits `mask ? yes : no`.
    pub(super) fn select(&mut self, lane: Lane, mask: &Regs, yes: &Regs, no: &Regs) -> Regs {
        if lane.is_mask() {
            let yes = self.mask(MASK_AND, &[mask[0], yes[0]]);
            let no = self.mask(MASK_AND_NOT, &[mask[0], no[0]]);
            return smallvec![self.mask(MASK_OR, &[yes, no])];
        }
        let masks = self.masks(lane, mask[0]);
        let op = Machine::Blend { code: pick(BLEND, lane) };
        (0..yes.len()).map(|n| self.to.make(op, &[masks[n], no[n], yes[n]])).collect()
    }
}
