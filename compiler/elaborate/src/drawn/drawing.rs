//! Distributions of initial values, which may depend on the shape of the variable that takes them.
//!
//! Invariant: a fixed distribution is valid ([`Law::is_valid`]).

use girder_ir::drawn::Law;
use girder_ir::types::ElemType;

/// The standard deviation of a standard normal number restricted to -2..=2.
const TRUNCATED_AT_2: f64 = 0.879_625_661_034_239_8;

/// An initial value that is drawn at load.
#[derive(Clone, PartialEq, Debug)]
pub struct Drawing {
    /// The distribution.
    pub law: Scaled,
    /// The seed.
    pub seed: u64,
    /// The site; `None`: from the name of the variable.
    pub site: Option<u64>,
    /// The type of the variable, if the text gives it.
    pub ty: Option<ElemType>,
}

/// A distribution, which may depend on the shape of the variable.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Scaled {
    /// It does not.
    Fixed(Law),
    /// Of mean 0 and variance `gain`² / fan.
    ByFan {
        /// The form.
        kind: Kind,
        /// What the variance is divided by.
        fan: Fan,
        /// The standard deviation times the root of the fan.
        gain: f64,
        /// The number of leading axes that count copies.
        stack: usize,
    },
}

/// The form of a distribution.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Kind {
    /// Equally likely between two bounds.
    Uniform,
    /// Normal.
    Normal,
    /// Normal, restricted to two standard deviations.
    Truncated,
}

/// How many inputs or outputs a unit has.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Fan {
    /// Inputs.
    In,
    /// Outputs.
    Out,
    /// The mean of both.
    Average,
}

impl Drawing {
    /// Returns whether the name of the variable decides the site.
    pub fn is_named(&self) -> bool {
        self.site.is_none()
    }
}

/// Returns the distribution of mean 0 and variance `gain`² / fan.
pub fn by_fan(kind: Kind, fan: f64, gain: f64) -> Law {
    let scale = gain / fan.max(1.0).sqrt();
    match kind {
        Kind::Uniform => {
            let hi = gain * (3.0 / fan.max(1.0)).sqrt();
            Law::Uniform { lo: -hi, hi }
        }
        Kind::Normal => Law::Normal { mean: 0.0, scale },
        Kind::Truncated => Law::Truncated { mean: 0.0, scale: scale / TRUNCATED_AT_2, lo: -2.0, hi: 2.0 },
    }
}

/// Returns the inputs or outputs of a unit, by the convention of Keras: `[in, out]`, or `[…, in, out]` where the axes
/// before are those of a kernel. A vector has as many inputs as outputs.
pub fn fan_of(fan: Fan, shape: &[u64]) -> f64 {
    let (inputs, outputs) = match *shape {
        [] => (1.0, 1.0),
        [n] => (n as f64, n as f64),
        [ref kernel @ .., m, n] => {
            let size: f64 = kernel.iter().map(|&k| k as f64).product();
            (size * m as f64, size * n as f64)
        }
    };
    match fan {
        Fan::In => inputs,
        Fan::Out => outputs,
        Fan::Average => 0.5 * (inputs + outputs),
    }
}
