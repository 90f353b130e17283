//! The target: the machine for which code is generated.
//!
//! Invariant: `features` records what Cranelift's backend can translate without a call of a library function.

use crate::level::Level;
use crate::validate::CodegenError;
use cranelift_codegen::isa::{Builder, CallConv, OwnedTargetIsa, TargetIsa};
use cranelift_codegen::settings::{self, Configurable, SetError};
use girder_codelet::kernel::KernelTarget;
use girder_simd::{Options, Reference};
use std::sync::Arc;

/// The greatest number of nodes of a vector kernel with its inner loops fully unrolled.
pub(crate) const UNROLLED_NODES: u64 = 500;

/// The operations for which the backend has instructions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Features {
    /// `fma` of scalars and vectors.
    pub fma: bool,
    /// `floor`, `ceil`, `trunc` and `nearest` of scalars and vectors.
    pub round: bool,
    /// 128-bit vectors of 32- and 64-bit elements.
    pub vectors: bool,
    /// Vectors of more than 128 bits, which the backend does not lower.
    pub simd: Option<girder_simd::Level>,
    /// The options for the assembly of vector kernels.
    pub options: Options,
    /// A function that evaluates vector kernels in place of machine code.
    pub reference: Option<Reference>,
}

impl Features {
    /// Returns the iterations of a group if vector kernels are made for nests of short loops. AVX2 would load permuted
    /// elements one by one.
    pub fn nest_group(&self) -> Option<u64> {
        (self.simd == Some(girder_simd::Level::Avx512)).then_some(girder_simd::ir::GROUP)
    }
}

/// The machine for which code is generated: an instruction set with flags. A clone is cheap.
#[derive(Clone)]
pub struct CodeTarget {
    pub(crate) isa: OwnedTargetIsa,
    pub(crate) features: Features,
    pub(crate) level: Level,
}

impl CodeTarget {
    /// Returns this machine with its best level, or with the level that `GIRDER_ISA` specifies.
    pub fn detect() -> Result<CodeTarget, CodegenError> {
        match Level::forced()? {
            Some(level) => CodeTarget::with(level),
            None => CodeTarget::native(Level::best()),
        }
    }

    /// Returns this machine with a level of its instruction set. Code for a level that the machine does not have cannot
    /// run on it.
    pub fn with(level: Level) -> Result<CodeTarget, CodegenError> {
        if level == Level::best() && level != Level::Portable {
            return CodeTarget::native(level);
        }
        let mut builder = cranelift_native::builder_with_options(false).map_err(refused)?;
        levelled(&mut builder, level).map_err(refused)?;
        CodeTarget::build(builder, level)
    }

    fn native(level: Level) -> Result<CodeTarget, CodegenError> {
        CodeTarget::build(cranelift_native::builder().map_err(refused)?, level)
    }

    fn build(builder: Builder, level: Level) -> Result<CodeTarget, CodegenError> {
        let isa = builder.finish(flags().map_err(refused)?).map_err(refused)?;
        let features = Features::of(&*isa, level);
        Ok(CodeTarget { isa, features, level })
    }

    /// Returns the same machine with vectors of 128 bits only, as for a host with another calling convention.
    pub fn without_vector_kernels(mut self) -> CodeTarget {
        self.features.simd = None;
        self
    }

    /// Returns the level of the instruction set.
    pub fn level(&self) -> Level {
        self.level
    }

    /// Returns the properties on which the benefit of rewrites depends.
    pub fn kernel_target(&self) -> KernelTarget {
        KernelTarget {
            vector_kernels: self.features.simd.is_some(),
            unrolled_nodes: UNROLLED_NODES,
            nest_group: self.features.nest_group(),
        }
    }

    /// Returns the same machine with vector kernels for a level, but evaluated by a function. It is for tests: the
    /// kernels are never freed.
    pub fn with_reference(mut self, level: girder_simd::Level, reference: Reference) -> CodeTarget {
        if cfg!(target_arch = "x86_64") {
            self.features.simd = Some(level);
            self.features.reference = Some(reference);
        }
        self
    }

    /// Returns the architecture, the level and the flags of the instruction set, for the key of a code cache.
    pub fn name(&self) -> String {
        let on = self.isa.isa_flags().into_iter().filter(|v| v.as_bool() == Some(true));
        let simd = if self.features.simd.is_some() { " simd" } else { "" };
        let start = format!("{} {}{simd}", self.isa.triple(), self.level.name());
        on.fold(start, |name, flag| name + " " + flag.name)
    }

    pub(crate) fn isa(&self) -> Arc<dyn TargetIsa> {
        self.isa.clone()
    }
}

impl std::fmt::Debug for CodeTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name())
    }
}

/// Returns the flags for code without unwind information and without stack probes (`validate` limits frames). The code
/// need not be compiled as position-independent, because it has no relocations. The verifier runs if assertions are on.
fn flags() -> Result<settings::Flags, settings::SetError> {
    let mut flags = settings::builder();
    flags.set("opt_level", "speed")?;
    flags.set("is_pic", "false")?;
    flags.set("unwind_info", "false")?;
    flags.set("enable_probestack", "false")?;
    flags.set("enable_verifier", if cfg!(debug_assertions) { "true" } else { "false" })?;
    Ok(settings::Flags::new(flags))
}

fn refused(reason: impl std::fmt::Display) -> CodegenError {
    CodegenError::Target(reason.to_string())
}

/// Enables the flags of a level. No flag is enabled before.
fn levelled(builder: &mut Builder, level: Level) -> Result<(), SetError> {
    const AVX2: [&str; 11] = [
        "has_sse3",
        "has_ssse3",
        "has_sse41",
        "has_sse42",
        "has_popcnt",
        "has_avx",
        "has_avx2",
        "has_fma",
        "has_bmi1",
        "has_bmi2",
        "has_lzcnt",
    ];
    const AVX512: [&str; 3] = ["has_avx512f", "has_avx512vl", "has_avx512dq"];
    let flags = match level {
        Level::Portable => [].iter().chain(&[]),
        Level::Avx2 => AVX2.iter().chain(&[]),
        Level::Avx512 => AVX2.iter().chain(&AVX512),
    };
    flags.into_iter().try_for_each(|flag| builder.enable(flag))
}

impl Features {
    fn of(isa: &dyn TargetIsa, level: Level) -> Features {
        let options = Options { counts_ones: crate::level::counts_ones(), ..Options::default() };
        let has = |name: &str| isa.isa_flags().iter().any(|v| v.name == name && v.as_bool() == Some(true));
        match isa.triple().architecture.to_string().as_str() {
            "x86_64" => {
                let round = has("has_sse41");
                let simd = level.of_kernels().filter(|_| isa.default_call_conv() == CallConv::SystemV);
                Features {
                    fma: has("has_fma"),
                    round,
                    vectors: round && has("has_sse42"),
                    simd,
                    options,
                    reference: None,
                }
            }
            "aarch64" => Features { fma: true, round: true, vectors: true, simd: None, options, reference: None },
            _ => Features { fma: true, round: true, vectors: false, simd: None, options, reference: None },
        }
    }
}
