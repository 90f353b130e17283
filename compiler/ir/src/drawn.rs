//! Initial values that are drawn when a variable is loaded, so that neither the graph nor its text holds them.
//!
//! Element i of an `f32` variable takes word i mod 4 of the Philox 4x32-10 block with the counter
//! (i / 4, 0, low half of the site, high half) and the key (low half of the seed, high half). Element i of an `f64`
//! variable takes words 2·(i mod 2) and 2·(i mod 2) + 1 of the block with i / 2. `girder_kernels::random` computes the
//! elements.
//!
//! Invariant: the numbers depend on nothing but a [`Drawn`], the element's number and its type.

/// The least probability that a truncated normal distribution keeps.
const LEAST_INSIDE: f64 = 1e-6;

/// The numbers of a variable.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Drawn {
    /// Their distribution.
    pub law: Law,
    /// The key of the generator.
    pub seed: u64,
    /// Which of the sequences of the seed: a number of the variable.
    pub site: u64,
}

/// A distribution. All numbers are finite.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Law {
    /// Uniform between two bounds, of which the second is not less.
    Uniform {
        /// The least value.
        lo: f64,
        /// The bound above.
        hi: f64,
    },
    /// Normal.
    Normal {
        /// The mean.
        mean: f64,
        /// The standard deviation, not negative.
        scale: f64,
    },
    /// Normal, restricted to `mean + lo · scale ..= mean + hi · scale`.
    Truncated {
        /// The mean before truncation.
        mean: f64,
        /// The standard deviation before truncation, not negative.
        scale: f64,
        /// The lower bound, in standard deviations.
        lo: f64,
        /// The upper bound, in standard deviations. At least a part in 10⁶ of the distribution is between the bounds.
        hi: f64,
    },
}

impl Law {
    /// Returns whether the numbers satisfy what the variants state.
    pub fn is_valid(self) -> bool {
        match self {
            Law::Uniform { lo, hi } => lo.is_finite() && hi.is_finite() && (hi - lo).is_finite() && lo <= hi,
            Law::Normal { mean, scale } => mean.is_finite() && scale.is_finite() && scale >= 0.0,
            Law::Truncated { mean, scale, lo, hi } => {
                // The tails are resolved to a part in 2³² of what is inside, and `f32` has exponents for no less.
                let bounds = lo.is_finite() && hi.is_finite() && normal_cdf(hi) - normal_cdf(lo) >= LEAST_INSIDE;
                mean.is_finite() && scale.is_finite() && scale >= 0.0 && bounds
            }
        }
    }
}

/// Returns the probability that a standard normal number is less than `x`. It has the same bits on every host.
pub fn normal_cdf(x: f64) -> f64 {
    0.5 * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2)
}
