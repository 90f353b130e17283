//! Groups of receivers as ports, for phases in which many transfers share few groups.
//!
//! # Note: Layers
//! Two groups without a common tile may receive at the same time. So groups are assigned to layers of disjoint groups,
//! and the layers follow one another. For a product whose blocks form a grid of tiles, the inputs of the grid's rows
//! are one layer, and those of its columns another. Within a layer a group is one port, whatever its size. Transfers
//! then go from one port to one port, so rounds or colours come close to the layer's bound. The sum of these bounds is
//! the bound of the whole if each layer alone fills the same tiles evenly. Otherwise every transfer then begins as soon
//! as its tiles are free (`early`), or groups receive in time slots (`time_slots`).
//!
//! # Note: Separate destinations
//! A word that one tile needs for its row and another for its column goes to both, and such groups overlap pairwise.
//! But the two tiles store it in different blocks of their memory. So if whole transfers make no layers, receivers are
//! distinguished by the destinations of words and served separately. A sender that repeats its words is seldom the
//! fullest.
//!
//! # Note: Pairs
//! A layer whose groups are all whole pairs of tiles moves at the rate of pairs if that is shorter; two senders that
//! are a pair are one port then. Results are compared with a bound that holds even if every transfer that may be paired
//! is, so a result that is kept is good in any case.
//!
//! Invariant: layers do not split the words of a transfer. The time is that of a sort of the transfers and of a few
//! visits to each member of each group and, with `early`, to each receipt.

mod sharing;
mod open_shop;
mod time_slots;

use super::colours;
use super::effort::{GOOD, GOOD_AT_SCALE, MANY};
use super::greedy::greedy;
use super::ports::{self, Ports};
use super::rounds::rounds;
use girder_ir::plan::Phase;
use girder_ir::schedule::{PhaseSchedule, Served, TransferSlice};
use girder_machine::Machine;
use open_shop::{Blocks, Edge, OpenShop};
use sharing::sharing;

/// The number of receipts for each member of a group from which on groups are examined; and the same with many
/// receipts.
const SHARED: usize = 4;
const SHARED_BY_MANY: usize = 16;
/// The largest number of layers.
const MOST: u32 = 16;
/// The factor over the bound up to which time slots are tried.
const FAIR: f64 = 1.25;
/// The factor over the bound up to which a schedule of many receipts is kept: other methods take seconds and are seldom
/// shorter.
const ENOUGH: f64 = 1.6;

/// The schedule of one processor.
pub(super) struct Layered {
    /// The slices, unordered; those that serve some receivers refer to [`Layered::served`].
    pieces: Vec<TransferSlice>,
    served: Vec<u32>,
    /// One past the last cycle.
    pub end: u64,
    /// Whether other methods need not be tried.
    pub is_good: bool,
}

impl Layered {
    /// Returns the number of slices.
    pub fn len(&self) -> usize {
        self.pieces.len()
    }

    /// Adds the slices to those of other processors.
    pub fn write(&self, result: &mut PhaseSchedule) {
        let shift = result.served.len() as u32;
        result.served.extend_from_slice(&self.served);
        result.slices.extend(self.pieces.iter().map(|piece| match piece.to {
            Served::All => *piece,
            Served::Some { first, count } => {
                TransferSlice { to: Served::Some { first: first + shift, count }, ..*piece }
            }
        }));
    }
}

/// Returns a schedule for each processor whose transfers fit into layers, or else `None`.
pub(super) fn layers(phase: &Phase, machine: &Machine) -> Vec<Option<Layered>> {
    if phase.groups.is_empty() {
        return (0..machine.ipus).map(|_| None).collect();
    }
    let mut of_ipu: Vec<Vec<u32>> = vec![vec![]; machine.ipus as usize];
    for (t, transfer) in (0..).zip(&phase.transfers) {
        of_ipu[machine.ipu_of(transfer.from.tile) as usize].push(t);
    }
    (0..).zip(of_ipu).map(|(ipu, transfers)| of_processor(phase, machine, ipu, &transfers)).collect()
}

/// Returns the shortest schedule in layers, of whole transfers or of receivers by destination.
fn of_processor(phase: &Phase, machine: &Machine, ipu: u32, transfers: &[u32]) -> Option<Layered> {
    let tiles = (ipu * machine.chip.tiles, machine.chip.tiles);
    let shop = |blocks: Option<&Blocks>| {
        let is_worth = sharing(phase, tiles, transfers, blocks) >= SHARED;
        is_worth.then(|| OpenShop::new(phase, machine, ipu, transfers, blocks))
    };
    let whole = shop(None);
    let found = whole.as_ref().and_then(|whole| whole.layered(whole.bound()));
    if found.as_ref().is_some_and(|f| f.is_good) {
        return found;
    }
    let separate = shop(Some(&Blocks::of(phase, machine, ipu))).filter(OpenShop::is_cut);
    let separate = separate.and_then(|separate| {
        let bound = whole.map(|whole| whole.bound());
        separate.layered(bound.unwrap_or_else(|| OpenShop::new(phase, machine, ipu, transfers, None).bound()))
    });
    found.into_iter().chain(separate).min_by_key(|f| f.end)
}

