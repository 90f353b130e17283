//! Bodies and their statements.
//!
//! Invariant: a statement stands in one body only.

use super::*;

/// `{ statements value }`
#[derive(Clone, Debug)]
pub struct Body {
    /// In order. A last block without semicolon is here as an [`StmtKind::Expr`] with `semi: false`.
    pub stmts: Vec<StmtId>,
    /// The last expression, if it has no semicolon and is not a block.
    pub value: Option<ExprId>,
    /// Where, braces included.
    pub span: Span,
}

/// A statement with its attributes.
#[derive(Clone, Debug)]
pub struct Stmt {
    /// `#[…]` before it.
    pub attrs: Vec<Attr>,
    /// Which.
    pub kind: StmtKind,
    /// Where.
    pub span: Span,
}

/// The operator of an assignment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AssignOp {
    /// `<-`
    Write,
    /// `=`
    Set,
    /// `+=` and its kin: an arithmetic or bitwise operator, of which the target is the first operand.
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
        /// Which.
        op: AssignOp,
        /// What is written or renamed.
        target: ExprId,
        /// The value.
        value: ExprId,
    },
    /// `for … { … }`
    For {
        /// The binders.
        binders: Vec<Binder>,
        /// What is repeated.
        body: Body,
    },
    /// `while cond { … }`
    While {
        /// The condition.
        cond: ExprId,
        /// What is repeated.
        body: Body,
    },
    /// `repeat i in range { … }`
    Repeat {
        /// The index's name.
        index: Option<Path>,
        /// A count or a range.
        range: ExprId,
        /// What is repeated.
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
        /// What stands inside.
        vertices: Vec<VertexItem>,
    },
    /// `copy name { … }`
    Copy {
        /// Its name, if any.
        name: Option<Path>,
        /// What stands inside.
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
    /// What could not be parsed; already reported.
    Error,
}
