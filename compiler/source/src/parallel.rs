//! Parallel maps, whose results come back in order: the compiler uses threads in no other way.
//!
//! Invariant: the result does not depend on the number of threads; there is no shared mutation and no reduction.

use rayon::prelude::*;
use std::cell::Cell;
use std::cmp::Reverse;

thread_local! {
    /// Whether this thread runs all items of its maps itself; see [`on_stack`].
    static ALONE: Cell<bool> = const { Cell::new(false) };
}

/// Runs `f` on a new thread with a stack of `bytes` bytes. Returns an error if the host cannot create the thread.
///
/// The caller waits until `f` ends. If the caller is itself a worker of a map, all other workers may be waiting in the
/// same way, and none would be left to run the items that `f` maps; so in this case `f` maps on its own thread.
pub fn on_stack<T: Send>(bytes: usize, f: impl FnOnce() -> T + Send) -> std::io::Result<T> {
    let alone = ALONE.get() || rayon::current_thread_index().is_some();
    let joined = std::thread::scope(|scope| {
        let run = || {
            ALONE.set(alone);
            f()
        };
        std::thread::Builder::new().stack_size(bytes).spawn_scoped(scope, run).map(|thread| thread.join())
    })?;
    Ok(joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
}

/// Returns whether the calling thread should run this many items alone.
fn is_own(items: usize) -> bool {
    items <= 1 || ALONE.get()
}

/// Runs `a` and `b` in parallel and returns both results.
pub fn par_both<A: Send, B: Send>(a: impl FnOnce() -> A + Send, b: impl FnOnce() -> B + Send) -> (A, B) {
    if ALONE.get() { (a(), b()) } else { rayon::join(a, b) }
}

/// Returns `f(0), f(1), … f(n - 1)` in order, computed in parallel.
pub fn par_map<T: Send>(n: usize, f: impl Fn(usize) -> T + Sync + Send) -> Vec<T> {
    if is_own(n) { (0..n).map(f).collect() } else { (0..n).into_par_iter().map(f).collect() }
}

/// Returns `f` of each item in order, computed in parallel.
pub fn par_map_slice<I: Sync, T: Send>(items: &[I], f: impl Fn(&I) -> T + Sync + Send) -> Vec<T> {
    if is_own(items.len()) { items.iter().map(f).collect() } else { items.par_iter().map(f).collect() }
}

/// Returns `f` of each item in order, computed in parallel: for few items of long and unequal duration. Threads take
/// the items one by one, the heaviest first, so that no thread begins a long one at the end.
pub fn par_map_uneven<I: Sync, T: Send>(
    items: &[I],
    weight: impl Fn(&I) -> u64,
    f: impl Fn(&I) -> T + Sync + Send,
) -> Vec<T> {
    if is_own(items.len()) {
        return items.iter().map(f).collect();
    }
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by_cached_key(|&k| Reverse(weight(&items[k])));
    let mut found: Vec<(usize, T)> = order.into_iter().par_bridge().map(|k| (k, f(&items[k]))).collect();
    found.sort_unstable_by_key(|f| f.0);
    found.into_iter().map(|f| f.1).collect()
}

/// Calls `f` with each item, in parallel.
pub fn par_for_each<I: Send>(items: Vec<I>, f: impl Fn(I) + Sync + Send) {
    if is_own(items.len()) { items.into_iter().for_each(f) } else { items.into_par_iter().for_each(f) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_that_wait_for_new_stacks_do_not_deadlock() {
        // There are more callers than threads, and each maps items on a thread for which it waits.
        let sum = |k: usize| {
            let inner = || par_map_uneven(&[1, 2, 3], |_| 1, |i| i * k) == [k, 2 * k, 3 * k];
            let nested = || on_stack(1 << 20, || par_map(4, |_| inner()).into_iter().all(|right| right));
            on_stack(1 << 20, nested).unwrap().unwrap()
        };
        assert_eq!(par_map(64, sum), [true; 64]);
        assert!(sum(7));
    }
}
