//! Loads, stores, and what accumulators take, of halves.
//!
//! Invariant: in the last group, nothing is touched but for the places that there are.

use super::Halves;
use super::arith::is_one;
use super::masks::Mask;
use crate::wide::codes::*;
use crate::wide::encode::Code;
use crate::wide::inst::{Effect, Elements, Inst, Op, Reg};
use crate::wide::program::{Carried, Lanes};

/// The elements of a half of a vector that lie side by side.
fn side_by_side(at: Elements, part: u8) -> Elements {
    let bytes = if at.bytes == 8 { 32 } else { 8 * i32::from(at.bytes) };
    Elements { offset: at.offset + bytes * i32::from(part), ..at }
}

/// The half of the places that a half of a vector is for.
fn places(at: Elements, part: u8) -> u8 {
    if at.bytes == 8 { u8::from(at.upper) } else { part }
}

impl Halves<'_> {
    /// A mask in the form for elements of some bytes.
    fn form(&mut self, mask: Mask, bytes: u8, part: u8) -> Reg {
        if bytes == 8 { self.long(mask, part) } else { self.narrow(mask) }
    }

    /// The places that an access touches, if not all.
    fn touched(&mut self, at: Elements, mask: Option<Reg>, part: u8) -> Option<Mask> {
        // Masks of the last eight places stand in their lower bits.
        let of = if at.bytes == 8 { 0 } else { part };
        let mask = mask.map(|mask| self.mask(mask, of));
        self.under(places(at, part), mask)
    }

    pub(super) fn loaded(&mut self, (code, from): (Code, Elements), mask: Option<Reg>, part: u8) -> Reg {
        let under = self.touched(from, mask, part);
        let near = side_by_side(from, part);
        let Some(under) = under else { return self.to.make(Op::Load { code, from: near }, &[]) };
        let mask = self.form(under, from.bytes, part);
        match from.bytes {
            bytes @ (1 | 2) => self.to.make(Op::LoadSome { code, from: near, step: bytes.into() }, &[mask]),
            _ => {
                let code = LOAD_SOME[usize::from(from.bytes == 8)];
                self.to.make(Op::Load { code, from: near }, &[mask])
            }
        }
    }

    pub(super) fn gathered(&mut self, (code, from): (Code, Elements), inst: &Inst, part: u8) -> Reg {
        let under = self.touched(from, inst.args.get(1).copied(), part);
        if under.is_none()
            && let Some(phase) = self.phase(inst)
        {
            return self.picked(phase, code, part);
        }
        if from.bytes < 4 {
            let under = under.expect("narrow elements of all places are part of a stretch");
            let (mask, step) = (self.narrow(under), self.step(inst.args[0]) as i32);
            let from = Elements { offset: from.offset + 8 * i32::from(part) * step, ..from };
            return self.to.make(Op::LoadSome { code, from, step }, &[mask]);
        }
        let offsets = if from.bytes == 8 {
            // Four offsets of 32 bits for four elements.
            let all = self.vector(inst.args[0], 0);
            if part == 0 { all } else { self.upper_128(all) }
        } else {
            self.vector(inst.args[0], part)
        };
        match under {
            Some(under) => {
                let mask = self.form(under, from.bytes, part);
                self.to.make(Op::Gather { code, from }, &[offsets, mask])
            }
            None => self.to.make(Op::Gather { code, from }, &[offsets]),
        }
    }

    /// What an effect does for one half of the places.
    pub(super) fn effect(&mut self, effect: &Effect, half: u8) {
        match *effect {
            Effect::Store { code, to, value, mask } => {
                for part in parts(to.bytes == 8, to.upper, half) {
                    self.store((code, to), value, mask, part);
                }
            }
            Effect::Scatter { to, offsets, value, mask, .. } => {
                let step = self.step(offsets);
                for part in parts(to.bytes == 8, to.upper, half) {
                    self.apart((to, step), value, mask, part);
                }
            }
            Effect::Interleave { to, steps, ref values } => {
                let values = &values[..steps.max(1) as usize];
                for part in parts(to.bytes == 8, to.upper, half) {
                    self.interleave((to, steps), values, part);
                }
            }
            Effect::Take { accumulator, code, value, mask: None } if !self.tail && is_one(code) => {
                for (accumulator, part) in self.accumulators_of(accumulator, half) {
                    let value = self.vector(value, part);
                    self.to.effect(Effect::Take { accumulator, code, value, mask: None });
                }
            }
            Effect::TakeFma { accumulator, wide, a, b, mask: None } if !self.tail => {
                for (accumulator, part) in self.accumulators_of(accumulator, half) {
                    let (a, b) = (self.vector(a, part), self.vector(b, part));
                    self.to.effect(Effect::TakeFma { accumulator, wide, a, b, mask: None });
                }
            }
            Effect::Take { accumulator, code, value, mask: None } => {
                self.accumulate(accumulator, half, |h, old, part| {
                    let value = h.vector(value, part);
                    h.of_two(code, old, value)
                });
            }
            Effect::TakeFma { accumulator, wide, a, b, mask: None } => {
                self.accumulate(accumulator, half, |h, old, part| {
                    let (a, b) = (h.vector(a, part), h.vector(b, part));
                    h.to.make(Op::Fma { wide }, &[a, b, old])
                })
            }
            Effect::Put { accumulator, value } => {
                self.accumulate(accumulator, half, |h, _, part| h.vector(value, part));
            }
            Effect::Take { .. } | Effect::TakeFma { .. } | Effect::StorePiece { .. } | Effect::Spread { .. } => {
                unreachable!("programs for halves have no {effect:?}")
            }
        }
    }

    /// Where an accumulator of the program is for the lanes of some places.
    fn lanes(&self, accumulator: usize) -> Lanes {
        match self.from.carried[accumulator] {
            Carried::Accumulator { at, .. } => at,
            Carried::Ramp { .. } => unreachable!("only accumulators take values"),
        }
    }

    /// The accumulators for some places, and which half of the program's each is.
    fn accumulators_of(&self, accumulator: usize, half: u8) -> impl Iterator<Item = (usize, u8)> + use<> {
        let at = self.lanes(accumulator);
        let halves = self.accumulators[accumulator].map(|h| h.0);
        parts(at.long, at.upper, half).map(move |part| (halves[usize::from(part)], part))
    }

    /// Replaces what an accumulator holds for some places.
    fn accumulate(&mut self, accumulator: usize, half: u8, new: impl Fn(&mut Self, Reg, u8) -> Reg) {
        let at = self.lanes(accumulator);
        for part in parts(at.long, at.upper, half) {
            let (accumulator, old) = self.accumulators[accumulator][usize::from(part)];
            let mut value = new(self, old, part);
            if let Some(there) = self.there(half) {
                let mask = if at.long { self.long(there, part) } else { self.narrow(there) };
                value = self.to.make(Op::BlendBy { code: BLEND_BY[usize::from(at.long)] }, &[mask, old, value]);
            }
            self.to.effect(Effect::Put { accumulator, value });
        }
    }

    fn store(&mut self, (code, to): (Code, Elements), value: Reg, mask: Option<Reg>, part: u8) {
        let under = self.touched(to, mask, part);
        let half = self.vector(value, part);
        let near = side_by_side(to, part);
        let mask = under.map(|under| self.form(under, to.bytes, part));
        if to.bytes >= 4 {
            let code = if mask.is_some() { STORE_SOME[usize::from(to.bytes == 8)] } else { code };
            return self.to.effect(Effect::Store { code, to: near, value: half, mask });
        }
        let value = self.packed(half, to.bytes);
        self.to.effect(match mask {
            Some(mask) => Effect::Spread { to: near, step: to.bytes.into(), value, mask: Some((mask, 0)) },
            None => {
                let code = if to.bytes == 1 { STORE_64 } else { STORE_128 };
                Effect::Store { code, to: near, value, mask: None }
            }
        });
    }

    /// Eight lanes of 32 bits as elements of 8 or 16 bits, side by side.
    fn packed(&mut self, lanes: Reg, bytes: u8) -> Reg {
        let low = self.constant(if bytes == 1 { 0xff } else { 0xffff }, false);
        let low = self.plain(AND[0], &[lanes, low]);
        let upper = self.upper_128(low);
        let words = self.plain(PACK_16, &[low, upper]);
        if bytes == 1 { self.plain(PACK_8, &[words, words]) } else { words }
    }

    /// Bytes from each of some offsets to the next.
    pub(super) fn step(&self, offsets: Reg) -> i64 {
        match self.from.made[offsets.0 as usize].as_ref().map(|inst| inst.op) {
            Some(Op::Steps { step, .. }) => step,
            _ => unreachable!("elements apart are evenly so"),
        }
    }

    /// Stores elements `step` bytes apart.
    pub(super) fn apart(&mut self, (to, step): (Elements, i64), value: Reg, mask: Option<Reg>, part: u8) {
        let under = self.touched(to, mask, part);
        let mask = under.map(|under| self.form(under, to.bytes, part));
        let half = self.vector(value, part);
        let upper = self.upper_128(half);
        let lanes = 16 / to.bytes;
        for (n, value) in [half, upper].into_iter().enumerate() {
            let first = lanes * n as u8;
            let place = step * i64::from(lanes * 2 * part + first);
            let to = Elements { offset: to.offset + place as i32, ..to };
            let mask = mask.map(|mask| (mask, first));
            self.to.effect(Effect::Spread { to, step: step as i32, value, mask });
        }
    }
}

/// The halves of a vector that are for one half of the places.
fn parts(long: bool, upper: bool, half: u8) -> std::ops::Range<u8> {
    match (long, upper == (half == 1)) {
        (false, _) => half..half + 1,
        (true, true) => 0..2,
        (true, false) => 0..0,
    }
}
