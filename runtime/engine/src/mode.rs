//! The three modes.

/// The way in which an engine stores data and runs vertices.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Mode {
    /// Compiled vertices on one memory; no exchange is performed.
    #[default]
    Fast,
    /// Compiled vertices on a memory per tile, at the addresses of the layout; every transfer is performed.
    Exact,
    /// One array per variable and the codelet interpreter: the oracle.
    Interpret,
}
