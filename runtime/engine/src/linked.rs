//! Linked products of mode `fast`: native ones, cut for threads.
//!
//! # Note: Sound linked products
//! The bytes of all rows, links and columns are checked to be inside the arena when products are made. Rows are apart,
//! and by the race rule no other vertex of the compute set touches an element of a row, nor does its own through
//! another field. So products may run at the same time on several threads, whole or cut along rows and columns.
//!
//! Invariant: every element takes the terms of its links in order, whatever the cuts.

use crate::arena::Arena;
use crate::error::EngineError;
use crate::natives::level;
use girder_host::{LinkedProduct, LinkedRow, ProductLink, ProductStart};
use girder_ir::types::ElemType;
use girder_kernels::{Level, Link, Row, Start, linked_f32, linked_f64};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// Multiply-adds below which a single thread computes the products.
const WORTH_SHARING: u64 = 1 << 17;
/// Multiply-adds between two polls of the stop flag: some tens of milliseconds.
const PER_POLL: u64 = 1 << 31;
/// Parts begin at multiples of this many rows: whole tiles of 8 or of 6 rows.
const ROWS: usize = 24;
/// Parts begin at multiples of this many columns: four of the widest vectors.
const COLUMNS: u64 = 64;

/// The linked products of a compute set, cut for threads.
pub(crate) struct LinkedProducts {
    products: Vec<Prepared>,
    /// The pieces of each thread, between which it may stop.
    parts: Vec<Vec<Piece>>,
    level: Level,
    /// Bytes of the arena for which they were checked.
    reach: u64,
}

/// A product in the form of the kernels.
struct Prepared {
    ty: ElemType,
    start: ProductStart,
    columns: u64,
    b_col: i64,
    rows: Vec<Row>,
    links: Vec<Link>,
}

/// Some rows and columns of a product.
#[derive(Clone, PartialEq, Debug)]
struct Piece {
    product: usize,
    rows: Range<usize>,
    columns: Range<u64>,
}

impl LinkedProducts {
    /// Cuts products for some threads; all elements must be below `bytes`.
    pub(crate) fn new(products: &[LinkedProduct], threads: usize, bytes: u64) -> Result<LinkedProducts, EngineError> {
        if !products.iter().all(|product| is_below(product, bytes)) {
            return Err(EngineError::Internal("a linked product leaves the memory".into()));
        }
        let chosen = girder_codegen::Level::chosen().map_err(|e| EngineError::Code(e.to_string()))?;
        let products: Vec<Prepared> = products.iter().map(Prepared::of).collect();
        let parts = cut(&products, threads);
        Ok(LinkedProducts { products, parts, level: level(chosen), reach: bytes })
    }

    /// Returns the number of threads that have work.
    pub(crate) fn parts(&self) -> usize {
        self.parts.len()
    }

    /// Runs a part, if there is one of this number, unless the stop flag is set; returns whether it has ended.
    pub(crate) fn run(&self, arena: &Arena, cancel: &AtomicBool, part: usize) -> bool {
        assert!(self.reach <= arena.bytes(), "a linked product of the engine leaves its memory");
        for piece in self.parts.get(part).into_iter().flatten() {
            if cancel.load(Ordering::Relaxed) {
                return false;
            }
            let product = &self.products[piece.product];
            let call = girder_kernels::LinkedProduct {
                base: arena.base(),
                rows: &product.rows[piece.rows.clone()],
                columns: (piece.columns.start, piece.columns.end),
                b_col: product.b_col,
                links: &product.links,
            };
            // SAFETY: see the note on sound linked products; the level is one of this machine.
            unsafe {
                match product.ty {
                    ElemType::F64 => linked_f64(self.level, &call, start(product.start, f64::from_bits)),
                    _ => linked_f32(self.level, &call, start(product.start, |bits| f32::from_bits(bits as u32))),
                }
            }
        }
        true
    }
}

impl Prepared {
    fn of(product: &LinkedProduct) -> Prepared {
        let row = |row: &LinkedRow| Row { c: row.c, a: row.a };
        let link = |l: &ProductLink| Link {
            a: l.a,
            b: l.b,
            a_step: l.a_step,
            b_step: l.b_step,
            terms: l.terms,
            fresh: l.fresh,
        };
        Prepared {
            ty: product.ty,
            start: product.start,
            columns: product.columns,
            b_col: product.b_col,
            rows: product.rows.iter().map(row).collect(),
            links: product.links.iter().map(link).collect(),
        }
    }

    /// Counts the multiply-adds of a row in one column.
    fn terms(&self) -> u64 {
        self.links.iter().map(|link| link.terms).sum::<u64>().max(1)
    }

    /// Counts the multiply-adds.
    fn work(&self) -> u64 {
        self.terms().saturating_mul(self.columns).saturating_mul(self.rows.len() as u64)
    }
}

