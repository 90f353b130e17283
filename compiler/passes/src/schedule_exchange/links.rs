//! The common part of a phase, in which words go from one processor to others.
//!
//! # Note: Links
//! A transfer crosses once to each other processor, however many tiles receive it there, over the link groups of the
//! machine's route. Crossing words are not timed one by one. The part lasts for the machine's fixed cycles, and then as
//! long as the fullest link group or the fullest tile takes. A tile sends a transfer once and receives every transfer
//! for it.
//!
//! Invariant: the length is a function of the phase and the machine alone.

use crate::superstep::{self, Rate, WORD_BYTES};
use girder_ir::plan::Phase;
use girder_machine::Machine;
use rustc_hash::FxHashMap;

/// Returns the cycles of the common part, or `None` if they do not fit a `u32`.
pub(super) fn cycles(phase: &Phase, machine: &Machine) -> Option<u32> {
    if machine.ipus == 1 {
        return Some(0);
    }
    let mut flows: FxHashMap<(u32, u32), u64> = FxHashMap::default();
    let mut tiles: FxHashMap<(bool, u32), u64> = FxHashMap::default();
    for transfer in &phase.transfers {
        let home = machine.ipu_of(transfer.from.tile);
        let bytes = WORD_BYTES * transfer.words as u64;
        let mut last = None;
        // Receivers ascend, so those of one processor are neighbours.
        for to in phase.receivers(transfer).filter(|to| machine.ipu_of(to.tile) != home) {
            let ipu = machine.ipu_of(to.tile);
            *tiles.entry((false, to.tile)).or_default() += bytes;
            if last.is_none() {
                *tiles.entry((true, transfer.from.tile)).or_default() += bytes;
            }
            if last.replace(ipu) != Some(ipu) {
                *flows.entry((home, ipu)).or_default() += bytes;
            }
        }
    }
    let Some(tile) = tiles.values().max() else { return Some(0) };
    let tile = machine.links.fixed_cycles as u64 + superstep::port_cycles(machine, *tile, Rate::Tile);
    let links = machine.link_phase_cycles(flows.into_iter().map(|((from, to), bytes)| (from, to, bytes)));
    u32::try_from(tile.max(links)).ok()
}
