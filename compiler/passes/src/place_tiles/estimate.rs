//! The time of a step under a placement, made of the same parts as modelled time but without a plan: words are added up
//! by tile, and a schedule is taken to reach its bound.
//!
//! Invariant: an estimate depends on the graph, the placement and the machine only.

use super::accesses::{Item, Piece, Touch, TouchedPart, Vertices, What};
use super::traffic::{Sent, Traffic};
use super::trial::Trial;
use girder_codelet::cost::{Busy, TileCosts};
use girder_ir::codelet::Dir;
use girder_ir::graph::Graph;
use girder_ir::ids::VarId;
use girder_ir::plan::{HomeRun, Homes};
use girder_machine::Machine;
use rustc_hash::{FxHashMap, FxHashSet};

/// What estimates are made for.
pub(super) struct Estimator<'a> {
    pub graph: &'a Graph,
    pub machine: &'a Machine,
    pub costs: TileCosts,
}

/// The time of one execution, and the room that it needs.
#[derive(Clone, Copy, Default)]
pub(super) struct Estimate {
    pub cycles: u64,
    /// Bytes of landing buffers on the tile that has most.
    pub buffers: u64,
}

/// What a compute set moves.
#[derive(Default)]
struct Set {
    before: Traffic,
    after: Traffic,
    /// What `in` fields a tile has fetched: tile, shape, first elements.
    fetched: FxHashSet<(u32, u64, u64)>,
    buffers: FxHashMap<u32, u64>,
}

impl Estimator<'_> {
    pub(super) fn of(&self, item: &Item, trial: &Trial) -> Estimate {
        match &item.what {
            What::Set(_, families) => self.set(families, trial),
            What::Copy(pieces) => self.copy(pieces, trial),
            What::Packet(runs) => self.packet(runs, trial),
        }
    }

    fn bytes(&self, var: VarId) -> u64 {
        u64::from(self.graph.vars[var].ty.bytes())
    }

    fn set(&self, families: &[Vertices], trial: &Trial) -> Estimate {
        let (mut set, mut queues) = (Set::default(), Queues::new(&self.costs));
        for vertices in families {
            let tiles = trial.tiles(vertices.family);
            for (instance, &tile) in tiles.iter().enumerate() {
                queues.add(tile, vertices.busy.of(instance));
                for field in &vertices.fields {
                    self.field(&mut set, field, instance, tile, trial);
                }
            }
        }
        let moving = set.before.cycles(self.machine, true) + set.after.cycles(self.machine, false);
        let cycles = moving.saturating_add(queues.cycles(&self.costs));
        Estimate { cycles, buffers: set.buffers.values().copied().max().unwrap_or(0) }
    }

    /// One field of one vertex: in place, or fetched and sent home.
    fn field(&self, set: &mut Set, field: &Touch, instance: usize, tile: u32, trial: &Trial) {
        if field.dir == Dir::In {
            let firsts =
                field.parts.iter().fold(0u64, |h, p| h.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ p.first[instance]);
            if !set.fetched.insert((tile, field.shape, firsts)) {
                return;
            }
        }
        if let [part] = field.parts.as_slice()
            && in_place(trial.homes(part.var), part, part.first[instance], tile)
        {
            return;
        }
        set.before.next_field();
        set.after.next_field();
        let mut room = 0;
        for part in &field.parts {
            let (homes, bytes) = (trial.homes(part.var), self.bytes(part.var));
            for &(start, len) in &part.runs {
                let start = part.first[instance] + start;
                room += len * bytes;
                for run in homes.runs_in(start, start + len) {
                    let n = run.end.min(start + len) - run.start;
                    self.piece(set, field.dir, (part.var, run.start, n), n * bytes, run.tile, tile);
                }
            }
        }
        *set.buffers.entry(tile).or_default() += room;
    }

    fn piece(&self, set: &mut Set, dir: Dir, what: (VarId, u64, u64), bytes: u64, home: u32, tile: u32) {
        let sent = |from, to| Sent { var: what.0, start: what.1, len: what.2, bytes, from, to };
        if dir != Dir::Out {
            match home == tile {
                true => set.before.copy(tile, bytes),
                false => set.before.send(sent(home, tile), true, self.machine),
            }
        }
        if dir != Dir::In {
            match home == tile {
                true => set.after.copy(tile, bytes),
                false => set.after.send(sent(tile, home), false, self.machine),
            }
        }
    }

    fn copy(&self, pieces: &[Piece], trial: &Trial) -> Estimate {
        let mut traffic = Traffic::default();
        traffic.next_field();
        for piece in pieces {
            let bytes = self.bytes(piece.to.0);
            let (to, from) = (trial.homes(piece.to.0), trial.homes(piece.from.0));
            for target in to.runs_in(piece.to.1, piece.to.1 + piece.len) {
                let start = piece.from.1 + (target.start - piece.to.1);
                for source in from.runs_in(start, start + (target.end - target.start)) {
                    let len = source.end - source.start;
                    if source.tile == target.tile {
                        traffic.copy(source.tile, len * bytes);
                        continue;
                    }
                    let (var, start, from, to) = (piece.from.0, source.start, source.tile, target.tile);
                    traffic.send(Sent { var, start, len, bytes: len * bytes, from, to }, true, self.machine);
                }
            }
        }
        let cycles = traffic.cycles(self.machine, false);
        Estimate { cycles, buffers: 0 }
    }

    /// The part of a packet's time that its tiles decide.
    fn packet(&self, runs: &[(VarId, u64, u64)], trial: &Trial) -> Estimate {
        let mut tiles: FxHashMap<u32, u64> = FxHashMap::default();
        for &(var, start, len) in runs {
            for run in trial.homes(var).runs_in(start, start + len) {
                *tiles.entry(run.tile).or_default() += (run.end - run.start) * self.bytes(var);
            }
        }
        let most = tiles.values().copied().max().unwrap_or(0);
        let sync = 2 * self.machine.sync_cycles(tiles.keys().map(|&t| self.machine.ipu_of(t)));
        Estimate { cycles: sync + most.div_ceil(u64::from(self.machine.exchange.bytes_per_cycle)), buffers: 0 }
    }
}

