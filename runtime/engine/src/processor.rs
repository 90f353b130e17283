//! The processors of the host on which threads run.
//!
//! # Note: A thread beside its caller
//! A host may wake a thread on the processor of its caller although another one is idle, and leave both there for
//! milliseconds: many supersteps. So a thread that wakes there moves away. The host may move it again at once.
//!
//! Invariant: on a host that does not support this, these functions do nothing; only time depends on them.

/// Returns the processor of the calling thread, or `None` if the host does not report it.
#[cfg(target_os = "linux")]
pub(crate) fn here() -> Option<usize> {
    Some(rustix::thread::sched_getcpu())
}

/// Moves the calling thread away from a processor, if it may run on another one.
#[cfg(target_os = "linux")]
pub(crate) fn leave(processor: usize) {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    let Ok(allowed) = sched_getaffinity(None) else { return };
    let mut others = allowed;
    if processor < CpuSet::MAX_CPU {
        others.unset(processor);
    }
    if others.count() > 0 && sched_setaffinity(None, &others).is_ok() {
        // The thread has moved and may run anywhere again. If this call fails, it stays restricted to the other
        // processors.
        let _ = sched_setaffinity(None, &allowed);
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn here() -> Option<usize> {
    None
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn leave(_: usize) {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use rustix::thread::sched_getaffinity;

    #[test]
    fn a_thread_leaves_its_processor_and_may_return() {
        let allowed = sched_getaffinity(None).unwrap();
        let processor = here().unwrap();
        leave(processor);
        assert_eq!(sched_getaffinity(None).unwrap(), allowed);
        // No such processor, and one that it is not on.
        leave(1 << 20);
        leave(processor);
        assert_eq!(sched_getaffinity(None).unwrap(), allowed);
    }
}
