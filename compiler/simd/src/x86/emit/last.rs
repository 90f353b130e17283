//! The last group of a kernel, if the iterations are not whole groups.
//!
//! A processor may treat a masked store as one of all lanes: a load of the bytes after it, which are often the start
//! of the next row, waits until the store is in the cache. So there are several ways, the best first:
//!
//! - If iterations may run twice, the last group ends with the last iteration and overlaps the group before it.
//! - With AVX-512, a known number of iterations, and stores that follow all loads, it does so too, but is computed
//!   before the other groups and stored after them: both computations of an iteration read the same elements.
//! - With AVX-512 and groups in any order, it runs first, under a mask. The whole groups of the row then lie between
//!   its store and the load of the next row.
//! - Otherwise it runs last, under a mask.
//!
//! Invariant: lanes beyond the number of iterations load nothing, store nothing, and leave accumulators unchanged.

use super::{Emit, Group, Moving};
use crate::ir::GROUP;
use crate::x86::Level;
use crate::x86::encode::{Gpr, Jump, Masking, RAX, RDX, RSI, Rm};
use crate::x86::inst::{Effect, Item};
use crate::x86::pairs::*;
use crate::x86::registers::{TAIL, TAIL_UPPER};

impl Emit<'_> {
    /// Selects the last sixteen iterations.
    pub(super) fn point_to_last_group(&mut self) {
        self.r.out.copy(RAX, RSI);
        self.r.out.add(RAX, -(GROUP as i32));
    }

    /// Emits the body of the last group, which moves what it stores to registers.
    pub(super) fn compute_delayed(&mut self) {
        let (program, group) = (self.program, Group { n: 0, tail: false });
        self.r.begin(&program.body, &[]);
        let mut registers = self.delayed.clone().into_iter();
        for (at, item) in program.body.iter().enumerate() {
            match item {
                Item::Make(_) => self.item((at, item), group),
                Item::Do(effect) => {
                    self.r.go_to(at);
                    let reads = effect.reads();
                    let (value, n) = (self.r.operand(reads[0]), registers.next().expect("each store has a register"));
                    self.r.out.vector(COPY[0], n, None, Rm::Register(value), Masking::default(), None);
                    self.r.drop_dead(&reads);
                }
            }
        }
        self.r.end();
    }

    /// Emits the stores of the last group.
    pub(super) fn store_delayed(&mut self) {
        let stores = self.program.body.iter().filter_map(|item| match item {
            Item::Do(Effect::Store { code, to, .. }) => Some((*code, *to)),
            _ => None,
        });
        for ((code, to), n) in stores.zip(self.delayed.clone()) {
            let rm = self.address(to, Group { n: 0, tail: false }, None);
            self.r.out.vector(code, n, None, rm, Masking::default(), None);
        }
    }

    /// Returns whether the incomplete group runs before the others.
    pub(super) fn tail_is_first(&self) -> bool {
        let program = self.program;
        let unordered = program.carried.is_empty() && program.interleaved.is_empty();
        let alone = !self.overlaps && !self.delays;
        program.level == Level::Avx512 && alone && unordered && program.pointers.iter().all(Moving::stays)
    }

    /// Emits the incomplete group before the others.
    pub(super) fn first_tail(&mut self, may_be_none: bool) {
        self.r.out.copy(RDX, RSI);
        self.r.out.and(RDX, GROUP as i32 - 1);
        let none = may_be_none.then(|| self.r.out.jump(Jump::Equal));
        self.tail_masks(RAX);
        self.r.out.copy(RAX, RSI);
        self.r.out.and(RAX, -(GROUP as i32));
        self.group(Group { n: 0, tail: true });
        self.r.out.clear_rax();
        none.into_iter().for_each(|jump| self.r.out.land(jump));
    }

    /// Makes the masks of the first `rdx` lanes, unless they exist.
    pub(super) fn tail_masks(&mut self, scratch: Gpr) {
        if self.has_masks {
            return;
        }
        self.r.out.low_bits_to(scratch);
        self.r.out.mask(MASK_OF_GENERAL, TAIL, None, Rm::Register(scratch.0), None);
        self.r.out.mask(MASK_SHIFT_RIGHT, TAIL_UPPER, None, Rm::Register(TAIL), Some(8));
    }
}
