//! Philox 4x32-10.
//!
//! Invariant: equal to the published known answers of Random123.

use super::{Sequence, TOGETHER};

const MULTIPLIERS: [u32; 2] = [0xd251_1f53, 0xcd9e_8d57];
const WEYL: [u32; 2] = [0x9e37_79b9, 0xbb67_ae85];

/// Returns the block of a counter and a key.
pub fn philox(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let mut c = counter;
    let mut k = key;
    for _ in 0..10 {
        c = round(c, k);
        k = [k[0].wrapping_add(WEYL[0]), k[1].wrapping_add(WEYL[1])];
    }
    c
}

#[inline(always)]
fn round([a, b, c, d]: [u32; 4], [k, l]: [u32; 2]) -> [u32; 4] {
    let (p, q) = (u64::from(a) * u64::from(MULTIPLIERS[0]), u64::from(c) * u64::from(MULTIPLIERS[1]));
    [(q >> 32) as u32 ^ b ^ k, q as u32, (p >> 32) as u32 ^ d ^ l, p as u32]
}

/// Computes consecutive blocks of a sequence; word w of block k is `words[w][k]`.
#[inline(always)]
pub(super) fn blocks(sequence: Sequence, first: u64, words: &mut [[u32; TOGETHER]; 4]) {
    let [w0, w1, w2, w3] = words;
    for k in 0..TOGETHER {
        let n = first + k as u64;
        (w0[k], w1[k], w2[k], w3[k]) = (n as u32, (n >> 32) as u32, sequence.site as u32, (sequence.site >> 32) as u32);
    }
    let mut key = [sequence.seed as u32, (sequence.seed >> 32) as u32];
    for _ in 0..10 {
        for k in 0..TOGETHER {
            [w0[k], w1[k], w2[k], w3[k]] = round([w0[k], w1[k], w2[k], w3[k]], key);
        }
        key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
    }
}
