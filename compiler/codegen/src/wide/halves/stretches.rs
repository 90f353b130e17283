//! Elements a few places apart, as whole vectors whose lanes are put in order.
//!
//! Every group but the last loads a stretch from the first element that some place wants to the last one, in pieces, and
//! stores one whose phases are all there. Lanes of pieces that do not stand in each other's way are put into one
//! vector first; those of two pieces that do are taken by one shuffle, if it can; then all go to their places.
//!
//! Invariant: nothing is loaded before the first or behind the last element that a group wants.

use super::Halves;
use crate::wide::codes::*;
use crate::wide::encode::Code;
use crate::wide::inst::{Effect, Elements, Inst, Item, Op, Reg, Width};
use crate::wide::program::Program;
use crate::wide::stretch::Stretch;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The least and the greatest phase that is loaded of each stretch: by the first place's element of phase 0, and the steps.
pub(super) type Phases = FxHashMap<(Elements, i64), (u8, u8)>;

/// One of the accesses that share a stretch.
#[derive(Clone, Copy)]
pub(super) struct Phase {
    from: Elements,
    steps: i64,
    phase: u8,
}

/// A vector, and which of its lanes are wanted at which places of another one.
struct Holder {
    reg: Reg,
    wanted: SmallVec<[(u8, u8); 8]>,
}

/// The phases of all stretches of a program.
pub(super) fn phases(program: &Program) -> Phases {
    let mut phases = Phases::default();
    for item in &program.body {
        let Item::Make(reg) = item else { continue };
        let found = program.made[reg.0 as usize].as_ref().and_then(|inst| phase(program, inst));
        if let Some(Phase { from, steps, phase }) = found {
            let (least, greatest) = phases.entry((from, steps)).or_insert((phase, phase));
            (*least, *greatest) = ((*least).min(phase), (*greatest).max(phase));
        }
    }
    phases
}

/// What a load is of a stretch, if every place does it.
fn phase(program: &Program, inst: &Inst) -> Option<Phase> {
    let (Op::Gather { from, .. }, [offsets]) = (inst.op, &inst.args[..]) else { return None };
    let Op::Steps { step, .. } = program.made[offsets.0 as usize].as_ref()?.op else { return None };
    let steps = step / i64::from(from.bytes);
    if step % i64::from(from.bytes) != 0 || !matches!(steps, -1 | 2..=4) {
        return None;
    }
    let phase = if steps < 0 { 0 } else { from.offset.div_euclid(from.bytes.into()).rem_euclid(steps as i32) };
    let from = Elements { offset: from.offset - phase * i32::from(from.bytes), ..from };
    Some(Phase { from, steps, phase: phase as u8 })
}

/// The stretch for one vector of places.
fn part_of(from: Elements, steps: i64, (least, greatest): (u8, u8), stored: bool, part: u8) -> Stretch {
    let stretch = Stretch { width: Width::Half, from, steps, least, greatest, stored };
    let ahead = stretch.lanes() * steps * i64::from(from.bytes) * i64::from(part);
    Stretch { from: Elements { offset: from.offset + ahead as i32, ..from }, ..stretch }
}

