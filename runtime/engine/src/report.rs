//! The counters of a run.

/// The counters of a run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RunReport {
    /// Compute sets and copies executed.
    pub supersteps: u64,
}
