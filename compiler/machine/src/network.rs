//! The network between processors: routes over link groups, the time of a phase on the links, and the time of a sync
//! across processors.
//!
//! Processors `2k` and `2k + 1` form a rung. Rungs form a ladder, or a ring (a torus of width two). A flow to the
//! partner takes the direct links. Any other flow first crosses the rung if it must change sides, and then goes
//! straight up or down. The routing rule, the sizes of the groups and the usable share of a link are those with which
//! the vendor's own emulator is configured (PopLibs, `lib/poplibs_test/Util.cpp`).

use crate::Machine;
use petgraph::graph::DiGraph;
use std::ops::Range;

/// The links of each processor.
#[derive(Clone, Debug, PartialEq)]
pub struct Links {
    /// The topology.
    pub topology: Topology,
    /// Bytes per second of one link, each way.
    pub bytes_per_second: f64,
    /// The share of the bandwidth that data can use, above 0 and up to 1.
    pub efficiency: f64,
    /// Links to the partner for flows that end there.
    pub direct: u32,
    /// Links to the partner for flows that go on from there.
    pub cross: u32,
    /// Links to the next rung.
    pub up: u32,
    /// Links to the previous rung.
    pub down: u32,
    /// Cycles of a phase between processors beyond its bytes.
    pub fixed_cycles: u32,
}

/// The topology of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topology {
    /// No links: one processor.
    None,
    /// A row of rungs.
    Ladder,
    /// A ring of rungs: a flow takes the shorter way round, upwards if both are equal.
    Torus,
}

/// A group of parallel links of one processor, by direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    /// To the partner, for flows that end there.
    Direct,
    /// To the partner, for flows that go on from there.
    Cross,
    /// To the next rung.
    Up,
    /// To the previous rung.
    Down,
}

impl Group {
    /// All groups, in the order of their discriminants.
    pub const ALL: [Group; 4] = [Group::Direct, Group::Cross, Group::Up, Group::Down];
}

/// A link group of one processor, in the direction away from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Link {
    /// The processor that sends.
    pub ipu: u32,
    /// The direction.
    pub group: Group,
}

impl Link {
    /// Returns the processor that receives, if it exists: the partner, or the one on the same side of the next rung.
    pub fn to(self, machine: &Machine) -> Option<u32> {
        let (ipu, all) = (self.ipu, machine.ipus);
        let around = machine.links.topology == Topology::Torus;
        match self.group {
            Group::Direct | Group::Cross => Some(ipu ^ 1),
            Group::Up if ipu + 2 < all => Some(ipu + 2),
            Group::Up => around.then_some(ipu % 2),
            Group::Down if ipu >= 2 => Some(ipu - 2),
            Group::Down => around.then(|| (all + ipu).saturating_sub(2)),
        }
        .filter(|&to| to < all)
    }
}

impl Machine {
    /// Returns the network as a graph: node `n` is processor `n`, and an edge is a link group.
    ///
    /// [`Machine::route`] computes routes by the vendor's rule without a search; they are shortest paths of this graph.
    pub fn network(&self) -> DiGraph<u32, Group> {
        let mut network = DiGraph::new();
        let nodes: Vec<_> = (0..self.ipus).map(|ipu| network.add_node(ipu)).collect();
        if self.links.topology == Topology::None {
            return network;
        }
        for (ipu, group) in (0..self.ipus).flat_map(|ipu| Group::ALL.map(|group| (ipu, group))) {
            if let Some(to) = (Link { ipu, group }).to(self) {
                network.add_edge(nodes[ipu as usize], nodes[to as usize], group);
            }
        }
        network
    }

    /// Returns the link groups of the route from one processor to another, in order; none if they are the same.
    pub fn route(&self, from: u32, to: u32) -> impl Iterator<Item = Link> + use<> {
        let (rung, goal) = (from / 2, to / 2);
        let crosses = from % 2 != to % 2;
        let first =
            crosses.then_some(Link { ipu: from, group: if rung == goal { Group::Direct } else { Group::Cross } });
        let side = to % 2;
        let rungs = self.ipus.div_ceil(2).max(1);
        let (group, steps) = self.direction(rung, goal);
        let step = move |k: u32| {
            let at = match group {
                Group::Down => (rung + rungs - k) % rungs,
                _ => (rung + k) % rungs,
            };
            Link { ipu: 2 * at + side, group }
        };
        first.into_iter().chain((0..steps).map(step))
    }

    /// Returns the direction and the number of steps from one rung to another.
    fn direction(&self, rung: u32, goal: u32) -> (Group, u32) {
        let direct = rung.abs_diff(goal);
        let up = goal >= rung;
        let around = self.ipus.div_ceil(2).saturating_sub(direct);
        match self.links.topology {
            Topology::Torus if around < direct || (around == direct && !up) => {
                (if up { Group::Down } else { Group::Up }, around)
            }
            _ => (if up { Group::Up } else { Group::Down }, direct),
        }
    }

