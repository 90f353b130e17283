//! Declarations, types and places, and the rows of tables, compute sets and copies.
//!
//! Invariant: these nest by value, and only as deep as brackets do, which the parser bounds.

use super::*;

/// What declares a name or a place.
#[derive(Clone, Debug)]
pub enum Decl {
    /// `let`
    Let(Let),
    /// `var param const temp`
    Var(VarDecl),
    /// `map x[i] on place for …;`
    Map {
        /// The view that is mapped.
        view: ExprId,
        /// Where to.
        place: Place,
        /// `for …`
        family: Vec<Binder>,
        /// Where.
        span: Span,
    },
}

/// `let mut pattern: type = value;`
#[derive(Clone, Debug)]
pub struct Let {
    /// `mut`
    pub mutable: bool,
    /// The names.
    pub pattern: Pattern,
    /// The stated type.
    pub ty: Option<Type>,
    /// The value.
    pub value: ExprId,
    /// Where.
    pub span: Span,
}

/// What a value is taken apart into.
#[derive(Clone, Debug)]
pub enum Pattern {
    /// A name.
    Name(Ident),
    /// `_`
    Wildcard(Span),
    /// `(a, b)`
    Tuple(Vec<Pattern>, Span),
}

impl Pattern {
    /// Returns where it stands.
    pub fn span(&self) -> Span {
        match self {
            Pattern::Name(i) => i.span,
            Pattern::Wildcard(span) | Pattern::Tuple(_, span) => *span,
        }
    }
}

/// Which kind of variable.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum VarKind {
    /// `var`
    Var,
    /// `param`
    Param,
    /// `const`
    Const,
    /// `temp`
    Temp,
}

/// `var name: type = init on place;`
#[derive(Clone, Debug)]
pub struct VarDecl {
    /// `var param const temp`
    pub kind: VarKind,
    /// Its name.
    pub name: Path,
    /// Its type.
    pub ty: Type,
    /// Its initial value.
    pub init: Option<ExprId>,
    /// Where it lives.
    pub place: Option<Place>,
    /// Where.
    pub span: Span,
}

/// `on tile(3)` or `on { 0: 0..4; 1: 4..8; }`
#[derive(Clone, Debug)]
pub enum Place {
    /// A place value.
    Expr(ExprId),
    /// Tile by tile.
    Table(Table),
}

/// `{ key: values -> to for …; on place { … } }`
#[derive(Clone, Debug)]
pub struct Table {
    /// In order.
    pub rows: Vec<TableRow>,
    /// Where.
    pub span: Span,
}

/// One row of a table.
#[derive(Clone, Debug)]
pub enum TableRow {
    /// `key: values -> to for …;`
    Row {
        /// Before the colon.
        key: ExprId,
        /// After it.
        values: Vec<Arg>,
        /// After the arrow.
        to: Option<ExprId>,
        /// `for …`
        family: Vec<Binder>,
        /// Where.
        span: Span,
    },
    /// `on place { … }`
    On {
        /// The place.
        place: ExprId,
        /// Its rows.
        table: Table,
    },
}

/// `pattern in range`
#[derive(Clone, Debug)]
pub struct Binder {
    /// The names.
    pub pattern: Pattern,
    /// A range or a list.
    pub range: ExprId,
    /// Where.
    pub span: Span,
}

/// A type.
#[derive(Clone, Debug)]
pub struct Type {
    /// Which.
    pub kind: TypeKind,
    /// Where.
    pub span: Span,
}

/// The forms of types.
#[derive(Clone, Debug)]
pub enum TypeKind {
    /// `f32`, `f32[m, n]`, `int`, `T[..s]`
    Name {
        /// The element type, class, or static type.
        name: Path,
        /// `[…]`; `None` without brackets.
        dims: Option<Vec<Dim>>,
    },
    /// `[type]`
    List(Box<Type>),
    /// `(type, name: type)`
    Tuple(Vec<(Option<Ident>, Type)>),
}

/// One dimension of a type.
#[derive(Clone, Debug)]
pub enum Dim {
    /// A size name or an expression.
    Expr(ExprId),
    /// `..s`
    Spread(Ident),
}

/// What stands in a compute set.
#[derive(Clone, Debug)]
pub enum VertexItem {
    /// `vertex dot(a: x) on tile(3) for …;`
    Vertex(Box<Vertex>),
    /// Statements that are like the one before them.
    Repeated(RepeatedId),
    /// `let`
    Let(Box<Let>),
    /// `for … { … }`
    For {
        /// The binders.
        binders: Vec<Binder>,
        /// What stands inside.
        body: Vec<VertexItem>,
        /// Where, body included.
        span: Span,
    },
    /// `if … { … } else { … }`
    If {
        /// Static.
        cond: ExprId,
        /// If so.
        then: Vec<VertexItem>,
        /// If not; an `else if` is one `If` inside.
        els: Option<Vec<VertexItem>>,
        /// Where.
        span: Span,
    },
}

/// `#[…] vertex name<…>(args) on place for …;`
#[derive(Clone, Debug)]
pub struct Vertex {
    /// `#[…]`
    pub attrs: Vec<Attr>,
    /// The codelet.
    pub codelet: Path,
    /// `<…>`, if any are stated.
    pub generics: Vec<ExprId>,
    /// Fields by name or in order.
    pub args: Vec<Arg>,
    /// Where it runs.
    pub place: Option<Place>,
    /// `for …`
    pub family: Vec<Binder>,
    /// Where.
    pub span: Span,
}

/// What stands in a copy block.
#[derive(Clone, Debug)]
pub enum CopyItem {
    /// `dst <- src for …;`
    Copy {
        /// What is written.
        dst: ExprId,
        /// What is read.
        src: ExprId,
        /// `for …`
        family: Vec<Binder>,
        /// Where.
        span: Span,
    },
    /// `for … { … }`
    For {
        /// The binders.
        binders: Vec<Binder>,
        /// What stands inside.
        body: Vec<CopyItem>,
        /// Where, body included.
        span: Span,
    },
}
