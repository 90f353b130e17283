//! Matrix products of mode `fast`: native products, cut for threads.
//!
//! # Note: Sound products
//! All corners of the matrices are checked to be inside the arena when products are made. By the race rule no other
//! vertex of the compute set, nor the same one through another field, touches an element of a `c`, and no two elements
//! of a `c` share memory. So products may run at the same time on several threads, whole or cut along `c`.
//!
//! Invariant: every element of a `c` takes its terms in the order of k and in the same blocks, whatever the cuts.

use crate::arena::{Arena, inside};
use crate::error::EngineError;
use crate::natives::level;
use girder_host::{MatrixLayout, MatrixProduct, ProductStart};
use girder_ir::types::ElemType;
use girder_kernels::{Level, Matrix, Product, Start, product_f32, product_f64};
use std::sync::atomic::{AtomicBool, Ordering};

/// Multiply-adds below which a single thread computes the product.
const WORTH_SHARING: u64 = 1 << 17;
/// Multiply-adds between two polls of the stop flag: some tens of milliseconds.
const PER_POLL: u64 = 1 << 31;

/// The products of a compute set, cut for threads.
pub(crate) struct Products {
    /// The products of each thread, in pieces between which it may stop.
    parts: Vec<Vec<MatrixProduct>>,
    level: Level,
    /// Bytes of the arena for which they were checked.
    reach: u64,
}

impl Products {
    /// Cuts products for some threads; all matrices must be below `bytes`.
    pub(crate) fn new(products: &[MatrixProduct], threads: usize, bytes: u64) -> Result<Products, EngineError> {
        if !products.iter().all(|product| is_below(product, bytes)) {
            return Err(EngineError::Internal("a product leaves the memory".into()));
        }
        let chosen = girder_codegen::Level::chosen().map_err(|e| EngineError::Code(e.to_string()))?;
        Ok(Products { parts: cut(products, threads), level: level(chosen), reach: bytes })
    }

    /// Returns the number of threads that have work.
    pub(crate) fn parts(&self) -> usize {
        self.parts.len()
    }

    /// Runs a part, if there is one of this number, unless the stop flag is set; returns whether it has ended.
    pub(crate) fn run(&self, arena: &Arena, cancel: &AtomicBool, part: usize) -> bool {
        assert!(self.reach <= arena.bytes(), "a product of the engine leaves its memory");
        for planned in self.parts.get(part).into_iter().flatten() {
            if cancel.load(Ordering::Relaxed) {
                return false;
            }
            let product = at_base(planned, arena.base());
            // SAFETY: see the note on sound products; the level is one of this machine.
            unsafe {
                match planned.ty {
                    ElemType::F64 => product_f64(self.level, &product, start(planned, f64::from_bits)),
                    _ => product_f32(self.level, &product, start(planned, |bits| f32::from_bits(bits as u32))),
                }
            }
        }
        true
    }
}

fn start<F>(product: &MatrixProduct, number: impl Fn(u64) -> F) -> Start<F> {
    match product.start {
        ProductStart::Old => Start::Old,
        ProductStart::Number(bits) => Start::Value(number(bits)),
        ProductStart::Added => Start::Added,
    }
}

/// Counts the multiply-adds of a product.
fn work(product: &MatrixProduct) -> u64 {
    product.m.saturating_mul(product.n).saturating_mul(product.k.max(1))
}

/// Returns a product in memory that begins at an address.
fn at_base(product: &MatrixProduct, base: *mut u8) -> Product {
    let matrix = |m: MatrixLayout| Matrix { at: base.wrapping_offset(m.at as isize), row: m.row, col: m.col };
    let [c, a, b] = [product.c, product.a, product.b].map(matrix);
    Product { c, a, b, m: product.m, n: product.n, k: product.k, block: product.block }
}

