//! Random numbers: Philox 4x32-10 and distributions.
//!
//! The generator is that of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (2011). A
//! number of a distribution is a function of one word (`f32`) or of two (`f64`), so any part of a sequence can be drawn
//! by itself. `stdlib/random.gir` computes the same functions with the same operations.
//!
//! Invariant: element i depends on the key, the site, the distribution and i only.

mod philox;
mod normal;

pub use philox::philox;

use crate::Level;
use normal::{Float, Word};

/// A distribution, with the numbers in the type of the elements.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Law<T> {
    /// `lo + (hi - lo) · u`, u in [0, 1).
    Uniform {
        /// The least value.
        lo: T,
        /// `hi - lo`
        range: T,
    },
    /// `mean + scale · z`, z standard normal.
    Normal {
        /// The mean.
        mean: T,
        /// The standard deviation.
        scale: T,
    },
    /// `mean + scale · z`, z standard normal in `lo..=hi`.
    Truncated {
        /// The mean.
        mean: T,
        /// The standard deviation.
        scale: T,
        /// The lower bound.
        lo: T,
        /// The upper bound.
        hi: T,
        /// The probability of a standard normal number below `lo`.
        below: T,
        /// The probability of one above `hi`.
        above: T,
        /// The probability of one between.
        between: T,
    },
}

/// A sequence of random words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sequence {
    /// The key of the generator.
    pub seed: u64,
    /// The upper half of the counter.
    pub site: u64,
}

/// Draws elements `first..first + into.len()` of a sequence. `first` is a multiple of 4.
pub fn draw_f32(level: Level, sequence: Sequence, law: Law<f32>, first: u64, into: &mut [f32]) {
    draw(level, sequence, law, first / 4, into);
}

/// Draws elements `first..first + into.len()` of a sequence. `first` is a multiple of 2.
pub fn draw_f64(level: Level, sequence: Sequence, law: Law<f64>, first: u64, into: &mut [f64]) {
    draw(level, sequence, law, first / 2, into);
}

fn draw<T: Float>(level: Level, sequence: Sequence, law: Law<T>, block: u64, into: &mut [T]) {
    match level {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the machine has the instructions, which is asked here.
        Level::Avx2 | Level::Avx512 if level.is_here() => unsafe { draw_avx2(sequence, law, block, into) },
        _ => draw_blocks(sequence, law, block, into),
    }
}

/// Works like [`draw_blocks`]; it is compiled for AVX2 and FMA.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn draw_avx2<T: Float>(sequence: Sequence, law: Law<T>, block: u64, into: &mut [T]) {
    draw_blocks(sequence, law, block, into);
}

/// Blocks whose words are computed together.
const TOGETHER: usize = 64;

/// Draws elements from the first of a block on.
#[inline(always)]
fn draw_blocks<T: Float>(sequence: Sequence, law: Law<T>, block: u64, into: &mut [T]) {
    let mut words = [[0; TOGETHER]; 4];
    for (k, part) in into.chunks_mut(TOGETHER * T::PER_BLOCK).enumerate() {
        philox::blocks(sequence, block + (k * TOGETHER) as u64, &mut words);
        match law {
            Law::Uniform { lo, range } => T::each(&words, part, |u| u.uniform().mul_add(range, lo)),
            Law::Normal { mean, scale } => T::each(&words, part, |u| u.normal().mul_add(scale, mean)),
            Law::Truncated { mean, scale, lo, hi, below, above, between } => T::each(&words, part, |u| {
                let z = u.normal_between(below, above, between);
                z.max_of(lo).min_of(hi).mul_add(scale, mean)
            }),
        }
    }
}

#[cfg(test)]
mod tests;
