//! The one way to use several threads in the compiler: maps whose results come back in order, and works on items of their own.
//!
//! Invariant: the result does not depend on the number of threads; there is no shared mutation and no reduction.

use rayon::prelude::*;
use std::cmp::Reverse;

/// `f(0), f(1), … f(n - 1)`, computed on the host's threads, in order.
pub fn par_map<T: Send>(n: usize, f: impl Fn(usize) -> T + Sync + Send) -> Vec<T> {
    (0..n).into_par_iter().map(f).collect()
}

/// `f` of each item, computed on the host's threads, in order.
pub fn par_map_slice<I: Sync, T: Send>(items: &[I], f: impl Fn(&I) -> T + Sync + Send) -> Vec<T> {
    items.par_iter().map(f).collect()
}

/// `f` of each item, computed on the host's threads, in order: for a few items that take long, and not equally long. Threads take
/// them one by one, the heaviest first, so that none is left with a long one at the end.
pub fn par_map_uneven<I: Sync, T: Send>(
    items: &[I],
    weight: impl Fn(&I) -> u64,
    f: impl Fn(&I) -> T + Sync + Send,
) -> Vec<T> {
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by_cached_key(|&k| Reverse(weight(&items[k])));
    let mut found: Vec<(usize, T)> = order.into_iter().par_bridge().map(|k| (k, f(&items[k]))).collect();
    found.sort_unstable_by_key(|f| f.0);
    found.into_iter().map(|f| f.1).collect()
}

/// Calls `f` with each item, on the host's threads.
pub fn par_for_each<I: Send>(items: Vec<I>, f: impl Fn(I) + Sync + Send) {
    items.into_par_iter().for_each(f);
}
