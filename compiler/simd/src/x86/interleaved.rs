//! Interleaved accesses: strided elements, as whole vectors whose lanes are permuted.
//!
//! Invariant: no access reaches before the first element of an active iteration, or past the last one.

use super::Level;
use super::inst::{Elements, Op};
use super::program::Program;
use crate::ir::{GROUP, Lane};

/// A group's elements with a stride of two to four elements, or in reverse order, and the elements between them.
///
/// A *phase* is one of the accesses that share the vectors. Its elements have the numbers `steps * iteration + phase`,
/// counted from the first iteration's element of phase 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Interleaved {
    /// The level of its vectors.
    pub level: Level,
    /// The first iteration's element of phase 0.
    pub from: Elements,
    /// The stride in elements: 2, 3, 4 or -1.
    pub steps: i64,
    /// The least phase that is loaded, followed by the greatest. Memory outside these phases may not exist.
    pub least: u8,
    pub greatest: u8,
    /// Whether it is stored. It then begins with phase 0 and ends before the elements of the next group.
    pub stored: bool,
}

impl Interleaved {
    /// Returns the lanes of a vector.
    pub fn lanes(&self) -> i64 {
        i64::from(self.level.bytes()) / i64::from(self.from.bytes.max(4))
    }

    /// Returns the number of vectors.
    pub fn vectors(&self) -> i64 {
        self.steps.max(1)
    }

    /// Returns the first element of the n-th vector, with the numbering of phases.
    pub fn start(&self, nth: u8) -> i64 {
        let lanes = self.lanes();
        if self.steps < 0 {
            return 1 - lanes;
        }
        let first = i64::from(self.least) + lanes * i64::from(nth);
        // The last vector ends with the last element.
        first.min(self.steps * (lanes - 1) + i64::from(self.greatest) + 1 - lanes)
    }

    /// Returns whether all elements are narrow and within 64 bytes, so that one load and a shuffle for each phase
    /// suffice.
    pub fn is_short(self) -> bool {
        self.steps > 0 && self.from.bytes < 4 && self.steps * i64::from(self.from.bytes) <= 4
    }

    /// Returns the stride in bytes.
    pub fn step_bytes(&self) -> i64 {
        self.steps * i64::from(self.from.bytes)
    }

    /// Returns the bytes between the loaded phases of one iteration and those of the next.
    pub fn gap(&self) -> i64 {
        (self.steps - 1 - i64::from(self.greatest - self.least)) * i64::from(self.from.bytes)
    }

    /// Returns a constant with a bit for each byte of a group of a short access.
    pub fn bytes(&self) -> Op {
        let count = self.step_bytes() * GROUP as i64 - self.gap();
        Op::Constant { bits: u64::MAX >> (64 - count), bytes: 8 }
    }

    /// Returns the permutation of 32-bit lanes that moves the bytes of four iterations of a short access into each 128
    /// bits.
    pub fn quarters(&self) -> Vec<i64> {
        (0..GROUP as i64).map(|lane| (lane / 4 * self.step_bytes() + lane % 4).min(GROUP as i64 - 1)).collect()
    }

    /// Returns the permutation of these bytes that moves those of a phase to their lanes; 0x80 clears a byte.
    pub fn picked(&self, phase: u8, upper: bool) -> Vec<i64> {
        let bytes = i64::from(self.from.bytes);
        let first = if upper { 4 - bytes } else { 0 };
        let of = |byte: i64| {
            let (iteration, byte) = (byte / 4 % 4, byte % 4 - first);
            let at = iteration * self.step_bytes() + i64::from(phase - self.least) * bytes + byte;
            if (0..bytes).contains(&byte) { at } else { 0x80 }
        };
        (0..4 * GROUP as i64).map(of).collect()
    }

    /// Returns the permutation of the n-th round. It numbers the lanes of the second vector after those of the first.
    ///
    /// Loads: round 0 combines the first two vectors, and each later round the result and the next vector. Stores: for
    /// the vector `round`, phase 1 combines the values of phases 0 and 1, and each later phase the result and its own
    /// value.
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
                    let holder = (0..self.vectors() as u8).rev().find(|&nth| self.start(nth) <= at).unwrap_or(0);
                    let lane_of = at - self.start(holder);
                    match (holder.checked_sub(round + 1), holder) {
                        (Some(0), _) => lanes + lane_of,
                        (None, 0) if round == 0 => lane_of,
                        // Taken in an earlier round, or left for a later one.
                        _ => lane,
                    }
                }
            })
            .collect()
    }
}

impl Program {
    /// Returns the access at a stride of `steps` elements, extended by this phase.
    pub fn interleaved_access(&mut self, from: Elements, steps: i64, phase: u8, stored: bool) -> u32 {
        let known =
            self.interleaved.iter_mut().enumerate().find(|(_, s)| (s.from, s.steps, s.stored) == (from, steps, stored));
        if let Some((n, access)) = known {
            (access.least, access.greatest) = (access.least.min(phase), access.greatest.max(phase));
            return n as u32;
        }
        let (least, greatest) = if stored { (0, (steps.max(1) - 1) as u8) } else { (phase, phase) };
        self.whole_access(Interleaved { level: self.level, from, steps, least, greatest, stored })
    }

    /// Returns the number of an access whose phases are all known.
    pub fn whole_access(&mut self, access: Interleaved) -> u32 {
        let known = self.interleaved.iter().position(|s| *s == access);
        known.unwrap_or_else(|| {
            self.interleaved.push(access);
            self.interleaved.len() - 1
        }) as u32
    }
}

/// Returns the stride in elements, if an access may be whole vectors whose lanes are permuted.
pub fn interleaved_stride(lane: Lane, stride: i64) -> Option<i64> {
    let bytes = i64::from(lane.bytes());
    (bytes > 0 && stride % bytes == 0 && matches!(stride / bytes, -1 | 2..=4)).then(|| stride / bytes)
}

/// Returns the offset of the first iteration's element of phase 0 of an access with this stride, and the access's
/// phase.
pub fn phase(offset: i32, bytes: u32, steps: i64) -> (i32, u8) {
    let bytes = bytes as i32;
    let phase = if steps < 0 { 0 } else { offset.div_euclid(bytes).rem_euclid(steps as i32) };
    (offset - phase * bytes, phase as u8)
}
