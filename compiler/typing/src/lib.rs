//! Codelets: from the syntax of one item to a typed codelet with its generics known and its helper functions inlined.
//!
//! A body is translated in one pass. Names, types and inlining are resolved on the way: an expression is a static
//! value, a typed scalar, or an aggregate that exists only here; the type of a literal stays open until a use decides
//! it; a static condition selects its branch at once, so that one generic function can have a different body for each
//! type. Expressions that are statements in the IR (reductions, calls with loops) are emitted before the expression
//! that uses them.
//!
//! Invariant: a [`Codelet`](girder_ir::codelet::Codelet) is returned only if no error was reported, and it then meets
//! the invariants of its module.

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
mod bounds;
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
pub use specialise::{Results, result_types, specialise};

use girder_ir::codelet::Elementary;
use girder_ir::ids::FieldId;
use girder_ir::types::ElemType;
use girder_syntax::ast;

/// The names from outside that codelet bodies use.
pub trait Scope {
    /// Returns the meaning of a dotted name in a module; `None` if the name is unknown.
    fn lookup(&self, module: ModuleRef, path: &str) -> Option<Meaning<'_>>;

    /// Returns the elementary function that an item of the prelude computes, for which a tile may have an instruction.
    fn elementary(&self, _module: ModuleRef, _item: &ast::Fn) -> Option<Elementary> {
        None
    }

    /// Returns the codelet function that an argument of a generic names ([`GenericArg::Fn`]).
    ///
    /// [`GenericArg::Fn`]: girder_ir::codelet::GenericArg::Fn
    fn function(&self, _name: &str) -> Option<(ModuleRef, &ast::Fn)> {
        None
    }

    /// Returns the tree of a module.
    fn tree(&self, module: ModuleRef) -> &ast::Module;
}

/// Names a module to [`Scope`].
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ModuleRef(pub u32);

/// The meaning of a name from outside the body.
#[derive(Clone, Copy, Debug)]
pub enum Meaning<'a> {
    /// A `codelet fn`.
    CodeletFn {
        /// Its module.
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
    /// Any other kind of entity, in the words of messages: "a variable".
    Other(&'static str),
}
