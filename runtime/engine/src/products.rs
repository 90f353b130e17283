//! Matrix products in mode `fast`: the vertices of a compute set that do nothing but `amp`, perhaps after filling its
//! result with a number, run as native products; those that tile a larger product run as one.
//!
//! - `body` sees whether a codelet is such a product, and of which parts of its fields.
//! - `join` makes few large products of many small ones.
//!
//! # Note: Sound products
//! All corners of the matrices are checked to lie inside the arena when products are made. By the race rule no vertex
//! of the compute set, nor the same one through another field, touches an element of a `c`, and no two elements of a
//! `c` are one: so products may run side by side, whole or cut along `c`, on several threads.
//!
//! Invariant: every element of a `c` takes the products that its vertex gives it, in the order of k.

mod body;
mod join;

use crate::arena::{Arena, inside};
use crate::error::EngineError;
use crate::hosted::Hosted;
use crate::strides::field_strides;
use body::{Body, Part};
use girder_codegen::Isa;
use girder_codelet::facts::Facts;
use girder_codelet::sizes::Sizes;
use girder_ir::family::{Family, Field};
use girder_ir::ids::FieldId;
use girder_ir::types::ElemType;
use girder_kernels::{Level, Matrix, Product, Start, product_f32, product_f64};
use std::sync::atomic::{AtomicBool, Ordering};

/// Multiply-adds for which no thread is woken.
const WORTH_SHARING: u64 = 1 << 17;
/// Multiply-adds between two looks at the flag to stop: some tens of milliseconds.
const AT_ONCE: u64 = 1 << 31;

/// A matrix in the arena: the byte of element (0, 0), and bytes from row to row and from column to column. The stride of
/// an axis that is not longer than 1 is 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    at: i64,
    row: i64,
    col: i64,
}

/// A product of matrices in the arena.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Call {
    c: Place,
    a: Place,
    b: Place,
    m: u64,
    n: u64,
    k: u64,
    /// `f32` or `f64`.
    ty: ElemType,
    /// Bits of what every sum begins with; `None` is what `c` holds.
    start: Option<u64>,
}

/// The products of a compute set, each cut for some threads.
pub(crate) struct Products {
    parts: Vec<Vec<Call>>,
    level: Level,
    /// Bytes of the arena that they were checked for.
    reach: u64,
}

/// The vertices of a family as products, if they are no more than that.
pub(crate) fn of_family(hosted: Hosted<'_>, family: &Family, sizes: &Sizes, facts: &Facts) -> Option<Vec<Call>> {
    let codelet = &hosted.codelets[family.codelet];
    let body = Body::of(codelet, sizes, facts)?;
    let [c, a, b] = [&body.c, &body.a, &body.b].map(|part| Column::of(hosted, family, part));
    let (c, a, b) = (c?, a?, b?);
    let columns = c.values().zip(a.values()).zip(b.values());
    let (m, n, k) = (body.c.rows, body.c.cols, body.a.cols);
    let call = |((c, a), b)| Call { c, a, b, m, n, k, ty: body.ty, start: body.start };
    // Without rows or columns nothing is written.
    Some(if m == 0 || n == 0 { vec![] } else { columns.map(call).collect() })
}

/// Where a part of a field is, by instance.
struct Column<'a> {
    family: &'a Family,
    field: &'a Field,
    /// Of instance 0 if the field's first element were the first of its variable.
    first: Place,
    size: i64,
}

impl<'a> Column<'a> {
    /// `None` if the field has no stride for each axis.
    fn of(hosted: Hosted<'_>, family: &'a Family, part: &Part) -> Option<Column<'a>> {
        let of_codelet: FieldId = part.field;
        let field = family.fields.iter().find(|f| f.field == of_codelet)?;
        let size = hosted.codelets[family.codelet].fields[of_codelet].ty.bytes();
        let strides = field_strides(field, size)?;
        let var = field.parts.first().map_or(0, |p| hosted.host.offsets[p.var.as_u32() as usize] as i64);
        let at = var + part.at.iter().zip(&strides).map(|(&i, &s)| i * s).sum::<i64>();
        let along = |length: u64, (dim, step): (usize, i64)| if length > 1 { strides[dim] * step } else { 0 };
        let first = Place { at, row: along(part.rows, part.row), col: along(part.cols, part.col) };
        Some(Column { family, field, first, size: i64::from(size) })
    }

    fn values(&self) -> Box<dyn Iterator<Item = Place> + '_> {
        let place = |e: i64| Place { at: self.first.at + e * self.size, ..self.first };
        match self.field.parts.first() {
            Some(part) => Box::new(part.offset.values(&self.family.domain).map(place)),
            None => Box::new((0..self.family.domain.count()).map(move |_| place(0))),
        }
    }
}

impl Products {
    /// Joins products and cuts them for some threads; all of them must lie below `bytes`.
    pub(crate) fn new(calls: &[Call], threads: usize, bytes: u64) -> Result<Products, EngineError> {
        let joined = join::join(calls.to_vec());
        if !joined.iter().all(|call| call.is_below(bytes)) {
            return Err(EngineError::Internal("a product leaves the memory".into()));
        }
        let level = Isa::chosen().map_err(|e| EngineError::Code(e.to_string()))?.kernels();
        Ok(Products { parts: cut(&joined, threads), level, reach: bytes })
    }

