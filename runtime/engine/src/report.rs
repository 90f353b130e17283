//! What a run leaves behind beside its values.

/// What a run took.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RunReport {
    /// Compute sets and copies executed.
    pub supersteps: u64,
}
