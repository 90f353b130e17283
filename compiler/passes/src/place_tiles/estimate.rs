//! An estimate of a step's time under a placement. It has the same parts as modelled time but needs no plan: words are
//! summed by tile, and the schedule is assumed to reach its bound.
//!
//! Invariant: an estimate depends on the graph, the placement and the machine only, and examines a bounded number of
//! runs.

use super::PlaceTiles;
use super::accesses::{CopySlice, FamilyAccess, FieldAccess, Item, PacketRun, PartAccess, StepAccess};
use super::candidate::Candidate;
use super::homes::ElementRun;
use super::problem::PlacementProblem;
use super::sample::{Sample, SampledTile};
use super::traffic::{Sent, Traffic};
use crate::pass::Pass;
use crate::superstep::{self, Rate};
use girder_ir::codelet::Dir;
use girder_ir::ids::VarId;
use rustc_hash::{FxHashMap, FxHashSet};

/// The time of one execution, and the memory that it needs.
#[derive(Clone, Copy, Default)]
pub(super) struct Estimate {
    /// The cycles, and those that its exchange code is worth ([`CODE_BYTES_PER_CYCLE`]).
    pub cycles: u64,
    /// The bytes of landing buffers on the tile that has most.
    pub buffers: u64,
    /// The bytes of exchange code on the tile that has most.
    pub code: u64,
    /// The number of runs that were examined.
    pub work: u64,
}

/// The traffic of a compute set.
#[derive(Default)]
struct Set {
    before: Traffic,
    after: Traffic,
    /// The `in` fields that the current tile has fetched: shape and first elements.
    fetched: FxHashSet<(u64, u64)>,
    /// The sums of each field, family by family.
    sums: Vec<Sum>,
    /// The bytes of buffers on the current tile.
    room: f64,
    /// The runs of the current field, each with its variable, the number of runs of the field that it stands for, and
    /// the number of runs of the mapping that it stands for.
    pieces: Vec<(VarId, (f64, f64), ElementRun)>,
    runs: Vec<ElementRun>,
    work: u64,
}

/// The words that one field moves to and from the sampled tiles.
#[derive(Default)]
struct Sum {
    sent: f64,
    strided: f64,
    received: f64,
    values: FxHashSet<u64>,
}

/// Returns the estimate of an item. A compute set is estimated from its sample.
pub(super) fn of(problem: &PlacementProblem, item: &Item, candidate: &Candidate, sample: Option<&Sample>) -> Estimate {
    problem.times.of(PlaceTiles::NAME, item.part, || match (&item.what, sample) {
        (StepAccess::Set(_, families), Some(sample)) => problem.set(families, sample, candidate),
        (StepAccess::Set(..), None) => Estimate::default(),
        (StepAccess::Copy(pieces), _) => problem.copy(pieces, candidate),
        (StepAccess::Packet(chunks), _) => problem.packet(chunks, candidate),
    })
}

/// The bytes of exchange code that count as one cycle. Code takes no time, but it takes memory that other steps need.
/// Of two placements that take about as long, the one whose exchanges have fewer pieces is therefore better.
const CODE_BYTES_PER_CYCLE: u64 = 64;

