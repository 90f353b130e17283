//! Groups of receivers as ports of their own, for phases in which many transfers share few groups.
//!
//! # Note: Layers
//! Two groups without a common tile may receive at the same time. So groups are shared out to layers of disjoint ones, and
//! the layers take place one after the other: of a product whose blocks stand in a grid of tiles, what the rows of the grid
//! read is one layer, and what the columns read the other. Within a layer a group is one port, whatever its size, and
//! transfers go from one port to one, so that rounds or colours come close to the layer's bound. The sum of these bounds
//! is the bound of the whole where each layer alone fills the same tiles evenly; where it is not, groups take turns
//! (module `turns`), and where these take too long, other methods serve.
//!
//! # Note: Pairs
//! A layer whose groups are all whole pairs of tiles moves at their rate if that is shorter: two senders that are a pair are
//! one port then. Results are compared with a bound that holds even if all did so that may: what is kept is good in any
//! case.
//!
//! Invariant: layers cut no transfer; the time is that of a sort of the transfers and of some looks at each place of each
//! group, and does not grow with what arrives.

mod turns;

use super::colours;
use super::greedy::greedy;
use super::ports::{self, Ports};
use super::rounds::rounds;
use super::{GOOD, GOOD_AT_SCALE, MANY};
use girder_ir::plan::{Phase, To, Transfer};
use girder_ir::schedule::{Piece, Served};
use girder_machine::Machine;
use rustc_hash::FxHashMap;

/// Receipts for each place of a group from which on it is worth while to look at groups.
const SHARED: usize = 4;
/// Layers, at most.
const MOST: u32 = 16;
/// Receipts from which on other methods would take seconds.
const TOO_MANY: usize = 1 << 20;
/// How far above the bound turns may then stay.
const FAIR: f64 = 1.25;

/// The schedule of one processor.
pub(super) struct Layered {
    /// Each to all receivers on the processor.
    pub pieces: Vec<Piece>,
    /// One past the last cycle.
    pub end: u64,
}

/// A schedule of each processor whose transfers are shared out to layers well; else `None`.
pub(super) fn layers(phase: &Phase, machine: &Machine) -> Vec<Option<Layered>> {
    let none = || (0..machine.ipus).map(|_| None).collect();
    if !is_shared(phase) {
        return none();
    }
    let mut of_ipu: Vec<Vec<u32>> = vec![vec![]; machine.ipus as usize];
    for (t, transfer) in (0..).zip(&phase.transfers) {
        of_ipu[machine.ipu_of(transfer.from.tile) as usize].push(t);
    }
    (0..).zip(of_ipu).map(|(ipu, transfers)| Shop::new(phase, machine, ipu, transfers).layered()).collect()
}

/// Whether the places of groups receive several transfers each.
fn is_shared(phase: &Phase) -> bool {
    let receipts = |transfer: &Transfer| match transfer.to {
        To::Group { group, .. } => phase.groups[group as usize].len(),
        To::One(_) => 0,
    };
    let places: usize = phase.groups.iter().map(Vec::len).sum();
    places > 0 && phase.transfers.iter().map(receipts).sum::<usize>() >= SHARED * places
}

/// The transfers of one processor with their ports.
struct Shop<'a> {
    machine: &'a Machine,
    edges: Vec<Edge>,
    /// Tiles of each receiving port, from the processor's first; no two ports have the same.
    tiles: Vec<Vec<u32>>,
}

/// A transfer.
#[derive(Clone, Copy)]
struct Edge {
    transfer: u32,
    /// From the processor's first tile.
    sender: u32,
    port: u32,
    words: u32,
    cycles: u64,
}

