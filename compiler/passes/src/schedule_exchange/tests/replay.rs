//! Replays a phase word by word on a machine with wires of different lengths.
//!
//! Invariant: the replay knows only the schedule's table.

use super::*;
use std::collections::{HashMap, HashSet};

/// Panics unless each word reaches each receiver on its processor once, and no tile sends or receives two words in a
/// cycle. Delays a and b are arbitrary numbers; the tiles of a pair share them.
pub fn replay(phase: &Phase, machine: &Machine, schedule: &PhaseSchedule) {
    assert_eq!(machine.exchange.bytes_per_cycle, 4, "a word takes a cycle here");
    let (a, b) = (|pair: u32| (pair * 7 % 13) as u64, |pair: u32| (pair * 5 % 11) as u64);
    let pair = |tile: u32| machine.ipu_of(tile) * machine.chip.tiles + tile % machine.chip.tiles / 2;
    let (a, b) = (|tile| a(pair(tile)), |tile| b(pair(tile)));
    let mut busy: HashSet<(bool, u32, u64)> = HashSet::new();
    let mut arrived: HashMap<(u32, u32, u32), u32> = HashMap::new();
    let mut last: HashMap<u32, u64> = HashMap::new();
    for piece in &schedule.slices {
        let transfer = &phase.transfers[piece.transfer as usize];
        let sender = transfer.from.tile;
        // Two words per cycle go over the wires of both tiles of each pair.
        let together = if piece.paired { 2 } else { 1 };
        let receivers = schedule.receivers(piece, phase, transfer, machine.chip.tiles);
        if let Served::Some { count, .. } = piece.to {
            assert_eq!(receivers.len(), count as usize, "a piece names receivers that its transfer has not");
        }
        let (mut out, mut into) = (vec![sender], receivers.iter().map(|l| l.tile).collect::<HashSet<_>>());
        if piece.paired {
            let base = machine.ipu_of(sender) * machine.chip.tiles;
            let partner = |tile: u32| base + ((tile - base) ^ 1);
            out.push(partner(sender));
            into = into.iter().flat_map(|&tile| [tile, partner(tile)]).collect();
        }
        for k in 0..piece.words.div_ceil(together) {
            // Far wires are served first, so that all words with one start reach a tile b(r) later than a near one.
            let sent = piece.start as u64 + k as u64 + 13 - a(sender);
            for &tile in &out {
                assert!(busy.insert((false, tile, sent)), "tile {tile} sends two words at cycle {sent}");
            }
            for &tile in &into {
                let heard = sent + a(sender) + b(tile);
                assert!(busy.insert((true, tile, heard)), "tile {tile} hears two words at cycle {heard}");
            }
            let end = last.entry(machine.ipu_of(sender)).or_default();
            *end = (piece.start as u64 + k as u64 + 1).max(*end);
        }
        for (word, to) in (0..piece.words).flat_map(|w| receivers.iter().map(move |to| (w, to))) {
            *arrived.entry((piece.transfer, piece.first + word, to.tile)).or_default() += 1;
        }
    }
    let mut expected = 0;
    for (t, transfer) in (0..).zip(&phase.transfers) {
        let ipu = machine.ipu_of(transfer.from.tile);
        for to in phase.receivers(transfer).filter(|to| machine.ipu_of(to.tile) == ipu) {
            for word in 0..transfer.words {
                assert_eq!(arrived.get(&(t, word, to.tile)), Some(&1), "word {word} of transfer {t}");
                expected += 1;
            }
        }
    }
    assert_eq!(arrived.len(), expected);
    let stated: HashMap<u32, u64> = schedule.cycles.iter().map(|&(ipu, c)| (ipu, c as u64)).collect();
    assert_eq!(stated, last);
}
