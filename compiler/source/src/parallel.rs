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