fn start<F>(start: ProductStart, number: impl Fn(u64) -> F) -> Start<F> {
    match start {
        ProductStart::Old => Start::Old,
        ProductStart::Number(bits) => Start::Value(number(bits)),
        ProductStart::Added => Start::Added,
    }
}

/// Returns whether all elements of a product lie below a byte.
fn is_below(product: &LinkedProduct, bytes: u64) -> bool {
    let below = |range: Range<i64>| range.start >= 0 && u64::try_from(range.end).is_ok_and(|end| end <= bytes);
    let width = i64::try_from(product.columns).unwrap_or(i64::MAX).saturating_mul(i64::from(product.ty.bytes()));
    product.rows.iter().all(|row| below(row.c..row.c.saturating_add(width)))
        && product.a_bytes().is_none_or(below)
        && product.b_bytes().is_none_or(below)
}

/// Cuts products for threads, and the share of each thread into pieces.
fn cut(products: &[Prepared], threads: usize) -> Vec<Vec<Piece>> {
    let total = products.iter().map(Prepared::work).fold(0, u64::saturating_add);
    let count = if threads < 2 || total < WORTH_SHARING { 1 } else { threads };
    let mut parts = vec![Vec::new(); count];
    let mut before = 0u64;
    for (index, product) in products.iter().enumerate() {
        let whole = Piece { product: index, rows: 0..product.rows.len(), columns: 0..product.columns };
        if count > 1 && product.work() > total / count as u64 / 8 {
            for (piece, part) in shares(&whole, count).into_iter().zip(&mut parts) {
                part.push(piece);
            }
        } else {
            let part = u128::from(before) * count as u128 / u128::from(total.max(1));
            parts[part as usize].push(whole);
        }
        before = before.saturating_add(product.work());
    }
    let pieces = |piece: Piece| {
        let terms = products[piece.product].terms();
        let of_row = terms.saturating_mul(piece.columns.end - piece.columns.start);
        let rows = usize::try_from(PER_POLL / of_row.max(1)).unwrap_or(usize::MAX).max(ROWS);
        let starts = piece.rows.clone().step_by(rows);
        let piece_from = move |from: usize| Piece { rows: from..piece.rows.end.min(from + rows), ..piece.clone() };
        starts.map(piece_from).collect::<Vec<Piece>>()
    };
    parts.into_iter().map(|part| part.into_iter().flat_map(pieces).collect()).collect()
}

/// Cuts a piece for all threads: along its rows, or along its columns if there are few rows.
fn shares(whole: &Piece, threads: usize) -> Vec<Piece> {
    let (rows, columns) = (whole.rows.len(), whole.columns.end);
    let even = |length: usize, unit: usize| {
        let units = length.div_ceil(unit);
        let at = move |p: usize| (units * p / threads * unit).min(length);
        (0..threads).map(move |p| at(p)..at(p + 1))
    };
    let by_columns = rows < ROWS * threads && columns >= COLUMNS * threads as u64;
    if by_columns {
        let columns = |r: Range<usize>| Piece { columns: r.start as u64..r.end as u64, ..whole.clone() };
        return even(whole.columns.end as usize, COLUMNS as usize).map(columns).collect();
    }
    // Threads of whole tiles, unless some would have none.
    let unit = [ROWS, 8, 1].into_iter().find(|unit| rows.div_ceil(*unit) >= 4 * threads).unwrap_or(1);
    even(rows, unit).map(|rows| Piece { rows, ..whole.clone() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepared(rows: usize, columns: u64, terms: u64) -> Prepared {
        let link = Link { a: 0, b: 0, a_step: 4, b_step: 4, terms, fresh: false };
        let rows = (0..rows as i64).map(|row| Row { c: 64 * row, a: 0 }).collect();
        Prepared { ty: ElemType::F32, start: ProductStart::Old, columns, b_col: 4, rows, links: vec![link] }
    }

    #[test]
    fn pieces_cover_every_element_once() {
        for (rows, columns, terms) in [(1000, 64, 300), (9, 32, 30_000), (3, 512, 4096), (1, 1, 1), (40, 70, 1 << 26)] {
            for threads in 1..4 {
                let products = [prepared(rows, columns, terms), prepared(2, 2, 2)];
                let pieces: Vec<Piece> = cut(&products, threads).into_iter().flatten().collect();
                let mut covered = vec![0; rows * columns as usize];
                for piece in pieces.iter().filter(|piece| piece.product == 0) {
                    let columns_of = |row| piece.columns.clone().map(move |column| (row, column));
                    let places = piece.rows.clone().flat_map(columns_of);
                    places.for_each(|(row, column)| covered[row * columns as usize + column as usize] += 1);
                }
                assert!(covered.iter().all(|&times| times == 1));
            }
        }
    }
}