impl OpenShop<'_> {
    /// Returns a schedule of shared receivers; `bound` is that of whole transfers.
    fn layered(&self, bound: u64) -> Option<Layered> {
        let receipts = self.receipts();
        if !self.is_shared(if receipts < MANY { SHARED } else { SHARED_BY_MANY }) {
            return None;
        }
        let times = |factor: f64| (bound as f64 * factor) as u64;
        let good = times(if receipts < MANY { GOOD } else { GOOD_AT_SCALE });
        let mut best = self.in_layers(good);
        if best.as_ref().is_none_or(|b| b.end > good) && receipts >= MANY {
            let slots = time_slots::in_time_slots(self, times(FAIR));
            best = best.into_iter().chain(slots).min_by_key(|b| b.end);
        }
        let enough = if receipts < MANY { good } else { times(ENOUGH) };
        best.map(|b| Layered { is_good: b.end <= enough, ..b })
    }

    /// Schedules whole transfers in one layer of disjoint ports after the other. If that is not good, each then starts
    /// as early as its tiles allow.
    fn in_layers(&self, good: u64) -> Option<Layered> {
        let layer = self.share_out()?;
        let count = layer.iter().max().map_or(0, |l| l + 1);
        let may_be_paired = self.may_be_paired();
        let mut all_paired = vec![true; count as usize];
        self.edges.iter().for_each(|e| all_paired[layer[e.port as usize] as usize] &= may_be_paired(e));
        let (narrow, pairs) = (self.bounds(&layer, count, false), self.bounds(&layer, count, true));
        let paired: Vec<bool> = (0..count as usize).map(|k| all_paired[k] && pairs[k] < narrow[k]).collect();
        let mut start = vec![0; self.edges.len()];
        let mut end = 0;
        for (k, &paired) in (0..).zip(&paired) {
            let own: Vec<usize> = (0..self.edges.len()).filter(|&e| layer[self.edges[e].port as usize] == k).collect();
            let edges = own.iter().map(|&e| self.held(&self.edges[e], paired));
            let (starts, length) =
                self.schedule(Ports::between(edges, self.machine.chip.tiles, self.tiles.len() as u32));
            own.iter().zip(starts).for_each(|(&e, s)| start[e] = end + s);
            end += length;
        }
        let is_paired = |e: &Edge| paired[layer[e.port as usize] as usize];
        if end > good {
            end = self.early(&mut start, is_paired);
        }
        let mut found = Layered { pieces: vec![], served: self.served.clone(), end, is_good: false };
        found.pieces.extend(self.edges.iter().zip(start).map(|(edge, start)| TransferSlice {
            transfer: edge.transfer,
            first: 0,
            words: edge.words,
            start: start as u32,
            to: edge.to,
            paired: is_paired(edge),
        }));
        Some(found)
    }

    /// Starts each transfer, in the order of starts, as soon as its tiles are free. Returns the end.
    fn early(&self, start: &mut [u64], is_paired: impl Fn(&Edge) -> bool) -> u64 {
        let mut order: Vec<u32> = (0..self.edges.len() as u32).collect();
        order.sort_by_key(|&e| start[e as usize]);
        let mut free_at = vec![[0u64; 2]; self.machine.chip.tiles as usize];
        let mut last = 0;
        for e in order {
            let edge = &self.edges[e as usize];
            let paired = is_paired(edge);
            let (sender, tiles) = (edge.sender as usize, &self.tiles[edge.port as usize]);
            let cycles = ports::cycles(edge.words, paired, self.machine);
            // At the rate of pairs the partner lends its wires, and the sender lends its own if the partner receives.
            let senders = if paired { [sender, sender ^ 1] } else { [sender, sender] };
            let lends = paired && tiles.binary_search(&(edge.sender ^ 1)).is_ok();
            let others = tiles.iter().map(|&t| t as usize).filter(|&t| t != sender);
            let into = || others.clone().chain(lends.then_some(sender));
            let begin = into().map(|t| free_at[t][1]).chain(senders.map(|s| free_at[s][0])).max().unwrap_or(0);
            let end = begin + cycles;
            into().for_each(|t| free_at[t][1] = end);
            senders.iter().for_each(|&s| free_at[s][0] = end);
            start[e as usize] = begin;
            last = end.max(last);
        }
        last
    }

    /// Returns the sender or pair of senders, the port, and the cycles of an edge.
    fn held(&self, edge: &Edge, paired: bool) -> (u32, u32, u64) {
        match paired {
            true => (edge.sender / 2, edge.port, ports::cycles(edge.words, true, self.machine)),
            false => (edge.sender, edge.port, edge.cycles),
        }
    }

    /// Returns the cycles that each port receives.
    fn port_loads(&self) -> Vec<u64> {
        let mut loads = vec![0; self.tiles.len()];
        self.edges.iter().for_each(|e| loads[e.port as usize] += e.cycles);
        loads
    }

    /// Returns the least cycles of any schedule: those of the tile that sends or receives most, if every transfer that
    /// may be paired is.
    fn bound(&self) -> u64 {
        let count = self.machine.chip.tiles as usize;
        let (mut senders, mut receivers) = (vec![0; count], vec![0; count]);
        let mut loads = vec![0; self.tiles.len()];
        let may_be_paired = self.may_be_paired();
        for edge in &self.edges {
            let cycles = match may_be_paired(edge) {
                true => ports::cycles(edge.words, true, self.machine),
                false => edge.cycles,
            };
            senders[edge.sender as usize] += cycles;
            loads[edge.port as usize] += cycles;
            if self.tiles[edge.port as usize].binary_search(&edge.sender).is_ok() {
                receivers[edge.sender as usize] -= cycles as i64;
            }
        }
        for (tiles, load) in self.tiles.iter().zip(loads) {
            tiles.iter().for_each(|&t| receivers[t as usize] += load as i64);
        }
        let receivers = receivers.into_iter().map(|r| r as u64);
        senders.into_iter().chain(receivers).max().unwrap_or(0)
    }

    /// Returns a predicate for transfers that could move at the rate of pairs of tiles: see [`pairs`](super::pairs).
    fn may_be_paired(&self) -> impl Fn(&Edge) -> bool {
        let exchange = &self.machine.exchange;
        let is_even = self.machine.chip.tiles.is_multiple_of(2);
        let any = is_even && exchange.pair_bytes_per_cycle > exchange.bytes_per_cycle;
        // For each port, tiles without their partner and whole pairs, as far as they matter.
        let lone = |tiles: &Vec<u32>| {
            let pairs: Vec<&[u32]> = tiles.chunk_by(|a, b| a / 2 == b / 2).collect();
            let lone: Vec<u32> = pairs.iter().filter(|p| p.len() == 1).map(|p| p[0]).take(2).collect();
            let whole: Vec<u32> = pairs.iter().filter(|p| p.len() == 2).map(|p| p[0] / 2).take(2).collect();
            (lone, whole)
        };
        let of_port: Vec<_> = self.tiles.iter().map(lone).collect();
        move |e| {
            let (lone, whole) = &of_port[e.port as usize];
            let own = e.sender / 2;
            // The sender's own pair does not count: only its partner can receive there.
            any && whole.iter().any(|&p| p != own) && (lone.is_empty() || matches!(lone[..], [t] if t / 2 == own))
        }
    }

    /// Returns the layer of each port: the first in which all its tiles are free, the ports with the most to receive
    /// first.
    fn share_out(&self) -> Option<Vec<u32>> {
        let load = self.port_loads();
        let mut order: Vec<usize> = (0..self.tiles.len()).filter(|&p| load[p] > 0).collect();
        order.sort_by_key(|&p| std::cmp::Reverse(load[p]));
        let mut taken = vec![0u32; self.machine.chip.tiles as usize];
        let mut layer = vec![0; self.tiles.len()];
        for port in order {
            let tiles = &self.tiles[port];
            let first = tiles.iter().fold(0, |mask, &t| mask | taken[t as usize]).trailing_ones();
            if first >= MOST {
                return None;
            }
            tiles.iter().for_each(|&t| taken[t as usize] |= 1 << first);
            layer[port] = first;
        }
        Some(layer)
    }

    /// Returns the load of the fullest port of each layer, at the rate of pairs or not.
    fn bounds(&self, layer: &[u32], count: u32, paired: bool) -> Vec<u64> {
        let mut senders = vec![vec![0; self.machine.chip.tiles as usize]; count as usize];
        let mut ports = vec![0; self.tiles.len()];
        for edge in &self.edges {
            let (sender, port, cycles) = self.held(edge, paired);
            senders[layer[port as usize] as usize][sender as usize] += cycles;
            ports[port as usize] += cycles;
        }
        let mut bounds: Vec<u64> = senders.into_iter().map(|s| s.into_iter().max().unwrap_or(0)).collect();
        for (port, load) in ports.into_iter().enumerate() {
            let bound = &mut bounds[layer[port] as usize];
            *bound = load.max(*bound);
        }
        bounds
    }

    /// Returns the starts of transfers from one sender to one port each, and how long they take.
    fn schedule(&self, ports: Ports) -> (Vec<u64>, u64) {
        type Method = fn(&Ports, u64) -> Option<Vec<u64>>;
        let methods: [Method; 3] = [
            |ports, _| Some(rounds(ports)),
            |ports, _| Some(colours::whole(ports)),
            |ports, limit| greedy(ports, false, limit),
        ];
        let mut best = (vec![], u64::MAX);
        for method in methods {
            if best.1 as f64 > ports.bound() as f64 * GOOD
                && let Some(start) = method(&ports, best.1)
            {
                let end = ports.end(&start);
                best = if end < best.1 { (start, end) } else { best };
            }
        }
        best
    }
}
