//! Stretches: what they are made of, and the code of their pieces.
//!
//! In the last group `rdx` holds how many places there are, and `rsi` is free.
//!
//! Invariant: of a piece, nothing outside the elements of the places that there are is touched.

use super::codes::{COPY, LOAD_BYTES, LONG_MASK_LOAD, LONG_MASK_OF_GENERAL, MASK_AND, MASK_NOT, MASK_OF_GENERAL};
use super::constants::ONES;
use super::emit::{Emit, Turn};
use super::encode::{Code, Masking, RSI, Rm};
use super::inst::{Elements, Op, Reg, Width};
use super::program::{LANES, Program};
use super::registers::SCRATCH_MASK;

/// Elements of a group that lie two, three or four apart, or the last first, and what lies between: loaded and stored
/// as whole vectors, whose lanes are put in order.
///
/// A *phase* is one of the accesses that share a stretch: its elements are `steps * place + phase`, counted from the
/// first place's element of phase 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stretch {
    /// Of its vectors.
    pub width: Width,
    /// The first place's element of phase 0.
    pub from: Elements,
    /// Elements from place to place: 2, 3, 4 or -1.
    pub steps: i64,
    /// Of the phases that are loaded: what lies outside may not be there.
    pub least: u8,
    pub greatest: u8,
    /// Whether it is stored; then it begins with phase 0 and ends before the next group's.
    pub stored: bool,
}

impl Stretch {
    /// Places of a vector.
    pub fn lanes(&self) -> i64 {
        i64::from(self.width.bytes()) / i64::from(self.from.bytes.max(4))
    }

    /// How many vectors it takes.
    pub fn pieces(&self) -> i64 {
        self.steps.max(1)
    }

    /// The first element of a piece, counted as phases are.
    pub fn start(&self, piece: u8) -> i64 {
        let lanes = self.lanes();
        if self.steps < 0 {
            return 1 - lanes;
        }
        let first = i64::from(self.least) + lanes * i64::from(piece);
        // The last one ends with the last element.
        first.min(self.steps * (lanes - 1) + i64::from(self.greatest) + 1 - lanes)
    }

    /// Whether all elements are narrow and in 64 bytes, so that one load and a shuffle of each phase do.
    pub fn is_short(self) -> bool {
        self.steps > 0 && self.from.bytes < 4 && self.steps * i64::from(self.from.bytes) <= 4
    }

    /// Bytes from the first phase that is loaded of one place to that of the next.
    fn step_bytes(&self) -> i64 {
        self.steps * i64::from(self.from.bytes)
    }

    /// Bytes between what is loaded of one place and of the next.
    fn gap(&self) -> i64 {
        (self.steps - 1 - i64::from(self.greatest - self.least)) * i64::from(self.from.bytes)
    }

    /// A bit for each byte of all places of a short stretch.
    pub fn bytes(&self) -> Op {
        let count = self.step_bytes() * LANES as i64 - self.gap();
        Op::Constant { bits: u64::MAX >> (64 - count), bytes: 8 }
    }

    /// Of a short stretch, lanes of 32 bits: each 128 bits get the bytes of their four places.
    pub fn quarters(&self) -> Vec<i64> {
        (0..LANES as i64).map(|lane| (lane / 4 * self.step_bytes() + lane % 4).min(LANES as i64 - 1)).collect()
    }

    /// Of these, the byte that comes to each place; none where the highest bit is set.
    pub fn picked(&self, phase: u8, upper: bool) -> Vec<i64> {
        let bytes = i64::from(self.from.bytes);
        let first = if upper { 4 - bytes } else { 0 };
        let of = |byte: i64| {
            let (place, byte) = (byte / 4 % 4, byte % 4 - first);
            let at = place * self.step_bytes() + i64::from(phase - self.least) * bytes + byte;
            if (0..bytes).contains(&byte) { at } else { 0x80 }
        };
        (0..4 * LANES as i64).map(of).collect()
    }

    /// The lanes that a permutation takes for the n-th round: of two vectors, the second one's after the first one's.
    ///
    /// Loads: round 0 takes from the first two pieces, each next one from what there is and the next piece. Stores: in
    /// the piece `round`, from what there is and the value of a phase; of phase 1 from the values of phases 0 and 1.
    pub fn order(&self, phase: u8, round: u8) -> Vec<i64> {
        let (lanes, phase) = (self.lanes(), i64::from(phase));
        let reversed = self.steps < 0;
        (0..lanes)
            .map(|lane| match (reversed, self.stored) {
                (true, _) => lanes - 1 - lane,
                (false, true) => {
                    let at = self.start(round) + lane;
                    match at % self.steps {
                        of if of == phase => lanes + at / self.steps,
                        0 if phase == 1 => at / self.steps,
                        _ => lane,
                    }
                }
                (false, false) => {
                    let at = self.steps * lane + phase;
                    let holder = (0..self.pieces() as u8).rev().find(|&piece| self.start(piece) <= at).unwrap_or(0);
                    let lane_of = at - self.start(holder);
                    match (holder.checked_sub(round + 1), holder) {
                        (Some(0), _) => lanes + lane_of,
                        (None, 0) if round == 0 => lane_of,
                        // Taken before, or in a later round.
                        _ => lane,
                    }
                }
            })
            .collect()
    }
}

