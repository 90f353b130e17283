//! Codelets: from the syntax of one item to a typed codelet with its generics known and its helper functions inlined.
//!
//! A body is read once, in order. Names, types and inlining are settled while walking: an expression is a static value,
//! a typed scalar, or an aggregate that exists only here; the type of a literal stays open until a use decides it; a
//! condition that is known picks its branch at once, so that one generic function can have a body per type. What the
//! IR evaluates as statements (reductions, calls with loops) is emitted before the expression that uses it.
//!
//! Invariant: a [`Codelet`](girder_ir::codelet::Codelet) comes out only if nothing was reported as an error, and it
//! then meets the invariants of its module.

mod header;
mod specialise;
mod builder;
mod types;
mod value;
mod names;
mod stmt;
mod loops;
mod control;
mod expr;
mod operators;
mod fold;
mod view;
mod array;
mod matrix;
mod stated;
mod reduce;
mod call;
mod generics;
mod builtins;
mod finish;
pub mod arms;
#[cfg(test)]
mod tests;

pub use builtins::is_builtin;
pub use header::{Class, Header, HeaderField, HeaderGeneric, HeaderType, header, infer_args};
pub use specialise::{result_type, specialise};

use girder_ir::codelet::Elementary;
use girder_ir::ids::FieldId;
use girder_ir::types::ElemType;
use girder_syntax::ast;

/// How codelet bodies reach names outside themselves.
pub trait Scope {
    /// Returns the meaning of a dotted name in a module; `None` if there is nothing of that name.
    fn lookup(&self, module: ModuleRef, path: &str) -> Option<Meaning<'_>>;

    /// Returns the function for which tiles may have an instruction, if this is one of the prelude's.
    fn elementary(&self, _module: ModuleRef, _item: &ast::Fn) -> Option<Elementary> {
        None
    }

    /// Returns the tree of a module.
    fn tree(&self, module: ModuleRef) -> &ast::Module;
}

/// Names a module to [`Scope`].
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ModuleRef(pub u32);

/// What a name outside the body is.
#[derive(Clone, Copy, Debug)]
pub enum Meaning<'a> {
    /// A `codelet fn`.
    CodeletFn {
        /// The module that it stands in.
        module: ModuleRef,
        /// The function.
        item: &'a ast::Fn,
    },
    /// A static integer.
    Int(i64),
    /// A static float.
    Float(f64),
    /// A static condition.
    Bool(bool),
    /// An element type.
    Type(ElemType),
    /// Another kind of thing, as messages speak of it: "a variable".
    Other(&'static str),
}
