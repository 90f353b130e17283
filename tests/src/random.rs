//! Pseudo-random numbers that are the same in every run. Tests of other crates include this file by its path, because
//! this crate depends on them.

/// Numbers by xorshift, from a state that is not zero.
pub struct Random(pub u64);

impl Random {
    /// Returns the next number below `n`; 0 if `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % n.max(1)
    }
}
