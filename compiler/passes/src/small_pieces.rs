//! When pieces of a transfer are too small to travel one by one.
//!
//! Invariant: `place-tiles` estimates, and `plan-transfers` decides, with the same numbers.

/// The number of pieces from which on they are made contiguous.
pub(crate) const MANY_PIECES: u32 = 4;

/// Which pieces travel together. Copies on tiles take time, but pieces that are sent by themselves take code.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct SmallPieces {
    /// The size in bytes from which on a piece is sent by itself.
    pub few_bytes: u32,
    /// The number of small pieces at unequal distances that a tile receives one by one at most, if there are many from
    /// single senders.
    pub most_received: u32,
}

impl SmallPieces {
    /// What takes little time.
    pub const USUAL: SmallPieces = SmallPieces { few_bytes: 32, most_received: 2048 };
    /// What takes little code, where memory is scarce.
    pub const IF_SCARCE: SmallPieces = SmallPieces { few_bytes: 256, most_received: 256 };
}
