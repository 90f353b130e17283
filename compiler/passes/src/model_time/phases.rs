//! The time of a step's phases: syncs, words in transit, on-tile copies.
//!
//! The formulas, and the note on supersteps, are in [`superstep`].
//!
//! # Note: Bound
//! No schedule is shorter than the load of any port if every transfer that may be paired is (see the note on pairs in
//! `girder_ir::schedule`). A tile receives at the rate of pairs the words that its partner also receives, and sends at
//! that rate the words that go only to whole pairs. Two partners together send over no more than their two ports.

use crate::replica_traffic::{PairLists, ReplicaTraffic};
use crate::superstep::{self, Rate, WORD_BYTES};
use girder_ir::plan::{Loc, LocalCopy, Phase, StepPlan};
use girder_ir::schedule::{PhaseSchedule, StepSchedule};
use girder_ir::timing::{IpuTime, StepTime};
use girder_machine::{Copying, Machine};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// Returns the time of a step without its vertices, which run on the IPUs `computing` (ascending; none for a copy).
pub(super) fn step_time(machine: &Machine, plan: &StepPlan, schedule: &StepSchedule, computing: &[u32]) -> StepTime {
    let mut ipus: BTreeMap<u32, IpuTime> = computing.iter().map(|&i| (i, IpuTime::default())).collect();
    let mut time = StepTime::default();
    let phases = [(&plan.before, &schedule.before), (&plan.after, &schedule.after)];
    for (n, (phase, schedule)) in phases.into_iter().enumerate() {
        let traffic = Traffic::of(phase, machine);
        let syncs = !phase.transfers.is_empty() || (n == 0 && !computing.is_empty());
        for &ipu in &traffic.ipus {
            ipus.entry(ipu).or_default();
        }
        if syncs {
            sync(machine, &traffic, n == 0, &mut ipus);
        }
        exchange(machine, schedule, &traffic, &mut ipus);
        for (ipu, cycles) in arrange(machine, &phase.before, &machine.arrange.before) {
            ipus.entry(ipu).or_default().pre_arrange += cycles;
        }
        for (ipu, cycles) in arrange(machine, &phase.after, &machine.arrange.after) {
            ipus.entry(ipu).or_default().post_arrange += cycles;
        }
        time.joined |= !traffic.crossing.is_empty();
        time.bytes_inside += traffic.inside;
        time.bytes_between += traffic.between;
        time.exchange_bound += traffic.bound;
        time.exchange_words += u64::from(schedule.tile_cycles());
    }
    time.ipus = ipus.into_iter().collect();
    time
}

/// Returns the time of a copy between replicas, which all of them take. All processors that take part sync.
pub(super) fn between_replicas(
    machine: &Machine,
    plan: &StepPlan,
    schedule: &StepSchedule,
    lists: &PairLists,
) -> StepTime {
    let traffic = ReplicaTraffic::of(plan, lists, machine);
    let sync = machine.whole().sync_cycles(traffic.zone.iter().copied());
    let exchange = u64::from(schedule.before.link_cycles);
    let part = IpuTime { sync, exchange, ..IpuTime::default() };
    let mut ipus: BTreeMap<u32, IpuTime> = traffic.ipus.iter().map(|&ipu| (ipu, part)).collect();
    let own = |copies: &[LocalCopy]| -> Vec<LocalCopy> {
        let on_replica =
            |c: &LocalCopy| LocalCopy { from: Loc { tile: c.from.tile % machine.tiles(), ..c.from }, ..*c };
        copies.iter().map(on_replica).collect()
    };
    for (ipu, cycles) in arrange(machine, &own(&plan.before.before), &machine.arrange.before) {
        ipus.entry(ipu).or_default().pre_arrange += cycles;
    }
    for (ipu, cycles) in arrange(machine, &own(&plan.before.after), &machine.arrange.after) {
        ipus.entry(ipu).or_default().post_arrange += cycles;
    }
    StepTime { ipus: ipus.into_iter().collect(), joined: true, bytes_between: traffic.bytes, ..StepTime::default() }
}

/// The sums over the transfers of a phase.
#[derive(Default)]
struct Traffic {
    /// IPUs that send, receive or copy.
    ipus: BTreeSet<u32>,
    /// IPUs that words leave or enter.
    crossing: BTreeSet<u32>,
    /// The bytes received on the sender's IPU.
    inside: u64,
    /// The bytes received on other IPUs.
    between: u64,
    /// The least cycles of any schedule of the words that stay on their IPU: see the note.
    bound: u64,
}

