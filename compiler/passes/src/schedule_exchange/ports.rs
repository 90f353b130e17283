//! The exchange of one phase as an abstract problem: which ports each transfer holds, and for how long.
//!
//! Invariant: the first hold of a transfer is its sender's out, then come the ins of its receivers, then links; ports
//! are numbered in the order in which transfers first name them.

use girder_ir::plan::{Phase, Transfer};
use girder_machine::Machine;
use rustc_hash::FxHashMap;

/// A port held from the start of a transfer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hold {
    /// Which.
    pub port: u32,
    /// For how long.
    pub cycles: u64,
}

/// What a port is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// A tile's sends.
    Out,
    /// A tile's receipts.
    In,
    /// From one processor to another.
    Link,
}

/// A phase as an open shop.
#[derive(Default)]
pub(super) struct Ports {
    /// All holds, transfer after transfer.
    holds: Vec<Hold>,
    /// Where the holds of each transfer end.
    end: Vec<usize>,
    /// How many receivers each transfer has.
    pub fan_out: Vec<u32>,
    /// Of each transfer: how far its first receiver is from its sender, cyclically over the tiles of the phase.
    pub skew: Vec<u32>,
    /// Sum of the holds of each port.
    pub load: Vec<u64>,
    /// What each port is.
    pub kind: Vec<Kind>,
    /// How many ports there are of each kind.
    pub count: [usize; 3],
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    Out(u32),
    In(u32),
    Link(u32, u32),
}

impl Ports {
    /// The problem of a phase.
    pub fn new(phase: &Phase, machine: &Machine) -> Ports {
        let mut ports = Ports::default();
        let mut numbers: FxHashMap<Key, u32> = FxHashMap::default();
        for transfer in &phase.transfers {
            ports.add(transfer, machine, &mut numbers);
        }
        ports.skew = skews(phase);
        ports
    }

    fn add(&mut self, transfer: &Transfer, machine: &Machine, numbers: &mut FxHashMap<Key, u32>) {
        let mut hold = |key, cycles: u64| {
            let port = *numbers.entry(key).or_insert(self.load.len() as u32);
            if port as usize == self.load.len() {
                let kind = match key {
                    Key::Out(_) => Kind::Out,
                    Key::In(_) => Kind::In,
                    Key::Link(..) => Kind::Link,
                };
                self.load.push(0);
                self.kind.push(kind);
                self.count[kind as usize] += 1;
            }
            self.load[port as usize] += cycles;
            self.holds.push(Hold { port, cycles });
        };
        let bytes = 4 * transfer.words as u64;
        let cycles = bytes.div_ceil(machine.exchange.bytes_per_cycle as u64);
        let home = machine.ipu_of(transfer.from.tile);
        hold(Key::Out(transfer.from.tile), cycles);
        for to in &transfer.to {
            hold(Key::In(to.tile), cycles);
        }
        let mut last = home;
        // Receivers ascend, so those of one processor are neighbours.
        for ipu in transfer.to.iter().map(|to| machine.ipu_of(to.tile)) {
            if ipu != home && ipu != last {
                hold(Key::Link(home, ipu), (bytes as f64 / machine.route_bytes_per_cycle(home, ipu)).ceil() as u64);
            }
            last = ipu;
        }
        self.end.push(self.holds.len());
        self.fan_out.push(transfer.to.len() as u32);
    }

    /// How many transfers.
    pub fn len(&self) -> usize {
        self.end.len()
    }

    /// What a transfer holds.
    pub fn holds(&self, transfer: usize) -> &[Hold] {
        let start = if transfer == 0 { 0 } else { self.end[transfer - 1] };
        &self.holds[start..self.end[transfer]]
    }

    /// Whether some transfer goes to another processor.
    pub fn has_links(&self) -> bool {
        self.count[Kind::Link as usize] > 0
    }

    /// Whether some transfer has several receivers.
    pub fn has_multicast(&self) -> bool {
        self.fan_out.iter().any(|&f| f > 1)
    }

    /// The load of the fullest port.
    pub fn bound(&self) -> u64 {
        self.load.iter().copied().max().unwrap_or(0)
    }

    /// The end of the latest transfer.
    pub fn end(&self, start: &[u64]) -> u64 {
        let end = |t: usize| start[t] + self.holds(t).iter().map(|h| h.cycles).max().unwrap_or(0);
        (0..self.len()).map(end).max().unwrap_or(0)
    }
}

/// Distances over the tiles that take part. Where every tile serves its receivers by ascending distance, an all-to-all
/// falls into rounds without conflicts.
fn skews(phase: &Phase) -> Vec<u32> {
    let mut tiles: Vec<u32> = phase.transfers.iter().flat_map(|t| [t.from.tile, t.to[0].tile]).collect();
    tiles.sort_unstable();
    tiles.dedup();
    let rank = |tile: u32| tiles.partition_point(|&t| t < tile);
    let n = tiles.len();
    phase.transfers.iter().map(|t| ((rank(t.to[0].tile) + n - rank(t.from.tile)) % n) as u32).collect()
}
