//! The words of a copy between replicas on the links of the whole machine.
//!
//! The plan of such a copy has the tiles of one sender and of one receiver for each list of pairs (see [`StepPlan`]).
//! All pairs exchange at the same time.
//!
//! Invariant: the figures are those of the plan repeated for every pair.

use crate::superstep::{Rate, WORD_BYTES, port_cycles};
use girder_ir::family::ReplicaPair;
use girder_ir::plan::{LocalCopy, Phase, StepPlan};
use girder_machine::Machine;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The lists of pairs of a copy between replicas.
pub(crate) type PairLists = [Arc<[ReplicaPair]>];

/// The traffic of a copy between replicas.
#[derive(Debug, Default)]
pub(crate) struct ReplicaTraffic {
    /// The processors of a replica that send, receive or copy, ascending.
    pub ipus: Vec<u32>,
    /// The processors of the whole machine that take part, ascending.
    pub zone: Vec<u32>,
    /// Cycles of the words: the fixed part, and those of the fullest link group or tile.
    pub cycles: u64,
    /// Bytes that the replica that receives most receives from others.
    pub bytes: u64,
}

/// The bytes of one list of pairs.
#[derive(Default)]
struct ListTraffic {
    /// By sending and receiving processor of a replica.
    flows: FxHashMap<(u32, u32), u64>,
    /// What each tile sends and receives.
    sent: FxHashMap<u32, u64>,
    received: FxHashMap<u32, u64>,
    /// What of this crosses processors if the sender is the receiver.
    sent_across: FxHashMap<u32, u64>,
    received_across: FxHashMap<u32, u64>,
    /// What a receiver receives in all.
    bytes: u64,
}

/// Returns the tile of a replica that a tile of a plan stands for, and the list of pairs for which it receives.
pub(crate) fn tile_of(tile: u32, tiles: u32) -> (u32, Option<usize>) {
    (tile % tiles, (tile / tiles).checked_sub(1).map(|k| k as usize))
}

impl ReplicaTraffic {
    /// Returns the traffic of a plan.
    pub fn of(plan: &StepPlan, lists: &PairLists, machine: &Machine) -> ReplicaTraffic {
        let whole = machine.whole();
        let of_lists = by_list(&plan.before, lists, machine);
        let (mut zone, mut ipus) = (BTreeSet::new(), BTreeSet::new());
        let mut flows = vec![];
        for (list, own) in lists.iter().zip(&of_lists) {
            for pair in list.iter() {
                for (&(from, to), &bytes) in &own.flows {
                    let from = machine.ipu_of_replica(pair.sender, from);
                    let to = machine.ipu_of_replica(pair.receiver, to);
                    zone.extend([from, to]);
                    flows.push((from, to, bytes));
                }
            }
            ipus.extend(own.flows.keys().flat_map(|&(from, to)| [from, to]));
        }
        let copied = plan.before.before.iter().chain(&plan.before.after);
        ipus.extend(copied.map(|c: &LocalCopy| machine.ipu_of(c.from.tile % machine.tiles())));
        let (tile, bytes) = fullest(lists, &of_lists, machine);
        let tile = if tile == 0 { 0 } else { u64::from(machine.links.fixed_cycles) + tile };
        let cycles = whole.link_phase_cycles(flows).max(tile);
        ReplicaTraffic { ipus: ipus.into_iter().collect(), zone: zone.into_iter().collect(), cycles, bytes }
    }
}

fn by_list(phase: &Phase, lists: &PairLists, machine: &Machine) -> Vec<ListTraffic> {
    let mut all: Vec<ListTraffic> = lists.iter().map(|_| ListTraffic::default()).collect();
    for transfer in &phase.transfers {
        let bytes = WORD_BYTES * u64::from(transfer.words);
        let from = transfer.from.tile % machine.tiles();
        for to in phase.receivers(transfer) {
            let (to, Some(k)) = tile_of(to.tile, machine.tiles()) else { continue };
            let Some(own) = all.get_mut(k) else { continue };
            let (home, there) = (machine.ipu_of(from), machine.ipu_of(to));
            *own.flows.entry((home, there)).or_default() += bytes;
            *own.sent.entry(from).or_default() += bytes;
            *own.received.entry(to).or_default() += bytes;
            if home != there {
                *own.sent_across.entry(from).or_default() += bytes;
                *own.received_across.entry(to).or_default() += bytes;
            }
            own.bytes += bytes;
        }
    }
    all
}

/// Returns the cycles of the fullest tile of all replicas, and the bytes of the replica that receives most.
fn fullest(lists: &PairLists, of_lists: &[ListTraffic], machine: &Machine) -> (u64, u64) {
    let (mut cycles, mut most) = (0, 0);
    for replica in 0..machine.partition.replicas {
        let mut tiles: FxHashMap<(bool, u32), u64> = FxHashMap::default();
        let mut bytes = 0;
        for (list, own) in lists.iter().zip(of_lists) {
            let away = || list.iter().filter(|p| p.sender != p.receiver);
            let sends = away().filter(|p| p.sender == replica).count() as u64;
            let receives = away().filter(|p| p.receiver == replica).count() as u64;
            let within = list.iter().filter(|p| p.sender == replica && p.receiver == replica).count() as u64;
            let all = [
                (true, sends, &own.sent),
                (false, receives, &own.received),
                (true, within, &own.sent_across),
                (false, within, &own.received_across),
            ];
            for (side, count, loads) in all {
                if count > 0 {
                    loads.iter().for_each(|(&tile, &load)| *tiles.entry((side, tile)).or_default() += count * load);
                }
            }
            bytes += receives * own.bytes;
        }
        let fullest = tiles.values().copied().max().unwrap_or(0);
        cycles = cycles.max(port_cycles(machine, fullest, Rate::Tile));
        most = most.max(bytes);
    }
    (cycles, most)
}
