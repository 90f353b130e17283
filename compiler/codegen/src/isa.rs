//! How far the instruction set of this machine is used.
//!
//! `GIRDER_ISA` forces a level; without it, the best one of the machine is taken. Results are the same at every level.
//!
//! Invariant: a level that [`Isa::chosen`] gives can run on this machine.

use crate::validate::CodegenError;

const VARIABLE: &str = "GIRDER_ISA";

/// A level of the instruction set, the least first.
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
    /// All levels, the least first.
    pub const ALL: [Isa; 3] = [Isa::Portable, Isa::Avx2, Isa::Avx512];

    /// As `GIRDER_ISA` writes it.
    pub fn name(self) -> &'static str {
        match self {
            Isa::Portable => "portable",
            Isa::Avx2 => "avx2",
            Isa::Avx512 => "avx512",
        }
    }

    /// What `GIRDER_ISA` asks for, else the best of this machine. Refused if there is no such level, or not here.
    pub fn chosen() -> Result<Isa, CodegenError> {
        Ok(Isa::forced()?.unwrap_or_else(Isa::best))
    }

    /// What `GIRDER_ISA` asks for, if it is set.
    pub(crate) fn forced() -> Result<Option<Isa>, CodegenError> {
        let word = std::env::var_os(VARIABLE);
        word.map(|word| Isa::named(&word.to_string_lossy())).transpose()
    }

    /// The best level of this machine.
    pub fn best() -> Isa {
        Isa::ALL.into_iter().rev().find(|isa| isa.is_here()).unwrap_or(Isa::Portable)
    }

    /// Whether this machine has the level.
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

/// Whether vectors of 512 bits have an instruction that counts the bits of lanes, which the level does not ask for.
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
