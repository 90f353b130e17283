//! Expressions.
//!
//! A program may have millions of expressions, most of them names, integers and indices; rarer forms keep large data
//! behind a pointer.
//!
//! Invariant: parentheses are kept ([`ExprKind::Paren`]), so that the text can be written again as it was.

use super::decl::Binder;
use super::item::Fn;
use super::name::{Arg, ExprId, Ident};
use super::stmt::Body;
use crate::token::integers::IntegerList;
use girder_source::Span;
use smol_str::SmolStr;

/// An expression.
#[derive(Clone, Debug)]
pub struct Expr {
    /// The form.
    pub kind: ExprKind,
    /// The source span.
    pub span: Span,
}

/// Unary operators.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum UnaryOp {
    /// `-`
    Neg,
    /// `!`
    Not,
}

/// Binary operators.
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
    /// Returns the precedence, from 1 (`||`) to 9 (`*`), as in Rust.
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

    /// Returns whether it is a comparison; comparisons do not chain.
    pub fn compares(self) -> bool {
        self.precedence() == BinaryOp::Eq.precedence()
    }

    /// Returns its text.
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
        /// The source text.
        text: SmolStr,
    },
    /// `1.5e-3`
    Float {
        /// Its value.
        value: f64,
        /// The source text.
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
    /// `[1, 2, …]`, `[(1, 2), (3, 4), …]`: many integers, or many tuples of integers.
    Integers(Box<IntegerList>),
    /// `[value; count]`
    Fill {
        /// The value of each element.
        value: ExprId,
        /// The number of elements.
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
        /// The function.
        callee: ExprId,
        /// The arguments.
        args: Vec<Arg>,
    },
    /// `base[index, …]`
    Index {
        /// The indexed value.
        base: ExprId,
        /// The indices.
        index: Vec<Index>,
    },
    /// `-x`
    Unary {
        /// The operator.
        op: UnaryOp,
        /// The operand.
        value: ExprId,
    },
    /// `a + b`
    Binary {
        /// The operator.
        op: BinaryOp,
        /// Left.
        left: ExprId,
        /// Right.
        right: ExprId,
    },
    /// `a..b`, `a..=b`, `a..b by s`
    Range {
        /// The first value.
        start: ExprId,
        /// The last value, or one past it.
        end: ExprId,
        /// `..=`
        closed: bool,
        /// `by`
        by: Option<ExprId>,
    },
    /// `sum i in r where c { e }`
    Reduce(Box<Reduce>),
    /// `fn(x) { … }`
    Fn(Box<Fn>),
    /// `{ … }`
    Block(Box<Body>),
    /// `if c { … } else { … }`
    If {
        /// The condition.
        cond: ExprId,
        /// The body if the condition holds.
        then: Box<Body>,
        /// The rest: a `Block` or another `If`.
        els: Option<ExprId>,
    },
    /// `on place { … }`, `stage on place { … }`
    On {
        /// `stage`
        stage: bool,
        /// The place.
        place: ExprId,
        /// The body.
        body: Box<Body>,
    },
    /// `with mode { … }`
    With {
        /// The mode.
        mode: ExprId,
        /// The body.
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
        /// The value to compare.
        on: ExprId,
        /// The arms, in order.
        arms: Vec<Arm>,
    },
    /// Text that could not be parsed and has been reported.
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
    /// The value of each element.
    pub body: Body,
}

/// One index of an indexing expression.
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
        /// The source span.
        span: Span,
    },
}

/// `0, 2..4 => { … }`
#[derive(Clone, Debug)]
pub struct Arm {
    /// The keys that it matches; `None` is `_`.
    pub keys: Vec<Option<ExprId>>,
    /// The body.
    pub body: Body,
    /// The source span.
    pub span: Span,
}

impl ExprKind {
    /// Returns whether the text begins and ends with brackets that hold values.
    pub fn has_own_brackets(&self) -> bool {
        matches!(self, ExprKind::List(_) | ExprKind::Integers(_) | ExprKind::Tuple(_) | ExprKind::Fill { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Larger expressions would exceed the memory limit for compiling a million statements with fifteen expressions
    /// each.
    #[test]
    fn expressions_are_small() {
        assert_eq!(std::mem::size_of::<Expr>(), 48);
    }
}
