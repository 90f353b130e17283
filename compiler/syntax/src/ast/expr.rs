//! Expressions.
//!
//! A program may have millions of expressions, and most are names, integers and indices: the rarer forms keep what is
//! large behind a pointer.
//!
//! Invariant: parentheses are kept ([`ExprKind::Paren`]), so that the text can be written as it was.

use super::*;

/// An expression.
#[derive(Clone, Debug)]
pub struct Expr {
    /// Which.
    pub kind: ExprKind,
    /// Where.
    pub span: Span,
}

/// Operators of one operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum UnaryOp {
    /// `-`
    Neg,
    /// `!`
    Not,
}

/// Operators of two operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[allow(missing_docs)]
pub enum BinaryOp {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    MatMul,
    And,
    Or,
    BitAnd,
    BitOr,
    BitXor,
    Shl,
    Shr,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl BinaryOp {
    /// How tight it binds, from 1 (`||`) to 9 (`*`), as in Rust.
    pub fn precedence(self) -> u8 {
        use BinaryOp::*;
        match self {
            Or => 1,
            And => 2,
            Eq | Ne | Lt | Le | Gt | Ge => 3,
            BitOr => 4,
            BitXor => 5,
            BitAnd => 6,
            Shl | Shr => 7,
            Add | Sub => 8,
            Mul | Div | Rem | MatMul => 9,
        }
    }

    /// Returns whether it compares; comparisons do not chain.
    pub fn compares(self) -> bool {
        self.precedence() == BinaryOp::Eq.precedence()
    }

    /// As it is written.
    pub fn token(self) -> &'static str {
        use BinaryOp::*;
        match self {
            Add => "+",
            Sub => "-",
            Mul => "*",
            Div => "/",
            Rem => "%",
            MatMul => "@",
            And => "&&",
            Or => "||",
            BitAnd => "&",
            BitOr => "|",
            BitXor => "^",
            Shl => "<<",
            Shr => ">>",
            Eq => "==",
            Ne => "!=",
            Lt => "<",
            Le => "<=",
            Gt => ">",
            Ge => ">=",
        }
    }
}

/// The forms of expressions.
#[derive(Clone, Debug)]
pub enum ExprKind {
    /// A name.
    Name(SmolStr),
    /// `42`, `0x2a`
    Int {
        /// Its value.
        value: u64,
        /// As written.
        text: SmolStr,
    },
    /// `1.5e-3`
    Float {
        /// Its value.
        value: f64,
        /// As written.
        text: SmolStr,
    },
    /// `"…"`, escapes resolved.
    Str(SmolStr),
    /// `true`, `false`
    Bool(bool),
    /// `(e)`
    Paren(ExprId),
    /// `(a, b)`, `(w: a, b: c)`, `(a,)`, `()`
    Tuple(Vec<Arg>),
    /// `[a, b]`
    List(Vec<ExprId>),
    /// `[value; count]`
    Fill {
        /// Each element.
        value: ExprId,
        /// How many.
        count: ExprId,
    },
    /// `base.name`
    Field {
        /// Before the dot.
        base: ExprId,
        /// After it.
        name: Ident,
    },
    /// `callee(args)`
    Call {
        /// What is called.
        callee: ExprId,
        /// With what.
        args: Vec<Arg>,
    },
    /// `base[index, …]`
    Index {
        /// What is indexed.
        base: ExprId,
        /// With what.
        index: Vec<Index>,
    },
    /// `-x`
    Unary {
        /// Which.
        op: UnaryOp,
        /// Of what.
        value: ExprId,
    },
    /// `a + b`
    Binary {
        /// Which.
        op: BinaryOp,
        /// Left.
        left: ExprId,
        /// Right.
        right: ExprId,
    },
    /// `a..b`, `a..=b`, `a..b by s`
    Range {
        /// First.
        start: ExprId,
        /// Last or one past it.
        end: ExprId,
        /// `..=`
        closed: bool,
        /// `by`
        by: Option<ExprId>,
    },
    /// `sum i in r where c { e }`
    Reduce(Box<Reduce>),
    /// `{ … }`
    Block(Box<Body>),
    /// `if c { … } else { … }`
    If {
        /// The condition.
        cond: ExprId,
        /// If so.
        then: Box<Body>,
        /// If not: a `Block` or another `If`.
        els: Option<ExprId>,
    },
    /// `on place { … }`, `stage on place { … }`
    On {
        /// `stage`
        stage: bool,
        /// The place.
        place: ExprId,
        /// What stands there.
        body: Box<Body>,
    },
    /// `with mode { … }`
    With {
        /// The mode.
        mode: ExprId,
        /// What it governs.
        body: Box<Body>,
    },
    /// `pipeline(args) { … }`
    Pipeline {
        /// Its options.
        args: Vec<Arg>,
        /// Its stages.
        body: Box<Body>,
    },
    /// `switch e { 0, 1 => { … } _ => { … } }`
    Switch {
        /// What is compared.
        on: ExprId,
        /// In order.
        arms: Vec<Arm>,
    },
    /// What could not be parsed; already reported.
    Error,
}

/// `sum i in r where c { e }`
#[derive(Clone, Debug)]
pub struct Reduce {
    /// `sum`, `list`, `minimize`, …
    pub op: Ident,
    /// The binders.
    pub binders: Vec<Binder>,
    /// `where`
    pub filter: Option<ExprId>,
    /// The value of each place.
    pub body: Body,
}

/// One place of an index.
#[derive(Clone, Debug)]
pub enum Index {
    /// An index, or a range value.
    Expr(ExprId),
    /// `...`: as many whole axes as are missing.
    Rest(Span),
    /// `..`, `a..`, `..b`, each with `by` if any. (`a..b` is an [`ExprKind::Range`].)
    Open {
        /// Before the dots.
        start: Option<ExprId>,
        /// After them.
        end: Option<ExprId>,
        /// `by`
        by: Option<ExprId>,
        /// Where.
        span: Span,
    },
}

/// `0, 2..4 => { … }`
#[derive(Clone, Debug)]
pub struct Arm {
    /// What it matches; `None` is `_`.
    pub keys: Vec<Option<ExprId>>,
    /// What it does.
    pub body: Body,
    /// Where.
    pub span: Span,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A million statements with fifteen expressions each would else not fit the memory that compiling them may take.
    #[test]
    fn expressions_are_small() {
        assert_eq!(std::mem::size_of::<Expr>(), 48);
    }
}
