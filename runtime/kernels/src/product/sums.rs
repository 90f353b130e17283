//! The sums of a tile of `c` in vector registers: how a block of them starts, takes terms, and is stored.
//!
//! Invariant: the last vector of a row of `c` is loaded and stored under a mask, so that no column beyond the last is
//! touched.

use super::Start;
use super::vector::{Float, Vector};

/// The sums of `M` rows of `N` vectors.
pub(super) type Sums<V, const M: usize, const N: usize> = [[V; N]; M];

/// The columns of a tile of some vectors, the last of which has at least one.
pub(super) struct Columns<V: Vector> {
    /// The lanes of the last vector.
    pub last: V::Mask,
    /// Whether these are all lanes. Masked stores are slow on some processors.
    pub is_whole: bool,
}

impl<V: Vector> Columns<V> {
    /// Returns the columns of a tile of `N` vectors.
    #[inline(always)]
    pub fn of<const N: usize>(columns: usize) -> Columns<V> {
        Columns { last: V::first(columns - (N - 1) * V::LANES), is_whole: columns == N * V::LANES }
    }

    /// Loads vector n of `N` of a row.
    ///
    /// # Safety
    /// The row has the columns; the machine has the instructions of `V`.
    #[inline(always)]
    unsafe fn load<const N: usize>(&self, at: *mut V::Float, n: usize) -> V {
        // SAFETY: the caller's promise; `last` selects the columns of the last vector.
        unsafe {
            match n == N - 1 && !self.is_whole {
                true => V::load_some(at, self.last),
                false => V::load(at),
            }
        }
    }
}

/// Returns the sums before the first term of a block. `at` is the address of a vector of a row of `c`.
///
/// # Safety
/// `c` has the rows and columns; the machine has the instructions of `V`.
#[expect(clippy::needless_range_loop, reason = "registers are named by row and vector, as in the formula")]
#[inline(always)]
pub(super) unsafe fn begin<V: Vector, const M: usize, const N: usize>(
    at: impl Fn(usize, usize) -> *mut V::Float,
    columns: &Columns<V>,
    start: Start<V::Float>,
) -> Sums<V, M, N> {
    let first = if let Start::Value(value) = start { value } else { V::Float::ZERO };
    // SAFETY: the caller's promise.
    unsafe {
        let mut sums = [[V::splat(first); N]; M];
        if let Start::Old = start {
            for i in 0..M {
                for n in 0..N {
                    sums[i][n] = columns.load::<N>(at(i, n), n);
                }
            }
        }
        sums
    }
}

/// Adds a term: `a` is the address of a row's element, `row` that of the row of `b`. The row has all lanes if it is
/// `WHOLE`, otherwise those of `last` in the last vector.
///
/// # Safety
/// The elements are inside; the machine has the instructions of `V`.
#[expect(clippy::needless_range_loop, reason = "registers are named by row and vector, as in the formula")]
#[inline(always)]
pub(super) unsafe fn term<V: Vector, const M: usize, const N: usize, const WHOLE: bool>(
    sums: &mut Sums<V, M, N>,
    a: impl Fn(usize) -> *const u8,
    row: *const u8,
    last: V::Mask,
) {
    let row = row.cast::<V::Float>();
    // SAFETY: the caller's promise.
    unsafe {
        let mut vectors = [V::splat(V::Float::ZERO); N];
        for n in 0..N - 1 {
            vectors[n] = V::load(row.wrapping_add(n * V::LANES));
        }
        let end = row.wrapping_add((N - 1) * V::LANES);
        vectors[N - 1] = if WHOLE { V::load(end) } else { V::load_some(end, last) };
        for i in 0..M {
            let x = V::splat(a(i).cast::<V::Float>().read_unaligned());
            for n in 0..N {
                sums[i][n] = sums[i][n].fma(x, vectors[n]);
            }
        }
    }
}

/// Stores the sums of a block, which are added to `c` if it began as [`Start::Added`].
///
/// # Safety
/// As [`begin`].
#[expect(clippy::needless_range_loop, reason = "registers are named by row and vector, as in the formula")]
#[inline(always)]
pub(super) unsafe fn end<V: Vector, const M: usize, const N: usize>(
    mut sums: Sums<V, M, N>,
    at: impl Fn(usize, usize) -> *mut V::Float,
    columns: &Columns<V>,
    start: Start<V::Float>,
) {
    // SAFETY: the caller's promise; `last` selects the columns of the last vector.
    unsafe {
        if let Start::Added = start {
            for i in 0..M {
                for n in 0..N {
                    sums[i][n] = columns.load::<N>(at(i, n), n).add(sums[i][n]);
                }
            }
        }
        for i in 0..M {
            for n in 0..N - 1 {
                sums[i][n].store(at(i, n));
            }
            match columns.is_whole {
                true => sums[i][N - 1].store(at(i, N - 1)),
                false => sums[i][N - 1].store_some(at(i, N - 1), columns.last),
            }
        }
    }
}
