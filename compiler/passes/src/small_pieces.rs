//! When pieces of a transfer are too small to travel one by one.
//!
//! Invariant: `place-tiles` estimates, and `plan-transfers` decides, with the same numbers.

/// The number of pieces from which on they are made contiguous.
pub(crate) const MANY_PIECES: u32 = 4;
/// The size in bytes from which on a piece is sent by itself.
pub(crate) const FEW_BYTES: u32 = 32;
/// The same where memory is scarce: copies on tiles take time, but pieces that are sent by themselves take code.
pub(crate) const FEW_BYTES_IF_SCARCE: u32 = 256;
/// The number of small pieces that a tile receives one by one at most, if there are many from single senders. More
/// would take too much of its memory as exchange code.
pub(crate) const MOST_RECEIVED: u32 = 256;
