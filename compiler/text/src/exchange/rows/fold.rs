//! Folding of rows into families.
//!
//! Rows that advance evenly become a family over a box of indices. What is left between large families is printed as a
//! table if that saves lines: one row whose numbers are columns. A column that changes rarely is no column; the table
//! is cut where it changes.
//!
//! Invariant: the rows of the families, in order, are the rows that were folded.

#[cfg(test)]
mod tests;

use super::families::{Dim, Indices, MAX_RANK, RowFamily, Table};
use super::numbers::Numbers;
use super::runs::{RowRun, RowRuns};
use crate::values::MAX_COLUMNS;
use girder_syntax::ast::IntegerList;
use std::ops::Range;

/// Fewer rows than this are printed one by one, which is easier to read.
const FEW: usize = 3;
/// Fewer lines of text than this are not joined to a table.
const FEW_LINES: usize = 16;
/// Families of at least this many rows are no part of a table.
const LARGE: usize = 16;
/// The approximate number of characters of a table without its entries.
const HEAD: usize = 100;

/// Folds rows into families, in order.
pub fn fold(rows: RowRuns) -> Vec<RowFamily> {
    let mut families = vec![];
    for run in rows.0 {
        let mut boxes: Vec<RowBox> = (0..run.count).map(|at| RowBox { at, rows: 1, dims: vec![] }).collect();
        for rank in 0..MAX_RANK {
            boxes = once(&run, boxes, rank);
        }
        let large = |b: &RowBox| b.rows >= LARGE;
        for same in boxes.chunk_by(|a, b| !large(a) && !large(b)) {
            let (first, last) = (&same[0], &same[same.len() - 1]);
            if same.len() < FEW_LINES || !tables(&run, first.at..last.at + last.rows, &mut families) {
                families.extend(same.iter().map(|b| b.family(&run)));
            }
        }
    }
    families
}

/// Consecutive rows of a run whose numbers advance evenly over a box of indices.
struct RowBox {
    /// The first row.
    at: usize,
    rows: usize,
    dims: Vec<Dim>,
}

impl RowBox {
    fn family(&self, run: &RowRun) -> RowFamily {
        let first = run.row(self.at);
        RowFamily { first, indices: Indices::Box(self.dims.clone()) }
    }
}

/// Joins boxes of one rank whose numbers advance evenly.
fn once(run: &RowRun, mut boxes: Vec<RowBox>, rank: usize) -> Vec<RowBox> {
    let least = if rank == 0 { FEW } else { 2 };
    let mut result = Vec::with_capacity(boxes.len());
    let mut k = 0;
    while k < boxes.len() {
        let (first, behind) = (&boxes[k], &boxes[k + 1..]);
        let start = run.numbers(first.at);
        let mut count = 1;
        let mut step = Numbers::new();
        if let Some(second) = behind.first().filter(|second| second.dims == first.dims && first.dims.len() == rank) {
            step = differences(run.numbers(second.at), start);
            let even = |pair: &&[RowBox]| {
                let (a, b) = (run.numbers(pair[0].at), run.numbers(pair[1].at));
                pair[1].dims == first.dims && a.iter().zip(b).zip(&step).all(|((a, b), s)| a.wrapping_add(*s) == *b)
            };
            count += boxes[k..].windows(2).take_while(even).count();
        }
        let joined = if count < least { 1 } else { count };
        let rows = boxes[k..k + joined].iter().map(|b| b.rows).sum();
        let mut dims = std::mem::take(&mut boxes[k].dims);
        if joined > 1 {
            dims.insert(0, Dim { count: joined as u32, step });
        }
        result.push(RowBox { at: boxes[k].at, rows, dims });
        k += joined;
    }
    result
}

/// Returns how far the numbers of one row are from those of another.
fn differences(of: &[i64], from: &[i64]) -> Numbers {
    of.iter().zip(from).map(|(a, b)| a.wrapping_sub(*b)).collect()
}

/// Adds the tables of some rows of a run. Returns `false` if they need too many columns.
fn tables(run: &RowRun, rows: Range<usize>, out: &mut Vec<RowFamily>) -> bool {
    let cuts = cuts(run, rows.clone());
    let pieces: Vec<_> = (0..=cuts.len())
        .map(|k| {
            let start = if k == 0 { rows.start } else { cuts[k - 1] };
            start..cuts.get(k).copied().unwrap_or(rows.end)
        })
        .collect();
    let columns: Vec<_> = pieces.iter().map(|piece| columns(run, piece.clone())).collect();
    if columns.iter().any(|c| c.len() > MAX_COLUMNS) {
        return false;
    }
    for (piece, columns) in pieces.into_iter().zip(columns) {
        if piece.len() <= FEW || columns.is_empty() {
            out.extend(piece.map(|row| RowFamily::one(run.row(row))));
            continue;
        }
        let first = run.row(piece.start);
        let steps = columns.iter().map(|c| c.iter().map(|&moves| i64::from(moves)).collect()).collect();
        let leaders: Vec<usize> = columns.iter().filter_map(|c| c.iter().position(|&moves| moves)).collect();
        let values: Vec<i64> = piece.flat_map(|row| leaders.iter().map(move |&k| run.numbers(row)[k])).collect();
        let list = IntegerList::new(leaders.len(), &values, vec![]);
        out.push(RowFamily { first, indices: Indices::Table(Table { steps, list }) });
    }
    true
}

/// Returns the columns of a table of rows: for each column, which numbers advance with it. Numbers that do not change
/// are in no column.
fn columns(run: &RowRun, rows: Range<usize>) -> Vec<Vec<bool>> {
    let start = run.numbers(rows.start);
    let mut columns: Vec<Vec<bool>> = vec![];
    for k in 0..start.len() {
        let from_start = |row: usize, k: usize| run.numbers(row)[k].wrapping_sub(start[k]);
        if rows.clone().all(|row| from_start(row, k) == 0) {
            continue;
        }
        let with = |c: &&mut Vec<bool>| {
            let leader = c.iter().position(|&moves| moves).unwrap_or(k);
            rows.clone().all(|row| from_start(row, leader) == from_start(row, k))
        };
        match columns.iter_mut().find(with) {
            Some(column) => column[k] = true,
            None => {
                let mut column = vec![false; start.len()];
                column[k] = true;
                columns.push(column);
            }
        }
    }
    columns
}

/// Returns the rows before which a table is cut so that its text is short. Each cut costs a further head, but removes
/// the numbers that do not change between two cuts from all rows there.
fn cuts(run: &RowRun, rows: Range<usize>) -> Vec<usize> {
    let behind_first = rows.start + 1..rows.end;
    let mut leaders: Vec<(Vec<usize>, usize)> = columns(run, rows.clone())
        .iter()
        .filter_map(|column| column.iter().position(|&moves| moves))
        .map(|k| {
            let changes = behind_first.clone().filter(|&row| run.numbers(row)[k] != run.numbers(row - 1)[k]).collect();
            (changes, rows.clone().map(|row| digits(run.numbers(row)[k]) + 2).sum())
        })
        .collect();
    leaders.sort_by_key(|(changes, _)| changes.len());
    let mut cuts: Vec<usize> = vec![];
    for (changes, saved) in leaders {
        let mut more = [&cuts[..], &changes].concat();
        more.sort_unstable();
        more.dedup();
        if (more.len() - cuts.len()) * HEAD >= saved {
            break;
        }
        cuts = more;
    }
    cuts
}

/// Returns the length of a number as text.
fn digits(number: i64) -> usize {
    number.unsigned_abs().checked_ilog10().unwrap_or(0) as usize + 1 + usize::from(number < 0)
}
