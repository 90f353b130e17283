//! Accesses a few elements apart, as whole vectors.
//!
//! What is stored waits for its neighbours, as long as nothing else touches the storage.
//!
//! Invariant: only what every place stores or loads unconditionally is part of a stretch, so that its elements are there.

use super::Wide;
use super::body::{load_code, parts};
use crate::lower::vector::search::near;
use crate::wide::{
    Effect, Elements, Op, PERMUTE, PERMUTE_TWO, Program, Reg, SCATTER, SHIFT_RIGHT_SIGNED, SHUFFLE_BYTES, STORE,
    Stretch, Value as Lanes, Width, is_long,
};
use girder_ir::codelet::Storage;
use girder_ir::types::ElemType;
use smallvec::SmallVec;

/// Stores of one stretch that have not been made: the value of each phase.
pub(super) struct Pending {
    storage: Storage,
    from: Elements,
    ty: ElemType,
    stride: i64,
    steps: i64,
    values: Vec<(u8, Lanes)>,
}

/// The first place's element of phase 0, and the phase of an access.
fn phase(at: Elements, steps: i64) -> (Elements, u8) {
    let phase = if steps < 0 { 0 } else { at.offset.div_euclid(at.bytes.into()).rem_euclid(steps as i32) };
    (Elements { offset: at.offset - phase * i32::from(at.bytes), ..at }, phase as u8)
}

/// A phase of a short stretch: a shuffle brings its bytes to their places.
fn short(program: &mut Program, (stretch, phase): (u32, u8), ty: ElemType, steps: i64) -> Reg {
    let signed = ty.is_signed_int();
    let bits = 8 * ty.bytes() as u8;
    let mut bytes = program.make(Op::Bytes { stretch }, &[]);
    if steps * i64::from(ty.bytes()) < 4 {
        let quarters = program.make(Op::Quarters { stretch }, &[]);
        bytes = program.plain(PERMUTE[0], &[quarters, bytes]);
    }
    let picked = program.make(Op::Picked { stretch, phase, upper: signed }, &[]);
    let lanes = program.plain(SHUFFLE_BYTES, &[bytes, picked]);
    match signed {
        true => program.make(Op::Shift { code: SHIFT_RIGHT_SIGNED[0], digit: 4, by: 32 - bits }, &[lanes]),
        false => lanes,
    }
}