/// Returns whether all elements of the three matrices lie below a byte.
fn is_below(product: &MatrixProduct, bytes: u64) -> bool {
    let size = u64::from(product.ty.bytes());
    let below = |m: MatrixLayout, rows: u64, cols: u64| {
        let corner = |at: i64| u64::try_from(at).is_ok_and(|at| inside(at, m.col, size, cols, bytes));
        let last = (rows as i128 - 1) * i128::from(m.row) + i128::from(m.at);
        rows == 0 || cols == 0 || corner(m.at) && i64::try_from(last).is_ok_and(corner)
    };
    let (m, n, k) = (product.m, product.n, product.k);
    below(product.c, m, n) && below(product.a, m, k) && below(product.b, k, n)
}

/// Cuts a product into at most `parts` parts.
fn parts(product: &MatrixProduct, parts: u64) -> Vec<MatrixProduct> {
    let layout = |m: Matrix, old: MatrixLayout| MatrixLayout { at: m.at.addr() as i64, ..old };
    let planned = |p: &Product| MatrixProduct {
        c: layout(p.c, product.c),
        a: layout(p.a, product.a),
        b: layout(p.b, product.b),
        m: p.m,
        n: p.n,
        k: p.k,
        ..*product
    };
    at_base(product, std::ptr::null_mut()).parts(parts).iter().map(planned).collect()
}

/// Cuts products for threads, and the share of each thread into pieces between which it may stop.
fn cut(products: &[MatrixProduct], threads: usize) -> Vec<Vec<MatrixProduct>> {
    let pieces = |product: MatrixProduct| parts(&product, work(&product) / PER_POLL + 1);
    shares(products, threads).into_iter().map(|share| share.into_iter().flat_map(pieces).collect()).collect()
}

/// Cuts every large product for all threads, and gives each thread a range of the small ones.
fn shares(products: &[MatrixProduct], threads: usize) -> Vec<Vec<MatrixProduct>> {
    let total = products.iter().map(work).fold(0, u64::saturating_add);
    if threads < 2 || total < WORTH_SHARING {
        return vec![products.to_vec()];
    }
    let threads = threads as u64;
    let mut shares = vec![Vec::new(); threads as usize];
    let mut before = 0u64;
    for product in products {
        if work(product) > total / threads / 4 {
            parts(product, threads).into_iter().zip(&mut shares).for_each(|(part, share)| share.push(part));
        } else {
            let share = u128::from(before) * u128::from(threads) / u128::from(total);
            shares[share as usize].push(*product);
        }
        before += work(product);
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    fn product(m: u64, n: u64, k: u64) -> MatrixProduct {
        let matrix = |row: u64| MatrixLayout { at: 64, row: 4 * row as i64, col: 4 };
        MatrixProduct {
            c: matrix(n),
            a: matrix(k),
            b: matrix(n),
            m,
            n,
            k,
            ty: ElemType::F32,
            start: ProductStart::Old,
            block: u64::MAX,
        }
    }

    #[test]
    fn a_product_that_leaves_the_memory_is_refused() {
        assert!(is_below(&product(4, 4, 4), 128) && !is_below(&product(4, 4, 4), 127));
        let back = MatrixProduct { a: MatrixLayout { at: 64, row: -32, col: 4 }, ..product(4, 4, 4) };
        assert!(!is_below(&back, 1024) && is_below(&MatrixProduct { m: 3, ..back }, 1024));
        assert!(is_below(&MatrixProduct { k: 0, ..back }, 1024));
    }

    #[test]
    fn threads_share_large_products_and_small_ones() {
        let shares =
            |parts: &[Vec<MatrixProduct>]| -> Vec<u64> { parts.iter().map(|p| p.iter().map(work).sum()).collect() };
        let large = cut(&[product(256, 256, 256)], 2);
        assert_eq!(shares(&large), [1 << 23, 1 << 23]);
        assert_eq!(large[1][0].b.at, 64 + 128 * 4);
        assert_eq!(shares(&cut(&[product(16, 16, 16); 100], 2)), [50 << 12, 50 << 12]);
        assert_eq!(shares(&cut(&[product(16, 16, 16); 2], 2)), [2 << 12]);
    }
}
