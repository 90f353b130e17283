//! Choices read from a string of bytes.
//!
//! Invariant: zeros come after the end of the string, so that short strings make small programs and failures shrink.

/// Choices that a string of bytes determines.
pub(super) struct Choices<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Choices<'b> {
    pub fn new(bytes: &'b [u8]) -> Choices<'b> {
        Choices { bytes, at: 0 }
    }

    /// Returns whether the string has ended.
    pub fn spent(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// Chooses a number below `n`; `n` is not zero.
    pub fn below(&mut self, n: u64) -> u64 {
        self.at += 1;
        self.bytes.get(self.at - 1).copied().unwrap_or(0) as u64 % n
    }

    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }

    /// Returns `true` once in `n` times.
    pub fn once_in(&mut self, n: u64) -> bool {
        self.below(n) == n - 1
    }

    /// Chooses a permutation of the numbers below `n`.
    pub fn permutation(&mut self, n: u64) -> Vec<u64> {
        let mut order: Vec<u64> = (0..n).collect();
        for i in (1..n).rev() {
            let j = self.below(i + 1);
            order.swap(i as usize, j as usize);
        }
        order
    }
}
