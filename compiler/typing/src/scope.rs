//! The names from outside that codelet bodies use, and their meanings.
//!
//! Invariant: a name has one meaning in a module, whatever the body that uses it.

use girder_ir::codelet::Elementary;
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

    /// Returns whether calls of a codelet function stay apart ([`Apart`](crate::Apart)).
    fn stays_apart(&self, _module: ModuleRef, _item: &ast::Fn) -> bool {
        false
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