impl Traffic {
    fn of(phase: &Phase, machine: &Machine) -> Traffic {
        let mut traffic = Traffic::default();
        let mut loads = Loads::default();
        let mut here: Vec<u32> = vec![];
        for transfer in &phase.transfers {
            let home = machine.ipu_of(transfer.from.tile);
            let bytes = WORD_BYTES * u64::from(transfer.words);
            traffic.ipus.insert(home);
            here.clear();
            for to in phase.receivers(transfer) {
                let ipu = machine.ipu_of(to.tile);
                if ipu == home {
                    traffic.inside += bytes;
                    here.push(to.tile);
                } else {
                    traffic.between += bytes;
                    traffic.ipus.insert(ipu);
                    traffic.crossing.extend([home, ipu]);
                }
            }
            loads.add(transfer.from.tile, &mut here, bytes, machine);
        }
        traffic.bound = loads.most(machine);
        traffic.ipus.extend(phase.before.iter().chain(&phase.after).map(|c| machine.ipu_of(c.from.tile)));
        traffic
    }
}

/// The loads of ports.
#[derive(Default)]
struct Loads {
    /// The cycles of each port, by direction (`true` sends) and tile.
    ports: FxHashMap<(bool, u32), u64>,
    /// The bytes that two partners send, by the lower tile.
    pairs: FxHashMap<u32, u64>,
}

impl Loads {
    /// Adds bytes from a tile to others of its IPU.
    fn add(&mut self, from: u32, to: &mut [u32], bytes: u64, machine: &Machine) {
        let cycles =
            |paired: bool| superstep::port_cycles(machine, bytes, if paired { Rate::Pair } else { Rate::Tile });
        let base = from - from % machine.chip.tiles;
        let partner = |tile: u32| base + ((tile - base) ^ 1);
        to.sort_unstable();
        let is_paired = |tile: u32| to.binary_search(&partner(tile)).is_ok();
        let any = to.iter().any(|&t| is_paired(t));
        // The sender's partner takes the stream of other pairs on the wires that the sender lends.
        let may_be_paired = |tile: u32| any && (is_paired(tile) || tile == partner(from));
        for &tile in &*to {
            *self.ports.entry((false, tile)).or_default() += cycles(may_be_paired(tile));
        }
        if !to.is_empty() {
            *self.ports.entry((true, from)).or_default() += cycles(to.iter().all(|&t| may_be_paired(t)));
            *self.pairs.entry(from.min(partner(from))).or_default() += bytes;
        }
    }

    fn most(&self, machine: &Machine) -> u64 {
        let pairs = self.pairs.values().map(|&bytes| superstep::two_port_cycles(machine, bytes));
        self.ports.values().copied().chain(pairs).max().unwrap_or(0)
    }
}

/// Adds syncs. IPUs between which words cross sync together, every other IPU by itself. All IPUs of a step take part in
/// its first sync, and only those that exchange in a later one.
fn sync(machine: &Machine, traffic: &Traffic, first: bool, ipus: &mut BTreeMap<u32, IpuTime>) {
    let together = machine.sync_cycles(traffic.crossing.iter().copied());
    for (ipu, time) in ipus.iter_mut().filter(|(i, _)| first || traffic.ipus.contains(i)) {
        time.sync += match traffic.crossing.contains(ipu) {
            true => together,
            false => machine.sync_cycles([*ipu]),
        };
    }
}

fn exchange(machine: &Machine, schedule: &PhaseSchedule, traffic: &Traffic, ipus: &mut BTreeMap<u32, IpuTime>) {
    for &(ipu, cycles) in &schedule.cycles {
        ipus.entry(ipu).or_default().exchange += superstep::exchange_cycles(machine, u64::from(cycles));
    }
    for &ipu in &traffic.crossing {
        ipus.entry(ipu).or_default().exchange += u64::from(schedule.link_cycles);
    }
}

/// Returns the cycles of on-tile copies on each IPU's slowest tile.
fn arrange(machine: &Machine, copies: &[LocalCopy], cost: &Copying) -> BTreeMap<u32, u64> {
    let mut tiles: FxHashMap<u32, (u64, u64)> = FxHashMap::default();
    for copy in copies {
        let (bytes, runs) = tiles.entry(copy.from.tile).or_default();
        *bytes += u64::from(copy.count) * u64::from(copy.bytes);
        *runs += u64::from(copy.count);
    }
    let mut worst: BTreeMap<u32, u64> = BTreeMap::new();
    for (tile, (bytes, runs)) in tiles {
        let most = worst.entry(machine.ipu_of(tile)).or_default();
        *most = (*most).max(cost.cycles(bytes, runs));
    }
    worst
}
