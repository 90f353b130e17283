//! Native functions for operations that compiled code would execute too slowly.
//!
//! They know neither the language nor the graph; their arguments are addresses, strides and numbers. `product` computes
//! matrix products, `random` draws numbers.
//!
//! Invariants: every function gives the same bits at every [`Level`] and for every division of its work; `unsafe`
//! occurs only in these modules.

pub mod product;
pub mod random;

pub use product::{Link, LinkedProduct, Matrix, Product, Row, Start, linked_f32, linked_f64, product_f32, product_f64};

/// The instructions that a function may use.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Level {
    /// Those of the architecture's baseline.
    Portable,
    /// AVX2 and FMA.
    Avx2,
    /// AVX-512F, and those of [`Level::Avx2`].
    Avx512,
}

impl Level {
    /// All levels, the least first.
    pub const ALL: [Level; 3] = [Level::Portable, Level::Avx2, Level::Avx512];

    /// Returns whether this machine has the instructions.
    pub fn is_here(self) -> bool {
        match self {
            Level::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma"),
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => Level::Avx2.is_here() && std::is_x86_feature_detected!("avx512f"),
            #[cfg(not(target_arch = "x86_64"))]
            _ => false,
        }
    }
}
