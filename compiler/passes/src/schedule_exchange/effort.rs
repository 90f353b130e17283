//! Bounds on effort: how near a schedule has to come to its bound before no other method is tried.

/// The factor over the bound up to which no other method is tried.
pub(super) const GOOD: f64 = 1.02;
/// The number of receivers on one processor from which on each method is tried once.
pub(super) const MANY: usize = 1 << 16;
/// The number of pieces for each job that are tried before the greedy.
pub(super) const FEW_PIECES: usize = 8;
/// The factor over the bound up to which the greedy, which takes longest, is then not tried.
pub(super) const GOOD_AT_SCALE: f64 = 1.05;