impl PlacementProblem<'_> {
    fn bytes(&self, var: VarId) -> f64 {
        f64::from(self.graph.vars[var].ty.bytes())
    }

    fn set(&self, families: &[FamilyAccess], sample: &Sample, candidate: &Candidate) -> Estimate {
        let fields = |&(f, _): &(u32, u32)| families[f as usize].fields.len();
        let few = self.estimate.small.few_bytes;
        let looks = sample.tiles.iter().flat_map(|t| &t.vertices).map(fields).sum();
        let mut set = Set { before: Traffic::with_room(few, looks), after: Traffic::new(few), ..Set::default() };
        // Where the sums of each family's fields begin.
        let mut begin = vec![];
        for vertices in families {
            begin.push(set.sums.len());
            set.sums.extend(vertices.fields.iter().map(|_| Sum::default()));
        }
        let mut buffers = 0.0f64;
        for looked in &sample.tiles {
            set.fetched.clear();
            set.room = 0.0;
            for &(f, instance) in &looked.vertices {
                let vertices = &families[f as usize];
                for (k, field) in vertices.fields.iter().enumerate() {
                    self.field(&mut set, (begin[f as usize] + k, vertices, field), instance, looked, candidate);
                }
            }
            buffers = buffers.max(set.room);
        }
        if sample.ratio > 1.0 {
            // Many families may share a variable.
            let mut tiles: FxHashMap<VarId, u32> = FxHashMap::default();
            let mut homes = |p: &PartAccess| {
                let tiles = *tiles.entry(p.var).or_insert_with(|| candidate.tiles_of(self, p.var));
                self.homes(p.var, p.reach, tiles)
            };
            for (vertices, &begin) in families.iter().zip(&begin) {
                let sums = &set.sums[begin..];
                for (field, sum) in vertices.fields.iter().zip(sums) {
                    let homes = field.parts.iter().map(&mut homes).fold(1.0, f64::max);
                    // A value that several tiles take is sent once.
                    let more = sample.ratio.min(field.distinct as f64 / sum.values.len().max(1) as f64).max(1.0);
                    set.before.all_send(sum.sent * more / homes, sum.strided * more / homes);
                    set.after.all_receive(sum.received * sample.ratio / homes);
                }
            }
        }
        let code = set.before.code_bytes(self.machine) + set.after.code_bytes(self.machine);
        let moving =
            set.before.cycles(self.machine, true, sample.ratio) + set.after.cycles(self.machine, false, sample.ratio);
        let cycles = moving.saturating_add(sample.cycles).saturating_add(code / CODE_BYTES_PER_CYCLE);
        Estimate { cycles, buffers: buffers as u64, code, work: set.work }
    }

    /// Returns the number of tiles that hold a range of a variable, if its `tiles` share it evenly.
    fn homes(&self, var: VarId, reach: u64, tiles: u32) -> f64 {
        let part = reach as f64 / self.graph.vars[var].len().max(1) as f64;
        (f64::from(tiles) * part.min(1.0)).max(1.0)
    }

    /// Adds one field of one vertex, which is in place, or fetched and sent home.
    fn field(
        &self,
        set: &mut Set,
        field: (usize, &FamilyAccess, &FieldAccess),
        instance: u32,
        looked: &SampledTile,
        candidate: &Candidate,
    ) {
        let (k, vertices, field) = field;
        let domain = &vertices.family.domain;
        let first = |p: &PartAccess| p.first(domain, u64::from(instance));
        let firsts = field.parts.iter().fold(0u64, |h, p| h.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ first(p));
        if field.dir == Dir::In {
            if !set.fetched.insert((field.shape, firsts)) {
                return;
            }
            set.sums[k].values.insert(firsts);
        }
        set.pieces.clear();
        let mut room = 0.0;
        for part in &field.parts {
            let first = first(part);
            for &(start, len) in &part.runs {
                let whole = candidate.runs(part.var, first + start, first + start + len, &mut set.runs);
                let stands_for = if whole {
                    1.0
                } else {
                    let homes = self.homes(part.var, len, candidate.tiles_of(self, part.var));
                    (homes / set.runs.len() as f64).max(1.0)
                };
                set.pieces.extend(set.runs.iter().map(|&run| (part.var, (part.each, stands_for), run)));
            }
            room += part.elements as f64 * self.bytes(part.var);
        }
        set.work += set.pieces.len() as u64 + 1;
        if field.parts.len() == 1 && set.pieces.iter().all(|p| p.2.tile == looked.tile) {
            return;
        }
        set.before.next_field();
        set.after.next_field();
        set.room += room * looked.each;
        for (var, (each, stands_for), run) in std::mem::take(&mut set.pieces) {
            let bytes = (run.end - run.start) as f64 * self.bytes(var) * each * looked.each;
            self.piece(set, (k, field.dir), var, (bytes, stands_for * each * looked.each), run, looked.tile);
        }
    }

    /// Adds a run of a variable: its bytes, and the number of runs that it stands for.
    fn piece(&self, set: &mut Set, field: (usize, Dir), var: VarId, amount: (f64, f64), run: ElementRun, tile: u32) {
        let ((k, dir), (bytes, each)) = (field, amount);
        let sent = |from, to| Sent { var, start: run.start, len: run.end - run.start, bytes, each, from, to };
        if dir != Dir::Out {
            if run.tile == tile {
                set.before.copy(tile, bytes);
            } else {
                let (fresh, strided) = set.before.send(sent(run.tile, tile), true, self.machine);
                set.sums[k].sent += if fresh { bytes } else { 0.0 };
                set.sums[k].strided += if strided { bytes } else { 0.0 };
            }
        }
        if dir != Dir::In {
            if run.tile == tile {
                set.after.copy(tile, bytes);
            } else {
                set.after.send(sent(tile, run.tile), false, self.machine);
                set.sums[k].received += bytes;
            }
        }
    }

    fn copy(&self, pieces: &[CopySlice], candidate: &Candidate) -> Estimate {
        let mut traffic = Traffic::new(self.estimate.small.few_bytes);
        traffic.next_field();
        let (mut targets, mut sources) = (vec![], vec![]);
        let mut work = 0;
        for piece in pieces {
            let bytes = self.bytes(piece.to.0) * piece.each;
            let whole = candidate.runs(piece.to.0, piece.to.1, piece.to.1 + piece.len, &mut targets);
            // Elements on too many tiles to look at are shared evenly by these tiles.
            let homes = |var| self.homes(var, piece.len, candidate.tiles_of(self, var));
            for target in &targets {
                let start = piece.from.1 + (target.start - piece.to.1);
                if whole {
                    candidate.runs(piece.from.0, start, start + (target.end - target.start), &mut sources);
                } else {
                    let end = start + (target.end - target.start);
                    let middle = (start + end) / 2;
                    candidate.runs(piece.from.0, middle, middle + 1, &mut sources);
                    sources.iter_mut().for_each(|s| (s.start, s.end) = (start, end));
                }
                work += 1 + sources.len() as u64;
                for source in &sources {
                    let len = source.end - source.start;
                    let (from, to, bytes) = (source.tile, target.tile, len as f64 * bytes);
                    let (var, start, each) = (piece.from.0, source.start, piece.each);
                    let sent = Sent { var, start, len, bytes, each, from, to };
                    if !whole {
                        let (sender, receiver) = (bytes / homes(piece.from.0), bytes / homes(piece.to.0));
                        traffic.all_move(sent, sender, receiver, self.machine);
                    } else if from == to {
                        traffic.copy(from, bytes);
                    } else {
                        traffic.send(sent, true, self.machine);
                    }
                }
            }
        }
        let code = traffic.code_bytes(self.machine);
        let cycles = traffic.cycles(self.machine, false, 1.0).saturating_add(code / CODE_BYTES_PER_CYCLE);
        Estimate { cycles, buffers: 0, code, work }
    }

    /// Returns the part of a packet's time that depends on its tiles.
    fn packet(&self, chunks: &[PacketRun], candidate: &Candidate) -> Estimate {
        let mut tiles: FxHashMap<u32, f64> = FxHashMap::default();
        let (mut runs, mut work) = (vec![], 0);
        for chunk in chunks {
            candidate.runs(chunk.var, chunk.start, chunk.start + chunk.len, &mut runs);
            work += runs.len() as u64;
            for run in &runs {
                *tiles.entry(run.tile).or_default() +=
                    (run.end - run.start) as f64 * self.bytes(chunk.var) * chunk.each;
            }
        }
        let most = tiles.values().copied().fold(0.0, f64::max) as u64;
        let ipus = tiles.keys().map(|&t| self.machine.ipu_of(t));
        let sync = superstep::packet_sync_cycles(self.machine, ipus);
        let cycles = sync + superstep::port_cycles(self.machine, most, Rate::Tile);
        Estimate { cycles, work, ..Estimate::default() }
    }
}
