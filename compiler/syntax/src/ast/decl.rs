//! Declarations, types and places, and the rows of tables, compute sets and copies.
//!
//! Invariant: these nest by value, and only as deep as brackets do, which the parser bounds.

use super::name::{Arg, Attr, ExprId, Ident, Path, RepeatedId};
use girder_source::Span;

/// A declaration of a name or a mapping.
#[derive(Clone, Debug)]
pub enum Decl {
    /// `let`
    Let(Let),
    /// `var param state const temp`
    Var(VarDecl),
    /// `map x[i] on place for …;`
    Map {
        /// The view that is mapped.
        view: ExprId,
        /// The place to which it is mapped.
        place: Place,
        /// `for …`
        family: Vec<Binder>,
        /// The source span.
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
    /// The source span.
    pub span: Span,
}

/// The left side of a declaration, which destructures a value.
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
    /// Returns the source span.
    pub fn span(&self) -> Span {
        match self {
            Pattern::Name(i) => i.span,
            Pattern::Wildcard(span) | Pattern::Tuple(_, span) => *span,
        }
    }
}

/// The kind of a variable.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum VarKind {
    /// `var`
    Var,
    /// `param`
    Param,
    /// `state`
    State,
    /// `const`
    Const,
    /// `temp`
    Temp,
    /// `remote`: a buffer beside the tiles, of which the first axis counts the rows
    Remote,
}

/// `var name: type = init on place within place;`
#[derive(Clone, Debug)]
pub struct VarDecl {
    /// `var param state const temp remote`
    pub kind: VarKind,
    /// Its name.
    pub name: Path,
    /// Its type.
    pub ty: Type,
    /// Its initial value.
    pub init: Option<ExprId>,
    /// The place of its elements.
    pub place: Option<Place>,
    /// The place whose tiles hold its elements; the compiler chooses among them.
    pub within: Option<ExprId>,
    /// The source span.
    pub span: Span,
}

/// `on tile(3)` or `on { 0: 0..4; 1: 4..8; }`
#[derive(Clone, Debug)]
pub enum Place {
    /// A place as an expression.
    Expr(ExprId),
    /// A table with a row for each tile.
    Table(Table),
}

/// `{ key: values -> to for …; on place { … } }`
#[derive(Clone, Debug)]
pub struct Table {
    /// In order.
    pub rows: Vec<TableRow>,
    /// The source span.
    pub span: Span,
}

/// One row of a table.
#[derive(Clone, Debug)]
pub enum TableRow {
    /// `key: values -> to for …;`
    Row {
        /// The part before the colon.
        key: ExprId,
        /// The part after the colon.
        values: Vec<Arg>,
        /// The part after the arrow.
        to: Option<ExprId>,
        /// `for …`
        family: Vec<Binder>,
        /// The source span.
        span: Span,
    },
    /// Rows that repeat the one before them with other integers.
    Repeated(RepeatedId),
    /// `on place { … }`
    On {
        /// The place.
        place: ExprId,
        /// Its rows.
        table: Table,
    },
}

impl TableRow {
    /// Returns the span of a row without a table of its own; of others, an empty one.
    pub fn span(&self) -> Span {
        match self {
            TableRow::Row { span, .. } => *span,
            TableRow::Repeated(_) | TableRow::On { .. } => Span::NONE,
        }
    }
}

/// `pattern in range`
#[derive(Clone, Debug)]
pub struct Binder {
    /// The names.
    pub pattern: Pattern,
    /// A range or a list.
    pub range: ExprId,
    /// The source span.
    pub span: Span,
}

/// A type.
#[derive(Clone, Debug)]
pub struct Type {
    /// The form.
    pub kind: TypeKind,
    /// The source span.
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
    /// `..x.shape`
    Shape(ExprId),
}

/// A statement of a compute set.
#[derive(Clone, Debug)]
pub enum VertexItem {
    /// `vertex dot(a: x) on tile(3) for …;`
    Vertex(Box<Vertex>),
    /// Statements that repeat the one before them with other integers.
    Repeated(RepeatedId),
    /// `let`
    Let(Box<Let>),
    /// `for … { … }`
    For {
        /// The binders.
        binders: Vec<Binder>,
        /// The contents.
        body: Vec<VertexItem>,
        /// The source span, body included.
        span: Span,
    },
    /// `if … { … } else { … }`
    If {
        /// The condition; static.
        cond: ExprId,
        /// The statements if the condition holds.
        then: Vec<VertexItem>,
        /// The statements otherwise; an `else if` is one `If` inside.
        els: Option<Vec<VertexItem>>,
        /// The source span.
        span: Span,
    },
}

/// `#[…] vertex name<…>(args) on place within place for …;`
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
    /// The place where it runs.
    pub place: Option<Place>,
    /// The place on one of whose tiles it runs; the compiler chooses the tile.
    pub within: Option<ExprId>,
    /// `for …`
    pub family: Vec<Binder>,
    /// The source span.
    pub span: Span,
}

/// A statement of a copy block.
#[derive(Clone, Debug)]
pub enum CopyItem {
    /// `dst <- src for …;`
    Copy {
        /// The elements written.
        dst: ExprId,
        /// The elements read.
        src: ExprId,
        /// `for …`
        family: Vec<Binder>,
        /// The source span.
        span: Span,
    },
    /// `for … { … }`
    For {
        /// The binders.
        binders: Vec<Binder>,
        /// The contents.
        body: Vec<CopyItem>,
        /// The source span, body included.
        span: Span,
    },
}
