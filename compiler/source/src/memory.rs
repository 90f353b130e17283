//! The memory of a compilation: how much its tables take, and how much the host has.
//!
//! # Note: Charged bytes
//! Tables are charged where they are made, in bytes that depend on the input alone: never on the allocator, the number
//! of threads or the host. What lives until the end is not given back, so the sum bounds what lives at
//! one time, and two compilations of one text fail at the same statement.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The bytes that were charged so far. Clones share the sum.
#[derive(Clone, Debug, Default)]
pub struct ChargedBytes(Arc<AtomicU64>);

impl ChargedBytes {
    /// Adds bytes of a table that is made.
    pub fn add(&self, bytes: u64) {
        // A sum that wrapped would allow everything.
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| Some(n.saturating_add(bytes)));
    }

    /// Returns the charged bytes.
    pub fn used(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Gives back what was charged since there were `bytes`, because those tables are gone.
    pub fn set_back(&self, bytes: u64) {
        self.0.store(bytes, Ordering::Relaxed);
    }

    /// Forgets all charges, at the beginning of another compilation.
    pub fn restart(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

/// The address space that the stacks of threads and the mapped files of a process may take.
const ADDRESSES_BESIDE_DATA: u64 = 5 << 29;

/// Returns the bytes of memory that this process may use: the least of the machine's memory, of the limit of its
/// control group, and of its limited address space.
pub fn host_memory() -> u64 {
    static BYTES: OnceLock<u64> = OnceLock::new();
    *BYTES.get_or_init(|| {
        let found = [
            read("/proc/meminfo", "MemTotal:").map(|n| n << 10),
            read("/sys/fs/cgroup/memory.max", ""),
            read("/sys/fs/cgroup/memory/memory.limit_in_bytes", ""),
            read("/proc/self/limits", "Max address space").map(|n| n.saturating_sub(ADDRESSES_BESIDE_DATA)),
        ];
        // Where none is known, as on systems without these files, a small machine is assumed.
        found.into_iter().flatten().min().unwrap_or(8 << 30)
    })
}

/// Returns the number after `name` in a file of the system; `None` if there is none, or no limit.
fn read(path: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(path).ok()?;
    text.lines().find_map(|l| l.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charges_saturate() {
        let memory = ChargedBytes::default();
        memory.add(u64::MAX - 1);
        memory.clone().add(5);
        assert_eq!(memory.used(), u64::MAX);
        memory.restart();
        assert_eq!(memory.used(), 0);
    }

    #[test]
    fn a_host_has_memory() {
        assert!(host_memory() >= 1 << 24, "{}", host_memory());
    }
}
