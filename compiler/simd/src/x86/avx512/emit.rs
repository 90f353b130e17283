//! The machine code of instructions that only AVX-512 has, with mask registers.
//!
//! Invariant: elements of iterations that the mask excludes are not accessed.

use crate::x86::emit::{Emit, Group};
use crate::x86::encode::{Masking, Rm};
use crate::x86::inst::{Effect, Elements, Op, Reg};
use crate::x86::pairs::*;
use crate::x86::registers::{SCRATCH_MASK, TAIL, TAIL_UPPER};

impl Emit<'_> {
    /// Emits the computation of a value.
    pub(in crate::x86) fn make_avx512(&mut self, reg: Reg, op: Op, args: &[Reg], group: Group) {
        let none = Masking::default();
        match op {
            Op::Whole { code, interleaved, nth } => {
                let n = self.r.result(reg);
                let rm = self.whole_address((interleaved, nth), group);
                let masking = self.whole_masking((interleaved, nth), group, None, true);
                self.r.out.vector(code, n, None, rm, masking, None);
            }
            Op::Bytes { interleaved } => {
                let n = self.r.result(reg);
                self.load_bytes(n, interleaved, group);
            }
            Op::Permute { code } => self.permute(reg, code, args),
            Op::Load { code, from } => {
                let under = args.first().map(|&mask| self.r.operand(mask));
                let n = self.r.result(reg);
                let rm = self.address(from, group, None);
                let masking = self.masking(from, group, under, true);
                self.r.out.vector(code, n, None, rm, masking, None);
                self.r.drop_dead(args);
            }
            Op::Gather { code, from } => {
                let offsets = self.r.operand(args[0]);
                let under = args.get(1).map(|&mask| self.r.operand(mask));
                let n = self.r.result(reg);
                self.scratch_mask(from, group, under);
                self.r.out.vector(XOR[0], n, Some(n), Rm::Register(n), none, None);
                let rm = self.address(from, group, Some(offsets));
                self.r.out.vector(code, n, None, rm, Masking { register: SCRATCH_MASK, zeroing: false }, None);
                self.r.drop_dead(args);
            }
            Op::ZeroedFma { long, negated } => {
                let k = self.r.operand(args[0]);
                self.fma(reg, &args[1..], (long, negated), Masking { register: k, zeroing: true });
                self.r.drop_dead(&args[..1]);
            }
            Op::Merge { code } => {
                let [mask, old, a, b] = *args else { unreachable!("it has four operands") };
                let [k, was, x, y] = [mask, old, a, b].map(|a| self.r.operand(a));
                let n = if self.gives_way(old, reg) {
                    self.r.rename(old, reg)
                } else {
                    let n = self.r.result(reg);
                    self.r.out.vector(COPY[0], n, None, Rm::Register(was), none, None);
                    n
                };
                self.r.out.vector(code, n, Some(x), Rm::Register(y), Masking { register: k, zeroing: false }, None);
                self.r.drop_dead(args);
            }
            op => self.make_simply(reg, op, args),
        }
    }

    /// Emits a store.
    pub(in crate::x86) fn store_avx512(&mut self, effect: Effect, group: Group) {
        match effect {
            Effect::Store { code, to, value, mask } => {
                let n = self.r.operand(value);
                let under = mask.map(|mask| self.r.operand(mask));
                let rm = self.address(to, group, None);
                let masking = self.masking(to, group, under, false);
                self.r.out.vector(code, n, None, rm, masking, None);
            }
            Effect::StoreWhole { code, interleaved, nth, value, mask } => {
                let n = self.r.operand(value);
                let under = mask.map(|mask| self.r.operand(mask));
                let rm = self.whole_address((interleaved, nth), group);
                let masking = self.whole_masking((interleaved, nth), group, under, false);
                self.r.out.vector(code, n, None, rm, masking, None);
            }
            Effect::Scatter { code, to, offsets, value, mask } => {
                let offsets = self.r.operand(offsets);
                let n = self.r.operand(value);
                let under = mask.map(|mask| self.r.operand(mask));
                self.scratch_mask(to, group, under);
                let rm = self.address(to, group, Some(offsets));
                self.r.out.vector(code, n, None, rm, Masking { register: SCRATCH_MASK, zeroing: false }, None);
            }
            _ => unreachable!("programs for AVX-512 have no {effect:?}"),
        }
    }

    /// Returns the mask of an access: the active lanes, or those of `under` that are active.
    fn masking(&mut self, at: Elements, group: Group, under: Option<u8>, zeroing: bool) -> Masking {
        let register = match (Self::active(at, group), under) {
            (0, under) => under.unwrap_or(0),
            (active, None) => active,
            (active, Some(under)) => {
                self.r.out.mask(MASK_AND, SCRATCH_MASK, Some(under), Rm::Register(active), None);
                SCRATCH_MASK
            }
        };
        Masking { register, zeroing: zeroing && register != 0 }
    }

    /// Returns the mask of the active lanes, or 0 if all are active.
    fn active(at: Elements, group: Group) -> u8 {
        match (group.tail, at.upper) {
            (false, _) => 0,
            (true, false) => TAIL,
            (true, true) => TAIL_UPPER,
        }
    }

    /// Fills the scratch mask for a gather or a scatter, which clobber their mask.
    fn scratch_mask(&mut self, at: Elements, group: Group, under: Option<u8>) {
        let lanes = self.masking(at, group, under, false).register;
        let out = &mut self.r.out;
        match lanes {
            SCRATCH_MASK => {}
            0 => out.mask(MASK_EQUAL, SCRATCH_MASK, Some(SCRATCH_MASK), Rm::Register(SCRATCH_MASK), None),
            _ => out.mask(MASK_LOAD, SCRATCH_MASK, None, Rm::Register(lanes), None),
        }
    }
}