impl Program {
    /// The stretch of accesses that lie `steps` elements apart, with this phase.
    pub fn stretch(&mut self, from: Elements, steps: i64, phase: u8, stored: bool) -> u32 {
        let known =
            self.stretches.iter_mut().enumerate().find(|(_, s)| (s.from, s.steps, s.stored) == (from, steps, stored));
        if let Some((n, stretch)) = known {
            (stretch.least, stretch.greatest) = (stretch.least.min(phase), stretch.greatest.max(phase));
            return n as u32;
        }
        let (least, greatest) = if stored { (0, (steps.max(1) - 1) as u8) } else { (phase, phase) };
        self.whole_stretch(Stretch { width: self.width, from, steps, least, greatest, stored })
    }

    /// A stretch of which all phases are known.
    pub fn whole_stretch(&mut self, stretch: Stretch) -> u32 {
        let known = self.stretches.iter().position(|s| *s == stretch);
        known.unwrap_or_else(|| {
            self.stretches.push(stretch);
            self.stretches.len() - 1
        }) as u32
    }
}

impl Emit<'_> {
    fn stretch(&self, n: u32) -> Stretch {
        self.program.stretches[n as usize]
    }

    /// Where a piece of a stretch is, for a group.
    pub(super) fn piece_address(&mut self, (stretch, piece): (u32, u8), turn: Turn) -> Rm {
        let stretch = self.stretch(stretch);
        let stride = self.program.pointers[stretch.from.pointer.0 as usize].stride;
        let bytes = stretch.start(piece) * i64::from(stretch.from.bytes) + stride * (turn.n as u64 * LANES) as i64;
        let base = self.base(stretch.from);
        Rm::Memory { base, index: None, offset: stretch.from.offset + bytes as i32 }
    }

    /// Loads a short stretch.
    pub(super) fn load_bytes(&mut self, n: u8, stretch: u32, turn: Turn) {
        let stretch = self.stretch(stretch);
        let stride = self.program.pointers[stretch.from.pointer.0 as usize].stride;
        let offset = i64::from(stretch.least) * i64::from(stretch.from.bytes) + stride * (turn.n as u64 * LANES) as i64;
        let rm = Rm::Memory { base: self.base(stretch.from), index: None, offset: stretch.from.offset + offset as i32 };
        let (all, ones) = (self.r.pool[&stretch.bytes()], self.r.pool[&ONES]);
        let out = &mut self.r.out;
        if turn.tail {
            out.low_bits_to_rsi((stretch.step_bytes() as i32, -stretch.gap() as i32), 0, ones);
            out.mask(LONG_MASK_OF_GENERAL, SCRATCH_MASK, None, Rm::Register(RSI.0), None);
        } else {
            out.mask(LONG_MASK_LOAD, SCRATCH_MASK, None, Rm::Constant(all), None);
        }
        out.vector(LOAD_BYTES, n, None, rm, Masking { register: SCRATCH_MASK, zeroing: true }, None);
    }

    /// The lanes of a piece that are touched: those of places that there are, and under a mask.
    pub(super) fn piece_masking(
        &mut self,
        (stretch, piece): (u32, u8),
        turn: Turn,
        under: Option<u8>,
        zeroing: bool,
    ) -> Masking {
        if !turn.tail {
            let register = under.unwrap_or(0);
            return Masking { register, zeroing: zeroing && register != 0 };
        }
        let stretch = self.stretch(stretch);
        let ones = self.r.pool[&ONES];
        let reversed = stretch.steps < 0;
        // The first places of two vectors, if this is the second.
        let before = if stretch.from.upper { stretch.lanes() } else { 0 };
        let (size, shift) = if reversed {
            // How many lanes are left out.
            ((-1, LANES as i64), LANES as i64 - stretch.lanes() - before)
        } else if stretch.stored {
            ((stretch.steps, 0), stretch.start(piece) + before * stretch.steps)
        } else {
            let (least, greatest) = (i64::from(stretch.least), i64::from(stretch.greatest));
            let shift = stretch.start(piece) - least + before * stretch.steps;
            ((stretch.steps, 1 - stretch.steps + greatest - least), shift)
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

    /// Lanes of two vectors.
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