/// Whether the elements of a part lie on a tile as one strided box.
fn in_place(homes: &Homes, part: &TouchedPart, first: u64, tile: u32) -> bool {
    let Some(&(last, len)) = part.runs.last() else { return true };
    let mut runs = homes.runs_in(first, first + last + len);
    let Some(run) = runs.next() else { return true };
    if run.tile != tile {
        return false;
    }
    if runs.next().is_none() {
        return true;
    }
    // Elements at equal distances must lie at equal distances.
    let mut gaps: FxHashMap<u64, i64> = FxHashMap::default();
    let mut before: Option<(u64, i64)> = None;
    part.runs.iter().all(|&(start, len)| {
        let mut pieces = homes.runs_in(first + start, first + start + len);
        let (Some(HomeRun { tile: home, offset, .. }), None) = (pieces.next(), pieces.next()) else { return false };
        let at = i64::from(offset);
        let fits = before.is_none_or(|(s, a)| *gaps.entry(start - s).or_insert(at - a) == at - a);
        before = Some((start, at));
        home == tile && fits
    })
}

/// The contexts of all tiles.
struct Queues {
    workers: usize,
    tiles: FxHashMap<u32, usize>,
    ends: Vec<u64>,
    supervisor: Vec<u64>,
    supervisor_cycles: u64,
}

impl Queues {
    fn new(costs: &TileCosts) -> Queues {
        let workers = costs.workers.max(1) as usize;
        let supervisor_cycles = costs.supervisor_cycles;
        Queues { workers, tiles: FxHashMap::default(), ends: vec![], supervisor: vec![], supervisor_cycles }
    }

    /// Adds the next vertex of a tile, as `tile_cycles` does.
    fn add(&mut self, tile: u32, vertex: &Busy) {
        let next = self.tiles.len();
        let at = *self.tiles.entry(tile).or_insert(next);
        if at == next {
            self.ends.resize(self.ends.len() + self.workers, 0);
            self.supervisor.push(0);
        }
        let ends = &mut self.ends[at * self.workers..(at + 1) * self.workers];
        match vertex {
            Busy::One(cycles) => {
                if let Some(first) = ends.iter_mut().min() {
                    *first = first.saturating_add(*cycles);
                }
            }
            Busy::All(cycles) => {
                let end = ends.iter().copied().max().unwrap_or(0).saturating_add(*cycles);
                ends.fill(end);
                self.supervisor[at] += self.supervisor_cycles;
            }
        }
    }

    /// Of the tile that takes longest.
    fn cycles(&self, costs: &TileCosts) -> u64 {
        let tiles = self.ends.chunks(self.workers).zip(&self.supervisor);
        let of =
            |(ends, supervisor): (&[u64], &u64)| ends.iter().copied().max().unwrap_or(0).saturating_add(*supervisor);
        tiles.map(of).max().map_or(0, |worst| worst.saturating_add(costs.launch_cycles))
    }
}
