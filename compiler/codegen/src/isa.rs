//! The level of the instruction set that compiled code uses.
//!
//! `GIRDER_ISA` selects a level; without it, the best level of the machine is used. Results are the same at every
//! level.
//!
//! Invariant: code for a level that [`Isa::chosen`] returns can run on this machine.

use crate::validate::CodegenError;

const VARIABLE: &str = "GIRDER_ISA";

/// A level of the instruction set. The least is first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Isa {
    /// The architecture without optional instructions.
    Portable,
    /// 256-bit vectors with fused multiplication and addition.
    Avx2,
    /// 512-bit vectors with masks.
    Avx512,
}

impl Isa {
    /// All levels. The least is first.
    pub const ALL: [Isa; 3] = [Isa::Portable, Isa::Avx2, Isa::Avx512];

    /// Returns the name that `GIRDER_ISA` uses.
    pub fn name(self) -> &'static str {
        match self {
            Isa::Portable => "portable",
            Isa::Avx2 => "avx2",
            Isa::Avx512 => "avx512",
        }
    }

    /// Returns the level that `GIRDER_ISA` specifies, or else the best level of this machine. It is an error if there
    /// is no such level, or if this machine does not have it.
    pub fn chosen() -> Result<Isa, CodegenError> {
        Ok(Isa::forced()?.unwrap_or_else(Isa::best))
    }

    /// Returns the level that `GIRDER_ISA` specifies, if it is set.
    pub(crate) fn forced() -> Result<Option<Isa>, CodegenError> {
        let word = std::env::var_os(VARIABLE);
        word.map(|word| Isa::named(&word.to_string_lossy())).transpose()
    }

    /// Returns the best level of this machine.
    pub fn best() -> Isa {
        Isa::ALL.into_iter().rev().find(|isa| isa.is_here()).unwrap_or(Isa::Portable)
    }

    /// Returns whether this machine has the level.
    pub fn is_here(self) -> bool {
        match self {
            Isa::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => {
                use std::is_x86_feature_detected as has;
                has!("avx2") && has!("fma") && has!("bmi1") && has!("bmi2") && has!("lzcnt") && has!("popcnt")
            }
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => {
                use std::is_x86_feature_detected as has;
                let parts = has!("avx512bw") && has!("avx512cd") && has!("avx512dq") && has!("avx512vl");
                Isa::Avx2.is_here() && has!("avx512f") && parts
            }
            #[cfg(not(target_arch = "x86_64"))]
            _ => false,
        }
    }

    fn named(word: &str) -> Result<Isa, CodegenError> {
        let list = |levels: &mut dyn Iterator<Item = Isa>| levels.map(Isa::name).collect::<Vec<_>>().join(", ");
        let Some(isa) = Isa::ALL.into_iter().find(|isa| isa.name() == word) else {
            return Err(CodegenError::Isa(format!(
                "`{VARIABLE}` is `{word}`, which is no level; levels are {}",
                list(&mut Isa::ALL.into_iter())
            )));
        };
        if isa.is_here() {
            return Ok(isa);
        }
        let here = list(&mut Isa::ALL.into_iter().filter(|isa| isa.is_here()));
        Err(CodegenError::Isa(format!("`{VARIABLE}` is `{word}`, which this machine does not have; it has {here}")))
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
        for isa in Isa::ALL {
            assert_eq!(Isa::named(isa.name()).is_ok(), isa.is_here(), "{isa:?}");
        }
        let refused = Isa::named("sse9").expect_err("there is no such level").to_string();
        assert_eq!(refused, "`GIRDER_ISA` is `sse9`, which is no level; levels are portable, avx2, avx512");
    }
}
