//! The machine that code is made for.
//!
//! Invariant: `features` says what Cranelift's backend can translate without a call into a library.

use crate::validate::CodegenError;
use cranelift_codegen::isa::{Builder, OwnedTargetIsa, TargetIsa};
use cranelift_codegen::settings::{self, Configurable};
use std::sync::Arc;

/// What the backend has instructions for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Features {
    /// `fma`, of scalars and vectors.
    pub fma: bool,
    /// `floor`, `ceil`, `trunc`, `nearest`, of scalars and vectors.
    pub round: bool,
    /// 128-bit vectors of 32- and 64-bit elements.
    pub vectors: bool,
}

/// An instruction set with flags. Cheap to clone.
#[derive(Clone)]
pub struct Host {
    pub(crate) isa: OwnedTargetIsa,
    pub(crate) features: Features,
}

impl Host {
    /// This machine with all it can do.
    pub fn detect() -> Result<Host, CodegenError> {
        let builder = cranelift_native::builder().map_err(|e| CodegenError::Host(e.to_string()))?;
        Host::build(builder)
    }

    /// This machine's architecture without optional instructions; for tests of the fallbacks.
    pub fn baseline() -> Result<Host, CodegenError> {
        let builder = cranelift_native::builder_with_options(false).map_err(|e| CodegenError::Host(e.to_string()))?;
        Host::build(builder)
    }

    /// Architecture and instruction set flags, for the key of a code cache.
    pub fn name(&self) -> String {
        let on = self.isa.isa_flags().into_iter().filter(|v| v.as_bool() == Some(true));
        on.fold(self.isa.triple().to_string(), |name, flag| name + " " + flag.name)
    }

    fn build(builder: Builder) -> Result<Host, CodegenError> {
        let isa = builder
            .finish(flags().map_err(|e| CodegenError::Host(e.to_string()))?)
            .map_err(|e| CodegenError::Host(e.to_string()))?;
        let features = Features::of(&*isa);
        Ok(Host { isa, features })
    }

    pub(crate) fn isa(&self) -> Arc<dyn TargetIsa> {
        self.isa.clone()
    }
}

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name())
    }
}

/// Never position-independent (code has no relocations at all), no unwinding through it, no stack probes (frames are
/// limited by `validate`); the verifier where assertions are on.
fn flags() -> Result<settings::Flags, settings::SetError> {
    let mut flags = settings::builder();
    flags.set("opt_level", "speed")?;
    flags.set("is_pic", "false")?;
    flags.set("unwind_info", "false")?;
    flags.set("enable_probestack", "false")?;
    flags.set("enable_verifier", if cfg!(debug_assertions) { "true" } else { "false" })?;
    Ok(settings::Flags::new(flags))
}

impl Features {
    fn of(isa: &dyn TargetIsa) -> Features {
        let has = |name: &str| isa.isa_flags().iter().any(|v| v.name == name && v.as_bool() == Some(true));
        match isa.triple().architecture.to_string().as_str() {
            "x86_64" => {
                let round = has("has_sse41");
                Features { fma: has("has_fma"), round, vectors: round && has("has_sse42") }
            }
            "aarch64" => Features { fma: true, round: true, vectors: true },
            _ => Features { fma: true, round: true, vectors: false },
        }
    }
}
