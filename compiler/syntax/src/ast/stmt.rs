//! Bodies and their statements.
//!
//! Invariant: a statement is in one body only.

use super::decl::{Binder, CopyItem, Decl, VertexItem};
use super::expr::BinaryOp;
use super::name::{Arg, Attr, ExprId, Path, StmtId};
use girder_source::Span;

/// `{ statements value }`
#[derive(Clone, Debug)]
pub struct Body {
    /// Statements in order. A last block without semicolon is included as an [`StmtKind::Expr`] with `semi: false`.
    pub stmts: Vec<StmtId>,
    /// The last expression, if it has no semicolon and is not a block.
    pub value: Option<ExprId>,
    /// The source span, braces included.
    pub span: Span,
}

/// A statement with its attributes.
#[derive(Clone, Debug)]
pub struct Stmt {
    /// `#[…]` before it.
    pub attrs: Vec<Attr>,
    /// The form.
    pub kind: StmtKind,
    /// The source span.
    pub span: Span,
}

/// The operator of an assignment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AssignOp {
    /// `<-`
    Write,
    /// `=`
    Set,
    /// `+=` and similar: an arithmetic or bitwise operator, whose first operand is the target.
    With(BinaryOp),
}

/// The forms of statements.
#[derive(Clone, Debug)]
pub enum StmtKind {
    /// A declaration.
    Decl(Decl),
    /// An expression; a block form needs no semicolon.
    Expr {
        /// The expression.
        expr: ExprId,
        /// Whether a semicolon follows.
        semi: bool,
    },
    /// `target op value;`
    Assign {
        /// The operator.
        op: AssignOp,
        /// The target that is written or renamed.
        target: ExprId,
        /// The value.
        value: ExprId,
    },
    /// `for … { … }`
    For {
        /// The binders.
        binders: Vec<Binder>,
        /// The body.
        body: Body,
    },
    /// `while cond { … }`
    While {
        /// The condition.
        cond: ExprId,
        /// The body.
        body: Body,
    },
    /// `repeat i in range { … }`
    Repeat {
        /// The index's name.
        index: Option<Path>,
        /// A count or a range.
        range: ExprId,
        /// The body.
        body: Body,
    },
    /// `return value;`
    Return(Option<ExprId>),
    /// `break;`
    Break,
    /// `continue;`
    Continue,
    /// `compute name { … }`
    Compute {
        /// Its name, if any.
        name: Option<Path>,
        /// The contents.
        vertices: Vec<VertexItem>,
    },
    /// `copy name { … }`
    Copy {
        /// Its name, if any.
        name: Option<Path>,
        /// The contents.
        copies: Vec<CopyItem>,
    },
    /// `par { … }`
    Par(Body),
    /// `call p(args);`
    Call {
        /// The program.
        name: Path,
        /// Its arguments.
        args: Vec<Arg>,
    },
    /// `execute name;`
    Execute(Path),
    /// `exchange name;`
    Exchange(Path),
    /// Text that could not be parsed and has been reported.
    Error,
}
