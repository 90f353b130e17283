//! The level of the instruction set that compiled code uses.
//!
//! `GIRDER_ISA` selects a level; without it, the best level of the machine is used. Results are the same at every
//! level.
//!
//! Invariant: code for a level that [`Level::chosen`] returns can run on this machine.

use crate::validate::CodegenError;

const VARIABLE: &str = "GIRDER_ISA";

/// A level of the instruction set. The least is first. Vector kernels, which need more than the first level, have a
/// type of their own for the others, and native kernels have their own because they depend on no crate of the compiler.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Level {
    /// The architecture without optional instructions.
    Portable,
    /// 256-bit vectors with fused multiplication and addition.
    Avx2,
    /// 512-bit vectors with masks.
    Avx512,
}

impl Level {
    /// All levels. The least is first.
    pub const ALL: [Level; 3] = [Level::Portable, Level::Avx2, Level::Avx512];

    /// Returns the name that `GIRDER_ISA` uses.
    pub fn name(self) -> &'static str {
        match self {
            Level::Portable => "portable",
            Level::Avx2 => "avx2",
            Level::Avx512 => "avx512",
        }
    }

    /// Returns the level that `GIRDER_ISA` specifies, or else the best level of this machine. It is an error if there
    /// is no such level, or if this machine does not have it.
    pub fn chosen() -> Result<Level, CodegenError> {
        Ok(Level::forced()?.unwrap_or_else(Level::best))
    }

    /// Returns the level that `GIRDER_ISA` specifies, if it is set.
    pub(crate) fn forced() -> Result<Option<Level>, CodegenError> {
        let word = std::env::var_os(VARIABLE);
        word.map(|word| Level::named(&word.to_string_lossy())).transpose()
    }

    /// Returns the best level of this machine.
    pub fn best() -> Level {
        Level::ALL.into_iter().rev().find(|level| level.is_here()).unwrap_or(Level::Portable)
    }

    /// Returns whether this machine has the level.
    pub fn is_here(self) -> bool {
        self.of_kernels().is_none_or(girder_simd::Level::is_here)
    }

    /// Returns the level of vector kernels, or `None` if there are none without optional instructions.
    pub(crate) fn of_kernels(self) -> Option<girder_simd::Level> {
        match self {
            Level::Portable => None,
            Level::Avx2 => Some(girder_simd::Level::Avx2),
            Level::Avx512 => Some(girder_simd::Level::Avx512),
        }
    }

    fn named(word: &str) -> Result<Level, CodegenError> {
        let list = |levels: &mut dyn Iterator<Item = Level>| levels.map(Level::name).collect::<Vec<_>>().join(", ");
        let Some(level) = Level::ALL.into_iter().find(|level| level.name() == word) else {
            return Err(CodegenError::Level(format!(
                "`{VARIABLE}` is `{word}`, which is no level; levels are {}",
                list(&mut Level::ALL.into_iter())
            )));
        };
        if level.is_here() {
            return Ok(level);
        }
        let here = list(&mut Level::ALL.into_iter().filter(|level| level.is_here()));
        Err(CodegenError::Level(format!("`{VARIABLE}` is `{word}`, which this machine does not have; it has {here}")))
    }
}

/// Returns whether the host has a population count of 512-bit vectors, which is not part of the level.
pub(crate) fn counts_ones() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::is_x86_feature_detected!("avx512vpopcntdq");
    #[cfg(not(target_arch = "x86_64"))]
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_levels_of_this_machine_can_be_named() {
        for level in Level::ALL {
            assert_eq!(Level::named(level.name()).is_ok(), level.is_here(), "{level:?}");
        }
        let refused = Level::named("sse9").expect_err("there is no such level").to_string();
        assert_eq!(refused, "`GIRDER_ISA` is `sse9`, which is no level; levels are portable, avx2, avx512");
    }
}
