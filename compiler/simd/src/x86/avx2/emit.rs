//! The machine code of instructions that only AVX2 has, with vectors as masks.
//!
//! Elements for which no masked instruction exists are moved one by one, with the sign bits of the mask in `r14`.
//!
//! Invariant: elements of iterations that the mask excludes are not accessed.

use crate::x86::emit::{Emit, Group};
use crate::x86::encode::{Masking, Rm};
use crate::x86::inst::{Effect, Elements, Op, Reg};
use crate::x86::pairs::*;
use crate::x86::registers::SCRATCH;
use crate::x86::table::Code;

impl Emit<'_> {
    /// Emits the computation of a value.
    pub(in crate::x86) fn make_avx2(&mut self, reg: Reg, op: Op, args: &[Reg], group: Group) {
        match op {
            Op::Load { code, from } => {
                let under = args.first().map(|&mask| self.r.operand(mask));
                let n = self.r.result(reg);
                let rm = self.address(from, group, None);
                self.r.out.vector(code, n, under, rm, Masking::default(), None);
                self.r.drop_dead(args);
            }
            Op::Whole { code, interleaved, nth } => {
                let n = self.r.result(reg);
                let rm = self.whole_address((interleaved, nth), group);
                self.r.out.vector(code, n, None, rm, Masking::default(), None);
            }
            Op::LoadSome { code, from, step } => self.load_some(reg, (code, from, step), args, group),
            Op::Gather { code, from } => self.gather(reg, (code, from), args, group),
            Op::BlendBy { code } => {
                let [mask, no, yes] = *args else { unreachable!("it has three operands") };
                let (mask, no, yes) = (self.r.operand(mask), self.r.operand(no), self.r.source(yes));
                self.r.drop_dead(args);
                let n = self.r.result(reg);
                self.r.out.vector(code, n, Some(no), yes, Masking::default(), Some(mask << 4));
            }
            op => self.make_simply(reg, op, args),
        }
    }

    /// Emits a gather. The instruction clobbers its mask.
    fn gather(&mut self, reg: Reg, (code, from): (Code, Elements), args: &[Reg], group: Group) {
        let none = Masking::default();
        let offsets = self.r.operand(args[0]);
        let under = args.get(1).map(|&mask| self.r.operand(mask));
        let n = self.r.result(reg);
        match under {
            Some(mask) => self.r.out.vector(COPY[0], SCRATCH, None, Rm::Register(mask), none, None),
            None => self.r.out.vector(EQUAL[0], SCRATCH, Some(SCRATCH), Rm::Register(SCRATCH), none, None),
        }
        self.r.out.vector(XOR[0], n, Some(n), Rm::Register(n), none, None);
        let rm = self.address(from, group, Some(offsets));
        self.r.out.vector(code, n, Some(SCRATCH), rm, none, None);
        self.r.drop_dead(args);
    }

    /// Loads eight narrow elements one by one, where the mask is set.
    fn load_some(&mut self, reg: Reg, (code, from, step): (Code, Elements, i32), args: &[Reg], group: Group) {
        let none = Masking::default();
        let mask = self.r.operand(args[0]);
        let n = self.r.result(reg);
        self.r.out.signs_to_r14(SIGNS[0], mask);
        self.r.out.vector(XOR[0], n, Some(n), Rm::Register(n), none, None);
        let insert = INSERT[usize::from(from.bytes == 2)];
        for lane in 0..8 {
            let at = Elements { offset: from.offset + i32::from(lane) * step, ..from };
            let rm = self.address(at, group, None);
            let next = self.r.out.unless_bit(lane);
            self.r.out.vector(insert, n, Some(n), rm, none, Some(lane));
            self.r.out.land(next);
        }
        self.r.out.vector(code, n, None, Rm::Register(n), none, None);
        self.r.drop_dead(args);
    }

    /// Emits a store.
    pub(in crate::x86) fn store_avx2(&mut self, effect: Effect, group: Group) {
        match effect {
            Effect::Store { code, to, value, mask } => {
                let n = self.r.operand(value);
                let under = mask.map(|mask| self.r.operand(mask));
                let rm = self.address(to, group, None);
                self.r.out.vector(code, n, under, rm, Masking::default(), None);
            }
            Effect::StoreWhole { code, interleaved, nth, value, .. } => {
                let n = self.r.operand(value);
                let rm = self.whole_address((interleaved, nth), group);
                self.r.out.vector(code, n, None, rm, Masking::default(), None);
            }
            Effect::StoreFirst { to, value, count } => self.store_first(to, value, count, group),
            Effect::Spread { to, step, value, mask } => self.spread((to, step), value, mask, group),
            _ => unreachable!("programs for AVX2 have no {effect:?}"),
        }
    }

    /// Stores the first lanes in pieces of 16, 8, 4, 2 and 1 bytes. A masked store takes dozens of micro-operations on
    /// some processors.
    fn store_first(&mut self, to: Elements, value: Reg, count: u8, group: Group) {
        let none = Masking::default();
        let n = self.r.operand(value);
        let (mut done, end) = (0, i32::from(count) * i32::from(to.bytes));
        while done < end {
            let bytes = [16, 8, 4, 2, 1].into_iter().find(|&bytes| done + bytes <= end).expect("a byte is left");
            if done == 16 {
                self.r.out.vector(UPPER_128, n, None, Rm::Register(SCRATCH), none, Some(1));
            }
            let from = if done < 16 { n } else { SCRATCH };
            let (code, lane) = match bytes {
                16 => (STORE_128, None),
                8 if done % 16 == 0 => (STORE_64, None),
                _ => (EXTRACT[bytes.trailing_zeros() as usize], Some((done % 16 / bytes) as u8)),
            };
            let rm = self.address(Elements { offset: to.offset + done, ..to }, group, None);
            self.r.out.vector(code, from, None, rm, none, lane);
            done += bytes;
        }
    }

    /// Stores the elements of 128 bits one by one.
    fn spread(&mut self, (to, step): (Elements, i32), value: Reg, mask: Option<(Reg, u8)>, group: Group) {
        let n = self.r.operand(value);
        let long = usize::from(to.bytes == 8);
        if let Some((mask, _)) = mask {
            let mask = self.r.operand(mask);
            self.r.out.signs_to_r14(SIGNS[long], mask);
        }
        let extract = EXTRACT[to.bytes.trailing_zeros() as usize];
        // Narrow elements are packed.
        let lanes = if to.bytes < 4 { 8 } else { 16 / to.bytes };
        for lane in 0..lanes {
            let at = Elements { offset: to.offset + i32::from(lane) * step, ..to };
            let rm = self.address(at, group, None);
            let next = mask.map(|(_, first)| self.r.out.unless_bit(first + lane));
            self.r.out.vector(extract, n, None, rm, Masking::default(), Some(lane));
            next.into_iter().for_each(|next| self.r.out.land(next));
        }
    }
}
