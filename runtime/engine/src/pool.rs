//! Threads that live as long as an engine and share its work, task by task.
//!
//! # Note: Claims
//! A task is published by a new epoch, and part k belongs to thread k. A thread's part is run by whoever first raises
//! the thread's claim from the previous epoch to this one: the thread itself, or the caller after its own part. So a
//! thread that sleeps or waits for a processor delays nobody. [`Pool::run`] returns only when every claim has reached
//! the epoch. A late thread therefore finds its claim taken, and a thread that takes its claim knows that the epoch,
//! and with it the task, is still the same.
//!
//! Waiting threads spin for some microseconds, because the next task usually follows soon, and then sleep. A thread
//! that wakes on the processor of the caller moves to another one ([`processor`]).
//!
//! Invariant: between two calls of [`Pool::run`] no thread but the caller touches the work. When `run` returns, the
//! task has ended on all threads and its effects are visible to the caller.

use crate::processor;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::JoinHandle;

/// Numbered tasks, each cut into parts that may run at the same time.
pub(crate) trait Work: Send + Sync + 'static {
    /// Returns the number of parts of a task, at least 1. Parts beyond the number of threads run on the caller.
    fn parts(&self, task: usize) -> usize;

    /// Runs one part.
    fn run(&self, task: usize, part: usize);
}

/// Polls of a thread without work before it sleeps.
const POLLS_IDLE: u32 = 4000;
/// Polls of the caller for the end of a part before it yields.
const POLLS_WAITING: u32 = 400;

/// The work and the threads that share it. The calling thread is one of them and owns part 0.
pub(crate) struct Pool<W: Work> {
    shared: Arc<Shared<W>>,
    /// The threads; the k-th owns slot k and part k + 1.
    threads: Vec<JoinHandle<()>>,
    epoch: u64,
}

struct Shared<W> {
    work: W,
    /// The task of the epoch.
    task: AtomicUsize,
    /// The epoch of the last published task; 0 if there is none.
    epoch: AtomicU64,
    /// The processor of the caller when it last woke a thread.
    caller: AtomicUsize,
    stop: AtomicBool,
    /// One slot per thread other than the caller.
    slots: Vec<Slot>,
}

/// The state that one thread shares with the caller, in a cache line of its own.
#[repr(align(128))]
#[derive(Default)]
struct Slot {
    /// The last epoch whose part is taken, or in which this thread has no part.
    claim: AtomicU64,
    /// The last epoch whose part this thread has ended.
    done: AtomicU64,
    /// Whether the thread sleeps or is about to.
    asleep: AtomicBool,
    /// Whether the thread has panicked.
    broken: AtomicBool,
}

