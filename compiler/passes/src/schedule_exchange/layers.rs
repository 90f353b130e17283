//! Groups of receivers as ports of their own, for phases in which many transfers share few groups.
//!
//! # Note: Layers
//! Two groups without a common tile may receive at the same time. So groups are shared out to layers of disjoint ones, and
//! the layers take place one after the other: of a product whose blocks stand in a grid of tiles, what the rows of the grid
//! read is one layer, and what the columns read the other. Within a layer a group is one port, whatever its size, and
//! transfers go from one port to one, so that rounds or colours come close to the layer's bound. The sum of these bounds
//! is the bound of the whole where each layer alone fills the same tiles evenly; where it is not, other methods serve.
//!
//! Invariant: no transfer is cut; the time is that of a sort of the transfers and of a look at each place of each group.

use super::GOOD;
use super::colours;
use super::ports::{Ports, cycles};
use super::rounds::rounds;
use girder_ir::plan::{Phase, To};
use girder_machine::Machine;
use rustc_hash::FxHashMap;

/// Transfers for each group from which on it is worth while to look at groups.
const SHARED: usize = 4;
/// Layers, at most.
const MOST: u32 = 16;

/// The schedule of one processor.
pub(super) struct Layered {
    /// Transfers by position, ascending, and the cycle at which each starts.
    pub start: Vec<(u32, u64)>,
    /// One past the last cycle.
    pub end: u64,
}

/// A schedule of each processor whose transfers are shared out to layers well; else `None`.
pub(super) fn layers(phase: &Phase, machine: &Machine) -> Vec<Option<Layered>> {
    let none = || (0..machine.ipus).map(|_| None).collect();
    if phase.groups.is_empty() || phase.transfers.len() < SHARED * phase.groups.len() {
        return none();
    }
    let mut of_ipu: Vec<Vec<u32>> = vec![vec![]; machine.ipus as usize];
    for (t, transfer) in (0..).zip(&phase.transfers) {
        of_ipu[machine.ipu_of(transfer.from.tile) as usize].push(t);
    }
    (0..).zip(of_ipu).map(|(ipu, transfers)| Shop::new(phase, machine, ipu, transfers).layered()).collect()
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
            let (sender, cycles) = (transfer.from.tile - first, cycles(transfer.words, false, machine));
            edges.push(Edge { transfer: t, sender, port: to, cycles });
        }
        // A sender sends nothing to itself.
        edges.retain(|e| tiles[e.port as usize].iter().any(|&t| t != e.sender));
        Shop { machine, edges, tiles }
    }

    fn layered(&self) -> Option<Layered> {
        let (senders, receivers) = self.loads();
        let bound = senders.iter().chain(&receivers).copied().max().filter(|&b| b > 0)?;
        let good = (bound as f64 * GOOD) as u64;
        if self.is_for_pairs() {
            return None;
        }
        let layer = self.share_out()?;
        let count = layer.iter().max().map_or(0, |l| l + 1);
        if self.bounds(&layer, count).iter().sum::<u64>() > good {
            return None;
        }
        let mut start = vec![0; self.edges.len()];
        let mut end = 0;
        for k in 0..count {
            let own: Vec<usize> = (0..self.edges.len()).filter(|&e| layer[self.edges[e].port as usize] == k).collect();
            let (starts, length) = self.layer(&own);
            own.iter().zip(starts).for_each(|(&e, s)| start[e] = end + s);
            end += length;
        }
        let start = self.edges.iter().map(|e| e.transfer).zip(start).collect();
        (end <= good).then_some(Layered { start, end })
    }

    /// Cycles that each tile sends, and that it receives.
    fn loads(&self) -> (Vec<u64>, Vec<u64>) {
        let count = self.machine.chip.tiles as usize;
        let (mut senders, mut receivers) = (vec![0; count], vec![0; count]);
        let mut ports = vec![0; self.tiles.len()];
        for edge in &self.edges {
            senders[edge.sender as usize] += edge.cycles;
            ports[edge.port as usize] += edge.cycles;
        }
        for (tiles, load) in self.tiles.iter().zip(ports) {
            tiles.iter().for_each(|&t| receivers[t as usize] += load);
        }
        for edge in &self.edges {
            if self.tiles[edge.port as usize].binary_search(&edge.sender).is_ok() {
                receivers[edge.sender as usize] -= edge.cycles;
            }
        }
        (senders, receivers)
    }

    /// Whether a notable part of the words could move at the rate of pairs of tiles, see [`pairs`](super::pairs).
    fn is_for_pairs(&self) -> bool {
        if self.machine.exchange.pair_bytes_per_cycle <= self.machine.exchange.bytes_per_cycle {
            return false;
        }
        // Of each port: tiles that are there without their partner, as far as it matters, and whether there is a pair.
        let lone = |tiles: &Vec<u32>| {
            let pairs: Vec<&[u32]> = tiles.chunk_by(|a, b| a / 2 == b / 2).collect();
            let lone: Vec<u32> = pairs.iter().filter(|p| p.len() == 1).map(|p| p[0]).take(2).collect();
            (lone, pairs.iter().any(|p| p.len() == 2))
        };
        let of_port: Vec<_> = self.tiles.iter().map(lone).collect();
        let may = |e: &&Edge| {
            let (lone, any) = &of_port[e.port as usize];
            *any && (lone.is_empty() || matches!(lone[..], [t] if t / 2 == e.sender / 2))
        };
        let words = |wide: u64, e: &Edge| wide + e.cycles;
        64 * self.edges.iter().filter(may).fold(0, words) >= self.edges.iter().fold(0, words)
    }

    /// The layer of each port: the first in which all its tiles are free, the ports with the most to receive first.
    fn share_out(&self) -> Option<Vec<u32>> {
        let mut load = vec![0u64; self.tiles.len()];
        self.edges.iter().for_each(|e| load[e.port as usize] += e.cycles);
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

    /// The load of the fullest port of each layer.
    fn bounds(&self, layer: &[u32], count: u32) -> Vec<u64> {
        let mut senders = vec![vec![0; self.machine.chip.tiles as usize]; count as usize];
        let mut ports = vec![0; self.tiles.len()];
        for edge in &self.edges {
            senders[layer[edge.port as usize] as usize][edge.sender as usize] += edge.cycles;
            ports[edge.port as usize] += edge.cycles;
        }
        let mut bounds: Vec<u64> = senders.into_iter().map(|s| s.into_iter().max().unwrap_or(0)).collect();
        for (port, load) in ports.into_iter().enumerate() {
            let bound = &mut bounds[layer[port] as usize];
            *bound = load.max(*bound);
        }
        bounds
    }

    /// The starts of the transfers of one layer, and how long they take.
    fn layer(&self, own: &[usize]) -> (Vec<u64>, u64) {
        let edges = own.iter().map(|&e| &self.edges[e]).map(|e| (e.sender, e.port, e.cycles));
        let ports = Ports::between(edges, self.machine.chip.tiles, self.tiles.len() as u32);
        let start = rounds(&ports);
        let end = ports.end(&start);
        if end as f64 <= ports.bound() as f64 * GOOD {
            return (start, end);
        }
        let coloured = colours::whole(&ports);
        match ports.end(&coloured) {
            shorter if shorter < end => (coloured, shorter),
            _ => (start, end),
        }
    }
}
