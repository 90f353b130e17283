//! The error of planning.

/// Inconsistent tables of the graph: a bug of the compiler, because elaboration has checked them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostError(pub String);

impl std::fmt::Display for HostError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for HostError {}
