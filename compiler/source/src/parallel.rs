//! Parallel maps, whose results come back in order: the compiler uses threads in no other way.
//!
//! Invariant: the result does not depend on the number of threads; there is no shared mutation and no reduction.

use rayon::prelude::*;
use std::cell::Cell;
use std::cmp::Reverse;
use std::sync::{Mutex, PoisonError};

thread_local! {
    /// Whether this thread runs all items of its maps itself; see [`on_stack`].
    static ALONE: Cell<bool> = const { Cell::new(false) };
}

/// Runs `f` on a new thread with a stack of `bytes` bytes. Returns an error if the host cannot create the thread.
///
/// The caller waits until `f` ends. If the caller is itself a worker of a map, all other workers may be waiting in the
/// same way, and none would be left to run the items that `f` maps; so in this case `f` maps on its own thread.
pub fn on_stack<T: Send>(bytes: usize, f: impl FnOnce() -> T + Send) -> std::io::Result<T> {
    beside(bytes, f, || ()).map(|(made, ())| made)
}

/// Runs `other` on a new thread with a stack of `bytes` bytes while `own` runs on this one, and returns both results.
/// `other` maps as the function of [`on_stack`] does. Each may wait for the other.
pub fn beside<A: Send, B>(
    bytes: usize,
    other: impl FnOnce() -> A + Send,
    own: impl FnOnce() -> B,
) -> std::io::Result<(A, B)> {
    let alone = ALONE.get() || rayon::current_thread_index().is_some();
    let (joined, own) = std::thread::scope(|scope| {
        let run = || {
            ALONE.set(alone);
            other()
        };
        let thread = std::thread::Builder::new().stack_size(bytes).spawn_scoped(scope, run)?;
        let own = own();
        Ok::<_, std::io::Error>((thread.join(), own))
    })?;
    Ok((joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic)), own))
}

/// Returns whether the calling thread should run this many items alone.
fn is_own(items: usize) -> bool {
    items <= 1 || ALONE.get()
}

/// Returns `f(0), f(1), … f(n - 1)` in order, computed in parallel.
pub fn par_map<T: Send>(n: usize, f: impl Fn(usize) -> T + Sync + Send) -> Vec<T> {
    if is_own(n) {
        return (0..n).map(f).collect();
    }
    let pieces = n.min(PIECES * rayon::current_num_threads());
    let slots = Slots::new(pieces);
    let start = |piece: usize| piece * n / pieces;
    for_each_number(pieces, &|piece| slots.put(piece, (start(piece)..start(piece + 1)).map(&f).collect::<Vec<T>>()));
    let mut all = Vec::with_capacity(n);
    slots.into_values().for_each(|piece| all.extend(piece));
    all
}

/// Returns `f` of each item in order, computed in parallel.
pub fn par_map_slice<I: Sync, T: Send>(items: &[I], f: impl Fn(&I) -> T + Sync + Send) -> Vec<T> {
    par_map(items.len(), |k| f(&items[k]))
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
    let mut weights: Vec<(Reverse<u64>, usize)> = (0..).zip(items).map(|(k, i)| (Reverse(weight(i)), k)).collect();
    weights.sort_unstable();
    let slots = Slots::new(items.len());
    for_each_one_by_one(weights, &|k| slots.put(k, f(&items[k])));
    slots.into_values().collect()
}

/// Calls `f` with each item, in parallel.
pub fn par_for_each<I: Send>(items: Vec<I>, f: impl Fn(I) + Sync + Send) {
    if is_own(items.len()) {
        return items.into_iter().for_each(f);
    }
    let slots = Slots(items.into_iter().map(|item| Mutex::new(Some(item))).collect());
    for_each_number(slots.0.len(), &|k| slots.take(k).into_iter().for_each(&f));
}

/// The number of pieces of a map for each thread: threads that are done take pieces of others.
const PIECES: usize = 64;

/// Values that threads put or take, each once.
struct Slots<T>(Vec<Mutex<Option<T>>>);

impl<T> Slots<T> {
    fn new(count: usize) -> Slots<T> {
        Slots((0..count).map(|_| Mutex::new(None)).collect())
    }

    fn put(&self, k: usize, value: T) {
        *self.0[k].lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
    }

    fn take(&self, k: usize) -> Option<T> {
        self.0[k].lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn into_values(self) -> impl Iterator<Item = T> {
        self.0.into_iter().filter_map(|slot| slot.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Calls `f` with each number below `n`, in parallel. Like the function below, it is compiled once for all maps.
fn for_each_number(n: usize, f: &(dyn Fn(usize) + Sync)) {
    (0..n).into_par_iter().for_each(f);
}

/// Calls `f` with each number, in parallel; threads take them one by one in this order.
fn for_each_one_by_one(numbers: Vec<(Reverse<u64>, usize)>, f: &(dyn Fn(usize) + Sync)) {
    numbers.into_iter().par_bridge().for_each(|(_, k)| f(k));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order_whatever_the_weights() {
        let items: Vec<usize> = (0..1000).collect();
        assert_eq!(par_map(1000, |k| k), items);
        assert_eq!(par_map_slice(&items, |k| k + 1), (1..1001).collect::<Vec<_>>());
        assert_eq!(par_map_uneven(&items, |k| (k % 7) as u64, |k| k + 2), (2..1002).collect::<Vec<_>>());
        let mut taken = vec![0; 1000];
        par_for_each(taken.iter_mut().enumerate().collect(), |(k, slot)| *slot = k);
        assert_eq!(taken, items);
    }

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
