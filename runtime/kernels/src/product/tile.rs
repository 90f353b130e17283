//! Computes a tile of `c` in vector registers, over some terms of its sums.
//!
//! Invariant: the last vector of a row of `c` is loaded and stored under a mask, so that no column beyond the last is
//! touched.

use super::Start;
use super::vector::{Float, Vector};

/// Up to `ROWS` rows of up to `WIDTH` vectors of `c`, whose columns are contiguous.
pub(super) struct Tile<F> {
    /// Element (0, 0) and bytes from row to row.
    pub c: *mut F,
    /// Bytes from row to row of `c`.
    pub c_row: i64,
    /// Columns of `c`; the last vector of the tile has at least one.
    pub columns: usize,
    /// Element (0, 0).
    pub a: *const u8,
    /// Bytes from row to row.
    pub a_row: i64,
    /// Bytes from term to term.
    pub a_step: i64,
    /// Element (0, 0); columns are contiguous.
    pub b: *const u8,
    /// Bytes from term to term.
    pub b_step: i64,
    /// Whether rows of `b` have all lanes of the tile's vectors, not only the columns.
    pub padded: bool,
    /// Terms.
    pub terms: u64,
    /// Terms of a block of the sums.
    pub block: u64,
    /// The initial value of the sums of the first block.
    pub start: Start<F>,
}

/// The function for tiles of certain rows and vectors.
pub(super) type TileFn<F> = unsafe fn(&Tile<F>);

/// Computes a tile of `M` rows of `N` vectors.
///
/// # Safety
/// `c`, `a` and `b` have `M` rows, the columns and the terms; the machine has the instructions of `V`.
#[expect(clippy::needless_range_loop, reason = "registers are named by row and vector, as in the formula")]
#[inline(always)]
pub(super) unsafe fn tile<V: Vector, const M: usize, const N: usize>(t: &Tile<V::Float>) {
    let at = |i: usize, n: usize| {
        t.c.wrapping_byte_offset((i as i64).wrapping_mul(t.c_row) as isize).wrapping_add(n * V::LANES)
    };
    // SAFETY: rows below `M` and columns below `columns` are inside `c`, and `last` selects the columns of the last
    // vector; row k of `b` has the columns, or all lanes if it is padded.
    unsafe {
        let last = V::first(t.columns - (N - 1) * V::LANES);
        // Masked stores are slow on some processors.
        let is_whole = t.columns == N * V::LANES;
        let load = |i: usize, n: usize| match n == N - 1 && !is_whole {
            true => V::load_some(at(i, n), last),
            false => V::load(at(i, n)),
        };
        let (mut a, mut b, mut left) = (t.a, t.b, t.terms);
        let mut start = t.start;
        // At least once: sums without terms are their start.
        loop {
            let terms = left.min(t.block);
            let first = if let Start::Value(value) = start { value } else { V::Float::ZERO };
            let mut sums = [[V::splat(first); N]; M];
            if let Start::Old = start {
                for i in 0..M {
                    for n in 0..N {
                        sums[i][n] = load(i, n);
                    }
                }
            }
            // If there are few vector registers, the loop has none left for a mask.
            if t.padded || is_whole {
                take::<V, M, N, true>(t, (a, b, terms), &mut sums, last);
            } else {
                take::<V, M, N, false>(t, (a, b, terms), &mut sums, last);
            }
            if let Start::Added = start {
                for i in 0..M {
                    for n in 0..N {
                        sums[i][n] = load(i, n).add(sums[i][n]);
                    }
                }
            }
            for i in 0..M {
                for n in 0..N - 1 {
                    sums[i][n].store(at(i, n));
                }
                match is_whole {
                    true => sums[i][N - 1].store(at(i, N - 1)),
                    false => sums[i][N - 1].store_some(at(i, N - 1), last),
                }
            }
            left -= terms;
            if left == 0 {
                break;
            }
            a = a.wrapping_offset((t.a_step.wrapping_mul(terms as i64)) as isize);
            b = b.wrapping_offset((t.b_step.wrapping_mul(terms as i64)) as isize);
            start = Start::Added;
        }
    }
}

/// Adds some terms, from some addresses of `a` and `b` on; rows of `b` have all lanes if they are `WHOLE`, otherwise
/// those of `last` in the last vector.
///
/// # Safety
/// As [`tile`].
#[expect(clippy::needless_range_loop, reason = "registers are named by row and vector, as in the formula")]
#[inline(always)]
unsafe fn take<V: Vector, const M: usize, const N: usize, const WHOLE: bool>(
    t: &Tile<V::Float>,
    (mut a, mut b, terms): (*const u8, *const u8, u64),
    sums: &mut [[V; N]; M],
    last: V::Mask,
) {
    for _ in 0..terms {
        let row = b.cast::<V::Float>();
        // SAFETY: (i, k) is inside `a`, and row k of `b` has the columns.
        unsafe {
            let mut vectors = [V::splat(V::Float::ZERO); N];
            for n in 0..N - 1 {
                vectors[n] = V::load(row.wrapping_add(n * V::LANES));
            }
            let end = row.wrapping_add((N - 1) * V::LANES);
            vectors[N - 1] = if WHOLE { V::load(end) } else { V::load_some(end, last) };
            for i in 0..M {
                let x = a.wrapping_offset((i as i64).wrapping_mul(t.a_row) as isize).cast::<V::Float>();
                let x = V::splat(x.read_unaligned());
                for n in 0..N {
                    sums[i][n] = sums[i][n].fma(x, vectors[n]);
                }
            }
        }
        a = a.wrapping_offset(t.a_step as isize);
        b = b.wrapping_offset(t.b_step as isize);
    }
}
