//! Chooses the blocking of a product for registers and caches.
//!
//! Only speed depends on these choices. The numbers were measured against other choices, by processor time, on
//! Zen 4 (32 KiB and 1 MiB of cache for each core) and Zen 3 (32 KiB and 512 KiB).
//!
//! Invariant: a plan depends on sizes and strides alone.

use super::Product;
use super::vector::Vector;
use std::ops::Range;

/// Bytes of a row of `a` that are taken at a time.
const TERM_BYTES: u64 = 2048;
/// As [`TERM_BYTES`], if few rows share a packed panel: it stays in the first-level cache from packing to use.
const SHORT_TERM_BYTES: u64 = 512;
/// Bytes of a row of `b` that are packed at a time.
const COLUMN_BYTES: u64 = 4096;
/// Rows of `a` that are packed at a time.
const PACKED_ROWS: u64 = 128;
/// With fewer rows, a contiguous `b` is not packed.
const ROWS_WORTH_PACKING: u64 = 48;
/// A `b` of fewer bytes is not packed.
const BYTES_WORTH_PACKING: u64 = 128 << 10;
/// Cost of packing an element of a transposed panel, in `fma`s.
const TRANSPOSE: u64 = 4;
/// Cost of an element of a strided `c`, in vector `fma`s.
const SCATTERED: u64 = 2;

/// The blocking of a product whose `c` has contiguous rows, or none.
pub(super) struct Plan {
    /// Terms of a block in the cache.
    pub terms: u64,
    /// Rows of a block.
    pub rows: u64,
    /// Vectors of the columns of a block.
    pub vectors: u64,
    /// Whether blocks of `a` are packed.
    pub pack_a: bool,
    /// Whether blocks of `b` are packed.
    pub pack_b: bool,
}

impl Plan {
    /// Plans a product; `whole` asks for whole blocks of the sums.
    pub(super) fn of<V: Vector>(call: &Product, whole: bool) -> Plan {
        let (element, lanes) = (size_of::<V::Float>() as u64, V::LANES as u64);
        let vectors = call.n.div_ceil(lanes);
        let contiguous = call.b.col == element as i64;
        let large = call.k.saturating_mul(call.b.row.unsigned_abs()) >= BYTES_WORTH_PACKING;
        let pack_b = !contiguous || (call.m >= ROWS_WORTH_PACKING && large);
        let pack_a = call.a.col != element as i64 && vectors > 2 * V::WIDTH as u64;
        let few = pack_b && call.m <= 2 * V::ROWS as u64;
        let most = if few { SHORT_TERM_BYTES } else { TERM_BYTES } / element;
        let terms = if whole { most.next_multiple_of(call.block.min(call.k.max(1))) } else { most };
        // A block of many terms leaves room for fewer columns and rows.
        let room = |length: u64, least: u64| (length * most / terms).max(least);
        Plan {
            terms: terms.min(call.k.max(1)),
            rows: if pack_a { room(PACKED_ROWS, lanes).min(call.m.next_multiple_of(lanes)) } else { call.m },
            vectors: vectors.min(if few {
                V::WIDTH as u64
            } else {
                room(COLUMN_BYTES / element / lanes, V::WIDTH as u64)
            }),
            pack_a,
            pack_b,
        }
    }

    /// Elements of packed blocks: of `b`, then of `a`.
    pub(super) fn packed<V: Vector>(&self) -> (usize, usize) {
        let b = if self.pack_b { self.vectors * V::LANES as u64 * self.terms } else { 0 };
        let a = if self.pack_a { self.rows.next_multiple_of(V::LANES as u64) * self.terms } else { 0 };
        (b as usize, a as usize)
    }
}

/// Returns whether `cᵀ = bᵀ aᵀ` takes fewer steps.
pub(super) fn is_better_transposed<V: Vector>(call: &Product) -> bool {
    let element = size_of::<V::Float>() as i64;
    let steps = |p: &Product| {
        let vectors = p.n.div_ceil(V::LANES as u64);
        let transposed = if p.b.col == element { 0 } else { TRANSPOSE };
        let scattered = if p.c.col == element { 0 } else { SCATTERED.saturating_mul(p.m).saturating_mul(p.n) };
        (p.m + transposed).saturating_mul(vectors).saturating_mul(p.k).saturating_add(scattered)
    };
    steps(&call.transposed()) < steps(call)
}

/// Returns the p-th of `parts` parts of `0..n`, whose lengths differ by at most one.
pub(super) fn share(n: u64, parts: u64, p: u64) -> Range<u64> {
    let at = |p: u64| (n as u128 * p as u128 / parts as u128) as u64;
    at(p)..at(p + 1)
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn shares_follow_one_another_and_are_even() {
        for (n, parts) in [(10, 3), (64, 22), (5, 5), (u64::MAX, 7)] {
            let mut end = 0;
            for p in 0..parts {
                let part = share(n, parts, p);
                assert_eq!(part.start, end);
                assert!((n / parts..=n / parts + 1).contains(&(part.end - part.start)));
                end = part.end;
            }
            assert_eq!(end, n);
        }
    }
}
