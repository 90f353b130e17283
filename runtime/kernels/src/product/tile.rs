//! Computes a tile of `c` in vector registers, over some terms of its sums.
//!
//! Invariant: as in `sums`.

use super::Start;
use super::sums::{self, Columns, Sums};
use super::vector::Vector;

/// Up to `ROWS` rows of up to `WIDTH` vectors of `c`, whose columns are contiguous.
pub(super) struct Tile<F> {
    /// Element (0, 0) of `c`.
    pub c: *mut F,
    /// Bytes from row to row of `c`.
    pub c_row: i64,
    /// Columns of `c`; the last vector of the tile has at least one.
    pub columns: usize,
    /// Element (0, 0) of `a`.
    pub a: *const u8,
    /// Bytes from row to row of `a`.
    pub a_row: i64,
    /// Bytes from term to term in `a`.
    pub a_step: i64,
    /// Element (0, 0) of `b`, whose columns are contiguous.
    pub b: *const u8,
    /// Bytes from term to term in `b`.
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
#[inline(always)]
pub(super) unsafe fn tile<V: Vector, const M: usize, const N: usize>(t: &Tile<V::Float>) {
    let at = |i: usize, n: usize| {
        t.c.wrapping_byte_offset((i as i64).wrapping_mul(t.c_row) as isize).wrapping_add(n * V::LANES)
    };
    let columns = Columns::of::<N>(t.columns);
    let (mut a, mut b, mut left) = (t.a, t.b, t.terms);
    let mut start = t.start;
    // At least once: sums without terms are their start.
    loop {
        let terms = left.min(t.block);
        // SAFETY: rows below `M` and the columns are inside `c`; row k of `b` has the columns, or all lanes if it is
        // padded.
        unsafe {
            let mut sums = sums::begin::<V, M, N>(at, &columns, start);
            // If there are few vector registers, the loop has none left for a mask.
            if t.padded || columns.is_whole {
                take::<V, M, N, true>(t, (a, b, terms), &mut sums, columns.last);
            } else {
                take::<V, M, N, false>(t, (a, b, terms), &mut sums, columns.last);
            }
            sums::end::<V, M, N>(sums, at, &columns, start);
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

/// Adds some terms, from some addresses of `a` and `b` on; rows of `b` have all lanes if they are `WHOLE`, otherwise
/// those of `last` in the last vector.
///
/// # Safety
/// As [`tile`].
#[inline(always)]
unsafe fn take<V: Vector, const M: usize, const N: usize, const WHOLE: bool>(
    t: &Tile<V::Float>,
    (mut a, mut b, terms): (*const u8, *const u8, u64),
    sums: &mut Sums<V, M, N>,
    last: V::Mask,
) {
    for _ in 0..terms {
        let x = |i: usize| a.wrapping_offset((i as i64).wrapping_mul(t.a_row) as isize);
        // SAFETY: (i, k) is inside `a`, and row k of `b` has the columns.
        unsafe { sums::term::<V, M, N, WHOLE>(sums, x, b, last) };
        a = a.wrapping_offset(t.a_step as isize);
        b = b.wrapping_offset(t.b_step as isize);
    }
}
