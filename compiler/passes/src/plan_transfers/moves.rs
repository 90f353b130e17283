//! Moves: equal pieces of bytes at equal distances, each from one block to another, before it is decided how they
//! travel.
//!
//! Invariant: the moves of a view contain each of its elements once, in row-major order as far as blocks allow. The
//! cost is that of the view's runs and of the runs of the mapping that they meet; equally cut rows cost little.

use super::bands::{Band, RowCut, bands, equally_cut_rows};
use super::buffers::PlanError;
use super::homes::{RunHint, split};
use super::scene::Scene;
use girder_ir::ids::VarId;
use girder_ir::plan::{Loc, LocalCopy, Object};
use girder_ir::view::{Run, View, copy_runs};
use rustc_hash::FxHashMap;

/// Bytes that move: a [`LocalCopy`] whose two ends may be on different tiles.
pub(super) type Move = LocalCopy;

/// Collects moves from pieces. A piece that continues an earlier move with the same two ends is joined to it.
pub(super) struct Moves {
    /// The moves, in the order of their first pieces.
    pub list: Vec<Move>,
    /// The last move with each pair of ends, once there are more than [`FEW`].
    last: FxHashMap<Ends, usize>,
    /// The largest number of moves.
    limit: usize,
    /// The cuts of the current row.
    cuts: Vec<RowCut>,
}

impl Moves {
    /// Creates an empty collection.
    pub fn new(scene: &Scene) -> Moves {
        Moves { list: vec![], last: FxHashMap::default(), limit: scene.limit, cuts: vec![] }
    }

    /// Collects the moves that make the elements of a view contiguous, row-major, from `to` on. The view has at most 4
    /// GiB.
    pub fn gather(&mut self, scene: &Scene, view: &View, to: Loc) -> Result<(), PlanError> {
        self.gather_bands(scene, &bands(view.runs()), 0, to)
    }

    /// Collects the moves of a view's bands, all shifted by some elements.
    pub fn gather_bands(&mut self, scene: &Scene, bands: &[Band], shift: i64, to: Loc) -> Result<(), PlanError> {
        self.clear();
        let (mut at, mut hint, mut cuts) = (to.offset, RunHint::default(), std::mem::take(&mut self.cuts));
        for band in bands {
            let Run { var, len, stride, .. } = band.run;
            let (homes, bytes) = (&scene.homes[var], scene.elem_bytes(var));
            let row_bytes = len as u32 * bytes;
            let mut row = 0;
            while row < band.count {
                let rest = band.behind(row, shift);
                cuts.clear();
                split(homes, rest.run.start, stride, len, &mut hint, |first, len, at, run| {
                    cuts.push(RowCut { first, len, at, run, step: 0 });
                    Ok(())
                })?;
                let rows = equally_cut_rows(homes, &rest, &mut cuts);
                for c in &cuts {
                    let to = Loc { offset: at + c.first as u32 * bytes, ..to };
                    self.push(elements(c.at.loc(var, bytes), to, c.len, bytes, stride * bytes as i64, bytes as i64))?;
                }
                // The rows below: each continues where the one above it stops.
                for c in cuts.iter().filter(|_| rows > 1) {
                    let to = Loc { offset: at + row_bytes + c.first as u32 * bytes, ..to };
                    let from = c.at.loc(var, bytes);
                    let from = Loc { offset: (from.offset as i64 + c.step) as u32, ..from };
                    let below = elements(from, to, rows as u64 - 1, c.len as u32 * bytes, c.step, row_bytes as i64);
                    self.push(below)?;
                }
                at += rows * row_bytes;
                row += rows;
            }
        }
        self.cuts = cuts;
        Ok(())
    }

