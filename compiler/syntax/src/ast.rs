//! The syntax tree of one file, before any name has a meaning.
//!
//! Expressions, statements and types live in arenas and are named by typed ids, so a module of a million lines consists
//! of a few vectors; other nodes nest by value. Every node has its span.
//!
//! Invariant: the tree holds everything that the formatter needs to write the text again, except comments, which are in
//! [`Module::comments`] by position.

mod repeated;
mod decl;
mod expr;
mod item;
mod stmt;

pub use decl::*;
pub use expr::*;
pub use item::*;
pub use repeated::*;
pub use stmt::*;

use cranelift_entity::{PrimaryMap, entity_impl};
use girder_source::Span;
use smol_str::SmolStr;

macro_rules! id {
    ($name:ident, $prefix:literal, $doc:literal) => {
        #[doc = $doc]
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(u32);
        entity_impl!($name, $prefix);
    };
}
id!(ExprId, "e", "Names an [`Expr`].");
id!(StmtId, "s", "Names a [`Stmt`].");
id!(RepeatedId, "a", "Names an [`RepeatedStatements`].");

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

/// A comment with its slashes, without its line end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comment {
    /// The text, `//` included.
    pub text: SmolStr,
    /// The source span.
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

/// An identifier.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ident {
    /// Its text.
    pub name: SmolStr,
    /// The source span.
    pub span: Span,
}

/// A dotted name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// At least one.
    pub parts: Vec<Ident>,
    /// The source span.
    pub span: Span,
}

impl Path {
    /// Returns `a.b.c`.
    pub fn dotted(&self) -> SmolStr {
        match &self.parts[..] {
            [one] => one.name.clone(),
            many => many.iter().map(|p| p.name.as_str()).collect::<Vec<_>>().join(".").into(),
        }
    }
}

/// `#[name(args)]`; `#[a, b]` are two.
#[derive(Clone, Debug)]
pub struct Attr {
    /// Its name.
    pub name: Ident,
    /// Its arguments; `None` without parentheses.
    pub args: Option<Vec<Arg>>,
    /// The source span.
    pub span: Span,
}

/// `value` or `name: value`.
#[derive(Clone, Debug)]
pub struct Arg {
    /// The name before the colon.
    pub name: Option<Ident>,
    /// The value.
    pub value: ExprId,
}
