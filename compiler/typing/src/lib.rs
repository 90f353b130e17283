//! Codelets: from the syntax of one item to a typed codelet with its generics known and its helper functions inlined,
//! and back ([`mod@print`]).
//!
//! A body is translated in one pass. Names, types and inlining are resolved on the way: an expression is a static
//! value, a typed scalar, or an aggregate that exists only here; the type of a literal stays open until a use decides
//! it; a static condition selects its branch at once, so that one generic function can have a different body for each
//! type. Expressions that are statements in the IR (reductions, calls with loops) are emitted before the expression
//! that uses them.
//!
//! Invariant: a [`Codelet`](girder_ir::codelet::Codelet) is returned only if no error was reported, and it then meets
//! the invariants of its module.

mod scope;
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
mod apart;
mod scalars;
mod generics;
mod builtins;
mod finish;
pub mod arms;
pub mod print;
#[cfg(test)]
mod tests;

pub use apart::{Apart, CallApart};
pub use builtins::is_builtin;
pub use header::{Class, Header, HeaderField, HeaderGeneric, HeaderType, header, infer_args};
pub use scalars::{codelet_apart, scalar_function};
pub use scope::{Meaning, ModuleRef, Scope};
pub use specialise::{Results, result_types, specialise};
pub use stated::misplaced;