impl<'a> Shop<'a> {
    fn new(phase: &Phase, machine: &'a Machine, ipu: u32, transfers: Vec<u32>) -> Shop<'a> {
        let (first, count) = (ipu * machine.chip.tiles, machine.chip.tiles);
        let here = |tile: u32| tile.checked_sub(first).filter(|t| *t < count);
        let mut ports: FxHashMap<Vec<u32>, u32> = FxHashMap::default();
        let mut tiles: Vec<Vec<u32>> = vec![];
        let mut port = |own: Vec<u32>| {
            *ports.entry(own).or_insert_with_key(|own| {
                tiles.push(own.clone());
                tiles.len() as u32 - 1
            })
        };
        let of_group: Vec<u32> =
            phase.groups.iter().map(|g| port(g.iter().filter_map(|l| here(l.tile)).collect())).collect();
        let mut of_one: Vec<Option<u32>> = vec![None; count as usize];
        let mut edges = Vec::with_capacity(transfers.len());
        for t in transfers {
            let transfer = &phase.transfers[t as usize];
            let to = match transfer.to {
                To::Group { group, .. } => of_group[group as usize],
                To::One(loc) => match here(loc.tile) {
                    Some(tile) => *of_one[tile as usize].get_or_insert_with(|| port(vec![tile])),
                    None => continue,
                },
            };
            let (sender, words) = (transfer.from.tile - first, transfer.words);
            let cycles = ports::cycles(words, false, machine);
            edges.push(Edge { transfer: t, sender, port: to, words, cycles });
        }
        // A sender sends nothing to itself.
        edges.retain(|e| tiles[e.port as usize].iter().any(|&t| t != e.sender));
        Shop { machine, edges, tiles }
    }

    fn layered(&self) -> Option<Layered> {
        let bound = self.bound();
        let times = |factor: f64| (bound as f64 * factor) as u64;
        let receipts = self.receipts();
        let good = if receipts < MANY { GOOD } else { GOOD_AT_SCALE };
        match self.in_layers(times(good)) {
            None if receipts < MANY => None,
            None if receipts < TOO_MANY => turns::in_turns(self, times(GOOD_AT_SCALE)),
            None => turns::in_turns(self, times(FAIR)),
            found => found,
        }
    }

    /// Whole transfers, in one layer of disjoint ports after the other.
    fn in_layers(&self, good: u64) -> Option<Layered> {
        if self.edges.is_empty() {
            return None;
        }
        let layer = self.share_out()?;
        let count = layer.iter().max().map_or(0, |l| l + 1);
        let may_be_wide = self.may_be_wide();
        let mut all_wide = vec![true; count as usize];
        self.edges.iter().for_each(|e| all_wide[layer[e.port as usize] as usize] &= may_be_wide(e));
        let (narrow, pairs) = (self.bounds(&layer, count, false), self.bounds(&layer, count, true));
        let wide: Vec<bool> = (0..count as usize).map(|k| all_wide[k] && pairs[k] < narrow[k]).collect();
        if (0..count as usize).map(|k| if wide[k] { pairs[k] } else { narrow[k] }).sum::<u64>() > good {
            return None;
        }
        let mut start = vec![0; self.edges.len()];
        let mut end = 0;
        for (k, &wide) in (0..).zip(&wide) {
            let own: Vec<usize> = (0..self.edges.len()).filter(|&e| layer[self.edges[e].port as usize] == k).collect();
            let edges = own.iter().map(|&e| self.held(&self.edges[e], wide));
            let (starts, length) =
                self.schedule(Ports::between(edges, self.machine.chip.tiles, self.tiles.len() as u32));
            own.iter().zip(starts).for_each(|(&e, s)| start[e] = end + s);
            end += length;
        }
        let piece = |(edge, start): (&Edge, u64)| {
            let (transfer, words, start) = (edge.transfer, edge.words, start as u32);
            let wide = wide[layer[edge.port as usize] as usize];
            Piece { transfer, first: 0, words, start, to: Served::All, wide }
        };
        let pieces = || self.edges.iter().zip(start).map(piece).collect();
        (end <= good).then(|| Layered { pieces: pieces(), end })
    }

    /// The sender, or pair of senders, the port and the cycles that an edge takes.
    fn held(&self, edge: &Edge, wide: bool) -> (u32, u32, u64) {
        match wide {
            true => (edge.sender / 2, edge.port, ports::cycles(edge.words, true, self.machine)),
            false => (edge.sender, edge.port, edge.cycles),
        }
    }

    /// How often a transfer arrives at a tile, all together.
    fn receipts(&self) -> usize {
        self.edges.iter().map(|e| self.tiles[e.port as usize].len()).sum()
    }

    /// The cycles that each port receives.
    fn port_loads(&self) -> Vec<u64> {
        let mut loads = vec![0; self.tiles.len()];
        self.edges.iter().for_each(|e| loads[e.port as usize] += e.cycles);
        loads
    }

    /// Cycles that no schedule can beat: those of the tile that sends or receives most, if all that may move at the rate
    /// of pairs does.
    fn bound(&self) -> u64 {
        let count = self.machine.chip.tiles as usize;
        let (mut senders, mut receivers) = (vec![0; count], vec![0; count]);
        let mut loads = vec![0; self.tiles.len()];
        let may_be_wide = self.may_be_wide();
        for edge in &self.edges {
            let cycles = match may_be_wide(edge) {
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

    /// Which transfers could move at the rate of pairs of tiles, see [`pairs`](super::pairs).
    fn may_be_wide(&self) -> impl Fn(&Edge) -> bool {
        let exchange = &self.machine.exchange;
        let is_even = self.machine.chip.tiles.is_multiple_of(2);
        let any = is_even && exchange.pair_bytes_per_cycle > exchange.bytes_per_cycle;
        // Of each port: tiles that are there without their partner, and pairs, as far as they matter.
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
            // The sender's own pair does not count: at most its partner receives there.
            any && whole.iter().any(|&p| p != own) && (lone.is_empty() || matches!(lone[..], [t] if t / 2 == own))
        }
    }

    /// The layer of each port: the first in which all its tiles are free, the ports with the most to receive first.
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

    /// The load of the fullest port of each layer, at the rate of pairs or not.
    fn bounds(&self, layer: &[u32], count: u32, wide: bool) -> Vec<u64> {
        let mut senders = vec![vec![0; self.machine.chip.tiles as usize]; count as usize];
        let mut ports = vec![0; self.tiles.len()];
        for edge in &self.edges {
            let (sender, port, cycles) = self.held(edge, wide);
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

    /// The starts of transfers from one sender to one port each, and how long they take.
    fn schedule(&self, ports: Ports) -> (Vec<u64>, u64) {
        let methods: [fn(&Ports) -> Vec<u64>; 3] = [rounds, colours::whole, |ports| greedy(ports, false)];
        let mut best = (vec![], u64::MAX);
        for method in methods {
            if best.1 as f64 > ports.bound() as f64 * GOOD {
                let start = method(&ports);
                let end = ports.end(&start);
                best = if end < best.1 { (start, end) } else { best };
            }
        }
        best
    }
}
