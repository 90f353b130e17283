//! What has to move, before anything is said about how: equal pieces of bytes at equal distances, each from one block to
//! one block.
//!
//! Invariant: the moves of a view hold each of its elements once, in row-major order as far as blocks allow; the cost
//! is that of its runs and of the runs of the mapping that they meet, of which those of rows that are cut alike cost little.

use super::Scene;
use super::bands::{Band, Cut, alike, bands};
use super::buffers::Stop;
use girder_ir::ids::VarId;
use girder_ir::plan::{Homes, Loc, LocalCopy, Object};
use girder_ir::view::{Run, View, copy_runs};
use rustc_hash::FxHashMap;

/// Bytes that change places: a [`LocalCopy`] whose two ends may be on different tiles.
pub(super) type Move = LocalCopy;

/// Makes moves out of pieces, and joins pieces that go on where an earlier one with the same two ends stops.
pub(super) struct Moves {
    /// In the order of their first pieces.
    pub list: Vec<Move>,
    /// The last of each two ends, once there are more than [`FEW`].
    last: FxHashMap<Ends, usize>,
    /// How many there may be.
    limit: usize,
    /// Those of the row at hand.
    cuts: Vec<Cut>,
}

impl Moves {
    /// None so far.
    pub fn new(scene: &Scene) -> Moves {
        Moves { list: vec![], last: FxHashMap::default(), limit: scene.limit, cuts: vec![] }
    }

    /// The moves that bring the elements of a view to a row-major, contiguous place from byte 0 of `to` on. The view is
    /// at most 4 GiB.
    pub fn gather(&mut self, scene: &Scene, view: &View, to: Loc) -> Result<(), Stop> {
        self.gather_bands(scene, &bands(view.runs()), 0, to)
    }