impl Halves<'_> {
    /// What a load of every place is of a stretch.
    pub(super) fn phase(&self, inst: &Inst) -> Option<Phase> {
        phase(self.from, inst)
    }

    /// The elements of a phase.
    pub(super) fn picked(&mut self, Phase { from, steps, phase }: Phase, code: Code, part: u8) -> Reg {
        let stretch = part_of(from, steps, self.stretches[&(from, steps)], false, part);
        let long = from.bytes == 8;
        let code = if from.bytes < 4 { code } else { LOAD[usize::from(long)] };
        let n = self.to.whole_stretch(stretch);
        let mut holders: Vec<Holder> = (0..stretch.pieces() as u8)
            .map(|piece| Holder {
                reg: self.to.make(Op::Piece { code, stretch: n, piece }, &[]),
                wanted: SmallVec::new(),
            })
            .collect();
        for place in 0..stretch.lanes() {
            let at = steps * place + i64::from(phase);
            let of = (0..holders.len()).rev().find(|&piece| stretch.start(piece as u8) <= at).unwrap_or(0);
            holders[of].wanted.push(((at - stretch.start(of as u8)) as u8, place as u8));
        }
        self.arranged(holders, long)
    }

    /// Stores the elements of all phases.
    pub(super) fn interleave(&mut self, (to, steps): (Elements, i64), values: &[Reg], part: u8) {
        let bytes = i32::from(to.bytes);
        if self.tail {
            for (phase, &value) in (0..).zip(values) {
                let to = Elements { offset: to.offset + phase * bytes, ..to };
                self.apart((to, steps * i64::from(bytes)), value, None, part);
            }
            return;
        }
        let long = usize::from(to.bytes == 8);
        let stretch = part_of(to, steps, (0, values.len() as u8 - 1), true, part);
        let values: SmallVec<[Reg; 4]> = values.iter().map(|&value| self.vector(value, part)).collect();
        let pieces = match *values.as_slice() {
            [a, b] => self.woven(a, b, long),
            _ => (0..stretch.pieces() as u8).map(|piece| self.piece_of(stretch, &values, piece)).collect(),
        };
        let n = self.to.whole_stretch(stretch);
        for (piece, value) in (0..).zip(pieces) {
            let code = STORE[long];
            self.to.effect(Effect::StorePiece { code, stretch: n, piece, value, mask: None });
        }
    }

    /// The elements of two phases in turn.
    fn woven(&mut self, a: Reg, b: Reg, long: usize) -> SmallVec<[Reg; 4]> {
        let [lower, upper] = [WEAVE_LOWER, WEAVE_UPPER].map(|code| self.plain(code[long], &[a, b]));
        [0x20, 0x31].into_iter().map(|which| self.with(JOIN_ANY_128, which, &[lower, upper])).collect()
    }

    /// A vector of a stretch in its order in memory.
    fn piece_of(&mut self, stretch: Stretch, values: &[Reg], piece: u8) -> Reg {
        let mut holders: Vec<Holder> = values.iter().map(|&reg| Holder { reg, wanted: SmallVec::new() }).collect();
        for lane in 0..stretch.lanes() {
            let at = stretch.start(piece) + lane;
            let (phase, of) = if stretch.steps < 0 { (0, -at) } else { (at % stretch.steps, at / stretch.steps) };
            holders[phase as usize].wanted.push((of as u8, lane as u8));
        }
        self.arranged(holders, stretch.from.bytes == 8)
    }

    /// All lanes at the places where they are wanted.
    fn arranged(&mut self, holders: Vec<Holder>, long: bool) -> Reg {
        let mut rest = self.chosen(holders, long);
        while rest.len() > 1 {
            let pairs: Option<Vec<Shuffle>> =
                rest.chunks(2).zip([0, 1]).map(|(pair, slot)| Shuffle::of(pair, slot)).collect();
            let Some(pairs) = pairs.filter(|_| !long) else {
                // Each to its places, where they do not meet.
                rest = rest.into_iter().map(|holder| self.placed(holder, long)).collect();
                rest = self.chosen(rest, long);
                break;
            };
            rest = rest.chunks(2).zip(pairs).map(|(pair, shuffle)| self.shuffled(pair, shuffle)).collect();
            rest = self.chosen(rest, long);
        }
        let whole = rest.pop().expect("a load wants at least one piece");
        self.placed(whole, long).reg
    }

    /// Holders whose lanes do not meet as one.
    fn chosen(&mut self, holders: Vec<Holder>, long: bool) -> Vec<Holder> {
        let mut done: Vec<Holder> = Vec::new();
        let lanes = |holder: &Holder| holder.wanted.iter().fold(0u8, |bits, w| bits | 1 << w.0);
        for holder in holders {
            let bits = lanes(&holder);
            match done.iter_mut().find(|other| lanes(other) & bits == 0) {
                Some(other) => {
                    let code = CHOOSE[usize::from(long)];
                    other.reg = self.with(code, bits, &[other.reg, holder.reg]);
                    other.wanted.extend(holder.wanted);
                }
                None => done.push(holder),
            }
        }
        done
    }

    fn shuffled(&mut self, pair: &[Holder], shuffle: Shuffle) -> Holder {
        let reg = match pair {
            [a, b] => self.with(SHUFFLE, shuffle.immediate, &[a.reg, b.reg]),
            _ => pair[0].reg,
        };
        Holder { reg, wanted: shuffle.wanted }
    }

    /// With the lanes at their places; what is at other places is of no concern.
    fn placed(&mut self, holder: Holder, long: bool) -> Holder {
        let wanted = holder.wanted.iter().map(|w| (w.1, w.1)).collect();
        let of = |place: u8| holder.wanted.iter().find(|w| w.1 == place).map(|w| w.0);
        if holder.wanted.iter().all(|w| w.0 == w.1) {
            return Holder { wanted, ..holder };
        }
        // Each quarter of the vector from a quarter, if that will do.
        let quarter = |n: u8| {
            let [lower, upper] = if long { [of(n), None] } else { [of(2 * n), of(2 * n + 1)] };
            match (lower, upper, long) {
                (lower, _, true) => Some(lower.unwrap_or(n)),
                (Some(l), Some(u), _) => (l % 2 == 0 && u == l + 1).then_some(l / 2),
                (Some(l), None, _) => (l % 2 == 0).then_some(l / 2),
                (None, Some(u), _) => (u % 2 == 1).then_some(u / 2),
                (None, None, _) => Some(n),
            }
        };
        let quarters: Option<SmallVec<[u8; 4]>> = (0..4).map(quarter).collect();
        let reg = match quarters {
            Some(quarters) => {
                let immediate = quarters.iter().rev().fold(0, |bits, q| bits << 2 | q);
                self.with(QUARTERS, immediate, &[holder.reg])
            }
            None => {
                let bits = (0..8).rev().fold(0, |bits, place| bits << 4 | u32::from(of(place).unwrap_or(place)));
                let order = self.to.make(Op::Numbers { bits }, &[]);
                self.plain(PERMUTE[0], &[order, holder.reg])
            }
        };
        Holder { reg, wanted }
    }
}

