//! Validation of specifications, and the errors of code generation.
//!
//! Invariant: a specification that [`validate`] accepts is translated without an error and without deep recursion.
//! Cranelift gets no code that it does not support.

use girder_codelet::kernel::{ARRAY_BYTES, KernelSpec, MAX_DEPTH, array_bytes, depth, unsupported_type};
use girder_ir::types::ElemType;

/// The reason why nothing was compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CodegenError {
    /// There is no code generator for this host.
    Target(String),
    /// `GIRDER_ISA` is not a level that this machine has.
    Level(String),
    /// The codelet computes with an unsupported element type.
    Type {
        /// The codelet's name.
        codelet: String,
        /// The type.
        ty: ElemType,
    },
    /// The local arrays are too large.
    Arrays {
        /// The codelet's name.
        codelet: String,
        /// The bytes that they take.
        bytes: u64,
        /// The greatest number of bytes that they may take.
        limit: u64,
    },
    /// Expressions or statements are nested too deeply.
    Depth {
        /// The codelet's name.
        codelet: String,
        /// The greatest nesting depth.
        limit: u32,
    },
    /// Cranelift rejected code, or executable memory was not available. The cause is a bug or the environment.
    Backend {
        /// The codelet's name; empty if the error concerns no codelet.
        codelet: String,
        /// The reported reason.
        reason: String,
    },
}

impl std::fmt::Display for CodegenError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CodegenError::Target(reason) => write!(f, "no code can be generated for this host: {reason}"),
            CodegenError::Level(reason) => f.write_str(reason),
            CodegenError::Type { codelet, ty } => write!(f, "codelet `{codelet}` computes with `{ty}`"),
            CodegenError::Arrays { codelet, bytes, limit } => {
                write!(f, "the local arrays of codelet `{codelet}` take {bytes} bytes, more than {limit}")
            }
            CodegenError::Depth { codelet, limit } => {
                write!(f, "the body of codelet `{codelet}` is nested more than {limit} deep")
            }
            CodegenError::Backend { codelet, reason } => write!(f, "compiling codelet `{codelet}`: {reason}"),
        }
    }
}

impl std::error::Error for CodegenError {}

/// Accepts a specification if the rest of the crate can translate it.
pub(crate) fn validate(spec: &KernelSpec<'_>) -> Result<(), CodegenError> {
    let codelet = spec.codelet;
    let name = || codelet.name.to_string();
    if let Some(ty) = unsupported_type(codelet) {
        return Err(CodegenError::Type { codelet: name(), ty });
    }
    let bytes = array_bytes(codelet);
    if bytes > ARRAY_BYTES {
        return Err(CodegenError::Arrays { codelet: name(), bytes, limit: ARRAY_BYTES });
    }
    for (field, decl) in codelet.edges() {
        let rank = decl.dims.len();
        if spec.sizes.shapes[field].len() != rank || spec.strides[field].len() != rank {
            let reason = format!("field `{}` has another rank than its shape or strides", decl.name);
            return Err(CodegenError::Backend { codelet: name(), reason });
        }
    }
    match depth(codelet) {
        Some(_) => Ok(()),
        None => Err(CodegenError::Depth { codelet: name(), limit: MAX_DEPTH }),
    }
}
