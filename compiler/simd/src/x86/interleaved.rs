//! Interleaved accesses: elements that lie a few apart, as whole vectors whose lanes are put in order.
//!
//! Invariant: nothing is touched before the first element that an active iteration wants, or behind the last one.

use super::Level;
use super::inst::{Elements, Op};
use super::program::Program;
use crate::ir::GROUP;

/// Elements of a group that lie two, three or four apart, or the last first, and what lies between.
///
/// A *phase* is one of the accesses that share the vectors: its elements are `steps * iteration + phase`, counted from
/// the first iteration's element of phase 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Interleaved {
    /// Of its vectors.
    pub level: Level,
    /// The first iteration's element of phase 0.
    pub from: Elements,
    /// Elements from iteration to iteration: 2, 3, 4 or -1.
    pub steps: i64,
    /// Of the phases that are loaded: what lies outside may not be there.
    pub least: u8,
    pub greatest: u8,
    /// Whether it is stored; then it begins with phase 0 and ends before the next group's.
    pub stored: bool,
}

impl Interleaved {
    /// Lanes of a vector.
    pub fn lanes(&self) -> i64 {
        i64::from(self.level.bytes()) / i64::from(self.from.bytes.max(4))
    }

    /// How many vectors it takes.
    pub fn vectors(&self) -> i64 {
        self.steps.max(1)
    }

    /// The first element of the n-th vector, counted as phases are.
    pub fn start(&self, nth: u8) -> i64 {
        let lanes = self.lanes();
        if self.steps < 0 {
            return 1 - lanes;
        }
        let first = i64::from(self.least) + lanes * i64::from(nth);
        // The last one ends with the last element.
        first.min(self.steps * (lanes - 1) + i64::from(self.greatest) + 1 - lanes)
    }

    /// Whether all elements are narrow and in 64 bytes, so that one load and a shuffle of each phase do.
    pub fn is_short(self) -> bool {
        self.steps > 0 && self.from.bytes < 4 && self.steps * i64::from(self.from.bytes) <= 4
    }

    /// Bytes from the first phase that is loaded of one iteration to that of the next.
    pub fn step_bytes(&self) -> i64 {
        self.steps * i64::from(self.from.bytes)
    }

    /// Bytes between what is loaded of one iteration and of the next.
    pub fn gap(&self) -> i64 {
        (self.steps - 1 - i64::from(self.greatest - self.least)) * i64::from(self.from.bytes)
    }

    /// A bit for each byte of a group of a short access.
    pub fn bytes(&self) -> Op {
        let count = self.step_bytes() * GROUP as i64 - self.gap();
        Op::Constant { bits: u64::MAX >> (64 - count), bytes: 8 }
    }

    /// The order of lanes of 32 bits that brings the bytes of four iterations into each 128 bits of a short access.
    pub fn quarters(&self) -> Vec<i64> {
        (0..GROUP as i64).map(|lane| (lane / 4 * self.step_bytes() + lane % 4).min(GROUP as i64 - 1)).collect()
    }

    /// The order of these bytes that brings those of a phase to their lanes; none where the highest bit is set.
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

    /// The lanes that a permutation takes for the n-th round: of two vectors, the second one's after the first one's.
    ///
    /// Loads: round 0 takes from the first two vectors, each next one from the result and the next vector. Stores: for
    /// the vector `round`, from the result and the value of a phase; of phase 1 from the values of phases 0 and 1.
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
                        // Taken before, or in a later round.
                        _ => lane,
                    }
                }
            })
            .collect()
    }
}

impl Program {
    /// The vectors of accesses that lie `steps` elements apart, with this phase.
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

    /// The vectors of accesses of which all phases are known.
    pub fn whole_access(&mut self, access: Interleaved) -> u32 {
        let known = self.interleaved.iter().position(|s| *s == access);
        known.unwrap_or_else(|| {
            self.interleaved.push(access);
            self.interleaved.len() - 1
        }) as u32
    }
}
