//! Levels of the instruction set, and what they can do.
//!
//! Invariant: the bounds here hold for every program of a level; the lowerings and the register allocator rely on them.

use crate::ir::{GROUP, Lane};

/// The most vectors of one step: three operands and a result. At least this many registers stay free for them.
pub(super) const WIDEST: u8 = 4;

/// The greatest unroll factor. Each unrolled group has accumulators of its own where their order does not matter.
pub(super) const MOST_UNROLLED: usize = 4;

/// Vector registers reserved for temporaries, besides those for the values of a body.
pub(super) const SPARE: usize = 4;

/// A level of the instruction set.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Level {
    /// 256-bit vectors with fused multiplication and addition: AVX2, FMA, BMI1, BMI2, LZCNT.
    Avx2,
    /// 512-bit vectors with masks: AVX-512 F, BW, CD, DQ and VL besides.
    Avx512,
}

impl Level {
    /// All levels, the lowest first.
    pub const ALL: [Level; 2] = [Level::Avx2, Level::Avx512];

    /// Returns the name of the level in listings.
    pub fn name(self) -> &'static str {
        match self {
            Level::Avx2 => "avx2",
            Level::Avx512 => "avx512",
        }
    }

    /// Returns whether this machine has the level.
    pub fn is_here(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => {
                use std::is_x86_feature_detected as has;
                has!("avx2") && has!("fma") && has!("bmi1") && has!("bmi2") && has!("lzcnt") && has!("popcnt")
            }
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => {
                use std::is_x86_feature_detected as has;
                let parts = has!("avx512bw") && has!("avx512cd") && has!("avx512dq") && has!("avx512vl");
                Level::Avx2.is_here() && has!("avx512f") && parts
            }
            #[cfg(not(target_arch = "x86_64"))]
            _ => false,
        }
    }

    /// Returns the bytes of a vector.
    pub(crate) const fn bytes(self) -> u32 {
        match self {
            Level::Avx2 => 32,
            Level::Avx512 => 64,
        }
    }

    /// Returns the number of vector registers that the allocator may use.
    pub(crate) const fn registers(self) -> u8 {
        match self {
            // One register is for masks that an instruction clobbers.
            Level::Avx2 => 15,
            Level::Avx512 => 32,
        }
    }

    /// Returns the number of registers that a value takes for a group.
    pub fn vectors(self, lane: Lane) -> usize {
        (GROUP as usize * lane.bytes().max(4) as usize).div_ceil(self.bytes() as usize)
    }

    /// Returns the number of registers for accumulators and indices that leaves half of all registers to the body.
    pub fn spare_registers(self) -> usize {
        usize::from(self.registers() / 2)
    }

    /// Returns the most registers for accumulators and indices.
    pub fn most_carried(self) -> usize {
        usize::from(self.registers() - WIDEST)
    }

    /// Returns the most indices that a kernel may carry.
    pub fn most_indices(self) -> usize {
        match self {
            Level::Avx2 => 1,
            Level::Avx512 => 4,
        }
    }

    /// Returns whether the level converts one lane type to another.
    pub fn converts(self, from: Lane, to: Lane) -> bool {
        let long = from.is_int() && from.is_long();
        self == Level::Avx512 || !(long && to == Lane::F32)
    }

    /// Returns the number of unrolled groups with accumulators of their own, where the order does not matter.
    pub fn parallel_accumulators(self) -> usize {
        match self {
            Level::Avx2 => 1,
            Level::Avx512 => MOST_UNROLLED,
        }
    }
}
