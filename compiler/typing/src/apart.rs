//! Codelets in which the calls of some functions stay apart: those that have a derivative of their own.
//!
//! Such a call is inlined as any other, into a labelled block that computes its results and nothing else. A
//! transformation of the codelet may replace the block by what it knows of the function.
//!
//! Invariant: a block of [`Apart::calls`] sets the locals of [`CallApart::results`]; if these are all its results, no
//! other local that it sets is used outside it. Nothing in it leaves a block or a loop around it.

use super::ModuleRef;
use girder_ir::codelet::{Codelet, Label};
use girder_ir::ids::{ExprId, LocalId};
use girder_source::Span;
use girder_syntax::ast;
use rustc_hash::FxHashMap;
use smol_str::SmolStr;

/// A codelet with calls that stay apart.
#[derive(Clone, Debug)]
pub struct Apart<'a> {
    /// The codelet.
    pub codelet: Codelet,
    /// The calls, by the labels of their blocks.
    pub calls: FxHashMap<Label, CallApart<'a>>,
}

/// A call that stays apart.
#[derive(Clone, Debug)]
pub struct CallApart<'a> {
    /// The module of the function.
    pub module: ModuleRef,
    /// The function.
    pub item: &'a ast::Fn,
    /// The values of its parameters; `None` if a parameter or a result is no scalar.
    pub args: Option<Vec<ExprId>>,
    /// Its generics that are integers.
    pub generics: Vec<(SmolStr, i128)>,
    /// The members of its result, or the result itself.
    pub results: Vec<LocalId>,
    /// The span of the call.
    pub span: Span,
}