impl Wide<'_> {
    /// How many elements apart accesses lie here, if they are part of a stretch.
    pub(super) fn steps(&self, ty: ElemType, stride: i64) -> Option<i64> {
        near(ty, stride).filter(|_| self.there.is_none())
    }

    pub(super) fn load_stretch(
        &mut self,
        at: Elements,
        ty: ElemType,
        (stride, steps): (i64, i64),
    ) -> SmallVec<[Reg; 2]> {
        let (from, phase) = phase(at, steps);
        let (code, long) = (load_code(ty), usize::from(is_long(ty)));
        let program = &mut self.program;
        let part = |from| {
            let stretch = program.stretch(from, steps, phase, false);
            if program.stretches[stretch as usize].is_short() {
                return short(program, (stretch, phase), ty, steps);
            }
            let mut piece = |piece| program.make(Op::Piece { code, stretch, piece }, &[]);
            let pieces: SmallVec<[Reg; 4]> = (0..steps.max(1) as u8).map(&mut piece).collect();
            let order = |round| Op::Order { stretch, phase, round, stored: false };
            if steps < 0 {
                let order = program.make(order(0), &[]);
                return program.plain(PERMUTE[long], &[order, pieces[0]]);
            }
            let mut lanes = pieces[0];
            for (round, &next) in pieces[1..].iter().enumerate() {
                let order = program.make(order(round as u8), &[]);
                lanes = program.make(Op::Permute { code: PERMUTE_TWO[long] }, &[lanes, order, next]);
            }
            lanes
        };
        parts(from, stride).into_iter().map(part).collect()
    }

    pub(super) fn store_stretch(
        &mut self,
        (storage, at): (Storage, Elements),
        value: &Lanes,
        (stride, steps): (i64, i64),
    ) {
        let (from, phase) = phase(at, steps);
        let same = |p: &Pending| p.storage == storage && p.from == from && p.steps == steps;
        if !self.pending.iter().any(same) {
            self.store_pending(Some(storage));
            self.pending.push(Pending { storage, from, ty: value.ty, stride, steps, values: Vec::new() });
        }
        let Some(pending) = self.pending.iter_mut().find(|p| same(p)) else { return };
        pending.values.retain(|v| v.0 != phase);
        pending.values.push((phase, value.clone()));
        pending.values.sort_by_key(|v| v.0);
        if pending.values.len() as i64 == steps.max(1) {
            self.store_pending(Some(storage));
        }
    }

    /// Makes the stores of a storage, or of all, that have waited.
    pub(super) fn store_pending(&mut self, storage: Option<Storage>) {
        let (now, later) =
            std::mem::take(&mut self.pending).into_iter().partition(|p| storage.is_none_or(|s| s == p.storage));
        self.pending = later;
        let now: Vec<Pending> = now;
        now.iter().for_each(|pending| self.store_pieces(pending));
    }

    fn store_pieces(&mut self, pending: &Pending) {
        let long = usize::from(is_long(pending.ty));
        if self.width == Width::Half {
            return self.store_phases(pending);
        }
        for (part, from) in parts(pending.from, pending.stride).into_iter().enumerate() {
            let stretch = self.program.stretch(from, pending.steps, 0, true);
            let shape = self.program.stretches[stretch as usize];
            for piece in 0..pending.steps.max(1) as u8 {
                let value = self.interleaved(pending, (part, stretch), piece);
                let mask = self.touched(pending, shape, piece);
                self.program.effect(Effect::StorePiece { code: STORE[long], stretch, piece, value, mask });
            }
        }
    }

    /// For halves: all phases together, or those that there are one by one.
    fn store_phases(&mut self, pending: &Pending) {
        let complete = pending.values.len() as i64 == pending.steps.max(1);
        for (part, to) in parts(pending.from, pending.stride).into_iter().enumerate() {
            let mut values = [pending.values[0].1.regs[part]; 4];
            for (value, (_, lanes)) in values.iter_mut().zip(&pending.values) {
                *value = lanes.regs[part];
            }
            if complete {
                self.program.effect(Effect::Interleave { to, steps: pending.steps, values });
                continue;
            }
            let offsets = super::body::offsets(self, pending.stride);
            for (&value, (phase, _)) in values.iter().zip(&pending.values) {
                let to = Elements { offset: to.offset + i32::from(phase * to.bytes), ..to };
                let code = SCATTER[usize::from(is_long(pending.ty))];
                self.program.effect(Effect::Scatter { code, to, offsets, value, mask: None });
            }
        }
    }

    /// The values of all phases in the order of a piece.
    fn interleaved(&mut self, pending: &Pending, (part, stretch): (usize, u32), piece: u8) -> Reg {
        let long = usize::from(is_long(pending.ty));
        let program = &mut self.program;
        let order = |program: &mut crate::wide::Program, phase| {
            program.make(Op::Order { stretch, phase, round: piece, stored: true }, &[])
        };
        let (first, mut rest) = (&pending.values[0], &pending.values[1..]);
        let mut lanes = first.1.regs[part];
        // Phase 1 takes those of phase 0 as they are.
        if first.0 != 0 || rest.first().is_none_or(|second| second.0 != 1) {
            let by = order(program, first.0);
            lanes = program.plain(PERMUTE[long], &[by, lanes]);
        }
        while let Some((next, after)) = rest.split_first() {
            let by = order(program, next.0);
            lanes = program.make(Op::Permute { code: PERMUTE_TWO[long] }, &[lanes, by, next.1.regs[part]]);
            rest = after;
        }
        lanes
    }

    /// The lanes of a piece that are stored, if not all.
    fn touched(&mut self, pending: &Pending, shape: Stretch, piece: u8) -> Option<Reg> {
        if pending.values.len() as i64 == pending.steps.max(1) {
            return None;
        }
        let is_stored = |lane: i64| {
            let phase = (shape.start(piece) + lane) % pending.steps;
            pending.values.iter().any(|v| i64::from(v.0) == phase)
        };
        let bits = (0..shape.lanes()).filter(|&lane| is_stored(lane)).fold(0, |bits, lane| bits | 1 << lane);
        Some(self.program.make(Op::Places { bits }, &[]))
    }
}
