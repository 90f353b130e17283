//! The common part of a phase, in which words go from one processor to others.
//!
//! # Note: Links
//! A transfer crosses once for each processor that it goes to, however many tiles there receive it, by the link groups of
//! the machine's route. What crosses is not timed word by word: the part lasts for the machine's fixed cycles and then as
//! long as its fullest link group, or as its fullest tile, which sends a transfer once and receives what is for it.
//!
//! Invariant: a function of the phase and the machine alone.

use crate::superstep::{self, Rate, WORD_BYTES};
use girder_ir::plan::Phase;
use girder_machine::Machine;
use rustc_hash::FxHashMap;

/// Cycles of the common part; `None` if they do not fit.
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