    /// The same for the runs of a view, all of them so many elements further on.
    pub fn gather_bands(&mut self, scene: &Scene, bands: &[Band], shift: i64, to: Loc) -> Result<(), Stop> {
        self.clear();
        let (mut at, mut hint, mut cuts) = (to.offset, Hint::default(), std::mem::take(&mut self.cuts));
        for band in bands {
            let Run { var, len, stride, .. } = band.run;
            let (homes, bytes) = (&scene.homes[var], scene.elem_bytes(var));
            let row_bytes = len as u32 * bytes;
            let mut row = 0;
            while row < band.count {
                let rest = band.behind(row, shift);
                cuts.clear();
                split(homes, rest.run.start, stride, len, &mut hint, |first, len, at, run| {
                    cuts.push(Cut { first, len, at, run, step: 0 });
                    Ok(())
                })?;
                let rows = alike(homes, &rest, &mut cuts);
                for c in &cuts {
                    let to = Loc { offset: at + c.first as u32 * bytes, ..to };
                    self.push(elements(c.at.loc(var, bytes), to, c.len, bytes, stride * bytes as i64, bytes as i64))?;
                }
                // The rows below, of which each goes on where the one above it stops.
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

    /// The moves of an element by element copy; elements that stay where they are make none.
    pub fn copy(&mut self, scene: &Scene, dst: &View, src: &View) -> Result<(), Stop> {
        self.clear();
        let (mut hint_d, mut hint_s) = (Hint::default(), Hint::default());
        for run in copy_runs(dst, src) {
            let bytes = scene.elem_bytes(run.dst_var);
            let homes = (&scene.homes[run.dst_var], &scene.homes[run.src_var]);
            let steps = (run.src_stride * bytes as i64, run.dst_stride * bytes as i64);
            split(homes.0, run.dst_start, run.dst_stride, run.len, &mut hint_d, |k, n, d, _| {
                let to = d.loc(run.dst_var, bytes);
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

    /// The last move with the ends of a piece.
    fn last(&self, piece: &Move) -> Option<usize> {
        match self.list.len() <= FEW {
            true => self.list.iter().rposition(|m| ends(m) == ends(piece)),
            false => self.last.get(&ends(piece)).copied(),
        }
    }

    fn push(&mut self, piece: Move) -> Result<(), Stop> {
        let last = self.last(&piece);
        if let Some(k) = last
            && join(&mut self.list[k], &piece)
        {
            return Ok(());
        }
        let next = self.list.len();
        if next == self.limit {
            return Err(Stop::TooMany);
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

/// Moves that are searched one by one.
const FEW: usize = 8;

type Ends = (u32, Object, u32, Object);

fn ends(m: &Move) -> Ends {
    (m.from.tile, m.from.object, m.to.tile, m.to.object)
}

/// n elements at fixed distances; contiguous ones are one piece.
fn elements(from: Loc, to: Loc, n: u64, bytes: u32, from_step: i64, to_step: i64) -> Move {
    if n == 1 || (from_step == bytes as i64 && to_step == bytes as i64) {
        return piece(from, to, n as u32 * bytes);
    }
    Move { from, to, count: n as u32, bytes, from_step: from_step as i32, to_step: to_step as i32 }
}

/// One piece of contiguous bytes.
pub(super) fn piece(from: Loc, to: Loc, bytes: u32) -> Move {
    Move { from, to, count: 1, bytes, from_step: 0, to_step: 0 }
}

/// Takes `next` into a move with the same two ends, if it continues it.
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

/// Where an element is, and its place in its block in terms of the run of the mapping that holds it.
#[derive(Clone, Copy, Debug)]
pub(super) struct At {
    /// Its tile.
    pub tile: u32,
    offset: u32,
    /// Elements behind the first of the run.
    behind: u32,
}

impl At {
    /// The element as bytes of a block.
    pub fn loc(self, var: VarId, bytes: u32) -> Loc {
        Loc { tile: self.tile, object: Object::Var(var), offset: self.byte(bytes) }
    }

    /// The element's byte in its block.
    pub fn byte(self, bytes: u32) -> u32 {
        self.offset + self.behind * bytes
    }
}

/// Which run of a mapping was met last. Only time depends on it.
#[derive(Clone, Copy, Default)]
pub(super) struct Hint {
    /// Its index.
    pub at: usize,
    /// Runs from the last but one that was not its neighbour: rows of a block are evenly apart.
    jump: usize,
}

/// The place of one element.
pub(super) fn locate(homes: &Homes, element: u64, hint: &mut Hint) -> At {
    let holds = |k: &usize| homes.runs.get(*k).is_some_and(|r| r.elements().contains(&element));
    if !holds(&hint.at) && !holds(&(hint.at + 1)) {
        // Rows of a block are evenly apart, others anywhere.
        let ahead = Some(hint.at.wrapping_add(hint.jump)).filter(holds);
        let found = ahead.unwrap_or_else(|| homes.run_of(element));
        *hint = Hint { at: found, jump: found.wrapping_sub(hint.at) };
    } else if !holds(&hint.at) {
        hint.at += 1;
    }
    let run = &homes.runs[hint.at];
    At { tile: run.tile, offset: run.offset, behind: element as u32 - run.start }
}

/// Of the run of the mapping that holds an element: the element's byte in its block, and one past its last element.
pub(super) fn home_run(homes: &Homes, element: u64, hint: &mut Hint) -> (u32, u64) {
    let at = locate(homes, element, hint);
    (at.byte(homes.elem_bytes), homes.runs[hint.at].end as u64)
}

/// Cuts `len` elements from `start` on, `stride` apart, where the mapping changes: calls `f(k, n, place of the k-th, its
/// run)` for the k-th to the (k + n - 1)-th.
fn split(
    homes: &Homes,
    start: u64,
    stride: i64,
    len: u64,
    hint: &mut Hint,
    mut f: impl FnMut(u64, u64, At, usize) -> Result<(), Stop>,
) -> Result<(), Stop> {
    let mut k = 0;
    while k < len {
        let element = (start as i64 + k as i64 * stride) as u64;
        let at = locate(homes, element, hint);
        let run = homes.runs[hint.at].elements();
        let here = match stride {
            0 => len,
            1.. => (run.end - 1 - element) / stride as u64 + 1,
            _ => (element - run.start) / stride.unsigned_abs() + 1,
        };
        let n = here.min(len - k);
        f(k, n, at, hint.at)?;
        k += n;
    }
    Ok(())
}
