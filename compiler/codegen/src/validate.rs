//! What can be compiled, and everything that can go wrong.
//!
//! Invariant: a specification that [`validate`] accepts is translated without an error and without deep recursion;
//! Cranelift is never asked for what it cannot do.

use crate::spec::KernelSpec;
use cranelift_entity::SecondaryMap;
use girder_ir::codelet::{Codelet, Stmt, StmtBlock};
use girder_ir::ids::ExprId;
use girder_ir::types::ElemType;

/// Bytes that the local arrays of one codelet may take together: they live on the stack of a host thread.
pub const ARRAY_BYTES: u64 = 256 << 10;
/// Nesting of expressions and statements that the translation, which is recursive, accepts.
const DEPTH: u32 = 600;

/// Why nothing was compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CodegenError {
    /// This host has no code generator.
    Host(String),
    /// `GIRDER_ISA` names no level that this machine has.
    Isa(String),
    /// An element type that is not computed with.
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
        /// What they take.
        bytes: u64,
        /// What they may take.
        limit: u64,
    },
    /// Expressions or statements are nested too deeply.
    Depth {
        /// The codelet's name.
        codelet: String,
        /// How deeply they may be.
        limit: u32,
    },
    /// Cranelift refused what this crate made, or memory was refused: a bug, or the environment.
    Backend {
        /// The codelet's name; empty if it was none.
        codelet: String,
        /// What it said.
        reason: String,
    },
}

impl std::fmt::Display for CodegenError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CodegenError::Host(reason) => write!(f, "no code can be generated for this host: {reason}"),
            CodegenError::Isa(reason) => f.write_str(reason),
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

/// Accepts what the rest of the crate can translate.
pub(crate) fn validate(spec: &KernelSpec<'_>) -> Result<(), CodegenError> {
    let codelet = spec.codelet;
    let name = || codelet.name.to_string();
    let types = codelet.exprs.values().map(|e| e.ty);
    let types = types.chain(codelet.fields.values().map(|f| f.ty)).chain(codelet.locals.values().map(|l| l.ty));
    if let Some(ty) = types.into_iter().find(|&ty| ty == ElemType::F16) {
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
    let expressions = Depths::of(codelet).map(|d| d.deepest);
    match expressions.zip(block_depth(&codelet.body)) {
        Some((e, b)) if e + b <= DEPTH => Ok(()),
        _ => Err(CodegenError::Depth { codelet: name(), limit: DEPTH }),
    }
}

/// Bytes of all local arrays.
pub(crate) fn array_bytes(codelet: &Codelet) -> u64 {
    let bytes = |l: &girder_ir::codelet::Local| {
        let Some(dims) = &l.array else { return 0 };
        dims.iter().fold(u64::from(l.ty.bytes()), |n, &d| n.saturating_mul(u64::from(d)))
    };
    codelet.locals.values().map(bytes).fold(0, u64::saturating_add)
}

/// The nesting of statements; `None` if it is beyond the limit.
fn block_depth(body: &StmtBlock) -> Option<u32> {
    let mut deepest = 0;
    let mut open: Vec<(&StmtBlock, u32)> = vec![(body, 1)];
    while let Some((block, depth)) = open.pop() {
        deepest = deepest.max(depth);
        if depth > DEPTH {
            return None;
        }
        open.extend(block.iter().flat_map(Stmt::blocks).map(|inner| (inner, depth + 1)));
    }
    Some(deepest)
}

/// The nesting of every expression.
struct Depths {
    deepest: u32,
}

impl Depths {
    /// `None` if the nesting is beyond the limit (or endless). Visits operands first, without recursion.
    fn of(codelet: &Codelet) -> Option<Depths> {
        let mut depth: SecondaryMap<ExprId, u32> = SecondaryMap::with_capacity(codelet.exprs.len());
        let mut result = Depths { deepest: 0 };
        let mut open: Vec<ExprId> = Vec::new();
        for root in codelet.exprs.keys() {
            open.push(root);
            while let Some(&e) = open.last() {
                if open.len() as u32 > DEPTH {
                    return None;
                }
                let mut pending = None;
                let mut deepest = 0;
                for &x in codelet.exprs[e].kind.operands().iter() {
                    match depth[x] {
                        0 => pending = Some(x),
                        d => deepest = deepest.max(d),
                    }
                }
                match pending {
                    Some(x) => open.push(x),
                    None => {
                        depth[e] = deepest + 1;
                        result.deepest = result.deepest.max(deepest + 1);
                        open.pop();
                    }
                }
            }
        }
        (result.deepest <= DEPTH).then_some(result)
    }
}