impl Slot {
    /// Takes the part of an epoch; returns whether it was free.
    fn take(&self, epoch: u64) -> bool {
        self.claim.compare_exchange(epoch - 1, epoch, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}

impl<W: Work> Pool<W> {
    /// Starts `threads - 1` threads; if the host refuses some, the caller runs their parts.
    pub(crate) fn new(work: W, threads: usize) -> Pool<W> {
        let slots = (1..threads.max(1)).map(|_| Slot::default()).collect();
        let (task, epoch, stop) = (AtomicUsize::new(0), AtomicU64::new(0), AtomicBool::new(false));
        let shared = Arc::new(Shared { work, task, epoch, caller: AtomicUsize::new(usize::MAX), stop, slots });
        let start = |index: usize| {
            let shared = shared.clone();
            let name = format!("girder-{}", index + 1);
            std::thread::Builder::new().name(name).spawn(move || shared.serve(index)).ok()
        };
        let threads = (0..shared.slots.len()).map_while(start).collect();
        Pool { shared, threads, epoch: 0 }
    }

    /// Returns the work.
    pub(crate) fn work(&self) -> &W {
        &self.shared.work
    }

    /// Runs all parts of a task and returns when they have ended.
    pub(crate) fn run(&mut self, task: usize) {
        let parts = self.shared.work.parts(task);
        if parts == 1 {
            return self.shared.work.run(task, 0);
        }
        self.publish(task, parts - 1);
        self.shared.work.run(task, 0);
        for part in 1..parts {
            match self.shared.slots.get(part - 1) {
                Some(slot) if !slot.take(self.epoch) => self.wait(slot),
                _ => self.shared.work.run(task, part),
            }
        }
    }

    /// Opens a new epoch in which the first `owners` threads have a part.
    fn publish(&mut self, task: usize, owners: usize) {
        self.epoch += 1;
        for slot in self.shared.slots.iter().skip(owners) {
            slot.claim.store(self.epoch, Ordering::Release);
        }
        self.shared.task.store(task, Ordering::Relaxed);
        // Sequentially consistent with `asleep`: either the thread sees the epoch before it sleeps, or it is woken.
        self.shared.epoch.store(self.epoch, Ordering::SeqCst);
        for (slot, thread) in self.shared.slots.iter().zip(&self.threads).take(owners) {
            if slot.asleep.load(Ordering::SeqCst) {
                self.shared.caller.store(processor::here().unwrap_or(usize::MAX), Ordering::Relaxed);
                thread.thread().unpark();
            }
        }
    }

    fn wait(&self, slot: &Slot) {
        let mut polls = 0;
        while slot.done.load(Ordering::Acquire) != self.epoch {
            polls += 1;
            if polls < POLLS_WAITING { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
        assert!(!slot.broken.load(Ordering::Relaxed), "a thread of the engine has panicked");
    }
}

impl<W: Work> Shared<W> {
    fn serve(&self, index: usize) {
        let slot = &self.slots[index];
        let mut seen = 0;
        while let Some(epoch) = self.next(slot, seen) {
            seen = epoch;
            if slot.take(epoch) {
                let ended = Ended { slot, epoch };
                self.work.run(self.task.load(Ordering::Relaxed), index + 1);
                drop(ended);
            }
        }
    }

    /// Waits for the next epoch after `seen`; returns `None` when the pool is dropped.
    fn next(&self, slot: &Slot, seen: u64) -> Option<u64> {
        for _ in 0..POLLS_IDLE {
            let epoch = self.epoch.load(Ordering::Acquire);
            if epoch != seen {
                return (!self.stop.load(Ordering::Acquire)).then_some(epoch);
            }
            std::hint::spin_loop();
        }
        slot.asleep.store(true, Ordering::SeqCst);
        let epoch = loop {
            let epoch = self.epoch.load(Ordering::SeqCst);
            if epoch != seen {
                break epoch;
            }
            std::thread::park();
        };
        slot.asleep.store(false, Ordering::Relaxed);
        let caller = self.caller.load(Ordering::Relaxed);
        if processor::here() == Some(caller) {
            processor::leave(caller);
        }
        (!self.stop.load(Ordering::Acquire)).then_some(epoch)
    }
}

/// Publishes the end of a part, even if it panics, so that the caller never waits for a dead thread.
struct Ended<'a> {
    slot: &'a Slot,
    epoch: u64,
}

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.slot.broken.store(true, Ordering::Relaxed);
        }
        self.slot.done.store(self.epoch, Ordering::Release);
    }
}

impl<W: Work> Drop for Pool<W> {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        let all = self.threads.len();
        self.publish(0, all);
        for thread in self.threads.drain(..) {
            // A panic of the thread has been reported by `wait`.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// Task n has n % 5 + 1 parts; each records that it ran.
    #[derive(Default)]
    struct Log {
        ran: Mutex<Vec<(usize, usize)>>,
        at_once: AtomicUsize,
    }

    impl Work for Log {
        fn parts(&self, task: usize) -> usize {
            task % 5 + 1
        }

        fn run(&self, task: usize, part: usize) {
            self.at_once.fetch_add(1, Ordering::Relaxed);
            self.ran.lock().unwrap().push((task, part));
            self.at_once.fetch_sub(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn every_part_of_every_task_runs_once_and_in_the_order_of_tasks() {
        for threads in [1, 2, 3, 5] {
            let mut pool = Pool::new(Log::default(), threads);
            for task in 0..200 {
                pool.run(task);
                assert_eq!(pool.work().at_once.load(Ordering::Relaxed), 0, "a part ran on after its task");
                if task % 50 == 49 {
                    // Long enough for the threads to fall asleep.
                    std::thread::sleep(std::time::Duration::from_millis(5));
                }
            }
            let mut ran = pool.work().ran.lock().unwrap().clone();
            assert!(ran.is_sorted_by_key(|r| r.0));
            ran.sort_unstable();
            let expected: Vec<_> = (0..200).flat_map(|t| (0..t % 5 + 1).map(move |p| (t, p))).collect();
            assert_eq!(ran, expected);
        }
    }

    struct Panics;

    impl Work for Panics {
        fn parts(&self, _: usize) -> usize {
            2
        }

        fn run(&self, _: usize, part: usize) {
            assert!(part == 0, "part of the test");
            // Long enough for the other thread to claim its part.
            std::thread::sleep(std::time::Duration::from_millis(200));
        }
    }

    #[test]
    #[should_panic(expected = "a thread of the engine has panicked")]
    fn a_panic_on_a_thread_reaches_the_caller() {
        Pool::new(Panics, 2).run(0);
    }
}
