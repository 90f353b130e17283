//! Stores at small strides. They are deferred and combined with their neighbours as long as nothing else accesses the
//! storage.
//!
//! Invariant: only stores that every iteration performs unconditionally are deferred, so that their elements exist.

use super::{Lanes, VectorKernel};
use girder_ir::codelet::Storage;
use girder_simd::interleaved_stride;
use girder_simd::ir::{Effect, Memory};

/// Deferred stores whose elements are in the same vectors, with the value of each phase.
pub(super) struct Pending {
    storage: Storage,
    /// The element of phase 0.
    to: Memory,
    steps: i64,
    values: Vec<(u8, Lanes)>,
}

impl VectorKernel<'_> {
    /// Returns the stride of a store in elements, if the store may be deferred.
    pub(super) fn interleaved_stride(&self, to: Memory, value: Lanes) -> Option<i64> {
        let lane = self.ir.lane(value);
        interleaved_stride(lane, self.ir.stride(to)).filter(|_| self.active.is_none() && lane.bytes() >= 4)
    }

    /// Defers a store to combine it with its neighbours.
    pub(super) fn store_later(&mut self, (storage, at): (Storage, Memory), value: Lanes) {
        let Some(steps) = self.interleaved_stride(at, value) else { return };
        let (offset, phase) = girder_simd::phase(at.offset, self.ir.lane(value).bytes(), steps);
        let to = Memory { offset, ..at };
        let same = |p: &Pending| p.storage == storage && p.to == to && p.steps == steps;
        if !self.pending.iter().any(same) {
            self.store_pending(Some(storage));
            self.pending.push(Pending { storage, to, steps, values: Vec::new() });
        }
        let Some(pending) = self.pending.iter_mut().find(|p| same(p)) else { return };
        pending.values.retain(|v| v.0 != phase);
        pending.values.push((phase, value));
        pending.values.sort_by_key(|v| v.0);
        if pending.values.len() as i64 == steps.max(1) {
            self.store_pending(Some(storage));
        }
    }

    /// Emits the deferred stores of one storage, or of all.
    pub(super) fn store_pending(&mut self, storage: Option<Storage>) {
        let (now, later): (Vec<Pending>, Vec<Pending>) =
            std::mem::take(&mut self.pending).into_iter().partition(|p| storage.is_none_or(|s| s == p.storage));
        self.pending = later;
        for pending in now {
            let values = pending.values.into_iter().collect();
            self.ir.effect(Effect::StoreInterleaved { to: pending.to, values });
        }
    }
}
