//! Items: the top-level constructs of a file.
//!
//! Invariant: every kind of item has its attributes.

use super::decl::{CopyItem, Decl, Table, Type, VertexItem};
use super::name::{Arg, Attr, ExprId, Ident, Path};
use super::stmt::Body;
use girder_source::Span;
use smol_str::SmolStr;

/// An item with its attributes.
#[derive(Clone, Debug)]
pub struct Item {
    /// `#[…]` before it.
    pub attrs: Vec<Attr>,
    /// The form.
    pub kind: ItemKind,
    /// The source span, attributes included.
    pub span: Span,
}

/// The kinds of items.
#[derive(Clone, Debug)]
pub enum ItemKind {
    /// `use nn;` `use nn as n;` `use "file.gir" as f;` `use nn.{dense, relu};`
    Use(Use),
    /// `codelet`
    Codelet(Codelet),
    /// `fn` and `codelet fn`
    Fn(Fn),
    /// `grad f(x; y; dy) { … }`
    Grad(Grad),
    /// `program`
    Program(Program),
    /// `stream s: in f32[4];`
    Stream(Stream),
    /// `let var param const temp map`
    Decl(Decl),
    /// `compute name { … }`
    Compute {
        /// Its name.
        name: Path,
        /// The contents.
        vertices: Vec<VertexItem>,
    },
    /// `copy name { … }`
    Copy {
        /// Its name.
        name: Path,
        /// The contents.
        copies: Vec<CopyItem>,
    },
    /// `exchange name with (…) { … }`
    Exchange {
        /// The compute set or copy it belongs to.
        name: Path,
        /// `with ( … )`
        options: Vec<Arg>,
        /// Its rows.
        table: Table,
    },
    /// `layout with (…) { … }`
    Layout {
        /// `with ( … )`
        options: Vec<Arg>,
        /// Its rows.
        table: Table,
    },
    /// Text that could not be parsed and has been reported.
    Error,
}

/// `use …;`
#[derive(Clone, Debug)]
pub enum Use {
    /// `use name;` or `use name as alias;`
    Library {
        /// The module.
        name: Path,
        /// `as`
        alias: Option<Ident>,
    },
    /// `use "file.gir" as alias;`
    File {
        /// The path, escapes resolved.
        path: SmolStr,
        /// The span of the path.
        span: Span,
        /// `as`
        alias: Ident,
    },
    /// `use name.{a, b};`
    Names {
        /// The module.
        name: Path,
        /// The imported names.
        names: Vec<Ident>,
    },
}

/// `codelet name<T: float>(in a: T[n]) { … }`
#[derive(Clone, Debug)]
pub struct Codelet {
    /// Whether it runs on all workers.
    pub multi: bool,
    /// Its name.
    pub name: Path,
    /// `<…>`
    pub generics: Vec<Generic>,
    /// `(…)`
    pub fields: Vec<CodeletField>,
    /// The body.
    pub body: Body,
}

/// `T: float`
#[derive(Clone, Debug)]
pub struct Generic {
    /// Its name.
    pub name: Ident,
    /// Type class or `int`.
    pub bound: Option<Type>,
}

/// `in a: T[n]`
#[derive(Clone, Debug)]
pub struct CodeletField {
    /// `#[align(8)]`
    pub attrs: Vec<Attr>,
    /// Direction.
    pub dir: FieldDir,
    /// Its name.
    pub name: Ident,
    /// Element type and dimensions.
    pub ty: Type,
    /// The source span.
    pub span: Span,
}

/// The direction of a field.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FieldDir {
    /// Read.
    In,
    /// Write.
    Out,
    /// Read and write.
    InOut,
    /// Vertex state.
    Const,
}

/// `fn name(params) -> type { … }`, and `fn(params) -> type { … }`
#[derive(Clone, Debug)]
pub struct Fn {
    /// `codelet fn`: runs inside a tile.
    pub codelet: bool,
    /// Its name; `closure` for a function without one.
    pub name: Path,
    /// `<…>`
    pub generics: Vec<Generic>,
    /// `(…)`
    pub params: Vec<Param>,
    /// `-> …`
    pub result: Option<Type>,
    /// The body.
    pub body: Body,
}

/// `name: type = default`
#[derive(Clone, Debug)]
pub struct Param {
    /// Its name.
    pub name: Ident,
    /// Its type, if any is stated.
    pub ty: Option<Type>,
    /// Its default.
    pub default: Option<ExprId>,
    /// The source span.
    pub span: Span,
}

/// `grad f(x, w; y; dy) { … }`
#[derive(Clone, Debug)]
pub struct Grad {
    /// The function.
    pub name: Path,
    /// Its parameters.
    pub params: Vec<Ident>,
    /// Its results.
    pub results: Vec<Ident>,
    /// Their adjoints.
    pub adjoints: Vec<Ident>,
    /// The body.
    pub body: Body,
}

/// `program name(params) { … }`
#[derive(Clone, Debug)]
pub struct Program {
    /// Its name.
    pub name: Path,
    /// `(…)`
    pub params: Vec<Param>,
    /// The body.
    pub body: Body,
}

/// `stream s: in f32[4] with (wrap: true);`
#[derive(Clone, Debug)]
pub struct Stream {
    /// Its name.
    pub name: Path,
    /// `in` from the host, `out` to it.
    pub input: bool,
    /// One packet.
    pub ty: Type,
    /// `with ( … )`
    pub options: Vec<Arg>,
}