    /// Collects the moves of an elementwise copy. The tiles that receive are counted from `first`; if that is 0,
    /// elements that stay make no move.
    pub fn copy(&mut self, scene: &Scene, dst: &View, src: &View, first: u32) -> Result<(), PlanError> {
        self.clear();
        let (mut hint_d, mut hint_s) = (RunHint::default(), RunHint::default());
        for run in copy_runs(dst, src) {
            let bytes = scene.elem_bytes(run.dst_var);
            let homes = (&scene.homes[run.dst_var], &scene.homes[run.src_var]);
            let steps = (run.src_stride * bytes as i64, run.dst_stride * bytes as i64);
            split(homes.0, run.dst_start, run.dst_stride, run.len, &mut hint_d, |k, n, d, _| {
                let to = d.loc(run.dst_var, bytes);
                let to = Loc { tile: first + to.tile, ..to };
                let start = (run.src_start as i64 + k as i64 * run.src_stride) as u64;
                split(homes.1, start, run.src_stride, n, &mut hint_s, |k, n, s, _| {
                    let from = s.loc(run.src_var, bytes);
                    let to = Loc { offset: (to.offset as i64 + k as i64 * steps.1) as u32, ..to };
                    match from == to && steps.0 == steps.1 {
                        true => Ok(()),
                        false => self.push(elements(from, to, n, bytes, steps.0, steps.1)),
                    }
                })
            })?;
        }
        Ok(())
    }

    fn clear(&mut self) {
        self.list.clear();
        self.last.clear();
    }

    /// Returns the last move with the ends of a piece.
    fn last(&self, piece: &Move) -> Option<usize> {
        match self.list.len() <= FEW {
            true => self.list.iter().rposition(|m| ends(m) == ends(piece)),
            false => self.last.get(&ends(piece)).copied(),
        }
    }

    fn push(&mut self, piece: Move) -> Result<(), PlanError> {
        let last = self.last(&piece);
        if let Some(k) = last
            && join(&mut self.list[k], &piece)
        {
            return Ok(());
        }
        let next = self.list.len();
        if next == self.limit {
            return Err(PlanError::TooMany);
        }
        self.list.push(piece);
        match next {
            ..FEW => {}
            FEW => self.last.extend(self.list.iter().enumerate().map(|(k, m)| (ends(m), k))),
            _ => drop(self.last.insert(ends(&piece), next)),
        }
        Ok(())
    }
}

/// The number of moves up to which they are searched one by one.
const FEW: usize = 8;

/// The tiles and objects between which a move goes.
type Ends = (u32, Object, u32, Object);

/// Returns the tiles and objects between which a move goes.
pub(super) fn ends(m: &Move) -> Ends {
    (m.from.tile, m.from.object, m.to.tile, m.to.object)
}

/// Returns the move of n elements at fixed distances; contiguous elements are one piece.
fn elements(from: Loc, to: Loc, n: u64, bytes: u32, from_step: i64, to_step: i64) -> Move {
    if n == 1 || (from_step == bytes as i64 && to_step == bytes as i64) {
        return piece(from, to, n as u32 * bytes);
    }
    Move { from, to, count: n as u32, bytes, from_step: from_step as i32, to_step: to_step as i32 }
}

/// Returns the move of one contiguous piece.
pub(super) fn piece(from: Loc, to: Loc, bytes: u32) -> Move {
    Move { from, to, count: 1, bytes, from_step: 0, to_step: 0 }
}

/// Joins `next` to a move with the same two ends if it continues it. Returns whether it does.
pub(super) fn join(last: &mut Move, next: &Move) -> bool {
    let gap = |a: Loc, b: Loc| b.offset as i64 - a.offset as i64;
    let (from, to) = (gap(last.from, next.from), gap(last.to, next.to));
    if last.count == 1 && next.count == 1 && from == last.bytes as i64 && to == from {
        last.bytes += next.bytes;
        return true;
    }
    if last.bytes != next.bytes {
        return false;
    }
    let n = last.count as i64;
    let (Ok(from_step), Ok(to_step)) = (i32::try_from(from / n), i32::try_from(to / n)) else { return false };
    let fits = |m: &Move| m.count == 1 || (m.from_step == from_step && m.to_step == to_step);
    if !fits(last) || !fits(next) || from % n != 0 || to % n != 0 || to_step == 0 {
        return false;
    }
    (last.count, last.from_step, last.to_step) = (last.count + next.count, from_step, to_step);
    true
}

/// Returns the variable of a location, or `None` for every buffer.
pub(super) fn form(object: Object) -> Option<VarId> {
    match object {
        Object::Var(var) => Some(var),
        Object::Buffer(_) => None,
    }
}
