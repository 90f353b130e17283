//! The one way to use several threads in the compiler: a map whose results come back in order.
//!
//! Invariant: the result does not depend on the number of threads; there is no shared mutation and no reduction.

use rayon::prelude::*;

/// `f(0), f(1), … f(n - 1)`, computed on the host's threads, in order.
pub fn par_map<T: Send>(n: usize, f: impl Fn(usize) -> T + Sync + Send) -> Vec<T> {
    (0..n).into_par_iter().map(f).collect()
}

/// `f` of each item, computed on the host's threads, in order.
pub fn par_map_slice<I: Sync, T: Send>(items: &[I], f: impl Fn(&I) -> T + Sync + Send) -> Vec<T> {
    items.par_iter().map(f).collect()
}

/// Sorts by a key in which only equal items agree, so that their order cannot matter, on the host's threads.
pub fn par_sort_by_total_key<T: Send, K: Ord>(items: &mut [T], key: impl Fn(&T) -> K + Sync) {
    items.par_sort_unstable_by_key(key);
}
