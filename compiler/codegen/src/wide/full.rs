//! The instructions of 512-bit vectors: what is done under masks that have registers.
//!
//! Invariant: elements whose places are not under the mask are not touched.

use super::codes::*;
use super::emit::{Emit, Turn};
use super::encode::{Masking, Rm};
use super::inst::{Effect, Elements, Op, Reg};
use super::registers::{SCRATCH_MASK, TAIL, TAIL_UPPER};

impl Emit<'_> {
    /// Makes a value.
    pub(super) fn make_full(&mut self, reg: Reg, op: Op, args: &[Reg], turn: Turn) {
        let none = Masking::default();
        match op {
            Op::Piece { code, stretch, piece } => {
                let n = self.r.result(reg);
                let rm = self.piece_address((stretch, piece), turn);
                let masking = self.piece_masking((stretch, piece), turn, None, true);
                self.r.out.vector(code, n, None, rm, masking, None);
            }
            Op::Bytes { stretch } => {
                let n = self.r.result(reg);
                self.load_bytes(n, stretch, turn);
            }
            Op::Permute { code } => self.permute(reg, code, args),
            Op::Load { code, from } => {
                let under = args.first().map(|&mask| self.r.operand(mask));
                let n = self.r.result(reg);
                let rm = self.address(from, turn, None);
                let masking = self.masking(from, turn, under, true);
                self.r.out.vector(code, n, None, rm, masking, None);
                self.r.drop_dead(args);
            }
            Op::Gather { code, from } => {
                let offsets = self.r.operand(args[0]);
                let under = args.get(1).map(|&mask| self.r.operand(mask));
                let n = self.r.result(reg);
                self.scratch_mask(from, turn, under);
                self.r.out.vector(XOR[0], n, Some(n), Rm::Register(n), none, None);
                let rm = self.address(from, turn, Some(offsets));
                self.r.out.vector(code, n, None, rm, Masking { register: SCRATCH_MASK, zeroing: false }, None);
                self.r.drop_dead(args);
            }
            Op::Merge { code } => {
                let [mask, old, a, b] = *args else { unreachable!("it has four operands") };
                let [k, was, x, y] = [mask, old, a, b].map(|a| self.r.operand(a));
                let n = if old != a && old != b && self.gives_way(old, reg) {
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

    /// Stores a value.
    pub(super) fn store_full(&mut self, effect: Effect, turn: Turn) {
        match effect {
            Effect::Store { code, to, value, mask } => {
                let n = self.r.operand(value);
                let under = mask.map(|mask| self.r.operand(mask));
                let rm = self.address(to, turn, None);
                let masking = self.masking(to, turn, under, false);
                self.r.out.vector(code, n, None, rm, masking, None);
            }
            Effect::StorePiece { code, stretch, piece, value, mask } => {
                let n = self.r.operand(value);
                let under = mask.map(|mask| self.r.operand(mask));
                let rm = self.piece_address((stretch, piece), turn);
                let masking = self.piece_masking((stretch, piece), turn, under, false);
                self.r.out.vector(code, n, None, rm, masking, None);
            }
            Effect::Scatter { code, to, offsets, value, mask } => {
                let offsets = self.r.operand(offsets);
                let n = self.r.operand(value);
                let under = mask.map(|mask| self.r.operand(mask));
                self.scratch_mask(to, turn, under);
                let rm = self.address(to, turn, Some(offsets));
                self.r.out.vector(code, n, None, rm, Masking { register: SCRATCH_MASK, zeroing: false }, None);
            }
            _ => unreachable!("strips of 512 bits have no {effect:?}"),
        }
    }

    /// The places of an access that there are; under a mask, only those.
    fn masking(&mut self, at: Elements, turn: Turn, under: Option<u8>, zeroing: bool) -> Masking {
        let register = match (Self::places(at, turn), under) {
            (0, under) => under.unwrap_or(0),
            (there, None) => there,
            (there, Some(under)) => {
                self.r.out.mask(MASK_AND, SCRATCH_MASK, Some(under), Rm::Register(there), None);
                SCRATCH_MASK
            }
        };
        Masking { register, zeroing: zeroing && register != 0 }
    }

    /// The mask of the places that there are, 0 if all are.
    fn places(at: Elements, turn: Turn) -> u8 {
        match (turn.tail, at.upper) {
            (false, _) => 0,
            (true, false) => TAIL,
            (true, true) => TAIL_UPPER,
        }
    }

    /// A mask that a gather or a scatter uses up.
    fn scratch_mask(&mut self, at: Elements, turn: Turn, under: Option<u8>) {
        let places = self.masking(at, turn, under, false).register;
        let out = &mut self.r.out;
        match places {
            SCRATCH_MASK => {}
            0 => out.mask(MASK_EQUAL, SCRATCH_MASK, Some(SCRATCH_MASK), Rm::Register(SCRATCH_MASK), None),
            _ => out.mask(MASK_LOAD, SCRATCH_MASK, None, Rm::Register(places), None),
        }
    }
}