/// Two lanes of one vector and two of another, the same in both halves.
struct Shuffle {
    immediate: u8,
    wanted: SmallVec<[(u8, u8); 8]>,
}

impl Shuffle {
    /// One that leaves nothing out. A vector of which one lane is wanted has it at the first or the second of its two
    /// places.
    fn of(pair: &[Holder], slot: u8) -> Option<Shuffle> {
        let [a, b] = pair else {
            return Some(Shuffle { immediate: 0, wanted: pair.first()?.wanted.clone() });
        };
        let mut shuffle = Shuffle { immediate: 0, wanted: SmallVec::new() };
        for (holder, first) in [(a, 0), (b, 2)] {
            let mut lanes: SmallVec<[u8; 4]> = holder.wanted.iter().map(|w| w.0 % 4).collect();
            lanes.sort_unstable();
            lanes.dedup();
            let taken: [u8; 2] = match *lanes.as_slice() {
                [one] => [one, one],
                [one, other] => [one, other],
                _ => return None,
            };
            shuffle.immediate |= (taken[0] | taken[1] << 2) << (2 * first);
            let place = |lane: u8| if taken[0] == taken[1] { slot } else { u8::from(taken[1] == lane % 4) };
            shuffle.wanted.extend(holder.wanted.iter().map(|w| (w.0 / 4 * 4 + first + place(w.0), w.1)));
        }
        Some(shuffle)
    }
}