    /// How many threads have something to do.
    pub(crate) fn parts(&self) -> usize {
        self.parts.len()
    }

    /// Runs a part, if there is one of this number, unless the flag to stop is seen; whether it has ended.
    pub(crate) fn run(&self, arena: &Arena, cancel: &AtomicBool, part: usize) -> bool {
        assert!(self.reach <= arena.bytes(), "a product of the engine leaves its memory");
        for call in self.parts.get(part).into_iter().flatten() {
            if cancel.load(Ordering::Relaxed) {
                return false;
            }
            let product = call.product(arena.base());
            // SAFETY: see the note on sound products; the level is one of this machine.
            unsafe {
                match call.ty {
                    ElemType::F64 => product_f64(self.level, &product, call.start(f64::from_bits)),
                    _ => product_f32(self.level, &product, call.start(|bits| f32::from_bits(bits as u32))),
                }
            }
        }
        true
    }
}

impl Call {
    fn start<F>(&self, number: impl Fn(u64) -> F) -> Start<F> {
        self.start.map_or(Start::Old, |bits| Start::Value(number(bits)))
    }

    fn work(&self) -> u64 {
        self.m.saturating_mul(self.n).saturating_mul(self.k.max(1))
    }

    /// In memory that begins at an address.
    fn product(&self, base: *mut u8) -> Product {
        let matrix = |p: Place| Matrix { at: base.wrapping_offset(p.at as isize), row: p.row, col: p.col };
        Product { c: matrix(self.c), a: matrix(self.a), b: matrix(self.b), m: self.m, n: self.n, k: self.k }
    }

    fn is_below(&self, bytes: u64) -> bool {
        let size = u64::from(self.ty.bytes());
        let below = |p: Place, rows: u64, cols: u64| {
            let corner = |at: i64| u64::try_from(at).is_ok_and(|at| inside(at, p.col, size, cols, bytes));
            let last = (rows as i128 - 1) * i128::from(p.row) + i128::from(p.at);
            rows == 0 || cols == 0 || corner(p.at) && i64::try_from(last).is_ok_and(corner)
        };
        below(self.c, self.m, self.n) && below(self.a, self.m, self.k) && below(self.b, self.k, self.n)
    }

    /// Cuts it into at most some parts.
    fn cut(&self, parts: u64) -> Vec<Call> {
        let origin = std::ptr::null_mut();
        let place = |m: Matrix, old: Place| Place { at: m.at.addr() as i64, ..old };
        let call = |p: &Product| Call {
            c: place(p.c, self.c),
            a: place(p.a, self.a),
            b: place(p.b, self.b),
            m: p.m,
            n: p.n,
            ..*self
        };
        self.product(origin).parts(parts).iter().map(call).collect()
    }
}

/// What each thread does, in pieces between which it may stop.
fn cut(calls: &[Call], threads: usize) -> Vec<Vec<Call>> {
    let pieces = |call: Call| call.cut(call.work() / AT_ONCE + 1);
    shares(calls, threads).into_iter().map(|share| share.into_iter().flat_map(pieces).collect()).collect()
}

/// A share of every product that is large for each thread, and small ones in order.
fn shares(calls: &[Call], threads: usize) -> Vec<Vec<Call>> {
    let total = calls.iter().map(Call::work).fold(0, u64::saturating_add);
    if threads < 2 || total < WORTH_SHARING {
        return vec![calls.to_vec()];
    }
    let threads = threads as u64;
    let mut parts = vec![Vec::new(); threads as usize];
    let mut before = 0u64;
    for call in calls {
        if call.work() > total / threads / 4 {
            call.cut(threads).into_iter().zip(&mut parts).for_each(|(call, part)| part.push(call));
        } else {
            let part = u128::from(before) * u128::from(threads) / u128::from(total);
            parts[part as usize].push(*call);
        }
        before += call.work();
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(m: u64, n: u64, k: u64) -> Call {
        let place = |row: u64| Place { at: 64, row: 4 * row as i64, col: 4 };
        Call { c: place(n), a: place(k), b: place(n), m, n, k, ty: ElemType::F32, start: None }
    }

    #[test]
    fn a_product_that_leaves_the_memory_is_refused() {
        let fits = |c: &Call, bytes| c.is_below(bytes);
        assert!(fits(&call(4, 4, 4), 128) && !fits(&call(4, 4, 4), 127));
        let back = Call { a: Place { at: 64, row: -32, col: 4 }, ..call(4, 4, 4) };
        assert!(!fits(&back, 1024) && fits(&Call { m: 3, ..back }, 1024));
        assert!(fits(&Call { k: 0, ..back }, 1024));
    }

    #[test]
    fn threads_share_large_products_and_small_ones() {
        let rows = |parts: &[Vec<Call>]| parts.iter().map(|p| p.iter().map(Call::work).sum()).collect::<Vec<u64>>();
        let large = cut(&[call(256, 256, 256)], 2);
        assert_eq!(rows(&large), [1 << 23, 1 << 23]);
        assert_eq!(large[1][0].b.at, 64 + 128 * 4);
        assert_eq!(rows(&cut(&[call(16, 16, 16); 100], 2)), [50 << 12, 50 << 12]);
        assert_eq!(rows(&cut(&[call(16, 16, 16); 2], 2)), [2 << 12]);
    }
}
