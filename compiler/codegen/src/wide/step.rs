//! The machine code of one step, as far as it is the same for vectors of both widths.
//!
//! Invariant: a result has the register of an operand only if nothing reads that operand later.

use super::codes::*;
use super::emit::{Emit, OTHER_POINTER, Turn, pointers};
use super::encode::{Gpr, Masking, RAX, RDI, Rm};
use super::inst::{Effect, Elements, Op, Reg, Width};
use super::program::{Carried, LANES};
use super::registers::{SCRATCH_MASK, TAIL, TAIL_UPPER};
use smallvec::SmallVec;

impl Emit<'_> {
    /// Where elements are, for a group; pointers without a register are fetched.
    pub(super) fn address(&mut self, at: Elements, turn: Turn, gathered: Option<u8>) -> Rm {
        let n = at.pointer.0 as usize;
        let pointer = self.program.pointers[n];
        let base = self.base(at);
        let offset = at.offset + (pointer.stride * (turn.n as u64 * LANES) as i64) as i32;
        let index = match gathered {
            Some(offsets) => Some((offsets, 0)),
            None => Some((RAX.0, at.bytes.trailing_zeros() as u8)),
        };
        Rm::Memory { base, index, offset }
    }

    /// The register that points to the first element.
    pub(super) fn base(&mut self, at: Elements) -> Gpr {
        let n = at.pointer.0 as usize;
        pointers(self.program.width).get(n).copied().unwrap_or_else(|| {
            self.r.out.load(OTHER_POINTER, RDI, self.program.pointers[n].offset as i32);
            OTHER_POINTER
        })
    }

    /// Makes a value.
    pub(super) fn make(&mut self, reg: Reg, turn: Turn) {
        let inst = self.program.made[reg.0 as usize].as_ref().expect("what is carried is not made");
        match (inst.op, self.program.width) {
            (op, _) if op.is_made_again() => {}
            (Op::Fma { wide }, _) => self.fma(reg, &inst.args, usize::from(wide)),
            (op, Width::Half) => self.make_half(reg, op, &inst.args, turn),
            (op, Width::Full) => self.make_full(reg, op, &inst.args, turn),
        }
    }

    /// Makes a value with one instruction.
    pub(super) fn make_simply(&mut self, reg: Reg, op: Op, args: &[Reg]) {
        let operands: SmallVec<[u8; 4]> = args.iter().map(|&a| self.r.operand(a)).collect();
        self.r.drop_dead(args);
        let n = self.r.result(reg);
        self.simple(op, n, &operands);
    }

    /// Whether a result can have the register of an operand: that dies, nothing else stands for it, and the result has
    /// none of its own.
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
            (Op::Plain { code, immediate } | Op::Compare { code, immediate }, &[a, b]) => {
                out.vector(code, n, Some(a), Rm::Register(b), none, immediate);
            }
            (Op::Reversed { code, immediate }, &[a]) => out.vector(code, a, None, Rm::Register(n), none, immediate),
            (Op::Shift { code, digit, by }, &[a]) => out.vector(code, digit, Some(n), Rm::Register(a), none, Some(by)),
            (Op::Blend { code }, &[k, no, yes]) => {
                out.vector(code, n, Some(no), Rm::Register(yes), masked(k, false), None)
            }
            (Op::Zeroed { code }, &[k, a]) => out.vector(code, n, None, Rm::Register(a), masked(k, true), None),
            (Op::Mask { code, immediate }, &[a]) => out.mask(code, n, None, Rm::Register(a), immediate),
            (Op::Mask { code, immediate }, &[a, b]) => out.mask(code, n, Some(a), Rm::Register(b), immediate),
            _ => unreachable!("{op:?} takes other operands"),
        }
    }

    pub(super) fn fma(&mut self, reg: Reg, args: &[Reg], wide: usize) {
        let [a, b, c] = *args else { unreachable!("it has three operands") };
        let [x, y, z] = [a, b, c].map(|a| self.r.operand(a));
        let free = |e: &Self, operand: Reg| e.gives_way(operand, reg);
        let (code, n, second, third) = if free(self, c) {
            (FMA_231, self.r.rename(c, reg), x, y)
        } else if free(self, a) {
            (FMA_213, self.r.rename(a, reg), y, z)
        } else if free(self, b) {
            (FMA_213, self.r.rename(b, reg), x, z)
        } else {
            let n = self.r.result(reg);
            self.r.out.vector(COPY[0], n, None, Rm::Register(z), Masking::default(), None);
            (FMA_231, n, x, y)
        };
        self.r.out.vector(code[wide], n, Some(second), Rm::Register(third), Masking::default(), None);
        self.r.drop_dead(args);
    }

    pub(super) fn effect(&mut self, effect: &Effect, turn: Turn) {
        match (*effect, self.program.width) {
            (Effect::Take { accumulator, code, value, mask }, _) => {
                let v = self.r.operand(value);
                let (n, masking, _) = self.accumulator(accumulator, turn, mask);
                self.r.out.vector(code, n, Some(n), Rm::Register(v), masking, None);
            }
            (Effect::TakeFma { accumulator, wide, a, b, mask }, _) => {
                let (a, b) = (self.r.operand(a), self.r.operand(b));
                let (n, masking, _) = self.accumulator(accumulator, turn, mask);
                self.r.out.vector(FMA_231[usize::from(wide)], n, Some(a), Rm::Register(b), masking, None);
            }
            (Effect::Put { accumulator, value }, _) => {
                let v = self.r.operand(value);
                let (n, masking, long) = self.accumulator(accumulator, turn, None);
                self.r.out.vector(COPY[usize::from(long)], n, None, Rm::Register(v), masking, None);
            }
            (effect, Width::Half) => self.store_half(effect, turn),
            (effect, Width::Full) => self.store_full(effect, turn),
        }
        self.r.drop_dead(&effect.reads());
    }

    /// The register of an accumulator, which of its lanes may change, and whether they have 64 bits.
    fn accumulator(&mut self, k: usize, turn: Turn, under: Option<Reg>) -> (u8, Masking, bool) {
        let Carried::Accumulator { reg, at, .. } = &self.program.carried[k] else {
            unreachable!("only accumulators take values")
        };
        let (at, n) = (*at, self.r.held(*reg).expect("accumulators are held"));
        let under = under.map(|mask| self.r.operand(mask));
        let there = if at.upper { TAIL_UPPER } else { TAIL };
        let register = match (turn.tail && self.program.width == Width::Full, under) {
            (false, under) => under.unwrap_or(0),
            (true, None) => there,
            (true, Some(under)) => {
                self.r.out.mask(MASK_AND, SCRATCH_MASK, Some(under), Rm::Register(there), None);
                SCRATCH_MASK
            }
        };
        (n, Masking { register, zeroing: false }, at.long)
    }
}
