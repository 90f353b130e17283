//! Products with few rows: `b` is read once, in the order of memory, and `c` stays in the first-level cache.
//!
//! Invariant: as in `tile`.

use super::vector::{Float, Vector};
use super::{Matrix, Product, Start};
use std::mem::MaybeUninit;

/// Maximal number of rows.
pub(super) const ROWS: u64 = 4;
/// Terms taken at a time.
const TERMS: usize = 4;
/// Bytes of a row of `c` that are computed before the next ones, so that all rows of them stay in the first-level
/// cache.
const SPAN: u64 = 4096;

/// A product of `M` rows.
pub(super) type FlatFn<F> = unsafe fn(&Product, Start<F>);

/// Computes a product whose `c` and `b` have contiguous rows.
///
/// # Safety
/// The call satisfies the note on sound access and has `M` rows; the machine has the instructions of `V`.
#[inline(always)]
pub(super) unsafe fn flat<V: Vector, const M: usize>(call: &Product, start: Start<V::Float>) {
    let span = SPAN / size_of::<V::Float>() as u64;
    let mut j = 0;
    while j < call.n {
        let columns = (call.n - j).min(span) as usize;
        // SAFETY: these are columns of the call, from column j on.
        unsafe { chunk::<V, M>(&Product { c: call.c.from(0, j), b: call.b.from(0, j), ..*call }, columns, start) };
        j += columns as u64;
    }
}

/// Computes some columns, whose rows fit into the first-level cache.
///
/// # Safety
/// As [`flat`]; a row has at most `SPAN` bytes.
#[inline(always)]
unsafe fn chunk<V: Vector, const M: usize>(call: &Product, columns: usize, start: Start<V::Float>) {
    let mut scratch = [[const { MaybeUninit::<u8>::uninit() }; SPAN as usize]; M];
    let sums = Matrix { at: scratch.as_mut_ptr().cast(), row: SPAN as i64, col: call.c.col };
    let (mut k, mut start) = (0u64, start);
    // At least once: sums without terms are their start.
    loop {
        let end = call.k.min(k.saturating_add(call.block));
        // SAFETY: terms k..end of the call; the scratch has room for the columns.
        unsafe {
            let to = match start {
                Start::Old => call.c,
                Start::Value(value) => {
                    fill::<V, M>(call.c, columns, value);
                    call.c
                }
                Start::Added => {
                    fill::<V, M>(sums, columns, V::Float::ZERO);
                    sums
                }
            };
            while k + TERMS as u64 <= end {
                terms::<V, M, TERMS>(to, call.a.from(0, k), call.b.from(k, 0), columns);
                k += TERMS as u64;
            }
            while k < end {
                terms::<V, M, 1>(to, call.a.from(0, k), call.b.from(k, 0), columns);
                k += 1;
            }
            if let Start::Added = start {
                add::<V, M>(call.c, sums, columns);
            }
        }
        if k == call.k {
            break;
        }
        start = Start::Added;
    }
}

/// # Safety
/// Both matrices have `M` rows and the columns.
#[inline(always)]
unsafe fn add<V: Vector, const M: usize>(c: Matrix, sums: Matrix, columns: usize) {
    for i in 0..M {
        let (to, from) = (c.element(i as u64, 0).cast::<V::Float>(), sums.element(i as u64, 0).cast::<V::Float>());
        let whole = columns / V::LANES * V::LANES;
        // SAFETY: the vectors are inside, and the mask selects the columns after them.
        unsafe {
            for j in (0..whole).step_by(V::LANES) {
                V::load(to.wrapping_add(j)).add(V::load(from.wrapping_add(j))).store(to.wrapping_add(j));
            }
            if whole < columns {
                let (to, from, mask) = (to.wrapping_add(whole), from.wrapping_add(whole), V::first(columns - whole));
                V::load_some(to, mask).add(V::load_some(from, mask)).store_some(to, mask);
            }
        }
    }
}

/// # Safety
/// `c` has the rows and columns.
#[inline(always)]
unsafe fn fill<V: Vector, const M: usize>(c: Matrix, columns: usize, value: V::Float) {
    for i in 0..M {
        let row = c.element(i as u64, 0).cast::<V::Float>();
        for j in 0..columns {
            // SAFETY: i < M and j < columns are inside.
            unsafe { row.wrapping_add(j).write_unaligned(value) };
        }
    }
}

/// Adds `K` terms to every element.
///
/// # Safety
/// The matrices have `M` rows, `K` terms and the columns.
#[expect(clippy::needless_range_loop, reason = "registers are named by row and vector, as in the formula")]
#[inline(always)]
unsafe fn terms<V: Vector, const M: usize, const K: usize>(c: Matrix, a: Matrix, b: Matrix, columns: usize) {
    // SAFETY: all indices are below what the matrices have; the mask of the last vector selects the columns.
    unsafe {
        let mut factors = [[V::splat(V::Float::ZERO); K]; M];
        for i in 0..M {
            for k in 0..K {
                factors[i][k] = V::splat(a.element(i as u64, k as u64).cast::<V::Float>().read_unaligned());
            }
        }
        let mut j = 0;
        while j + V::LANES <= columns {
            vector::<V, M, K, true>((c, b, j), &factors, V::first(V::LANES));
            j += V::LANES;
        }
        if j < columns {
            vector::<V, M, K, false>((c, b, j), &factors, V::first(columns - j));
        }
    }
}

/// Adds `K` terms to the elements of one vector in each row, from a column on: all lanes if `WHOLE`, otherwise those of
/// a mask. Masked stores are slow on some processors.
///
/// # Safety
/// As [`terms`].
#[expect(clippy::needless_range_loop, reason = "registers are named by row and vector, as in the formula")]
#[inline(always)]
unsafe fn vector<V: Vector, const M: usize, const K: usize, const WHOLE: bool>(
    (c, b, j): (Matrix, Matrix, usize),
    factors: &[[V; K]; M],
    mask: V::Mask,
) {
    let at = |m: Matrix, row: usize| m.element(row as u64, 0).cast::<V::Float>().wrapping_add(j);
    // SAFETY: all lanes, or those of the mask, are inside.
    unsafe {
        let load = |at: *mut V::Float| if WHOLE { V::load(at) } else { V::load_some(at, mask) };
        let mut sums = [V::splat(V::Float::ZERO); M];
        for i in 0..M {
            sums[i] = load(at(c, i));
        }
        for k in 0..K {
            let row = load(at(b, k));
            for i in 0..M {
                sums[i] = sums[i].fma(factors[i][k], row);
            }
        }
        for i in 0..M {
            match WHOLE {
                true => sums[i].store(at(c, i)),
                false => sums[i].store_some(at(c, i), mask),
            }
        }
    }
}