    /// Returns the usable bytes per second of a link group, each way.
    pub fn group_bytes_per_second(&self, group: Group) -> f64 {
        let links = match group {
            Group::Direct => self.links.direct,
            Group::Cross => self.links.cross,
            Group::Up => self.links.up,
            Group::Down => self.links.down,
        };
        links as f64 * self.links.bytes_per_second * self.links.efficiency
    }

    /// Returns the usable bytes per cycle of a link group, each way.
    pub fn group_bytes_per_cycle(&self, group: Group) -> f64 {
        self.group_bytes_per_second(group) / self.chip.clock_hz
    }

    /// Returns the cycles of a phase between processors: the fixed part, and the bytes of the fullest link group at its
    /// rate. Flows are (from, to, bytes); flows within a processor do not count, and without others the result is 0.
    pub fn link_phase_cycles(&self, flows: impl IntoIterator<Item = (u32, u32, u64)>) -> u64 {
        let mut loads = Loads::new(self.ipus);
        for (from, to, bytes) in flows.into_iter().filter(|(from, to, bytes)| from != to && *bytes > 0) {
            let crosses = from % 2 != to % 2;
            let (group, steps) = self.direction(from / 2, to / 2);
            if crosses {
                let group = if steps == 0 { Group::Direct } else { Group::Cross };
                loads.add(group, from % 2, from / 2, 1, bytes);
            }
            loads.add(group, to % 2, from / 2, steps, bytes);
        }
        let fullest =
            Group::ALL.map(|group| (loads.fullest(group) as f64 / self.group_bytes_per_cycle(group)).ceil() as u64);
        match fullest.into_iter().max() {
            Some(cycles) if cycles > 0 => (self.links.fixed_cycles as u64).saturating_add(cycles),
            _ => 0,
        }
    }

    /// Returns the cycles in which the processors of a zone synchronise. One processor needs its internal sync; several
    /// need, in addition, a fixed time and the time of a signal to the middle of the zone and back.
    pub fn sync_cycles(&self, zone: impl IntoIterator<Item = u32>) -> u64 {
        let mut zone: Vec<u32> = zone.into_iter().collect();
        zone.sort_unstable();
        zone.dedup();
        let internal = self.sync.internal_cycles as u64;
        if zone.len() < 2 {
            return internal;
        }
        internal + self.cycles_of_ns(self.sync.external_ns) + self.hop_cycles(self.span(&zone))
    }

    /// Returns the cycles of the hops of a sync over neighbouring processors, each way.
    pub fn hop_cycles(&self, ipus: u32) -> u64 {
        let hops = 1 + ipus / 4;
        self.cycles_of_ns(2.0 * self.sync.hop_ns * hops as f64)
    }

    /// Returns the number of processors of the rungs that a zone spans, including rungs in between.
    fn span(&self, zone: &[u32]) -> u32 {
        let rungs: Vec<u32> = zone.iter().map(|i| i / 2).collect();
        let (first, last) = (rungs[0], rungs[rungs.len() - 1]);
        let all = self.ipus.div_ceil(2);
        let gap = match self.links.topology {
            // On a ring, the widest gap is left out.
            Topology::Torus => {
                let inner = rungs.windows(2).map(|w| w[1] - w[0]).max().unwrap_or(0);
                inner.max((first + all).saturating_sub(last))
            }
            _ => (first + all).saturating_sub(last),
        };
        2 * (all + 1).saturating_sub(gap)
    }
}

/// The bytes on each link group. A flow adds the same number to a run of rungs, so only the differences between
/// neighbouring rungs are kept: the cost of adding a flow does not grow with the length of its route.
struct Loads {
    rungs: u32,
    /// By group and side: the difference from one rung to the next.
    steps: Vec<i128>,
}

impl Loads {
    fn new(ipus: u32) -> Loads {
        let rungs = ipus.div_ceil(2);
        Loads { rungs, steps: vec![0; Group::ALL.len() * 2 * (rungs as usize + 1)] }
    }

    /// Adds bytes to the groups of `count` rungs from `rung` on, in the direction of the group.
    fn add(&mut self, group: Group, side: u32, rung: u32, count: u32, bytes: u64) {
        let first = match group {
            Group::Down => (rung + self.rungs + 1 - count) % self.rungs,
            _ => rung,
        };
        let end = first + count;
        let row = self.row(group, side);
        // On a ring, a run past the last rung continues at the first.
        for run in [first..end.min(self.rungs), 0..end.saturating_sub(self.rungs)] {
            self.steps[row.start + run.start as usize] += bytes as i128;
            self.steps[row.start + run.end as usize] -= bytes as i128;
        }
    }

    fn row(&self, group: Group, side: u32) -> Range<usize> {
        let len = self.rungs as usize + 1;
        let at = (group as usize * 2 + side as usize) * len;
        at..at + len
    }

    /// Returns the bytes of the fullest group of a kind.
    fn fullest(&self, group: Group) -> i128 {
        let (mut fullest, mut sum) = (0, 0);
        for side in 0..2 {
            // The differences of a row sum to zero, so the next row starts at zero.
            for step in &self.steps[self.row(group, side)] {
                sum += step;
                fullest = fullest.max(sum);
            }
        }
        fullest
    }
}

#[cfg(test)]
mod tests;
