//! Loads, stores and accumulators, for one half of the iterations.
//!
//! Invariant: in the last group, only active iterations access memory and accumulators.

use super::arith::one_instruction;
use super::{Lowering, Regs};
use crate::ir::{AccumulatorId, Def, Effect, Lane, Memory, Reduction, Value};
use crate::x86::inst::{Effect as Do, Elements, Op as Machine, Reg};
use crate::x86::pairs::*;
use smallvec::SmallVec;

impl Lowering<'_> {
    /// Returns the contiguous elements of the first vector of a half.
    fn elements(&self, lane: Lane, at: Memory, half: u8) -> Elements {
        let bytes = lane.bytes() as u8 * self.kernel.per_iteration;
        let ahead = 8 * i32::from(bytes) * i32::from(half);
        Elements { pointer: at.pointer, offset: at.offset + ahead, bytes, upper: false }
    }

    /// Loads elements.
    pub(super) fn load(&mut self, def: &Def, from: Memory, half: u8) -> Regs {
        let lane = def.lane;
        if def.args.is_empty() && self.kernel.is_still(lane, from) {
            let element = self.to.make(Machine::Broadcast { from: self.elements(lane, from, 0) }, &[]);
            return SmallVec::from_elem(element, 1 + usize::from(lane.is_long()));
        }
        let under = self.under(half, def.args.first().copied());
        if !self.kernel.is_contiguous(lane, from) {
            return self.load_strided(def, from, under, half);
        }
        let (long, first) = (lane.is_long(), self.elements(lane, from, half));
        let code = if self.kernel.per_iteration > 1 { LOAD[0] } else { load_code(lane) };
        (0..1 + usize::from(long))
            .map(|quarter| {
                let from = Elements { offset: first.offset + 32 * quarter as i32, ..first };
                let Some(under) = under else { return self.to.make(Machine::Load { code, from }, &[]) };
                let mask = self.form(under, long, quarter);
                match from.bytes {
                    bytes @ (1 | 2) => self.to.make(Machine::LoadSome { code, from, step: bytes.into() }, &[mask]),
                    _ => self.to.make(Machine::Load { code: LOAD_SOME[usize::from(long)], from }, &[mask]),
                }
            })
            .collect()
    }

    /// Loads permuted elements of a half one by one.
    pub(super) fn load_permuted(&mut self, lane: Lane, from: Memory, order: u64, half: u8) -> Reg {
        let from = Elements { pointer: from.pointer, offset: from.offset, bytes: lane.bytes() as u8, upper: false };
        let numbers = self.to.make(Machine::Lanes { bits: order >> (32 * half) & u64::from(u32::MAX) }, &[]);
        let offsets = self.to.shift(SHIFT_LEFT[0], 2, numbers);
        self.to.make(Machine::Gather { code: pick(GATHER, lane), from }, &[offsets])
    }

    fn load_strided(&mut self, def: &Def, from: Memory, under: Option<super::Mask>, half: u8) -> Regs {
        let (lane, stride) = (def.lane, self.kernel.stride(from));
        let (long, bytes) = (lane.is_long(), lane.bytes() as u8);
        if under.is_none()
            && let Some(phase) = self.phase(def, from)
        {
            return (0..1 + u8::from(long)).map(|quarter| self.picked(phase, lane, (half, quarter))).collect();
        }
        let at = Elements { pointer: from.pointer, offset: from.offset, bytes, upper: false };
        if bytes < 4 {
            // Narrow strided elements are loaded as whole vectors where that is allowed, otherwise one by one.
            let under = under.unwrap_or_else(|| self.all());
            let (mask, step) = (self.narrow_form(under), stride as i32);
            let from = Elements { offset: at.offset + 8 * i32::from(half) * step, ..at };
            return [self.to.make(Machine::LoadSome { code: load_code(lane), from, step }, &[mask])].as_slice().into();
        }
        let code = pick(GATHER, lane);
        (0..1 + usize::from(long))
            .map(|quarter| {
                let (ramp, from) = match long {
                    // Four 32-bit offsets for four elements.
                    true => (0, Elements { offset: at.offset + 8 * stride as i32 * i32::from(half), ..at }),
                    false => (8 * stride * i64::from(half), at),
                };
                let all = self.to.make(Machine::Ramp { start: ramp, step: stride, bytes: 4 }, &[]);
                let offsets = if quarter == 0 { all } else { self.upper_128(all) };
                match under {
                    Some(under) => {
                        let mask = self.form(under, long, quarter);
                        self.to.make(Machine::Gather { code, from }, &[offsets, mask])
                    }
                    None => self.to.make(Machine::Gather { code, from }, &[offsets]),
                }
            })
            .collect()
    }

    /// Emits an effect for one half.
    pub(super) fn effect(&mut self, effect: &Effect, half: u8) {
        match effect {
            Effect::Store { to, value, mask } => self.store(*to, *value, *mask, half),
            Effect::StoreInterleaved { to, values } => self.store_interleaved(*to, values, half),
            Effect::Accumulate { accumulator, op, value, mask } => {
                self.accumulate(*accumulator, *op, *value, *mask, half);
            }
            Effect::AccumulateProduct { accumulator, factors, mask } => {
                self.accumulate_product(*accumulator, *factors, *mask, half);
            }
        }
    }

    pub(super) fn store(&mut self, to: Memory, value: Value, mask: Option<Value>, half: u8) {
        let lane = self.kernel.lane(value);
        let under = self.under(half, mask);
        let values = self.vectors(value, half);
        let long = lane.is_long();
        if !self.kernel.is_contiguous(lane, to) {
            for (quarter, &value) in values.iter().enumerate() {
                let mask = under.map(|under| self.form(under, long, quarter));
                self.store_strided(to, lane, value, mask, (half, quarter));
            }
            return;
        }
        let first = self.elements(lane, to, half);
        let known = if mask.is_none() { self.active_count(half).filter(|&count| count < 8) } else { None };
        for (quarter, &value) in values.iter().enumerate() {
            let to = Elements { offset: first.offset + 32 * quarter as i32, ..first };
            if let Some(count) = known {
                let count = if long { count.saturating_sub(4 * quarter as u8).min(4) } else { count };
                let value = if to.bytes >= 4 { value } else { self.packed(value, to.bytes) };
                if count > 0 {
                    self.to.effect(Do::StoreFirst { to, value, count });
                }
                continue;
            }
            let mask = under.map(|under| self.form(under, long, quarter));
            if to.bytes >= 4 {
                let code = if mask.is_some() { STORE_SOME } else { STORE }[usize::from(long)];
                self.to.effect(Do::Store { code, to, value, mask });
                continue;
            }
            let value = self.packed(value, to.bytes);
            self.to.effect(match mask {
                Some(mask) => Do::Spread { to, step: to.bytes.into(), value, mask: Some((mask, 0)) },
                None => {
                    let code = if to.bytes == 1 { STORE_64 } else { STORE_128 };
                    Do::Store { code, to, value, mask: None }
                }
            });
        }
    }

    /// Packs eight 32-bit lanes into contiguous elements of 8 or 16 bits.
    fn packed(&mut self, lanes: Reg, bytes: u8) -> Reg {
        let lanes = self.unwrapped.get(&lanes).copied().unwrap_or(lanes);
        let low = self.to.with_number(AND, false, lanes, if bytes == 1 { 0xff } else { 0xffff });
        let upper = self.upper_128(low);
        let words = self.to.plain(PACK_16, &[low, upper]);
        if bytes == 1 { self.to.plain(PACK_8, &[words, words]) } else { words }
    }

    /// Stores the elements of a vector one by one.
    fn store_strided(&mut self, to: Memory, lane: Lane, value: Reg, mask: Option<Reg>, (half, quarter): (u8, usize)) {
        let (step, bytes) = (self.kernel.stride(to), lane.bytes() as u8);
        let upper = self.upper_128(value);
        let lanes = 16 / bytes;
        for (n, value) in [value, upper].into_iter().enumerate() {
            let first = lanes * n as u8;
            let iteration = 8 * i64::from(half) + i64::from(lanes * 2) * quarter as i64 + i64::from(first);
            let offset = to.offset + (step * iteration) as i32;
            let to = Elements { pointer: to.pointer, offset, bytes, upper: false };
            let mask = mask.map(|mask| (mask, first));
            self.to.effect(Do::Spread { to, step: step as i32, value, mask });
        }
    }

    fn accumulate(&mut self, id: AccumulatorId, op: Reduction, value: Value, mask: Option<Value>, half: u8) {
        let lane = self.kernel.accumulators[id.0 as usize].lane;
        let mut values = self.vectors(value, half);
        if let Some((x, y)) = self.kernel.summed_bytes(id, op, value).filter(|_| mask.is_none()) {
            let (x, y) = (self.vectors(x, half)[0], y.map(|y| self.vectors(y, half)[0]));
            values[0] = self.to.byte_sums(x, y);
        }
        if let Some(mask) = mask {
            let (mask, identity) = (self.mask(mask, half), self.splat(lane, op.identity(lane)));
            values = self.blend(lane, mask, &values, &identity);
        }
        let extremum = lane.is_float() && matches!(op, Reduction::Min | Reduction::Max);
        let code = if extremum { None } else { one_instruction(op.op(), lane) };
        let accumulators = self.accumulators[id.0 as usize][usize::from(half)].clone();
        if let (Some(code), false) = (code, self.tail) {
            for (&(accumulator, _), &value) in accumulators.iter().zip(&values) {
                self.to.effect(Do::Accumulate { accumulator, code, value, mask: None });
            }
            return;
        }
        let active = self.active(half);
        for (n, (&(accumulator, old), &value)) in accumulators.iter().zip(&values).enumerate() {
            let mut new = if extremum {
                let number = self.to.constant_of(value).map(|bits| lane.float_value(bits));
                let (old, value): (Regs, Regs) = ([old].as_slice().into(), [value].as_slice().into());
                self.extremum(lane, op == Reduction::Min, (None, &old), (number, &value))[0]
            } else {
                self.of_two(op.op(), lane, old, value)
            };
            if let Some(active) = active {
                let mask = self.form(active, lane.is_long(), n);
                let code = BLEND_BY[usize::from(lane.is_long())];
                new = self.to.make(Machine::BlendBy { code }, &[mask, old, new]);
            }
            self.to.effect(Do::Assign { accumulator, value: new });
        }
    }

    fn accumulate_product(&mut self, id: AccumulatorId, [a, b]: [Value; 2], mask: Option<Value>, half: u8) {
        let lane = self.kernel.lane(a);
        let (a, b) = (self.vectors(a, half), self.vectors(b, half));
        let under = self.under(half, mask);
        let accumulators: SmallVec<[(usize, Reg); 2]> = self.accumulators[id.0 as usize][usize::from(half)].clone();
        let long = lane.is_long();
        for (n, &(accumulator, old)) in accumulators.iter().enumerate() {
            let (a, b) = (a[n], b[n]);
            let Some(under) = under else {
                self.to.effect(Do::AccumulateFma { accumulator, long, a, b, mask: None });
                continue;
            };
            let new = self.to.make(Machine::Fma { long, negated: false }, &[a, b, old]);
            let mask = self.form(under, long, n);
            let value = self.to.make(Machine::BlendBy { code: BLEND_BY[usize::from(long)] }, &[mask, old, new]);
            self.to.effect(Do::Assign { accumulator, value });
        }
    }
}
