//! Ids of the tree, names, and what names and expressions alone make up.
//!
//! Invariant: a dotted name has at least one part.

use cranelift_entity::entity_impl;
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
id!(ExprId, "e", "Names an `Expr`.");
id!(StmtId, "s", "Names a `Stmt`.");
id!(RepeatedId, "a", "Names a `RepeatedStatements`.");

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
