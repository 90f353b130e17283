//! Stable 128-bit content hashes: SipHash-2-4 with 128 bits of output (Aumasson and Bernstein 2012, key 0), over
//! bytes.
//!
//! Invariant: a hash depends on the bytes alone, not on the host or the version of the compiler.

#[cfg(test)]
mod tests;

/// A hash of content.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hash128(pub u128);

impl std::fmt::Display for Hash128 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl std::fmt::Debug for Hash128 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}

/// The hash of a string of bytes.
pub fn hash_bytes(bytes: &[u8]) -> Hash128 {
    let mut hasher = StableHasher::default();
    hasher.bytes(bytes);
    hasher.finish()
}

/// Takes content piece by piece.
struct StableHasher {
    v: [u64; 4],
    tail: u64,
    len: u64,
}

impl Default for StableHasher {
    fn default() -> StableHasher {
        StableHasher::with_key(0, 0)
    }
}

impl StableHasher {
    fn with_key(k0: u64, k1: u64) -> StableHasher {
        let v = [
            k0 ^ 0x736f_6d65_7073_6575,
            k1 ^ 0x646f_7261_6e64_6f6d ^ 0xee,
            k0 ^ 0x6c79_6765_6e65_7261,
            k1 ^ 0x7465_6462_7974_6573,
        ];
        StableHasher { v, tail: 0, len: 0 }
    }

    fn bytes(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.tail |= (byte as u64) << (8 * (self.len % 8));
            self.len += 1;
            if self.len.is_multiple_of(8) {
                self.word(self.tail);
                self.tail = 0;
            }
        }
    }

    /// The hash of all that was taken.
    fn finish(mut self) -> Hash128 {
        self.word(self.tail | (self.len << 56));
        self.v[2] ^= 0xee;
        let low = self.squeeze();
        self.v[1] ^= 0xdd;
        Hash128(low as u128 | (self.squeeze() as u128) << 64)
    }

    fn word(&mut self, m: u64) {
        self.v[3] ^= m;
        self.round();
        self.round();
        self.v[0] ^= m;
    }

    fn squeeze(&mut self) -> u64 {
        (0..4).for_each(|_| self.round());
        self.v[0] ^ self.v[1] ^ self.v[2] ^ self.v[3]
    }

    fn round(&mut self) {
        let [a, b, c, d] = &mut self.v;
        *a = a.wrapping_add(*b);
        *b = b.rotate_left(13) ^ *a;
        *a = a.rotate_left(32);
        *c = c.wrapping_add(*d);
        *d = d.rotate_left(16) ^ *c;
        *a = a.wrapping_add(*d);
        *d = d.rotate_left(21) ^ *a;
        *c = c.wrapping_add(*b);
        *b = b.rotate_left(17) ^ *c;
        *c = c.rotate_left(32);
    }
}
