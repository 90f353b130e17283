//! The syntax tree of one file, before any name has a meaning.
//!
//! Expressions, statements and types live in arenas and are named by typed ids, so a module of a million lines consists
//! of a few vectors; other nodes nest by value. Every node has its span.
//!
//! Invariant: the tree holds everything that the formatter needs to write the text again, except comments, which are in
//! [`Module::comments`] by position.

mod name;
mod repeated;
mod decl;
mod expr;
mod item;
mod stmt;

pub use decl::*;
pub use expr::*;
pub use item::*;
pub use name::*;
pub use repeated::*;
pub use stmt::*;

pub use crate::token::integers::IntegerList;

use crate::token::Comment;
use cranelift_entity::PrimaryMap;
use girder_source::Span;

/// One file.
#[derive(Clone, Debug, Default)]
pub struct Module {
    /// `module name with (…);`
    pub header: Option<Header>,
    /// Items in order.
    pub items: Vec<Item>,
    /// All expressions.
    pub exprs: Exprs,
    /// All statements.
    pub stmts: PrimaryMap<StmtId, Stmt>,
    /// Comments by position, `///` too.
    pub comments: Vec<Comment>,
    /// The whole file.
    pub span: Span,
}

/// `module name with (after: "…");`
#[derive(Clone, Debug)]
pub struct Header {
    /// The module's name.
    pub name: Path,
    /// `with ( … )`
    pub options: Vec<Arg>,
    /// The source span.
    pub span: Span,
}
