//! Emits the machine code of one step, as far as both levels share it.
//!
//! Invariant: a result takes the register of an operand only if that operand is dead afterwards.

use super::Level;
use super::emit::{Emit, Group, OTHER_POINTER, pointers};
use super::encode::{Gpr, Masking, RAX, RDI, Rm};
use super::inst::{Effect, Elements, Op, Reg};
use super::pairs::*;
use super::program::Carried;
use super::registers::{SCRATCH_MASK, TAIL, TAIL_UPPER};
use super::table::Code;
use crate::ir::GROUP;
use smallvec::SmallVec;

impl Emit<'_> {
    /// Returns the address of elements for a group; loads a pointer that has no register.
    pub(super) fn address(&mut self, at: Elements, group: Group, gathered: Option<u8>) -> Rm {
        let n = at.pointer.0 as usize;
        let pointer = self.program.pointers[n];
        let base = self.base(at);
        let offset = at.offset + (pointer.stride * (group.n as u64 * GROUP) as i64) as i32;
        let index = match gathered {
            Some(offsets) => Some((offsets, 0)),
            None if pointer.unit => Some((RAX.0, at.bytes.trailing_zeros() as u8)),
            None => None,
        };
        Rm::Memory { base, index, offset }
    }

    /// Returns the address of a whole vector of an interleaved access for a group.
    pub(super) fn whole_address(&mut self, (interleaved, nth): (u32, u8), group: Group) -> Rm {
        let access = self.program.interleaved[interleaved as usize];
        let stride = self.program.pointers[access.from.pointer.0 as usize].stride;
        let bytes = access.start(nth) * i64::from(access.from.bytes) + stride * (group.n as u64 * GROUP) as i64;
        let base = self.base(access.from);
        Rm::Memory { base, index: None, offset: access.from.offset + bytes as i32 }
    }

    /// Returns the register that points to the first element.
    pub(super) fn base(&mut self, at: Elements) -> Gpr {
        let n = at.pointer.0 as usize;
        pointers(self.program.level).get(n).copied().unwrap_or_else(|| {
            self.r.out.load(OTHER_POINTER, RDI, self.program.pointers[n].offset as i32);
            OTHER_POINTER
        })
    }

    /// Emits the computation of a value.
    pub(super) fn make(&mut self, reg: Reg, group: Group) {
        let inst = self.program.made[reg.0 as usize].as_ref().expect("what is carried is not made");
        match (inst.op, self.program.level) {
            (op, _) if op.is_rematerialized() => {}
            (Op::Broadcast { from }, _) => {
                let n = self.r.result(reg);
                let element = self.address(from, group, None);
                let code = BROADCAST[usize::from(from.bytes == 8)];
                self.r.out.vector(code, n, None, element, Masking::default(), None);
            }
            (Op::Fma { long, negated }, _) => self.fma(reg, &inst.args, (long, negated), Masking::default()),
            (op, Level::Avx2) => self.make_avx2(reg, op, &inst.args, group),
            (op, Level::Avx512) => self.make_avx512(reg, op, &inst.args, group),
        }
    }

    /// Emits the computation of a value by one instruction.
    pub(super) fn make_simply(&mut self, reg: Reg, op: Op, args: &[Reg]) {
        if let (Op::Plain { code, immediate } | Op::Compare { code, immediate }, &[a, b]) = (op, args) {
            return self.make_of_two(reg, (code, immediate), (a, b));
        }
        let operands: SmallVec<[u8; 4]> = args.iter().map(|&a| self.r.operand(a)).collect();
        self.r.drop_dead(args);
        let n = self.r.result(reg);
        self.simple(op, n, &operands);
    }

    /// Emits an instruction with two operands, of which the second may be memory.
    fn make_of_two(&mut self, reg: Reg, (code, immediate): (Code, Option<u8>), (a, b): (Reg, Reg)) {
        let swaps = code.facts().commutes && self.r.in_memory(b).is_none() && self.r.in_memory(a).is_some();
        let (a, b) = if swaps { (b, a) } else { (a, b) };
        let first = self.r.operand(a);
        let second = self.r.source(b);
        self.r.drop_dead(&[a, b]);
        let n = self.r.result(reg);
        self.r.out.vector(code, n, Some(first), second, Masking::default(), immediate);
    }

    /// Returns whether a result can take the register of an operand: the operand is dead, its register is not held, and
    /// the result has no held register.
    pub(super) fn gives_way(&self, operand: Reg, result: Reg) -> bool {
        let own = self.r.held(operand).is_none() && self.program.made[operand.0 as usize].is_some();
        own && self.r.dies(operand) && self.r.held(result).is_none()
    }

    pub(super) fn simple(&mut self, op: Op, n: u8, operands: &[u8]) {
        let out = &mut self.r.out;
        let none = Masking::default();
        let masked = |register: u8, zeroing: bool| Masking { register, zeroing };
        match (op, operands) {
            (Op::Plain { code, immediate } | Op::Compare { code, immediate }, &[a]) => {
                out.vector(code, n, None, Rm::Register(a), none, immediate);
            }
            (Op::Reversed { code, immediate }, &[a]) => out.vector(code, a, None, Rm::Register(n), none, immediate),
            (Op::Shift { code, by }, &[a]) => out.vector(code, n, None, Rm::Register(a), none, Some(by)),
            (Op::Blend { code }, &[k, no, yes]) => {
                out.vector(code, n, Some(no), Rm::Register(yes), masked(k, false), None)
            }
            (Op::Zeroed { code }, &[k, a]) => out.vector(code, n, None, Rm::Register(a), masked(k, true), None),
            (Op::Zeroed { code }, &[k, a, b]) => out.vector(code, n, Some(a), Rm::Register(b), masked(k, true), None),
            (Op::Mask { code, immediate }, &[a]) => out.mask(code, n, None, Rm::Register(a), immediate),
            (Op::Mask { code, immediate }, &[a, b]) => out.mask(code, n, Some(a), Rm::Register(b), immediate),
            _ => unreachable!("{op:?} takes other operands"),
        }
    }

    /// Emits `a * b + c` into the register of a dead operand, if there is one.
    pub(super) fn fma(&mut self, reg: Reg, args: &[Reg], (long, negated): (bool, bool), masking: Masking) {
        let long = usize::from(long);
        let [in_132, in_213, in_231] = match negated {
            false => [FMA_132, FMA_213, FMA_231],
            true => [NEGATED_FMA_132, NEGATED_FMA_213, NEGATED_FMA_231],
        };
        let [a, b, c] = *args else { unreachable!("it has three operands") };
        let memory = |e: &Self, operand: Reg| e.r.in_memory(operand).is_some();
        // A factor in memory has to be the second one.
        let (a, b) = if memory(self, a) && !memory(self, b) { (b, a) } else { (a, b) };
        let free = |e: &Self, operand: Reg| e.gives_way(operand, reg) && !memory(e, operand);
        let (code, first, second, third) = if free(self, c) {
            (in_231, c, a, b)
        } else if free(self, a) && memory(self, b) && !memory(self, c) {
            (in_132, a, c, b)
        } else if free(self, a) {
            (in_213, a, b, c)
        } else if free(self, b) {
            (in_213, b, a, c)
        } else {
            let (factor, other, start) = (self.r.operand(a), self.r.source(b), self.r.source(c));
            let n = self.r.result(reg);
            let none = Masking::default();
            let copy = if matches!(start, Rm::Register(_)) { COPY[0] } else { LOAD[0] };
            self.r.out.vector(copy, n, None, start, none, None);
            self.r.out.vector(in_231[long], n, Some(factor), other, masking, None);
            return self.r.drop_dead(args);
        };
        let locked = self.r.operand(first);
        let (second, third) = (self.r.operand(second), self.r.source(third));
        let n = self.r.rename(first, reg);
        debug_assert_eq!(n, locked, "a value that gives way keeps its register");
        self.r.out.vector(code[long], n, Some(second), third, masking, None);
        self.r.drop_dead(args);
    }

    pub(super) fn effect(&mut self, effect: &Effect, group: Group) {
        match (*effect, self.program.level) {
            (Effect::Accumulate { accumulator, code, value, mask }, _) => {
                let v = self.r.source(value);
                let (n, masking, _) = self.accumulator(accumulator, group, mask);
                self.r.out.vector(code, n, Some(n), v, masking, None);
            }
            (Effect::AccumulateFma { accumulator, long, a, b, mask }, _) => {
                let (a, b) = (self.r.operand(a), self.r.source(b));
                let (n, masking, _) = self.accumulator(accumulator, group, mask);
                self.r.out.vector(FMA_231[usize::from(long)], n, Some(a), b, masking, None);
            }
            (Effect::Assign { accumulator, value }, _) => {
                let v = self.r.operand(value);
                let (n, masking, long) = self.accumulator(accumulator, group, None);
                self.r.out.vector(COPY[usize::from(long)], n, None, Rm::Register(v), masking, None);
            }
            (effect, Level::Avx2) => self.store_avx2(effect, group),
            (effect, Level::Avx512) => self.store_avx512(effect, group),
        }
        self.r.drop_dead(&effect.reads());
    }

    /// Returns the register of an accumulator, the mask of its lanes that may change, and whether lanes have 64 bits.
    fn accumulator(&mut self, k: usize, group: Group, under: Option<Reg>) -> (u8, Masking, bool) {
        let Carried::Accumulator { reg, at, .. } = &self.program.carried[k] else {
            unreachable!("only accumulators take values")
        };
        let (at, n) = (*at, self.r.held(*reg).expect("accumulators are held"));
        let under = under.map(|mask| self.r.operand(mask));
        let active = if at.upper { TAIL_UPPER } else { TAIL };
        let register = match (group.tail && self.program.level == Level::Avx512, under) {
            (false, under) => under.unwrap_or(0),
            (true, None) => active,
            (true, Some(under)) => {
                self.r.out.mask(MASK_AND, SCRATCH_MASK, Some(under), Rm::Register(active), None);
                SCRATCH_MASK
            }
        };
        (n, Masking { register, zeroing: false }, at.long)
    }
}
