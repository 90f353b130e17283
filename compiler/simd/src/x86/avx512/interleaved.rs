//! The machine code of interleaved accesses with AVX-512.
//!
//! In the last group `rdx` holds the number of active iterations, and `rsi` is free.
//!
//! Invariant: an access to a whole vector reaches only elements of active iterations, and the elements between them.

use crate::ir::GROUP;
use crate::x86::constants::ONES;
use crate::x86::emit::{Emit, Group};
use crate::x86::encode::{Masking, RSI, Rm};
use crate::x86::inst::Reg;
use crate::x86::pairs::{COPY, LOAD_BYTES, LONG_MASK_LOAD, LONG_MASK_OF_GENERAL, MASK_AND, MASK_NOT, MASK_OF_GENERAL};
use crate::x86::registers::SCRATCH_MASK;
use crate::x86::table::Code;

impl Emit<'_> {
    /// Emits the load of a short access.
    pub(super) fn load_bytes(&mut self, n: u8, interleaved: u32, group: Group) {
        let access = self.program.interleaved[interleaved as usize];
        let stride = self.program.pointers[access.from.pointer.0 as usize].stride;
        let offset = i64::from(access.least) * i64::from(access.from.bytes) + stride * (group.n as u64 * GROUP) as i64;
        let rm = Rm::Memory { base: self.base(access.from), index: None, offset: access.from.offset + offset as i32 };
        let (all, ones) = (self.r.pool[&access.bytes()], self.r.pool[&ONES]);
        let out = &mut self.r.out;
        if group.tail {
            out.low_bits_to_rsi((access.step_bytes() as i32, -access.gap() as i32), 0, ones);
            out.mask(LONG_MASK_OF_GENERAL, SCRATCH_MASK, None, Rm::Register(RSI.0), None);
        } else {
            out.mask(LONG_MASK_LOAD, SCRATCH_MASK, None, Rm::Constant(all), None);
        }
        out.vector(LOAD_BYTES, n, None, rm, Masking { register: SCRATCH_MASK, zeroing: true }, None);
    }

    /// Returns the mask of a whole vector: the lanes of active iterations where the given mask is set.
    pub(super) fn whole_masking(
        &mut self,
        (interleaved, nth): (u32, u8),
        group: Group,
        under: Option<u8>,
        zeroing: bool,
    ) -> Masking {
        if !group.tail {
            let register = under.unwrap_or(0);
            return Masking { register, zeroing: zeroing && register != 0 };
        }
        let access = self.program.interleaved[interleaved as usize];
        let ones = self.r.pool[&ONES];
        let reversed = access.steps < 0;
        // The lanes of the first of two vectors, if this is the second.
        let before = if access.from.upper { access.lanes() } else { 0 };
        let (size, shift) = if reversed {
            // The number of inactive lanes.
            ((-1, GROUP as i64), GROUP as i64 - access.lanes() - before)
        } else if access.stored {
            ((access.steps, 0), access.start(nth) + before * access.steps)
        } else {
            let (least, greatest) = (i64::from(access.least), i64::from(access.greatest));
            let shift = access.start(nth) - least + before * access.steps;
            ((access.steps, 1 - access.steps + greatest - least), shift)
        };
        let out = &mut self.r.out;
        out.low_bits_to_rsi((size.0 as i32, size.1 as i32), shift as u8, ones);
        out.mask(MASK_OF_GENERAL, SCRATCH_MASK, None, Rm::Register(RSI.0), None);
        if reversed {
            out.mask(MASK_NOT, SCRATCH_MASK, None, Rm::Register(SCRATCH_MASK), None);
        }
        if let Some(under) = under {
            out.mask(MASK_AND, SCRATCH_MASK, Some(SCRATCH_MASK), Rm::Register(under), None);
        }
        Masking { register: SCRATCH_MASK, zeroing }
    }

    /// Emits a permutation of the lanes of two vectors.
    pub(super) fn permute(&mut self, reg: Reg, code: Code, args: &[Reg]) {
        let [a, order, b] = *args else { unreachable!("it has three operands") };
        let [x, by, y] = [a, order, b].map(|a| self.r.operand(a));
        let n = if a != b && self.gives_way(a, reg) {
            self.r.rename(a, reg)
        } else {
            let n = self.r.result(reg);
            self.r.out.vector(COPY[0], n, None, Rm::Register(x), Masking::default(), None);
            n
        };
        self.r.out.vector(code, n, Some(by), Rm::Register(y), Masking::default(), None);
        self.r.drop_dead(args);
    }
}
