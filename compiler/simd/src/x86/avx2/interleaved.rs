//! Strided accesses with a stride of a few elements, as whole vectors whose lanes are permuted.
//!
//! Every group but the last loads all elements from the first to the last that some iteration needs. It stores whole
//! vectors if the kernel stores the values of all phases. To permute the lanes, first the vectors whose lanes do not
//! overlap are blended into one. Then one shuffle combines two vectors whose lanes overlap, if a shuffle can do so.
//! Last, all lanes are moved to their final positions.
//!
//! Invariant: no load reaches before the first element or past the last element that a group needs.

use super::{Lowering, Regs};
use crate::ir::{Def, Item, Kernel, Lane, Memory, Op, Value};
use crate::x86::inst::{Effect as Do, Elements, Op as Machine, Reg};
use crate::x86::interleaved::Interleaved;
use crate::x86::pairs::*;
use crate::x86::{Level, Options, interleaved_stride, phase};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The least and the greatest phase that is loaded, for each interleaved access. The key is the first iteration's
/// element of phase 0, and the stride in elements.
pub(super) type Phases = FxHashMap<(Elements, i64), (u8, u8)>;

/// One of the accesses that share vectors.
#[derive(Clone, Copy)]
pub(super) struct Phase {
    from: Elements,
    steps: i64,
    phase: u8,
}

/// A vector, and pairs of lanes: a lane of this vector, and the lane of the result that it moves to.
struct Holder {
    reg: Reg,
    wanted: SmallVec<[(u8, u8); 8]>,
}

/// Returns the phases of all interleaved loads of a kernel.
pub(super) fn phases(kernel: &Kernel, options: &Options) -> Phases {
    let mut phases = Phases::default();
    for item in &kernel.items {
        let Item::Make(value) = item else { continue };
        let def = kernel.def(*value);
        let Op::Load(from) = def.op else { continue };
        if let Some(Phase { from, steps, phase }) = phase_of(kernel, def, from).filter(|_| options.whole_vectors) {
            let (least, greatest) = phases.entry((from, steps)).or_insert((phase, phase));
            (*least, *greatest) = ((*least).min(phase), (*greatest).max(phase));
        }
    }
    phases
}

/// Returns the phase of a load in an interleaved access, if the load has no mask.
fn phase_of(kernel: &Kernel, def: &Def, from: Memory) -> Option<Phase> {
    let steps = interleaved_stride(def.lane, kernel.stride(from)).filter(|_| def.args.is_empty())?;
    let (offset, phase) = phase(from.offset, def.lane.bytes(), steps);
    let from = Elements { pointer: from.pointer, offset, bytes: def.lane.bytes() as u8, upper: false };
    Some(Phase { from, steps, phase })
}

/// Returns the access for one vector of iterations: eight iterations, or four if elements have 64 bits.
fn part_of(
    from: Elements,
    steps: i64,
    (least, greatest): (u8, u8),
    stored: bool,
    (half, quarter): (u8, u8),
) -> Interleaved {
    let access = Interleaved { level: Level::Avx2, from, steps, least, greatest, stored };
    let iterations = 8 * i64::from(half) + access.lanes() * i64::from(quarter);
    let ahead = iterations * steps * i64::from(from.bytes);
    Interleaved { from: Elements { offset: from.offset + ahead as i32, ..from }, ..access }
}

impl Lowering<'_> {
    /// Returns the phase of a load in an interleaved access, if whole vectors are allowed.
    pub(super) fn phase(&self, def: &Def, from: Memory) -> Option<Phase> {
        phase_of(self.kernel, def, from).filter(|_| self.options.whole_vectors)
    }

    /// Loads the elements of a phase.
    pub(super) fn picked(&mut self, Phase { from, steps, phase }: Phase, lane: Lane, part: (u8, u8)) -> Reg {
        let access = part_of(from, steps, self.phases[&(from, steps)], false, part);
        let long = lane.is_long();
        let code = if lane.bytes() < 4 { load_code(lane) } else { LOAD[usize::from(long)] };
        let n = self.to.whole_access(access);
        let mut holders: Vec<Holder> = (0..access.vectors() as u8)
            .map(|nth| Holder {
                reg: self.to.make(Machine::Whole { code, interleaved: n, nth }, &[]),
                wanted: SmallVec::new(),
            })
            .collect();
        for lane in 0..access.lanes() {
            let at = steps * lane + i64::from(phase);
            let of = (0..holders.len()).rev().find(|&nth| access.start(nth as u8) <= at).unwrap_or(0);
            holders[of].wanted.push(((at - access.start(of as u8)) as u8, lane as u8));
        }
        self.arranged(holders, long)
    }

    /// Stores the elements of phases.
    pub(super) fn store_interleaved(&mut self, to: Memory, values: &[(u8, Value)], half: u8) {
        let lane = self.kernel.lane(values[0].1);
        let (long, bytes) = (usize::from(lane.is_long()), lane.bytes());
        let steps = interleaved_stride(lane, self.kernel.stride(to)).expect("elements are a few apart");
        let complete = values.len() as i64 == steps.max(1);
        if self.tail || !complete || !self.options.whole_vectors {
            for &(phase, value) in values {
                let to = Memory { offset: to.offset + i32::from(phase) * bytes as i32, ..to };
                self.store(to, value, None, half);
            }
            return;
        }
        let vectors: SmallVec<[Regs; 4]> = values.iter().map(|v| self.vectors(v.1, half)).collect();
        let from = Elements { pointer: to.pointer, offset: to.offset, bytes: bytes as u8, upper: false };
        for quarter in 0..=long {
            let access = part_of(from, steps, (0, values.len() as u8 - 1), true, (half, quarter as u8));
            let values: SmallVec<[Reg; 4]> = vectors.iter().map(|v| v[quarter]).collect();
            let whole = match *values.as_slice() {
                [a, b] => self.in_turn(a, b, long),
                _ => (0..access.vectors() as u8).map(|nth| self.whole_of(access, &values, nth)).collect(),
            };
            let interleaved = self.to.whole_access(access);
            for (nth, value) in (0..).zip(whole) {
                self.to.effect(Do::StoreWhole { code: STORE[long], interleaved, nth, value, mask: None });
            }
        }
    }

    /// Interleaves the elements of two phases.
    fn in_turn(&mut self, a: Reg, b: Reg, long: usize) -> SmallVec<[Reg; 4]> {
        let [lower, upper] = [UNPACK_LOWER, UNPACK_UPPER].map(|code| self.to.plain(code[long], &[a, b]));
        [0x20, 0x31].into_iter().map(|which| self.to.with(JOIN_ANY_128, which, &[lower, upper])).collect()
    }

    /// Permutes values to the n-th whole vector of an access, in memory order.
    fn whole_of(&mut self, access: Interleaved, values: &[Reg], nth: u8) -> Reg {
        let mut holders: Vec<Holder> = values.iter().map(|&reg| Holder { reg, wanted: SmallVec::new() }).collect();
        for lane in 0..access.lanes() {
            let at = access.start(nth) + lane;
            let (phase, of) = if access.steps < 0 { (0, -at) } else { (at % access.steps, at / access.steps) };
            holders[phase as usize].wanted.push((of as u8, lane as u8));
        }
        self.arranged(holders, access.from.bytes == 8)
    }

    /// Combines holders into one vector with all lanes at their final positions.
    fn arranged(&mut self, holders: Vec<Holder>, long: bool) -> Reg {
        let mut rest = self.chosen(holders, long);
        while rest.len() > 1 {
            let pairs: Option<Vec<Shuffle>> =
                rest.chunks(2).zip([0, 1]).map(|(pair, slot)| Shuffle::of(pair, slot)).collect();
            let Some(pairs) = pairs.filter(|_| !long) else {
                // Moves each vector's lanes to their final positions, where they do not overlap.
                rest = rest.into_iter().map(|holder| self.placed(holder, long)).collect();
                rest = self.chosen(rest, long);
                break;
            };
            rest = rest.chunks(2).zip(pairs).map(|(pair, shuffle)| self.shuffled(pair, shuffle)).collect();
            rest = self.chosen(rest, long);
        }
        let whole = rest.pop().expect("an access has at least one vector");
        self.placed(whole, long).reg
    }

    /// Blends holders whose lanes do not overlap.
    fn chosen(&mut self, holders: Vec<Holder>, long: bool) -> Vec<Holder> {
        let mut done: Vec<Holder> = Vec::new();
        let lanes = |holder: &Holder| holder.wanted.iter().fold(0u8, |bits, w| bits | 1 << w.0);
        for holder in holders {
            let bits = lanes(&holder);
            match done.iter_mut().find(|other| lanes(other) & bits == 0) {
                Some(other) => {
                    let code = CHOOSE[usize::from(long)];
                    other.reg = self.to.with(code, bits, &[other.reg, holder.reg]);
                    other.wanted.extend(holder.wanted);
                }
                None => done.push(holder),
            }
        }
        done
    }

    fn shuffled(&mut self, pair: &[Holder], shuffle: Shuffle) -> Holder {
        let reg = match pair {
            [a, b] => self.to.with(SHUFFLE, shuffle.immediate, &[a.reg, b.reg]),
            _ => pair[0].reg,
        };
        Holder { reg, wanted: shuffle.wanted }
    }

    /// Moves the lanes of a holder to their final positions; the other lanes are undefined.
    fn placed(&mut self, holder: Holder, long: bool) -> Holder {
        let wanted = holder.wanted.iter().map(|w| (w.1, w.1)).collect();
        let of = |lane: u8| holder.wanted.iter().find(|w| w.1 == lane).map(|w| w.0);
        if holder.wanted.iter().all(|w| w.0 == w.1) {
            return Holder { wanted, ..holder };
        }
        // Permutes 64-bit quarters of the vector, if that is enough.
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
                self.to.with(QUARTERS, immediate, &[holder.reg])
            }
            None => {
                let bits = (0..8).rev().fold(0, |bits, lane| bits << 4 | u64::from(of(lane).unwrap_or(lane)));
                let order = self.to.make(Machine::Lanes { bits }, &[]);
                self.to.plain(PERMUTE[0], &[order, holder.reg])
            }
        };
        Holder { reg, wanted }
    }
}

/// A shuffle that takes two lanes of one vector and two of another, alike in both 128-bit halves.
struct Shuffle {
    immediate: u8,
    wanted: SmallVec<[(u8, u8); 8]>,
}

impl Shuffle {
    /// Returns a shuffle that keeps all wanted lanes. If one lane of a vector is wanted, `slot` says whether it becomes
    /// the first or the second of that vector's two lanes.
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
            let second = |lane: u8| if taken[0] == taken[1] { slot } else { u8::from(taken[1] == lane % 4) };
            shuffle.wanted.extend(holder.wanted.iter().map(|w| (w.0 / 4 * 4 + first + second(w.0), w.1)));
        }
        Some(shuffle)
    }
}
